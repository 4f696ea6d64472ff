"""Mechanisms that are run on a sample of the records."""

from __future__ import annotations

from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import implausible, probability_scalar
from hockeystick._checks.shown import shown
from hockeystick._statements import say
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, refuse, require_mechanism, require_pairs
from hockeystick.mechanisms.composed import ONE_SAMPLE, Composed
from hockeystick.mechanisms.fixed_size_sampled import FixedSizeSampled
from hockeystick.mechanisms.random_allocation import RandomAllocation


@dataclass(frozen=True)
class PoissonSampled(Mechanism):
    """A mechanism run on a Poisson sample: each record is in it independently.

    Several releases of one sample are `Composed` first: that differs from composing mechanisms that each draw a sample.

    Parameters
    ----------
    mechanism : Mechanism
        What is run on the sample; any but `FixedSizeSampled`, as the size of the sample is random.
    sampling_rate : float
        Probability of each record, in [0, 1].

    Notes
    -----
    A record added or removed: Zhu, Dong and Wang 2022, from the mechanism's own pair of either direction; loss/poisson_sampled.hpp.

    A record replaced: from the mechanism's pair for removing a record; the proof is in loss/replaced_gaussian.hpp for Gaussian noise, where with
    r = 1/noise_multiplier and N(m) the normal law of mean m and variance 1 the pair (1-q)N(0) + qN(r), (1-q)N(0) + qN(-r) dominates and
    is attained, and in release/poisson_sampled.hpp for all others. That pair is attained by noise on the line. For
    `Composed` releases other than Gaussian and for `RandomAllocation` the lower end is that of a record whose replacement contributes
    nothing. `ApproximateDP`, `Discrete` and `DiscretePairs` are guarantees for one
    adjacency, and refused: the pair for removing a record is not that for replacing one.

    Other mechanisms than single releases become discrete pairs above and below what they leak (pld/composed_pair.hpp).

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
    PoissonSampled(mechanism=Gaussian(noise_multiplier=1.0), sampling_rate=0.01)
    """

    mechanism: Mechanism
    sampling_rate: float

    def __post_init__(self) -> None:
        """Check the arguments."""
        require_mechanism(self.mechanism)
        require_pairs(self.mechanism)
        if any(isinstance(part, FixedSizeSampled) for part in self.mechanism._within()):
            msg = f"mechanism must not need a fixed number of records, which a Poisson sample has not, as {shown(self.mechanism)} does"
            raise ValueError(msg)
        rate = probability_scalar("sampling_rate", self.sampling_rate)
        implausible.warn(implausible.integer_rate(self.sampling_rate), skip=1)
        object.__setattr__(self, "sampling_rate", rate)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [say("assumed_poisson"), *([ONE_SAMPLE] if isinstance(self.mechanism, Composed) else [])]

    def _parts(self) -> tuple[Mechanism, ...]:
        return (self.mechanism,)

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return self._sampled(adjacency, upper=True)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if self.sampling_rate == 1.0:
            return self.mechanism._pairs(adjacency, upper=upper)
        return [(self._sampled(adjacency, upper=upper), 1.0)]

    def _sampled(self, adjacency: Adjacency, *, upper: bool) -> core.Pair:
        if adjacency == "replace" and self.sampling_rate not in (0.0, 1.0):
            return self._replaced(upper=upper)
        steps = self.mechanism._pairs(adjacency, upper=upper)
        return core.poisson_sampled_steps(steps, self.sampling_rate, upper)

    def _has_several_outputs(self) -> bool:
        """Say whether a release is more than one noisy number, so that opposite contributions need not attain the pair."""
        return any(isinstance(part, (Composed, RandomAllocation)) for part in self.mechanism._within())

    def _replaced(self, *, upper: bool) -> core.Pair:
        """Return the pair where a record is replaced, from that of a record that is removed."""
        if any(part._for_one_adjacency for part in self.mechanism._within()):
            raise refuse(self, "replace", "its mechanism must have a pair for removing a record as well")
        try:
            steps = self.mechanism._pairs("add_or_remove", upper=upper)
        except ValueError as reason:
            raise refuse(
                self, "replace", f"its mechanism must have a pair for removing a record, and {reason}"
            ) from None
        return core.poisson_replaced_steps(steps, self.sampling_rate, not self._has_several_outputs(), upper)
