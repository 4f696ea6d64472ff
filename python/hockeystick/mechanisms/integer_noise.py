"""Noise on the integers: on one number, on vectors of known Euclidean sensitivity, and as the sum of what several clients add."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

import hockeystick._core as core
from hockeystick._checks import POSITIVE, at_most, count_scalar, interval
from hockeystick.mechanisms.base import SENSITIVITY, Adjacency, CountedPair, Mechanism
from hockeystick.mechanisms.renyi_bounded import RenyiMechanism

__all__ = ["DiscreteGaussian", "DiscreteGaussianVector", "DiscreteLaplace", "DistributedDiscreteGaussian", "Skellam"]

SIGMA = interval("[0.001, 100000]")  # of discrete Gaussian noise
MOST_OUTCOMES = 10**4  # each middle value of discrete Laplace noise is one outcome of the pair


@dataclass(frozen=True)
class DiscreteGaussian(Mechanism):
    """Discrete Gaussian noise on one integer: of mass proportional to e^{-k^2/(2 noise_std^2)} (Canonne, Kamath and Steinke 2020).

    Its sensitivity doubles where a record is replaced.

    Parameters
    ----------
    noise_std : float
        Scale of the noise, in [1e-3, 1e5]; from about 1 up it is its standard deviation.
    sensitivity : int
        By how much adding or removing a record moves the one integer at most (on one coordinate L1 and L2 are the same), in [1, 10^9].

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

    noise_std: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(noise_std=SIGMA, sensitivity=count_scalar)
        at_most("sensitivity", self.sensitivity, "the largest supported", 10**9)

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.discrete_gaussian(self.noise_std, SENSITIVITY[adjacency] * self.sensitivity)


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Discrete Laplace (geometric) noise on one integer: of mass proportional to e^{-inverse_scale |k|}.

    Its sensitivity doubles where a record is replaced.

    Parameters
    ----------
    inverse_scale : float
        Rate of decay: epsilon over the sensitivity, positive. With the sensitivity at most 300 in all.
    sensitivity : int
        By how much adding or removing a record moves the one integer at most, in [1, 10^4].
        With this noise on every coordinate of a vector it is the L1 sensitivity, the sum over the coordinates.

    Notes
    -----
    Ghosh, Roughgarden and Sundararajan 2009. The pair is the noise and the noise moved by the sensitivity s, which dominates
    as the noise is log-concave. Its losses are inverse_scale (2k - s) for k = 0, ..., s, all outcomes beyond either end being one.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_upper(hs.Accountant().compose(hs.mechanisms.DiscreteLaplace(0.5)).epsilon(0.0), ".9f"))
    0.500000001
    """

    inverse_scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(inverse_scale=POSITIVE, sensitivity=count_scalar)
        at_most("sensitivity", self.sensitivity, "the largest supported", MOST_OUTCOMES)
        if self.inverse_scale * self.sensitivity > 300.0:
            raise ValueError(
                f"inverse_scale times sensitivity must be at most 300, not {self.inverse_scale * self.sensitivity}"
            )

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.discrete_laplace(self.inverse_scale, SENSITIVITY[adjacency] * self.sensitivity)


Move: TypeAlias = tuple[float, float, float]  # sensitivity, by what a replaced record multiplies it, dimension


@lru_cache(maxsize=256)
def _made(kind: Callable[..., core.IntegerNoise], *parameters: float) -> core.IntegerNoise:
    return kind(*parameters)


@lru_cache(maxsize=32)
def _known_pairs(noise: core.IntegerNoise, move: Move, upper: bool) -> tuple[CountedPair, ...]:
    return tuple(noise.pairs(*move, upper))


class IntegerNoise(RenyiMechanism):
    """Noise on each coordinate of a vector of integers, independently, all of one log-concave law (release/integer_noise.hpp).

    Its Renyi divergences are bounded always. Where a pair is known too, for both adjacencies, an instance has `_has_pair`.
    """

    sensitivity: float
    dimension: int | None
    _assumes: ClassVar[tuple[str, ...]] = (
        "the query is a vector of integers, and its noise is sampled exactly, as integers, afresh for every coordinate",
    )

    def _check_query(self) -> None:
        self._check(sensitivity=interval("[1, 1e9]"))
        if self.dimension is not None:
            self._check(dimension=count_scalar)
        if self._noise().has_pair(*self._move("replace")):
            self._set(_has_pair=True)

    def _noise(self) -> core.IntegerNoise:
        raise NotImplementedError

    def _move(self, adjacency: Adjacency) -> Move:
        return self.sensitivity, SENSITIVITY[adjacency], float(self.dimension or math.inf)

    def _divergence(self, order: float, adjacency: Adjacency) -> float:
        return self._noise().renyi(order, *self._move(adjacency))

    def _concentration(self, adjacency: Adjacency) -> float | None:
        rho = self._noise().concentration(*self._move(adjacency))
        return rho if rho < math.inf else None

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        noise, move = self._noise(), self._move(adjacency)
        if not self._has_pair:
            move = (*move[:2], 1.0)  # of one coordinate alone
            if upper or not noise.has_pair(*move):
                return super()._pairs(adjacency, upper=upper)
        return list(_known_pairs(noise, move, upper))


@dataclass(frozen=True)
class DiscreteGaussianVector(IntegerNoise):
    """Discrete Gaussian noise on every coordinate of a vector of integers, of which the Euclidean sensitivity is known.

    Its sensitivity doubles where a record is replaced.

    Parameters
    ----------
    noise_std : float
        Scale of the noise of a coordinate, of mass proportional to e^{-k^2/(2 noise_std^2)}; in [1e-3, 1e5].
    sensitivity : float
        Largest Euclidean (L2) norm by which adding or removing a record moves the vector, in [1, 1e9].
    dimension : int, optional
        Number of coordinates, at least 1. By default any number.

    Notes
    -----
    No vector is the worst at every epsilon. Where those of the largest norm are few (a squared norm of at most 16, noise_std at most 16), the
    pair has the largest delta of all of them at each epsilon (release/integer_noise.hpp). Noise from noise_std 2 up is dominated by Gaussian noise of a
    deviation that is at most 1.1 % smaller, up to a probability below 1e-15 a step, mostly far below (release/integer_noise.hpp). At smaller deltas, where no pair is
    known, and in `Accountant.rdp`, the Renyi divergences answer: at most order times the sensitivity squared over 2 noise_std^2 (Canonne, Kamath
    and Steinke 2020, Theorem 14). Lower ends are those of one vector, or of one coordinate where no pair is known. For one integer `DiscreteGaussian` is exact.

    Examples
    --------
    >>> import hockeystick as hs
    >>> noise = hs.mechanisms.DiscreteGaussianVector(2.0, 2.0)
    >>> by_rho = hs.accounting.zcdp_epsilon(hs.accounting.zcdp_rho(hs.Accountant().compose(noise)), 1e-6)
    >>> print(hs.format_upper(hs.Accountant().compose(noise).epsilon(1e-6), ".3f"), hs.format_upper(by_rho, ".3f"))
    4.933 5.222
    """

    noise_std: float
    sensitivity: float
    dimension: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(noise_std=SIGMA)
        self._check_query()

    def _noise(self) -> core.IntegerNoise:
        return _made(core.discrete_gaussian_noise, self.noise_std)


@dataclass(frozen=True)
class DistributedDiscreteGaussian(IntegerNoise):
    """The sum of the discrete Gaussian noise of several clients, as secure aggregation shows it; which is no discrete Gaussian.

    Its sensitivity doubles where a record is replaced.

    Parameters
    ----------
    noise_std : float
        Scale of the noise that each client adds to each coordinate of its vector of integers, in [1e-3, 1e5].
    num_clients : int
        Number of clients whose noise is in the sum and is known to nobody: those that do not drop out and are not in league with
        the attacker, at least; in [1, 2^53].
    sensitivity : float
        Largest Euclidean (L2) norm of a client's vector of integers, in [1, 1e9].
    dimension : int, optional
        Number of coordinates, at least 1. By default any number.

    Notes
    -----
    The curvature of the sum's law, close to 1/(num_clients times its variance), bounds the Renyi divergences at any dimension (theorems 1 and 2 of
    release/integer_noise.hpp). The bound of Kairouz, Liu and Steinke 2021, Theorem 1, grows with the dimension and the number of clients. Where the sum's law is
    computed by convolution, or is nearly a discrete Gaussian, Gaussian noise dominates it, up to a tiny probability, below which
    the Renyi divergences answer (release/integer_noise.hpp); in one dimension the pair is exact. Lower ends are those of one coordinate, or 0.
    Sums modulo a number and all else that is computed from the sum leak no more.

    Examples
    --------
    >>> import hockeystick as hs
    >>> noise = hs.mechanisms.DistributedDiscreteGaussian(1.0, num_clients=100, sensitivity=10.0, dimension=1000)
    >>> print(hs.format_upper(hs.Accountant().compose(noise).epsilon(1e-6), ".3f"))
    4.889
    """

    noise_std: float
    num_clients: int
    sensitivity: float
    dimension: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(noise_std=SIGMA, num_clients=count_scalar)
        self._check_query()

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [
            *super().assumptions(),
            f"{self.num_clients} clients at least add their noise, which nobody else knows, and only the sum over clients is seen",
            "a client that is removed sends zeros and its noise; a missing client counts as dropped out",
        ]

    def _noise(self) -> core.IntegerNoise:
        return _made(core.sum_of_discrete_gaussian_noise, self.noise_std, float(self.num_clients))


@dataclass(frozen=True)
class Skellam(IntegerNoise):
    """Skellam noise on every coordinate of a vector of integers: the difference of two Poisson variables, which sums of it are too.

    Its sensitivity doubles where a record is replaced.

    Parameters
    ----------
    noise_variance : float
        Variance of the noise of a coordinate, in [1e-6, 1e12]: each Poisson variable has half of it. If clients add noise, that of the sum over
        those whose noise nobody else knows: their variances add up.
    sensitivity : float
        Largest Euclidean (L2) norm by which adding or removing a record moves the vector, in [1, 1e9].
    dimension : int, optional
        Number of coordinates, at least 1. By default any number.

    Notes
    -----
    Agarwal, Kairouz and Liu 2021. The divergence of an integer order a is at most a sensitivity^2 log(I_0/I_1), I_0 and I_1 the modified Bessel functions at
    the variance (theorems 1 and 3 of release/integer_noise.hpp), about a sensitivity^2/(2 variance) (1 + 1/(2 variance)); their Theorem
    3.5 needs the L1 sensitivity too. In one dimension the pair is exact, for variances of at most 1e6; in more it is that of Gaussian noise of a slightly
    smaller deviation, from a variance of 1 up (theorem 5). Lower ends are those of equal moves, in as many of 64 coordinates as there are, or 0 beyond.

    Examples
    --------
    >>> import hockeystick as hs
    >>> for dimension in (1, None):
    ...     ledger = hs.Accountant().compose(hs.mechanisms.Skellam(100.0, 10.0, dimension))
    ...     print(hs.format_upper(ledger.epsilon(1e-6), ".3f"))
    4.738
    4.896
    """

    noise_variance: float
    sensitivity: float
    dimension: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(noise_variance=interval("[1e-6, 1e12]"))
        self._check_query()

    def _noise(self) -> core.IntegerNoise:
        return _made(core.skellam_noise, self.noise_variance)
