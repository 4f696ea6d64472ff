"""The committed values that tests use in place of long computations are what those computations give."""

import mpmath as mp
import pytest

import effort
import slow_values


def test_nothing_is_missing() -> None:
    """The file has every value that is asked for, and no other."""
    assert set(slow_values.read()) == {(name, repr(arguments)) for name, arguments in slow_values.rows()}


@pytest.mark.slow
def test_values_are_computed_again() -> None:
    """One value in a hundred, computed anew, agrees to 25 digits, which is more than any test needs."""
    known = list(slow_values.rows())
    with mp.workdps(slow_values.DIGITS):
        for name, arguments in effort.dice_of_commit().sample(known, len(known) // 100):
            again, known = mp.mpf(slow_values.computed(name, arguments)), slow_values.committed(name, *arguments)
            assert mp.almosteq(again, known, rel_eps=mp.mpf("1e-25")), (name, arguments)
