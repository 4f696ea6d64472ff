"""Poisson sampling into batches of bounded size."""

from __future__ import annotations

from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import count_scalar, probability_scalar
from hockeystick._numeric.binomial import binomial_mean_below, binomial_tail
from hockeystick._numeric.rounding import DOWN
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism
from hockeystick.mechanisms.noise import Gaussian


@dataclass(frozen=True)
class TruncatedPoissonSampled(Mechanism):
    """Gaussian noise on a Poisson sample of which, if it is too large, a uniform subset is kept.

    Parameters
    ----------
    mechanism : Gaussian
        What is run on the sample; noise_multiplier is over the add-or-remove sensitivity, as always.
    dataset_size : int
        Number of records, of the larger of two adjacent data sets, or an upper bound of it.
    sampling_rate : float
        Probability of each record, in [0, 1].
    max_batch_size : int
        How many records are kept at most, at least 1.

    Notes
    -----
    The algorithm of arXiv:2508.15089, with this proof. Let z be the record
    that differs, q the sampling rate, B the largest batch, S the sample of the other records, which is common to both data
    sets, and |S| >= B with probability t. If |S| < B nothing is dropped: Poisson sampling. Else let T be a uniform B-subset
    of S. Without z the batch is T. With z in the data, z takes the place of a uniform member of T with probability
    q B/(|S| + 1) <= q, else the batch is T: sampling of rate at most q of a move by at most two sensitivities. Showing
    which of both happened, the pair is (1 - t) of Poisson sampling and t of Poisson sampling with twice the
    sensitivity; where z is replaced the same holds of the pairs of `PoissonSampled`. Both rise with q, and the second is the larger,
    so that an upper bound of t will do.

    The bound need not be attained. The lower end is that of a data set whose other records contribute nothing. There z is in the batch
    with the probability r = E min(M, B)/n, M the binomial size of the sample of all n records, and nothing else is seen: Poisson
    sampling at the rate r.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 1000, 0.01, 20)
    >>> round(hs.Accountant().compose(step, 100).epsilon(1e-5), 1)
    2.4
    """

    mechanism: Mechanism
    dataset_size: int
    sampling_rate: float
    max_batch_size: int

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not isinstance(self.mechanism, Gaussian):
            msg = f"mechanism must be Gaussian, not {self.mechanism!r}"
            raise TypeError(msg)
        object.__setattr__(self, "dataset_size", count_scalar("dataset_size", self.dataset_size))
        object.__setattr__(self, "sampling_rate", probability_scalar("sampling_rate", self.sampling_rate))
        object.__setattr__(self, "max_batch_size", count_scalar("max_batch_size", self.max_batch_size))

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [
            (
                "truncated Poisson sampling: every step draws its own sample, each record independently, of which a uniform "
                f"subset is kept if it has more than {self.max_batch_size}; which is secret; a data set has at most "
                f"{self.dataset_size} records"
            )
        ]

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        size, most = self.dataset_size, self.max_batch_size
        if upper or most >= size:  # no sample is too large
            return super()._pairs(adjacency)
        rate = binomial_mean_below(size, self.sampling_rate, most) / size * DOWN
        return [(self._untruncated(1.0, rate, replaced=adjacency == "replace"), 1.0)]

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        shift, rate = 1.0 / self.mechanism.noise_multiplier, self.sampling_rate  # type: ignore[attr-defined]
        truncation = binomial_tail(self.dataset_size - 1, rate, self.max_batch_size)
        replaced = adjacency == "replace"
        if 0.0 < truncation < 1.0:
            return core.truncated_poisson(shift, rate, truncation, replaced)
        return self._untruncated(1.0 + truncation, rate, replaced=replaced)

    def _untruncated(self, moves: float, rate: float, *, replaced: bool) -> core.Pair:
        """Return the pair of a Poisson sample in which a record moves the sum by so many sensitivities."""
        moved = moves * (1.0 / self.mechanism.noise_multiplier)  # type: ignore[attr-defined]
        if replaced and 0.0 < rate < 1.0:
            return core.replaced_gaussian(moved, rate)
        return core.poisson_sampled(core.gaussian_of_shift(moved * (1.0 + replaced)), rate)
