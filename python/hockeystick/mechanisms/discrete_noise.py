"""Noise on the integers."""

from __future__ import annotations

from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import count_scalar, positive_scalar, scalar
from hockeystick.mechanisms.base import Adjacency, Mechanism

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
        sigma = scalar("sigma", self.sigma, lambda x: 1e-3 <= x <= 1e5, "lie in [0.001, 100000]")
        object.__setattr__(self, "sigma", sigma)
        object.__setattr__(self, "sensitivity", _sensitivity(self.sensitivity, 10**9))

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
        object.__setattr__(self, "parameter", positive_scalar("parameter", self.parameter))
        object.__setattr__(self, "sensitivity", _sensitivity(self.sensitivity, MOST_OUTCOMES))
        if self.parameter * self.sensitivity > 300.0:
            msg = f"parameter times sensitivity must be at most 300, not {self.parameter * self.sensitivity}"
            raise ValueError(msg)

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.discrete_laplace(self.parameter, float(_moved(self.sensitivity, adjacency)))


def _sensitivity(value: int, most: int) -> int:
    sensitivity = count_scalar("sensitivity", value)
    if sensitivity > most:
        msg = f"sensitivity must be at most {most}, not {sensitivity}"
        raise ValueError(msg)
    return sensitivity


def _moved(sensitivity: int, adjacency: Adjacency) -> int:
    return 2 * sensitivity if adjacency == "replace" else sensitivity
