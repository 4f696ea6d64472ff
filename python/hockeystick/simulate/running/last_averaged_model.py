"""What the last averaged model alone leaks, where clients are drawn at random (docs/core/federated.md has the proof)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hockeystick._numeric.rounding import UP
from hockeystick.accounting.accountant import Accountant
from hockeystick.mechanisms import Gaussian
from hockeystick.simulate.running.averaged_models import FixedMean
from hockeystick.simulate.running.guarantee import Guarantee
from hockeystick.simulate.running.views import WORDS, smallest_of

__all__ = ["LARGEST_EXPONENT", "SampledRounds", "last_averaged_model"]

SHARES = tuple(0.05 * k for k in range(1, 20))  # of the noise, that hides the record; any share is sound
GROWTH = 1.15  # from one number of rounds that is tried to the next
LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class SampledRounds:
    """Rounds that are alike, in deviations of the noise of their mean.

    Parameters
    ----------
    shift : float
        By how much a record that is used moves the mean.
    rate : float
        Probability that it is used, below 1.
    lipschitz : float
        Of a round's map from model to mean, with the clients and batches given; at least 1.
    diameter : float
        Of the ball that models are projected onto, finite.
    """

    shift: float
    rate: float
    lipschitz: float
    diameter: float

    def closing(self, last: int) -> float:
        """Return the parameter of a Gaussian mechanism that closes a gap as wide as the ball in the last rounds."""
        log_c = math.log(self.lipschitz)
        if log_c > LARGEST_EXPONENT / 4:
            return math.inf
        # the sum of c^-2j, j = 1, ..., last
        terms = -math.expm1(-2.0 * last * log_c) / math.expm1(2.0 * log_c) if log_c > 0 else float(last)
        return self.diameter / math.sqrt(terms) * UP * UP

    def split(self, rounds: int) -> tuple[int, float] | None:
        """Return how many last rounds to compose, and which share of their noise hides the record; None for all rounds."""
        best, least = None, rounds * self._variance(self.shift)
        last = 1
        while last < rounds and (closing := self.closing(last)) < math.inf:
            for share in SHARES:
                variance = last * self._variance(self.shift / math.sqrt(share)) + closing * closing / (1.0 - share)
                if variance < least:
                    best, least = (last, share), variance
            last = math.ceil(last * GROWTH)
        return best

    def _variance(self, shift: float) -> float:
        return min(shift * shift, self.rate**2 * math.expm1(min(shift * shift, LARGEST_EXPONENT)))

    def epsilon(self, rounds: int, delta: float) -> float:
        """Return an upper bound of epsilon after some rounds, or infinity where no split is better than all rounds."""
        split = self.split(rounds)
        if split is None:
            return math.inf
        last, share = split
        mu = self.closing(last) / math.sqrt(1.0 - share) * UP
        spent = Accountant("replace").compose(FixedMean(self.shift / math.sqrt(share) * UP, self.rate), last)
        return float(spent.compose(Gaussian(2.0 / mu / UP), 1).epsilon(delta))


def last_averaged_model(each: Guarantee, alike: SampledRounds, rounds: int) -> Guarantee:
    """Return the guarantee of the last model, or that of each round's if it is likely to be the smaller one after all rounds."""
    if alike.split(rounds) is None:
        return each
    source = "Accountant; the last rounds, sampled, and a Gaussian mechanism for those before"
    return smallest_of(WORDS["last_model"], [Guarantee("replace", WORDS["last_model"], source, alike.epsilon), each])
