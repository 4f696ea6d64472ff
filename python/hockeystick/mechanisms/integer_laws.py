"""Laws of noise on the integers: their curvature, their masses between two ends, and the pairs of the noise and the noise moved.

**Curvature.** Renyi divergences follow from one number. The curvature of a law P on the integers is the largest second difference of -log P,

    kappa = sup_k log(P(k)^2 / (P(k - 1) P(k + 1))).

**Theorem 1.** Let independent coordinates have laws of curvature at most kappa, and let the noise be moved by an integer vector s. At
every integer order a >= 2 the Renyi divergence, in either direction, is at most a kappa |s|^2/2.

*Proof.* Divergences of independent coordinates add up, so let s > 0 be one integer and V = -log P. Put k = y + a s in sum_k P(k - s)^a
P(k)^(1-a): each term is e^(-E) P(y) with E = a V(y + (a-1)s) - (a-1) V(y + a s) - V(y). -E/(a(a-1)) is the divided difference of V at 0,
(a-1)s, a s, times s^2, which is a mean of half the second differences of V; so -E <= a(a-1) kappa s^2/2, and sum_y P(y) = 1. The other
direction is the reflected law. QED. Between integers the chord of (order - 1) times the divergence bounds it, since that is convex.
If P is a function on the reals with a Fourier transform that is not negative, and kappa bounds -(log P)'', the proof holds for every real
a > 1: now y runs through the integers less a s, over which P sums to no more than over the integers, by Poisson's summation formula.

**Theorem 2.** Discrete Gaussian noise of scale sigma has curvature 1/sigma^2. If P has curvature kappa, its sum with such noise has at most

    kappa r + max_c log(T(c)^2 / (T(c + r) T(c - r))),    r = 1/(1 + kappa sigma^2),  v = r sigma^2,  T(c) = sum_j e^(-(j-c)^2/2v).

*Proof.* With q the noise and j ~ P(j) q(k - j)/S(k), S the sum's law, S(k +- 1)/S(k) = e^(-1/2sigma^2) E e^(+-(j-k)/sigma^2). So the second
difference at k is 1/sigma^2 - log(E e^(t(j-m)) E e^(-t(j-m))), t = 1/sigma^2, m = E j. Minus the logarithm of the law of j has second
differences of at most kappa + 1/sigma^2 = 1/v. The discrete Gaussian law N of parameter v whose centre c gives it the same mean m is therefore
log-concave relative to it: the difference of the two laws changes sign as +, -, +, and the law of j is larger in convex order. Both means of
exponentials are at least those under N, whose product is e^(t^2 v) T(c + t v) T(c - t v)/T(c)^2, and t v = r. QED. The sum's law is the restriction of
sum_j P(j) q(x - j), whose transform is not negative if that of P is not. There -(log)'' = 1/sigma^2 - Var(j)/sigma^4, where Var(j) is at
least v + v^2 min_c (log T)''(c): this curvature is at most kappa r - r^2 min (log T)''.

By Jacobi's product, log T(c) = const + 2 sum_l (-1)^(l+1) b_l cos(2 pi l c)/l with b_l = q^l/(1 - q^(2l)), q = e^(-2 pi^2 v); so the maximum is
at most 4 sum_l b_l (1 - cos(2 pi l r))/l, and -(log T)'' at most 8 pi^2 sum_l l b_l.

**Theorem 3.** The Skellam law of variance x, P(k) = e^-x I_k(x), has the curvature 2 log(I_0(x)/I_1(x)), attained at k = 0.

*Proof.* With b_k = 1 - I_(k-1) I_(k+1)/I_k^2 the second difference at k is -log(1 - b_k). From I_(k+1)/I_k = sum_j 2x/(x^2 + j^2), over the
positive zeros j of J_k: b_k = 4 sum_j j^2/(x^2 + j^2)^2 falls in x, and is at most 1/(k + 1), its value at 0 (Rayleigh's sum). V = x^2 b_k solves
x V' = 2x^2 - 2V sqrt(x^2 + k^2 - V). For k >= 1, W = x^2/sqrt(x^2 + k^2 - 1/4) begins above V and has x W' > 2x^2 - 2W sqrt(x^2 + k^2 - W), so
V < W (Baricz 2015 has this bound too). For k = 0, W = x^2/sqrt(x^2 + 3/4) satisfies the opposite inequality, and is below V at x = 1. So
b_k <= b_0 for x >= 1; and for x < 1, b_k <= 1/2 < 0.8 < b_0(1) <= b_0. The same equation gives b_0 <= 1/sqrt(x^2 - 1) for x >= 3. QED.

**Masses.** A law is symmetric and log-concave. Moved by s > 0, the losses L(k) = log(P(k - s)/P(k)) rise with k, so that delta(eps) is the
difference A - e^eps B of the masses of {k, k + 1, ...} for the first k with L(k) > eps, and is the same in both directions (reflect
k to s - k). For fewer pieces of computing than outcomes, chords in e^eps bound it from above (release/privacy_profile.hpp), and merged
outcomes from below.

**Vectors.** Moved by a vector s of integers, the losses of discrete Gaussian noise X of scale sigma on every coordinate are (2 T - |s|^2)/(2 sigma^2), where T = s.X under the noise and
T + |s|^2 under the noise moved: a vector is as good as the one integer T, moved by |s|^2. Noise that is log-concave leaks no less
where a coordinate moves by more, so that the vectors that cannot be made larger are all that count. None of them is the worst: at sigma = 1
and |s|^2 = 4, delta is larger for (2) at epsilon 1 and for (1, 1, 1, 1) at epsilon 2. Their largest delta at each epsilon is convex in
e^epsilon, and so the curve of a pair, which dominates all of them.

**Wide noise** is Gaussian noise that is rounded, up to a tiny probability.

**Theorem 4.** Let every coordinate of the noise have a law on the integers whose ratio to the discrete Gaussian of scale sigma is known up to a
factor e^h. Moved by any vector of integers of norm D, d coordinates of it at most, it is dominated by the composition of Gaussian noise of deviation
sqrt(sigma^2 - r^2) moved by D, 0 < r < sigma, with a release that tells all with probability 1 - e^(-d (h + log T(0)/T(1/2))), T(y) = sum_k
e^(-(k-y)^2/2r^2).

*Proof.* Round y ~ N(s, sigma^2 - r^2) to k with probability e^(-(k-y)^2/2r^2)/T(y). As T has the period 1, the law of k - s is one law W for every integer
s; as (k-y)^2/r^2 + y^2/(sigma^2-r^2) = k^2/sigma^2 + (y-c k)^2/c', the ratio of W to the discrete Gaussian is known up to T(0)/T(1/2). Two laws whose
ratio is known up to a factor e^g satisfy P >= e^-g W, so that P = e^-g W + (1 - e^-g) W', and d coordinates of it are e^(-d g) those of W, else
anything. Which of both is no more than told, and W is computed from Gaussian noise. QED. (Completing the square is the convolution lemma of
discrete Gaussians: Regev 2009, Peikert 2010.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import hockeystick._core as core
from hockeystick._checks import Array
from hockeystick._numeric.rounding import DOWN, FUNCTIONS, MASS, SHORT_SUM, UNIT, UP
from hockeystick.mechanisms.base import CountedPair

ABOVE = 1.0 + SHORT_SUM
STEPS = 4096  # of the recursion over clients; what follows has a closed form
TERMS = 40  # of the series in l, at most
WIDE_VARIANCE = 1e4  # a Skellam variance beyond which b_0 <= 1/sqrt(x^2 - 1) is close


def divergence_of_curvature(rho: float, order: float) -> float:
    """Return an upper bound of the divergence of an order >= 1, if it is at most rho times the order at integers from 2 on."""
    if order <= 2.0:
        return 2.0 * rho * ABOVE
    whole = math.floor(order)
    return rho * whole * ((order - 1.0) + (order - whole)) / (order - 1.0) * ABOVE


@lru_cache(maxsize=256)
def curvature_of_sum(sigma: float, number: int) -> float:
    """Return an upper bound of the curvature of a sum of so many independent discrete Gaussians (Theorem 2).

    Beyond `STEPS` of them, 1 - r = y/(1 + y) with y = kappa sigma^2, which falls, and the maximum is at most E (1 - r)^2: each
    more adds at least sigma^2 (1 - E sigma^2) to 1/kappa.
    """
    variance = sigma * sigma
    kappa = 1.0 / variance * UP
    for _ in range(min(number, STEPS) - 1):
        y = kappa * variance
        moved = kappa / (1.0 + y) + _most_curved(variance / (1.0 + y), y / (1.0 + y))
        kappa = min(kappa, moved * UP)  # a sum is no more curved than a part, by Cauchy and Schwarz
    if number > STEPS:
        y = kappa * variance * UP
        gain = variance * (1.0 - _second_order(variance / (1.0 + y)) * variance) * (1.0 - SHORT_SUM)
        if gain > 0.0:
            kappa = min(kappa, 1.0 / (1.0 / kappa + (number - STEPS) * gain) * ABOVE)
    return kappa


@lru_cache(maxsize=256)
def smooth_curvature_of_sum(sigma: float, number: int) -> float:
    """Return an upper bound of the curvature of the sum's law between the integers too."""
    if number == 1:
        return curvature_of_sum(sigma, 1)
    variance = sigma * sigma
    before = curvature_of_sum(sigma, number - 1)
    r = 1.0 / (1.0 + before * variance)
    return min(before * r + r * r * _second_order(r * variance), 1.0 / variance) * ABOVE


def _most_curved(v: float, less: float) -> float:
    """Return at least max_c log(T(c)^2/(T(c + r) T(c - r))), r = 1 - less: 1 - cos(2 pi l r) is 2 sin^2(pi l less)."""

    def weight(el: int) -> float:
        angle = math.pi * el * less
        return (abs(math.sin(angle)) + FUNCTIONS * angle) ** 2

    return 8.0 * _series(v, weight)


def _second_order(v: float) -> float:
    """Return 8 pi^2 sum_l l b_l, which falls in v: the maximum of theorem 2 is at most (1 - r)^2 times it."""
    return 8.0 * _series(v, lambda el: (math.pi * el) ** 2)


def _series(v: float, weight: Callable[[int], float]) -> float:
    """Return an upper bound of sum_l weight(l) q^l/(l (1 - q^(2l))), where weight(l) is at most (pi l)^2."""
    log_q = -2.0 * math.pi * math.pi * v
    total = 0.0
    for el in range(1, TERMS + 1):
        term = math.exp(el * log_q) / (el * -math.expm1(2.0 * el * log_q))
        total += weight(el) * term
        if term * (math.pi * el) ** 2 <= SHORT_SUM * total:
            break
    q = math.exp(log_q)  # what is left out: sum_(l > L) pi^2 l q^l/(1 - q^2)
    rest = math.pi**2 * q ** (el + 1) * ((el + 1) / (1.0 - q) + q / (1.0 - q) ** 2) / (1.0 - q * q)
    return (total + rest) * (1.0 + FUNCTIONS * (64.0 - log_q))


@lru_cache(maxsize=256)
def log_range_of_sum(sigma: float, number: int) -> float:
    """Return by how much the logarithms of two ratios, of the law of a sum to the discrete Gaussian of its scale, differ at most.

    One bound is the sum over m of log T(0)/T(1/2) with v = sigma^2 m/(m + 1) (Kairouz, Liu and Steinke 2021, where it is at most 10 e^(-2
    pi^2 v)): completing the square in the sum of m and one more leaves a factor T. The other is that of `_dual_sum`.
    """
    variance = sigma * sigma
    total = math.fsum(log_range(variance * m / (m + 1.0)) for m in range(1, min(number, STEPS)))
    if number > STEPS:
        total += (number - STEPS) * log_range(variance * (STEPS - 1.0) / STEPS)
    dual = _dual_sum(sigma, number) if number > 1 else 0.0
    return min(total, math.log1p(2.0 * dual / (1.0 - dual)) if dual < 1.0 else math.inf) * ABOVE


def _dual_sum(sigma: float, n: int) -> float:
    """Return an upper bound S such that the ratio of the law of the sum of n to the discrete Gaussian is within 1 +- S, up to a factor.

    The ratio at k is the sum of e^(-|y|^2/2 sigma^2) over y in Z^n - (k/n, ..., k/n) that sum to 0. By Poisson's formula it is proportional to
    1 + sum e^(-c |w|^2) cos, c = 2 pi^2 sigma^2, over the non-zero projections w of integer vectors m along (1, ..., 1). Each has an m whose median is 0. If
    k of its coordinates are not 0, at most min(k, n/2) = x n have one sign, so that |w|^2 >= (1 - x) |m|^2. There are at most (2n)^k/k!
    choices of coordinates and signs, and all k together have at most a(x)^k, a(x) = sum_j e^(-c (1 - x) j^2). As k! >= (k/e)^k, the terms from k on
    are at most powers of f = 2e a(x)/x, whose logarithm is convex in x up to 1/2.
    """
    c = 2.0 * math.pi * math.pi * sigma * sigma

    def part(x: float) -> float:
        return math.exp(-c * (1.0 - x)) / -math.expm1(-3.0 * c * (1.0 - x)) * (1.0 + FUNCTIONS * (1.0 + c))

    first = min(4, n)
    total = math.fsum((2.0 * n * part(min(k / n, 0.5))) ** k / math.factorial(k) for k in range(1, first))
    ends = max(2.0 * math.e * part(x) / x for x in (min(first / n, 0.5), 0.5)) / -math.expm1(-1.5 * c)
    return (total + ends**first / (1.0 - ends)) * ABOVE if ends < 0.5 else math.inf


def log_range(v: float) -> float:
    """Return an upper bound of log T(0)/T(1/2) = 4 sum over odd l of b_l/l, T as above."""
    return 4.0 * _series(v, lambda el: float(el % 2))


@lru_cache(maxsize=256)
def curvature_of_skellam(variance: float) -> float:
    """Return an upper bound of the curvature of a Skellam law, 2 log(I_0/I_1) (Theorem 3)."""
    if variance >= WIDE_VARIANCE:
        b = 1.0 / math.sqrt((variance - 1.0) * (variance + 1.0)) * UP
        return -math.log1p(-b) * ABOVE
    return -2.0 * math.log(bessel_ratios(variance, 0)[0][0]) * ABOVE + SHORT_SUM


def bessel_ratios(x: float, last: int) -> tuple[list[float], list[float]]:
    """Return lower and upper ends of I_(k+1)(x)/I_k(x) for k = 0, ..., last.

    Backwards by 1/r_(k-1) = 2k/x + r_k, which contracts, from x/(k+1/2 + sqrt(x^2 + (k+3/2)^2)) <= r_k <= x/(k+1/2 + sqrt(x^2 +
    (k+1/2)^2)) (Amos 1974).
    """
    start = last + math.ceil(7.0 * math.sqrt(x)) + 20
    low = x / (start + 0.5 + math.hypot(x, start + 1.5)) / ABOVE
    high = x / (start + 0.5 + math.hypot(x, start + 0.5)) * ABOVE
    lows, highs = [], []
    for k in range(start, -1, -1):
        if k <= last:
            lows.append(low)
            highs.append(high)
        step = 2.0 * k / x
        low, high = (1.0 - FUNCTIONS) / (step + high), (1.0 + FUNCTIONS) / (step + low)
    return lows[::-1], highs[::-1]


LEAST_MASS = 1e-290  # smaller ones are cut off and counted as missing
DEPTH = 668.0  # minus the logarithm of it
LEAST_SHARED = 0.9995  # of the noise, among the outcomes that both laws have
MOST_POINTS = 4000  # of a profile, and of outcomes below
LARGEST_EPSILON = 600.0


@dataclass(frozen=True, eq=False)  # known by identity to the caches of pairs
class Law:
    """Ends of the masses of -reach, ..., reach, and an upper bound of the mass beyond."""

    low: Array
    high: Array
    missing: float

    @property
    def reach(self) -> int:
        """The last integer with a mass of its own."""
        return self.low.size // 2


@lru_cache(maxsize=32)
def discrete_gaussian(sigma: float) -> Law:
    """Return the law of mass proportional to e^(-k^2/(2 sigma^2)); beyond its reach weights fall at least as a geometric series."""
    reach = math.floor(math.sqrt(2.0 * DEPTH) * sigma)
    right = np.exp(-0.5 * (np.arange(1.0, reach + 1.0) / sigma) ** 2)
    weights = np.concatenate([right[::-1], [1.0], right])
    first, ratio = math.exp(-0.5 * ((reach + 1.0) / sigma) ** 2), math.exp(-(reach + 1.5) / sigma**2)
    missing = 2.0 * first / (1.0 - ratio) * (1.0 + MASS)
    total = 1.0 + 2.0 * math.fsum(right.tolist())
    return Law(weights / (total + missing) * (1.0 - MASS), weights / total * (1.0 + MASS), missing)


@lru_cache(maxsize=8)
def nearly_discrete_gaussian(sigma: float, log_range: float) -> Law:
    """Return a law whose ratio to the discrete Gaussian is known up to e^log_range, and sigma up to a few roundings."""
    law = discrete_gaussian(sigma)
    factor = math.exp(log_range) * (1.0 + MASS)  # e^-x with x up to 668, whose relative error is that of sigma twice
    return Law(law.low / factor, law.high * factor, law.missing * factor)


@lru_cache(maxsize=32)
def sum_of_discrete_gaussians(sigma: float, number: int) -> Law:
    """Return the law of a sum, by squaring; all terms are positive, so that a convolution errs by one rounding a term."""
    result, power = None, discrete_gaussian(sigma)
    while True:
        if number & 1:
            result = power if result is None else convolved(result, power)
        number >>= 1
        if not number:
            assert result is not None
            return result
        power = convolved(power, power)


def convolved(a: Law, b: Law) -> Law:
    """Return the law of a sum of two."""
    error = (min(a.low.size, b.low.size) + 4) * UNIT
    low, high = np.convolve(a.low, b.low) * (1.0 - error), np.convolve(a.high, b.high) * (1.0 + error)
    large = np.flatnonzero(low > LEAST_MASS)
    cut = min(int(large[0]), low.size - 1 - int(large[-1]))  # equal on both sides, up to rounding
    dropped = math.fsum(high[:cut].tolist()) + math.fsum(high[high.size - cut :].tolist())
    inside = slice(cut, low.size - cut)
    return Law(low[inside], high[inside], (a.missing + b.missing + dropped) * UP)


@lru_cache(maxsize=32)
def skellam(variance: float) -> Law:
    """Return the law P(k) = e^-variance I_k(variance), by the ratios of its neighbours."""
    reach = _skellam_reach(variance)
    lows, highs = (np.array(ratios) for ratios in bessel_ratios(variance, reach))
    steps = 1.0 + np.arange(1.0, reach + 1.0) * UNIT
    low, high = np.cumprod(lows[:reach]) / steps, np.cumprod(highs[:reach]) * steps
    tail = float(high[-1]) * float(highs[reach]) / (1.0 - float(highs[reach])) * UP  # ratios fall
    most = (1.0 + 2.0 * (math.fsum(high.tolist()) + tail)) * UP
    least = (1.0 + 2.0 * math.fsum(low.tolist())) * DOWN
    both = [np.concatenate([right[::-1], [1.0], right]) for right in (low, high)]
    return Law(both[0] / most * DOWN, both[1] / least * UP, 2.0 * tail / least * UP)


def _skellam_reach(variance: float) -> int:
    """Return about where the mass falls below the least: -log P(k) is about k asinh(k/x) + x - sqrt(x^2 + k^2)."""
    reach = 1.0
    while reach * math.asinh(reach / variance) + variance - math.hypot(variance, reach) < DEPTH:
        reach *= 1.01
    return math.ceil(reach)


@lru_cache(maxsize=32)
def upper_pair(law: Law, shift: int) -> core.Pair:
    """Return a pair that dominates the law moved by `shift` and the law, in both directions."""
    return core.privacy_profile(*_profile(law, shift), True)[0][0]


def _profile(law: Law, shift: int) -> tuple[list[float], list[float], list[float]]:
    """Return increasing epsilons from 0 on, and upper bounds of delta there, twice.

    At an epsilon that is not below the loss of k, {k + 1, ...} has all outcomes of larger losses. Those of smaller ones in it
    are off by no more than the loss of k is known.
    """
    first, last = law.reach + shift // 2, 2 * law.reach  # positions k + reach, from the last loss that is at most 0
    if first >= last:
        return [0.0], [1.0], [1.0]
    at = np.unique(np.linspace(first, last, MOST_POINTS).astype(np.int64))
    logs = [np.log(masses) for masses in (law.high[at - shift], law.low[at - shift], law.high[at], law.low[at])]
    rounding = FUNCTIONS * (1.0 + np.abs(logs[0]) + np.abs(logs[3]))
    epsilons = logs[0] - logs[3] + rounding
    epsilons[0] = 0.0
    known = logs[0] - logs[1] + logs[2] - logs[3] + 2.0 * rounding
    keep = (epsilons <= LARGEST_EPSILON) & np.append(True, np.diff(np.maximum.accumulate(epsilons)) > 0.0)
    deltas = deltas_beyond(law, shift, at[keep], epsilons[keep], known[keep]).tolist()
    return epsilons[keep].tolist(), deltas, deltas


def deltas_beyond(law: Law, shift: int, at: NDArray[np.int64], epsilons: Array, known: Array) -> Array:
    """Return upper bounds of delta at increasing epsilons, from the outcomes beyond the positions `at`.

    All losses above epsilon must be beyond; those beyond that are not may be smaller than epsilon by `known`.
    """
    error = 2.0 * law.low.size * UNIT
    beyond = np.maximum(at - shift + 1, 0)  # where the moved law is all beyond, from its first outcome on
    a = np.append(_from_above(law.high), 0.0)[beyond] * (1.0 + error) * np.exp(known) + law.missing
    b = np.append(_from_above(law.low), 0.0)[at + 1] * (1.0 - error)
    least = np.exp(epsilons) * (1.0 - FUNCTIONS * (1.0 + epsilons)) * b
    deltas = np.minimum(np.maximum(a - least, 0.0) + 2.0 * UNIT * a, 1.0)
    return np.minimum.accumulate(deltas)  # an upper bound at one epsilon is one at every larger


def _from_above(masses: Array) -> Array:
    """Return the sums over each position and all beyond it."""
    return np.asarray(np.cumsum(masses[::-1])[::-1])


@lru_cache(maxsize=32)
def lower_pair(law: Law, shift: int) -> core.Pair:
    """Return a pair for lower ends, of which what is seen is merged and what is cut off is left out."""
    if shift >= law.low.size or math.fsum(law.low[shift:].tolist()) < LEAST_SHARED:
        return core.nothing()  # the core takes no measures that miss more of a law
    starts = np.unique(np.linspace(0, law.low.size - shift - 1, MOST_POINTS).astype(np.int64))
    error = law.low.size * UNIT
    moved, still = slice(0, law.low.size - shift), slice(shift, law.low.size)  # the outcomes that both have
    p_low, q_low = (np.add.reduceat(law.low[part], starts) * (1.0 - error) for part in (moved, still))
    p_high, q_high = (np.add.reduceat(law.high[part], starts) * (1.0 + error) for part in (moved, still))
    return core.discrete_pairs(p_low.tolist(), q_high.tolist(), q_low.tolist(), p_high.tolist())


Vector = tuple[int, ...]


def squared_norm(sensitivity: float) -> int:
    """Return the largest squared norm of a vector of integers; a sensitivity that is a rounded square root counts as the root."""
    return math.floor(sensitivity * sensitivity * (1.0 + SHORT_SUM))


def first_vector(squared: int, dimension: int | None) -> Vector:
    """Return a vector of integers of at most this squared norm: each coordinate as large as it can be, at most eight of them."""
    parts: list[int] = []
    while squared and len(parts) < min(dimension or 8, 8):
        parts.append(math.isqrt(squared))
        squared -= parts[-1] ** 2
    return tuple(parts)


def largest_vectors(squared: int, dimension: int | None) -> list[Vector]:
    """Return all vectors, not falling and without zeros, of which no coordinate can be larger."""
    return [
        vector
        for vector in _vectors(squared, dimension or squared, 1)
        if _cannot_grow(vector, squared, dimension or squared)
    ]


def _vectors(left: int, places: int, least: int) -> Iterator[Vector]:
    yield ()
    if places:
        for part in range(least, math.isqrt(left) + 1):
            for rest in _vectors(left - part * part, places - 1, part):
                yield (part, *rest)


def _cannot_grow(vector: Vector, squared: int, dimension: int) -> bool:
    left = squared - sum(part * part for part in vector)
    return (left == 0 or len(vector) == dimension) and left < 2 * min(vector) + 1


@lru_cache(maxsize=16)
def dominating_pair(sigma: float, squared: int, dimension: int | None) -> core.Pair:
    """Return the pair whose delta is the largest of all vectors', on chords between at most `MOST_POINTS` epsilons."""
    vectors = largest_vectors(squared, dimension)
    epsilons = _losses(sigma, vectors)
    deltas = np.maximum.reduce([_deltas(sigma, vector, epsilons) for vector in vectors]).tolist()
    return core.privacy_profile(epsilons.tolist(), deltas, deltas, True)[0][0]


def _losses(sigma: float, vectors: list[Vector]) -> Array:
    """Return epsilons just above the losses of all outcomes from 0 on, or as many of them, where the curves have kinks.

    At a loss that is rounded down its outcome still counts, and that much more than all beyond where the noise is narrow.
    """
    variance = sigma * sigma
    found: list[Array] = [np.array([0.0])]
    for norm in {sum(part * part for part in vector) for vector in vectors}:
        last = math.ceil(math.sqrt(2.0 * DEPTH * norm) * sigma) + norm
        kinks = (2.0 * np.arange(norm // 2 + 1, last + 1, dtype=np.float64) - norm) / (2.0 * variance)
        found.append(kinks + FUNCTIONS * (1.0 + kinks + norm / variance))
    losses: Array = np.unique(np.concatenate(found))
    losses = losses[losses <= LARGEST_EPSILON]
    return losses[np.unique(np.linspace(0, losses.size - 1, MOST_POINTS).astype(np.int64))]


def _deltas(sigma: float, vector: Vector, epsilons: Array) -> Array:
    """Return upper bounds of delta at these epsilons, where the noise moves by a vector."""
    law, norm = law_of_product(sigma, vector), sum(part * part for part in vector)
    last = np.floor(epsilons * sigma * sigma + 0.5 * norm)  # T up to which losses are at most epsilon, up to rounding
    at = np.minimum(last, law.reach).astype(np.int64) + law.reach
    return deltas_beyond(law, norm, at, epsilons, 8.0 * FUNCTIONS * (1.0 + epsilons + norm / sigma**2))


def law_of_product(sigma: float, vector: Vector) -> Law:
    """Return the law of T = s.X."""
    result: Law | None = None
    for part in sorted(set(vector)):
        law = _stretched(sum_of_discrete_gaussians(sigma, vector.count(part)), part)
        result = law if result is None else convolved(result, law)
    assert result is not None
    return result


def _stretched(law: Law, factor: int) -> Law:
    """Return the law of a multiple."""
    size = factor * (law.low.size - 1) + 1
    both = [np.zeros(size), np.zeros(size)]
    for to, masses in zip(both, (law.low, law.high), strict=True):
        to[::factor] = masses
    return Law(both[0], both[1], law.missing)


ROUNDING = 1e-20  # the probability to tell that rounding may have
LEAST_SIGMA = 8.0  # from which the Gaussian has 98 % of the noise
MOST_TELLING = 1e-15


def telling(coordinates: float, log_range_of_law: float) -> float:
    """Return the probability to tell."""
    share = coordinates * (log_range_of_law + log_range(_rounding_variance(coordinates)))
    return -math.expm1(-share * UP) * UP


def dominating_pairs(sigma: float, norm: float, coordinates: float, log_range_of_law: float) -> list[CountedPair]:
    """Return the two pairs of the theorem."""
    deviation = math.sqrt((sigma * sigma * DOWN - _rounding_variance(coordinates)) * DOWN)
    reveals = core.approximate_dp(0.0, telling(coordinates, log_range_of_law))
    return [(core.gaussian_of_shift(norm / deviation * UP), 1.0), (reveals, 1.0)]


def _rounding_variance(coordinates: float) -> float:
    """Return r^2 for which d log T(0)/T(1/2), about 4 d e^(-2 pi^2 r^2), is about `ROUNDING`."""
    return math.log(4.0 * coordinates / ROUNDING) / (2.0 * math.pi**2)
