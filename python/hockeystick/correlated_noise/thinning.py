"""b-min-separated batches as independent coins, at random steps that are at least b apart.

In every step that it may be in, a record throws a coin, and is in the step with probability p; after a step that it is in, it sits out b - 1 steps. With a = 1 - p,
the number of steps from one that it is in to the next has the generating function F(z) = p z^b/(1 - az).

**Theorem.** Let 0 < q <= 1, r = p(1 - q)/q, and r <= a^b (b - 1)^(b - 1)/b^b. Then D(z) = (p/q)/(1 - az + r z^b) is the generating function of a law on 0, 1, 2, ...
Let the first *candidate* be a step drawn from that law, and each next one b steps and a new draw after the one before. A record that is in each candidate with
probability q, independently, and in no other step, is in steps that have the law of b-min-separated batches.

Proof. D(1) = 1, and the coefficients of D are (p/q) h_n, where h_0 = 1, h_n = a h_(n-1) - r h_(n-b), and h_n = 0 for n < 0. Let x = a(b - 1)/b, for which
x^(b-1) (a - x) is the largest r that is allowed. By induction h_n >= x h_(n-1): this gives h_(n-b) <= x^(1-b) h_(n-1), so that
h_n >= (a - r x^(1-b)) h_(n-1) >= x h_(n-1). So no coefficient is negative. There are G = z^b D steps from one candidate to the next, and
qG + (1-q) q G^2 + ... = qG/(1 - (1-q)G) = F from one that the record is in to the next. Its first step has qD/(1 - (1-q)G) = p/(1 - az), the law of how long it waits for its coin.

With a *warm start*, the first step that the record may be in is J, which is 0 with probability 1/(1 + (b-1)p), and each of 1, ..., b - 1 with p times that. Then the
first candidate is J steps later.

The smaller q is, the more hidden is the record. For small p the least q is about e b p, and one step of e b is a candidate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import Array
from hockeystick._numeric.rounding import HANDFUL, UNIT, UP
from hockeystick._numeric.search import halve

MAX_POINTS = 2**17
MAX_COUNTS = 48


def first_steps(rate: float, separation: int) -> Array:
    """Return the law of J, the first step that a record may be in after a warm start."""
    weights = np.full(separation, rate)
    weights[0] = 1.0
    law: Array = weights / weights.sum()
    return law


class Thinning(NamedTuple):
    """b-min-separated batches over some steps as coins at candidates.

    Attributes
    ----------
    rate : float
        p, in (0, 1].
    separation : int
        b, at least 1.
    num_steps : int
        How many steps there are.
    warm_start : bool
        Whether a record may be in step J first, and not in step 0.
    chance : float
        q, in (0, 1].
    """

    rate: float
    separation: int
    num_steps: int
    warm_start: bool
    chance: float

    @classmethod
    def of_batches(cls, rate: float, separation: int, num_steps: int, *, warm_start: bool) -> Thinning:
        """Return the thinning of least q, rounded up."""
        b = separation
        exponent = b * math.log1p(-rate) if rate < 1.0 else -math.inf
        if b > 1:
            exponent += (b - 1) * math.log1p(-1.0 / b) - math.log(b)
        limit = math.exp(exponent + exponent * HANDFUL)
        return cls(rate, b, num_steps, warm_start, min(1.0, rate / (rate + limit) * UP))

    def counts(self) -> Array:
        """Return increasing numbers of candidates up to the most that there can be, close together where their number is likely to lie."""
        most = -(-self.num_steps // self.separation)
        if most <= MAX_COUNTS:
            return np.arange(1.0, most + 1.0)
        mean, variance = self._gap()
        first = max(1.0, self.num_steps / mean - 4.0 * math.sqrt(self.num_steps * variance / mean**3))
        return np.unique(np.ceil(first + max(0.0, most - first) * np.linspace(0.0, 1.0, MAX_COUNTS) ** 2))

    def reached(self, count: int) -> float:
        """Return an upper bound of the probability that there are `count` candidates or more.

        So many there are if J and `count` draws of the law D add up to at most m = num_steps - 1 - (count - 1) b: this is the coefficient of z^m in
        A(z) = W(z) D(z)^count/(1 - z), where W belongs to J. Let y run over M points on the circle of radius x < 1, equally far apart from x on. The mean of
        A(y) (x/y)^m is the sum of the coefficients of z^m, z^(m+M), ..., times powers of x; none is negative, so that the mean over x^m bounds the first, and x^M tells how closely.
        """
        last = self.num_steps - 1 - (count - 1) * self.separation
        if last < 0:
            return 0.0
        points = min(MAX_POINTS, 4 << self.num_steps.bit_length())
        x = min(self._radius(count, last), math.exp(-min(24.0 / points, 8.0 / self.num_steps)))
        turns = np.arange(points // 2 + 1)  # the other half is conjugate
        y = x * np.exp(2j * np.pi / points * turns)
        logs = -count * np.log(self._denominator(y) * (self.chance / self.rate)) - np.log(1.0 - y)
        scale = float(logs[0].real)
        values = np.exp(logs - scale - 2j * np.pi / points * (turns * (last % points) % points))
        weights = np.where((turns == 0) | (2 * turns == points), 1.0, 2.0) / points
        size = float((np.abs(values) * weights).sum()) * float(self._start(np.array([x + 0j]))[0].real)
        mean = float(((values * self._start(y)).real * weights).sum())
        # 1 - y, 1 - ay + r y^b and W are off by units of 1, W(x) and 1 - x; the first two are nowhere smaller than at x.
        smallest = min(1.0 - x, float(self._denominator(np.array([x + 0j]))[0].real))
        power = last * math.log(x)
        mean += size * (64.0 * (count + 2) / smallest + 16.0 * (abs(scale) + abs(power))) * UNIT
        return min(1.0, math.exp(min(700.0, scale - power + math.log(mean))) * UP)

    def _denominator(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return 1 - az + r z^b."""
        ratio = self.rate * (1.0 - self.chance) / self.chance
        return 1.0 - (1.0 - self.rate) * z + ratio * z**self.separation

    def _start(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return W(z)."""
        if not self.warm_start:
            return np.ones_like(z)
        others = self.separation - 1
        return (1.0 + self.rate * z * (1.0 - z**others) / (1.0 - z)) / (1.0 + others * self.rate)

    def _radius(self, count: int, last: int) -> float:
        """Return about the x at which D(x)^count/((1 - x) x^last) is least."""
        b, ratio = self.separation, self.rate * (1.0 - self.chance) / self.chance

        def falls(x: float) -> bool:
            slope = ((1.0 - self.rate) - ratio * b * x ** (b - 1)) / (1.0 - (1.0 - self.rate) * x + ratio * x**b)
            return count * slope + 1.0 / (1.0 - x) < last / x

        return max(1e-3, halve(falls, 0.0, 1.0, tolerance=1e-9)[0])

    def _gap(self) -> tuple[float, float]:
        """Return mean and variance of the number of steps from one candidate to the next."""
        b, ratio = self.separation, self.rate * (1.0 - self.chance) / self.chance
        slope = ((1.0 - self.rate) - ratio * b) * self.chance / self.rate
        bend = 2.0 * slope**2 - ratio * b * (b - 1.0) * self.chance / self.rate
        return b + slope, max(0.0, bend + slope - slope**2)
