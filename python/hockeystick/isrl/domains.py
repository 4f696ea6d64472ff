"""The domains of the arguments that the formulas of inter-silo privacy share, as certified and as printed: one place for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hockeystick._checks import STRICT, Array, Checks, Domain, broadcast, same_length
from hockeystick._checks.named import in_domains

_AT_LEAST_ONE = (lambda x: (x >= 1) & (x < np.inf), "be at least 1 and finite")

DOMAINS: dict[str, str | Domain] = {
    **dict.fromkeys(("compositionality", "diameter", "distance_squared", "effective_noise", "epsilon"), "positive"),
    **dict.fromkeys(("initial_gap", "learning_rate", "lipschitz", "max_step", "radius", "smoothness"), "positive"),
    **dict.fromkeys(("gradient_bound", "gradient_std", "heterogeneity", "noise_std"), "non_negative"),
    **dict.fromkeys(("second_moment", "strong_convexity", "variance"), "non_negative"),
    **dict.fromkeys(("batch_size", "dimension", "num_records", "num_silos", "rounds"), "count"),
    "delta": "inside",
    "silos_per_round": _AT_LEAST_ONE,  # a harmonic mean, which need not be an integer
}


def checked(arguments: Mapping[str, Any], grid: Checks = STRICT, **domains: str | Domain) -> list[Array]:
    """Return the arguments that have a domain, each in the one given or that of its name, in their order and broadcast against each other.

    A function hands over ``locals()``, all that it was called with, before it gives names of its own.
    """
    arrays = in_domains(arguments, DOMAINS | domains, grid)
    for small, large in (
        ("silos_per_round", "num_silos"),
        ("batch_size", "num_records"),
        ("strong_convexity", "smoothness"),
    ):
        if small in arrays and large in arrays:
            pair = {small: arrays[small], large: arrays[large]}
            grid.require(lambda a, b: a <= b, f"{small} must be at most {large}", **pair)
    return broadcast(*arrays.values())


def checked_vectors(arguments: Mapping[str, Any], **domains: str) -> list[Array]:
    """Return the same as vectors of one length, where single numbers are for all."""
    return same_length(**in_domains(arguments, DOMAINS | domains))


def left_out(silos_per_round: Array, num_silos: Array) -> Array:
    """Return (N - M)/(N - 1), the factor of sampling silos without replacement; 0 for a single silo."""
    return (num_silos - silos_per_round) / np.maximum(num_silos - 1.0, 1.0)
