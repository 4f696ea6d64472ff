"""Mechanisms of finitely many outcomes, by their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import hockeystick._core as core
from hockeystick._checks import PROBABILITY, count_scalar, distribution, interval
from hockeystick._checks.shown import shown
from hockeystick.mechanisms.base import Adjacency, Mechanism

__all__ = ["ApproximateDP", "Discrete", "DiscretePairs", "RandomizedResponse"]


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Randomised response: a uniform bucket with probability `noise_probability`, else the true one.

    Only under ``adjacency="replace"``. Nothing doubles where a record is replaced.

    Parameters
    ----------
    noise_probability : float
        In [0, 1].
    num_buckets : int
        At least 2.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.RandomizedResponse(0.5, 4)
    RandomizedResponse(noise_probability=0.5, num_buckets=4)
    """

    noise_probability: float
    num_buckets: int

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(noise_probability=PROBABILITY)
        self._set(num_buckets=count_scalar("num_buckets", self.num_buckets, 2))

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        if adjacency != "replace":
            raise self._refusal(adjacency, "a response is replaced, not added or removed; use adjacency='replace'")
        return core.randomized_response(self.noise_probability, float(self.num_buckets))


@dataclass(frozen=True)
class ApproximateDP(Mechanism):
    """Any (epsilon, delta)-DP mechanism, by its dominating pair (Kairouz, Oh and Viswanath 2015).

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    epsilon : float
        Non-negative; at most 600.
    delta : float
        In [0, 1].

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.ApproximateDP(0.5, 1e-6)
    ApproximateDP(epsilon=0.5, delta=1e-06)
    """

    epsilon: float
    delta: float
    _for_one_adjacency: ClassVar[bool] = True
    _assumes: ClassVar[tuple[str, ...]] = ("the guarantee of ApproximateDP holds for this adjacency",)

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(epsilon=interval("[0, 600]"), delta=PROBABILITY)

    def _mixed_failure(self) -> tuple[float, ApproximateDP]:
        return self.delta, ApproximateDP(self.epsilon, 0.0)

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        del adjacency  # the guarantee is taken to be for the one in use
        return core.approximate_dp(self.epsilon, self.delta)


@dataclass(frozen=True)
class Discrete(Mechanism):
    """A pair of discrete distributions, with its reverse for the other direction.

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    p, q : sequence of float
        Probabilities of the outcomes on either data set: of one length, non-negative, each summing to 1 within 1e-12.
        Where one is 0 and the other is not, the privacy loss is infinite.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.mechanisms.Discrete([0.75, 0.25], [0.25, 0.75])
    Discrete(p=(0.75, 0.25), q=(0.25, 0.75))
    """

    p: Sequence[float]
    q: Sequence[float]
    _for_one_adjacency: ClassVar[bool] = True
    _assumes: ClassVar[tuple[str, ...]] = ("the guarantee of Discrete holds for this adjacency",)

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(p=distribution, q=distribution)
        if len(self.p) != len(self.q):
            raise ValueError(f"q must be as long as p ({len(self.p)}), not of length {len(self.q)}")

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        del adjacency
        return core.discrete(*self._normalised())

    def _normalised(self) -> tuple[list[float], ...]:
        """Return p and q, each divided by its sum: a composition would multiply by the steps what the sum is off from 1."""
        return tuple(core.normalised(list(law)) for law in (self.p, self.q))


@dataclass(frozen=True)
class DiscretePairs(Mechanism):
    """A dominating pair of discrete distributions for each direction.

    For what is known only by its privacy losses, such as a mechanism of one's own; `Discrete` is one whose second pair is
    the reverse of the first.

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    remove, add : Discrete
        Their p and q: the pair that dominates a data set with the record against the one without, and the pair that
        dominates without against with, each at every epsilon, also below 0. Under replacement, either order of the two data sets.

    Examples
    --------
    >>> import hockeystick as hs
    >>> pair = hs.mechanisms.Discrete([0.5, 0.5], [0.25, 0.75])
    >>> hs.mechanisms.DiscretePairs(pair, hs.mechanisms.Discrete(pair.q, pair.p)).add.p
    (0.25, 0.75)
    """

    remove: Discrete
    add: Discrete
    _for_one_adjacency: ClassVar[bool] = True
    _assumes: ClassVar[tuple[str, ...]] = ("the guarantee of DiscretePairs holds for this adjacency",)

    def __post_init__(self) -> None:
        """Check the arguments."""
        for name in ("remove", "add"):
            if not isinstance(getattr(self, name), Discrete):
                raise TypeError(f"{name} must be Discrete, not {shown(getattr(self, name))}")

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        del adjacency
        return core.discrete_pairs(*self.remove._normalised(), *self.add._normalised())
