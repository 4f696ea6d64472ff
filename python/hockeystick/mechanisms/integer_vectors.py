"""By which vectors of integers a query can move, and a pair that dominates discrete Gaussian noise under all of them.

Moved by s, the losses of discrete Gaussian noise X of scale sigma on every coordinate are (2 T - |s|^2)/(2 sigma^2), where T = s.X under the noise and
T + |s|^2 under the noise moved: a vector is as good as the one integer T, moved by |s|^2. Noise that is log-concave leaks no less
where a coordinate moves by more, so that the vectors that cannot be made larger are all that count. None of them is the worst: at sigma = 1
and |s|^2 = 4, delta is larger for (2) at epsilon 1 and for (1, 1, 1, 1) at epsilon 2. Their largest delta at each epsilon is convex in
e^epsilon, and so the curve of a pair, which dominates all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array
from hockeystick._numeric.rounding import FUNCTIONS, SHORT_SUM
from hockeystick.mechanisms import integer_laws
from hockeystick.mechanisms.integer_laws import LARGEST_EPSILON, MOST_POINTS, Law

Vector = tuple[int, ...]


def squared_norm(sensitivity: float) -> int:
    """Return the largest squared norm of a vector of integers; a sensitivity that is a rounded square root counts as the root."""
    return math.floor(sensitivity * sensitivity * (1.0 + SHORT_SUM))


def first_vector(squared: int, dimension: int | None) -> Vector:
    """Return a vector of integers of at most this squared norm: each coordinate as large as it can be, at most eight of them."""
    parts: list[int] = []
    while squared and len(parts) < min(dimension or 8, 8):
        parts.append(math.isqrt(squared))
        squared -= parts[-1] ** 2
    return tuple(parts)


def largest_vectors(squared: int, dimension: int | None) -> list[Vector]:
    """Return all vectors, not falling and without zeros, of which no coordinate can be larger."""
    return [
        vector
        for vector in _vectors(squared, dimension or squared, 1)
        if _cannot_grow(vector, squared, dimension or squared)
    ]


def _vectors(left: int, places: int, least: int) -> Iterator[Vector]:
    yield ()
    if places:
        for part in range(least, math.isqrt(left) + 1):
            for rest in _vectors(left - part * part, places - 1, part):
                yield (part, *rest)


def _cannot_grow(vector: Vector, squared: int, dimension: int) -> bool:
    left = squared - sum(part * part for part in vector)
    return (left == 0 or len(vector) == dimension) and left < 2 * min(vector) + 1


@lru_cache(maxsize=16)
def dominating_pair(sigma: float, squared: int, dimension: int | None) -> core.Pair:
    """Return the pair whose delta is the largest of all vectors', on chords between at most `MOST_POINTS` epsilons."""
    vectors = largest_vectors(squared, dimension)
    epsilons = _losses(sigma, vectors)
    deltas = np.maximum.reduce([_deltas(sigma, vector, epsilons) for vector in vectors]).tolist()
    return core.privacy_profile(epsilons.tolist(), deltas, deltas, True)[0][0]


def _losses(sigma: float, vectors: list[Vector]) -> Array:
    """Return epsilons just above the losses of all outcomes from 0 on, or as many of them, where the curves have kinks.

    At a loss that is rounded down its outcome still counts, and that much more than all beyond where the noise is narrow.
    """
    variance = sigma * sigma
    found: list[Array] = [np.array([0.0])]
    for norm in {sum(part * part for part in vector) for vector in vectors}:
        last = math.ceil(math.sqrt(2.0 * integer_laws.DEPTH * norm) * sigma) + norm
        kinks = (2.0 * np.arange(norm // 2 + 1, last + 1, dtype=np.float64) - norm) / (2.0 * variance)
        found.append(kinks + FUNCTIONS * (1.0 + kinks + norm / variance))
    losses: Array = np.unique(np.concatenate(found))
    losses = losses[losses <= LARGEST_EPSILON]
    return losses[np.unique(np.linspace(0, losses.size - 1, MOST_POINTS).astype(np.int64))]


def _deltas(sigma: float, vector: Vector, epsilons: Array) -> Array:
    """Return upper bounds of delta at these epsilons, where the noise moves by a vector."""
    law, norm = law_of_product(sigma, vector), sum(part * part for part in vector)
    last = np.floor(epsilons * sigma * sigma + 0.5 * norm)  # T up to which losses are at most epsilon, up to rounding
    at = np.minimum(last, law.reach).astype(np.int64) + law.reach
    return integer_laws.deltas_beyond(law, norm, at, epsilons, 8.0 * FUNCTIONS * (1.0 + epsilons + norm / sigma**2))


def law_of_product(sigma: float, vector: Vector) -> Law:
    """Return the law of T = s.X."""
    result: Law | None = None
    for part in sorted(set(vector)):
        law = _stretched(integer_laws.sum_of_discrete_gaussians(sigma, vector.count(part)), part)
        result = law if result is None else integer_laws.convolved(result, law)
    assert result is not None
    return result


def _stretched(law: Law, factor: int) -> Law:
    """Return the law of a multiple."""
    size = factor * (law.low.size - 1) + 1
    both = [np.zeros(size), np.zeros(size)]
    for to, masses in zip(both, (law.low, law.high), strict=True):
        to[::factor] = masses
    return Law(both[0], both[1], law.missing)
