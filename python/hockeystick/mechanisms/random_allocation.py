"""Random allocation: every record takes part in a few of the steps, chosen uniformly."""

from __future__ import annotations

from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import count_scalar
from hockeystick._checks.shown import shown
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, refuse, require_mechanism, require_pairs
from hockeystick.mechanisms.fixed_size_sampled import FixedSizeSampled
from hockeystick.mechanisms.noise import Gaussian

MOST_STEPS = 10**6
NOISE = (0.25, 1000.0)


@dataclass(frozen=True)
class RandomAllocation(Mechanism):
    """A mechanism run at each of several steps, of which every record takes part in a few, drawn uniformly.

    One composed `RandomAllocation` is all its steps: an epoch. With one selected step these are balls-and-bins batches: each
    record falls into one of `num_steps` batches, independently of the others.

    Parameters
    ----------
    mechanism : Mechanism
        What is run on each batch; any but `FixedSizeSampled`, as the size of a batch is random. The noise_multiplier of `Gaussian`
        must lie in [0.25, 1000] where fewer than all steps are selected.
    num_steps : int
        Steps of the epoch, in [1, 10^6].
    num_selected : int
        In how many of them each record takes part, at most num_steps: a uniform subset, drawn for each record independently
        of all others, anew for each epoch, and kept secret.

    Notes
    -----
    A record added or removed. One of t steps: if (P, Q) dominates one release, the pair (1/t) sum_i Q x ... x P x ... x Q, P at place i,
    and Q x ... x Q dominates steps that are chosen adaptively, and is attained where P and Q are. The likelihood ratio is a mean of t
    independent ones. Pairs of few outcomes are served exactly, others to a few thousandths of epsilon. k of t: at most k epochs
    of one of floor(t/k) or ceil(t/k) steps; the lower end is that of the sum of labels of the outputs, whose law does not depend on
    the subset. The proofs, and how both ends are computed, are in docs/core/allocation.md. Feldman and Shenfeld 2025, arXiv:2502.08202;
    Chua et al. 2025, arXiv:2412.16802, for balls and bins. Not for shuffled batches, whose sizes are fixed: there a
    record's batch depends on those of others.

    A record replaced. Either record draws its own steps; as outputs show no draw, it does not matter whether both draw the same
    ones. One of t steps: delta is the mean of (mean of X_i - e^eps mean of X'_i)_+, X and X' the ratios of a step with the one record and
    with the other to the step without, which is largest where they are opposite: X as large as the pair allows where X' is as small. Noise on
    the line attains it, by opposite contributions. k of t: blocks, as above. The lower end is that of a replacement that contributes
    nothing; of Gaussian noise, that of the sum of all outputs. `ApproximateDP`, `Discrete`, `PrivacyProfile` and others that
    are guarantees for one adjacency are refused there. With all steps selected, an epoch is so many releases, each by what is known where a record is
    replaced; with fewer, it is known by what a removed record leaks. A first query takes a few seconds.

    Of a mechanism that has no lower end of its own, as sparse vector or partition selection, the lower end is 0.

    Examples
    --------
    >>> import hockeystick as hs
    >>> for noise in (hs.Gaussian(1.0), hs.Laplace(1.0)):
    ...     epoch = hs.RandomAllocation(noise, 100)
    ...     print(hs.format_upper(hs.Accountant().compose(epoch).epsilon(1e-5), ".2f"))
    0.63
    0.35
    """

    mechanism: Mechanism
    num_steps: int
    num_selected: int = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        require_mechanism(self.mechanism)
        require_pairs(self.mechanism)
        if any(isinstance(part, FixedSizeSampled) for part in self.mechanism._within()):
            msg = f"mechanism must not need a fixed number of records, which a batch has not, as {shown(self.mechanism)} does"
            raise ValueError(msg)
        for name in ("num_steps", "num_selected"):
            object.__setattr__(self, name, count_scalar(name, getattr(self, name)))
        if self.num_steps > MOST_STEPS:
            msg = f"num_steps must be at most {MOST_STEPS}, not {self.num_steps}"
            raise ValueError(msg)
        if self.num_selected > self.num_steps:
            msg = f"num_selected must be at most num_steps ({self.num_steps}), not {self.num_selected}"
            raise ValueError(msg)
        noise = self.mechanism.noise_multiplier if isinstance(self.mechanism, Gaussian) else NOISE[0]
        if self.num_selected < self.num_steps and not NOISE[0] <= noise <= NOISE[1]:
            msg = f"noise_multiplier of a random allocation must lie in [{NOISE[0]}, {NOISE[1]}], not {noise}"
            raise ValueError(msg)

    def _parts(self) -> tuple[Mechanism, ...]:
        return (self.mechanism,)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [
            (
                f"random allocation: in every epoch each record takes part in {self.num_selected} of the "
                f"{self.num_steps} steps, drawn uniformly and independently of all other records; the choice is secret"
            )
        ]

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if self.num_selected == self.num_steps:
            pairs = self.mechanism._pairs(adjacency, upper=upper)
            return [(pair, count * self.num_steps) for pair, count in pairs]
        share = float(self.num_steps), float(self.num_selected)
        if adjacency == "replace":
            removal = self._removal(upper=upper)
            return core.replaced_allocation(removal, self._own(), *share, upper) if removal else []
        pairs = self.mechanism._pairs(adjacency, upper=upper)
        return core.allocated_steps(pairs, *share, upper) if pairs else []  # a release with no lower end has none

    def _own(self) -> list[CountedPair]:
        """Return what one release leaks of a record that is replaced, without allocation; nothing if that is not known."""
        try:
            return self.mechanism._pairs("replace")
        except ValueError:
            return []

    def _removal(self, *, upper: bool) -> list[CountedPair]:
        """Return what one release leaks of a record that is removed, or refuse to answer for one that is replaced."""
        if any(part._for_one_adjacency for part in self.mechanism._within()):
            raise refuse(self, "replace", "its mechanism must have a pair for removing a record as well")
        try:
            return self.mechanism._pairs("add_or_remove", upper=upper)
        except ValueError as reason:
            raise refuse(
                self, "replace", f"its mechanism must have a pair for removing a record, and {reason}"
            ) from None
