"""The arguments that the formulas of inter-silo privacy share, as certified and as printed: where their domains are others than elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hockeystick._checks import STRICT, Array, Checks, Domain, broadcast, same_length
from hockeystick._checks import arguments as by_name

# A budget is to be met by noise, and a step size is found from the smoothness. Noise may be left out where there is none.
DOMAINS = {"delta": "inside", "epsilon": "positive", "noise_std": "non_negative", "smoothness": "positive"}

PAIRS = (
    ("silos_per_round", "num_silos"),
    ("batch_size", "num_records"),
    ("batch_size", "num_users"),
    ("strong_convexity", "smoothness"),
)


def checked(arguments: Mapping[str, Any], grid: Checks = STRICT, **domains: str | Domain) -> list[Array]:
    """Return the arguments as `_checks.arguments` does, broadcast against each other."""
    arrays = by_name.arrays(arguments, grid, **DOMAINS | domains)
    for small, large in PAIRS:
        if small in arrays and large in arrays:
            pair = {small: arrays[small], large: arrays[large]}
            grid.require(lambda a, b: a <= b, f"{small} must be at most {large}", **pair)
    return broadcast(*arrays.values())


def require_at_most(rule: str, **pair: Array) -> None:
    """Check that the first of two arguments is nowhere above the second."""
    STRICT.require(lambda a, b: a <= b, rule, **pair)


def require_small_epsilon(epsilon: Array, delta: Array) -> None:
    """Check what advanced composition, and with it Theorems D.1 and F.1, ask of a budget."""
    require_at_most("epsilon must be at most 2 ln(2/delta)", epsilon=epsilon, limit=2.0 * np.log(2.0 / delta))


def checked_vectors(arguments: Mapping[str, Any], **domains: str) -> list[Array]:
    """Return the same as vectors of one length, where single numbers are for all."""
    return same_length(**by_name.arrays(arguments, **DOMAINS | domains))


def scalars(
    arguments: Mapping[str, Any], pairs: Iterable[tuple[str, str]] = PAIRS, /, **domains: by_name.Check
) -> list[Any]:
    """Return the same of functions whose arguments are single numbers."""
    return by_name.scalars(arguments, pairs, **DOMAINS | domains)


def left_out(silos_per_round: Array, num_silos: Array) -> Array:
    """Return (N - M)/(N - 1), the factor of sampling silos without replacement; 0 for a single silo."""
    return (num_silos - silos_per_round) / np.maximum(num_silos - 1.0, 1.0)
