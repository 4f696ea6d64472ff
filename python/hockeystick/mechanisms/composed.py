"""Several releases of the same records as one mechanism, and the discrete pairs that stand for it where it is sampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array, count_scalar
from hockeystick._numeric.rounding import DOWN, UP
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, require_pairs

POINTS = {
    True: 8192.0,
    False: 16384.0,
}  # of the grid of losses, for upper and lower ends: lowering errs by more a point
MOST_RELEASES = 10**4  # smaller losses are lost on the grid
ONE_SAMPLE = "all releases of a step that is composed are of one and the same sample"  # what samplers of one assume
NOTHING = core.nothing()


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
    the steps' pairs: known in closed form if all are Gaussian, else between two discrete pairs (pld/composed_pair.hpp), one above
    and one below at every epsilon, so that both ends stay certified.

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
            msg = f"steps must be a sequence of (mechanism, count), not {self.steps!r}"
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
        return as_one(self._pairs(adjacency), upper=True)


def _step(step: object) -> tuple[Mechanism, int]:
    if not isinstance(step, Sequence) or len(step) != 2 or not isinstance(step[0], Mechanism):
        msg = f"steps must be pairs of a mechanism and a count, not {step!r}"
        raise TypeError(msg)
    return step[0], count_scalar("count", step[1])


def as_one(steps: Sequence[CountedPair], *, upper: bool) -> core.Pair:
    """Return a composition as one release: exactly if it is a single one or Gaussian, else a pair above or below it."""
    whole = closed_form(steps, upper=upper)
    if whole is not None:
        return whole
    remove, add = (merge_discrete(steps, forward=way, upper=upper) for way in (True, False))
    return core.discrete_pairs(*remove, *add)


def closed_form(steps: Sequence[CountedPair], *, upper: bool) -> core.Pair | None:
    """Return a composition that has a closed form, or None; the shift of several Gaussians is rounded to the safe side."""
    leaking = [(pair, count) for pair, count in steps if pair.leaks]
    if not leaking:
        return NOTHING
    if len(leaking) == 1 and leaking[0][1] == 1.0:
        return leaking[0][0]
    if not all(pair.is_gaussian for pair, _ in leaking):
        return None
    shift = math.hypot(*(math.sqrt(count) * pair.gaussian_shift for pair, count in leaking))
    return core.gaussian_of_shift(shift * (UP if upper else DOWN))


def merge_discrete(steps: Sequence[CountedPair], *, forward: bool, upper: bool) -> tuple[list[float], list[float]]:
    """Return the masses of a discrete pair that is above, or below, one direction of a composition at every epsilon."""
    gaussians = [(pair, count) for pair, count in steps if pair.is_gaussian]
    leaking = [(pair, count) for pair, count in steps if pair.leaks and not pair.is_gaussian]
    together = closed_form(gaussians, upper=upper) if gaussians else None
    if together is not None:
        leaking.append((together, 1.0))
    num_releases = sum(count for _, count in leaking)
    if num_releases > MOST_RELEASES:
        msg = f"a sample's releases other than Gaussian must be at most {MOST_RELEASES}, not {num_releases:.0f}"
        raise ValueError(msg)
    return _merge_discrete(tuple(sorted(leaking, key=_place)), forward, upper)


@lru_cache(maxsize=64)
def _merge_discrete(steps: tuple[CountedPair, ...], forward: bool, upper: bool) -> tuple[list[float], list[float]]:
    return core.composed_pair(list(steps), forward, upper, POINTS[upper])


def _place(step: CountedPair) -> tuple[list[float], ...]:
    """Return what steps are sorted by, so that their order does not change a result."""
    pair, count = step
    base = pair.base
    return ([count, *pair.parameters], *(_place((base, 1.0)) if base else ()))


def replaced_pair(p: Sequence[float], q: Sequence[float], rate: float) -> core.Pair:
    """Return the pair of a Poisson sample, one record replaced, of a mechanism that has (p, q) for removing a record.

    Proof. Let B be the output without the record, A with it and A' with what replaces it, given the other records of the sample: an
    event of probability x under B has at most R(x) under A and at least 1 - R(1 - x) under A', where R(x) is the largest
    probability under p of outcomes of probability x under q. So E_gamma((1-r) B + r A | (1-r) B + r A') is at most the supremum
    of (1-r) x (1 - gamma) + r R(x) - gamma r (1 - R(1 - x)) over x. That is the divergence of the laws on [0, 1] with densities (1-r) + r R'(x) and
    (1-r) + r R'(1 - x), whose ratio falls; what p has where q is 0 is an outcome of its own, on either side. The mixture over the other
    records is below the worst of them, by convexity.

    R' is constant on pieces; the second half of [0, 1] mirrors the first, which is cut where sums of q from either end say.
    """
    a, b = np.asarray(p), np.asarray(q)
    infinite = rate * float(a[b == 0.0].sum())
    a, b = a[b > 0.0], b[b > 0.0]
    order = np.argsort(-a / b)
    ratio, b = (a / b)[order], b[order]
    top, bottom = np.cumsum(b), np.cumsum(b[::-1])
    edges = np.unique(np.concatenate([[0.0, 0.5], top[top < 0.5], bottom[bottom < 0.5]]))
    width, last = np.diff(edges), len(b) - 1

    def masses(cuts: Array, ratios: Array) -> Array:
        within = np.minimum(np.searchsorted(cuts, edges[:-1], side="right"), last)
        return (1.0 - rate) * width + rate * width * ratios[within]

    high, low = masses(top, ratio), masses(bottom, ratio[::-1])
    ends = [infinite, 0.0] if infinite > 0.0 else []
    law = [*ends, *high.tolist(), *low.tolist()]
    other = [*ends[::-1], *low.tolist(), *high.tolist()]
    return core.discrete(law, other)
