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
from hockeystick.mechanisms.base import Adjacency, Core, Entry, Mechanism, require_pairs

POINTS = {
    True: 8192.0,
    False: 16384.0,
}  # of the grid of losses, for upper and lower ends: lowering errs by more a point
MOST_RELEASES = 10**4  # smaller losses are lost on the grid
ONE_SAMPLE = "all releases of a step that is composed are of one and the same sample"  # what samplers of one assume
NOTHING: Core = ("discrete", [1.0, 1.0], 0.0)


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

    def _entries(self, adjacency: Adjacency, *, upper: bool = True) -> list[Entry]:
        return [
            (kind, parameters, rate, count * times)
            for mechanism, times in self.steps
            for kind, parameters, rate, count in mechanism._entries(adjacency, upper=upper)
        ]

    def _core(self, adjacency: Adjacency) -> Core:
        return as_one(self._entries(adjacency), upper=True)


def _step(step: object) -> tuple[Mechanism, int]:
    if not isinstance(step, Sequence) or len(step) != 2 or not isinstance(step[0], Mechanism):
        msg = f"steps must be pairs of a mechanism and a count, not {step!r}"
        raise TypeError(msg)
    return step[0], count_scalar("count", step[1])


def as_one(entries: Sequence[Entry], *, upper: bool) -> Core:
    """Return a composition as one release: exactly if it is a single one or Gaussian, else a pair above or below it."""
    whole = simplest(entries, upper=upper)
    if whole is not None:
        return whole
    forward, reverse = (discrete_pair(entries, forward=way, upper=upper) for way in (True, False))
    return "discrete_pairs", [float(len(forward[0])), *forward[0], *forward[1], *reverse[0], *reverse[1]], 1.0


def simplest(entries: Sequence[Entry], *, upper: bool) -> Core | None:
    """Return a composition that has a closed form, or None; the shift of several Gaussians is rounded to the safe side."""
    leaking = [entry for entry in entries if entry[2] > 0.0]
    if not leaking:
        return NOTHING
    if len(leaking) == 1 and leaking[0][3] == 1.0:
        return leaking[0][:3]
    if any(kind != "gaussian" or rate != 1.0 for kind, _, rate, _ in leaking):
        return None
    shift = math.hypot(*(math.sqrt(count) * parameters[0] for _, parameters, _, count in leaking))
    return "gaussian", [shift * (UP if upper else DOWN)], 1.0


def discrete_pair(entries: Sequence[Entry], *, forward: bool, upper: bool) -> tuple[list[float], list[float]]:
    """Return the masses of a discrete pair that is above, or below, one direction of a composition at every epsilon."""
    gaussians = [entry for entry in entries if entry[0] == "gaussian" and entry[2] == 1.0]
    others = [entry for entry in entries if entry not in gaussians and entry[2] > 0.0]
    together = simplest(gaussians, upper=upper) if gaussians else None
    leaking = [*others, *([] if together is None else [(*together, 1.0)])]
    releases_of_all = sum(count for *_, count in leaking)
    if releases_of_all > MOST_RELEASES:
        msg = f"a sample's releases other than Gaussian must be at most {MOST_RELEASES}, not {releases_of_all:.0f}"
        raise ValueError(msg)
    key = sorted((kind, tuple(parameters), rate, count) for kind, parameters, rate, count in leaking)
    p, q = _discrete_pair(tuple(key), forward, upper)
    return p, q


@lru_cache(maxsize=64)
def _discrete_pair(
    key: tuple[tuple[str, tuple[float, ...], float, float], ...],
    forward: bool,
    upper: bool,
) -> tuple[list[float], list[float]]:
    entries = [(kind, list(parameters), rate, count) for kind, parameters, rate, count in key]
    return core.composed_pair(entries, forward, upper, POINTS[upper])


def replaced_pair(p: Sequence[float], q: Sequence[float], rate: float) -> Core:
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
    return "discrete", [*law, *other], 1.0
