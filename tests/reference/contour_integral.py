"""delta(eps) of a composition from its moments, in ball arithmetic to as many digits as asked (needs python-flint).

With M_j(s) = E_P[e^{s L_j}] of step j, L_j = log dP_j/dQ_j, and I(c) the integral of prod_j M_j(s) e^{-s eps} / (s (s+1)) over
Re s = c, divided by 2 pi i: delta(eps) = I(c) for c > 0, and delta(eps) - 1 = I(c) for -1 < c < 0. Both integrals, over s and
over the outcome x of a sampled Gaussian, are trapezoidal sums of analytic functions and converge exponentially; the balls
cover rounding, a second evaluation with another tilt c and finer steps covers the rest. Nothing is shared with the compiled
code, which has no such digits to lose.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from flint import acb, arb, ctx

AGREEMENT = 1e-18  # of two evaluations, relative in delta or 1 - delta
MOST_NODES = 800  # with the widest step, which is halved at most so often
HALVINGS = 7
MOST_TERMS = 5_000_000  # of all sums over x: some ten seconds
MOST_POINTS = 100  # a standard deviation of x


class Gaussian:
    """N(1, sigma^2) against N(0, sigma^2): L is normal with mean 1/(2 sigma^2) and variance 1/sigma^2."""

    def __init__(self, sigma: float) -> None:
        self.sigma = sigma

    def moment(self, s: acb) -> acb:
        """Return e^{s (s+1) / (2 sigma^2)}."""
        return (s * (s + 1) / (2 * arb(self.sigma) ** 2)).exp()

    def moments(self, c: arb) -> tuple[arb, arb, arb]:
        """Differentiate it."""
        rate = 1 / arb(self.sigma) ** 2
        m, mean = (c * (c + 1) * rate / 2).exp(), (c + arb(1) / 2) * rate
        return m, m * mean, m * (mean * mean + rate)


class Laplace:
    """Laplace noise of scale b on a sensitivity of 1: |L| <= 1/b, with atoms at both ends."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def moment(self, s: acb) -> acb:
        """Integrate over the three pieces x < 0, 0 < x < 1, x > 1 (s = -1/2 is a removable singularity)."""
        b = arb(self.scale)
        return ((s + 1) * (s / b).exp() + s * (-(s + 1) / b).exp()) / (2 * s + 1)

    def moments(self, c: arb) -> tuple[arb, arb, arb]:
        """Differentiate numerically: they only choose the tilt and the step."""
        h = arb(2) ** -40
        low, mid, high = (self.moment(acb(c + k * h)).real for k in (-1, 0, 1))
        return mid, (high - low) / (2 * h), (high - 2 * mid + low) / (h * h)


class SampledGaussian:
    """P = (1-q) N(0, sigma^2) + q N(1, sigma^2) against Q = N(0, sigma^2) if `remove`, else Q against P.

    dP/dQ = 1 + z with z = q (e^{(2x-1)/(2 sigma^2)} - 1), so M(s) = E_Q[(1+z)^{s+1}] and E_Q[(1+z)^{-s}]. The sum over
    x = h k errs by about e^{-2 pi a/h + a^2/(2 sigma^2) + |Im s| a/sigma^2} for any a < pi sigma^2, where log(1+z) stays
    analytic; h is chosen for |Im s| up to `frequency`.
    """

    def __init__(self, sigma: float, q: float, *, remove: bool, frequency: float = 0.0) -> None:
        self.sigma, self.q, self.remove = sigma, q, remove
        digits = math.log(10) * (ctx.dps - 15)
        strip = min(0.9 * math.pi * sigma**2, sigma * math.sqrt(2 * digits))
        step = 2 * math.pi * strip / (digits + strip**2 / (2 * sigma**2) + frequency * strip / sigma**2)
        self.step = max(step, sigma / MOST_POINTS)
        self.reach = sigma * math.sqrt(2 * math.log(10) * ctx.dps)
        self.points: dict[int, tuple[arb, arb]] = {}
        self.terms = 0

    def refined(self, frequency: float) -> "SampledGaussian":
        """Return the same step for another frequency, at the working precision of now."""
        return SampledGaussian(self.sigma, self.q, remove=self.remove, frequency=frequency)

    def _point(self, k: int) -> tuple[arb, arb]:
        """Return log(1 + z) and the weight of x = h k."""
        if k not in self.points:
            x, variance = arb(self.step) * k, arb(self.sigma) ** 2
            z = arb(self.q) * ((2 * x - 1) / (2 * variance)).expm1()
            weight = arb(self.step) * (-x * x / (2 * variance)).exp() / (2 * arb.pi() * variance).sqrt()
            self.points[k] = z.log1p(), weight
        return self.points[k]

    def _near(self, exponent: arb) -> list[tuple[arb, arb]]:
        """Return the points that matter to E_Q[(1+z)^exponent]: from the left tail to the one tilted by it."""
        last = max(0.0, float(exponent.mid())) + self.reach
        return [self._point(k) for k in range(-math.ceil(self.reach / self.step), math.ceil(last / self.step) + 1)]

    def moment(self, s: acb) -> acb:
        """Sum over x."""
        exponent = s + 1 if self.remove else -s
        total, points = acb(0), self._near(exponent.real)
        self.terms += len(points)
        if self.terms > MOST_TERMS:
            raise ArithmeticError("too many terms")
        for log_ratio, weight in points:
            total += (exponent * log_ratio).exp() * weight
        return total

    def moments(self, c: arb) -> tuple[arb, arb, arb]:
        """Sum over x with powers of the loss."""
        exponent, sign = (c + 1, 1) if self.remove else (-c, -1)
        m = [arb(0), arb(0), arb(0)]
        for log_ratio, weight in self._near(exponent):
            term = (exponent * log_ratio).exp() * weight
            for k in range(3):
                m[k] += term * (sign * log_ratio) ** k
        return m[0], m[1], m[2]


Ledger = Sequence[tuple[Gaussian | Laplace | SampledGaussian, int]]


class Saddle(NamedTuple):
    """The logarithm of the integrand at a real c for the eps that makes c its stationary point, and its curvature."""

    eps: float
    height: float
    curvature: float

    @property
    def log_value(self) -> float:
        """Laplace's approximation of log delta (c > 0) or log(1 - delta) (c < 0), to a few percent."""
        if self.curvature <= 0:
            raise ArithmeticError("no digits are left of the curvature")
        return self.height - math.log(2 * math.pi * self.curvature) / 2


def saddle(ledger: Ledger, tilt: float) -> Saddle:
    """Return the eps to which a tilt belongs."""
    c = arb(tilt)
    slope, curvature, height = -1 / c - 1 / (c + 1), c**-2 + (c + 1) ** -2, -abs(c * (c + 1)).log()
    for mechanism, count in ledger:
        m0, m1, m2 = mechanism.moments(c)
        slope += count * m1 / m0
        curvature += count * (m2 / m0 - (m1 / m0) ** 2)
        height += count * m0.log()
    return Saddle(float(slope), float(height - c * slope), float(curvature))


def bisect(increasing: Callable[[float], bool], *, upper: bool) -> float:
    """Return the tilt at which a monotone predicate turns true, in (0, inf) if `upper`, else in (-1, 0)."""
    low, high = (-45.0, 3.0) if upper else (-40.0, 40.0)
    tilt = math.exp if upper else lambda v: -1 / (1 + math.exp(v))
    while upper and not increasing(tilt(high)):
        high += 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if increasing(tilt(middle)) else (middle, high)
    return tilt(high)


def line_integral(ledger: Ledger, eps: float, tilt: float, step: float) -> arb:
    """Return I(tilt), halving the step until it no longer matters."""

    def height(k: int) -> arb:
        s = acb(arb(tilt), h * k)
        value = (-s * arb(eps)).exp() / (s * (s + 1))
        for mechanism, count in ledger:
            value *= mechanism.moment(s) ** count
        return value.real

    def ray(first: int, stride: int) -> arb:
        partial, k, small = arb(0), first, 0
        while small < 12:
            term = height(k)
            partial, k = partial + term, k + stride
            if k * h > MOST_NODES * arb(step) or not term.is_finite():
                raise ArithmeticError(
                    f"the integrand decays too slowly: {float(term.mid()):.1e} of {float(total.mid()):.1e}"
                )
            small = small + 1 if abs(term.mid()) < abs((total + partial).mid()) * 1e-24 else 0
        return partial

    h = arb(step)
    total = height(0) / 2
    total += ray(1, 1)
    agreeing = 0  # halving shows only odd multiples of the aliasing distance; these may fall between two large losses
    for _ in range(HALVINGS):
        before, h = total * h, h / 2
        total += ray(1, 2)
        agreeing = agreeing + 1 if abs(((before / (total * h)) - 1).mid()) < AGREEMENT / 100 else 0
        if agreeing == 2:
            return total * h / arb.pi()
    raise ArithmeticError("the step had to be halved too often")


def refined(ledger: Ledger, frequency: float) -> Ledger:
    """Return the ledger with its sums over x fine enough for the frequency."""
    return [(m.refined(frequency) if isinstance(m, SampledGaussian) else m, count) for m, count in ledger]


def evaluate(ledger: Ledger, eps: float, *, upper: bool, digits: int = 60) -> arb:
    """Return delta(eps) if `upper`, else 1 - delta(eps), confirmed by a second tilt, finer sums and more digits."""
    tilt = bisect(lambda c: saddle(ledger, c).eps >= eps, upper=upper)
    width = saddle(ledger, tilt).curvature ** -0.5
    other = tilt - width / 2  # 1/width^2 exceeds 1/tilt^2 and 1/(1 + tilt)^2: on the same side of the poles
    sign = 1 if upper else -1
    trouble = ""
    for frequency in (20 * width, 300 * width):
        try:
            ctx.dps = digits
            value = sign * line_integral(refined(ledger, frequency), eps, tilt, width)
            ctx.dps = digits + 15
            second = sign * line_integral(refined(ledger, 1.6 * frequency), eps, other, width * 0.86)
        except ArithmeticError as error:
            trouble = str(error)
            continue
        finally:
            ctx.dps = digits
        if value > 0 and abs(value / second - 1) < AGREEMENT:
            return second
        trouble = f"two evaluations differ: {value} and {second}"
    raise ArithmeticError(trouble)
