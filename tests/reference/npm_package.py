"""The npm package, built by the preset of CMakePresets.json."""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import processes

ROOT = Path(__file__).parents[2]


def package() -> Path:
    """Return the folder of the package, built once for all tests and the site; skip the test where a tool is missing."""
    for tool in ("em++", "node", "cmake"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: apt-get install emscripten node-acorn nodejs, pip install cmake")
    if "HOCKEYSTICK_WASM" not in os.environ:  # by which the site knows it, too
        import fcntl  # noqa: PLC0415 - not on Windows

        folder = ROOT / "build" / "wasm"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be building it
            processes.run(["cmake", "--preset", "wasm", f"-DPython_EXECUTABLE={sys.executable}"], cwd=ROOT)
            processes.run(["cmake", "--build", "--preset", "wasm"], cwd=ROOT, limit=900)
        os.environ["HOCKEYSTICK_WASM"] = str(folder / "package")
    return Path(os.environ["HOCKEYSTICK_WASM"])


def camel(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of Python by the names that they have in JavaScript."""
    return {re.sub(r"_(\w)", lambda found: found[1].upper(), name): value for name, value in arguments.items()}
