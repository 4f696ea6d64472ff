"""Random allocation of steps without a lower end of their own, and of outcomes that are all but impossible without the record."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import hockeystick as hs

SHOWN = [
    hs.selection.OptimalPartitions(1.0, 1e-5, partitions=3),
    hs.selection.ThresholdedPartitions(hs.Laplace(2.0), threshold=25.0),
    hs.selection.AboveThreshold(10.0, 20.0),
    hs.selection.GaussianAboveThreshold(10.0, 20.0, 100),
]


@pytest.mark.parametrize("num_selected", [1, 2])
@pytest.mark.parametrize("mechanism", SHOWN, ids=str)
def test_steps_without_a_lower_end(mechanism, num_selected):
    """Where no pair is known that a mechanism attains, the lower end is 0 and the upper one as ever."""
    composed = hs.Accountant().compose(hs.RandomAllocation(mechanism, 10, num_selected), 3)
    found = composed.epsilon_bracket(1e-3)
    assert found.lower == 0.0
    assert found.upper == pytest.approx(composed.epsilon(1e-3), rel=1e-9)
    assert "certified" in str(composed.explain(delta=1e-3))


def deltas(p, q, num_steps, eps):
    """Return delta of one of t steps where a record is removed and where it is added, by how often the second outcome occurs."""
    removed = added = Fraction(0)
    level = Fraction(math.exp(eps))
    for n in range(num_steps + 1):
        without = math.comb(num_steps, n) * q**n * (1 - q) ** (num_steps - n)
        ratio = (n * p / q + (num_steps - n) * (1 - p) / (1 - q)) / num_steps
        removed += without * max(ratio - level, Fraction(0))
        added += without * max(1 - level * ratio, Fraction(0))
    return removed, added


@pytest.mark.parametrize("num_steps", [2, 3, 5])
@pytest.mark.parametrize("faint", [1e-167, 1e-140, 1e-80])
@pytest.mark.parametrize("likely", [0.6, 1e-9])
@pytest.mark.parametrize("reverse", [False, True])
def test_faint_outcomes_of_much_weight(num_steps, faint, likely, reverse):
    """Both ends enclose the sum over outcomes where what is likely under one law is fainter than a grid resolves."""
    pair = [1 - likely, likely], [1.0, faint]
    laws = Fraction(likely), Fraction(faint)
    mechanism = hs.RandomAllocation(hs.Discrete(*(pair[::-1] if reverse else pair)), num_steps)
    for eps in (0.0, 0.3, 1.2, 40.0):
        truths = deltas(*(laws[::-1] if reverse else laws), num_steps, eps)
        found = hs.Accountant().compose(mechanism).explain(eps=eps).directions
        for direction, truth in zip(("remove", "add"), truths, strict=True):
            ends = found.get(direction, found.get("both"))
            assert ends.lower <= truth * (1 + Fraction(1, 10**12))
            assert truth * (1 - Fraction(1, 10**12)) <= ends.upper


@pytest.mark.parametrize(("num_steps", "num_selected", "count"), [(2, 1, 2), (3, 2, 1), (4, 2, 1), (3, 2, 5)])
@pytest.mark.parametrize("eps", [0.0, 1e-3, 1.0])
def test_nothing_but_infinite_losses(num_steps, num_selected, count, eps):
    """Steps that tell all have a delta of 1, though no loss is finite for a grid to begin at."""
    told = hs.RandomAllocation(hs.Discrete([1.0, 0.0], [0.0, 1.0]), num_steps, num_selected)
    found = hs.Accountant().compose(told, count).delta_bracket(eps)
    assert 1.0 - 1e-9 <= found.lower <= found.upper == 1.0
