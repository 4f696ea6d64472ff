"""The candidates of b-min-separated batches against the definition of the batches, in fractions."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.correlated_noise.min_separation import second_rate
from hockeystick.correlated_noise.thinning import Thinning
from participation import batch_law

Law = dict[tuple[int, ...], Fraction]


def first_steps(rate: Fraction, separation: int, *, warm_start: bool) -> list[Fraction]:
    """Return the probabilities of the first step that a record may be in."""
    weights = [Fraction(1)] + [rate] * (separation - 1) * warm_start
    return [weight / sum(weights) for weight in weights]


def batches(steps: int, separation: int, rate: Fraction, *, warm_start: bool) -> Law:
    """Return the law of the steps that a record is in, by the definition."""
    return batch_law(steps, separation, rate, first_steps(rate, separation, warm_start=warm_start))


def delays(thinning: Thinning) -> list[Fraction]:
    """Return the law D, in fractions: what a candidate comes later than it might."""
    p, q, b = Fraction(thinning.rate), Fraction(thinning.chance), thinning.separation
    ratio, h = p * (1 - q) / q, [Fraction(1)]
    while len(h) < thinning.num_steps:
        h.append((1 - p) * h[-1] - (ratio * h[-b] if len(h) >= b else 0))
    assert min(h) >= 0
    return [p / q * each for each in h]


def candidates(thinning: Thinning) -> Law:
    """Return the law of the candidates among the steps, in fractions."""
    delay = delays(thinning)
    law: Law = {}

    def go_on(found: tuple[int, ...], free: int, chance: Fraction) -> None:
        later = [(free + k, each) for k, each in enumerate(delay) if free + k < thinning.num_steps]
        law[found] = law.get(found, Fraction(0)) + chance * (1 - sum(each for _, each in later))
        for step, each in later:
            go_on((*found, step), step + thinning.separation, chance * each)

    starts = first_steps(Fraction(thinning.rate), thinning.separation, warm_start=thinning.warm_start)
    for start, weight in enumerate(starts):
        go_on((), start, weight)
    return law


SETTINGS = [
    (1, 1, 0.3),
    (6, 1, 0.7),
    (6, 2, 0.1),
    (8, 2, 0.5),
    (9, 3, 0.02),
    (8, 3, 0.9),
    (7, 4, 0.25),
    (6, 9, 0.125),
    (7, 2, 1.0),
]


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(("steps", "separation", "rate"), SETTINGS)
def test_coins_at_candidates_have_the_law_of_the_batches(steps, separation, rate, warm_start):
    """Independent coins at the candidates give every pattern of steps exactly the probability that it has by definition."""
    thinning = Thinning.of_batches(rate, separation, steps, warm_start=warm_start)
    chance = Fraction(thinning.chance)
    law: Law = {}
    for found, weight in candidates(thinning).items():
        assert min(np.diff(found), default=separation) >= separation
        for coins in itertools.product((0, 1), repeat=len(found)):
            taken = tuple(itertools.compress(found, coins))
            rest = math.prod((chance if coin else 1 - chance for coin in coins), start=weight)
            law[taken] = law.get(taken, Fraction(0)) + rest
    assert {taken: each for taken, each in law.items() if each} == batches(
        steps, separation, Fraction(rate), warm_start=warm_start
    )


@pytest.mark.share(3)
@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(
    ("steps", "separation", "rate"), [*SETTINGS, (40, 4, 0.01), (60, 5, 0.3), (60, 20, 1e-6), (30, 7, 0.999)]
)
def test_number_of_candidates(steps, separation, rate, warm_start):
    """Above the exact probability that there are so many candidates, and near it."""
    thinning = Thinning.of_batches(rate, separation, steps, warm_start=warm_start)
    delay = delays(thinning)
    sums = [Fraction(0)] * steps
    for start, weight in enumerate(first_steps(Fraction(rate), separation, warm_start=warm_start)):
        sums = [a + (weight * delay[n - start] if n >= start else 0) for n, a in enumerate(sums)]
    for count in range(1, -(-steps // separation) + 2):
        exact = sum(sums)
        found = Fraction(thinning.reached(count))
        assert exact <= found <= 1
        assert found <= exact * (1 + Fraction(1, 10**8))
        sums = [sum(sums[j] * delay[n - separation - j] for j in range(n - separation + 1)) for n in range(steps)]


@given(rate=st.floats(1e-9, 1.0), separation=st.integers(1, 60), passes=st.integers(1, 60))
def test_probabilities_of_many_candidates(rate, separation, passes):
    """They fall, from at most 1 to 0 where so many candidates have no room."""
    thinning = Thinning.of_batches(rate, separation, separation * passes, warm_start=False)
    counts = thinning.counts()
    assert counts[-1] == passes
    assert (np.diff(counts) > 0).all()
    chances = [thinning.reached(int(count)) for count in counts]
    assert chances[0] <= 1.0
    assert counts[0] == 1 or chances[0] > 0.99
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in itertools.pairwise(chances))
    assert thinning.reached(passes + 1) == 0.0


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize(
    ("steps", "separation", "bands", "rate"),
    [(7, 3, 2, 0.15), (8, 4, 2, 0.05), (8, 4, 3, 0.1), (6, 5, 1, 0.4), (7, 9, 5, 0.01)],
)
def test_records_in_some_steps_of_a_second_process(steps, separation, bands, rate, warm_start):
    """The second process is likely enough in every step, whatever came before, and what the record takes of it has the law of the batches."""
    p, second = Fraction(rate), Fraction(second_rate(rate, bands))
    assert second < 1
    starts = first_steps(p, separation, warm_start=warm_start)
    law = {
        (start, (), ()): weight for start, weight in enumerate(starts)
    }  # of the start, the record's steps and the second process'
    for step in range(steps):
        known, there, later = {}, {}, {}
        for (start, taken, others), chance in law.items():
            comes = second if not others or step >= others[-1] + bands else 0
            known[start, taken] = known.get((start, taken), 0) + chance
            there[start, taken] = there.get((start, taken), 0) + chance * comes
        for (start, taken, others), chance in law.items():
            comes = second if not others or step >= others[-1] + bands else 0
            may = step >= (taken[-1] + separation if taken else start)
            heeds = p * known[start, taken] / there[start, taken] if may else 0
            assert heeds <= 1
            outcomes = [
                ((start, taken, others), 1 - comes),
                ((start, taken, (*others, step)), comes * (1 - heeds)),
                ((start, (*taken, step), (*others, step)), comes * heeds),
            ]
            for key, share in outcomes:
                later[key] = later.get(key, 0) + chance * share
        law = {key: chance for key, chance in later.items() if chance}
    found: Law = {}
    for (_, taken, _), chance in law.items():
        found[taken] = found.get(taken, Fraction(0)) + chance
    assert found == batches(steps, separation, p, warm_start=warm_start)


@given(rate=st.floats(1e-12, 1.0), bands=st.integers(1, 10_000))
def test_rate_of_the_second_process(rate, bands):
    """It meets its condition, and is missing only where there is none, or hardly one."""
    with mp.workdps(50):
        found, p = mp.mpf(second_rate(rate, bands)), mp.mpf(rate)
        total = ((1 - p) ** (1 - bands) - 1) / p if p < 1 else mp.inf
        if found < 1:
            assert found * (1 - found * total) >= p
            assert found <= 2 * p * (1 + mp.mpf(1e-6))
        else:
            assert 4 * p * total > 1 - mp.mpf(1e-9) or p > 0.999
