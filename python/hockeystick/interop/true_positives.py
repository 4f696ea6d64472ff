"""True-positive rates of membership tests, and the Gaussian DP parameter that bounds them, from certified deltas."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from hockeystick._checks import Array
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.trade_off import tangents, tangents_near

NEAR = 64  # rates near which tangents are chosen; beyond, they are so many that more would change nothing
ROUNDS, MOST, CLOSE = (
    40,
    4000,
    1e-6,
)  # of refining the pieces of a range, pieces at most, and how close both ends of mu need be
CHUNK = 500  # rates for which all tangents are computed at once
MARGIN = 1e-12  # error of normal quantiles, relative, and of their difference


def upper_ends(accountant: Accountant, rates: Array) -> Array:
    """Return 1 less the trade-off function, rounded up; where nothing leaks the rates themselves."""
    if rates.size == 0 or accountant.delta(0.0) == 0.0:
        return rates.copy()
    table = _table(accountant, np.unique(rates[(rates > 0.0) & (rates < 1.0)]))
    missed = _false_negatives(table, rates.ravel())
    missed[rates.ravel() == 0.0] = accountant.trade_off(0.0)
    return np.minimum(np.nextafter(1.0 - missed, 2.0), 1.0).reshape(rates.shape)


def largest_mu(accountant: Accountant, low: float, high: float) -> float:
    """Return mu for which the curve of mu-GDP lies below the trade-off function at all rates in [low, high].

    The range is cut into pieces. On each, one tangent lies below the trade-off function, and the convex curve of mu-GDP lies
    below that tangent if it does at both ends: there mu is -q(fpr) - q(fnr), q the normal quantile. Any pieces and any
    tangents give an upper end; those that give the largest are cut in two until the curve itself has nearly as large a mu.
    """
    if accountant.delta(0.0) == 0.0:
        return 0.0
    if accountant.delta(math.inf) > low:
        return math.inf
    table = _table(accountant, np.geomspace(low, high, NEAR))
    ends = np.unique(np.concatenate([np.geomspace(low, high, 4 * NEAR), [low, high]]))
    for _ in range(ROUNDS):
        on_pieces = _mu_on_pieces(table, ends)
        largest = float(on_pieces.max())
        reached = float(_mu(ends, _false_negatives(table, ends)).max())
        wide = on_pieces > reached + CLOSE
        if not wide.any() or not math.isfinite(largest) or ends.size > MOST:
            break
        ends = np.unique(np.concatenate([ends, np.sqrt(ends[:-1] * ends[1:])[wide]]))
    return largest


def _table(accountant: Accountant, rates: Array) -> Array:
    chosen = rates[np.unique(np.linspace(0, rates.size - 1, NEAR).round().astype(int))] if rates.size > NEAR else rates
    return tangents_near(chosen, accountant.delta, accountant.epsilon)  # type: ignore[arg-type]


def _false_negatives(table: Array, rates: Array) -> Array:
    """Return the largest tangent at every rate."""
    parts = [rates[first : first + CHUNK] for first in range(0, rates.size, CHUNK)]
    return np.concatenate([tangents(table, part[:, None]).max(axis=(0, 2)) for part in parts])


def _mu_on_pieces(table: Array, ends: Array) -> Array:
    """Return mu for each piece, by the tangent that is best in its middle."""
    left, right = (ends[:-1], ends[1:]) if ends.size > 1 else (ends, ends)
    found = []
    for first in range(0, left.size, CHUNK):
        pieces = left[first : first + CHUNK], right[first : first + CHUNK]
        middle, *sides = (_lines(table, rates) for rates in (np.sqrt(pieces[0] * pieces[1]), *pieces))
        best = middle.argmax(axis=1)[:, None]
        found.append(
            [_mu(rates, np.take_along_axis(lines, best, 1)[:, 0]) for rates, lines in zip(pieces, sides, strict=True)]
        )
    largest: Array = np.concatenate([np.maximum(*both) for both in found])
    return largest


def _lines(table: Array, rates: Array) -> Array:
    """Return all tangents at each rate."""
    steep, flat = tangents(table, rates[:, None])
    return np.concatenate([steep, flat], axis=1)


def _mu(fpr: Array, fnr: Array) -> Array:
    """Return the least mu whose curve goes through the point or below it, rounded up."""
    quantiles = np.stack([-ndtri(fpr), -ndtri(fnr)])
    mu: Array = quantiles.sum(axis=0) + MARGIN * (1.0 + np.abs(quantiles).sum(axis=0))
    return mu
