"""Whether the sizes of the batches that were logged can be those of the sampler that was charged.

A Poisson sample of n clients at rate q has a binomial number of them. Clients that are offline or drop out thin it, some more often than
others: client i then takes part with a probability p_i of at most q, which may change from round to round. The hypothesis that is tested is
therefore that every size s, given all before it, is the number of successes of n independent trials with probabilities in [0, q], or a mixture
of such laws. Batches of a fixed size and batches in a cyclic order violate it: their sizes are too much alike. So do samples at a higher rate than the one charged.
Batches cut to a largest size (`TruncatedPoissonSampled`) may be alike, and only the second is tested of them.

Each size is turned into a bet, a number e(s) >= 0 whose expectation is at most 1 under the hypothesis:

- alike: the share of the last few sizes that were equal to s, over the largest probability of s under any such law. Summed over s
  against one of them that is at most the sum of the shares, 1. Half of the stake is bet.
- too many: for rates r above q, the binomial probability of s at r over that at q. It increases with s, so that its expectation is
  largest where all p_i are q, where it is 1.

The largest probability of s is that of m clients who always can take part, and n - m who never do: P(S = s) is affine in each p_i while the others
are held, so that a corner of [0, q]^n has the maximum, where m of the p_i are q and the others 0. There S is binomial with m trials. From m to m + 1 its
probability of s changes by the factor (1 - q) (m + 1)/(m + 1 - s), which is at least 1 if and only if m + 1 <= s/q. So m is the integer part of s/q, or n if that is less.

Products of such bets are supermartingales. Those of bets that begin in round t get the weight 1/t - 1/(t + 1), so that a change of
the sampler is noticed late in a training too; their sum and the weight of those not begun is a supermartingale that begins at 1.
By Ville's inequality it ever reaches 10^9 with a probability of at most 10^-9, however many rounds there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import FUNCTIONS
from hockeystick.mechanisms import PoissonSampled, TruncatedPoissonSampled
from hockeystick.mechanisms.base import Mechanism

LEVEL = 1e-9  # of the test, over all rounds together
RATES = 32  # higher ones that are bet on, in a geometric series from the rate charged to 1
LAST = 16  # sizes that the next is compared with
WEIGHTS = np.array([0.5] + [0.5 / RATES] * RATES)  # of the bets: half for equal sizes, half for higher rates
LARGEST_LOG = 700.0  # whose exponential is finite


def sampler_of(mechanism: Mechanism) -> tuple[float | None, bool]:
    """Return the largest probability of a client to take part, None if this is no Poisson sample, and whether batches are cut."""
    if isinstance(mechanism, TruncatedPoissonSampled):
        return mechanism.sampling_rate, True
    if not isinstance(mechanism, PoissonSampled):
        return None, False
    within, cut = sampler_of(mechanism.mechanism)  # a sample of a sample
    return mechanism.sampling_rate * (1.0 if within is None else within), cut


def alike_bet(share: float, num_clients: int, rate: float, size: int) -> float:
    """Return the bet that a size comes as often as it did before, in a `share` of the rounds."""
    return 0.5 + 0.5 * share * math.exp(min(-largest_log_probability(num_clients, rate, size), LARGEST_LOG))


def largest_log_probability(num_clients: int, rate: float, size: int) -> float:
    """Return the logarithm of the largest probability of a size, whoever of the clients can take part how often."""
    likeliest = min(int(min(size / rate, num_clients)), num_clients)
    near = (likeliest - 1, likeliest, likeliest + 1)  # the quotient is rounded
    return max(_log_binomial_pmf(min(max(able, size), num_clients), rate, size) for able in near)


def _log_binomial_pmf(trials: int, rate: float, successes: int) -> float:
    """Return an upper bound of the logarithm of the probability of so many successes, close by the rounding of its terms."""
    if rate in (0.0, 1.0):
        return 0.0 if successes == trials * rate else -math.inf
    terms = [
        math.lgamma(trials + 1.0),
        -math.lgamma(successes + 1.0),
        -math.lgamma(trials - successes + 1.0),
        successes * math.log(rate),
        (trials - successes) * math.log1p(-rate),
    ]
    return math.fsum(terms) + FUNCTIONS * math.fsum(map(abs, terms))


def excess_bets(num_clients: int, rate: float, size: int) -> Array:
    """Return the bets on higher rates."""
    higher = rate ** (np.arange(RATES) / RATES)  # from 1 down to what is next to the rate
    logs = size * np.log(higher / rate)
    if size < num_clients:
        with np.errstate(divide="ignore"):  # at a rate of 1 everybody takes part
            logs += (num_clients - size) * (np.log1p(-higher) - math.log1p(-rate))
    return np.asarray(np.exp(np.minimum(logs, LARGEST_LOG)))


class BatchSizes(NamedTuple):
    """The last sizes logged, and what has been won by betting on them; nothing in it is ever changed."""

    rounds: int = 0
    seen: Mapping[tuple[float, int], tuple[int, ...]] = MappingProxyType({})  # by the rate and the number of clients
    won: Array = np.zeros(RATES + 1)  # by bets on equal sizes, and on each of the higher rates

    def improbable(self, mechanism: Mechanism, num_clients: int, size: int) -> bool:
        """Say whether the test rejects the sizes so far and this one; it rejects a true sampler with a probability of at most 1e-9."""
        after = self.after(mechanism, num_clients, size)
        if after is self:  # there was nothing to bet on
            return sampler_of(mechanism)[0] == 0.0 and size > 0
        return float(WEIGHTS @ after.won) + 1.0 / (after.rounds + 1) >= 1.0 / LEVEL

    def after(self, mechanism: Mechanism, num_clients: int, size: int) -> BatchSizes:
        """Return them with one size more."""
        rate, cut = sampler_of(mechanism)
        if rate is None or rate in (0.0, 1.0) or not num_clients:
            return self
        seen = self.seen.get((rate, num_clients), ())
        share = seen.count(size) / len(seen) if seen else 0.0
        alike = 1.0 if cut else alike_bet(share, num_clients, rate, size)  # batches that are cut may well be alike
        stake = 1.0 / (self.rounds + 1) - 1.0 / (self.rounds + 2)
        with np.errstate(over="ignore"):  # infinitely much is more than enough
            won = (self.won + stake) * np.concatenate([[alike], excess_bets(num_clients, rate, size)])
        return BatchSizes(self.rounds + 1, {**self.seen, (rate, num_clients): (*seen, size)[-LAST:]}, won)
