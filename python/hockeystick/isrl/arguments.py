"""The domains of the arguments that the formulas of this package share, one place for all."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Checks, broadcast

_AT_LEAST_ONE = (lambda x: (x >= 1) & (x < np.inf), "be at least 1 and finite")

DOMAINS = {
    **dict.fromkeys(
        (
            "compositionality",
            "diameter",
            "radius",
            "distance_squared",
            "effective_noise",
            "epsilon",
            "initial_gap",
            "learning_rate",
            "lipschitz",
            "max_step",
            "smoothness",
        ),
        "positive",
    ),
    **dict.fromkeys(
        (
            "gradient_bound",
            "gradient_std",
            "heterogeneity",
            "noise_std",
            "second_moment",
            "strong_convexity",
            "variance",
        ),
        "non_negative",
    ),
    **dict.fromkeys(("batch_size", "dimension", "num_records", "num_silos", "rounds"), "count"),
    "delta": "inside",
}


def checked(grid: Checks = STRICT, /, **arguments: ArrayLike) -> list[Array]:
    """Return the arguments, each in the domain of its name, in their order and broadcast against each other."""
    arrays = {}
    for name, value in arguments.items():
        if name == "silos_per_round":  # a harmonic mean, which need not be an integer
            arrays[name] = grid.within(name, value, _AT_LEAST_ONE)
        else:
            arrays[name] = getattr(grid, DOMAINS[name])(name, value)
    for small, large in (
        ("silos_per_round", "num_silos"),
        ("batch_size", "num_records"),
        ("strong_convexity", "smoothness"),
    ):
        if small in arrays and large in arrays:
            pair = {small: arrays[small], large: arrays[large]}
            grid.require(lambda a, b: a <= b, f"{small} must be at most {large}", **pair)
    return broadcast(*arrays.values())


def left_out(silos_per_round: Array, num_silos: Array) -> Array:
    """Return (N - M)/(N - 1), the factor of sampling silos without replacement; 0 for a single silo."""
    return (num_silos - silos_per_round) / np.maximum(num_silos - 1.0, 1.0)
