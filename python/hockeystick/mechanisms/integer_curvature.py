"""Renyi divergences of integer noise from one number, the curvature of its law.

The curvature of a law P on the integers is the largest second difference of -log P,

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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from hockeystick._numeric.rounding import FUNCTIONS, SHORT_SUM
from hockeystick._numeric.rounding import UP as UP_A_HANDFUL

UP = 1.0 + SHORT_SUM
STEPS = 4096  # of the recursion over clients; what follows has a closed form
TERMS = 40  # of the series in l, at most
WIDE = 1e4  # a Skellam variance beyond which b_0 <= 1/sqrt(x^2 - 1) is close


def divergence(rho: float, order: float) -> float:
    """Return an upper bound of the divergence of an order >= 1, if it is at most rho times the order at integers from 2 on."""
    if order <= 2.0:
        return 2.0 * rho * UP
    whole = math.floor(order)
    return rho * whole * ((order - 1.0) + (order - whole)) / (order - 1.0) * UP


@lru_cache(maxsize=256)
def of_sum(sigma: float, number: int) -> float:
    """Return an upper bound of the curvature of a sum of so many independent discrete Gaussians (Theorem 2).

    Beyond `STEPS` of them, 1 - r = y/(1 + y) with y = kappa sigma^2, which falls, and the maximum is at most E (1 - r)^2: each
    more adds at least sigma^2 (1 - E sigma^2) to 1/kappa.
    """
    variance = sigma * sigma
    kappa = 1.0 / variance * UP_A_HANDFUL
    for _ in range(min(number, STEPS) - 1):
        y = kappa * variance
        moved = kappa / (1.0 + y) + _most_curved(variance / (1.0 + y), y / (1.0 + y))
        kappa = min(kappa, moved * UP_A_HANDFUL)  # a sum is no more curved than a part, by Cauchy and Schwarz
    if number > STEPS:
        y = kappa * variance * UP_A_HANDFUL
        gain = variance * (1.0 - _second_order(variance / (1.0 + y)) * variance) * (1.0 - SHORT_SUM)
        if gain > 0.0:
            kappa = min(kappa, 1.0 / (1.0 / kappa + (number - STEPS) * gain) * UP)
    return kappa


@lru_cache(maxsize=256)
def smooth_of_sum(sigma: float, number: int) -> float:
    """Return an upper bound of the curvature of the sum's law between the integers too."""
    if number == 1:
        return of_sum(sigma, 1)
    variance = sigma * sigma
    before = of_sum(sigma, number - 1)
    r = 1.0 / (1.0 + before * variance)
    return min(before * r + r * r * _second_order(r * variance), 1.0 / variance) * UP


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
    return min(total, math.log1p(2.0 * dual / (1.0 - dual)) if dual < 1.0 else math.inf) * UP


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
    return (total + ends**first / (1.0 - ends)) * UP if ends < 0.5 else math.inf


def log_range(v: float) -> float:
    """Return an upper bound of log T(0)/T(1/2) = 4 sum over odd l of b_l/l, T as above."""
    return 4.0 * _series(v, lambda el: float(el % 2))


@lru_cache(maxsize=256)
def of_skellam(variance: float) -> float:
    """Return an upper bound of the curvature of a Skellam law, 2 log(I_0/I_1) (Theorem 3)."""
    if variance >= WIDE:
        b = 1.0 / math.sqrt((variance - 1.0) * (variance + 1.0)) * UP_A_HANDFUL
        return -math.log1p(-b) * UP
    return -2.0 * math.log(bessel_ratios(variance, 0)[0][0]) * UP + SHORT_SUM


def bessel_ratios(x: float, last: int) -> tuple[list[float], list[float]]:
    """Return lower and upper ends of I_(k+1)(x)/I_k(x) for k = 0, ..., last.

    Backwards by 1/r_(k-1) = 2k/x + r_k, which contracts, from x/(k+1/2 + sqrt(x^2 + (k+3/2)^2)) <= r_k <= x/(k+1/2 + sqrt(x^2 +
    (k+1/2)^2)) (Amos 1974).
    """
    start = last + math.ceil(7.0 * math.sqrt(x)) + 20
    low = x / (start + 0.5 + math.hypot(x, start + 1.5)) / UP
    high = x / (start + 0.5 + math.hypot(x, start + 0.5)) * UP
    lows, highs = [], []
    for k in range(start, -1, -1):
        if k <= last:
            lows.append(low)
            highs.append(high)
        step = 2.0 * k / x
        low, high = (1.0 - FUNCTIONS) / (step + high), (1.0 + FUNCTIONS) / (step + low)
    return lows[::-1], highs[::-1]
