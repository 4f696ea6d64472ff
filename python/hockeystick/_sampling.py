"""Mechanisms that are run on a sample of the records."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hockeystick import _checks
from hockeystick._composed import NOTHING, as_one, discrete_pair, replaced_pair, simplest
from hockeystick._multiplicity import drawn_copies
from hockeystick._noise import Adjacency, Core, Entry, Mechanism, refuse, require_mechanism, require_pairs, symmetric

MOST_COPIES = 100  # of a record on average
SHIFTS = (1e-50, 1e50)  # of one copy, where mixtures keep their digits


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
    is attained, and in `hockeystick._composed.replaced_pair` for all others. `ApproximateDP`, `Discrete` and `DiscretePairs` are guarantees for one
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
            msg = f"mechanism must not need a fixed number of records, which a Poisson sample has not, as {self.mechanism!r} does"
            raise ValueError(msg)
        object.__setattr__(self, "sampling_rate", _checks.probability_scalar("sampling_rate", self.sampling_rate))

    def _parts(self) -> tuple[Mechanism, ...]:
        return (self.mechanism,)

    def _core(self, adjacency: Adjacency) -> Core:
        return self._sampled(adjacency, upper=True)

    def _entries(self, adjacency: Adjacency, *, upper: bool = True) -> list[Entry]:
        if self.sampling_rate == 1.0:
            return self.mechanism._entries(adjacency, upper=upper)
        return [(*self._sampled(adjacency, upper=upper), 1.0)]

    def _sampled(self, adjacency: Adjacency, *, upper: bool) -> Core:
        if adjacency == "replace" and self.sampling_rate not in (0.0, 1.0):
            return self._replaced(upper=upper)
        entries = self.mechanism._entries(adjacency, upper=upper)
        if self.sampling_rate == 0.0:
            return NOTHING
        return _sampled(as_one(entries, upper=upper), self.sampling_rate, upper=upper)

    def _replaced(self, *, upper: bool) -> Core:
        """Return the pair where a record is replaced, from that of a record that is removed."""
        if any(part._for_one_adjacency for part in self.mechanism._within()):
            raise refuse(self, "replace", "its mechanism must have a pair for removing a record as well")
        try:
            entries = self.mechanism._entries("add_or_remove", upper=upper)
        except ValueError as reason:
            raise refuse(
                self, "replace", f"its mechanism must have a pair for removing a record, and {reason}"
            ) from None
        whole = simplest(entries, upper=upper)
        if whole is None:
            return replaced_pair(*discrete_pair(entries, forward=True, upper=upper), self.sampling_rate)
        kind, parameters, rate = _sampled(whole, self.sampling_rate, upper=upper)
        if kind == "gaussian":
            return "replaced_gaussian", [*parameters, rate], 1.0
        if kind == "truncated_gaussian":
            return "truncated_replaced_gaussian", parameters, 1.0
        if kind == "discrete":
            half = len(parameters) // 2
            return replaced_pair(parameters[:half], parameters[half:], rate)
        pair = discrete_pair([(kind, parameters, 1.0, 1.0)], forward=True, upper=upper)
        return replaced_pair(*pair, rate)


def _sampled(core: Core, sampling_rate: float, *, upper: bool) -> Core:
    """Return what a Poisson sample of a release leaks; sampled twice is sampled at the product of the rates."""
    kind, parameters, rate = core
    if rate == 0.0:
        return NOTHING
    if kind == "truncated_gaussian":  # the truncation being shown, the sampling is that of either case
        shift, inner, truncation = parameters
        return kind, [shift, _product(inner, sampling_rate, upper=upper), truncation], rate
    return kind, parameters, _product(rate, sampling_rate, upper=upper)


def _product(rate: float, other: float, *, upper: bool) -> float:
    """Return the product, rounded to the safe side unless it is exact."""
    if 1.0 in (rate, other):
        return rate * other
    return math.nextafter(rate * other, 1.0 if upper else 0.0)


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
            msg = f"mechanism must not draw a batch of a data set itself, as {self.mechanism!r} does"
            raise ValueError(msg)
        object.__setattr__(self, "dataset_size", _checks.count_scalar("dataset_size", self.dataset_size))
        object.__setattr__(self, "batch_size", _checks.count_scalar("batch_size", self.batch_size))
        if not isinstance(self.replacement, bool):
            msg = f"replacement must be True or False, not {self.replacement!r}"
            raise TypeError(msg)
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
                msg = f"batch_size must be at least the num_users of {part!r}, not {self.batch_size}"
                raise ValueError(msg)
            if getattr(part, "dataset_size", self.batch_size) < self.batch_size:
                msg = f"batch_size must be at most the dataset_size of {part!r}, not {self.batch_size}"
                raise ValueError(msg)

    def _parts(self) -> tuple[Mechanism, ...]:
        return (self.mechanism,)

    def _core(self, adjacency: Adjacency) -> Core:
        return self._batched(adjacency, upper=True)

    def _entries(self, adjacency: Adjacency, *, upper: bool = True) -> list[Entry]:
        if adjacency == "replace" and not self.replacement and self.batch_size == self.dataset_size:
            return self.mechanism._entries(adjacency, upper=upper)
        return [(*self._batched(adjacency, upper=upper), 1.0)]

    def _batched(self, adjacency: Adjacency, *, upper: bool) -> Core:
        if adjacency == "add_or_remove" and any(part._for_one_adjacency for part in self.mechanism._within()):
            raise refuse(self, adjacency, "its mechanism must have a pair for replacing a record as well")
        if self.replacement and self.batch_size > 1:
            return self._with_replacement(adjacency, upper=upper)
        kind, parameters, rate = self._base(adjacency, upper=upper)
        if self.batch_size == self.dataset_size:
            if adjacency == "add_or_remove":
                raise refuse(self, adjacency, "a batch of all records does not exist where one is missing")
            return kind, parameters, rate
        drawn = self.batch_size / self.dataset_size
        if rate == 0.0:
            return NOTHING
        return (
            (kind, parameters, drawn)
            if adjacency == "add_or_remove" or not upper
            else (f"fixed_size_{kind}", [*parameters, drawn], 1.0)
        )

    def _base(self, adjacency: Adjacency, *, upper: bool) -> Core:
        """Return the mechanism's pair for replacement, which must be the same in either order."""
        entries = self.mechanism._entries("replace", upper=upper)
        if not all(symmetric(kind, parameters, rate) for kind, parameters, rate, _ in entries if rate > 0.0):
            raise refuse(self, adjacency, "its mechanism must have the same pair in either order, under replacement")
        whole = simplest(entries, upper=upper)
        if whole is not None:
            return whole
        p, q = discrete_pair(entries, forward=True, upper=upper)
        return "discrete", [*p, *q], 1.0

    def _with_replacement(self, adjacency: Adjacency, *, upper: bool) -> Core:
        kind, parameters, rate = simplest(self.mechanism._entries("replace", upper=upper), upper=upper) or NOTHING
        if kind not in ("gaussian", "laplace") or rate != 1.0:
            raise refuse(
                self, adjacency, "with replacement only noise is supported whose sum for several records is known"
            )
        if not SHIFTS[0] <= parameters[0] <= SHIFTS[1]:
            msg = f"2/noise_multiplier must lie in [{SHIFTS[0]}, {SHIFTS[1]}] with replacement, not {parameters[0]}"
            raise ValueError(msg)
        if self.dataset_size == 1:  # drawn every time
            if adjacency == "add_or_remove":
                raise refuse(self, adjacency, "there is nothing to draw from where the record is missing")
            return kind, [parameters[0] * self.batch_size], 1.0
        copies, weights, drawn = drawn_copies(self.batch_size, self.dataset_size, upper=upper)
        mixture = [*(parameters[0] * m for m in copies), *weights]
        if kind == "gaussian" and (adjacency == "add_or_remove" or not upper):
            return "gaussian_mixture", mixture, drawn
        if not upper:
            return kind, parameters, drawn
        if adjacency == "add_or_remove":
            return f"labelled_{kind}", mixture, drawn
        return f"fixed_size_labelled_{kind}", [*mixture, drawn], 1.0
