"""docs/accounting/budgets.md does what it says: its blocks run, and its measurements can be made."""

import re
import sys
from pathlib import Path

import pytest

import processes

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "accounting" / "budgets.md").read_text(encoding="utf-8")


@pytest.mark.share(3)
@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
def test_python_blocks_run(block, capsys):
    """Every Python block runs, and what it prints stays within its budget."""
    exec(compile(block, "budgets.md", "exec"), {})  # noqa: S102, the text is ours
    printed = capsys.readouterr().out
    budget = float(re.findall(r"epsilon=([\d.]+)", block)[-1])
    spent = float(re.findall(r"epsilon ([\d.]+)", printed)[-1])
    assert 0.95 * budget < spent <= budget


@pytest.mark.slow
def test_measurements_run():
    """The script of the measurements runs, with fewer clients."""
    script = ROOT / "docs" / "tables" / "clients.py"
    done = processes.run([sys.executable, script, "--num-clients", "2000"])
    assert re.search(r"opening after 150 rounds: [\d.]+ s", done.stdout)
