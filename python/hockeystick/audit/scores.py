"""What every audit takes: checks, and the order in which it looks at scores."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import DELTA, Array, interval, real, scalar
from hockeystick._numeric.printing import format_lower

KINDS = {
    "clopper_pearson": "with confidence",
    "simultaneous": "for every delta together, with confidence",
    "f_dp": "with confidence",
    "binomial": "with confidence",
    "bayesian": "with posterior probability (Jeffreys priors, no confidence)",
    "gdp": "if the trade-off function is Gaussian, with confidence",
}


def scores_of(name: str, value: ArrayLike, fewest: int) -> Array:
    """Return one-dimensional scores without NaN; infinite ones can be ordered, too."""
    array = real(name, value)
    if array.ndim != 1 or array.size < fewest:
        raise ValueError(f"{name} must be a sequence of at least {fewest} scores, not of shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(f"{name}[{int(np.argmax(np.isnan(array)))}] must be a number, not nan")
    return array


def delta_of(value: float, method: str) -> float:
    """Return delta, which must be positive for the Gaussian fit."""
    delta = scalar("delta", value, *DELTA)
    if method == "gdp" and delta == 0:
        raise ValueError("delta must be positive for method='gdp', under which every epsilon is infinite at 0")
    return delta


def failure_probability(confidence: float) -> float:
    """Return the probability of being wrong that a confidence leaves; with less than a half there is no bound to speak of."""
    return 1.0 - scalar("confidence", confidence, *interval("[0.5, 1)"))


def claim(epsilon: float, delta: float, method: str, confidence: float) -> str:
    """Return what a lower bound says, and what kind of statement it is."""
    return f"epsilon >= {format_lower(epsilon, '.4g')} at delta = {delta:g}, {KINDS[method]} {confidence:g}"


def shuffled(size: int, *data: NDArray[Any]) -> NDArray[np.int64]:
    """Return an order that is random and yet the same for the same data.

    It hides how scores are listed: sorted, or those of one kind first. A constant order would be a rule that some listing
    suits; one drawn anew would change the bound from call to call.
    """
    return np.random.default_rng([zlib.crc32(array.tobytes()) for array in data]).permutation(size)


TOLERANCE = 1e-9  # of an epsilon that is searched for, relative
