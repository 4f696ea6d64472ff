"""The committed values that tests use in place of long computations are what those computations give."""

import random
import shutil
import subprocess
from pathlib import Path

import mpmath as mp
import pytest

import slow_values


def sampled() -> list[tuple[str, tuple]]:
    """Return one value in a hundred, others for every commit."""
    git = shutil.which("git")
    asked = [git or "git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60).stdout if git else ""
    known = list(slow_values.rows())
    return random.Random(commit).sample(known, len(known) // 100)


def test_nothing_is_missing() -> None:
    """The file has every value that is asked for, and no other."""
    assert set(slow_values.read()) == {(name, repr(arguments)) for name, arguments in slow_values.rows()}


@pytest.mark.slow
def test_values_are_computed_again() -> None:
    """Some of the values, computed anew, agree to 25 digits, which is more than any test needs."""
    with mp.workdps(slow_values.DIGITS):
        for name, arguments in sampled():
            again, known = mp.mpf(slow_values.computed(name, arguments)), slow_values.committed(name, *arguments)
            assert mp.almosteq(again, known, rel_eps=mp.mpf("1e-25")), (name, arguments)
