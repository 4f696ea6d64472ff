"""The npm package, built by the preset of CMakePresets.json in another folder."""

import json
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


def build(folder: Path) -> Path:
    """Build the package in a folder, and return where it lies; skip the test where a tool is missing."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
    preset = next(preset for preset in presets if preset["name"] == "wasm")
    for tool in ("em++", "node", "cmake"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: apt-get install emscripten node-acorn nodejs, pip install cmake")
    if not Path(preset["toolchainFile"]).exists():
        pytest.skip(f"{preset['toolchainFile']} is not there: this emscripten is not Debian's")
    environment = os.environ | preset["environment"]
    settings = [f"-D{name}={value}" for name, value in preset["cacheVariables"].items()]
    settings += [f"-DCMAKE_TOOLCHAIN_FILE={preset['toolchainFile']}", f"-DPython_EXECUTABLE={sys.executable}"]
    processes.run(["cmake", "-S", ROOT, "-B", folder, *settings], env=environment)
    processes.run(["cmake", "--build", folder, "--target", "hockeystick_wasm", "-j2"], env=environment, limit=900)
    return folder / "package"


def camel(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of Python by the names that they have in JavaScript."""
    return {re.sub(r"_(\w)", lambda found: found[1].upper(), name): value for name, value in arguments.items()}
