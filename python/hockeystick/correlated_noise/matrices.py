"""The most that one record moves C x, where C is a strategy matrix and the record moves some rows of x by vectors of norm at most 1.

With X = C'C and the record in the steps of a pattern, the squared distance is the sum of X_ij <u_i, u_j> over the pattern, at
most that of |X_ij| (Choquette-Choo et al. 2022, arXiv 2211.06530), and attained if these X_ij are non-negative. Patterns whose
steps are at least b apart are too many to list. Three bounds, none of which needs a sign:

- Row by row (Choquette-Choo et al. 2023, arXiv 2306.08153): with u_i the largest sum of |X_ij| over j of a pattern that holds i,
  the sum is at most that of u_i over a pattern, and largest sums over patterns are dynamic programmes. Exact where columns
  at least b apart are orthogonal: then u_i = X_ii.
- By position: the m-th step of a pattern, from 0, is at m b or later, and the l-th and the m-th are at least (m - l) b
  apart. So the pair counts at most the largest |X_ij| with j >= m b and j - i >= (m - l) b. Exact where |X| falls with both and is
  X: a Toeplitz matrix with coefficients that are non-negative and never rise (Kalinin and Lampert 2024, arXiv 2405.13763).
- The second bound in closed form for Toeplitz matrices: X_ij is a partial sum of c_s c_(s+j-i), of min(p - (j - i), n - j) terms.
  Where coefficients are non-negative and never rise it is the distance of the pattern that begins at once.

The lower end is the distance of one pattern whose vectors are equal. Rounding is added to the upper end and taken off the lower one, in units of what the
same sum has with |C|; of the columns of k steps that is at most k times the longest, and so k times the upper end.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import Array
from hockeystick._numeric.rounding import DOWN, UNIT
from hockeystick.correlated_noise.participation import Pattern

MOST_WORK = 4e9  # some ten seconds, and half a gigabyte for a dense matrix


class Ends(NamedTuple):
    """Both ends of the sensitivity, and a pattern that attains the lower one."""

    lower: float
    upper: float
    steps: NDArray[np.int64]
    method: str


def dense(strategy: Array, pattern: Pattern) -> Ends:
    """Return the sensitivity of a matrix whose columns are the steps."""
    rows, num_steps = strategy.shape
    picks = pattern.most if pattern.limits(num_steps) else 1
    limit_work(num_steps * rows if pattern.most == 1 else num_steps**2 * (rows / 10 + picks))
    scale = float(np.abs(strategy).max())
    scaled = strategy / scale  # a square neither overflows nor, next to 1, matters if it underflows
    if pattern.most == 1:
        squares = (scaled**2).sum(axis=0)
        square, candidates, method = float(squares.max()), [squares.argmax(keepdims=True)], "longest column"
    else:
        gram = np.abs(scaled.T @ scaled)
        gram += rows * UNIT * (gram if (scaled >= 0).all() else np.abs(scaled).T @ np.abs(scaled))
        square, candidates, method = (_cyclic if pattern.cyclic else _separated)(gram, pattern)
    lengths = [float(np.linalg.norm(scaled[:, steps].sum(axis=1))) for steps in candidates]
    best = int(np.argmax(lengths))
    upper = _root_up(square, rows + 2 * num_steps)
    lower = _lower(lengths[best], upper, rows, len(candidates[best]), cancels=bool((scaled < 0).any()))
    return Ends(lower * scale * DOWN, _times_up(upper, scale), candidates[best], method)


def _cyclic(gram: Array, pattern: Pattern) -> tuple[float, list[NDArray[np.int64]], str]:
    """Return the largest squared sensitivity of all patterns, and the one that has it."""
    candidates = [np.arange(first, len(gram), pattern.separation) for first in range(pattern.separation)]
    sums = [float(gram[np.ix_(steps, steps)].sum()) for steps in candidates]
    return max(sums), [candidates[int(np.argmax(sums))]], "all patterns"


def _separated(gram: Array, pattern: Pattern) -> tuple[float, list[NDArray[np.int64]], str]:
    """Return the least bound of the squared sensitivity, and patterns that may attain it."""
    steps, (_, apart, most) = np.arange(len(gram)), pattern
    beside = np.where(np.abs(np.subtract.outer(steps, steps)) >= apart, gram, 0.0)
    others = most - 1 if pattern.limits(len(gram)) else most
    weights = np.diagonal(gram) + _last(_largest_sums(beside, apart, others))[:, -1]
    square = float(_last(_largest_sums(weights[np.newaxis], apart, most))[0, -1])
    candidates = [_largest_pattern(weights, apart, most), pattern.earliest()]
    if not beside.any():
        return square, candidates, "orthogonal columns"
    by_position = _by_position(gram, pattern)
    if by_position <= square:
        return by_position, candidates, "largest products by position"
    return square, candidates, "dynamic programme over rows"


def _largest_sums(weights: Array, apart: int, most: int) -> Iterator[Array]:
    """Yield, for 0 to `most` picks, the largest sum of each row up to each column; only once if as many as fit are allowed."""
    num_steps = weights.shape[1]
    if most * apart >= num_steps:
        best = np.empty_like(weights)
        for i in range(num_steps):
            taken = weights[:, i] + (best[:, i - apart] if i >= apart else 0.0)
            best[:, i] = np.maximum(taken, best[:, i - 1]) if i else taken
        yield best
        return
    best = np.zeros_like(weights)
    yield best
    for _ in range(most):
        taken = weights.copy()
        taken[:, apart:] += best[:, :-apart]
        best = np.maximum.accumulate(taken, axis=1)
        yield best


def _last(tables: Iterator[Array]) -> Array:
    return deque(tables, maxlen=1)[0]


def _largest_pattern(weights: Array, apart: int, most: int) -> NDArray[np.int64]:
    """Return the steps whose weights have the largest sum."""
    tables = list(_largest_sums(weights[np.newaxis], apart, most))
    steps: list[int] = []
    i = len(weights) - 1
    while i >= 0 and len(steps) < most:
        best = tables[max(0, len(tables) - 1 - len(steps))][0]
        if i and best[i] == best[i - 1]:
            i -= 1
        else:
            steps.append(i)
            i -= apart
    return np.array(steps[::-1], np.int64)


def _by_position(gram: Array, pattern: Pattern) -> float:
    num_steps, (_, apart, most) = len(gram), pattern
    later = np.arange(num_steps)
    by_gap = np.zeros((num_steps, num_steps))  # at [gap, later]
    for gap in range(num_steps):
        by_gap[gap, gap:] = gram[later[gap:] - gap, later[gap:]]
    alone = np.maximum.accumulate(by_gap[0, ::-1])[::-1]
    largest = np.maximum.accumulate(np.maximum.accumulate(by_gap[::-1, ::-1], axis=0), axis=1)[::-1, ::-1]
    steps = pattern.earliest()
    pairs = (float(largest[n * apart, steps[n:]].sum()) for n in range(1, most))
    return float(alone[steps].sum()) + 2 * math.fsum(pairs)


def toeplitz(coefficients: Array, num_steps: int, pattern: Pattern) -> Ends:
    """Return the sensitivity of the lower triangular matrix with these coefficients on its diagonals."""
    coefficients = coefficients[:num_steps]
    if not coefficients.any():
        msg = f"strategy must have a coefficient that is not zero among its first {num_steps}, the steps"
        raise ValueError(msg)
    bands, (_, apart, most) = len(coefficients), pattern
    scale = float(np.abs(coefficients).max())
    c = coefficients / scale
    falling = most > 1 and bool((c >= 0).all() and (np.diff(c) <= 0).all())
    limit_work((bands**2 if most > 1 and not falling else 0) + most * bands + 100 * num_steps)
    steps, moved = pattern.earliest(), np.zeros(num_steps)
    for step in steps:
        moved[step : step + bands] += c[: num_steps - step]
    if falling:  # the pattern that begins at once attains the bound by position: no other products need be looked at
        upper = _root_up(float(moved @ moved), num_steps + 2 * most)
    else:
        upper = _root_up(_products_by_position(c, num_steps, pattern), bands + most)
    method = (
        "longest column" if most == 1 else "orthogonal columns" if bands <= apart else "largest products by position"
    )
    lower = _lower(float(np.linalg.norm(moved)), upper, num_steps, len(steps), cancels=bool((c < 0).any()))
    return Ends(lower * scale * DOWN, _times_up(upper, scale), steps, method)


def _products_by_position(c: Array, num_steps: int, pattern: Pattern) -> float:
    """Return the bound by position of the squared sensitivity of a Toeplitz matrix."""
    bands, (cyclic, apart, most) = len(c), pattern
    terms = np.minimum(bands, num_steps - pattern.earliest())  # of the products of the column at a step
    running, square = np.zeros(bands), 0.0  # by number of terms: the largest |X| of this gap, or a larger one
    for gap in range(bands - 1 if most > 1 else 0, -1, -1):
        if cyclic and gap % apart:
            continue
        products = c[: bands - gap] * c[gap:]
        sums = np.abs(np.cumsum(products)) + bands * UNIT * np.cumsum(np.abs(products))
        sums = np.pad(np.maximum.accumulate(sums), (0, gap), mode="edge")
        running = np.maximum(running, sums) if gap and not cyclic else sums
        if gap % apart == 0 and gap // apart < most:
            pairs = float(running[terms[gap // apart :] - 1].sum())
            square += pairs if gap == 0 else 2 * pairs
    return square


def _root_up(square: float, additions: int) -> float:
    """Return the root of a sum of non-negative terms, above the rounding of so many additions."""
    return math.sqrt(square * (1 + (additions + 16) * UNIT)) * (1 + UNIT)


def _lower(length: float, upper: float, rows: int, columns: int, *, cancels: bool) -> float:
    """Return the computed length of a sum of columns, below the rounding of its entries and their squares."""
    rounding = (rows + columns + 16) * UNIT * (columns * upper if cancels else length)
    return max(0.0, min(length - rounding, upper))


def _times_up(upper: float, scale: float) -> float:
    return math.nextafter(upper * scale, math.inf)


def limit_work(work: float) -> None:
    """Refuse what would take much more than ten seconds."""
    if work > MOST_WORK:
        msg = f"strategy must need at most {MOST_WORK:.0e} multiplications, not {work:.0e}: fewer steps, bands or participations"
        raise ValueError(msg)
