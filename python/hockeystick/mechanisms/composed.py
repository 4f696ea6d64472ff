"""Several releases of the same records as one mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import hockeystick._core as core
from hockeystick._checks import count_scalar
from hockeystick._checks.shown import shown
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, require_pairs

ONE_SAMPLE = "all releases of a step that is composed are of one and the same sample"  # what samplers of one assume


@dataclass(frozen=True)
class Composed(Mechanism):
    """Several mechanisms run on the same records: one step of an algorithm that releases more than one thing.

    `PoissonSampled` of it draws one sample for all of them. That differs from composing mechanisms that each draw their own.

    Parameters
    ----------
    steps : sequence of (Mechanism, int)
        The mechanisms, and how often each is run; at least one. Where it is sampled, at most 10^4 releases are not Gaussian.

    Notes
    -----
    Composed as it is, it is the composition of its steps, exactly. Where it is part of a sampled mechanism, the pair is the product of
    the steps' pairs. It is known in closed form if all are Gaussian, and to rounding where Gaussian noise stands beside Laplace noise and a
    record of a Poisson sample is added or removed (release/composed.hpp). Else it lies between two discrete pairs
    (pld/composed_pair.hpp), one above and one below at every epsilon, so that both ends stay certified.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.Composed([(hs.Gaussian(2.0), 1), (hs.Laplace(5.0), 3)])
    >>> once, each = hs.PoissonSampled(step, 0.01), [hs.PoissonSampled(part, 0.01) for part, _ in step.steps]
    >>> apart = hs.Accountant().compose(each[0], 100).compose(each[1], 300)
    >>> print(f"{hs.Accountant().compose(once, 100).epsilon(1e-5):.2f} {apart.epsilon(1e-5):.2f}")
    0.25 0.22
    """

    steps: Sequence[tuple[Mechanism, int]]

    def __post_init__(self) -> None:
        """Check the arguments."""
        if isinstance(self.steps, (str, Mechanism)) or not isinstance(self.steps, Sequence):
            msg = f"steps must be a sequence of (mechanism, count), not {shown(self.steps)}"
            raise TypeError(msg)
        if not self.steps:
            msg = "steps must not be empty"
            raise ValueError(msg)
        object.__setattr__(self, "steps", tuple(_step(step) for step in self.steps))
        for mechanism, _ in self.steps:
            require_pairs(mechanism)

    def _parts(self) -> tuple[Mechanism, ...]:
        return tuple(mechanism for mechanism, _ in self.steps)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        return [
            (pair, count * times)
            for mechanism, times in self.steps
            for pair, count in mechanism._pairs(adjacency, upper=upper)
        ]

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.as_one(self._pairs(adjacency), upper=True)


def _step(step: object) -> tuple[Mechanism, int]:
    if not isinstance(step, Sequence) or len(step) != 2 or not isinstance(step[0], Mechanism):
        msg = f"steps must be pairs of a mechanism and a count, not {shown(step)}"
        raise TypeError(msg)
    return step[0], count_scalar("count", step[1])
