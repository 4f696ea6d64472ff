"""Poisson sampling into batches of bounded size."""

from __future__ import annotations

from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import boolean_scalar, count_scalar, implausible, probability_scalar
from hockeystick._checks.shown import shown
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
    >>> step = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 1000, 0.01, 20)
    >>> print(hs.format_upper(hs.Accountant().compose(step, 100).epsilon(1e-5), ".2f"))
    0.73
    """

    mechanism: Mechanism
    dataset_size: int
    sampling_rate: float
    max_batch_size: int
    zeroed_out: bool = False

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not isinstance(self.mechanism, Gaussian):
            msg = f"mechanism must be Gaussian, not {shown(self.mechanism)}"
            raise TypeError(msg)
        object.__setattr__(self, "dataset_size", count_scalar("dataset_size", self.dataset_size))
        rate = probability_scalar("sampling_rate", self.sampling_rate)
        implausible.warn(implausible.integer_rate(self.sampling_rate), skip=1)
        object.__setattr__(self, "sampling_rate", rate)
        object.__setattr__(self, "max_batch_size", count_scalar("max_batch_size", self.max_batch_size))
        object.__setattr__(self, "zeroed_out", boolean_scalar("zeroed_out", self.zeroed_out))

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        said = [
            (
                "truncated Poisson sampling: every step draws its own sample, each record independently, of which a uniform "
                f"subset is kept if it has more than {self.max_batch_size}; which is secret; a data set has at most "
                f"{self.dataset_size} records"
            )
        ]
        if self.zeroed_out:
            said.append(
                "zero-out adjacency: a record that is removed keeps its place in samples and batches, and contributes nothing"
            )
        return said

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return self._sampled(adjacency, upper=True)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        return [(self._sampled(adjacency, upper=upper), 1.0)]

    def _sampled(self, adjacency: Adjacency, *, upper: bool) -> core.Pair:
        noise: float = self.mechanism.noise_multiplier  # type: ignore[attr-defined]
        sample = float(self.dataset_size), self.sampling_rate, float(self.max_batch_size)
        change = 1 if adjacency == "replace" else 2 if self.zeroed_out else 0
        return core.truncated_poisson_sampled(noise, *sample, change, upper)
