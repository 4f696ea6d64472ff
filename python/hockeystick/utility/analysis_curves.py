"""The curves of epsilon over the rounds, one function for each analysis."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hockeystick import federated, last_iterate
from hockeystick._checks import Array
from hockeystick._numeric.search import SMALLEST, smallest_feasible
from hockeystick.accounting import Accountant
from hockeystick.isrl import shuffle_amplification, subsampling_amplification
from hockeystick.mechanisms import ApproximateDP, FixedSizeSampled, Gaussian
from hockeystick.utility.training import Training

__all__ = [
    "ABOVE",
    "ONE_STEP",
    "Curve",
    "aggregation",
    "aggregator_reason",
    "composition",
    "fedavg",
    "federation",
    "inter_silo",
    "inverses",
    "last_models",
    "shuffled",
    "trusted_aggregator",
    "without",
]

TOLERANCE = 1e-3  # relative, of an epsilon that is found by bisection: the feasible end
MOST_EPSILON = 1e4
HIDDEN = ("contraction", "nonlinear", "pattern", "shifted", "joint")  # the bounds of the last model that are shown
ABOVE = f"its epsilon is above {MOST_EPSILON:.0f}"
ONE_STEP = "needs one local step a round, not {}"


class Curve(NamedTuple):
    """Values of epsilon, NaN where there are none, and then why."""

    epsilon: Array
    reason: str = ""


def without(rounds: Array, reason: str) -> Curve:
    """Return a curve without values."""
    return Curve(np.full(rounds.shape, np.nan), reason)


def composition(training: Training, rounds: Array) -> Curve:
    """Compose the rounds, all of whose models are seen."""
    if training.order == "cyclic":
        return Curve(_gaussians(training.multiplier, training.uses(rounds), training.delta))
    size, drawn = (
        (training.num_records, training.batch_size)
        if training.everybody
        else (training.num_clients, training.clients_per_round)
    )
    if training.everybody and training.local_steps > 1:  # a batch is drawn for each of them
        size = drawn
    return Curve(_sampled(training.multiplier, size, drawn, rounds, training.delta))


def inter_silo(training: Training, rounds: Array) -> Curve:
    """Compose a client's own messages, every round charged to it, for one of its records."""
    alone = training.local_steps == 1
    multiplier = (
        training.noise_std / training.lipschitz * (training.batch_size if alone else 1.0 / training.local_steps)
    )
    if training.order == "cyclic":
        return Curve(_gaussians(multiplier, training.uses(rounds), training.delta))
    size = training.num_records if alone else training.batch_size
    return Curve(_sampled(multiplier, size, training.batch_size, rounds, training.delta))


def _gaussians(multiplier: float, uses: Array, delta: float) -> Array:
    return np.array(
        [Accountant("replace").compose(Gaussian(multiplier), int(k)).epsilon(delta) if k else 0.0 for k in uses]
    )


def _sampled(multiplier: float, size: int, drawn: int, rounds: Array, delta: float) -> Array:
    step = (
        Gaussian(multiplier)
        if size == drawn
        else FixedSizeSampled(Gaussian(multiplier), size, drawn, replacement=False)
    )
    return np.array([Accountant("replace").compose(step, int(k)).epsilon(delta) for k in rounds])


def last_models(training: Training, rounds: Array) -> dict[str, Array]:
    """Return epsilon by every bound of the last model, from the curves of delta of `last_iterate`."""
    process: dict[str, Any] = {
        "learning_rate": training.learning_rate,
        "noise_std": training.noise_std / math.sqrt(training.clients_per_round),
        "lipschitz": training.share / training.clients_per_round,
        "smoothness": training.smoothness,
        "strong_convexity": training.strong_convexity,
        "diameter": training.diameter,
    }

    def bounds(count: int, eps: float) -> dict[str, float]:
        if training.full or training.order == "cyclic":
            best = last_iterate.best_cyclic(
                eps,
                index=training.index,
                period=training.period if training.order == "cyclic" else 1,
                rounds=count,
                **process,
            )
        else:
            best = last_iterate.best_sampled(eps, sampling_rate=training.rate, rounds=count, **process)
        return {name: float(delta) for name, delta in best.bounds.items() if name in HIDDEN}

    columns = [
        inverses(partial(bounds, count), training.delta) if count >= training.index else None
        for count in rounds.tolist()
    ]
    names = dict.fromkeys(name for column in columns if column for name in column)
    return {
        name: np.array([0.0 if column is None else column.get(name, np.nan) for column in columns]) for name in names
    }


def inverses(bounds: Callable[[float], dict[str, float]], delta: float) -> dict[str, float]:
    """Return for each bound an epsilon at which it is at most delta, within the tolerance of the smallest; infinity if none is found.

    Each evaluation has all bounds, so that what was evaluated for one is where the next begins.
    """
    seen: dict[float, dict[str, float]] = {}

    def at(eps: float) -> dict[str, float]:
        if eps not in seen:
            seen[eps] = bounds(eps)
        return seen[eps]

    return {name: _inverse(at, name, delta, seen) for name in at(0.0)}


def _inverse(at: Callable[[float], dict[str, float]], name: str, delta: float, seen: dict[float, Any]) -> float:
    def excess(eps: float) -> float:
        value = at(eps)[name]
        return math.inf if math.isnan(value) else math.log(max(value, SMALLEST) / delta)

    if math.isnan(at(0.0)[name]):
        return math.nan
    return smallest_feasible(excess, most=MOST_EPSILON, tolerance=TOLERANCE, known=seen)


def fedavg(training: Training, rounds: Array) -> Curve:
    """Return the shifted interpolation of Noisy-FedAvg, which needs no convexity."""
    if not training.everybody:
        return without(rounds, "needs every client in every round")
    diameter = None if math.isinf(training.diameter) else training.diameter
    return Curve(
        np.asarray(federated.fedavg_epsilon(training.delta, diameter=diameter, **federation(training, rounds)))
    )


def federation(training: Training, rounds: Array) -> dict[str, Any]:
    """Return the arguments of functions on Noisy-FedAvg, whose noise is on models."""
    return {
        "rounds": rounds,
        "local_steps": training.local_steps,
        "num_clients": training.num_clients,
        "clip_norm": training.lipschitz,
        "noise_std": training.noise_std * training.learning_rate,
        "smoothness": training.smoothness,
        "learning_rate": training.learning_rate,
    }


def aggregator_reason(training: Training) -> str:
    """Say why the theorems on a trusted aggregator do not cover a training, or nothing."""
    if training.local_steps > 1:
        return ONE_STEP.format(training.local_steps)
    if math.isinf(training.diameter):
        return "needs a finite diameter"
    if training.learning_rate * training.smoothness > 2.0:
        return "needs a learning_rate of at most 2/smoothness"
    return "needs clients drawn at random; here the order is fixed" if training.order == "cyclic" else ""


def aggregation(training: Training) -> dict[str, Any]:
    """Return the arguments of functions on a trusted aggregator."""
    return {
        "batch_size": training.clients_per_round,
        "learning_rate": training.learning_rate,
        "noise_std": training.noise_std,
        "lipschitz": training.lipschitz,
        "radius": training.diameter / 2.0,
        "loss": "convex",
        "smoothness": training.smoothness,
    }


def trusted_aggregator(training: Training, rounds: Array) -> Curve:
    """Return the smallest bound for a client, drawn afresh in every round, of a trusted aggregator's last model."""
    if reason := aggregator_reason(training):
        return without(rounds, reason)

    def delta(count: int, eps: float) -> dict[str, float]:
        best = federated.best_sampled(
            eps,
            num_users=training.num_clients,
            rounds=count,
            strong_convexity=training.strong_convexity,
            **aggregation(training),
        )
        return {"delta": float(best.delta)}

    found = np.array([inverses(partial(delta, count), training.delta)["delta"] for count in rounds.tolist()])
    return Curve(found, "" if np.isfinite(found).any() else ABOVE)


def shuffled(training: Training, rounds: Array) -> Curve:
    """Shuffle the clients' messages: each round by Theorem 3.8 of Feldman, McMillan and Talwar, the rounds composed."""
    if training.order == "cyclic":
        return without(rounds, "needs clients drawn at random; here the order is fixed")
    curve = np.array([_shuffled(training, count) for count in rounds.tolist()])
    if np.isnan(curve).all():
        return without(rounds, "needs more messages, or more noise on each, for the shuffler to help")
    return Curve(curve)


def _shuffled(training: Training, rounds: int) -> float:
    """Spend half of delta on the rounds' own deltas, one half of that for the clones and one for the messages, the rest on composition."""
    clients, rate = training.clients_per_round, training.clients_per_round / training.num_clients
    slack = min(training.delta / (4.0 * rounds * rate), 0.5)
    distance = 2.0 * training.lipschitz * training.local_steps / training.noise_std
    message = slack / (2.0 * (math.e + 1.0) * clients)  # enough for an epsilon of a round of 1 at most, checked below
    local = float(Accountant("replace").compose(Gaussian(2.0 / distance)).epsilon(message))
    try:
        one = shuffle_amplification(local, message, num_silos=clients, slack=slack)
        one = subsampling_amplification(*one, rate)
    except ValueError:  # too few clones
        return math.nan
    if one.epsilon > 1.0 or rounds * float(one.delta) > training.delta / 2.0 * (1.0 + 1e-9):
        return math.nan
    return float(
        Accountant("replace")
        .compose(ApproximateDP(float(one.epsilon), float(one.delta)), rounds)
        .epsilon(training.delta)
    )
