"""The odometer: whatever is chosen by what was seen, the loss passes what it says with probability delta at most."""

import copy
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


@pytest.mark.parametrize(
    "odometer",
    [hs.RenyiOdometer(delta=0.1), hs.ZeroConcentratedOdometer(delta=0.1, rho=1.0)],
    ids=lambda each: type(each).__name__,
)
def test_many_looks(odometer):
    """Over a long training that is looked at after every step, Gaussian losses pass with probability delta at most, and not far less."""
    delta, noise, runs, rng = 0.1, 20.0, 4000, np.random.default_rng(8)
    looks = np.unique(np.geomspace(1, 4000, 300).astype(int))
    said = np.array([copy.copy(odometer).spend(hs.Gaussian(noise), int(n)).epsilon for n in looks])
    moved = np.diff(looks, prepend=0) / noise**2
    losses = np.cumsum(moved / 2 + np.sqrt(moved) * rng.normal(size=(runs, looks.size)), axis=1)
    assert delta / 10 < (losses > said).any(axis=1).mean() <= delta
    ignoring_looks = np.array([hs.zcdp_epsilon(n / noise**2 / 2, delta) for n in looks])
    assert (losses > ignoring_looks).any(axis=1).mean() > delta  # what holds at one look does not hold at all


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


def _spent(account, ledger):
    for step, count in ledger.items():
        (account.compose if isinstance(account, hs.Accountant) else account.spend)(step, count)
    return account


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
    fixed = _spent(hs.Accountant(), odometer.ledger).epsilon(1e-6)
    assert fixed < odometer.epsilon < 2 * fixed
    batches = hs.FixedSizeSampled(hs.Gaussian(2.0), 100, 5, replacement=False)
    replaced = hs.RenyiOdometer(delta=1e-6, adjacency="replace").spend(batches, 50)
    first = replaced.epsilon
    assert hs.Accountant("replace").compose(batches, 50).epsilon(1e-6) <= first < replaced.spend(batches, 200).epsilon


def test_limits():
    """Nothing costs nothing; what has no bound costs everything."""
    silent = hs.PoissonSampled(hs.Gaussian(1.0), 0.0)
    odometer = hs.RenyiOdometer(delta=0.1, orders=[2, 3], adjacency="replace").spend(silent, 7)
    assert (odometer.epsilon, len(odometer), odometer.delta, odometer.orders) == (0.0, 7, 0.1, (2.0, 3.0))
    assert odometer.would_exceed(hs.ApproximateDP(0.1, 1e-9), epsilon=1e300)
    assert not odometer.would_exceed(hs.ApproximateDP(0.1, 1e-9), epsilon=math.inf)
    assert len(odometer) == 7
    odometer.spend(hs.Gaussian(4.0), 3)
    assert f"epsilon {hs.format_upper(odometer.epsilon)} at delta 0.1 in 10 steps" in repr(odometer)
