"""The odometer: whatever is chosen by what was seen, the loss passes what it says with probability delta at most."""

from __future__ import annotations

import json
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs

STEPS = [
    hs.Discrete([0.7, 0.3], [0.3, 0.7]),
    hs.Discrete([0.5, 0.3, 0.2], [0.3, 0.2, 0.5]),
    hs.Discrete([0.95, 0.05], [0.8, 0.2]),
    hs.PoissonSampled(hs.Discrete([0.8, 0.2], [0.2, 0.8]), 0.5),
]
LAWS = [(np.array(s.p), np.array(s.q)) for s in STEPS[:3]] + [(np.array([0.5, 0.5]), np.array([0.2, 0.8]))]


def passed(odometer, choose, depth, *, forward, loss=0.0, probability=1.0):
    """Return the exact probability that the loss is ever above what the odometer says, over all releases."""
    if loss > odometer.epsilon:
        return probability
    if depth == 0:
        return 0.0
    number = choose(loss)
    p, q = LAWS[number] if forward else LAWS[number][::-1]
    after = json.dumps(odometer.spend(STEPS[number]).state_dict())
    return sum(
        passed(
            hs.RenyiOdometer.from_state_dict(json.loads(after)),
            choose,
            depth - 1,
            forward=forward,
            loss=loss + math.log(a / b),
            probability=probability * a,
        )
        for a, b in zip(p, q, strict=True)
    )


@pytest.mark.share(2)
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_odometer_holds_for_adversaries(delta, forward):
    """Steps chosen by the loss so far, at random or to gamble, pass the odometer with probability delta at most."""
    rng, largest = np.random.default_rng(4), 0.0
    rules = {
        "random": lambda _loss: int(rng.integers(4)),
        "gamble when behind": lambda loss: 0 if loss < 0.5 else 2,
        "push when ahead": lambda loss: 3 if loss > 1.0 else 0,
        "small": lambda _loss: 2,
    }
    for rule in rules.values():
        for orders in ([2.0], [1.5, 3.0, 6.0]):
            chance = passed(hs.RenyiOdometer(delta=delta, orders=orders), rule, 6, forward=forward)
            assert chance <= delta
            largest = max(largest, chance)
    assert largest > delta / 20  # and not by much less


def test_many_looks():
    """Over a long training that is looked at after every step, Gaussian losses pass with probability delta at most, and not far less."""
    delta, noise, runs, rng = 0.1, 20.0, 4000, np.random.default_rng(8)
    looks = np.unique(np.geomspace(1, 4000, 300).astype(int))
    said = np.array([hs.RenyiOdometer(delta=delta).spend(hs.Gaussian(noise), int(n)).epsilon for n in looks])
    moved = np.diff(looks, prepend=0) / noise**2
    losses = np.cumsum(moved / 2 + np.sqrt(moved) * rng.normal(size=(runs, looks.size)), axis=1)
    share = (losses > said).any(axis=1).mean()
    assert delta / 10 < share <= delta
    ignoring_looks = np.array([hs.zcdp_epsilon(n / noise**2 / 2, delta) for n in looks])
    assert (losses > ignoring_looks).any(axis=1).mean() > delta  # what holds at one look does not hold at all


def leaves(odometer, epsilon, choose, depth):
    """Return the laws of the releases of a run that stops before the odometer would pass epsilon."""
    number = choose()
    if depth == 0 or odometer.would_exceed(STEPS[number], epsilon=epsilon):
        return np.ones(1), np.ones(1)
    after = odometer.spend(STEPS[number]).state_dict()
    branches = [leaves(hs.RenyiOdometer.from_state_dict(after), epsilon, choose, depth - 1) for _ in LAWS[number][0]]
    return tuple(
        np.concatenate([w * b[side] for w, b in zip(LAWS[number][side], branches, strict=True)]) for side in (0, 1)
    )


@pytest.mark.parametrize("seed", range(6))
def test_stopped_run_is_private(seed):
    """A run that stops where the odometer would pass epsilon is (epsilon, delta)-DP, in both directions."""
    rng = np.random.default_rng(seed)
    delta, epsilon = 0.05, 3.0 + seed / 2
    p, q = leaves(hs.RenyiOdometer(delta=delta, orders=[1.5, 2.5, 4.0]), epsilon, lambda: int(rng.integers(4)), 8)
    assert p.size > 4
    assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= delta
    assert np.maximum(q - math.exp(epsilon) * p, 0).sum() <= delta


@given(st.floats(1.01, 1e4), st.floats(0.3, 1e4), st.integers(1, 10**6), st.floats(-300, -0.01))
def test_one_order_in_closed_form(order, noise, count, log10_delta):
    """With one order the number is the divergence plus log(1/delta)/(order - 1), rounded up by little."""
    delta = 10.0**log10_delta
    found = hs.RenyiOdometer(delta=delta, orders=[order]).spend(hs.Gaussian(noise), count).epsilon
    with mp.workdps(40):
        truth = count * mp.mpf(order) / (2 * mp.mpf(noise) ** 2) - mp.log(mp.mpf(delta)) / (mp.mpf(order) - 1)
        assert truth <= found <= truth * (1 + mp.mpf(10) ** -11)


@given(st.lists(st.floats(0.5, 100.0), min_size=1, max_size=4), st.floats(-30, -1))
def test_mixture_of_orders(noises, log10_delta):
    """At what it says the mean of the supermartingales is 1/delta, to rounding; the best single order says no less, but for its weight."""
    orders, delta = [1.5, 2.0, 5.0, 30.0], 10.0**log10_delta
    odometer = hs.RenyiOdometer(delta=delta, orders=orders)
    for noise in noises:
        odometer.spend(hs.Gaussian(noise))
    with mp.workdps(40):
        half = sum(1 / mp.mpf(noise) ** 2 for noise in noises) / 2
        mean = sum(mp.exp((a - 1) * (mp.mpf(odometer.epsilon) - a * half)) for a in map(mp.mpf, orders)) / len(orders)
        assert 1 / mp.mpf(delta) <= mean <= (1 + mp.mpf(10) ** -6) / mp.mpf(delta)
    best = min(
        _spent(hs.RenyiOdometer(delta=delta / len(orders), orders=[order]), odometer.ledger).epsilon for order in orders
    )
    assert odometer.epsilon <= best * (1 + 1e-12)


def _spent(odometer, ledger):
    for step, count in ledger.items():
        odometer.spend(step, count)
    return odometer


def test_it_rises_and_is_above_the_accountant():
    """Spending never lowers it; it costs more than steps fixed in advance, and less than twice at moderate budgets."""
    odometer, before = hs.RenyiOdometer(delta=1e-6), 0.0
    assert odometer.epsilon == 0.0
    for noise in (30.0, 10.0, 50.0, 8.0):
        assert odometer.would_exceed(hs.Gaussian(noise), 10, epsilon=before)
        after = odometer.spend(hs.Gaussian(noise), 10).epsilon
        assert not odometer.would_exceed(hs.PoissonSampled(hs.Gaussian(1.0), 0.0), epsilon=after)
        assert after > before
        before = after
    fixed = _spent_by_accountant(odometer.ledger)
    assert fixed < odometer.epsilon < 2 * fixed


def _spent_by_accountant(ledger):
    accountant = hs.Accountant()
    for step, count in ledger.items():
        accountant.compose(step, count)
    return accountant.epsilon(1e-6)


def test_limits():
    """Nothing costs nothing; what has no bound costs everything; a state is the odometer."""
    silent = hs.PoissonSampled(hs.Gaussian(1.0), 0.0)
    odometer = hs.RenyiOdometer(delta=0.1, orders=[2, 3], adjacency="replace").spend(silent, 7)
    assert (odometer.epsilon, len(odometer), odometer.delta, odometer.orders) == (0.0, 7, 0.1, (2.0, 3.0))
    assert odometer.would_exceed(hs.ApproximateDP(0.1, 1e-9), epsilon=1e300)
    assert not odometer.would_exceed(hs.ApproximateDP(0.1, 1e-9), epsilon=math.inf)
    assert len(odometer) == 7
    odometer.spend(hs.Gaussian(4.0), 3)
    again = hs.RenyiOdometer.from_state_dict(json.loads(json.dumps(odometer.state_dict())))
    assert again.state_dict() == odometer.state_dict()
    assert again.epsilon == odometer.epsilon
    assert f"epsilon {hs.format_upper(odometer.epsilon)} at delta 0.1 in 10 steps" in repr(again)


FIXED = hs.FixedSizeSampled(hs.Gaussian(2.0), 100, 5, replacement=False)


def test_batches_of_fixed_size():
    """An odometer of batches with a record replaced says more than an accountant, and grows."""
    odometer = hs.RenyiOdometer(delta=1e-5, adjacency="replace").spend(FIXED, 50)
    first = odometer.epsilon
    assert hs.Accountant("replace").compose(FIXED, 50).epsilon(1e-5) <= first < odometer.spend(FIXED, 200).epsilon
    infinite = hs.RenyiOdometer(delta=1e-5).spend(hs.ApproximateDP(0.1, 1e-9))
    assert infinite.epsilon == math.inf


REJECTED = {
    "delta 0": (ValueError, r"delta must lie in \(0, 1\)", lambda: hs.RenyiOdometer(delta=0.0)),
    "delta 1": (ValueError, r"delta must lie in \(0, 1\)", lambda: hs.RenyiOdometer(delta=1)),
    "delta a string": (TypeError, "delta must be", lambda: hs.RenyiOdometer(delta="1e-5")),
    "no orders": (ValueError, "one or more", lambda: hs.RenyiOdometer(delta=0.1, orders=[])),
    "an order twice": (ValueError, "each once", lambda: hs.RenyiOdometer(delta=0.1, orders=[2, 2.0])),
    "order 1": (ValueError, "orders must be larger", lambda: hs.RenyiOdometer(delta=0.1, orders=[1])),
    "adjacency": (ValueError, "adjacency must be", lambda: hs.RenyiOdometer(delta=0.1, adjacency="add")),
    "wrong adjacency": (
        ValueError,
        "not supported",
        lambda: hs.RenyiOdometer(delta=0.1).spend(hs.RandomizedResponse(0.5, 2)),
    ),
    "no mechanism": (TypeError, "mechanism must be", lambda: hs.RenyiOdometer(delta=0.1).spend(1.0)),
    "count 0": (ValueError, "count must be", lambda: hs.RenyiOdometer(delta=0.1).spend(hs.Gaussian(1.0), 0)),
    "count too large": (
        ValueError,
        "count must be",
        lambda: hs.RenyiOdometer(delta=0.1).spend(hs.Gaussian(1.0), 2**53).spend(hs.Gaussian(1.0)),
    ),
    "epsilon NaN": (
        ValueError,
        "epsilon must be",
        lambda: hs.RenyiOdometer(delta=0.1).would_exceed(hs.Gaussian(1.0), epsilon=math.nan),
    ),
    "state of another": (
        ValueError,
        "hockeystick.RenyiOdometer",
        lambda: hs.RenyiOdometer.from_state_dict(hs.GaussianFilter(1.0).state_dict()),
    ),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_rejected(reason):
    """What the odometer does not hold for, or cannot mean, is refused in words."""
    error, words, call = REJECTED[reason]
    with pytest.raises(error, match=words):
        call()
