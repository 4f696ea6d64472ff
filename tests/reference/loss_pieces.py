"""Laws of privacy losses: pieces on which the loss is monotone, and atoms. Moments and deltas by the rule of Gauss and Legendre."""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import mpmath
import numpy as np

EXTENDED = np.longdouble  # 64 bits and more on most machines
DIGITS = 200 * float(np.finfo(EXTENDED).eps)  # of sums of positive terms


@functools.cache
def rule(degree=30):
    """Return the nodes and weights of Gauss and Legendre in extended precision; numpy's nodes are where roots are looked for."""
    nodes, weights = [], []
    with mpmath.workdps(25):
        for start in np.polynomial.legendre.leggauss(degree)[0]:
            x = mpmath.findroot(lambda t: mpmath.legendre(degree, t), mpmath.mpf(float(start)))
            slope = degree * (mpmath.legendre(degree - 1, x) - x * mpmath.legendre(degree, x)) / (1 - x * x)
            nodes.append(EXTENDED(mpmath.nstr(x, 24)))
            weights.append(EXTENDED(mpmath.nstr(2 / ((1 - x * x) * slope**2), 24)))
    return np.array(nodes), np.array(weights)


class Strand(NamedTuple):
    """Outcomes x of a range, on which the loss rises or falls."""

    log_density: Callable  # of P
    loss: Callable
    low: float
    high: float


class Law(NamedTuple):
    """A law of losses: strands, and atoms as (loss, mass)."""

    strands: list[Strand]
    atoms: list[tuple[float, float]]
    slope: float = 1.0

    def moment(self, s):
        """Return E_P e^{sL}."""
        total = sum((mass * np.exp(s * loss) for loss, mass in self.atoms), EXTENDED(0))
        for strand in self.strands:
            panels = int((strand.high - strand.low) * (0.4 + 0.1 * self.slope * (2 + abs(complex(s).imag)))) + 2
            half = (EXTENDED(strand.high) - strand.low) / (2 * panels)
            nodes, weights = rule()
            x = strand.low + (2 * np.arange(panels)[:, None] + 1 + nodes) * half
            total = total + half * (weights * np.exp(strand.log_density(x) + s * strand.loss(x))).sum()
        return total


def as_of(x, value):
    """Return a number in the precision of an array."""
    return np.asarray(x).dtype.type(value)


def log_ratio(x, rate, shifts, weights=(1,)):
    """Return the logarithm of the density of (1-q) N(0,1) + q sum_k w_k N(r_k,1) over that of N(0,1)."""
    terms = [(as_of(x, r), as_of(x, w)) for r, w in zip(shifts, weights, strict=True)]
    return np.log1p(as_of(x, rate) * sum(w * np.expm1(r * x - r * r / 2) for r, w in terms))


def log_normal(x, share=1):
    """Return the logarithm of the standard normal density, times a share."""
    return -x * x / 2 + as_of(x, np.log(EXTENDED(share)) - np.log(8 * np.arctan(EXTENDED(1))) / 2)


def mixture_law(rate, shifts, weights, forward, share=1, *, ratio=1, tilt=0):
    """Return the law of a sampled mixture against N(0,1), or the reverse, for moments up to a tilt; its mass is `share` under Q."""
    loss = lambda x: (log_ratio(x, rate, shifts, weights) + as_of(x, np.log(EXTENDED(ratio)))) * (1 if forward else -1)
    log_density = lambda x: log_normal(x, share) + (loss(x) if forward else 0)
    slope = max(shifts)
    return Law([Strand(log_density, loss, -12 - tilt * slope, 12 + (3 + tilt) * slope)], [], slope=slope)


RULE = np.polynomial.legendre.leggauss(48)


def cut(strand, loss):
    """Return where the loss of a strand is `loss`, or the end of its range next to it; for an array of losses."""
    left, right = np.full(loss.shape, float(strand.low)), np.full(loss.shape, float(strand.high))
    rises = strand.loss(float(strand.high)) > strand.loss(float(strand.low))
    for _ in range(60):
        middle = (left + right) / 2
        above = (strand.loss(middle) > loss) == rises
        left, right = np.where(above, left, middle), np.where(above, middle, right)
    return (left + right) / 2, rises


def above(strand, eps):
    """Return what one strand adds to delta(eps), without cancellation."""
    at, rises = cut(strand, eps)
    low, high = (at, np.full_like(at, float(strand.high))) if rises else (np.full_like(at, float(strand.low)), at)
    half, total = (high - low) / 24, 0.0
    for i in range(12):
        x = (low + (2 * i + 1) * half)[..., None] + half[..., None] * RULE[0]
        excess = -np.expm1(np.minimum(eps[..., None] - strand.loss(x), 0.0))
        total = total + (np.exp(strand.log_density(x)) * excess * RULE[1]).sum(-1) * half
    return total


def one_step(law, eps):
    """Return delta(eps) of one step, for an array of eps."""
    atoms = sum(float(mass) * np.maximum(-np.expm1(eps - float(loss)), 0.0) for loss, mass in law.atoms)
    return atoms + sum(above(strand, eps) for strand in law.strands)


def two_steps(law, eps, flat=()):
    """Return delta(eps) of two steps: the mean of one step's delta over the other's loss.

    One step's delta has kinks at atoms and at the ends of strands, and is infinitely flat at the losses `flat`.
    """
    total = sum(float(mass) * one_step(law, np.array([eps - float(loss)]))[0] for loss, mass in law.atoms)
    ends = {float(strand.loss(float(end))) for strand in law.strands for end in (strand.low, strand.high)}
    kinks = np.array([eps - loss for loss in (*ends, *(float(loss) for loss, _ in law.atoms))])
    for strand in law.strands:
        flats = cut(strand, eps - np.array(flat))[0]
        breaks = {
            *cut(strand, kinks)[0],
            *flats,
            *(x + side * 0.5**k for x in flats for side in (-1, 1) for k in range(16)),
        }
        low, high = float(strand.low), float(strand.high)
        for left, right in itertools.pairwise([low, *sorted(x for x in breaks if low < x < high), high]):
            x = np.concatenate([left + (right - left) * (i + (RULE[0] + 1) / 2) / 4 for i in range(4)])
            weight = np.tile(RULE[1], 4) * (right - left) / 8
            total += (weight * np.exp(strand.log_density(x)) * one_step(law, eps - strand.loss(x))).sum()
    return float(total)
