"""What type checkers see: numbers give a float, arrays give an array, and a float is no text."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

SAMPLE = """
import numpy as np
import hockeystick as hs

acc = hs.Accountant().compose(hs.Gaussian(2.0), 4)
grid = np.array([1e-6, 1e-5])
reveal_type(acc.epsilon(1e-5))
reveal_type(acc.delta(1))
reveal_type(acc.log_delta(1.0))
reveal_type(acc.rdp(2.0))
reveal_type(acc.trade_off(0.1))
reveal_type(hs.dpsgd_epsilon(1.0, 0.01, 1000, 1e-5))
reveal_type(hs.dpsgd_steps(1.0, 0.01, epsilon=2.0, delta=1e-5))
reveal_type(hs.theta(1.0, 0.5))
reveal_type(hs.q(1.0))
reveal_type(acc.epsilon(grid))
reveal_type(acc.delta([1.0, 2.0]))
reveal_type(hs.dpsgd_epsilon(1.0, 0.01, [1, 10], 1e-5))
reveal_type(hs.dpsgd_delta(1.0, grid, 10, 1.0))
reveal_type(hs.theta(grid, 0.5))
reveal_type(hs.q(grid))
"""
WRONG = """
import hockeystick as hs

eps: str = hs.Accountant().compose(hs.Gaussian(2.0)).epsilon(1e-5)
steps: str = hs.dpsgd_steps(1.0, 0.01, 2.0, 1e-5)
delta: str = hs.theta(1.0, 0.5)
"""


def checked(folder, text):
    """Return what mypy says about a file of a user."""
    pytest.importorskip("mypy")
    sample = folder / "sample.py"
    sample.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(sample)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder).stdout


def test_numbers_give_floats_and_arrays_arrays(tmp_path):
    """Nine calls with numbers, then six with an array."""
    seen = re.findall(r'Revealed type is "(.*)"', checked(tmp_path, SAMPLE))
    assert [text.removeprefix("builtins.") for text in seen[:9]] == ["float"] * 9
    assert len(seen) == 15
    assert all("ndarray" in text and "float64" in text for text in seen[9:])


def test_a_float_is_no_text(tmp_path):
    """Each of the three lines is refused."""
    assert checked(tmp_path, WRONG).count("Incompatible types in assignment") == 3


def test_names_that_are_not_there_are_seen(tmp_path):
    """A misspelt name is an error for a type checker, in the package and in its rooms; those that are loaded late are known."""
    right = "hs.simulate.run, hs.sweep.run, hs.plot.training, hs.audit, hs.utility.plan, hs.federated.best"
    told = checked(tmp_path, f"import hockeystick as hs\n\nhs.nope\nhs.simulate.nope\nhs.federated.nope\n({right})\n")
    assert told.count('has no attribute "nope"') == 3, told
    assert "Found 3 errors" in told
