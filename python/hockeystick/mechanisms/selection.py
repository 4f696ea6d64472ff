"""Mechanisms that choose one of many candidates by a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import hockeystick._core as core
from hockeystick.mechanisms.base import EPSILON, Adjacency, CountedPair, Mechanism

__all__ = ["ExponentialMechanism", "PermuteAndFlip"]


@dataclass(frozen=True)
class ExponentialMechanism(Mechanism):
    """The exponential mechanism, and any other mechanism of bounded range; report-noisy-max with Gumbel noise is the same.

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    epsilon : float
        The range, in (0, 600]: candidates have weights e^{epsilon score/(2 sensitivity)}, or, if records are added or removed and adding one
        never lowers a score (or never raises one), e^{epsilon score/sensitivity}: one that is replaced may lower a score and raise another.
        The sensitivity is that of every score under the adjacency in use.

    Notes
    -----
    Dong, Durfee and Rogers 2020: losses lie in some interval of length epsilon, and two outcomes at its ends dominate. The pair
    here dominates whichever interval it is (loss/bounded_range.hpp has the proof); one step attains it at every eps:
    delta(0) is tanh(epsilon/4), half of what epsilon-DP alone allows. Many steps leak less than compositions of the pair:
    they have the worst interval at each step, chosen adaptively, in blocks of 256 and beside other steps, or the best Renyi divergence,
    which is largest for one interval at each order (epsilon^2/8-zCDP: Cesar and Rogers 2021). The lower end is that of choices between two candidates, with the
    interval of losses that a search finds worst; on samples that from -epsilon/2 to epsilon/2.

    Examples
    --------
    >>> import hockeystick as hs
    >>> for step in (hs.mechanisms.ExponentialMechanism(0.1), hs.ApproximateDP(0.1, 0.0)):
    ...     print(hs.format_upper(hs.Accountant().compose(step, 50).epsilon(1e-6), ".2f"))
    1.55
    3.18
    """

    epsilon: float
    _for_one_adjacency: ClassVar[bool] = True
    _assumes: ClassVar[tuple[str, ...]] = (
        "exponential mechanism: no score moves by more than the sensitivity used; the upper end holds for all intervals of losses",
    )

    def __post_init__(self) -> None:
        """Check the argument."""
        self._check(epsilon=EPSILON)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        del adjacency  # the sensitivity is taken to be for the one in use
        return [(core.bounded_range(self.epsilon, upper), 1.0)]


@dataclass(frozen=True)
class PermuteAndFlip(Mechanism):
    """Permute-and-flip; report-noisy-max with exponential noise is the same.

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    epsilon : float
        In (0, 600]: a candidate is taken with probability e^{epsilon (score - best)/(2 sensitivity)} when its turn comes, or, if records are added
        or removed and adding one never lowers a score (or never raises one), e^{epsilon (score - best)/sensitivity}.

    Notes
    -----
    McKenna and Sheldon 2020. Ding, Kifer, Steinke and others 2021 show that it is report-noisy-max with exponential noise. The pair of
    Laplace noise at distance epsilon dominates it (docs/core/loss.md has the proof), and one step between two candidates attains that curve, by one
    gap between their scores or another. The lower end is that of choices between two candidates, of the gap that a search finds worst; on samples
    they change places (mechanism/two_candidates.hpp).

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_upper(hs.Accountant().compose(hs.mechanisms.PermuteAndFlip(0.5), 20).epsilon(1e-6), ".2f"))
    9.68
    """

    epsilon: float
    _for_one_adjacency: ClassVar[bool] = True
    _assumes: ClassVar[tuple[str, ...]] = (
        "permute-and-flip: no score moves by more than the sensitivity used; the pair is that of Laplace noise",
    )

    def __post_init__(self) -> None:
        """Check the argument."""
        self._check(epsilon=EPSILON)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        del adjacency
        return [(core.permute_and_flip(self.epsilon, upper), 1.0)]
