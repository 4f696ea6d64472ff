"""Laws of noise on the integers between two ends, and the pairs of the noise and the noise moved, above and below.

A law is symmetric and log-concave. Moved by s > 0, the losses L(k) = log(P(k - s)/P(k)) rise with k, so that delta(eps) is the
difference A - e^eps B of the masses of {k, k + 1, ...} for the first k with L(k) > eps, and is the same in both directions (reflect
k to s - k). For fewer pieces of computing than outcomes, chords in e^eps bound it from above (release/privacy_profile.hpp), and merged
outcomes from below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import hockeystick._core as core
from hockeystick._checks import Array
from hockeystick._numeric.rounding import DOWN, FUNCTIONS, MASS, UNIT, UP
from hockeystick.mechanisms.integer_curvature import bessel_ratios

LEAST_MASS = 1e-290  # smaller ones are cut off and counted as missing
DEPTH = 668.0  # minus the logarithm of it
MOST_POINTS = 4000  # of a profile, and of outcomes below
LARGEST_EPSILON = 600.0


@dataclass(frozen=True, eq=False)  # known by identity to the caches of pairs
class Law:
    """Ends of the masses of -reach, ..., reach, and an upper bound of the mass beyond."""

    low: Array
    high: Array
    missing: float

    @property
    def reach(self) -> int:
        """The last integer with a mass of its own."""
        return self.low.size // 2


@lru_cache(maxsize=32)
def discrete_gaussian(sigma: float) -> Law:
    """Return the law of mass proportional to e^(-k^2/(2 sigma^2)); beyond m it has at most 2 e^(-m^2/(2 sigma^2)) (CKS 2020)."""
    reach = math.ceil(math.sqrt(2.0 * DEPTH) * sigma) + 1
    right = np.exp(-0.5 * (np.arange(1.0, reach + 1.0) / sigma) ** 2)
    weights = np.concatenate([right[::-1], [1.0], right])
    law = weights / (1.0 + 2.0 * math.fsum(right.tolist()))
    missing = 3.0 * math.exp(-0.5 * (reach / sigma) ** 2)
    return Law(law * (1.0 - MASS), law * (1.0 + MASS), missing)


@lru_cache(maxsize=8)
def nearly_discrete_gaussian(sigma: float, log_range: float) -> Law:
    """Return a law whose ratio to the discrete Gaussian is known up to e^log_range, and sigma up to a few roundings."""
    law = discrete_gaussian(sigma)
    factor = math.exp(log_range) * (1.0 + MASS)  # e^-x with x up to 668, whose relative error is that of sigma twice
    return Law(law.low / factor, law.high * factor, law.missing * factor)


@lru_cache(maxsize=32)
def sum_of_discrete_gaussians(sigma: float, number: int) -> Law:
    """Return the law of a sum, by squaring; all terms are positive, so that a convolution errs by one rounding a term."""
    result, power = None, discrete_gaussian(sigma)
    while True:
        if number & 1:
            result = power if result is None else convolved(result, power)
        number >>= 1
        if not number:
            assert result is not None
            return result
        power = convolved(power, power)


def outcomes_of_sum(sigma: float, number: int) -> float:
    """Return about how many outcomes `sum_of_discrete_gaussians` has."""
    return 2.0 * math.sqrt(2.0 * DEPTH * number) * sigma + 3.0


def convolved(a: Law, b: Law) -> Law:
    """Return the law of a sum of two."""
    error = (min(a.low.size, b.low.size) + 4) * UNIT
    low, high = np.convolve(a.low, b.low) * (1.0 - error), np.convolve(a.high, b.high) * (1.0 + error)
    large = np.flatnonzero(low > LEAST_MASS)
    cut = min(int(large[0]), low.size - 1 - int(large[-1]))  # equal on both sides, up to rounding
    dropped = math.fsum(high[:cut].tolist()) + math.fsum(high[high.size - cut :].tolist())
    inside = slice(cut, low.size - cut)
    return Law(low[inside], high[inside], (a.missing + b.missing + dropped) * UP)


@lru_cache(maxsize=32)
def skellam(variance: float) -> Law:
    """Return the law P(k) = e^-variance I_k(variance), by the ratios of its neighbours."""
    reach = _skellam_reach(variance)
    lows, highs = (np.array(ratios) for ratios in bessel_ratios(variance, reach))
    steps = 1.0 + np.arange(1.0, reach + 1.0) * UNIT
    low, high = np.cumprod(lows[:reach]) / steps, np.cumprod(highs[:reach]) * steps
    tail = float(high[-1]) * float(highs[reach]) / (1.0 - float(highs[reach])) * UP  # ratios fall
    most = (1.0 + 2.0 * (math.fsum(high.tolist()) + tail)) * UP
    least = (1.0 + 2.0 * math.fsum(low.tolist())) * DOWN
    both = [np.concatenate([right[::-1], [1.0], right]) for right in (low, high)]
    return Law(both[0] / most * DOWN, both[1] / least * UP, 2.0 * tail / least * UP)


def _skellam_reach(variance: float) -> int:
    """Return about where the mass falls below the least: -log P(k) is about k asinh(k/x) + x - sqrt(x^2 + k^2)."""
    reach = 1.0
    while reach * math.asinh(reach / variance) + variance - math.hypot(variance, reach) < DEPTH:
        reach *= 1.01
    return math.ceil(reach)


def skellam_outcomes(variance: float) -> float:
    """Return about how many outcomes `skellam` has."""
    return 2.0 * _skellam_reach(variance) + 1.0


@lru_cache(maxsize=32)
def upper_pair(law: Law, shift: int) -> core.Pair:
    """Return a pair that dominates the law moved by `shift` and the law, in both directions."""
    return core.privacy_profile(*_profile(law, shift), True)[0][0]


def _profile(law: Law, shift: int) -> tuple[list[float], list[float], list[float]]:
    """Return increasing epsilons from 0 on, and upper bounds of delta there, twice.

    At an epsilon that is not below the loss of k, {k + 1, ...} has all outcomes of larger losses. Those of smaller ones in it
    are off by no more than the loss of k is known.
    """
    first, last = law.reach + shift // 2, 2 * law.reach  # positions k + reach, from the last loss that is at most 0
    if first >= last:
        return [0.0], [1.0], [1.0]
    at = np.unique(np.linspace(first, last, MOST_POINTS).astype(np.int64))
    logs = [np.log(masses) for masses in (law.high[at - shift], law.low[at - shift], law.high[at], law.low[at])]
    rounding = FUNCTIONS * (1.0 + np.abs(logs[0]) + np.abs(logs[3]))
    epsilons = logs[0] - logs[3] + rounding
    epsilons[0] = 0.0
    known = logs[0] - logs[1] + logs[2] - logs[3] + 2.0 * rounding
    keep = (epsilons <= LARGEST_EPSILON) & np.append(True, np.diff(np.maximum.accumulate(epsilons)) > 0.0)
    deltas = deltas_beyond(law, shift, at[keep], epsilons[keep], known[keep]).tolist()
    return epsilons[keep].tolist(), deltas, deltas


def deltas_beyond(law: Law, shift: int, at: NDArray[np.int64], epsilons: Array, known: Array) -> Array:
    """Return upper bounds of delta at increasing epsilons, from the outcomes beyond the positions `at`.

    All losses above epsilon must be beyond; those beyond that are not may be smaller than epsilon by `known`.
    """
    error = 2.0 * law.low.size * UNIT
    a = np.append(_from_above(law.high), 0.0)[at - shift + 1] * (1.0 + error) * np.exp(known) + law.missing
    b = np.append(_from_above(law.low), 0.0)[at + 1] * (1.0 - error)
    least = np.exp(epsilons) * (1.0 - FUNCTIONS * (1.0 + epsilons)) * b
    deltas = np.minimum(np.maximum(a - least, 0.0) + 2.0 * UNIT * a, 1.0)
    return np.minimum.accumulate(deltas)  # an upper bound at one epsilon is one at every larger


def _from_above(masses: Array) -> Array:
    """Return the sums over each position and all beyond it."""
    return np.asarray(np.cumsum(masses[::-1])[::-1])


@lru_cache(maxsize=32)
def lower_pair(law: Law, shift: int) -> core.Pair:
    """Return a pair for lower ends, of which what is seen is merged and what is cut off is left out."""
    if shift >= law.low.size:
        return core.nothing()
    starts = np.unique(np.linspace(0, law.low.size - shift - 1, MOST_POINTS).astype(np.int64))
    error = law.low.size * UNIT
    moved, still = slice(0, law.low.size - shift), slice(shift, law.low.size)  # the outcomes that both have
    p_low, q_low = (np.add.reduceat(law.low[part], starts) * (1.0 - error) for part in (moved, still))
    p_high, q_high = (np.add.reduceat(law.high[part], starts) * (1.0 + error) for part in (moved, still))
    return core.discrete_pairs(p_low.tolist(), q_high.tolist(), q_low.tolist(), p_high.tolist())
