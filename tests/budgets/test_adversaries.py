"""Filters and odometers against adversaries: what is chosen by what was seen stays within the guarantee, exactly, on small trees."""

import json

import numpy as np
import pytest

import hockeystick as hs
from enumeration import either, hockey_stick, product, renyi

BINS = np.array([-np.inf, -0.6, 0.3, 1.2, np.inf])
DISCRETE = [
    hs.Discrete([0.6, 0.4], [0.4, 0.6]),
    hs.Discrete([0.5, 0.3, 0.2], [0.45, 0.25, 0.3]),
    hs.Discrete([0.9, 0.1], [0.8, 0.2]),
    hs.PoissonSampled(hs.Discrete([0.8, 0.2], [0.2, 0.8]), 0.25),
    hs.Discrete([0.7, 0.3], [0.3, 0.7]),
]
TELL_TALE = hs.Discrete([0.05, 0.95, 0.0], [0.0, 0.95, 0.05])
ORDERS = np.concatenate([1 + np.geomspace(1e-6, 1.0, 60), np.geomspace(2.0, 400.0, 200)])


def laws_of(step):
    """Return the outcomes' probabilities with and without the record; a Gaussian is seen through BINS only."""
    if isinstance(step, hs.Gaussian):
        return tuple(-np.diff(hs.q(BINS - shift)) for shift in (1 / step.noise_multiplier, 0.0))
    if isinstance(step, hs.PoissonSampled):
        p, q, rate = np.array(step.mechanism.p), np.array(step.mechanism.q), step.sampling_rate
        return (1 - rate) * q + rate * p, q
    return np.array(step.p), np.array(step.q)


def concentrated(step, failure, share):
    """Return what is promised of a pair that fails with some probability, and its laws: those that tell all come last.

    A `share` of the divergence at order 2 is called xi, and rho is the least that holds beside it.
    """
    p, q = laws_of(step)
    larger = np.maximum(renyi(p, q, ORDERS), renyi(q, p, ORDERS))
    xi = share * float(np.interp(2.0, ORDERS, larger))
    beyond = np.abs(np.log(p / q)).max()  # divergences of all orders are below it
    rho = max(float(((larger - xi) / ORDERS).max()) * (1 + 1e-6), (beyond - xi) / 400, 0.0)
    laws = (np.append((1 - failure) * p, [failure, 0.0]), np.append((1 - failure) * q, [0.0, failure]))
    return hs.ZeroConcentratedDP(rho, xi, failure), laws


FAILING = [
    concentrated(DISCRETE[number], failure, share)
    for number, failure, share in [(0, 0.0, 0.0), (1, 0.004, 0.3), (2, 0.001, 0.0), (4, 0.01, 0.5)]
]


def leaves(spent, allowed, choose, depth):
    """Return the laws of all releases when `choose` picks each step by what came before, and `allowed` lets it through."""
    step, laws = choose()
    if depth == 0 or not allowed(spent, step):
        return np.ones(1), np.ones(1)
    after = json.dumps(spent.spend(step).state_dict())
    branches = [leaves(type(spent).from_state_dict(json.loads(after)), allowed, choose, depth - 1) for _ in laws[0]]
    return tuple(
        np.concatenate([weight * branch[side] for weight, branch in zip(laws[side], branches, strict=True)])
        for side in (0, 1)
    )


def gaussian(rng):
    """Return a filter of Gaussian noise, its adversary, how far it goes, and a delta for each epsilon."""
    mu = rng.uniform(0.5, 3.0)

    def choose():
        step = hs.Gaussian(1 / (mu * rng.uniform(0.05, 0.7)))
        return step, laws_of(step)

    return hs.GaussianFilter(mu), choose, 5, {eps: hs.gdp_delta(mu, eps) * (1 + 1e-9) for eps in (0.0, 0.3, 1.0, 2.5)}


def renyi_filter(rng):
    """Return a filter of Renyi divergences, with the same."""
    order = float(rng.choice([1.5, 4.0, 9.0]))
    budget = hs.RenyiFilter(rng.uniform(0.2, 0.6) * order, order=order)

    def choose():
        step = DISCRETE[rng.integers(4)]
        return step, laws_of(step)

    return budget, choose, 7, {budget.epsilon(delta): delta for delta in (1e-4, 1e-2, 0.2)}


def concentrated_filter(rng):
    """Return a filter of rho, xi and failures, with the same."""
    budget = hs.ZeroConcentratedFilter(rng.uniform(0.6, 1.5), xi=rng.uniform(0.4, 0.8), delta=rng.uniform(0.012, 0.035))
    said = {budget.epsilon(delta): delta for delta in (0.04, 0.1, 0.2, 0.5)}
    return budget, lambda: FAILING[rng.integers(4)], 5, said


def planned_filter(rng):
    """Return a filter of four planned steps in any order, of which some tell all, with the divergences of the plan in a row."""
    steps = [(*DISCRETE, TELL_TALE)[k] for k in rng.integers(6, size=4)]
    plan = hs.Accountant()
    for step in steps:
        plan.compose(step)
    p, q = (product(*laws) for laws in zip(*map(laws_of, steps), strict=True))
    whole = {eps: either(p, q, eps) * (1 + 1e-12) for eps in np.log([0.5, 1.0, 1.5, 2.0, 4.0, 9.0])}

    def choose():
        step = steps[rng.integers(4)]
        return step, laws_of(step)

    return hs.PlannedFilter(plan), choose, 4, whole


def renyi_odometer(rng):
    """Return an odometer, whose run stops where it would pass an epsilon, with the same."""
    delta, epsilon = 0.05, 3.0 + rng.uniform(0.0, 2.5)
    odometer = hs.RenyiOdometer(delta=delta, orders=[1.5, 2.5, 4.0])

    def choose():
        step = DISCRETE[1 + rng.integers(4)]
        return step, laws_of(step)

    return odometer, choose, 7, {epsilon: delta}


def concentrated_odometer(rng):
    """Return an odometer of rho, xi and failures, with the same."""
    delta, epsilon = float(rng.choice([0.05, 0.15])), rng.uniform(4.0, 8.0)
    odometer = hs.ZeroConcentratedOdometer(delta=delta, rho=rng.choice([0.01, 0.3, 5.0]), failure=0.03)
    return odometer, lambda: FAILING[rng.integers(4)], 5, {epsilon: delta}


@pytest.mark.share(8, by_day=4)
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize(
    "make",
    [gaussian, renyi_filter, concentrated_filter, planned_filter, renyi_odometer, concentrated_odometer],
    ids=lambda f: f.__name__,
)
def test_whatever_is_chosen_by_what_was_seen(make, seed):
    """Delta of all releases is at most what is said, in both directions, failures included; so is a divergence that is a budget."""
    spent, choose, depth, said = make(np.random.default_rng(seed))
    limit = {"epsilon": next(iter(said))} if "odometer" in make.__name__ else {}
    p, q = leaves(spent, lambda spent, step: not spent.would_exceed(step, **limit), choose, depth)
    assert p.size > 4
    for one, other in ((p, q), (q, p)):
        for eps, delta in said.items():
            assert hockey_stick(one, other, eps) <= delta
        if isinstance(spent, hs.PlannedFilter):
            assert all(hockey_stick(one, other, eps) <= spent.delta(eps) * (1 + 1e-9) for eps in said if eps >= 0)
        if isinstance(spent, hs.RenyiFilter):
            assert renyi(one, other, [spent.order])[0] <= spent.budget * (1 + 1e-12)
