"""What Node answers with the npm package, which is built once for all tests."""

import json
from pathlib import Path

import pytest

import npm_package
import processes

ANSWERS = Path(__file__).with_name("answers.mjs")


@pytest.fixture(scope="session")
def package():
    """Return the folder of the package."""
    return npm_package.package()


@pytest.fixture(scope="session")
def answers(package, tmp_path_factory):
    """Return a function that lets Node answer cells; infinite numbers are the texts "inf" and "-inf" in JSON."""
    asked = tmp_path_factory.mktemp("cells") / "cells.json"

    def answer(cells):
        asked.write_text(json.dumps(cells), encoding="utf-8")
        with asked.open(encoding="utf-8") as stdin:
            return list(json.loads(processes.run(["node", ANSWERS, package], stdin=stdin).stdout))

    return answer
