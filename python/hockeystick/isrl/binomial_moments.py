"""Moments of the privacy loss of a sum of vectors with binomial noise, at the worst pair of records.

Setting. Coordinate t of a message lies in [0, g]; it is rounded at random to one of the integers beside it, so that its mean is t,
and B = N b noise bits of probability p are added to the sum of all messages. Two records have coordinates t and t' with
|t - t'|_2 <= g. Let the adversary see the other messages' sum and the uniform numbers u_j by which both records are rounded: that
only adds to what is known. Given these, coordinate j is Z_j or Z_j + s_j with Z_j binomial and an integer shift s_j, which is m or m + 1
in size, the latter with probability f, where |t_j - t'_j| = m + f. Coordinates are independent.

Moments. For an order a > 0 let M(m) be the larger, over both signs of the shift, of E[(P(Z)/P(Z -+ m))^a; low <= Z <= high], made increasing
in m. The truncated moment of the whole loss is at most the product over j of (1 - f_j) M(m_j) + f_j M(m_j + 1), and adaptive rounds
multiply. With h(v) the logarithm of one factor at |t_j - t'_j|^2 = v, the sum of h(v_j) over v_j >= 0 of sum at most g^2 is at most
c g^2 + d sup_v (h(v) - c v) for every c >= 0 (Lagrange). h is concave between squares of neighbouring integers, so that the supremum is that of
closed forms, one for each m; c is searched for, and any c is valid.

Delta. Let T bound the probability that any Z_j of any round is cut off. Since (1 - e^{e - x})_+ <= K e^{a(x - e)} with
K = a^a/(1 + a)^(1 + a), delta(e) <= T + K e^{-a e} prod M.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

from hockeystick._checks import Array
from hockeystick._numeric.rounding import UNIT, UP
from hockeystick._numeric.search import last_whole

__all__ = ["Window", "log_moment_of_vectors", "window"]

LARGEST_STEP = 300.0  # of log M between neighbouring shifts: orders beyond are of no use
MARGIN = 1e-12  # relative: for a maximiser that is rounded, and products of few terms


class Window(NamedTuple):
    """The logarithms of binomial masses, unnormalised, where shifted ones are compared, and what is cut off."""

    logs: Array  # of low - levels, ..., high + levels
    levels: int
    tail: float  # an upper bound of the probability of falling below low or above high
    error: float  # of each logarithm, absolute


def _chernoff(trials: int, probability: float, count: int) -> float:
    """Return an upper bound of P(Z <= count) below the mean, of P(Z >= count) above it."""
    share = count / trials
    distance = float(rel_entr(share, probability) + rel_entr(1.0 - share, 1.0 - probability))
    return math.exp(-max(trials * (distance - 8.0 * UNIT), 0.0)) * UP


def window(trials: int, probability: float, levels: int, tail: float) -> Window | None:
    """Return the window outside of which at most `tail` lies on either side; None if the shifts do not fit into it."""
    mean = trials * probability
    below = last_whole(lambda k: _chernoff(trials, probability, int(k)) - tail, max(int(mean) - 1, 0))
    above = last_whole(lambda k: _chernoff(trials, probability, trials - int(k)) - tail, max(int(trials - mean) - 1, 0))
    low, high = max(below, levels), min(trials - above, trials - levels)
    if not low < mean < high:
        return None
    cut = _chernoff(trials, probability, low - 1) + _chernoff(trials, probability, high + 1)
    k = np.arange(low - levels, high + levels, dtype=np.float64)
    steps = np.log((trials - k) / (k + 1.0) * (probability / (1.0 - probability)))
    mode = int(np.argmax(steps < 0.0)) if steps[-1] < 0.0 else steps.size
    logs = np.concatenate([-np.cumsum(steps[:mode][::-1])[::-1], [0.0], np.cumsum(steps[mode:])])
    error = UNIT * steps.size * (4.0 + float(-logs.min()))
    return Window(logs, levels, cut, error)


def _log_moments(cut: Window, order: float) -> Array:
    """Return upper bounds of log M(0), ..., log M(levels), increasing."""
    logs, g = cut.logs, cut.levels
    kept = logs[g:-g]
    total = math.log(float(np.exp(logs).sum()))  # of at most all masses, so that they are divided by too little
    found = np.zeros(g + 1)
    with np.errstate(over="ignore"):
        for m in range(1, g + 1):
            for shifted in (logs[g - m : logs.size - g - m], logs[g + m : logs.size - g + m]):
                terms = (1.0 + order) * kept - order * shifted
                top = float(terms.max())
                found[m] = max(found[m], top + math.log(float(np.exp(terms - top).sum())) - total)
    found[1:] += (1.0 + 2.0 * order) * cut.error + 3.0 * UNIT * logs.size + MARGIN * np.abs(found[1:])
    return np.maximum.accumulate(found)


def log_moment_of_vectors(cut: Window, order: float, dimension: int) -> float:
    """Return an upper bound of the logarithm of one round's truncated moment, over all pairs of records."""
    moments = _log_moments(cut, order)
    rise = np.diff(moments)
    if rise.max() > LARGEST_STEP:
        return math.inf
    m = np.arange(cut.levels, dtype=np.float64)
    k = np.expm1(rise)
    square = float(cut.levels) ** 2 * (1.0 + 1e-9)  # records are as long as the clip norm but for rounding

    def bound(log_price: float) -> float:
        price = math.exp(log_price)
        root = np.hypot(1.0 - m * k, k * math.sqrt(2.0 / price))
        f = np.clip(2.0 * (k / (2.0 * price) - m) / (1.0 + m * k + root), 0.0, 1.0)
        gains = moments[:-1] + np.log1p(f * k) - price * (m + f) ** 2
        rounding = 16.0 * UNIT * (float(moments[-1]) + price * square)
        return (price * square + dimension * (max(float(gains.max()), 0.0) + rounding)) * (1.0 + MARGIN)

    middle = math.log(max(float(moments[-1]), 1e-300) / square)
    best = minimize_scalar(bound, bounds=(middle - 5.0, middle + 10.0), method="bounded", options={"xatol": 1e-4})
    return min(float(best.fun), dimension * float(moments[-1]) * UP)
