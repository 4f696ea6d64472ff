"""How much each client's model counts in the server's mean, where all take part (docs/core/federated.md has the proof)."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from hockeystick._checks import Array, choice, positive_scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import DOWN, UP
from hockeystick.simulate.algorithms.algorithm import each_silo
from hockeystick.simulate.problem.problem import Problem

__all__ = ["ClientWeights", "checked_weights", "clients_alike", "largest_share", "weights_of"]

ClientWeights: TypeAlias = Literal["equal", "records"] | tuple[float, ...]


def checked_weights(value: ClientWeights) -> ClientWeights:
    """Return weights as floats, after checking that they are one of the words, or positive."""
    if isinstance(value, str):
        return choice("client_weights", value, ("equal", "records"))
    if not isinstance(value, tuple):
        msg = f"client_weights must be 'equal', 'records' or a tuple of positive numbers, not {shown(value)}"
        raise TypeError(msg)
    return tuple(positive_scalar(f"client_weights[{i}]", weight) for i, weight in enumerate(value))


def weights_of(value: ClientWeights, problem: Problem) -> Array:
    """Return the weight of each client's model in units of the largest; only ratios count."""
    if value == "equal":
        return np.ones(problem.num_silos)
    weights = problem.sizes if value == "records" else each_silo("client_weights", value, problem)
    return np.array(weights, dtype=float) / max(weights or ())


def clients_alike(weights: Array) -> float:
    """Return a lower bound of how many clients of equal weight would hide one of them as well as the heaviest is hidden."""
    return math.fsum(weights**2) * DOWN


def largest_share(weights: Array) -> float:
    """Return an upper bound of the heaviest client's share of the mean."""
    return UP / math.fsum(weights)
