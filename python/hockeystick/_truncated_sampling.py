"""Poisson sampling into batches of bounded size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hockeystick import _checks
from hockeystick._noise import Adjacency, Core, Gaussian, Mechanism

LEAST_PROBABILITY = 1e-300  # so that no truncation is lost to underflow
TERMS = 10**4  # of the binomial tail; a geometric series bounds the others


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
    so that an upper bound of t will do. The bound need not be attained.

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
        object.__setattr__(self, "dataset_size", _checks.count_scalar("dataset_size", self.dataset_size))
        object.__setattr__(self, "sampling_rate", _checks.probability_scalar("sampling_rate", self.sampling_rate))
        object.__setattr__(self, "max_batch_size", _checks.count_scalar("max_batch_size", self.max_batch_size))

    def _core(self, adjacency: Adjacency) -> Core:
        shift, rate = 1.0 / self.mechanism.noise_multiplier, self.sampling_rate  # type: ignore[attr-defined]
        truncation = binomial_tail(self.dataset_size - 1, rate, self.max_batch_size)
        replaced = adjacency == "replace"
        if 0.0 < truncation < 1.0:
            kind = "truncated_replaced_gaussian" if replaced else "truncated_gaussian"
            return kind, [shift, rate, truncation], 1.0
        moved = shift * (1.0 + truncation)
        if replaced and 0.0 < rate < 1.0:
            return "replaced_gaussian", [moved, rate], 1.0
        return "gaussian", [moved * (1.0 + replaced)], rate


def binomial_tail(trials: int, rate: float, least: int) -> float:
    """Return an upper bound of the probability of at least `least` successes, close unless that is near one."""
    if least > trials or rate == 0.0:
        return 0.0
    if rate == 1.0:
        return 1.0
    terms = [
        math.lgamma(trials + 1.0),
        -math.lgamma(least + 1.0),
        -math.lgamma(trials - least + 1.0),
        least * math.log(rate),
        (trials - least) * math.log1p(-rate),
    ]
    error = 2.0**-49 * math.fsum(map(abs, terms))
    j = np.arange(least, min(trials, least + TERMS), dtype=np.float64)
    log_ratios = np.log((trials - j) / (j + 1.0)) + (math.log(rate) - math.log1p(-rate))
    last = math.exp(log_ratios[-1]) if j.size else 0.0
    if last > 1.0 - 1e-5:  # the mean lies far beyond
        return 1.0
    logs = np.concatenate([[0.0], np.cumsum(log_ratios)])  # of each probability over that of `least`
    log_beyond = float(logs[-1]) + math.log(last) - math.log1p(-last) if last > 0.0 else -math.inf
    log_series = float(np.logaddexp.reduce([*logs, log_beyond]))
    log_tail = math.fsum(terms) + error + log_series + 1e-9
    return max(math.exp(min(log_tail, 0.0)), LEAST_PROBABILITY)
