"""How likely a record took part in each step, given what was released before: bounds that fail with a small probability only.

Everything is in units of the noise, and by `hockeystick.correlated_noise.conditional` no entry of C is negative and all updates are 1. Let c_j be the column of
step j without the rows that are still to come, X_jl the product of c_j and c_l, and y the rows released. Given y and whether the record
was in each step other than j, the log-odds that it was in step j are, by Bayes,

    log(p/(1-p)) + <y, c_j> - X_jj/2 - (sum of X_jl over those other steps that it was in),

at most what they are without the last term. With the record, <y, c_j> is S + sqrt(X_jj) xi: xi a standard normal, and S the sum of X_jl over the
steps that it was in. Without it S = 0, and less is exceeded. The logarithm of the Gaussian tail Q is concave, with a slope of at least -h(x),
h(x) = (x + sqrt(x^2 + 4))/2 (Birnbaum 1942), so

    P(<y, c_j> > x sqrt(X_jj)) = E Q(x - S/sqrt(X_jj)) <= Q(x) E exp(h(x) S/sqrt(X_jj)) = Q(x) prod_l (1 - p + p exp(h(x) X_jl/sqrt(X_jj))).

An x is sought at which this is the probability that may fail; the inequality, checked at the x that is used, is what counts, not how x was found.
"""

from __future__ import annotations

import math

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array
from hockeystick._numeric.rounding import GAUSSIAN_TAIL, UP

HALVINGS = 24
PRODUCTS = 1.0 + 1e-12  # by which products of columns are rounded up: more than the rounding of 1000 terms
ODDS = 1e-11  # more than what that takes from the log-odds, over the sum of the sizes of their terms


def posterior_bounds(products: Array, squares: Array, rate: float, failure: float) -> Array:
    """Return for each step a bound of the probability that a record was in it, whatever else it was in.

    Parameters
    ----------
    products : ndarray
        X_jl, one row for each step j, times `PRODUCTS`.
    squares : ndarray
        X_jj, likewise; where they are 0 no row has told anything of the step.
    rate : float
        p, in [0, 1].
    failure : float
        The probability with which each bound may fail.
    """
    chances = np.full(squares.shape, rate)
    known = squares > 0
    if rate in (0.0, 1.0) or not known.any():
        return chances
    roots = np.sqrt(squares[known])
    shifts = products[known] / roots[:, np.newaxis]
    x = _exceeded(shifts, rate, failure)
    prior = math.log(rate) - math.log1p(-rate)
    odds = prior + x * roots - squares[known] / 2.0
    odds += ODDS * (abs(prior) + x * roots + squares[known])
    with np.errstate(over="ignore"):
        chances[known] = np.minimum(1.0, UP / (1.0 + np.exp(-odds)))
    return chances


def _exceeded(shifts: Array, rate: float, failure: float) -> Array:
    """Return an x for each row at which the inequality holds; infinity if none was found."""
    high = 2.0 * shifts.sum(axis=1) + 2.0 * math.sqrt(-2.0 * math.log(failure)) + 2.0
    high = np.where(_log_exceeds(high, shifts, rate) <= math.log(failure), high, np.inf)
    low, reached = np.zeros_like(high), np.where(np.isinf(high), 0.0, high)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + reached)
        good = _log_exceeds(middle, shifts, rate) <= math.log(failure)
        low, reached = np.where(good, low, middle), np.where(good, middle, reached)
    return np.where(np.isinf(high), high, reached)


def _log_exceeds(x: Array, shifts: Array, rate: float) -> Array:
    """Return an upper bound of the logarithm of the right-hand side above."""
    tail = np.asarray(core.log_q(x), dtype=np.float64)
    slope = 0.5 * (x + np.sqrt(x * x + 4.0)) * UP
    terms = np.logaddexp(math.log1p(-rate), math.log(rate) + slope[:, np.newaxis] * shifts)
    sums = np.maximum(terms, 0.0).sum(axis=1)
    bound: Array = tail + sums + (2 * shifts.shape[1] + 16) * GAUSSIAN_TAIL * (sums - tail + 1.0)
    return bound
