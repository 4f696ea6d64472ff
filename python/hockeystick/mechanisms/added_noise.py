"""Noise on the integers that is the sum of what several clients add: discrete Gaussian, Skellam."""

from __future__ import annotations

import math
from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import count_scalar, scalar
from hockeystick._numeric.rounding import UP
from hockeystick.mechanisms import integer_curvature, integer_laws, integer_smoothing
from hockeystick.mechanisms.base import Adjacency, CountedPair
from hockeystick.mechanisms.integer_laws import Law
from hockeystick.mechanisms.integer_noise import IntegerNoise, checked_sigma

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
    mechanisms/integer_curvature.py). The bound of Kairouz, Liu and Steinke 2021, Theorem 1, grows with the dimension and the number of clients. Where sigma is so
    large that the sum is nearly a discrete Gaussian in all coordinates, the pair is that of rounded Gaussian noise
    (mechanisms/integer_smoothing.py), up to a probability of 1e-20 a step, below which the Renyi divergences answer; in one dimension it is the exact
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
        object.__setattr__(self, "sigma", checked_sigma(self.sigma))
        object.__setattr__(self, "clients", count_scalar("clients", self.clients))
        self._check_query()

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [
            *super().assumptions(),
            f"{self.clients} clients at least add their noise, which nobody else knows, and only the sum over clients is seen",
            "a client that is removed sends zeros and its noise; a missing client counts as dropped out",
        ]

    def _curvature(self) -> float:
        return integer_curvature.of_sum(self.sigma, self.clients)

    def _divergence(self, order: float, adjacency: Adjacency) -> float:
        return min(super()._divergence(order, adjacency), self._concentration(adjacency) * order * UP)

    def _concentration(self, adjacency: Adjacency) -> float:
        return 0.5 * integer_curvature.smooth_of_sum(self.sigma, self.clients) * self._squared(adjacency) * UP

    def _total(self) -> float:
        return math.sqrt(self.clients) * self.sigma

    def _convolves(self) -> bool:
        outcomes = integer_laws.outcomes_of_sum(self.sigma, self.clients)
        return self.clients <= 10**5 and outcomes <= MOST_CONVOLVED

    def _knows_pair(self) -> bool:
        if self.dimension == 1 and self._convolves():
            return True
        if self._total() < integer_smoothing.LEAST_SIGMA:
            return False
        leaving = integer_smoothing.telling(self._coordinates("replace"), self._log_range())
        return leaving <= integer_smoothing.MOST_TELLING

    def _log_range(self) -> float:
        return integer_curvature.log_range_of_sum(self.sigma, self.clients)

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
        return integer_smoothing.dominating_pairs(sigma, norm, self._coordinates(adjacency), self._log_range())

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
    the variance (theorems 1 and 3 of mechanisms/integer_curvature.py), about a sensitivity^2/(2 variance) (1 + 1/(2 variance)); their Theorem
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
        variance = scalar("variance", self.variance, lambda x: 1e-6 <= x <= 1e12, "lie in [1e-6, 1e12]")
        object.__setattr__(self, "variance", variance)
        self._check_query()

    def _curvature(self) -> float:
        return integer_curvature.of_skellam(self.variance)

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
