"""What all mechanisms are, and Gaussian and Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hockeystick import _checks

Adjacency: TypeAlias = Literal["add_or_remove", "replace"]
ADJACENCIES = ("add_or_remove", "replace")
Core: TypeAlias = tuple[str, list[float], float]  # kind, parameters, Poisson sampling rate


class Mechanism:
    """What one step releases; the base of all mechanisms."""

    status: Literal["certified", "estimate"] = "certified"  # of the pair: whether it is proven to dominate

    def _core(self, adjacency: Adjacency) -> Core:
        """Return the pair as the compiled core names it, or raise ValueError if there is none for this adjacency."""
        raise NotImplementedError


def shift(noise_multiplier: float, adjacency: Adjacency) -> float:
    """Return the sensitivity of a query over its noise."""
    return (2.0 if adjacency == "replace" else 1.0) / noise_multiplier


def refuse(mechanism: Mechanism, adjacency: Adjacency, reason: str) -> ValueError:
    """Return the error to raise where no pair is proven."""
    return ValueError(f"{mechanism!r} is not supported under adjacency={adjacency!r}: {reason}")


def approximate_pair(epsilon: float, delta: float) -> Core:
    """Return the pair that dominates all (epsilon, delta)-DP mechanisms (Kairouz, Oh and Viswanath 2015)."""
    small = math.exp(-epsilon)
    high, low = (1.0 - delta) / (1.0 + small), (1.0 - delta) * small / (1.0 + small)
    return "discrete", [delta, high, low, 0.0, 0.0, low, high, delta], 1.0


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over add-or-remove sensitivity, positive and finite.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.Gaussian(1.5)
    Gaussian(noise_multiplier=1.5)
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "noise_multiplier", _checks.positive_scalar("noise_multiplier", self.noise_multiplier))

    def _core(self, adjacency: Adjacency) -> Core:
        return "gaussian", [shift(self.noise_multiplier, adjacency)], 1.0


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise.

    Parameters
    ----------
    noise_multiplier : float
        Scale over add-or-remove sensitivity, positive and finite.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.Laplace(2.0)
    Laplace(noise_multiplier=2.0)
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "noise_multiplier", _checks.positive_scalar("noise_multiplier", self.noise_multiplier))

    def _core(self, adjacency: Adjacency) -> Core:
        return "laplace", [shift(self.noise_multiplier, adjacency)], 1.0
