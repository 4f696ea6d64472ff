"""Noise on the integers: on one number, on vectors of known Euclidean sensitivity, and as the sum of what several clients add."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import hockeystick._core as core
from hockeystick._checks import POSITIVE, Domain, at_most, count_scalar
from hockeystick._numeric.rounding import UP
from hockeystick.mechanisms import integer_laws
from hockeystick.mechanisms.base import SENSITIVITY, Adjacency, CountedPair, Mechanism
from hockeystick.mechanisms.integer_laws import Law, dominating_pair, first_vector, largest_vectors, squared_norm
from hockeystick.mechanisms.renyi_bounded import RenyiMechanism

SIGMA: Domain = (lambda x: 1e-3 <= x <= 1e5, "lie in [0.001, 100000]")  # of discrete Gaussian noise
MOST_OUTCOMES = 10**4  # each middle value of discrete Laplace noise is one outcome of the pair


@dataclass(frozen=True)
class DiscreteGaussian(Mechanism):
    """Discrete Gaussian noise on one integer: of mass proportional to e^{-k^2/(2 sigma^2)} (Canonne, Kamath and Steinke 2020).

    Parameters
    ----------
    sigma : float
        Scale of the noise, in [1e-3, 1e5]; from about 1 up it is its standard deviation.
    sensitivity : int
        By how much adding or removing a record moves the one integer at most (on one coordinate L1 and L2 are the same), in [1, 10^9];
        twice that is used where a record is replaced.

    Notes
    -----
    The pair is the noise and the noise moved by the sensitivity. It dominates since the noise is log-concave:
    loss/discrete_gaussian.hpp. For a vector, compose its coordinates, each with its own sensitivity.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_upper(hs.Accountant().compose(hs.DiscreteGaussian(2.0)).delta(1.0), ".6f"))
    0.007249
    """

    sigma: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(sigma=SIGMA, sensitivity=count_scalar)
        at_most("sensitivity", self.sensitivity, "the largest supported", 10**9)

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.discrete_gaussian(self.sigma, float(_moved(self.sensitivity, adjacency)))


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Discrete Laplace (geometric) noise on one integer: of mass proportional to e^{-parameter |k|}.

    Parameters
    ----------
    parameter : float
        Rate of decay: epsilon over the sensitivity, positive. With the sensitivity at most 300 in all.
    sensitivity : int
        By how much adding or removing a record moves the one integer at most, in [1, 10^4]; twice that is used where a record is replaced.
        With this noise on every coordinate of a vector it is the L1 sensitivity, the sum over the coordinates.

    Notes
    -----
    Ghosh, Roughgarden and Sundararajan 2009. The pair is the noise and the noise moved by the sensitivity s, which dominates
    as the noise is log-concave. Its losses are parameter (2k - s) for k = 0, ..., s, all outcomes beyond either end being one.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_upper(hs.Accountant().compose(hs.DiscreteLaplace(0.5)).epsilon(0.0), ".9f"))
    0.500000001
    """

    parameter: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(parameter=POSITIVE, sensitivity=count_scalar)
        at_most("sensitivity", self.sensitivity, "the largest supported", MOST_OUTCOMES)
        if self.parameter * self.sensitivity > 300.0:
            msg = f"parameter times sensitivity must be at most 300, not {self.parameter * self.sensitivity}"
            raise ValueError(msg)

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.discrete_laplace(self.parameter, float(_moved(self.sensitivity, adjacency)))


def _moved(sensitivity: int, adjacency: Adjacency) -> int:
    return 2 * sensitivity if adjacency == "replace" else sensitivity


MOST_ENUMERATED = 64  # squared norm, of a replaced record; 220 vectors
LARGEST_ENUMERATED_SIGMA = 16.0
WIDE = 1e3  # a sigma beyond which the table of a coordinate takes a second


class IntegerNoise(RenyiMechanism):
    """Noise on each coordinate of a vector of integers, independently, all of one log-concave law.

    Its Renyi divergences are bounded always. Where a pair is known too, for both adjacencies, an instance has `_has_pair`.
    """

    sensitivity: float
    dimension: int | None
    _assumes: ClassVar[tuple[str, ...]] = (
        "the query is a vector of integers, and its noise is sampled exactly, as integers, afresh for every coordinate",
    )

    def _check_query(self) -> None:
        self._check(sensitivity=(lambda x: 1.0 <= x <= 1e9, "lie in [1, 1e9]"))
        if self.dimension is not None:
            self._check(dimension=count_scalar)
        if self._knows_pair():
            self._set(_has_pair=True)

    def _squared(self, adjacency: Adjacency) -> int:
        return squared_norm(SENSITIVITY[adjacency] * self.sensitivity)

    def _coordinates(self, adjacency: Adjacency) -> int:
        """Return how many coordinates can move at most."""
        squared = self._squared(adjacency)
        return squared if self.dimension is None else min(self.dimension, squared)

    def _rho(self, adjacency: Adjacency) -> float:
        return 0.5 * self._curvature() * self._squared(adjacency) * UP

    def _divergence(self, order: float, adjacency: Adjacency) -> float:
        return integer_laws.divergence_of_curvature(self._rho(adjacency), order)

    def _attained(self, adjacency: Adjacency) -> tuple[int, ...]:
        """Return a vector by which the query may move: where a record is replaced, one vector and its opposite."""
        vector = first_vector(self._squared("add_or_remove"), self.dimension)
        return tuple(int(SENSITIVITY[adjacency]) * part for part in vector)

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
    pair has the largest delta of all of them at each epsilon (mechanisms/integer_laws.py). Wider noise is rounded Gaussian noise of a
    slightly smaller deviation, up to a probability of 1e-20 a step (mechanisms/integer_laws.py). At smaller deltas, where no pair is
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
        self._check(sigma=SIGMA)
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
        return self._enumerates() or self.sigma >= integer_laws.LEAST_SIGMA

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
            return integer_laws.dominating_pairs(self.sigma, norm, self._coordinates(adjacency), 0.0)
        squared = self._squared(adjacency)
        if self.dimension == 1:
            return _composed(self.sigma, (math.isqrt(squared),))
        vectors = largest_vectors(squared, self.dimension)
        if len(vectors) == 1:
            return _composed(self.sigma, vectors[0])
        return [(dominating_pair(self.sigma, squared, self.dimension), 1.0)]


def _composed(sigma: float, vector: tuple[int, ...]) -> list[CountedPair]:
    """Return the pairs of the coordinates of discrete Gaussian noise."""
    return [(core.discrete_gaussian(sigma, float(part)), float(vector.count(part))) for part in sorted(set(vector))]


MOST_CONVOLVED = 2.0**14  # outcomes of a sum
WIDEST_LAW = 2e4  # the scale of the widest law whose masses are computed


@dataclass(frozen=True)
class DistributedDiscreteGaussian(IntegerNoise):
    """The sum of the discrete Gaussian noise of several clients, as secure aggregation shows it; which is no discrete Gaussian.

    Parameters
    ----------
    sigma : float
        Scale of the noise that each client adds to each coordinate of its vector of integers, in [1e-3, 1e5].
    clients : int
        Number of clients whose noise is in the sum and is known to nobody: those that do not drop out and are not in league with
        the attacker, at least; in [1, 2^53].
    sensitivity : float
        Largest Euclidean (L2) norm of a client's vector of integers, in [1, 1e9]; twice that where one is replaced.
    dimension : int, optional
        Number of coordinates, at least 1. By default any number.

    Notes
    -----
    The curvature of the sum's law, close to 1/(clients times its variance), bounds the Renyi divergences at any dimension (theorems 1 and 2 of
    mechanisms/integer_laws.py). The bound of Kairouz, Liu and Steinke 2021, Theorem 1, grows with the dimension and the number of clients. Where sigma is so
    large that the sum is nearly a discrete Gaussian in all coordinates, the pair is that of rounded Gaussian noise
    (mechanisms/integer_laws.py), up to a probability of 1e-20 a step, below which the Renyi divergences answer; in one dimension it is the exact
    one, by convolution. Lower ends are those of one coordinate, or 0.
    Sums modulo a number and all else that is computed from the sum leak no more.

    Examples
    --------
    >>> import hockeystick as hs
    >>> noise = hs.DistributedDiscreteGaussian(1.0, clients=100, sensitivity=10.0, dimension=1000)
    >>> print(hs.format_upper(hs.Accountant().compose(noise).epsilon(1e-6), ".3f"))
    5.223
    """

    sigma: float
    clients: int
    sensitivity: float
    dimension: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(sigma=SIGMA, clients=count_scalar)
        self._check_query()

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [
            *super().assumptions(),
            f"{self.clients} clients at least add their noise, which nobody else knows, and only the sum over clients is seen",
            "a client that is removed sends zeros and its noise; a missing client counts as dropped out",
        ]

    def _curvature(self) -> float:
        return integer_laws.curvature_of_sum(self.sigma, self.clients)

    def _divergence(self, order: float, adjacency: Adjacency) -> float:
        return min(super()._divergence(order, adjacency), self._concentration(adjacency) * order * UP)

    def _concentration(self, adjacency: Adjacency) -> float:
        return 0.5 * integer_laws.smooth_curvature_of_sum(self.sigma, self.clients) * self._squared(adjacency) * UP

    def _total(self) -> float:
        return math.sqrt(self.clients) * self.sigma

    def _convolves(self) -> bool:
        outcomes = 2.0 * math.sqrt(2.0 * integer_laws.DEPTH * self.clients) * self.sigma + 3.0  # about so many
        return self.clients <= 10**5 and outcomes <= MOST_CONVOLVED

    def _knows_pair(self) -> bool:
        if self.dimension == 1 and self._convolves():
            return True
        if self._total() < integer_laws.LEAST_SIGMA:
            return False
        leaving = integer_laws.telling(self._coordinates("replace"), self._log_range())
        return leaving <= integer_laws.MOST_TELLING

    def _log_range(self) -> float:
        return integer_laws.log_range_of_sum(self.sigma, self.clients)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if not self._has_pair:
            return super()._pairs(adjacency, upper=upper)
        if not upper:
            return _lower(self._law(), self._attained(adjacency)[0])
        if self.dimension == 1 and self._convolves():
            law = integer_laws.sum_of_discrete_gaussians(self.sigma, self.clients)
            return _upper(law, math.isqrt(self._squared(adjacency)))
        norm = math.sqrt(self._squared(adjacency)) * UP
        sigma = self._total() / UP
        return integer_laws.dominating_pairs(sigma, norm, self._coordinates(adjacency), self._log_range())

    def _law(self) -> Law | None:
        """Return the law of a coordinate if it has not too many outcomes."""
        if self._convolves():
            return integer_laws.sum_of_discrete_gaussians(self.sigma, self.clients)
        if self._total() > WIDEST_LAW:
            return None
        return integer_laws.nearly_discrete_gaussian(self._total(), self._log_range())


@dataclass(frozen=True)
class Skellam(IntegerNoise):
    """Skellam noise on every coordinate of a vector of integers: the difference of two Poisson variables, which sums of it are too.

    Parameters
    ----------
    variance : float
        Variance of the noise of a coordinate, in [1e-6, 1e12]: each Poisson variable has half of it. If clients add noise, that of the sum over
        those whose noise nobody else knows: their variances add up.
    sensitivity : float
        Largest Euclidean (L2) norm by which adding or removing a record moves the vector, in [1, 1e9]; twice that where a record is
        replaced.
    dimension : int, optional
        Number of coordinates, at least 1. By default any number.

    Notes
    -----
    Agarwal, Kairouz and Liu 2021. The divergence of an integer order a is at most a sensitivity^2 log(I_0/I_1), I_0 and I_1 the modified Bessel functions at
    the variance (theorems 1 and 3 of mechanisms/integer_laws.py), about a sensitivity^2/(2 variance) (1 + 1/(2 variance)); their Theorem
    3.5 needs the L1 sensitivity too. In one dimension the pair is exact, for variances of at most 1e6. Else lower ends are 0.

    Examples
    --------
    >>> import hockeystick as hs
    >>> for dimension in (1, None):
    ...     ledger = hs.Accountant().compose(hs.Skellam(100.0, 10.0, dimension))
    ...     print(hs.format_upper(ledger.epsilon(1e-6), ".3f"))
    4.738
    5.238
    """

    variance: float
    sensitivity: float
    dimension: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(variance=(lambda x: 1e-6 <= x <= 1e12, "lie in [1e-6, 1e12]"))
        self._check_query()

    def _curvature(self) -> float:
        return integer_laws.curvature_of_skellam(self.variance)

    def _knows_pair(self) -> bool:
        return self.dimension == 1 and self.variance <= 1e6

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if not self._has_pair:
            return super()._pairs(adjacency, upper=upper)
        law = integer_laws.skellam(self.variance)
        if upper:
            return _upper(law, math.isqrt(self._squared(adjacency)))
        return _lower(law, self._attained(adjacency)[0])


def _upper(law: Law, shift: int) -> list[CountedPair]:
    return [(integer_laws.upper_pair(law, shift), 1.0)]


def _lower(law: Law | None, shift: int) -> list[CountedPair]:
    return [(core.nothing() if law is None else integer_laws.lower_pair(law, shift), 1.0)]
