"""The parameter of Gaussian differential privacy that bounds the membership tests at a range of rates, from certified deltas."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from hockeystick._checks import Array
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.privacy_curve import false_negative_bounds, refine, true_positive_bounds

NEAR = 64  # rates near which lines are chosen
# Rounds of refining the pieces of a range, pieces at most, and how close both ends of mu need be.
ROUNDS, MOST, CLOSE = 40, 4000, 1e-6
CHUNK = 500  # rates for which all lines are computed at once
MARGIN = 1e-12  # error of normal quantiles, relative, and of their difference


def largest_mu(accountant: Accountant, low: float, high: float) -> float:
    """Return mu for which the curve of mu-GDP lies below the trade-off function at all rates in [low, high].

    The range is cut into pieces. On each, one line lies below the trade-off function, and the convex curve of mu-GDP lies
    below that line if it does at both ends: there mu is -q(fpr) - q(fnr), q the normal quantile. Any pieces and any
    lines give an upper end; those that give the largest are cut in two until the curve itself has nearly as large a mu.
    """
    if accountant.delta(0.0) == 0.0:
        return 0.0
    if accountant.delta(math.inf) > low:
        return math.inf
    table = refine(accountant._composition().curve(), np.geomspace(low, high, NEAR))
    ends = np.unique(np.concatenate([np.geomspace(low, high, 4 * NEAR), [low, high]]))
    for _ in range(ROUNDS):
        on_pieces = _mu_on_pieces(table, ends)
        largest = float(on_pieces.max())
        reached = float(_mu(table, ends).max())
        wide = on_pieces > reached + CLOSE
        if not wide.any() or not math.isfinite(largest) or ends.size > MOST:
            break
        ends = np.unique(np.concatenate([ends, np.sqrt(ends[:-1] * ends[1:])[wide]]))
    return largest


def _mu(table: Array, rates: Array) -> Array:
    """Return for each rate the least mu whose curve goes through the best line's point or above it, rounded up."""
    parts = [rates[first : first + CHUNK] for first in range(0, rates.size, CHUNK)]
    return np.concatenate([_rounded_up(_quantiles(table, part).min(axis=1), part) for part in parts])


def _mu_on_pieces(table: Array, ends: Array) -> Array:
    """Return mu for each piece, by the line that is best in its middle."""
    left, right = (ends[:-1], ends[1:]) if ends.size > 1 else (ends, ends)
    found = []
    for first in range(0, left.size, CHUNK):
        pieces = left[first : first + CHUNK], right[first : first + CHUNK]
        middle, *sides = (_quantiles(table, rates) for rates in (np.sqrt(pieces[0] * pieces[1]), *pieces))
        best = middle.argmin(axis=1)[:, None]
        found.append(
            [_rounded_up(np.take_along_axis(q, best, 1)[:, 0], rates) for rates, q in zip(pieces, sides, strict=True)]
        )
    largest: Array = np.concatenate([np.maximum(*both) for both in found])
    return largest


def _quantiles(table: Array, rates: Array) -> Array:
    """Return the normal quantile of each line at each rate, from that side of 1/2 on which it has digits."""
    tpr, fnr = (
        np.concatenate([*lines(table, rates[:, None])], axis=1)
        for lines in (true_positive_bounds, false_negative_bounds)
    )
    quantiles: Array = np.where(tpr < 0.5, ndtri(tpr), -ndtri(fnr))
    return quantiles


def _rounded_up(quantiles: Array, rates: Array) -> Array:
    """Return mu, the quantile of the true-positive rate less that of the false-positive rate."""
    least = ndtri(rates)
    mu: Array = quantiles - least + MARGIN * (1.0 + np.abs(quantiles) + np.abs(least))
    return mu
