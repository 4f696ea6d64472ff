"""Mechanisms that are run on a sample of the records, and several releases of one sample as one mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import PROBABILITY, at_most, boolean_scalar, checked_count, count_scalar, setting_warnings
from hockeystick._checks.shown import shown
from hockeystick._statements import say
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, require_mechanism, require_pairs
from hockeystick.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from hockeystick.mechanisms.noise import Gaussian, Laplace

__all__ = ["Composed", "FixedSizeSampled", "PoissonSampled", "RandomAllocation", "TruncatedPoissonSampled"]

ONE_SAMPLE = "all releases of a step that is composed are of one and the same sample"  # what samplers of one assume


@dataclass(frozen=True)
class Composed(Mechanism):
    """Several mechanisms run on the same records: one step of an algorithm that releases more than one thing.

    `PoissonSampled` of it draws one sample for all of them. That differs from composing mechanisms that each draw their own.

    What it runs doubles, or not, where a record is replaced.

    Parameters
    ----------
    steps : sequence of (Mechanism, int)
        The mechanisms, and how often each is run; none, or 0 times, is nothing. Where it is sampled, at most 10^4 releases are not Gaussian.

    Notes
    -----
    Composed as it is, it is the composition of its steps, exactly. Where it is part of a sampled mechanism, the pair is the product of
    the steps' pairs. It is known in closed form if all are Gaussian, and to rounding where Gaussian noise stands beside Laplace noise and a
    record of a Poisson sample is added or removed (release/composed.hpp). Else it lies between two discrete pairs
    (pld/composed_pair.hpp), one above and one below at every epsilon, so that both ends stay certified.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.mechanisms.Composed([(hs.Gaussian(2.0), 1), (hs.Laplace(5.0), 3)])
    >>> once, each = hs.PoissonSampled(step, 0.01), [hs.PoissonSampled(part, 0.01) for part, _ in step.steps]
    >>> apart = hs.Accountant().compose(each[0], 100).compose(each[1], 300)
    >>> print(f"{hs.Accountant().compose(once, 100).epsilon(1e-5):.2f} {apart.epsilon(1e-5):.2f}")
    0.25 0.22
    """

    steps: Sequence[tuple[Mechanism, int]]

    def __post_init__(self) -> None:
        """Check the arguments."""
        if isinstance(self.steps, (str, Mechanism)) or not isinstance(self.steps, Sequence):
            raise TypeError(f"steps must be a sequence of (mechanism, count), not {shown(self.steps)}")
        self._set(steps=tuple(step for step in map(_step, self.steps) if step[1]))

    def _parts(self) -> tuple[Mechanism, ...]:
        return tuple(mechanism for mechanism, _ in self.steps)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if not self.steps:  # an empty list would say that nothing is known
            return [(core.as_one([], upper=True), 1.0)]
        return [
            (pair, count * times)
            for mechanism, times in self.steps
            for pair, count in mechanism._pairs(adjacency, upper=upper)
        ]


def _step(step: object) -> tuple[Mechanism, int]:
    if not isinstance(step, Sequence) or len(step) != 2:
        raise TypeError(f"steps must be pairs of a mechanism and a count, not {shown(step)}")
    require_mechanism(step[0])
    require_pairs(step[0])
    return step[0], checked_count(step[1])


class SampledMechanism(Mechanism):
    """What runs a mechanism on a sample of the records."""

    mechanism: Mechanism

    def _require_no_fixed_number(self, why: str) -> None:
        """Refuse what is no mechanism with pairs, and one that needs a fixed number of records."""
        require_mechanism(self.mechanism)
        require_pairs(self.mechanism)
        if self._has(FixedSizeSampled):
            raise ValueError(f"mechanism must not {why}, as {shown(self.mechanism)} does")

    def _has(self, *kinds: type[Mechanism]) -> bool:
        """Say whether what is run is of these kinds, or made of them."""
        return any(isinstance(part, kinds) for part in self.mechanism._within())

    def _one_sample(self) -> list[str]:
        return [ONE_SAMPLE] if isinstance(self.mechanism, Composed) else []

    def _parts(self) -> tuple[Mechanism, ...]:
        return (self.mechanism,)

    def _require_both(self, adjacency: Adjacency, doing: str) -> None:
        """Refuse a mechanism that is a guarantee for one adjacency."""
        if any(part._for_one_adjacency for part in self.mechanism._within()):
            raise self._refusal(adjacency, f"its mechanism must have a pair for {doing} a record as well")

    def _removal(self, *, upper: bool) -> list[CountedPair]:
        """Return what one release leaks of a record that is removed, or refuse to answer for one that is replaced."""
        self._require_both("replace", "removing")
        try:
            return self.mechanism._pairs("add_or_remove", upper=upper)
        except ValueError as reason:
            error = self._refusal("replace", f"its mechanism must have a pair for removing a record, and {reason}")
            raise error from None


MOST_COPIES = 100  # of a record on average


@dataclass(frozen=True)
class FixedSizeSampled(SampledMechanism):
    """A mechanism run on a batch of fixed size, drawn uniformly with or without replacement.

    What it runs doubles, or not, where a record is replaced.

    Parameters
    ----------
    mechanism : Mechanism
        What is run on the batch, under replacement of a record: any whose pair is the same in either order. With
        replacement `Gaussian`, `Laplace` or a `Composed` of Gaussians.
    num_records : int
        Number of records; where one is added or removed, that of the larger of two adjacent data sets, or less.
    batch_size : int
        Number of records drawn. Without replacement at most num_records, or one less where a record is added or removed.
    replacement : bool
        Whether a record can be drawn more than once.

    Notes
    -----
    Without replacement the record is in the batch with probability q = batch_size/num_records; with replacement it is there m times with
    binomial probability w_m, and q = 1 - w_0.

    A record replaced: dominated by the curve of loss/fixed_size_sampled.hpp, whose proof is there (Zhu, Dong and Wang 2022; with replacement Balle,
    Barthe and Gaboardi 2018, Theorem 10; of Gaussian noise less, where m is not told: loss/hidden_copies.hpp). Several steps need not attain it: the lower end is that of a data set whose other records are
    all alike, (1-q)Q + qP and Q; with replacement the pair of w_m N(2m/noise_multiplier) and N(0).

    A record added or removed, z say: without z the batch is some T. With z it is T with probability 1 - q, else T with one of its
    records replaced by z (with replacement: m of them). So it is dominated by (1-q)Q + qP and Q, where P and Q are the mechanism's pair for
    *replacement*; with replacement by the mixture of those for m records (loss/gaussian_mixture.hpp; for Laplace noise with m
    shown, and the lower end is that of one copy).

    The data sets of these lower ends show nothing of the other records. Where the mechanism itself draws a sample, they do, and
    the lower end is 0.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.FixedSizeSampled(hs.Gaussian(2.0), 1000, 50, replacement=False).batch_size
    50
    """

    mechanism: Mechanism
    num_records: int
    batch_size: int
    replacement: bool

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._require_no_fixed_number("draw a batch of a data set itself")
        self._check(num_records=count_scalar, batch_size=count_scalar, replacement=boolean_scalar)
        times, words = (MOST_COPIES, f"{MOST_COPIES} times ") if self.replacement else (1, "")
        at_most("batch_size", self.batch_size, f"{words}num_records", times * self.num_records)
        for part in self.mechanism._within():
            if getattr(part, "num_users", 0) > self.batch_size:
                raise ValueError(f"batch_size must be at least the num_users of {shown(part)}, not {self.batch_size}")
            if getattr(part, "num_records", self.batch_size) < self.batch_size:
                raise ValueError(f"batch_size must be at most the num_records of {shown(part)}, not {self.batch_size}")

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        how = say("with_replacement" if self.replacement else "without_replacement")
        own = say("assumed_fixed_size", how=how, records=self.num_records)
        return [*self._one_sample(), own]

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if not upper and any(hasattr(part, "sampling_rate") for part in self.mechanism._within()):
            return []
        if adjacency == "replace" and not self.replacement and self.batch_size == self.num_records:
            return self.mechanism._pairs(adjacency, upper=upper)
        if adjacency == "add_or_remove":
            self._require_both(adjacency, "replacing")
        steps = self.mechanism._pairs("replace", upper=upper)
        batch = float(self.num_records), float(self.batch_size), self.replacement
        try:
            return [(core.fixed_size_steps(steps, *batch, adjacency == "replace", upper), 1.0)]
        except ValueError as reason:
            raise self._refusal(adjacency, str(reason)) from None


@dataclass(frozen=True)
class TruncatedPoissonSampled(Mechanism):
    """Gaussian noise on a Poisson sample of which, if it is too large, a uniform subset is kept.

    What it runs doubles, or not, where a record is replaced.

    Parameters
    ----------
    mechanism : Gaussian
        What is run on the sample; noise_multiplier is over the add-or-remove sensitivity, as always.
    num_records : int
        Number of records, of the larger of two adjacent data sets, or an upper bound of it.
    sampling_rate : float
        Probability of each record, in [0, 1].
    max_batch_size : int
        How many records are kept at most, at least 1.
    zeroed_out : bool
        What adding or removing a record means: that it comes or goes, or, if this is true, that it contributes something or nothing
        in a place that it keeps in the sample and in the batch. Where records are replaced both are the same.

    Notes
    -----
    The algorithm of arXiv:2508.15089, with a bound of its own: docs/accounting/sampling.md, Truncated samples, has the proof. Let B be the
    largest batch. Truncation makes it likelier that the record that differs is in a full batch, and no likelier that it is in a smaller one.
    A full batch with the record is compared with what the B - 1 others alone give, one sensitivity away: Poisson sampling at
    a higher rate where the other records leave one place. Where most samples are truncated it is compared with a batch in which another
    record has its place, two sensitivities away. The pair shows which case it is.

    A record that is zeroed out (zero-out adjacency; dp_accounting's REPLACE_SPECIAL) leaks by the number of other records that are kept.
    Given that number it is a Poisson sample, whose rate is higher where there is one place left; the page has the proof.

    The bound need not be attained. The lower end is that of a data set whose other records contribute nothing. There z is in the batch
    with the probability r = E min(M, B)/n, M the binomial size of the sample of all n records, and nothing else is seen: Poisson
    sampling at the rate r.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.mechanisms.TruncatedPoissonSampled(hs.Gaussian(1.0), 1000, 0.01, 20)
    >>> print(hs.format_upper(hs.Accountant().compose(step, 100).epsilon(1e-5), ".2f"))
    0.73
    """

    mechanism: Mechanism
    num_records: int
    sampling_rate: float
    max_batch_size: int
    zeroed_out: bool = False

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not isinstance(self.mechanism, Gaussian):
            raise TypeError(f"mechanism must be Gaussian, not {shown(self.mechanism)}")
        self._check(num_records=count_scalar)
        given = self.sampling_rate
        self._check(sampling_rate=PROBABILITY, max_batch_size=count_scalar, zeroed_out=boolean_scalar)
        setting_warnings.warn(setting_warnings.integer_rate(given), skip=1)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        own = say("assumed_truncated", most=self.max_batch_size, records=self.num_records)
        return [own, say("assumed_zeroed_out")] if self.zeroed_out else [own]

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        noise: float = self.mechanism.noise_multiplier  # type: ignore[attr-defined]
        sample = float(self.num_records), self.sampling_rate, float(self.max_batch_size)
        change = 1 if adjacency == "replace" else 2 if self.zeroed_out else 0
        return [(core.truncated_poisson_sampled(noise, *sample, change, upper), 1.0)]


MOST_STEPS = 10**6
NOISE = (0.25, 1000.0)


@dataclass(frozen=True)
class RandomAllocation(SampledMechanism):
    """A mechanism run at each of several steps, of which every record takes part in a few, drawn uniformly.

    One composed `RandomAllocation` is all its steps: an epoch. With one selected step these are balls-and-bins batches: each
    record falls into one of `steps` batches, independently of the others.

    What it runs doubles, or not, where a record is replaced.

    Parameters
    ----------
    mechanism : Mechanism
        What is run on each batch; any but `FixedSizeSampled`, as the size of a batch is random. The noise_multiplier of `Gaussian`
        must lie in [0.25, 1000] where fewer than all steps are selected.
    steps : int
        Steps of the epoch, in [1, 10^6].
    num_selected : int
        In how many of them each record takes part, at most steps: a uniform subset, drawn for each record independently
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
    with the other to the step without, which is largest where they are opposite: X as large as the pair allows where X' is as small. Gaussian, Laplace,
    discrete Gaussian and discrete Laplace noise attain it, by opposite contributions, and two steps of Gaussian noise show their sum alone. k of t:
    blocks and labels, as above. The lower end of other mechanisms is that of a replacement that contributes nothing. `ApproximateDP`, `Discrete`, `PrivacyProfile` and others that
    are guarantees for one adjacency are refused there. With all steps selected, an epoch is so many releases, each by what is known where a record is
    replaced; with fewer, it is known by what a removed record leaks. A first query takes some tenths of a second.

    Of a mechanism that has no lower end of its own, as sparse vector or partition selection, the lower end is 0.

    Examples
    --------
    >>> import hockeystick as hs
    >>> for noise in (hs.Gaussian(1.0), hs.Laplace(1.0)):
    ...     epoch = hs.mechanisms.RandomAllocation(noise, 100)
    ...     print(hs.format_upper(hs.Accountant().compose(epoch).epsilon(1e-5), ".2f"))
    0.63
    0.35
    """

    mechanism: Mechanism
    steps: int
    num_selected: int = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._require_no_fixed_number("need a fixed number of records, which a batch has not")
        self._check(steps=count_scalar, num_selected=count_scalar)
        at_most("steps", self.steps, "the largest supported", MOST_STEPS)
        at_most("num_selected", self.num_selected, "steps", self.steps)
        noise = self.mechanism.noise_multiplier if isinstance(self.mechanism, Gaussian) else NOISE[0]
        if self.num_selected < self.steps and not NOISE[0] <= noise <= NOISE[1]:
            raise ValueError(
                f"noise_multiplier of a random allocation must lie in [{NOISE[0]}, {NOISE[1]}], not {noise}"
            )

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [say("assumed_allocation", selected=self.num_selected, steps=self.steps)]

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if self.num_selected == self.steps:
            pairs = self.mechanism._pairs(adjacency, upper=upper)
            return [(pair, count * self.steps) for pair, count in pairs]
        share = float(self.steps), float(self.num_selected)
        if adjacency == "replace":
            removal = self._removal(upper=upper)
            on_line = isinstance(self.mechanism, (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace))
            return core.replaced_allocation(removal, self._own(), *share, on_line, upper) if removal else []
        pairs = self.mechanism._pairs(adjacency, upper=upper)
        return core.allocated_steps(pairs, *share, upper) if pairs else []  # a release with no lower end has none

    def _own(self) -> list[CountedPair]:
        """Return what one release leaks of a record that is replaced, without allocation; nothing if that is not known."""
        try:
            return self.mechanism._pairs("replace")
        except ValueError:
            return []


@dataclass(frozen=True)
class PoissonSampled(SampledMechanism):
    """A mechanism run on a Poisson sample: each record is in it independently.

    Several releases of one sample are `Composed` first: that differs from composing mechanisms that each draw a sample.

    What it runs doubles, or not, where a record is replaced.

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
        self._require_no_fixed_number("need a fixed number of records, which a Poisson sample has not")
        given = self.sampling_rate
        self._check(sampling_rate=PROBABILITY)
        setting_warnings.warn(setting_warnings.integer_rate(given), skip=1)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [say("assumed_poisson"), *self._one_sample()]

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if self.sampling_rate == 1.0:
            return self.mechanism._pairs(adjacency, upper=upper)
        if adjacency == "replace" and self.sampling_rate > 0.0:
            removal = self._removal(upper=upper)
            # Opposite contributions need not attain the pair of several outputs, nor of several coordinates.
            several = self._has(Composed, RandomAllocation) or [count for _, count in removal] != [1.0]
            return [(core.poisson_replaced_steps(removal, self.sampling_rate, not several, upper), 1.0)]
        steps = self.mechanism._pairs(adjacency, upper=upper)
        return [(core.poisson_sampled_steps(steps, self.sampling_rate, upper), 1.0)]
