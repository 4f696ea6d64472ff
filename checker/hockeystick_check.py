"""Prove a claim of (epsilon, delta)-differential privacy with ball arithmetic and one theorem.

A certificate says: this ledger of mechanisms, between data sets of this adjacency, has delta(epsilon) at most, or at least, so
much. This program encloses delta in a ball (Arb, by python-flint), whose radius holds every rounding error, and compares the outer
end. It takes the claim from the certificate and nothing else, and nothing at all from the program that wrote it.

For the laws P and Q of what is released, L = log dP/dQ is the privacy loss, which adds up over independent releases, and

    delta(epsilon) = E_P[(1 - e^(epsilon - L))+].

Theorem. Let L be finite, c > 0, M(z) = E_P[e^(zL)] with M(c) finite, h > 0 and Lambda = 2 pi/h. Over all integers k and j,

    S = h/(2 pi) sum_k F(kh) = sum_j e^(-c j Lambda) delta(epsilon - j Lambda),   F(w) = M(z) e^(-z epsilon)/(z (z + 1)),   z = c + iw.

No term on the right is negative, so that S >= delta(epsilon). `Composition` computes S, and bounds what is left out of it and what it
has too much. docs/core/certificates.md has the format, and proves this and every bound below, under the headings that comments name.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from flint import acb, acb_mat, arb, ctx, fmpq

FORMAT = "hockeystick-certificate 1"
NUMBER = r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?|0x[01](\.[0-9a-f]{1,13})?p[+-][0-9]{1,3}"
NOISE = ("Gaussian", "Laplace", "DiscreteGaussian", "DiscreteLaplace")
BITS = 128  # of all balls
NEED = 60.0  # nats, relative to M(c), below which errors of M do not count
# By how much a blur raises M(c), and how many nats below a claim other errors shall be: the first pair for which S is short enough.
PRECISIONS = [(0.0, 34.0), (0.0, 27.0), (0.0, 20.0)]  # ends of the library's brackets are 1e-12 off, or 1e-8
PRECISIONS += [(rise, 5 - math.log(rise)) for rise in (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3)]
TERMS = 100_000  # of S at most: three seconds or so
WORK = 1e8  # outcomes times frequencies: ten seconds or so


class NotACertificate(Exception):
    """The file is no certificate that this program understands."""


class NotProved(Exception):
    """The claim may be true, but is not proved here."""


class OutOfTime(BaseException):
    """The time is up; nothing but `main` catches it."""


def ball(number: Fraction | int) -> arb:
    """Return a ball that holds a rational number."""
    return arb(fmpq(*Fraction(number).as_integer_ratio()))


def about(number: arb) -> float:
    """Return the middle of a ball, for choices on which no proof depends."""
    return float(number.mid())


def above(x: arb) -> arb:
    """Return the mass of N(0, 1) above x."""
    return (x / arb(2).sqrt()).erfc() / 2


# A law of the privacy loss L under P: transform(c, h, last) encloses M(c + ikh) for k = 0 ... last; decay(c) has pairs (m, B) with
# |M(c + iw)| <= M(c) - m + B/w for all w > 0; delta(epsilon) encloses that of a single release; no loss is above `largest`, and
# `aside` encloses P's mass of what is left out of M: infinite losses, and outcomes too rare to be listed.


class Outcomes:
    """Finitely many outcomes, each of masses (P, Q). P's mass of others may be up to `rare`."""

    def __init__(self, masses: list[tuple[arb, arb]], rare: arb | int = 0) -> None:
        self.aside = sum((p for p, q in masses if q == 0), arb(0)) + arb(0).union(arb(rare))
        self.finite = [(p, q, (p / q).log()) for p, q in masses if 0 not in (p, q)]
        self.largest = max((x.upper() for _, _, x in self.finite), default=arb("-inf"))

    def transform(self, c: arb, h: arb, last: int) -> list[acb]:
        return fourier([p * (c * x).exp() for p, _, x in self.finite], [x for _, _, x in self.finite], h, last)

    def decay(self, c: arb) -> list[tuple[arb, arb]]:
        return []

    def delta(self, epsilon: arb) -> arb:
        return sum(((p - epsilon.exp() * q).max(arb(0)) for p, q, _ in self.finite), self.aside)


class Laplace:
    """Noise e^-|x|/2 moved by d, and not: L is d with P's mass 1/2, -d with the mass e^-d/2, and has a density in between."""

    def __init__(self, d: Fraction) -> None:
        self.aside, self.d, self.largest = arb(0), ball(d), ball(d)

    def transform(self, c: arb, h: arb, last: int) -> list[acb]:
        zs = [acb(c, h * k) for k in range(last + 1)]
        return [((1 + z) * (z * self.d).exp() + z * (-(1 + z) * self.d).exp()) / (1 + 2 * z) for z in zs]

    def decay(self, c: arb) -> list[tuple[arb, arb]]:
        up, down = (c * self.d).exp(), (-(1 + c) * self.d).exp()
        return [((up - down) / (2 + 4 * c), (up + down) / 4)]

    def delta(self, epsilon: arb) -> arb:
        return (1 - ((epsilon - self.d) / 2).exp()).max(arb(0))


class SampledGaussian:
    """Noise N(0, 1) and a shift s of probability q: W(x) = 1 - q + q e^(sx - s^2/2) is the ratio to the density N(x) of the noise.

    A record removed: P, Q = N(x) W(x), N(x); u, v = 1, 0. Added: N(x), N(x) W(-x), with x turned around; 0, 1. Replaced by one that
    shifts the other way: N(x) W(x), N(x) W(-x); 1, 1. So L = u log W(x) - v log W(-x), which rises, and M(z) is the integral of
    f = N(x) W(x)^(u(1 + z)) W(-x)^(-vz).
    """

    def __init__(self, q: Fraction, s: Fraction, u: int, v: int) -> None:
        self.q, self.s, self.u, self.v = ball(q), ball(s), u, v
        self.aside, self.largest = arb(0), arb("inf")

    def log_w(self, x: arb) -> tuple[arb, arb]:
        """Return log W, and its derivative, which rises with x from 0 to s."""
        r = self.q * (self.s * (x - self.s / 2)).exp()
        return (1 - self.q + r).log(), self.s * r / (1 - self.q + r)

    def point(self, c: arb, x: arb) -> tuple[arb, arb]:
        """Return sqrt(2 pi) f and L."""
        up, down = self.log_w(x)[0] if self.u else arb(0), self.log_w(-x)[0] if self.v else arb(0)
        return ((1 + c) * up - c * down - x * x / 2).exp(), up - down

    def ends(self, c: arb) -> tuple[arb, arb, arb]:
        """Return a left and a right end, and a bound of sqrt(2 pi) f there and of its integral beyond.

        Heading "Ends". On the left W(x) <= 1 and W(-x) >= W(0). From `right` on, f/N grows by at most e^(kappa (x - right)).
        """
        still, slope = self.log_w(arb(0))
        kappa = self.u * (1 + c) * self.s + self.v * c * slope
        left = arb(-math.ceil(math.sqrt(2 * (NEED + 10 - self.v * about(c * still)))))
        right = arb(math.ceil(about(kappa) + math.sqrt(2 * (NEED + 10))))
        below = (-self.v * c * still).exp() * (3 * above(-left) + (-left * left / 2).exp())
        there = self.point(c, right)[0]
        beyond = there * ((right - kappa) ** 2 / 2).exp() * 3 * above(right - kappa)  # as 3 is above sqrt(2 pi)
        return left, right, below + beyond + there

    def transform(self, c: arb, h: arb, last: int) -> list[acb]:
        """Integrate by the trapezoidal rule, whose ends lie half a step beyond its nodes.

        Heading "The trapezoidal rule". |f(x + iy)| <= f(x) e^(gamma |y|) for |y| <= a, if s a < pi/2.
        """
        left, right, outside = self.ends(c)
        step, a, gamma = arb(0), arb(0), arb(0)
        for part in (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95):
            height = arb(part * min(math.pi / 2 / about(self.s), 12.0))
            cos = (self.s * height).cos()
            fast, slow = ((self.log_w(x)[1] / cos).min(self.s) for x in (right, -left))  # at which W(x) and W(-x) turn
            rate = height / 2 + h * last * (self.u * fast + self.v * slow) - self.v * c * cos.log() / height
            if about(longest := 2 * arb.pi() / (rate + (NEED + 4) / height)) > about(step):
                step, a, gamma = longest, height, rate
        if not step > 0 or (count := math.ceil(about((right - left) / step))) * (last + 300) > WORK:
            raise NotProved("the quadrature is too long")
        step = (right - left) / count
        ratio, outside = 2 * (gamma * a).exp() / ((2 * arb.pi() * a / step).exp() - 1), outside * (1 + 2 * a)
        if not (ratio < 1 and gamma * step < 2 * arb.pi() and self.s * a < arb.pi() / 2):
            raise NotProved("the quadrature has no error bound")
        points = [self.point(c, left + step * (j + arb(0.5))) for j in range(count)]
        weights = [f * step / (2 * arb.pi()).sqrt() for f, _ in points]
        error = arb(0, (outside + ratio * (sum(weights, arb(0)) + outside) / (1 - ratio)).abs_upper())
        return [found + acb(error, error) for found in fourier(weights, [loss for _, loss in points], h, last)]

    def decay(self, c: arb) -> list[tuple[arb, arb]]:
        """Integrate f e^(iwL) by parts, from points of a grid to its last.

        Heading "Decays". With F = f/L' each integral is at most (F(a) + F(b) + the variation of F)/w. (log f)' lies between `low` and
        `high` from a point to the next, and |L''| <= s L'.
        """
        left, right, _ = self.ends(c)
        step = (right - left) / 600
        xs = [left + step * j for j in range(601)]
        up, down = [self.log_w(x)[1] for x in xs], [self.log_w(-x)[1] for x in xs]
        f = [self.point(c, x)[0] / (2 * arb.pi()).sqrt() for x in xs]
        ratio = [y / (self.u * a + self.v * b) for y, a, b in zip(f, up, down, strict=True)]
        mass, variation, pairs = arb(0), arb(0), []
        for j in reversed(range(600)):
            low = self.u * (1 + c) * up[j] + self.v * c * down[j + 1] - xs[j + 1]
            high = self.u * (1 + c) * up[j + 1] + self.v * c * down[j] - xs[j]
            mass += f[j] * step * (step * low.min(arb(0))).exp()
            rate = self.s + (-low).max(high)
            variation += ratio[j] * ((step * rate.max(arb(0))).exp() - 1)
            if j % 6 == 0:
                pairs.append((mass, ratio[j] + ratio[-1] + variation))
        return pairs

    def delta(self, epsilon: arb) -> arb:
        """Solve L(x) = epsilon: for W(x) or 1/W(-x) at e^epsilon, or for a hyperbolic sine."""
        if self.u and self.v:
            x = (epsilon / 2 + ((self.s**2 / 2).exp() * (1 - self.q) / self.q * (epsilon / 2).sinh()).asinh()) / self.s
        else:
            sign = 1 if self.u else -1
            r = 1 + (sign * epsilon).expm1() / self.q
            if r <= 0:
                return arb(0)  # no loss of an added record is above -log(1 - q)
            x = sign * (r.log() / self.s + self.s / 2)
        p, q = self.u * self.q, self.v * self.q
        return (1 - p) * above(x) + p * above(x - self.s) - epsilon.exp() * ((1 - q) * above(x) + q * above(x + self.s))


Law = Outcomes | Laplace | SampledGaussian


def fourier(weights: list[arb], losses: list[arb], h: arb, last: int) -> list[acb]:
    """Return sum_j weights_j e^(ikh losses_j) for k = 0 ... last, as the product of two matrices."""
    if len(weights) * (last + 10) > WORK:
        raise NotProved("the sum is too long")
    width = math.isqrt(last) + 1
    fine = [[p * acb(0, h * k * x).exp() for k in range(width)] for p, x in zip(weights, losses, strict=True)]
    coarse = [[acb(0, h * k * x).exp() for x in losses] for k in range(0, last + 1, width)]
    return list((acb_mat(coarse) * acb_mat(fine)).entries()[: last + 1])


class Composition:
    """Releases of finite losses, each so many times, and Gaussian noise of mu^2; a claim about delta says how exact S must be."""

    def __init__(self, parts: list[tuple[Law, int]], mu2: arb, epsilon: arb, claimed: float) -> None:
        self.parts, self.mu2, self.epsilon, self.log_claimed = parts, mu2, epsilon, math.log(claimed)
        self.seen: dict[float, float] = {}

    def log_chernoff(self, c: arb) -> arb:
        """Return log(M(c) e^(-c epsilon))."""
        logs = (count * law.transform(c, arb(0), 0)[0].real.log() for law, count in self.parts)
        return sum(logs, self.mu2 * c * (c + 1) / 2 - c * self.epsilon)

    def at(self, c: float) -> float:
        """Return about log(M(c) e^(-c epsilon))."""
        if c not in self.seen:
            self.seen[c] = math.inf
            with suppress(NotProved):
                if (found := self.log_chernoff(arb(c))).is_finite():
                    self.seen[c] = about(found)
        return self.seen[c]

    def tilt(self) -> float:
        """Return about where at(c) - log(c (c + 1)), which is convex, is least, or a smaller c whose Chernoff bound is below the claim."""
        c = 2.0**-10
        for factor in (1.4, 1.1, 0.97):
            while self.log_claimed < (here := self.at(c)) < math.inf and c < 1e6:
                if self.at(c * factor) - here > math.log(factor * (factor * c + 1) / (c + 1)):
                    break
                c *= factor
        return c

    def line(self, steep: float, wanted: float) -> tuple[float, float, float]:
        """Return Lambda, for which what S has too much is below e^wanted, the other tilt of that bound, and c, for which it is least."""
        tilts = [steep * part for part in (0.2, 0.3, 0.4, 0.55, 0.7, 0.85, 1.0)]
        others = tilts + [steep * (1 + 2.0**k) for k in range(-8, 7)]
        found = []  # where a few rare losses are large, a c below the steepest serves; then S is small beside its terms
        for c in tilts:
            if c == steep or self.at(c) < wanted + NEED - 10:
                period, other = min(((self.at(other) - wanted) / (other - c), other) for other in others if other > c)
                found.append((max(period, -wanted / c), other, c))
        return min(found)

    def too_much(self, c: arb, other: arb, period: arb) -> arb:
        """Bound what S has too much, from one side and from the other."""
        far = self.log_chernoff(other).exp() / (((other - c) * period).exp() - 1)
        return 1 / ((c * period).exp() - 1) + far

    def bracket(self) -> tuple[arb, arb]:
        """Enclose delta, with the least blur for which S is short."""
        steep = self.tilt()
        c = arb(steep)
        bound = (self.log_chernoff(c) + c * c.log() - (c + 1) * (c + 1).log()).exp()  # heading "Chernoff's bound"
        if bound < arb(self.log_claimed).exp():
            return arb(0), bound
        for rise, small in PRECISIONS:
            wanted = self.log_claimed - small
            period, other, tilt = self.line(steep, wanted)
            if not math.isfinite(period):
                raise NotProved("the quadrature is too long")
            with suppress(NotProved):
                lower, upper = self.sum(arb(tilt), 2 * arb.pi() / arb(period), 2 * arb(rise) / (c * (c + 1)), wanted)
                return lower - self.too_much(arb(tilt), arb(other), arb(period)), upper
        raise NotProved("the sum is too long")

    def sum(self, c: arb, h: arb, blur: arb, wanted: float) -> tuple[arb, arb]:
        """Return S of either blurred function, less and more what may lie beyond its last term, about e^wanted."""
        scale = self.log_chernoff(c)
        decays = [(count, law.transform(c, arb(0), 0)[0].real, law.decay(c)) for law, count in self.parts]

        def log_tail(w: arb) -> arb:
            """Bound the terms beyond w, heading "The terms beyond"."""
            bound = scale - self.mu2 * w * w / 2 - (arb.pi() * w).log()
            bound += blur * (c * c - w * w) / 2 + (1 + (blur * (c + arb(0.5))).exp()).log()
            for count, m, pairs in decays:
                factor = min(((m - share + b / w) / m for share, b in pairs), key=about, default=arb(1))
                bound += count * factor.log() if factor < 1 else 0
            return bound

        low, high = 1e-6, 1e15
        while high > 1.02 * low:
            w = math.sqrt(low * high)
            low, high = (low, w) if about(log_tail(arb(w))) < wanted else (w, high)
        last = math.ceil(high / about(h)) + 1
        if last > TERMS:
            raise NotProved("the sum is too long")
        product = [acb(1)] * (last + 1)
        for law, count in self.parts:
            found = law.transform(c, h, last)
            product = [x * (y / found[0].real) ** count for x, y in zip(product, found, strict=True)]
        half, tiny, raised, less, more = self.mu2 / 2, blur / 2, (blur / 2).exp(), arb(0), arb(0)
        for k, factor in enumerate(product):  # of the blurred test and the tiny release, heading "Blur"
            z = acb(c, h * k)
            turn = (tiny * z).exp()
            noise = (half * (z * (z + 1)) + tiny * (z * z) - acb(0, h * k) * self.epsilon).exp()
            term = factor * noise * (2 if k else 1) / (z * (z + 1))
            less += (term * (z + 1 - raised * turn * turn * z)).real
            more += (term * turn).real
        unit, tail = (scale - half * c * (c + 1)).exp() * h / (2 * arb.pi()), log_tail(h * last).exp()
        return unit * less - tail, unit * more + tail


def enclose(parts: list[tuple[Law, int]], mu2: arb, epsilon: arb, delta: float) -> tuple[arb, arb]:
    """Enclose delta in one direction; the claim says about how small it is."""
    if not parts:
        mu = mu2.sqrt()
        value = arb(0) if mu2 == 0 else above(epsilon / mu - mu / 2) - epsilon.exp() * above(epsilon / mu + mu / 2)
        return value, value
    if mu2 == 0 and [count for _, count in parts] == [1]:
        return (parts[0][0].delta(epsilon),) * 2
    aside = 1 - math.prod(((1 - law.aside) ** count for law, count in parts), start=arb(1))
    largest = sum((count * law.largest for law, count in parts), arb(0))
    if (mu2 == 0 and largest <= epsilon) or any(law.largest == arb("-inf") for law, _ in parts):
        return aside, aside  # the rest of P loses no more than epsilon, or is nothing
    lower, upper = Composition(parts, mu2, epsilon, max(delta - about(aside), 1e-6 * delta)).bracket()
    return aside + lower, aside + upper


class Fields:
    """An object of the certificate, and where it stands."""

    def __init__(self, data: Any, path: str) -> None:
        if not isinstance(data, dict):
            raise NotACertificate(f"{path} must be an object")
        self.data, self.path = dict(data), path

    def get(self, key: str) -> Any:
        """Take a field out."""
        return self.data.pop(key, None)

    def done(self) -> None:
        """Refuse fields that were not read: nobody shall take them for part of what is proved."""
        if self.data:
            raise NotACertificate(f"{self.path} has a field that is not known: {min(self.data)[:60]!a}")

    def mechanism(self) -> tuple[Fields, str]:
        """Take a mechanism out, and its name."""
        inner = Fields(self.get("mechanism"), self.path + ".mechanism")
        if not isinstance(name := inner.get("name"), str):
            raise NotACertificate(f"{inner.path} must be a mechanism with a name")
        return inner, ascii(name[:60])[1:-1]

    def number(self, key: str, low: float, high: float) -> Fraction:
        """Take the number in a decimal or hexadecimal string, such as "1e-5" or "0x1.8p+0", out, exactly."""
        value, name = self.get(key), f"{self.path}.{key}"
        text = value if isinstance(value, str) and len(value) <= 400 else ""
        if not re.fullmatch(NUMBER, text, re.ASCII):
            raise NotACertificate(f"{name} must be a number in a string, got {text[:40] or type(value).__name__!r}")
        number = Fraction(float.fromhex(text) if "x" in text else text)
        if not Fraction(repr(low)) <= number <= Fraction(repr(high)):
            raise NotACertificate(f"{name} must be in [{low:g}, {high:g}], got {text[:40]}")
        return number

    def whole(self, key: str, high: float) -> int:
        """Take a number from 1 on without a fraction out."""
        if (value := self.number(key, 1, high)).denominator != 1:
            raise NotACertificate(f"{self.path}.{key} must be a whole number")
        return int(value)

    def table(self, **highest: float) -> list[list[Fraction]]:
        """Take lists of one length out, as the rows of a table whose numbers are from 0 to the highest of their column."""
        lists = [self.get(key) for key in highest]
        if not all(isinstance(one, list) and 1 <= len(one) == len(lists[0]) <= 100_000 for one in lists):
            raise NotACertificate(f"{self.path}: {', '.join(highest)} must be lists of one length, from 1 to 100000")
        rows = (Fields(dict(zip(highest, row, strict=True)), self.path) for row in zip(*lists, strict=True))
        return [[row.number(key, 0, high) for key, high in highest.items()] for row in rows]


@dataclass
class Release:
    """What a mechanism releases: Gaussian noise of mu^2, or laws for a record removed and added, one if they are equal."""

    laws: list[Law]
    mu2: arb | int = 0
    attained: bool = True


def both(masses: list[tuple[arb, arb]], rare: arb | int = 0) -> list[Law]:
    """Return the laws of both directions."""
    return [Outcomes(masses, rare), Outcomes([(q, p) for p, q in masses], rare)]


def integers(moved: list[arb], still: list[arb], q: Fraction, rare: arb | int = 0) -> Release:
    """Return the laws of noise on integers, moved with probability q: masses, but for those that are `rare`."""
    masses = [(ball(1 - q) * x + ball(q) * y, x) for x, y in zip(still, moved, strict=True)]
    return Release(both(masses, rare)[: 1 + (q < 1)])


def sampled_gaussian(q: Fraction, s: Fraction, *, replaced: bool) -> Release:
    """Return the laws of Gaussian noise of variance 1, moved by s with probability q."""
    if q == 1:
        return Release([], ball((1 + replaced) * s) ** 2)
    return Release([SampledGaussian(q, s, u, v) for u, v in ([(1, 1)] if replaced else [(1, 0), (0, 1)])])


def discrete_gaussian(sigma: Fraction, s: int, q: Fraction, depth: float) -> Release:
    """Return the laws of the masses e^(-k^2/(2 sigma^2))/Z on integers, which beyond `wide` fall faster than a geometric series."""
    wide = math.ceil(float(sigma) * math.sqrt(2 * depth))
    if s + 2 * wide > 3 * TERMS:
        raise NotProved("the noise has too many values")
    terms = [(-(ball(k / sigma) ** 2) / 2).exp() for k in range(s + wide + 1)]
    beyond = 2 * (-(ball((wide + 1) / sigma) ** 2) / 2).exp() / (1 - (-ball((wide + 1) / sigma**2)).exp())
    z = 2 * sum(terms[1 : wide + 1], terms[0] / 2) + arb(0).union(beyond)
    moved, still = ([terms[abs(k - move)] / z for k in range(-wide, s + wide + 1)] for move in (s, 0))
    return integers(moved, still, q, beyond / z)


def noise(fields: Fields, name: str, q: Fraction, *, replaced: bool, depth: float) -> Release:
    """Return what noise releases on a Poisson sample of rate q, headings "Noise" and "Poisson samples"."""
    twice = 1 + replaced
    if name == "Gaussian":
        return sampled_gaussian(q, 1 / fields.number("noise_multiplier", 1e-3, 1e6), replaced=replaced)
    if name not in NOISE or (q != 1 and (replaced or name == "Laplace")):
        raise NotProved(f"no rule for a Poisson sample of {name}" + " where a record is replaced" * replaced)
    if name == "Laplace":
        return Release([Laplace(twice / fields.number("noise_multiplier", 1e-2, 1e6))])
    if name == "DiscreteGaussian":
        sigma, s = fields.number("noise_std", 1e-2, 1e4), fields.whole("sensitivity", 1e6)
        return discrete_gaussian(sigma, twice * s, q, depth)
    a, s = ball(fields.number("inverse_scale", 1e-6, 300)), twice * fields.whole("sensitivity", 1e4)
    edge = 1 / (1 + (-a).exp())  # the mass up to 0, where all losses are equal, as from s on
    moved = [edge * (-a * s).exp(), *((a / 2).tanh() * (-a * (s - k)).exp() for k in range(1, s)), edge]
    return integers(moved, moved[::-1], q)


def last_model(fields: Fields) -> Release:
    """Return what the last of several models releases, heading "Shifted interpolation": in each round a share of the gap is closed."""
    gap, squares = ball(fields.number("initial_gap", 0, 1e300)), arb(0)
    for rho, gamma, share in fields.table(rho=1e300, gamma=1e300, weights=1):
        apart = ball(rho) * gap + ball(gamma)
        squares += (ball(share) * apart) ** 2
        gap = (1 - ball(share)) * apart
    if share != 1:
        raise NotProved("the last weight must be 1: another leaves a gap")
    return Release([], squares / ball(fields.number("noise_std", 1e-300, 1e300)) ** 2, attained=False)


def release(fields: Fields, name: str, *, replaced: bool, depth: float) -> Release:
    """Return what a mechanism releases, heading "Mechanisms"."""
    if name in NOISE:
        found = noise(fields, name, Fraction(1), replaced=replaced, depth=depth)
    elif name == "PoissonSampled":
        q, (inner, base) = fields.number("sampling_rate", 0, 1), fields.mechanism()
        found = noise(inner, base, q or Fraction(1), replaced=replaced, depth=depth)
        inner.done()
        found = found if q else Release([])
    elif name == "FixedSizeSampled" and not replaced:
        records, (inner, base) = fields.whole("num_records", 1e15), fields.mechanism()
        q = Fraction(fields.whole("batch_size", records), records)
        if base != "Gaussian" or fields.get("replacement") is not False:
            raise NotProved("no rule for FixedSizeSampled but of Gaussian noise, without replacement")
        found = sampled_gaussian(q, 2 / inner.number("noise_multiplier", 1e-2, 1e6), replaced=False)
        found.attained = False
        inner.done()
    elif name == "RandomizedResponse" and replaced:
        flip, k = fields.number("noise_probability", 0, 1), fields.whole("num_buckets", 1e9)
        true, other, rest = ball(1 - flip + flip / k), ball(flip / k), ball(flip * max(k - 2, 0) / k)
        found = Release([Outcomes([(true, other), (other, true), (rest, rest)])] if k > 1 else [])
    elif name == "Discrete":
        shares = fields.table(p=1, q=1)
        if not sum(p for p, _ in shares) == sum(q for _, q in shares) == 1:
            raise NotACertificate(f"{fields.path}.p and .q must each sum to exactly 1")
        found = Release(both([(ball(p), ball(q)) for p, q in shares]))
    elif name == "ApproximateDP":
        odds, delta = (top := ball(fields.number("epsilon", 0, 600))).exp(), ball(fields.number("delta", 0, 1))
        more, less = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
        outcomes = Outcomes([(delta, arb(0)), (more, less), (less, more)])
        outcomes.largest = top if outcomes.finite else arb("-inf")
        found = Release([outcomes], attained=False)
    elif name == "ShiftedInterpolation":
        found = last_model(fields)
    elif name == "GaussianDP":
        found = Release([], ball(fields.number("mu", 0, 1e6)) ** 2, attained=False)
    else:
        raise NotProved(f"no rule for {name} where a record is {'replaced' if replaced else 'added or removed'}")
    fields.done()
    return found


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON whose fields are named once."""
    if len(dict(pairs)) < len(pairs):
        raise NotACertificate("a field is given twice")
    return dict(pairs)


class Claim:
    """delta(epsilon) of the releases of a certificate is at most, or at least, delta; `text` says so with its digits."""

    def __init__(self, certificate: str) -> None:
        try:
            top = Fields(json.loads(certificate, object_pairs_hook=without_duplicates), "the certificate")
        except (ValueError, RecursionError):
            raise NotACertificate("this is no JSON") from None
        if top.get("format") != FORMAT:
            raise NotACertificate(f"the format must be {FORMAT!r}")
        if (adjacency := top.get("adjacency")) not in ("add_or_remove", "replace"):
            raise NotACertificate("adjacency must be 'add_or_remove' or 'replace'")
        claim, ledger = Fields(top.get("claim"), "claim"), top.get("ledger")
        epsilon, at, delta = map(claim.data.get, ("epsilon", "delta_is", "delta"))
        self.text = f"delta({epsilon}) is {at} {delta}"
        if claim.get("delta_is") not in ("at most", "at least"):
            raise NotACertificate("claim.delta_is must be 'at most' or 'at least'")
        self.at, self.least, self.epsilon = at, at == "at least", claim.number("epsilon", 0, 1e5)
        self.delta = claim.number("delta", 0, 1)
        if not isinstance(ledger, list) or not 1 <= len(ledger) <= 100:
            raise NotACertificate("ledger must be a list of 1 to 100 mechanisms with counts")
        depth = 70 - math.log(max(float(self.delta), 1e-300))  # nats below which masses do not count
        self.releases = []
        for i, entry in enumerate(ledger):
            fields = Fields(entry, f"ledger[{i}]")
            found = release(*fields.mechanism(), replaced=adjacency == "replace", depth=depth)
            self.releases.append((found, fields.whole("count", 1e9)))
            fields.done()
        claim.done()
        top.get("written_by")
        top.done()

    def prove(self) -> None:
        """Raise NotProved if this does not prove it: in all directions that it is at most, in one that it is at least delta."""
        if self.least and not all(release.attained for release, _ in self.releases):
            raise NotProved("what only dominates a mechanism says nothing of how much is lost at least")
        mu2 = arb(sum(release.mu2 * count for release, count in self.releases))
        kept, found = [(release.laws, count) for release, count in self.releases if release.laws], []

        def holds(side: int) -> bool:
            parts = [(laws[min(side, len(laws) - 1)], count) for laws, count in kept]  # one law is that of both
            lower, upper = enclose(parts, mu2, ball(self.epsilon), max(float(self.delta), 1e-300))
            found.append(about(lower if self.least else upper))
            return bool(lower >= ball(self.delta) if self.least else upper <= ball(self.delta))

        if not (any if self.least else all)(map(holds, range(max([len(laws) for laws, _ in kept], default=1)))):
            raise NotProved(f"this proof says {self.at} about {max(found):.8g}")


def main(arguments: list[str] | None = None) -> int:
    """Check a certificate: 0 if it is proved, 1 if it is not, 2 if it is no certificate."""
    parser = argparse.ArgumentParser(prog="hockeystick-check", description="Prove a claim of differential privacy.")
    parser.add_argument("file", type=Path, help="a certificate, in JSON")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS", help="give up after so long (600)")
    options = parser.parse_args(arguments)
    if not 0.001 <= options.limit <= 1e6:
        parser.error("--limit must be from 0.001 to 1e6 seconds")
    ctx.prec, start = BITS, time.monotonic()

    def tick(*_: object) -> None:
        past = time.monotonic() - start
        if past >= options.limit:
            signal.setitimer(signal.ITIMER_REAL, 0.2)  # where it rings Python may drop the exception, as in a finaliser
            raise OutOfTime(f"it takes more than {options.limit:g} seconds")
        signal.setitimer(signal.ITIMER_REAL, min(options.limit - past, 1.0))  # not by itself: it would ring once more
        if past > 3 and sys.stderr.isatty():
            print(f"\r{past:.0f} of at most {options.limit:g} seconds\r", end="", file=sys.stderr, flush=True)

    try:
        if hasattr(signal, "SIGALRM"):  # not on Windows
            signal.signal(signal.SIGALRM, tick)
            signal.setitimer(signal.ITIMER_REAL, min(options.limit, 1.0))
        claim = Claim(options.file.read_text(encoding="utf-8"))
        claim.prove()
    except (OSError, UnicodeDecodeError, NotACertificate) as error:
        print(f"not a certificate: {error}", file=sys.stderr)
        return 2
    except (NotProved, OutOfTime, ArithmeticError, ValueError) as error:  # or a float overflows, or a search has no end
        print(f"not proved: {error}")
        return 1
    finally:
        if hasattr(signal, "SIGALRM"):
            signal.setitimer(signal.ITIMER_REAL, 0)
    print(f"proved: {claim.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
