"""Shuffled local reports against enumeration of all reports, and closed forms."""

import itertools
import math
from collections import defaultdict

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from enumeration import either, hockey_stick, product
from integer_laws import delta


def shuffled(reports):
    """Return the law of how often each output occurs, where each user has a law of outputs."""
    law = {(0,) * len(reports[0]): 1.0}
    for report in reports:
        longer = defaultdict(float)
        for counts, mass in law.items():
            for i, share in enumerate(report):
                longer[(*counts[:i], counts[i] + 1, *counts[i + 1 :])] += mass * share
        law = longer
    return [law[counts] for counts in sorted(law)]


def clones(epsilon0, num_users, rate):
    """Return the masses of the pair of clones at all counts."""
    ratio, masses = mp.exp(mp.mpf(epsilon0)), []
    for c in range(num_users):
        weight = mp.binomial(num_users - 1, c) * rate**c * (1 - rate) ** (num_users - 1 - c) / mp.mpf(2) ** c
        for a in range(c + 2):
            first, second = (mp.binomial(c, a - 1) if a > 0 else 0), (mp.binomial(c, a) if a <= c else 0)
            both = ratio * first + second, first + ratio * second
            masses.append(tuple(weight * mass / (ratio + 1) for mass in both))
    return masses


def upper(mechanism, eps, count=1):
    """Return the certified delta."""
    return hs.Accountant("replace").compose(mechanism, count).delta(eps)


@pytest.mark.share(10, by_day=2)
@pytest.mark.parametrize(
    ("epsilon0", "num_users", "randomizer"),
    [*itertools.product([0.1, 1.0, 4.0], [1, 2, 7, 60], ["any", "randomized_response"])],
)
def test_one_round_is_the_pair_of_clones(epsilon0, num_users, randomizer):
    """Delta is at least that of the sum over all counts, and above it by the grid alone."""
    with mp.workdps(40):
        rate = mp.exp(-mp.mpf(epsilon0)) if randomizer == "any" else 2 / (mp.exp(mp.mpf(epsilon0)) + 1)
        masses = clones(epsilon0, num_users, rate)
        for share in (0.0, 0.2, 0.6, 0.95):
            truth = delta(masses, share * epsilon0)
            found = upper(hs.Shuffled(epsilon0, num_users, randomizer), share * epsilon0)
            assert truth <= found
            assert found <= float(truth * mp.exp(mp.mpf("1e-3") * max(1, -mp.log(truth + mp.mpf("1e-300"))))) + 1e-30


def test_many_users_are_close_to_the_sum():
    """With 3000 users, where the clones are grouped, the excess is still small; epsilon's far smaller."""
    ratio, rate, users = math.e, math.exp(-1.0), 3000
    logs = np.array([math.lgamma(k + 1.0) for k in range(users + 1)])
    truth = np.zeros(2)
    for c in range(users):
        weight = (
            logs[users - 1] - logs[c] - logs[users - 1 - c] + c * math.log(rate) + (users - 1 - c) * math.log1p(-rate)
        )
        if weight < -60.0:
            continue
        half = np.exp(weight + logs[c] - logs[: c + 1] - logs[c::-1] - c * math.log(2.0))
        first, second = np.append(0.0, half), np.append(half, 0.0)
        for i, eps in enumerate((0.05, 0.1)):
            growth = math.exp(eps)
            truth[i] += np.maximum((ratio - growth) * first + (1 - growth * ratio) * second, 0.0).sum() / (ratio + 1)
    found = np.array([upper(hs.Shuffled(1.0, users), eps) for eps in (0.05, 0.1)])
    assert (truth * (1 - 1e-9) <= found).all()
    assert (found <= truth * 1.02).all()


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@settings(max_examples=60)
@given(
    weights=st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6),
    tilts=st.lists(st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6), min_size=4, max_size=4),
    share=st.floats(0.0, 0.95),
)
def test_any_randomiser_is_dominated(weights, tilts, share):
    """Four users with any inputs and a random randomiser leak less than the pair says, in both directions."""
    base = np.array(weights) + 0.01
    rows = np.array([base * np.exp(np.array(tilt)) for tilt in tilts])
    rows /= rows.sum(axis=1, keepdims=True)
    epsilon0 = float(np.log((rows.max(axis=0) / rows.min(axis=0)).max()))
    if epsilon0 < 1e-3:
        return
    p, q = shuffled([rows[0], *rows[2:], rows[2]]), shuffled([rows[1], *rows[2:], rows[2]])
    assert either(p, q, share * epsilon0) <= upper(hs.Shuffled(epsilon0, 4), share * epsilon0) + 1e-13


@pytest.mark.parametrize("buckets", [2, 3, 4])
def test_randomised_response_is_dominated(buckets):
    """Randomised response of five users, whatever the others hold, stays below its pair; for two buckets it comes close."""
    ratio = math.e
    rows = (np.ones((buckets, buckets)) + (ratio - 1) * np.eye(buckets)) / (ratio + buckets - 1)
    mechanism, nearest = hs.Shuffled(1.0, 5, "randomized_response"), 0.0
    for others in itertools.combinations_with_replacement(range(buckets), 4):
        p = shuffled([rows[0], *(rows[x] for x in others)])
        q = shuffled([rows[1], *(rows[x] for x in others)])
        for eps in (0.0, 0.3, 0.8):
            bound = upper(mechanism, eps)
            assert hockey_stick(p, q, eps) <= bound + 1e-13
            nearest = max(nearest, hockey_stick(p, q, eps) / bound)
    assert nearest > (0.9 if buckets == 2 else 0.5)


def test_rounds_are_a_convolution():
    """Three rounds agree with the sum over all outcomes of the pair of four users."""
    p, q = np.array(clones(1.0, 4, mp.exp(-1)), dtype=float).T
    for eps in (0.0, 0.8, 2.0):
        truth = hockey_stick(product(p, p, p), product(q, q, q), eps)
        assert truth * (1 - 1e-12) <= upper(hs.Shuffled(1.0, 4), eps, 3) <= truth * (1 + 3e-3)


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
def test_more_users_hide_better():
    """Epsilon falls with the number of users, never above epsilon0, and with what is known of the randomiser."""
    found = [hs.Accountant("replace").compose(hs.Shuffled(2.0, n)).epsilon(1e-6) for n in (1, 2, 30, 900, 10**4, 10**7)]
    assert found == sorted(found, reverse=True)
    assert found[0] <= 2.0 < found[0] + 1e-4
    known = hs.Accountant("replace").compose(hs.Shuffled(2.0, 10**4, "randomized_response")).epsilon(1e-6)
    assert known < found[4]
