"""Prove a claim of (epsilon, delta)-differential privacy with ball arithmetic and one theorem.

A certificate says: this ledger of mechanisms, between data sets of this adjacency, has delta(epsilon) at most, or at least, so
much. This program encloses delta in a ball (Arb, by python-flint), whose radius holds every rounding error, and compares the outer
end. It takes the claim from the certificate and nothing else, and nothing at all from the program that wrote it.

For the laws P and Q of what is released, L = log dP/dQ is the privacy loss, which adds up over independent releases, and

    delta(epsilon) = E_P[(1 - e^(epsilon - L))+].

Theorem. Let L be finite, c > 0, M(z) = E_P[e^(zL)], h > 0 and Lambda = 2 pi/h. Over all integers k and j,

    S = h/(2 pi) sum_k F(kh) = sum_j e^(-c j Lambda) delta(epsilon - j Lambda),   F(w) = M(z) e^(-z epsilon)/(z (z + 1)),   z = c + iw.

Proof. The Fourier transform of k(y) = (1 - e^-y)+ e^(-cy) is 1/(z(z + 1)), and Poisson's formula says that the sum of h/(2 pi)
e^(ikhy)/(z(z + 1)) over k is that of k(y + j Lambda) over j. Put y = L - epsilon, multiply by e^(cy), and take the mean under P.

So S >= delta(epsilon). It has too much by at most 1/(e^(c Lambda) - 1) for j > 0, and for j < 0, since (1 - e^-y)+ <= e^(Cy), by
M(C) e^(-C epsilon)/(e^((C - c) Lambda) - 1) for any C > c.

A law is a table of weights and losses, with sum_j w_j e^(iw L_j) = M(c + iw) up to a proved error, and has a decay: pairs (m, B)
with |M(c + iw)| <= M(c) (1 - m + B/w). Here m is the share of a region where L has a smooth density, and B/w bounds the region's
Fourier integral. As the sum of h/w^2 beyond W is at most 1/W, the terms of S beyond W are at most M(c) e^(-c epsilon)/(pi W) times
those factors at W. Where they fall too slowly, Gaussian noise of a tiny mu is released as well: that can only raise delta (who
ignores it has the rest), and brings a factor e^(-mu^2 w^2/2). Infinite losses, of mass r in all, add r.

Where S is too long, losses are rounded at random to a neighbour on a grid, such that the mean of e^-L stays. As (1 - e^(epsilon -
sum))+ is convex in each e^-L, that can only raise delta (Jensen), which is then a product of polynomials.

A certificate, whose numbers are decimal or hexadecimal strings:

    {"format": "hockeystick-certificate 1", "adjacency": "add_or_remove",
     "claim": {"epsilon": "1.82824", "delta": "1e-5", "delta_is": "at most"},
     "ledger": [{"count": "1000", "mechanism": {"name": "PoissonSampled", "sampling_rate": "0.01",
                                                "mechanism": {"name": "Gaussian", "noise_multiplier": "1"}}}]}
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from flint import acb, acb_mat, arb, arb_poly, ctx, fmpq

FORMAT = "hockeystick-certificate 1"
BITS = 128  # of all balls
NEED = 60.0  # nats, relative to M(c), below which errors of a table do not count
TOO_LONG = 3e5  # entries of a table
WORK = 3e7  # entries of a table times frequencies: some seconds


class NotACertificate(Exception):
    """The file is no certificate that this program understands."""


class NotProved(Exception):
    """The claim may be true, but is not proved here."""


class OutOfTime(BaseException):
    """The time is up; nothing but `main` catches it."""


def rational(value: Any, name: str, low: float, high: float) -> Fraction:
    """Return the number in a decimal or hexadecimal string, such as "1e-5" or "0x1.8p+0", exactly."""
    text = value if isinstance(value, str) and len(value) <= 400 else ""
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?", text, re.ASCII):
        number = Fraction(text)
    elif re.fullmatch(r"0x[01](\.[0-9a-f]{1,13})?p[+-][0-9]{1,3}", text, re.ASCII):
        number = Fraction(*float.fromhex(text).as_integer_ratio())
    else:
        raise NotACertificate(f"{name} must be a number in a string, got {str(value)[:40]!r}")
    if not Fraction(repr(low)) <= number <= Fraction(repr(high)):
        raise NotACertificate(f"{name} must be in [{low:g}, {high:g}], got {text[:40]}")
    return number


def ball(number: Fraction | int) -> arb:
    """Return a ball that holds a rational number."""
    return arb(fmpq(*Fraction(number).as_integer_ratio()))


def total(numbers: Any) -> arb:
    """Return the sum of balls."""
    return sum(numbers, arb(0))


def about(number: arb) -> float:
    """Return the middle of a ball, for choices on which no proof depends."""
    return float(number.mid())


# --- Laws: one mechanism between two data sets ------------------------------------------------------------------------------------


@dataclass
class Table:
    """sum_j weights_j e^(iw losses_j) is M(c + iw) up to `error`, for 0 <= w <= the frequency that was asked."""

    weights: list[arb]
    losses: list[arb]
    error: arb

    def sum(self) -> arb:
        """Return M(c)."""
        return total(self.weights) + arb(0, self.error.abs_upper())


class Law:
    """The law of L under P. If it is not discrete, the `loss` rises with the outcome, which hardly ever leaves a `range`."""

    discrete = True
    range: tuple[arb, arb]
    revealed = arb(0)  # P's mass of infinite losses

    def table(self, c: arb, w: float) -> Table:
        """Return M near the tilt c, up to a frequency."""
        raise NotImplementedError

    def loss(self, x: arb) -> tuple[arb, arb]:
        """Return L and its derivative."""
        raise NotImplementedError

    def masses_above(self, x: arb) -> tuple[arb, arb]:
        """Return the masses of P and Q above x."""
        raise NotImplementedError

    def decay(self, _: arb) -> Iterator[tuple[arb, arb]]:
        """Yield (M(c) m, M(c) B) with |M(c + iw)| <= M(c) (1 - m + B/w) for all w > 0."""
        yield from ()


class Outcomes(Law):
    """Finitely many outcomes, each of masses (P, Q)."""

    def __init__(self, masses: list[tuple[arb, arb]]) -> None:
        self.revealed = total(p for p, q in masses if q == 0)
        self.masses = [(p, q) for p, q in masses if p != 0 and q != 0]

    def table(self, c: arb, w: float) -> Table:
        losses = [(p / q).log() for p, q in self.masses]
        return Table([p * (c * x).exp() for (p, _), x in zip(self.masses, losses, strict=True)], losses, arb(0))


def by_parts(
    step: arb, g: list[arb], slope: list[arb], rates: list[tuple[arb, arb]], bend: arb
) -> Iterator[tuple[arb, arb]]:
    """Yield the decay of regions from a point of a grid to its last.

    There M has the density g e^(iwL), L' is `slope`, and (log g)' is in `rates` between a point and the next. With F = g/L' the
    integral from a to b is at most (F(a) + F(b) + the variation of F)/w. |L''| <= bend L', so that |(log F)'| is at most `rate`.
    """
    f = [x / y for x, y in zip(g, slope, strict=True)]
    mass, variation = arb(0), arb(0)
    for j in reversed(range(len(rates))):
        low, high = rates[j]
        rate = (bend - low).max(bend + high)
        mass += g[j] * step * (step * low.min(arb(0))).exp()
        variation += f[j] * ((step * rate.max(arb(0))).exp() - 1)
        yield mass, f[j] + f[-1] + variation


class GaussianMixture(Law):
    """Noise N(0, 1) and a shift s >= 0 of probability p: W(x) = sum p e^(sx - s^2/2) is the ratio to the density N(x) of the noise.

    M(z) is the integral of f = N(x) W(x)^(u(1 + z)) W(-x)^(-vz), and L = u log W(x) - v log W(-x), which rises. A record removed: u,
    v = 1, 0. Added: 0, 1, with x turned around. Replaced by one that shifts the other way: 1, 1. On integers, x = k/sigma has the mass
    e^(-x^2/2)/Z in place of the density.
    """

    def __init__(self, shifts: list[tuple[Fraction, Fraction]], u: int, v: int, sigma: Fraction | None = None) -> None:
        self.shifts, self.u, self.v = [(ball(p), ball(s)) for p, s in shifts if p], u, v
        self.most = ball(max(s for p, s in shifts if p))
        self.mean, self.square = total(p * s for p, s in self.shifts), total(p * s * s for p, s in self.shifts)
        self.sigma, self.discrete = (ball(sigma) if sigma else arb(1)), sigma is not None
        self.range = arb(-1000) - self.v * self.most.upper(), arb(1000) + self.most.upper()

    def log_w(self, x: arb) -> tuple[arb, arb]:
        """Return log W, and its derivative, a mean of the shifts that rises with x."""
        terms = [(p * (s * (x - s / 2)).exp(), s) for p, s in self.shifts]
        w = total(t for t, _ in terms)
        return w.log(), total(t * s for t, s in terms) / w

    def loss(self, x: arb) -> tuple[arb, arb]:
        (up, rise), (down, fall) = self.log_w(x), self.log_w(-x)
        return self.u * up - self.v * down, self.u * rise + self.v * fall

    def masses_above(self, x: arb) -> tuple[arb, arb]:
        p = total(p * above(x - s) for p, s in self.shifts) if self.u else above(x)
        return p, total(p * above(x + s) for p, s in self.shifts) if self.v else above(x)

    def power(self, c: arb, x: arb) -> arb:
        """Return log(f/N)."""
        up = self.u * (1 + c) * self.log_w(x)[0] if self.u else arb(0)
        return up - c * self.log_w(-x)[0] if self.v else up

    def turn(self, x: arb, a: arb) -> arb:
        """Bound |arg W(x' + iy)|/y for x' <= x and 0 < y <= a: it is below `most`, and below sum t s/sum t cos(s a), t as in W."""
        terms = [(p * (s * (x - s / 2)).exp(), s) for p, s in self.shifts]
        return (total(t * s for t, s in terms) / total(t * (s * a).cos() for t, s in terms)).min(self.most)

    def growth(self, c: arb, w: float, a: arb, left: arb, right: arb) -> arb:
        """Bound log|f(x + iy)/f(x)|/|y| for -left <= x <= right, |y| <= a and most a < pi/2.

        |W(x + iy)| <= W(x), and |W| >= W cos(most y), as is its real part; -log cos is convex.
        """
        turn = (self.turn(right, a) if self.u else 0) + (self.turn(left, a) if self.v else 0)
        return a / 2 + w * turn - self.v * c * (self.most * a).cos().log() / a

    def ends(self, c: arb) -> tuple[arb, arb, arb]:
        """Return -left and right, beyond which f is negligible, and a bound of sqrt(2 pi) f there and of its integral beyond.

        Between a and b on the right f/N <= W(b)^(u(1 + c)) W(-b)^(-vc). At last, log W(x) <= most x and, by Jensen, log W(-x) >= -mean x
        - square/2. On the left W(x) <= 1, and W(-x) >= W(0).
        """
        kappa = self.u * (1 + c) * self.most + self.v * c * self.mean
        far = self.v * c * self.square / 2 + kappa * kappa / 2
        width = 2.0 ** max(-2, math.ceil(math.log2(max(about(kappa), 1.0) / 400)))  # so that j width is exact
        last = math.ceil((about(kappa) + math.sqrt(2 * about(far) + 240)) / width)

        def gauss(x: arb) -> arb:  # at least the integral of e^(-x^2/2) beyond x >= 0, plus its value there
            return arb(1.5) * (x / arb(2).sqrt()).erfc() + (-x * x / 2).exp()

        beyond, peak, bounds = far.exp() * gauss(arb(last * width) - kappa), 0.0, []
        for j in reversed(range(last)):
            bounds.append(beyond)
            b = arb((j + 1) * width)
            power = self.power(c, b)
            peak = max(peak, about(power - b * b / 2))
            beyond += (power - arb(j * width) ** 2 / 2).exp() * max(1, width)
        limit = arb(peak - NEED).exp()
        right = next(j + 1 for j, bound in enumerate(reversed(bounds)) if bound < limit or j + 1 == last)
        scale = (-self.v * c * self.log_w(arb(0))[0]).exp()
        left = next((x for x in range(1, 10**4) if scale * gauss(arb(x)) < limit), 10**4)
        return arb(-left), arb(right * width), bounds[last - right] + scale * gauss(arb(left))

    def table(self, c: arb, w: float) -> Table:
        left, right, outside = self.ends(c)
        return self.lattice(c, left, right, outside) if self.discrete else self.trapezoid(c, w, left, right, outside)

    def at(self, c: arb, xs: Iterator[arb], scale: arb, error: arb) -> Table:
        """Return f times a scale, and losses, at points."""
        weights, losses = [], []
        for x in xs:
            up = self.log_w(x)[0] if self.u else arb(0)
            down = self.log_w(-x)[0] if self.v else arb(0)
            weights.append(scale * (self.u * (1 + c) * up - self.v * c * down - x * x / 2).exp())
            losses.append(self.u * up - self.v * down)
        return Table(weights, losses, error)

    def lattice(self, c: arb, left: arb, right: arb, outside: arb) -> Table:
        """The masses themselves; at most sigma + 1 integers lie in a unit of x."""
        if about((right - left) * self.sigma) > TOO_LONG:
            raise NotProved("the noise has too many values")
        wide = math.ceil(12 * about(self.sigma)) + 1
        end = (wide + 1) / self.sigma  # beyond it masses fall faster than a geometric series
        rest = 2 * (-end * end / 2).exp() / (1 - (-end / self.sigma).exp())
        z = 1 + 2 * total((-((k / self.sigma) ** 2) / 2).exp() for k in range(1, wide + 1)) + arb(0).union(rest)
        ks = range(math.floor(about(left * self.sigma)), math.ceil(about(right * self.sigma)) + 1)
        return self.at(c, (k / self.sigma for k in ks), 1 / z, outside * (self.sigma + 1) / z)

    def trapezoid(self, c: arb, w: float, left: arb, right: arb, outside: arb) -> Table:
        """The trapezoidal rule of step h, whose ends lie half a step beyond its nodes.

        By residues of f(x)/(e^(2 pi i (x - left)/h) + 1) its error is at most the integrals of |f| over y = a and y = -a divided by
        e^(2 pi a/h) - 1, plus those over the sides. There |f| <= f(x) e^(gamma y), below the denominator if gamma <= 2 pi/h.
        """
        step, a, gamma = arb(0), arb(0), arb(0)
        for part in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95):
            height = arb(part * math.pi / 2 / about(self.most))
            rate = self.growth(c, w, height, -left, right)
            if about(longest := 2 * arb.pi() / (rate + (NEED + 4) / height)) > about(step):
                step, a, gamma = longest, height, rate
        if not step > 0 or about((right - left) / step) > TOO_LONG:
            raise NotProved("the quadrature is too long")
        count = math.ceil(about((right - left) / step))
        h = (right - left) / count
        rule = self.at(c, (left + h * (j + arb(0.5)) for j in range(count)), h / (2 * arb.pi()).sqrt(), arb(0))
        ratio, outside = 2 * (gamma * a).exp() / ((2 * arb.pi() * a / h).exp() - 1), outside * (1 + 2 * a)
        if not (ratio < 1 and gamma * h < 2 * arb.pi() and self.most * a < arb.pi() / 2):
            raise NotProved("the quadrature has no error bound")
        rule.error = outside + ratio * (total(rule.weights) + outside) / (
            1 - ratio
        )  # M(c) <= (the sum + outside)/(1 - ratio)
        return rule

    def decay(self, c: arb) -> Iterator[tuple[arb, arb]]:
        if self.discrete:
            return
        left, right, _ = self.ends(c)
        step = (right - left) / 600
        xs = [left + step * j for j in range(601)]
        up, down = [self.log_w(x)[1] for x in xs], [self.log_w(-x)[1] for x in xs]
        g = [(self.power(c, x) - x * x / 2).exp() / (2 * arb.pi()).sqrt() for x in xs]
        slope = [self.u * a + self.v * b for a, b in zip(up, down, strict=True)]
        rates = [
            (
                self.u * (1 + c) * up[j] + self.v * c * down[j + 1] - xs[j + 1],
                self.u * (1 + c) * up[j + 1] + self.v * c * down[j] - xs[j],
            )
            for j in range(600)
        ]
        yield from by_parts(step, g, slope, rates, self.most)


class SampledLaplace(Law):
    """Noise e^-|x|/2, and a shift d with probability q: W = 1 - q + q e^(2x - d) on [0, d], and constant on either side.

    A record removed: M(z) is the integral of e^-|x|/2 W^(1 + z), and L = log W. Added: of e^-|x|/2 W^-z, and L = -log W.
    """

    discrete = False

    def __init__(self, d: Fraction, q: Fraction, removed: bool) -> None:
        self.d, self.q, self.removed = ball(d), ball(q), removed
        self.range = (arb(0), self.d.upper()) if removed else (-self.d.upper(), arb(0))

    def log_w(self, x: arb) -> tuple[arb, arb]:
        r = self.q * (2 * x - self.d).exp()
        return (1 - self.q + r).log(), 2 * r / (1 - self.q + r)

    def loss(self, x: arb) -> tuple[arb, arb]:
        log_w, slope = self.log_w(abs(x))
        return log_w if self.removed else -log_w, slope

    def masses_above(self, x: arb) -> tuple[arb, arb]:
        """For 0 < x < d, a record removed, or 0 < -x < d, one added."""
        near, far = (-abs(x)).exp() / 2, (abs(x) - self.d).exp() / 2
        if self.removed:
            return (1 - self.q) * near + self.q * (1 - far), near
        return 1 - near, (1 - self.q) * (1 - near) + self.q * far

    def table(self, c: arb, w: float) -> Table:
        """Two atoms, and Gauss-Legendre inside: Trefethen, "Approximation theory and approximation practice", Theorem 19.3."""
        half, p, sign = self.d / 2, (1 + c if self.removed else -c), 1 if self.removed else -1
        low, high = self.log_w(arb(0))[0], self.log_w(self.d)[0]
        weights, losses = [(p * low).exp() / 2, (p * high - self.d).exp() / 2], [sign * low, sign * high]
        count, error = math.inf, arb(0)
        for height in (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75):  # of an ellipse around [0, d], where W has no zero
            b = arb(height) / half
            rho = b + (1 + b * b).sqrt()
            more = half * ((rho + 1 / rho) / 2 - 1)  # by which it exceeds [0, d] at either end
            top, turn = self.q * (self.d + 2 * more).exp(), arb(2 * height)
            least = turn.cos() * (1 - self.q + self.q * (-self.d - 2 * more).exp())
            size = (1 - self.q + top if self.removed else least).log() * p
            angle = (top * turn.sin() / (1 - self.q + top * turn.cos())).atan()
            bound = (more + size + w * angle).exp() / 2
            n = max(3, math.ceil((NEED + about((bound / (weights[0] + weights[1])).log())) / (2 * about(rho.log()))))
            if n < count:
                count, error = n, half * bound * arb(64) / 15 * rho ** (-2 * n) / (1 - rho**-2)
        if count > 3000:
            raise NotProved("the quadrature is too long")
        for k in range(count + 1):
            x, weight = arb.legendre_p_root(count + 1, k, weight=True)
            x = half * (1 + x)
            weights.append(half * weight * (p * self.log_w(x)[0] - x).exp() / 2)
            losses.append(sign * self.log_w(x)[0])
        return Table(weights, losses, error)

    def decay(self, c: arb) -> Iterator[tuple[arb, arb]]:
        step, p = self.d / 400, (1 + c if self.removed else -c)
        w = [(step * j, *self.log_w(step * j)) for j in range(401)]
        g = [(p * log_w - x).exp() / 2 for x, log_w, _ in w]
        rates = [(p * slope - 1).union(p * after - 1) for (_, _, slope), (_, _, after) in pairwise(w)]
        yield from by_parts(step, g, [slope for _, _, slope in w], [(r.lower(), r.upper()) for r in rates], arb(2))


# --- The sum of the theorem -------------------------------------------------------------------------------------------------------

Parts = list[tuple[Law, int]]
Masses = tuple[int, arb_poly]  # the first k, and the masses from it on


@dataclass
class Bracket:
    """delta lies in [lower, upper]."""

    lower: arb
    upper: arb


@dataclass
class Composition:
    """Releases, each so many times, and Gaussian noise of mu^2 in all."""

    parts: Parts
    mu2: arb

    def log_m(self, c: arb) -> tuple[arb, float]:
        """Return log M(c), and about the variance of L at that tilt."""
        log_m, variance = self.mu2 * c * (c + 1) / 2, about(self.mu2)
        for law, count in self.parts:
            table = law.table(c, 0.0)
            m = table.sum()
            log_m += count * m.log()
            shares = [about(x / m) for x in table.weights]
            losses = [about(x) for x in table.losses]
            mean = sum(x * y for x, y in zip(shares, losses, strict=True))
            variance += count * sum(x * (y - mean) ** 2 for x, y in zip(shares, losses, strict=True))
        return log_m, variance

    def factors(self, c: arb, h: arb, last: int) -> list[acb]:
        """Return M(c + ikh)/M(c) without Gaussian noise, for k = 0 ... last."""
        product, width = [acb(1)] * (last + 1), math.isqrt(last) + 1
        for law, count in self.parts:
            table = law.table(c, about(h * last) * (1 + 1e-9))
            fine = powers([acb(0, h * x).exp() for x in table.losses], width)
            coarse = powers(fine[width], last // width)
            coarse = [[x * y for x, y in zip(row, table.weights, strict=True)] for row in coarse]
            sums = (acb_mat(coarse) * acb_mat(fine[:width]).transpose()).entries()
            error, m = arb(0, table.error.abs_upper()), table.sum()
            product = [x * ((y + acb(error, error)) / m) ** count for x, y in zip(product, sums, strict=False)]
        return product


def powers(turns: list[acb], last: int) -> list[list[acb]]:
    """Return the powers 0 to `last` of numbers, each from its halves, as the radius grows with every product."""
    found = [[acb(1)] * len(turns), turns]
    for k in range(2, last + 1):
        found.append([x * y for x, y in zip(found[k // 2], found[k - k // 2], strict=True)])
    return found[: last + 1]


def log_tail(decays: list[tuple[int, list[tuple[Any, Any]]]], mu2: Any, w: Any) -> Any:
    """Bound the logarithm of |M(c + iw)/M(c)|/(pi w) from w on: in balls, or in floats for a search."""
    log: Callable[[Any], Any] = math.log if isinstance(w, float) else arb.log
    bound = -mu2 * w * w / 2 - log(w * (math.pi if isinstance(w, float) else arb.pi()))
    for count, pairs in decays:
        factor = min((1 - m + b / w for m, b in pairs), key=float if isinstance(w, float) else about, default=1.0)
        if factor < 1:
            bound += count * log(factor)
    return bound


def least(function: Callable[[float], float], low: float, high: float) -> float:
    """Return about where a convex function, infinite from somewhere on, is least, by golden sections of the logarithm."""
    golden = (math.sqrt(5) - 1) / 2
    a, b = math.log(low), math.log(high)
    for _ in range(26):
        x, y = b - golden * (b - a), a + golden * (b - a)
        a, b = (a, y) if function(math.exp(x)) <= function(math.exp(y)) else (x, b)
    return math.exp(x)


class Sum:
    """The sum for one claim: how it is cut, and what it is."""

    def __init__(self, exact: Composition, epsilon: arb, delta: float) -> None:
        self.exact, self.epsilon, self.log_delta = exact, epsilon, math.log(delta)
        self.seen: dict[float, tuple[float, float]] = {}

    def at(self, c: float) -> tuple[float, float]:
        """Return about log M(c) - c epsilon, and the variance there."""
        if c not in self.seen:
            try:
                log_m, variance = self.exact.log_m(arb(c))
                self.seen[c] = (about(log_m - c * self.epsilon), variance) if log_m.is_finite() else (math.inf, 1.0)
            except NotProved:
                self.seen[c] = math.inf, 1.0
        return self.seen[c]

    def chernoff(self) -> Bracket | None:
        """Return a bound that is far below the claim, if there is one: (1 - e^-y)+ <= e^(cy) c^c/(c + 1)^(c + 1)."""
        for c in (1.0, 4.0, 16.0, 64.0):
            if self.at(c)[0] + c * math.log(c) - (c + 1) * math.log(c + 1) < self.log_delta - 5:
                d = arb(c)
                return Bracket(
                    arb(0), (self.exact.log_m(d)[0] - d * self.epsilon + d * d.log() - (d + 1) * (d + 1).log()).exp()
                )
        return None

    def period(self, c: float, wanted: float) -> tuple[float, float]:
        """Return Lambda, such that what S has too much is below e^wanted, and the other tilt of that bound."""
        others = [c + more / math.sqrt(max(self.at(c)[1], 1e-12)) for more in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)]
        period, other = min(((self.at(x)[0] - wanted) / (x - c), x) for x in others if x > c)
        return max(period, -wanted / c), other

    def length(
        self, c: float, h: float, wanted: float, decays: list[tuple[int, list[tuple[arb, arb]]]]
    ) -> tuple[float, int]:
        """Return the least noise to add, as the share by which it raises delta, with which the sum is short, and its last term."""
        rough = [(count, [(about(m), about(b)) for m, b in pairs]) for count, pairs in decays]
        for slack in (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3):
            mu2, low, high = about(self.exact.mu2) + 2 * slack / (c * (c + 1)), 1e-6, 1e9
            for _ in range(60):
                w = math.sqrt(low * high)
                low, high = (low, w) if self.at(c)[0] + log_tail(rough, mu2, w) < wanted else (w, high)
            last = math.ceil(high / h) + 1
            with contextlib.suppress(NotProved):
                if (
                    last < TOO_LONG
                    and last * (10 + sum(len(law.table(arb(c), high).weights) for law, _ in self.exact.parts)) < WORK
                ):
                    return slack, last
        raise NotProved("the sum is too long")

    def bracket(self) -> Bracket:
        """Enclose delta."""
        if (bound := self.chernoff()) is not None:
            return bound
        tilt = least(lambda c: self.at(c)[0] - math.log(c * (c + 1)), 1e-3, 1e5)
        wanted = self.log_delta - 34  # the ends of hockeystick's brackets are that close, relatively: about 1e-12
        period, other = self.period(tilt, wanted)
        if not math.isfinite(period):
            raise NotProved("the quadrature is too long")
        c, h, decays = arb(tilt), 2 * arb.pi() / arb(period), []
        for law, count in self.exact.parts:
            m = law.table(c, 0.0).sum()
            decays.append((count, [(x / m, y / m) for x, y in law.decay(c)]))
        slack, last = self.length(tilt, about(h), wanted, decays)
        noisy = Composition(self.exact.parts, self.exact.mu2 + 2 * arb(slack) / (c * (c + 1)))
        scale, s = (noisy.log_m(c)[0] - c * self.epsilon).exp(), arb(0)
        for k, factor in enumerate(noisy.factors(c, h, last)):
            z = acb(c, h * k)
            noise = (noisy.mu2 * (z * (z + 1) - c * (c + 1)) / 2 - acb(0, h * k) * self.epsilon).exp()
            s += (factor * noise / (z * (z + 1))).real * (2 if k else 1)
        s *= scale * h / (2 * arb.pi())
        tail = scale * log_tail(decays, noisy.mu2, h * last).exp()
        if slack:
            return Bracket(arb(0), s + tail)
        aliases = 1 / ((c * period).exp() - 1)
        aliases += (self.exact.log_m(arb(other))[0] - other * self.epsilon).exp() / (((other - c) * period).exp() - 1)
        return Bracket(s - tail - aliases, s + tail)


# --- Without a sum ----------------------------------------------------------------------------------------------------------------


def above(x: arb) -> arb:
    """Return the mass of N(0, 1) above x."""
    return (x / arb(2).sqrt()).erfc() / 2


def crossing(law: Law, level: arb) -> arb:
    """Enclose where L crosses a level between the ends of the law's range, by Newton's steps, every fourth a bisection."""
    low, high = law.range
    x = (low + high) / 2
    for turn in range(4 * BITS):
        x = x.mid()
        loss, slope = law.loss(x)
        low, high = (x, high) if loss < level else (low, x) if loss > level else (low, high)
        step = (level - loss) / slope
        near = x + step.mid() + arb(0, abs(step).upper() + 2.0**-100)
        if abs(step) < 2.0**-80 and law.loss(near.lower())[0] < level < law.loss(near.upper())[0]:
            return near
        x = x + step if turn % 4 < 3 and low < x + step < high else (low + high) / 2
    return low.union(high)


def one_step(law: Law, epsilon: arb) -> arb:
    """Return delta of a single release: P(L > epsilon) - e^epsilon Q(L > epsilon)."""
    if law.discrete:
        table = law.table(arb(0), 0.0)
        terms = [w * (1 - (epsilon - x).exp()).max(arb(0)) for w, x in zip(table.weights, table.losses, strict=True)]
        return law.revealed + total(terms) + arb(0).union(table.error)
    if (
        law.loss(high := law.range[1])[0] <= epsilon
    ):  # for Laplace noise L is the same beyond, else P(L > epsilon) is above delta
        return arb(0) if isinstance(law, SampledLaplace) else arb(0).union(law.masses_above(high)[0])
    p, q = law.masses_above(crossing(law, epsilon))
    return p - epsilon.exp() * q


# --- On a grid --------------------------------------------------------------------------------------------------------------------


class Grid:
    """Losses kh with |k| <= n, h > 0. Those below count as -nh, by which delta can only grow, and those above as infinite.

    A law may have less mass than 1. Only losses between two neighbours are divided among them; the masses from outside the range of a law,
    whose losses may lie elsewhere, are within the radius of the balls that are divided.
    """

    def __init__(self, h: arb, n: int) -> None:
        self.h, self.n = h, n

    def rounded(self, law: Law) -> Masses:
        """Return P's masses of the losses of a law, each divided between its neighbours such that the masses of P and Q stay."""
        masses: Counter[int] = Counter()

        def divide(k: int, p: arb, q: arb) -> None:  # what lies between kh and (k + 1)h
            above = (p - q * (self.h * k).exp()) / (1 - (-self.h).exp())
            masses[k] += p - above
            masses[k + 1] += above

        if law.discrete:
            table = law.table(arb(0), 0.0)
            for p, loss in zip(table.weights, table.losses, strict=True):
                k = max(math.floor(about(loss / self.h)), -self.n)
                if self.h * k < loss < self.h * (k + 1):
                    divide(k, p, p * (-loss).exp())
                else:
                    masses[next(j for j in (k, k + 1, k + 2) if loss <= self.h * j)] += p
        else:
            low, high = (law.loss(x)[0] for x in law.range)
            ks = [k for k in range(-self.n, self.n + 1) if low < self.h * k < high]
            if not ks:
                raise NotProved("a loss is too small for a grid")
            outside = arb(0, above(arb(900)).upper())  # more than the masses outside the range, wherever they are put
            beyond = [law.masses_above(crossing(law, self.h * k)) for k in ks]
            for k, (p, q), (less, less_q) in zip(ks, beyond, beyond[1:], strict=False):
                divide(k, p - less, q - less_q)
            if ks[0] > -self.n and self.h * (ks[0] - 1) <= low:
                divide(ks[0] - 1, 1 - beyond[0][0] + outside, 1 - beyond[0][1] + outside)
            else:
                masses[ks[0]] += 1 - beyond[0][0]
            if high <= self.h * (ks[-1] + 1):
                divide(ks[-1], beyond[-1][0] + outside, beyond[-1][1] + outside)
            elif high <= self.h * (ks[-1] + 2):
                masses[ks[-1] + 2] += beyond[-1][0] + outside
        first = max(min(masses), -self.n)
        return first, arb_poly([masses[k] for k in range(first, min(max(masses), self.n) + 1)])

    def product(self, one: Masses, other: Masses) -> Masses:
        """Return the masses of sums."""
        first, terms = one[0] + other[0], (one[1] * other[1]).coeffs()
        if (below := -self.n - first) > 0:
            first, terms = -self.n, [total(terms[: below + 1]), *terms[below + 1 :]]
        return first, arb_poly(terms[: self.n + 1 - first])

    def delta(self, parts: Parts, epsilon: arb) -> arb:
        """Bound delta."""
        sums: Masses = (0, arb_poly([1]))
        for law, count in parts:
            square = self.rounded(law)
            while count:
                sums = self.product(sums, square) if count % 2 else sums
                if count := count // 2:
                    square = self.product(square, square)
        losses = [self.h * k for k in range(sums[0], self.n + 1)]
        kept = [(p, x) for p, x in zip(sums[1].coeffs(), losses, strict=False)]
        return 1 - total(p for p, _ in kept) + total(p * (1 - (epsilon - x).exp()) for p, x in kept if not x <= epsilon)


def on_a_grid(exact: Composition, epsilon: arb, delta: float) -> arb:
    """Bound delta on finer and finer grids, until that is the claim."""
    parts, bound = exact.parts, arb(1)
    if exact.mu2 > 0:
        mu = Fraction(math.nextafter(float(exact.mu2.sqrt().upper()), math.inf))
        parts = [*parts, (GaussianMixture([(Fraction(1), mu)], 1, 0), 1)]
    whole = Sum(exact, arb(0), delta)
    reach = min((whole.at(c)[0] - whole.log_delta + 14) / c for c in (2.0 ** (k / 2) for k in range(-12, 25)))
    for n in (2**11, 2**13, 2**15):
        if 0 < reach < math.inf and bound > delta and n * sum(count.bit_length() for _, count in parts) < 2 * TOO_LONG:
            bound = bound.min(Grid(arb(reach) / n, n).delta(parts, epsilon))
    return bound


def enclose(parts: Parts, mu2: arb, epsilon: arb, delta: float) -> Bracket:
    """Enclose delta in one direction; the claim says about how small it is."""
    if not parts:
        mu = mu2.sqrt()
        value = above(epsilon / mu - mu / 2) - epsilon.exp() * above(epsilon / mu + mu / 2) if mu > 0 else arb(0)
        return Bracket(value, value)
    if mu2 == 0 and len(parts) == 1 and parts[0][1] == 1:
        one = one_step(parts[0][0], epsilon)
        return Bracket(one, one)
    revealed = arb(1)
    for law, count in parts:
        revealed *= (1 - law.revealed) ** count
    revealed = 1 - revealed
    if any(not law.table(arb(1), 0.0).weights for law, _ in parts):
        return Bracket(revealed, revealed)
    exact = Composition(parts, mu2)
    try:
        finite = Sum(exact, epsilon, delta).bracket()
    except NotProved:
        finite = Bracket(arb(0), arb(1))
    upper = revealed + finite.upper
    if finite.lower == 0 and not upper <= delta:  # nothing was proved, or with noise that is not there
        upper = upper.min(on_a_grid(exact, epsilon, delta))
    return Bracket(revealed + finite.lower, upper)


# --- Mechanisms -------------------------------------------------------------------------------------------------------------------


@dataclass
class Release:
    """What a mechanism releases: Gaussian noise of mu^2, or laws for a record removed and added, one if they are equal."""

    laws: list[Law]
    mu2: Fraction = Fraction(0)
    attained: bool = True


@dataclass
class Spec:
    """A mechanism of a certificate, and where it stands; a replaced record moves a sum by two sensitivities."""

    data: Any
    path: str
    replaced: bool
    read: set[str] = field(default_factory=set)

    def get(self, key: str) -> Any:
        """Return a field."""
        self.read.add(key)
        return self.data.get(key) if isinstance(self.data, dict) else None

    def name(self) -> str:
        """Return its name."""
        if not isinstance(name := self.get("name"), str):
            raise NotACertificate(f"{self.path} must be a mechanism with a name")
        return ascii(name[:60])[1:-1]

    def done(self) -> None:
        """Refuse fields that were not read: nobody shall take them for part of what is proved."""
        if unknown := sorted(set(self.data) - self.read):
            raise NotACertificate(f"{self.path} has a field that is not known: {unknown[0][:60]!a}")

    def number(self, key: str, low: float, high: float) -> Fraction:
        """Return a number."""
        return rational(self.get(key), f"{self.path}.{key}", low, high)

    def whole(self, key: str, high: float) -> int:
        """Return a number from 1 on without a fraction."""
        if (value := self.number(key, 1, high)).denominator != 1:
            raise NotACertificate(f"{self.path}.{key} must be a whole number")
        return int(value)

    def numbers(self, key: str, high: float) -> list[Fraction]:
        """Return a list of numbers."""
        values = self.get(key)
        if not isinstance(values, list) or not 1 <= len(values) <= 1000:
            raise NotACertificate(f"{self.path}.{key} must be a list of 1 to 1000 numbers")
        return [rational(value, f"{self.path}.{key}", 0, high) for value in values]

    def shares(self, key: str) -> list[Fraction]:
        """Return probabilities."""
        if sum(values := self.numbers(key, 1)) != 1:
            raise NotACertificate(f"{self.path}.{key} must sum to exactly 1")
        return values

    def inner(self) -> Spec:
        """Return the mechanism that it runs."""
        return Spec(self.get("mechanism"), self.path + ".mechanism", self.replaced)

    def only_if(self, covered: bool, by: str) -> None:
        """Refuse what no rule covers."""
        if not covered:
            raise NotProved(f"{self.name()}: no rule but for {by}")


def both(masses: list[tuple[arb, arb]]) -> list[Law]:
    """Return the laws of both directions."""
    return [Outcomes(masses), Outcomes([(q, p) for p, q in masses])]


def mixtures(spec: Spec, rate: Fraction, shift: Fraction, sigma: Fraction | None = None) -> list[Law]:
    """Return the laws of Gaussian noise on a sample."""
    shifts = [(1 - rate, Fraction(0)), (rate, shift)]
    sides = [(1, 0)] if rate == 1 else [(1, 1)] if spec.replaced else [(1, 0), (0, 1)]
    return [GaussianMixture(shifts, u, v, sigma) for u, v in sides]


def gaussian(spec: Spec, rate: Fraction) -> Release:
    """Gaussian noise."""
    sigma = spec.number("noise_multiplier", 1e-3, 1e6)
    return Release([], ((1 + spec.replaced) / sigma) ** 2) if rate == 1 else Release(mixtures(spec, rate, 1 / sigma))


def laplace(spec: Spec, rate: Fraction) -> Release:
    """Laplace noise."""
    d = (1 + spec.replaced) / spec.number("noise_multiplier", 1e-2, 1e6)
    return Release([SampledLaplace(d, rate, removed) for removed in (True, False)[: 1 + (rate < 1)]])


def discrete_gaussian(spec: Spec, rate: Fraction) -> Release:
    """Discrete Gaussian noise on an integer."""
    sigma, s = spec.number("noise_std", 1e-2, 1e4), spec.whole("sensitivity", 1e6) * (1 + spec.replaced)
    return Release(mixtures(spec, rate, s / sigma, sigma))


def discrete_laplace(spec: Spec, rate: Fraction) -> Release:
    """Masses of the noise moved by s, and at 0, where the losses are a (2k - s), k = 0 ... s."""
    a, s = ball(spec.number("inverse_scale", 1e-6, 300)), spec.whole("sensitivity", 1e4) * (1 + spec.replaced)
    edge, inner = 1 / (1 + (-a).exp()), (1 - (-a).exp()) / (1 + (-a).exp())
    moved = [edge * (-a * s).exp(), *(inner * (-a * (s - k)).exp() for k in range(1, s)), edge]
    masses = [(ball(1 - rate) * q + ball(rate) * p, q) for p, q in zip(moved, reversed(moved), strict=True)]
    return Release(both(masses)[: 1 + (rate < 1)])


NOISE = {
    "Gaussian": gaussian,
    "Laplace": laplace,
    "DiscreteGaussian": discrete_gaussian,
    "DiscreteLaplace": discrete_laplace,
}


def poisson_sampled(spec: Spec) -> Release:
    """Noise on a Poisson sample: (1 - q)Q + qP against Q."""
    rate, inner = spec.number("sampling_rate", 0, 1), spec.inner()
    spec.only_if(inner.name() in NOISE, "noise")
    spec.only_if(
        inner.name() == "Gaussian" or not spec.replaced or rate in {0, 1}, "Gaussian noise, if a record is replaced"
    )
    found = NOISE[inner.name()](inner, rate or Fraction(1))
    inner.done()
    return found if rate else Release([])


def fixed_size_sampled(spec: Spec) -> Release:
    """A record added or removed, none drawn twice: dominated by a sample of rate batch/records, where a record is replaced."""
    records, inner = spec.whole("num_records", 1e15), spec.inner()
    rate = Fraction(spec.whole("batch_size", records), records)
    spec.only_if(inner.name() == "Gaussian" and spec.get("replacement") is False, "Gaussian noise without replacement")
    spec.only_if(not spec.replaced, "a record added or removed")
    shift = 2 / inner.number("noise_multiplier", 1e-2, 1e6)
    inner.done()
    return Release(mixtures(spec, rate, shift), attained=False)


def mixture_of_gaussians(spec: Spec) -> Release:
    """Gaussian noise on a random shift."""
    sigma, shares, moves = (
        spec.number("noise_multiplier", 1e-2, 1e6),
        spec.shares("probabilities"),
        spec.numbers("sensitivities", 1e6),
    )
    if len(shares) != len(moves):
        raise NotACertificate(f"{spec.path}.probabilities must be as many as the sensitivities")
    shifts = [(p, s / sigma) for p, s in zip(shares, moves, strict=True)]
    spec.only_if(
        not spec.replaced and any(p and s for p, s in shifts), "a record added or removed, which moves something"
    )
    return Release([GaussianMixture(shifts, u, 1 - u) for u in (1, 0)])


def randomized_response(spec: Spec) -> Release:
    """A uniform bucket with some probability, else the true one."""
    noise, k = spec.number("noise_probability", 0, 1), spec.whole("num_buckets", 1e9)
    spec.only_if(spec.replaced and k > 1, "a replaced record")
    true, other, rest = ball(1 - noise + noise / k), ball(noise / k), ball(noise * (k - 2) / k)
    return Release([Outcomes([(true, other), (other, true), (rest, rest)])])


def discrete(spec: Spec) -> Release:
    """A pair of distributions."""
    p, q = spec.shares("p"), spec.shares("q")
    if len(p) != len(q):
        raise NotACertificate(f"{spec.path}.p and .q must be of one length")
    return Release(both([(ball(x), ball(y)) for x, y in zip(p, q, strict=True)]))


def approximate_dp(spec: Spec) -> Release:
    """The pair that dominates all that is (epsilon, delta)-DP."""
    odds, delta = ball(spec.number("epsilon", 0, 600)).exp(), ball(spec.number("delta", 0, 1))
    more, less = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
    return Release([Outcomes([(delta, arb(0)), (more, less), (less, more)])], attained=False)


RULES: dict[str, Callable[[Spec], Release]] = {
    "ApproximateDP": approximate_dp,
    "Discrete": discrete,
    "FixedSizeSampled": fixed_size_sampled,
    "MixtureOfGaussians": mixture_of_gaussians,
    "PoissonSampled": poisson_sampled,
    "RandomizedResponse": randomized_response,
}


def release(spec: Spec) -> Release:
    """Return what a mechanism releases."""
    if (name := spec.name()) not in NOISE and name not in RULES:
        raise NotProved(f"no rule for {name}")
    found = NOISE[name](spec, Fraction(1)) if name in NOISE else RULES[name](spec)
    spec.done()
    return found


# --- The claim --------------------------------------------------------------------------------------------------------------------


@dataclass
class Claim:
    """delta(epsilon) of the releases is at most, or at least, delta."""

    at_most: bool
    epsilon: Fraction
    delta: Fraction
    releases: list[tuple[Release, int]]
    written: str  # epsilon, as the certificate has it

    def directions(self) -> list[Parts]:
        """Return the laws of either direction, one if they are equal."""
        kept = [(release.laws, count) for release, count in self.releases if release.laws]
        sides = max([len(laws) for laws, _ in kept], default=1)
        return [[(laws[min(side, len(laws) - 1)], count) for laws, count in kept] for side in range(sides)]

    def prove(self) -> None:
        """Raise NotProved if this does not prove it."""
        if not self.at_most and not all(release.attained for release, _ in self.releases):
            raise NotProved("what only dominates a mechanism says nothing of how much is lost at least")
        mu2 = ball(sum((release.mu2 * count for release, count in self.releases), Fraction(0)))
        epsilon, delta, found = ball(self.epsilon), ball(self.delta), []
        for parts in self.directions():
            bracket = enclose(parts, mu2, epsilon, max(float(self.delta), 1e-300))
            found.append(about(bracket.upper if self.at_most else bracket.lower))
            if self.at_most and not bracket.upper <= delta:
                raise NotProved(f"this proof says at most about {found[-1]:.8g}")
            if not self.at_most and bracket.lower >= delta:
                return
        if not self.at_most:
            raise NotProved(f"this proof says at least about {max(found):.8g}")


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON whose fields are named once."""
    if len(dict(pairs)) < len(pairs):
        raise NotACertificate("a field is given twice")
    return dict(pairs)


def read(text: str) -> Claim:
    """Read a certificate."""
    try:
        data = json.loads(text, object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError):
        raise NotACertificate("this is no JSON") from None
    top = Spec(data, "the certificate", replaced=False)
    if top.get("format") != FORMAT:
        raise NotACertificate(f"the format must be {FORMAT!r}")
    adjacency, ledger, claim = top.get("adjacency"), top.get("ledger"), Spec(top.get("claim"), "claim", replaced=False)
    if adjacency not in ("add_or_remove", "replace"):
        raise NotACertificate("adjacency must be 'add_or_remove' or 'replace'")
    at = claim.get("delta_is")
    if at not in ("at most", "at least"):
        raise NotACertificate("claim.delta_is must be 'at most' or 'at least'")
    if (
        not isinstance(ledger, list)
        or not 1 <= len(ledger) <= 100
        or not all(isinstance(entry, dict) for entry in ledger)
    ):
        raise NotACertificate("ledger must be a list of 1 to 100 mechanisms with counts")
    epsilon, delta, releases = claim.number("epsilon", 0, 1e5), claim.number("delta", 0, 1), []
    for i, entry in enumerate(ledger):
        spec = Spec(entry, f"ledger[{i}]", adjacency == "replace")
        releases.append((release(spec.inner()), spec.whole("count", 1e9)))
        spec.done()
    claim.done()
    top.get("written_by")
    top.done()
    return Claim(at == "at most", epsilon, delta, releases, claim.get("epsilon"))


def seconds(text: str) -> float:
    """Return a limit of time."""
    if not 0.001 <= (value := float(text)) <= 1e6:
        raise ValueError
    return value


def main(arguments: list[str] | None = None) -> int:
    """Check a certificate: 0 if it is proved, 1 if it is not, 2 if it is no certificate."""
    parser = argparse.ArgumentParser(prog="hockeystick-check", description="Prove a claim of differential privacy.")
    parser.add_argument("file", type=Path, help="a certificate, in JSON")
    parser.add_argument("--limit", type=seconds, default=600.0, metavar="SECONDS", help="give up after so long (600)")
    options = parser.parse_args(arguments)
    ctx.prec = BITS

    def stop(*_: object) -> None:
        raise OutOfTime

    try:
        if hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, options.limit)
        claim = read(options.file.read_text(encoding="utf-8"))
        claim.prove()
    except (OSError, UnicodeDecodeError, NotACertificate) as error:
        print(f"not a certificate: {error}", file=sys.stderr)
        return 2
    except NotProved as error:
        print(f"not proved: {error}")
        return 1
    except OutOfTime:
        print(f"not proved: it takes more than {options.limit:g} seconds")
        return 1
    print(f"proved: delta({claim.written}) is {'at most' if claim.at_most else 'at least'} the delta that it claims")
    return 0


if __name__ == "__main__":
    sys.exit(main())
