"""Fixed-size samples: each step draws a batch of given size, with or without replacement."""

from __future__ import annotations

from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import boolean_scalar, count_scalar
from hockeystick._checks.shown import shown
from hockeystick._statements import say
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, refuse, require_mechanism, require_pairs
from hockeystick.mechanisms.composed import ONE_SAMPLE, Composed

MOST_COPIES = 100  # of a record on average


@dataclass(frozen=True)
class FixedSizeSampled(Mechanism):
    """A mechanism run on a batch of fixed size, drawn uniformly with or without replacement.

    Parameters
    ----------
    mechanism : Mechanism
        What is run on the batch, under replacement of a record: any whose pair is the same in either order. With
        replacement `Gaussian`, `Laplace` or a `Composed` of Gaussians.
    dataset_size : int
        Number of records; where one is added or removed, that of the larger of two adjacent data sets, or less.
    batch_size : int
        Number of records drawn. Without replacement at most dataset_size, or one less where a record is added or removed.
    replacement : bool
        Whether a record can be drawn more than once.

    Notes
    -----
    Without replacement the record is in the batch with probability q = batch_size/dataset_size; with replacement it is there m times with
    binomial probability w_m, and q = 1 - w_0.

    A record replaced: dominated by the curve of loss/fixed_size_sampled.hpp, whose proof is there (Zhu, Dong and Wang 2022; with replacement Balle,
    Barthe and Gaboardi 2018, Theorem 10). Several steps need not attain it: the lower end is that of a data set whose other records are
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
    dataset_size: int
    batch_size: int
    replacement: bool

    def __post_init__(self) -> None:
        """Check the arguments."""
        require_mechanism(self.mechanism)
        require_pairs(self.mechanism)
        if any(isinstance(part, FixedSizeSampled) for part in self.mechanism._within()):
            msg = f"mechanism must not draw a batch of a data set itself, as {shown(self.mechanism)} does"
            raise ValueError(msg)
        object.__setattr__(self, "dataset_size", count_scalar("dataset_size", self.dataset_size))
        object.__setattr__(self, "batch_size", count_scalar("batch_size", self.batch_size))
        object.__setattr__(self, "replacement", boolean_scalar("replacement", self.replacement))
        most = self.dataset_size * (MOST_COPIES if self.replacement else 1)
        if self.batch_size > most:
            times = f"{MOST_COPIES} times " if self.replacement else ""
            msg = f"batch_size must be at most {times}dataset_size ({self.dataset_size}), not {self.batch_size}"
            raise ValueError(msg)
        self._check_batch()

    def _check_batch(self) -> None:
        """Refuse a mechanism that says it is run on other records than a batch has."""
        for part in self.mechanism._within():
            if getattr(part, "num_users", 0) > self.batch_size:
                msg = f"batch_size must be at least the num_users of {shown(part)}, not {self.batch_size}"
                raise ValueError(msg)
            if getattr(part, "dataset_size", self.batch_size) < self.batch_size:
                msg = f"batch_size must be at most the dataset_size of {shown(part)}, not {self.batch_size}"
                raise ValueError(msg)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        how = say("with_replacement" if self.replacement else "without_replacement")
        own = say("assumed_fixed_size", how=how, records=self.dataset_size)
        return [*([ONE_SAMPLE] if isinstance(self.mechanism, Composed) else []), own]

    def _parts(self) -> tuple[Mechanism, ...]:
        return (self.mechanism,)

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return self._batched(adjacency, upper=True)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if not upper and any(hasattr(part, "sampling_rate") for part in self.mechanism._within()):
            return []
        if adjacency == "replace" and not self.replacement and self.batch_size == self.dataset_size:
            return self.mechanism._pairs(adjacency, upper=upper)
        return [(self._batched(adjacency, upper=upper), 1.0)]

    def _batched(self, adjacency: Adjacency, *, upper: bool) -> core.Pair:
        if adjacency == "add_or_remove" and any(part._for_one_adjacency for part in self.mechanism._within()):
            raise refuse(self, adjacency, "its mechanism must have a pair for replacing a record as well")
        steps = self.mechanism._pairs("replace", upper=upper)
        batch = float(self.dataset_size), float(self.batch_size), self.replacement
        try:
            return core.fixed_size_steps(steps, *batch, adjacency == "replace", upper)
        except ValueError as reason:
            raise refuse(self, adjacency, str(reason)) from None
