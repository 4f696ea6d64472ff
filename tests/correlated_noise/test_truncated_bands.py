"""Banded noise on truncated samples of parts in turn, against every draw of small parts."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.correlated_noise import cyclic_poisson, cyclic_truncated_poisson

GRID = np.linspace(-40.0, 40.0, 40_001)
TWO_STEPS = {"steps": 2, "separation": 2}


def sums(others: int, rate: float, largest: int, *, with_record: bool) -> dict[int, float]:
    """Return the law of the sum of a truncated sample: the record adds 1, each of the others takes 1."""
    law: dict[int, float] = {}

    def add(total: int, probability: float) -> None:
        law[total] = law.get(total, 0.0) + probability

    for drawn in range(others + 1):
        chance = math.comb(others, drawn) * rate**drawn * (1 - rate) ** (others - drawn)
        if not with_record:
            add(-min(drawn, largest), chance)
            continue
        add(-min(drawn, largest), chance * (1 - rate))
        kept = min(1.0, largest / (drawn + 1))
        add(1 - min(drawn, largest - 1), chance * rate * kept)
        add(-min(drawn, largest), chance * rate * (1 - kept))
    assert math.isclose(sum(law.values()), 1.0)
    return law


@pytest.mark.share(3)
@pytest.mark.parametrize("others", [1, 3, 6])
@pytest.mark.parametrize("largest", [1, 2, 4])
@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_against_every_draw(others: int, largest: int, noise: float) -> None:
    """One part of one step: the sum along its column, with noise over the column's norm."""
    rate, column = 0.3, [1.0, 0.5]
    batches = {"sampling_rate": rate, "part_size": others + 1, "max_batch_size": largest}
    step, count = cyclic_truncated_poisson(column, **TWO_STEPS, **batches, noise_multiplier=noise)
    assert count == 1
    deviation = noise / float(np.linalg.norm(column))
    with_it, without = (
        sum(
            weight * stats.norm.pdf(GRID, at, deviation)
            for at, weight in sums(others, rate, largest, with_record=kept).items()
        )
        for kept in (True, False)
    )
    ledger = hs.Accountant().compose(step, count)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        for p, q in ((with_it, without), (without, with_it)):
            delta = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * (GRID[1] - GRID[0]))
            assert ledger.delta(epsilon) >= delta * (1 - 1e-5) - 1e-12


def test_nothing_to_truncate() -> None:
    """Where a batch may have every record of its part, it is a Poisson sample."""
    common = {"steps": 7, "separation": 3, "sampling_rate": 0.2, "noise_multiplier": 2.0}
    whole, count = cyclic_poisson([1.0, 0.6, 0.2], **common)
    step, same = cyclic_truncated_poisson([1.0, 0.6, 0.2], **common, part_size=9, max_batch_size=9)
    assert count == same
    for epsilon in (0.0, 0.5, 2.0):
        expected = hs.Accountant().compose(whole, count).delta(epsilon)
        assert hs.Accountant().compose(step, count).delta(epsilon) == pytest.approx(expected, rel=1e-6)


def other_patterns(others: int, rate: float, largest: int) -> dict[tuple[int, int], float]:
    """Return the law of the set of others that are in a batch (as bits), and of whether the record is."""
    law: dict[tuple[int, int], float] = {}
    for drawn in range(2 ** (others + 1)):
        members = [i for i in range(others + 1) if drawn >> i & 1]
        chance = rate ** len(members) * (1 - rate) ** (others + 1 - len(members))
        batches = list(itertools.combinations(members, min(largest, len(members))))
        for batch in batches:
            seen = sum(1 << i for i in batch if i < others), int(others in batch)
            law[seen] = law.get(seen, 0.0) + chance / len(batches)
    return law


@pytest.mark.share(3)
@pytest.mark.parametrize(("others", "largest"), [(2, 1), (4, 2), (5, 4)])
@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_record_that_keeps_its_place(others: int, largest: int, rate: float) -> None:
    """Zeroed out, with all others seen: a batch whose last place is taken by nothing tells the record."""
    column, noise = [1.0, 0.5], 1.5
    batches = {"sampling_rate": rate, "part_size": others + 1, "max_batch_size": largest, "zeroed_out": True}
    step, count = cyclic_truncated_poisson(column, **TWO_STEPS, **batches, noise_multiplier=noise)
    assert step.mechanism.zeroed_out
    deviation = noise / float(np.linalg.norm(column))
    law, cell = other_patterns(others, rate, largest), GRID[1] - GRID[0]
    there, gone = stats.norm.pdf(GRID, 1.0, deviation), stats.norm.pdf(GRID, 0.0, deviation)
    ledger = hs.Accountant().compose(step, count)
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        removed = added = 0.0
        for batch in {batch for batch, _ in law}:
            absent, present = law.get((batch, 0), 0.0), law.get((batch, 1), 0.0)
            p, q = absent * gone + present * there, (absent + present) * gone
            removed += float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * cell)
            added += float(np.maximum(q - math.exp(epsilon) * p, 0.0).sum() * cell)
        assert ledger.delta(epsilon) >= max(removed, added) * (1 - 1e-5) - 1e-12
