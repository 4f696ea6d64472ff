"""Noise on vectors of integers of which the Euclidean sensitivity is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import count_scalar, scalar
from hockeystick._numeric.rounding import UP
from hockeystick.mechanisms import integer_curvature, integer_smoothing
from hockeystick.mechanisms.base import Adjacency, CountedPair
from hockeystick.mechanisms.base import sensitivity as times_moved
from hockeystick.mechanisms.integer_vectors import dominating_pair, first_vector, largest_vectors, squared_norm
from hockeystick.mechanisms.renyi_bounded import RenyiMechanism

MOST_ENUMERATED = 64  # squared norm, of a replaced record; 220 vectors
LARGEST_ENUMERATED_SIGMA = 16.0
WIDE = 1e3  # a sigma beyond which the table of a coordinate takes a second


class IntegerNoise(RenyiMechanism):
    """Noise on each coordinate of a vector of integers, independently, all of one log-concave law.

    Its Renyi divergences are bounded always. Where a pair is known too, for both adjacencies, an instance has `_has_pair`.
    """

    sensitivity: float
    dimension: int | None

    def _check_query(self) -> None:
        moved = scalar("sensitivity", self.sensitivity, lambda x: 1.0 <= x <= 1e9, "lie in [1, 1e9]")
        object.__setattr__(self, "sensitivity", moved)
        if self.dimension is not None:
            object.__setattr__(self, "dimension", count_scalar("dimension", self.dimension))
        if self._knows_pair():
            object.__setattr__(self, "_has_pair", True)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [
            "the query is a vector of integers, and its noise is sampled exactly, as integers, afresh for every coordinate"
        ]

    def _squared(self, adjacency: Adjacency) -> int:
        return squared_norm(times_moved(adjacency) * self.sensitivity)

    def _coordinates(self, adjacency: Adjacency) -> int:
        """Return how many coordinates can move at most."""
        squared = self._squared(adjacency)
        return squared if self.dimension is None else min(self.dimension, squared)

    def _rho(self, adjacency: Adjacency) -> float:
        return 0.5 * self._curvature() * self._squared(adjacency) * UP

    def _divergence(self, order: float, adjacency: Adjacency) -> float:
        return integer_curvature.divergence(self._rho(adjacency), order)

    def _attained(self, adjacency: Adjacency) -> tuple[int, ...]:
        """Return a vector by which the query may move: where a record is replaced, one vector and its opposite."""
        vector = first_vector(self._squared("add_or_remove"), self.dimension)
        return tuple(int(times_moved(adjacency)) * part for part in vector)

    def _knows_pair(self) -> bool:
        raise NotImplementedError

    def _curvature(self) -> float:
        raise NotImplementedError


@dataclass(frozen=True)
class DiscreteGaussianVector(IntegerNoise):
    """Discrete Gaussian noise on every coordinate of a vector of integers, of which the Euclidean sensitivity is known.

    Parameters
    ----------
    sigma : float
        Scale of the noise of a coordinate, of mass proportional to e^{-k^2/(2 sigma^2)}; in [1e-3, 1e5].
    sensitivity : float
        Largest Euclidean (L2) norm by which adding or removing a record moves the vector, in [1, 1e9]; twice that where a record is
        replaced.
    dimension : int, optional
        Number of coordinates, at least 1. By default any number.

    Notes
    -----
    No vector is the worst at every epsilon. Where those of the largest norm are few (a squared norm of at most 16, sigma at most 16), the
    pair has the largest delta of all of them at each epsilon (mechanisms/integer_vectors.py). Wider noise is rounded Gaussian noise of a
    slightly smaller deviation, up to a probability of 1e-20 a step (mechanisms/integer_smoothing.py). At smaller deltas, where no pair is
    known, and in `Accountant.rdp`, the Renyi divergences answer: at most order times the sensitivity squared over 2 sigma^2 (Canonne, Kamath
    and Steinke 2020, Theorem 14). Lower ends are those of one vector, or 0 where no pair is known. For one integer `DiscreteGaussian` is exact.

    Examples
    --------
    >>> import hockeystick as hs
    >>> noise = hs.DiscreteGaussianVector(2.0, 2.0)
    >>> by_rho = hs.zcdp_epsilon(hs.zcdp_rho(hs.Accountant().compose(noise)), 1e-6)
    >>> print(hs.format_upper(hs.Accountant().compose(noise).epsilon(1e-6), ".3f"), hs.format_upper(by_rho, ".3f"))
    4.933 5.222
    """

    sigma: float
    sensitivity: float
    dimension: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "sigma", checked_sigma(self.sigma))
        self._check_query()

    def _curvature(self) -> float:
        return 1.0 / (self.sigma * self.sigma) * UP

    def _divergence(self, order: float, adjacency: Adjacency) -> float:
        return self._rho(adjacency) * order * UP  # at every order, not only at integers

    def _concentration(self, adjacency: Adjacency) -> float:
        return self._rho(adjacency)

    def _enumerates(self) -> bool:
        few = self.dimension == 1 or self._squared("replace") <= MOST_ENUMERATED
        return few and (self.dimension == 1 or self.sigma <= LARGEST_ENUMERATED_SIGMA)

    def _knows_pair(self) -> bool:
        return self._enumerates() or self.sigma >= integer_smoothing.LEAST_SIGMA

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if not self._has_pair:
            return super()._pairs(adjacency, upper=upper)
        if not upper:
            vector = self._attained(adjacency)
            if self.sigma > WIDE:
                vector = tuple(part for part in vector if part == vector[0])
            return _composed(self.sigma, vector)
        if not self._enumerates():
            norm = math.sqrt(self._squared(adjacency)) * UP
            return integer_smoothing.dominating_pairs(self.sigma, norm, self._coordinates(adjacency), 0.0)
        squared = self._squared(adjacency)
        if self.dimension == 1:
            return _composed(self.sigma, (math.isqrt(squared),))
        vectors = largest_vectors(squared, self.dimension)
        if len(vectors) == 1:
            return _composed(self.sigma, vectors[0])
        return [(dominating_pair(self.sigma, squared, self.dimension), 1.0)]


def checked_sigma(value: float) -> float:
    """Return the scale of discrete Gaussian noise if it is in its domain."""
    return scalar("sigma", value, lambda x: 1e-3 <= x <= 1e5, "lie in [0.001, 100000]")


def _composed(sigma: float, vector: tuple[int, ...]) -> list[CountedPair]:
    """Return the pairs of the coordinates of discrete Gaussian noise."""
    return [(core.discrete_gaussian(sigma, float(part)), float(vector.count(part))) for part in sorted(set(vector))]
