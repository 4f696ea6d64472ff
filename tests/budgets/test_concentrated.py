"""Filters and odometers of zero-concentrated differential privacy: adversaries stay within the guarantee, failures included."""

from __future__ import annotations

import itertools
import json
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

import hockeystick as hs

ORDERS = np.concatenate([1 + np.geomspace(1e-6, 1.0, 60), np.geomspace(2.0, 1e6, 400)])
DELTAS = np.array([0.04, 0.1, 0.2, 0.5])
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 20))]


def divergence(p, q, orders):
    """Return Renyi divergences of two discrete laws."""
    a = orders[:, None]
    return logsumexp(a * np.log(p) + (1 - a) * np.log(q), axis=1) / (orders - 1)


def step_of(p, q, failure, share):
    """Return what is promised of a pair that fails with some probability, and its laws: those that tell all come last.

    A `share` of the divergence at order 2 is called xi, and rho is the least that holds beside it.
    """
    orders = ORDERS[ORDERS < 400]
    larger = np.maximum(divergence(p, q, orders), divergence(q, p, orders))
    xi = share * float(np.interp(2.0, orders, larger))
    beyond = np.abs(np.log(p / q)).max()  # divergences of all orders are below it
    rho = max(float(((larger - xi) / orders).max()) * (1 + 1e-6), (beyond - xi) / 400, 0.0)
    laws = (np.append((1 - failure) * p, [failure, 0.0]), np.append((1 - failure) * q, [0.0, failure]))
    return hs.ZeroConcentratedDP(rho, xi, failure), laws


CATALOGUE = [
    step_of(np.array(p), np.array(q), failure, share)
    for (p, q), failure, share in zip(
        [
            ([0.6, 0.4], [0.4, 0.6]),
            ([0.5, 0.3, 0.2], [0.45, 0.25, 0.3]),
            ([0.9, 0.1], [0.8, 0.2]),
            ([0.7, 0.3], [0.3, 0.7]),
        ],
        [0.0, 0.004, 0.001, 0.01],
        [0.0, 0.3, 0.0, 0.5],
        strict=True,
    )
]


def leaves(spent, allowed, choose, depth):
    """Return the laws of all releases when `choose` picks each step by what came before, and `allowed` lets it through."""
    step, (p, q) = CATALOGUE[choose()]
    if depth == 0 or not allowed(spent, step):
        return np.ones(1), np.ones(1)
    after = json.dumps(spent.spend(step).state_dict())
    branches = [leaves(type(spent).from_state_dict(json.loads(after)), allowed, choose, depth - 1) for _ in p]
    return tuple(
        np.concatenate([weight * branch[side] for weight, branch in zip((p, q)[side], branches, strict=True)])
        for side in (0, 1)
    )


def hockey_stick(p, q, eps):
    """Return delta of two discrete laws."""
    return float(np.maximum(p - math.exp(eps) * q, 0).sum())


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_filter_holds_for_adversaries(seed):
    """Whatever is chosen by what was seen, delta of all releases is at most what the filter says, failures included."""
    rng = np.random.default_rng(seed)
    budget = hs.ZeroConcentratedFilter(rng.uniform(0.6, 1.5), xi=rng.uniform(0.4, 0.8), delta=rng.uniform(0.012, 0.035))
    p, q = leaves(
        budget, lambda spent, step: not spent.would_exceed(step), lambda: int(rng.integers(len(CATALOGUE))), 5
    )
    assert p.size > 8
    for delta, (one, other) in itertools.product(DELTAS, [(p, q), (q, p)]):
        assert hockey_stick(one, other, budget.epsilon(delta)) <= delta


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_stopped_run_of_the_odometer_is_private(seed):
    """A run that stops where the odometer would pass epsilon is (epsilon, delta)-DP, failures included."""
    rng = np.random.default_rng(seed)
    delta, epsilon = float(rng.choice([0.05, 0.15])), rng.uniform(4.0, 8.0)
    odometer = hs.ZeroConcentratedOdometer(delta=delta, rho=rng.choice([0.01, 0.3, 5.0]), failure=0.03)
    p, q = leaves(
        odometer,
        lambda spent, step: not spent.would_exceed(step, epsilon=epsilon),
        lambda: int(rng.integers(len(CATALOGUE))),
        5,
    )
    assert p.size > 4
    assert hockey_stick(p, q, epsilon) <= delta
    assert hockey_stick(q, p, epsilon) <= delta


def test_many_looks():
    """Over a long run that is looked at after every step, Gaussian losses pass with probability delta at most, and not far less."""
    delta, noise, runs, rng = 0.1, 20.0, 4000, np.random.default_rng(8)
    looks = np.unique(np.geomspace(1, 4000, 300).astype(int))
    said = [hs.ZeroConcentratedOdometer(delta=delta, rho=1.0).spend(hs.Gaussian(noise), int(n)).epsilon for n in looks]
    moved = np.diff(looks, prepend=0) / noise**2
    losses = np.cumsum(moved / 2 + np.sqrt(moved) * rng.normal(size=(runs, looks.size)), axis=1)
    assert delta / 10 < (losses > np.array(said)).any(axis=1).mean() <= delta


@given(st.floats(-6, 3), st.floats(-4, 3), st.floats(-200, -0.3), st.sampled_from([0.0, 1e-3, 2.0]))
def test_odometer_in_closed_form(log10_rho, log10_spent, log10_delta, xi):
    """At what it says the mean of the supermartingales over the half-normal law, by quadrature, is 1/delta, to rounding."""
    delta, rho, spent = 10.0**log10_delta, 10.0**log10_rho, 10.0**log10_spent
    found = hs.ZeroConcentratedOdometer(delta=delta, rho=rho).spend(hs.ZeroConcentratedDP(spent, xi)).epsilon
    with mp.workdps(40):
        square = -mp.log(mp.mpf(delta)) / mp.mpf(rho)
        z, c = mp.mpf(found) - xi - spent, spent + 1 / (2 * square)
        top, width = max(z / (2 * c), 0), 1 / mp.sqrt(c)
        nodes = sorted({mp.mpf(0), *(max(top + k * width, mp.mpf(0)) for k in (-12, -4, -1, 0, 1, 4, 12))})
        mean = mp.sqrt(2 / (mp.pi * square)) * mp.quad(lambda u: mp.exp(u * z - c * u * u + mp.log(delta)), nodes)
        assert 1 - mp.mpf(10) ** -12 <= mean
        assert mp.log(mean) <= mp.mpf(10) ** -9 * (1 - mp.log(delta))


def test_filter_loses_nothing_against_the_conversion():
    """What the filter lets through has the epsilon of its rho, and `of_epsilon` is the inverse."""
    for epsilon, delta, noise in ((1.0, 1e-5, 50.0), (8.0, 1e-9, 20.0), (0.1, 1e-200, 2e5)):
        budget = hs.ZeroConcentratedFilter.of_epsilon(epsilon, delta)
        assert epsilon * (1 - 1e-9) < budget.epsilon(delta) <= epsilon
        count = budget.remaining(hs.Gaussian(noise))
        assert count == int(budget.rho * 2 * noise**2 * (1 + 1e-13))
        assert hs.zcdp_epsilon((count + 1) / (2 * noise**2), delta) > epsilon
    budget = hs.ZeroConcentratedFilter.of_epsilon(1.0, 1e-5, xi=0.2, failure=5e-6)
    assert budget.xi, budget.delta == (0.2, 5e-6)
    assert 1.0 - 1e-9 < budget.epsilon(1e-5) <= 1.0
    assert budget.epsilon(5e-6) == math.inf


@pytest.mark.parametrize("failure", [0.0, 1e-8])
def test_order_of_costs(failure):
    """An accountant of steps fixed in advance says less than the filter that they fill; the odometer says more than the former."""
    step = hs.ZeroConcentratedDP(1e-3, delta=failure / 100)
    budget = hs.ZeroConcentratedFilter(0.1, delta=failure * (1 + 1e-12))
    assert budget.remaining(step) == 100
    fixed = hs.Accountant().compose(step, 100).epsilon(1e-6)
    odometer = hs.ZeroConcentratedOdometer(delta=1e-6, rho=0.1, failure=failure * (1 + 1e-12)).spend(step, 100).epsilon
    assert budget.epsilon(1e-6) <= fixed * (1 + 1e-9) < odometer * (1 + 1e-9) < 1.5 * fixed
    assert odometer < hs.RenyiOdometer(delta=1e-6).spend(hs.Gaussian(math.sqrt(5.0))).epsilon


def test_bookkeeping():
    """What would exceed raises and changes nothing, each budget by itself; a state is the filter or the odometer."""
    budget = hs.ZeroConcentratedFilter(0.5, xi=0.1, delta=1e-6)
    assert budget.remaining(hs.ZeroConcentratedDP(0.1)) == 5
    assert budget.remaining(hs.ZeroConcentratedDP(0.1, 0.05)) == 2
    assert budget.remaining(hs.ZeroConcentratedDP(0.1, delta=3e-7)) == 3
    assert budget.remaining(hs.ApproximateDP(0.1, 2e-7)) == 5
    assert budget.remaining(hs.ApproximateDP(0.1, 0.1)) == 0
    assert budget.remaining(hs.ExponentialMechanism(0.2)) == 100
    assert budget.remaining(hs.Gaussian(1e300)) == 2**53
    before = budget.spend(hs.ZeroConcentratedDP(0.125, 0.0625)).state_dict()
    with pytest.raises(hs.BudgetExceededError, match="; 0 would fit"):
        budget.spend(hs.ZeroConcentratedDP(0.125, 0.0625))
    assert budget.state_dict() == before
    again = hs.ZeroConcentratedFilter.from_state_dict(json.loads(json.dumps(before)))
    assert (again.rho, again.xi, again.delta) == (0.5, 0.1, 1e-6)
    assert again.state_dict() == before
    assert "rho 0.125 of 0.5, xi 0.0625 of 0.1, delta 0 of 1e-06 in 1 steps" in repr(again)
    odometer = hs.ZeroConcentratedOdometer(delta=1e-5, rho=0.2, failure=1e-6).spend(hs.ApproximateDP(0.1, 4e-7), 2)
    loaded = hs.ZeroConcentratedOdometer.from_state_dict(json.loads(json.dumps(odometer.state_dict())))
    assert (loaded.epsilon, loaded.rho, loaded.failure) == (odometer.epsilon, 0.2, 1e-6)
    assert odometer.would_exceed(hs.ApproximateDP(0.1, 4e-7), epsilon=1e300)
    assert odometer.spend(hs.ApproximateDP(0.1, 4e-7)).epsilon == math.inf
    assert hs.ZeroConcentratedOdometer(delta=0.1).epsilon == 0.0
    assert hs.ZeroConcentratedOdometer(delta=0.1).spend(hs.Gaussian(1e300)).epsilon > 0.0
    assert hs.ZeroConcentratedOdometer(delta=0.1).spend(hs.ZeroConcentratedDP(0.0, 0.3)).epsilon >= 0.3


def test_clients_have_such_filters(tmp_path):
    """A ledger of clients keeps one for each."""
    budget, step = hs.ZeroConcentratedFilter(0.1, delta=1e-7), hs.ZeroConcentratedDP(0.03, delta=1e-8)
    with hs.ClientLedgers(tmp_path / "ledgers", budget=budget, create=True) as ledgers:
        ledgers.enrol(["a", "b"])
        ledgers.charge(1, step, 2)
    with hs.ClientLedgers(tmp_path / "ledgers", budget=budget) as ledgers:
        assert ledgers.remaining(step, "a") == 1
        assert ledgers.account("b").state_dict() == budget.spend(step, 2).state_dict()


SAMPLED = hs.PoissonSampled(hs.Gaussian(1.0), 0.1)
REJECTED = {
    "a sample": (ValueError, "zero-concentrated", lambda: hs.ZeroConcentratedFilter(1.0).spend(SAMPLED)),
    "a sample's odometer": (
        ValueError,
        "zero-concentrated",
        lambda: hs.ZeroConcentratedOdometer(delta=0.1).spend(SAMPLED),
    ),
    "nothing private": (
        ValueError,
        "zero-concentrated",
        lambda: hs.ZeroConcentratedFilter(1.0).spend(hs.ApproximateDP(0, 1)),
    ),
    "rho 0": (ValueError, "rho must lie", lambda: hs.ZeroConcentratedFilter(0.0)),
    "rho NaN": (ValueError, "rho must lie", lambda: hs.ZeroConcentratedFilter(math.nan)),
    "xi": (ValueError, "xi must be non-negative", lambda: hs.ZeroConcentratedFilter(1.0, xi=-1.0)),
    "delta 1": (ValueError, "delta must lie", lambda: hs.ZeroConcentratedFilter(1.0, delta=1.0)),
    "all of delta": (
        ValueError,
        "failure must lie",
        lambda: hs.ZeroConcentratedFilter.of_epsilon(1.0, 1e-5, failure=1e-5),
    ),
    "no rho left": (
        ValueError,
        "epsilon must leave a rho",
        lambda: hs.ZeroConcentratedFilter.of_epsilon(1.0, 1e-5, xi=2.0),
    ),
    "odometer's rho": (ValueError, "rho must be positive", lambda: hs.ZeroConcentratedOdometer(delta=0.1, rho=0.0)),
    "odometer's failure": (
        ValueError,
        "failure must lie",
        lambda: hs.ZeroConcentratedOdometer(delta=0.1, failure=0.1),
    ),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_rejected(reason):
    """What they do not hold for, or cannot mean, is refused in words."""
    error, words, call = REJECTED[reason]
    with pytest.raises(error, match=words):
        call()
