"""Pages of docs/: their Python blocks run and print numbers, and the snippets of embedding.md are those of tests/embed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = [
    pytest.param(needed, block, id=f"{page.split('/')[1]}-{i}")
    for page in (
        "project/switching",
        "project/embedding",
        "accounting/correlated_noise",
        "accounting/allocation",
        "accounting/mechanisms",
        "accounting/sampling",
    )
    for i, (needed, block) in enumerate(
        re.findall(
            r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```",
            (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"),
            re.DOTALL,
        )
    )
]


@pytest.mark.parametrize(("needed", "block"), BLOCKS)
def test_python_blocks_run(needed, block):
    """Every block runs in a Python of its own and prints numbers; one that needs a library is skipped without it."""
    if needed == "opacus" and importlib.util.find_spec("torch") is None:
        pytest.skip("needs opacus and torch")
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    result = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert re.search(r"\d\.\d", result.stdout)


def test_snippets_are_tested():
    """The lines of the C++ and CMake examples stand in the downstream project."""
    text = (ROOT / "docs" / "project" / "embedding.md").read_text(encoding="utf-8")
    for line in (
        "find_package(hockeystick 0.1 CONFIG REQUIRED)",
        '    training.compose({"gaussian", {1.0 / 1.1}, 0.01}, 1000.0);',
    ):
        assert line.strip() in text
        assert any(line in path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "embed").iterdir())
