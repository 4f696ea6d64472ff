"""Random allocation: every record takes part in a few of the steps, chosen uniformly."""

from __future__ import annotations

from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import count_scalar
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, refuse
from hockeystick.mechanisms.noise import Gaussian

MOST_STEPS = 10**6
NOISE = (0.25, 1000.0)


@dataclass(frozen=True)
class RandomAllocation(Mechanism):
    """Gaussian noise on each of several steps, of which every record takes part in a few, drawn uniformly.

    One composed `RandomAllocation` is all its steps: an epoch. With one selected step these are balls-and-bins batches: each
    record falls into one of `num_steps` batches, independently of the others. Only under ``adjacency="add_or_remove"``.

    Parameters
    ----------
    mechanism : Gaussian
        What is run on each batch; its noise_multiplier in [0.25, 1000] where fewer than all steps are selected.
    num_steps : int
        Steps of the epoch, in [1, 10^6].
    num_selected : int
        In how many of them each record takes part, at most num_steps: a uniform subset, drawn for each record independently
        of all others, anew for each epoch, and kept secret.

    Notes
    -----
    One of t steps: the pair (1/t) sum_i N(r e_i, I) and N(0, I), r = 1/noise_multiplier, dominates steps that are chosen
    adaptively, and is attained. k of t: at most k epochs of one of floor(t/k) or ceil(t/k) steps; the lower end is that of the sum
    of labels of the outputs, whose law does not depend on the subset. The proofs, and how both ends are computed, are in
    docs/core/allocation.md. Feldman and Shenfeld 2025, arXiv:2502.08202; Chua et al. 2025, arXiv:2412.16802, for balls and bins. Not for shuffled
    batches, whose sizes are fixed: there a record's batch depends on those of others.

    Examples
    --------
    >>> import hockeystick as hs
    >>> epoch = hs.RandomAllocation(hs.Gaussian(1.0), 100)
    >>> print(hs.format_upper(hs.Accountant().compose(epoch).epsilon(1e-5), ".2f"))
    0.63
    """

    mechanism: Mechanism
    num_steps: int
    num_selected: int = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not isinstance(self.mechanism, Gaussian):
            msg = f"mechanism must be Gaussian, not {self.mechanism!r}"
            raise TypeError(msg)
        for name in ("num_steps", "num_selected"):
            object.__setattr__(self, name, count_scalar(name, getattr(self, name)))
        if self.num_steps > MOST_STEPS:
            msg = f"num_steps must be at most {MOST_STEPS}, not {self.num_steps}"
            raise ValueError(msg)
        if self.num_selected > self.num_steps:
            msg = f"num_selected must be at most num_steps ({self.num_steps}), not {self.num_selected}"
            raise ValueError(msg)
        noise = self.mechanism.noise_multiplier
        if self.num_selected < self.num_steps and not NOISE[0] <= noise <= NOISE[1]:
            msg = f"noise_multiplier of a random allocation must lie in [{NOISE[0]}, {NOISE[1]}], not {noise}"
            raise ValueError(msg)

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [
            (
                f"random allocation: in every epoch each record takes part in {self.num_selected} of the "
                f"{self.num_steps} steps, drawn uniformly and independently of all other records; the choice is secret"
            )
        ]

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if adjacency != "add_or_remove":
            raise refuse(self, adjacency, "a dominating pair is known for a record added or removed only")
        noise: float = self.mechanism.noise_multiplier  # type: ignore[attr-defined]
        return core.allocated_steps(noise, float(self.num_steps), float(self.num_selected), upper)
