"""Certified bounds of hidden states never fall below the exact scalar chain, and published ones do where they are false."""

from __future__ import annotations

import math

import numpy as np
import pytest

import effort
import hockeystick as hs
from hockeystick import federated, last_iterate


def random_instance(rng: np.random.Generator) -> tuple[dict, dict]:
    """Return a random chain, and its constants: lipschitz, smoothness, strong_convexity."""
    kind = str(rng.choice(["linear", "quadratic", "logistic"]))
    diameter, record = 10 ** rng.uniform(-0.5, 0.8), 10 ** rng.uniform(-1, 0.5)
    neighbour = -record if rng.random() < 0.7 else record * rng.uniform(-1, 1)
    rate = rng.uniform(0.1, 1.5)
    smoothness = rng.uniform(0.05, 2.5 / rate)
    constants = {
        "linear": {"lipschitz": record, "smoothness": 0.0},
        "quadratic": {
            "lipschitz": smoothness * (diameter / 2 + record),
            "smoothness": smoothness,
            "strong_convexity": smoothness,
        },
        "logistic": {"lipschitz": record, "smoothness": record**2 / 4},
    }[kind]
    noise = "noise_std" if rng.random() < 0.6 else "noise_scale"
    chain = {
        "gradient_map": kind,
        "record": record,
        "neighbour": neighbour,
        "learning_rate": rate,
        noise: max(constants["lipschitz"] * 10 ** rng.uniform(-0.5, 0.8), diameter / rate / 40),
        "diameter": diameter,
        "smoothness": smoothness if kind == "quadratic" else None,
        "start": rng.uniform(-0.5, 0.5) * diameter,
        "tolerance": 1.0,
    }
    return chain, constants


def test_one_participation() -> None:
    """On random chains every bound of `best` is at least the exact value; where that is resolved, by what ratio is told."""
    rng = np.random.default_rng(16)
    tightest: dict[str, float] = {}
    for k in range(effort.at_night(700, by_day=80)):
        eps = np.array([0.0, 0.1, 0.5, 1.0, 2.0])[k % 2 :: 2]
        chain, constants = random_instance(rng)
        rounds = int(rng.integers(1, 12))
        index = int(rng.integers(max(1, rounds - 4), rounds + 1))
        exact = last_iterate.chain_delta(eps, **chain, index=index, rounds=rounds)
        shared = {k: v for k, v in chain.items() if k in ("learning_rate", "noise_std", "noise_scale", "diameter")}
        best = last_iterate.best(
            eps, index=index, num_records=rounds, **shared, **constants, one_dimensional="noise_std" in chain
        )
        for name, bound in best.bounds.items():
            assert np.all(bound >= exact.lower), (name, chain, index, rounds, bound, exact)
            resolved = exact.lower > 1e-11
            if resolved.any():
                ratio = float(np.min(bound[resolved] / exact.lower[resolved]))
                tightest[name] = min(ratio, tightest.get(name, math.inf))
    # some instance meets each bound closely: none of the comparisons above was empty
    assert all(ratio < 1.05 for ratio in tightest.values()), tightest


def test_every_round_with_schedules() -> None:
    """On random chains whose steps and noise vary, shifted interpolation with the diameter is at least the exact value."""
    rng = np.random.default_rng(12)
    eps = np.array([0.0, 0.3, 1.0, 3.0])
    closest = math.inf
    for _ in range(effort.at_night(300, by_day=12)):
        chain, constants = random_instance(rng)
        rounds = int(rng.integers(1, 7))
        rates = chain["learning_rate"] * rng.uniform(0.3, 1, rounds)
        noises = chain.pop("noise_std", None) or chain.pop("noise_scale")
        noises = noises * rng.uniform(0.7, 1.5, rounds)
        exact = last_iterate.chain_delta(
            eps, **(chain | {"learning_rate": rates, "noise_std": noises, "noise_scale": None})
        )
        rho = np.maximum(
            abs(1 - rates * constants["smoothness"]), abs(1 - rates * constants.get("strong_convexity", 0.0))
        )
        deviation = rates * noises
        # in deviations of each round's noise; what a round inherits is measured in those of the round before
        before = np.concatenate([deviation[:1], deviation[:-1]])
        spans = chain["diameter"] / deviation
        gap = np.full(rounds, 2 * constants["lipschitz"]) / noises
        plain = hs.shifted_interpolation(rho * before / deviation, gap).value
        # a start from the whole domain: the largest diameter over all rounds is an upper bound for each
        bounded = hs.shifted_interpolation(rho * before / deviation, gap, diameter=float(spans.max())).value
        assert bounded <= plain * (1 + 1e-12)
        bound = hs.theta(eps, math.sqrt(bounded))
        assert np.all(bound * (1 + 1e-12) >= exact.lower)
        closest = min(closest, float(bound[0] / exact.lower[0]))
    assert closest < 1.05


def test_large_steps_break_the_papers_contraction() -> None:
    """Equation 14's M is no Lipschitz constant beyond 2/(beta + rho): there Theorem 4's formula is below the exact value."""
    beta, rho, rate, noise, diameter = 1.0, 0.1, 1.99, 0.25, 2.0
    m = math.sqrt(1 - 2 * rate * beta * rho / (beta + rho))
    assert m < abs(1 - rate * beta)
    found = []
    quadratic = {"gradient_map": "quadratic", "smoothness": beta, "record": 1.0, "neighbour": -1.0}
    quadratic |= {"index": 1, "rounds": 2}
    for eps in (4.0, 6.0, 8.0):  # of a quadratic, whose strong convexity is at least rho
        exact = last_iterate.chain_delta(eps, **quadratic, learning_rate=rate, noise_std=noise, diameter=diameter)
        formula = hs.theta(eps, 2 * 2.0 / noise) * hs.theta(eps, m * diameter / (rate * noise))
        found.append(exact.lower > formula)
        arguments = {"index": 1, "num_records": 2, "learning_rate": rate, "noise_std": noise, "lipschitz": 2.0}
        arguments |= {"smoothness": beta, "strong_convexity": rho, "diameter": diameter}
        assert last_iterate.best(eps, **arguments).delta >= exact.lower
        with pytest.raises(ValueError, match="learning_rate must be at most"):
            last_iterate.pnsgd_gaussian(eps, **arguments)
    assert any(found)


LINEAR = {"gradient_map": "linear", "record": 0.5, "neighbour": -0.5, "learning_rate": 1.0}
USERS = {"batch_size": 1, "learning_rate": 1.0, "lipschitz": 0.5, "loss": "convex", "smoothness": 0.0}


@pytest.mark.parametrize("rounds", [2, 4, 10])
def test_repeated_participation_breaks_the_aggregators_sum(rounds: int) -> None:
    """The trusted aggregator's sum counts one participation: a user of every round loses more than it says."""
    exact = last_iterate.chain_delta(1.0, **LINEAR, rounds=rounds, noise_std=2.0, diameter=8.0)
    once = federated.trusted_aggregator(1.0, **USERS, num_users=rounds, noise_std=2.0, radius=4.0)
    assert exact.lower > 2 * once


def test_single_participation_meets_the_aggregators_sum() -> None:
    """Averaged over the round in which the record takes part, the exact chains stay below every bound of federated.best."""
    rounds, eps = 6, np.array([0.0, 0.5, 1.0])
    settings = LINEAR | {"rounds": rounds, "noise_std": 0.8, "diameter": 2.0}
    lower = [last_iterate.chain_delta(eps, **settings, index=t).lower for t in range(1, rounds + 1)]
    exact = np.mean(lower, axis=0)
    best = federated.best(eps, **USERS, num_users=rounds, noise_std=0.8, radius=1.0)
    for name, bound in best.bounds.items():
        assert np.all(bound >= exact), name
    assert best.delta[0] < 2 * exact[0]


@pytest.mark.parametrize("rounds", [1, 7, 100])
@pytest.mark.parametrize("factor", [1.0, 1.2, 3.0])
def test_nothing_is_claimed_for_expansive_maps_without_a_domain(rounds: int, factor: float) -> None:
    """Maps that do not contract and an unbounded domain: the bound is plain composition, which linear losses attain."""
    value = hs.shifted_interpolation(factor, 0.3, rounds=rounds).value
    np.testing.assert_allclose(value, rounds * 0.09, rtol=1e-12)
    if rounds == 7:
        records = LINEAR | {"record": 0.15, "neighbour": -0.15}
        exact = last_iterate.chain_delta(1.0, **records, rounds=7, noise_std=1.0, diameter=60.0)
        np.testing.assert_allclose([exact.lower, exact.upper], hs.theta(1.0, math.sqrt(value)), rtol=1e-9)


def test_clipping_makes_convex_steps_expand() -> None:
    """In two dimensions a clipped gradient step of a convex quadratic moves two points apart: c = 1 must not be claimed."""
    kappa = 100.0
    hessian, rate = np.diag([1.0, kappa]), 2 / kappa

    def step(w: np.ndarray) -> np.ndarray:
        gradient = hessian @ w
        return w - rate * gradient / max(1.0, float(np.linalg.norm(gradient)))

    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(20000):
        w = rng.normal(size=2) * np.array([2.0, 0.03])
        v = w + rng.normal(size=2) * 1e-6
        largest = max(largest, float(np.linalg.norm(step(w) - step(v)) / np.linalg.norm(w - v)))
    assert largest > 1.2
