"""Whether the sizes of the batches that were logged can be those of the sampler that was charged.

A Poisson sample of n clients at rate q has a binomial number of them. Clients that drop out for reasons of their own thin it:
the number is then binomial with a smaller rate p, which may change from round to round. The hypothesis that is tested is
therefore that every size s, given all before it, is binomial with some p of at most q, or a mixture of such. Batches of a fixed
size and batches in a cyclic order violate it: their sizes are too much alike. So do samples at a higher rate than the one charged.
Batches cut to a largest size (`TruncatedPoissonSampled`) may be alike, and only the second is tested of them.

Each size is turned into a bet, a number e(s) >= 0 whose expectation is at most 1 under the hypothesis:

- alike: the share of the last few sizes that were equal to s, over the largest probability of s at any p <= q. Summed over s
  against any such p that is at most the sum of the shares, 1. Half of the stake is bet.
- too many: for rates r above q, the probability of s at r over that at q. It increases with s, so that its expectation is
  largest at p = q, where it is 1.

Products of such bets are supermartingales. Those of bets that begin in round t get the weight 1/t - 1/(t + 1), so that a change of
the sampler is noticed late in a training too; their sum and the weight of those not begun is a supermartingale that begins at 1.
By Ville's inequality it ever reaches 10^9 with a probability of at most 10^-9, however many rounds there are.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.binomial import log_binomial_pmf
from hockeystick.mechanisms import PoissonSampled, TruncatedPoissonSampled
from hockeystick.mechanisms.base import Mechanism

LEVEL = 1e-9  # of the test, over all rounds together
RATES = 32  # higher ones that are bet on, in a geometric series from the rate charged to 1
LAST = 16  # sizes that the next is compared with
WEIGHTS = np.array([0.5] + [0.5 / RATES] * RATES)  # of the bets: half for equal sizes, half for higher rates
LARGEST_LOG = 700.0  # whose exponential is finite


def batch_rate(mechanism: Mechanism) -> float | None:
    """Return the largest probability of a client to take part, None if the mechanism is no Poisson sample."""
    if isinstance(mechanism, TruncatedPoissonSampled):
        return mechanism.sampling_rate
    if not isinstance(mechanism, PoissonSampled):
        return None
    within = batch_rate(mechanism.mechanism)  # a sample of a sample
    return mechanism.sampling_rate * (1.0 if within is None else within)


def alike_bet(share: float, num_clients: int, rate: float, size: int) -> float:
    """Return the bet that a size comes as often as it did before, in a `share` of the rounds."""
    most_probable = min(rate, size / num_clients)  # at this rate, of all that are allowed, the size is likeliest
    return 0.5 + 0.5 * share * math.exp(min(-log_binomial_pmf(num_clients, most_probable, size), LARGEST_LOG))


def excess_bets(num_clients: int, rate: float, size: int) -> Array:
    """Return the bets on higher rates."""
    higher = rate ** (np.arange(RATES) / RATES)  # from 1 down to what is next to the rate
    logs = size * np.log(higher / rate)
    if size < num_clients:
        with np.errstate(divide="ignore"):  # at a rate of 1 everybody takes part
            logs += (num_clients - size) * (np.log1p(-higher) - math.log1p(-rate))
    return np.asarray(np.exp(np.minimum(logs, LARGEST_LOG)))


class BatchSizes:
    """The last sizes logged, and what has been won by betting on them."""

    def __init__(self) -> None:
        self._rounds = 0
        self._seen: dict[tuple[float, int], deque[int]] = {}  # by the rate and the number of clients
        self._won = np.zeros(RATES + 1)  # by bets on equal sizes, and on each of the higher rates

    def improbable(self, mechanism: Mechanism, num_clients: int, size: int) -> bool:
        """Say whether the test rejects the sizes so far and this one; it rejects a true sampler with a probability of at most 1e-9."""
        rate = batch_rate(mechanism)
        if rate == 0.0:
            return size > 0
        if rate in (None, 1.0) or not num_clients:
            return False
        won = self._after(mechanism, num_clients, size)
        return float(WEIGHTS @ won) + 1.0 / (self._rounds + 2) >= 1.0 / LEVEL

    def add(self, mechanism: Mechanism, num_clients: int, size: int) -> None:
        """Log a size."""
        if batch_rate(mechanism) not in (None, 0.0, 1.0) and num_clients:
            self._won = self._after(mechanism, num_clients, size)
            self._seen.setdefault((batch_rate(mechanism) or 0.0, num_clients), deque(maxlen=LAST)).append(size)
            self._rounds += 1

    def _after(self, mechanism: Mechanism, num_clients: int, size: int) -> Array:
        """Return what is won after one more size."""
        rate = batch_rate(mechanism) or 0.0
        seen = self._seen.get((rate, num_clients), ())
        share = seen.count(size) / len(seen) if seen else 0.0
        cut = any(isinstance(part, TruncatedPoissonSampled) for part in mechanism._within())  # sizes may well be alike
        alike = 1.0 if cut else alike_bet(share, num_clients, rate, size)
        stake = 1.0 / (self._rounds + 1) - 1.0 / (self._rounds + 2)
        with np.errstate(over="ignore"):  # infinitely much is more than enough
            return np.asarray((self._won + stake) * np.concatenate([[alike], excess_bets(num_clients, rate, size)]))
