"""Gaussian and Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import positive_scalar
from hockeystick._checks.shown import shown
from hockeystick.mechanisms.base import Adjacency, Mechanism, sensitivity

LEAST_NOISE = 2.0**-1022


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Gaussian noise on each coordinate of a number or a vector, whose sensitivity is measured in the Euclidean (L2) norm.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation in each coordinate over the L2 sensitivity: by how much adding or removing a record moves the
        vector at most, in the Euclidean norm, as a clip norm bounds it. Positive and finite.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.Gaussian(1.5)
    Gaussian(noise_multiplier=1.5)
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "noise_multiplier", _noise_multiplier(self.noise_multiplier))

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.gaussian(self.noise_multiplier / sensitivity(adjacency))


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise on each coordinate of a number or a vector, whose sensitivity is measured in the L1 norm.

    Parameters
    ----------
    noise_multiplier : float
        Scale b of the density e^{-abs(x)/b}/(2b) in each coordinate over the L1 sensitivity: by how much adding or removing a record
        moves the vector at most, in the sum of the absolute coordinates. Positive and finite. An L2 sensitivity or that of one
        coordinate is smaller, and would claim too little: in d dimensions L1 is up to sqrt(d), or d, times as large.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.Laplace(2.0)
    Laplace(noise_multiplier=2.0)
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "noise_multiplier", _noise_multiplier(self.noise_multiplier))

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.laplace(self.noise_multiplier / sensitivity(adjacency))


def _noise_multiplier(value: float) -> float:
    """Return a checked noise multiplier: twice its reciprocal, the shift where a record is replaced, is finite."""
    noise = positive_scalar("noise_multiplier", value)
    if noise < LEAST_NOISE:
        msg = f"noise_multiplier must be at least 2^-1022, so that its reciprocal is finite, not {shown(noise)}"
        raise ValueError(msg)
    return noise
