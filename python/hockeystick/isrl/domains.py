"""The domains of the arguments that the formulas of inter-silo privacy share, as certified and as printed: one place for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from hockeystick._checks import (
    OPEN_PROBABILITY,
    STRICT,
    Array,
    Checks,
    Domain,
    at_most,
    broadcast,
    count_scalar,
    in_domains,
    non_negative_scalar,
    positive_scalar,
    same_length,
    scalar,
)

_AT_LEAST_ONE = (lambda x: (x >= 1) & (x < np.inf), "be at least 1 and finite")

DOMAINS: dict[str, str | Domain] = {
    **dict.fromkeys(("compositionality", "diameter", "distance_squared", "effective_noise", "epsilon"), "positive"),
    **dict.fromkeys(("initial_gap", "learning_rate", "lipschitz", "max_step", "radius", "smoothness"), "positive"),
    **dict.fromkeys(("gradient_bound", "gradient_std", "heterogeneity", "noise_std"), "non_negative"),
    **dict.fromkeys(("second_moment", "strong_convexity", "variance"), "non_negative"),
    **dict.fromkeys(
        ("batch_size", "dimension", "index", "levels", "local_steps", "rounds", "shift", "trials"), "count"
    ),
    **dict.fromkeys(("num_clients", "num_messages", "num_records", "num_silos", "num_users"), "count"),
    **dict.fromkeys(("clients_per_round", "max_batch_size", "max_rounds"), "count"),
    **dict.fromkeys(("delta", "probability"), "inside"),
    "noise_bits": "count_or_zero",
    "silos_per_round": _AT_LEAST_ONE,  # a harmonic mean, which need not be an integer
}

PAIRS = (
    ("silos_per_round", "num_silos"),
    ("batch_size", "num_records"),
    ("batch_size", "num_users"),
    ("strong_convexity", "smoothness"),
)


def checked(arguments: Mapping[str, Any], grid: Checks = STRICT, **domains: str | Domain) -> list[Array]:
    """Return the arguments that have a domain, each in the one given or that of its name, in their order and broadcast against each other.

    A function hands over ``locals()``, all that it was called with, before it gives names of its own.
    """
    arrays = in_domains(arguments, DOMAINS | domains, grid)
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
    return same_length(**in_domains(arguments, DOMAINS | domains))


ScalarDomain: TypeAlias = str | Domain | Callable[[str, Any], Any]
SCALARS: dict[str, ScalarDomain] = {**DOMAINS, "silos_per_round": "count"}
KINDS: Mapping[str, ScalarDomain] = {
    "count": count_scalar,
    "count_or_zero": partial(count_scalar, smallest=0),
    "inside": OPEN_PROBABILITY,
    "non_negative": non_negative_scalar,
    "positive": positive_scalar,
}


def scalars(
    arguments: Mapping[str, Any], pairs: Iterable[tuple[str, str]] = PAIRS, /, **domains: ScalarDomain
) -> list[Any]:
    """Return the same of functions whose arguments are single numbers; counts are integers. No first of a pair may exceed the second."""
    known, found = {**SCALARS, **domains}, {}
    for name, value in arguments.items():
        if name in known:
            domain = known[name]
            check = KINDS[domain] if isinstance(domain, str) else domain
            found[name] = scalar(name, value, *check) if isinstance(check, tuple) else check(name, value)  # type: ignore[operator]
    for small, large in pairs:
        if small in found and large in found:
            at_most(small, found[small], large, found[large])
    return list(found.values())


def left_out(silos_per_round: Array, num_silos: Array) -> Array:
    """Return (N - M)/(N - 1), the factor of sampling silos without replacement; 0 for a single silo."""
    return (num_silos - silos_per_round) / np.maximum(num_silos - 1.0, 1.0)
