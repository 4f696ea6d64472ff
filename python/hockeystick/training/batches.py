"""How batches are made, and what a training by DP-SGD leaks by each way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.bracket import Bracket
from hockeystick.accounting.shuffled_batches import shuffled_batches_delta, shuffled_batches_epsilon
from hockeystick.mechanisms import FixedSizeSampled, Gaussian, PoissonSampled
from hockeystick.mechanisms.random_allocation import MOST_STEPS

__all__ = ["KNOWN", "SAMPLINGS", "Batches", "Sampling"]

Sampling: TypeAlias = Literal["poisson", "shuffled", "fixed", "unknown"]
SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)  # the last stands for one of the others, it is not known which
KNOWN = SAMPLINGS[:-1]


@dataclass(frozen=True)
class Batches:
    """Batches of DP-SGD: how many records there are, how many are in a batch, how many steps are taken, and their noise."""

    records: int  # at least 1
    batch_size: int  # in [1, records]
    steps: int  # of the optimiser, at least 1
    noise_multiplier: float  # noise on the sum over the clip norm, positive

    @property
    def num_batches(self) -> int:
        """Batches of a pass, the last one perhaps smaller."""
        return -(-self.records // self.batch_size)

    @property
    def equal(self) -> bool:
        """Whether shuffled batches all have one size."""
        return self.records % self.batch_size == 0

    @property
    def passes(self) -> int:
        """How often a record is used at most in shuffled batches: a pass that has begun counts whole."""
        return -(-self.steps // self.num_batches)

    def accountant(self, sampling: str) -> Accountant:
        """Return what the steps leak; of shuffled batches an upper bound, the order of the records being shown."""
        step = Gaussian(self.noise_multiplier)
        if sampling == "poisson":
            return Accountant().compose(PoissonSampled(step, self.batch_size / self.records), self.steps)
        if sampling == "fixed":
            fixed = FixedSizeSampled(step, self.records, self.batch_size, replacement=False)
            return Accountant("replace").compose(fixed, self.steps)
        return Accountant().compose(step, self.passes)

    def epsilon(self, sampling: str, delta: float, *, equal: bool = False) -> Bracket:
        """Return the ends of epsilon at a delta below 1; with `equal`, the lower one of shuffled batches as if all had one size."""
        bracket = self.accountant(sampling).epsilon_bracket(delta)
        if sampling != "shuffled":
            return bracket
        lower = shuffled_batches_epsilon(delta, **self._whole()).lower if self._has_lower_end(equal) else 0.0
        return self._shuffled(bracket, lower)

    def delta(self, sampling: str, eps: float) -> Bracket:
        """Return the ends of delta at eps >= 0, in nats."""
        bracket = self.accountant(sampling).delta_bracket(eps)
        if sampling != "shuffled":
            return bracket
        lower = shuffled_batches_delta(eps, **self._whole()).lower if self._has_lower_end(False) else 0.0
        return self._shuffled(bracket, lower)

    def _has_lower_end(self, equal: bool) -> bool:
        """Tell whether what is attained is known: of whole passes, over batches of one size, not too many."""
        return (self.equal or equal) and self.steps >= self.num_batches and self.num_batches <= MOST_STEPS

    def _whole(self) -> dict[str, Any]:
        return {
            "noise_multiplier": self.noise_multiplier,
            "num_batches": self.num_batches,
            "epochs": self.steps // self.num_batches,
        }

    @staticmethod
    def _shuffled(bracket: Bracket, lower: float) -> Bracket:
        return bracket._replace(lower=min(lower, bracket.upper), method="without amplification by the shuffle")
