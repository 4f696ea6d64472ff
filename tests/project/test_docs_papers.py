"""The pages on inter-silo privacy, distortion and planning do what they say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hockeystick.cli import main

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    name: (DOCS / room / f"{name}.md").read_text(encoding="utf-8")
    for room, name in (
        ("isrl", "isrl"),
        ("federated", "planning"),
        ("papers", "fdp_fedavg"),
    )
}
((COMMAND, SHOWN),) = re.findall(r"```console\n\$ hockeystick (.*?[^\\])\n(.*?)```", PAGES["planning"], re.DOTALL)


def numbers(table: str) -> list[list[float]]:
    """Return the rows of a printed plan."""
    return [[float(cell) for cell in line.split()] for line in table.splitlines()[4:] if line.strip()]


@pytest.mark.slow
def test_plan_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The command of the planning page prints the table shown, to the last digit but one."""
    assert main(shlex.split(COMMAND.replace("\\\n", " "))) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[:4] == SHOWN.splitlines()[:4]
    rows = numbers(SHOWN)
    assert len(rows) >= 3
    for found, expected in zip(numbers(text), rows, strict=True):
        assert found == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(
    ("path", "was_wrong"),
    [
        ("docs/guide/researcher.md", "its figures draw bounds that are false"),  # that paper has no figure
        ("docs/guide/researcher.md", "Everything printed is callable"),
        (
            "python/hockeystick/figures/isrl_experiments.py",
            "chosen without privacy, as there",
        ),  # by the test records, here
        ("python/hockeystick/isrl/budgets.py", "reveals each of its records and hides the"),  # impossible
        ("python/hockeystick/isrl/unequal_silos.py", "Assumption 1(3)"),  # 1(4)
        ("python/hockeystick/utility/aggregator_risk.py", "printed without d. "),  # and without 1/2
    ],
)
def test_wrong_sentences_are_gone(path: str, was_wrong: str) -> None:
    """Statements about the papers that were wrong, which no formula would notice."""
    assert was_wrong not in (DOCS.parent / path).read_text(encoding="utf-8")
