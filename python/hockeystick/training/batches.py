"""How batches are made, and what a training by DP-SGD leaks by each way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.brackets import Bracket
from hockeystick.accounting.shuffled_batches import shuffled_batches_delta, shuffled_batches_epsilon
from hockeystick.mechanisms import FixedSizeSampled, Gaussian, PoissonSampled
from hockeystick.mechanisms.premises import Adjacency
from hockeystick.mechanisms.sampled import MOST_STEPS

__all__ = ["KNOWN", "SAMPLINGS", "Batches", "Sampling"]

Sampling: TypeAlias = Literal["poisson", "shuffled", "fixed", "unknown"]
SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)  # the last stands for one of the others, it is not known which
KNOWN = SAMPLINGS[:-1]


def batches_of(records: int, batch_size: int, *, drop_last: bool) -> int:
    """Return the batches of a pass: the length of a data loader."""
    return records // batch_size if drop_last else -(-records // batch_size)


def rate_of(records: int, batch_size: int, *, drop_last: bool) -> float:
    """Return the rate of Poisson samples: with `drop_last` one over the length of the loader, from which Opacus makes its own.

    Without it the loader has one batch more, so that one over its length is at most the quotient that is returned.
    """
    return 1 / batches_of(records, batch_size, drop_last=True) if drop_last else batch_size / records


@dataclass(frozen=True)
class Batches:
    """Batches of DP-SGD: how many records there are, how many are in a batch, how many steps are taken, and their noise."""

    records: int  # at least 1
    batch_size: int | None  # in [1, records]; None if Poisson samples of a known rate are all that is known
    steps: int  # of the optimiser, at least 1
    noise_multiplier: float  # noise on the sum over the clip norm, positive
    sampling_rate: float | None = None  # of Poisson samples, in (0, 1]; by default that of records and batch size
    drop_last: bool = False  # whether a pass leaves out the last batch if it is smaller

    @property
    def kinds(self) -> tuple[Sampling, ...]:
        """The ways to make batches that can be told of."""
        return ("poisson",) if self.batch_size is None else KNOWN

    @property
    def rate(self) -> float:
        """The rate of Poisson samples."""
        if self.sampling_rate is not None:
            return self.sampling_rate
        return rate_of(self.records, self._size, drop_last=self.drop_last)

    @property
    def num_batches(self) -> int:
        """Batches of a pass, the last one perhaps smaller."""
        return batches_of(self.records, self._size, drop_last=self.drop_last)

    @property
    def equal(self) -> bool:
        """Whether shuffled batches have one size and hold all records."""
        return self.records % self._size == 0

    @property
    def _size(self) -> int:
        assert self.batch_size is not None
        return self.batch_size

    @property
    def passes(self) -> int:
        """How often a record is used at most in shuffled batches: a pass that has begun counts whole."""
        return -(-self.steps // self.num_batches)

    @staticmethod
    def adjacency(sampling: str) -> Adjacency:
        """Return which data sets are adjacent."""
        return "replace" if sampling == "fixed" else "add_or_remove"

    def accountant(self, sampling: str) -> Accountant:
        """Return what the steps leak; of shuffled batches an upper bound, the order of the records being shown."""
        step, ledger = Gaussian(self.noise_multiplier), Accountant(self.adjacency(sampling))
        if sampling == "poisson":
            return ledger.compose(PoissonSampled(step, self.rate), self.steps)
        if sampling == "fixed":
            return ledger.compose(FixedSizeSampled(step, self.records, self._size, replacement=False), self.steps)
        return ledger.compose(step, self.passes)

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
        """Tell whether what is attained is known: of whole passes of all records, over batches of one size, not too many."""
        return (
            (self.equal or (equal and not self.drop_last))
            and self.steps >= self.num_batches
            and self.num_batches <= MOST_STEPS
        )

    def _whole(self) -> dict[str, Any]:
        return {
            "noise_multiplier": self.noise_multiplier,
            "num_batches": self.num_batches,
            "epochs": self.steps // self.num_batches,
        }

    @staticmethod
    def _shuffled(bracket: Bracket, lower: float) -> Bracket:
        return bracket._replace(lower=min(lower, bracket.upper), method="without amplification by the shuffle")
