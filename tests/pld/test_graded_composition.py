"""Compositions of rare large losses, against sums over pairs of outcomes that share no code with the library."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import erf, ndtr

import hockeystick as hs

Array = np.ndarray
GRADED = "graded grid of losses"


class Pair:
    """A pair of normal mixtures whose loss rises in x, and, for a batch of fixed size, its mirror image."""

    def __init__(self, kind: str, shifts: list[float], weights: list[float]) -> None:
        self.kind, self.shifts, self.weights = kind, np.array(shifts), np.array(weights)

    def ratio(self, x: Array) -> Array:
        """Return the logarithm of the mixture's density over that of N(0, 1)."""
        exponents = np.log(self.weights) + np.multiply.outer(x, self.shifts) - self.shifts**2 / 2
        return np.logaddexp.reduce(exponents, axis=-1)

    def loss(self, x: Array) -> Array:
        """Return the losses."""
        return self.ratio(x) - self.ratio(-x) if self.kind == "replaced" else self.ratio(x)

    def point(self, loss: Array) -> Array:
        """Return where the losses have these values, by bisection."""
        low, high = np.full(loss.shape, -60.0), np.full(loss.shape, 400.0)
        for _ in range(70):
            middle = 0.5 * (low + high)
            above = self.loss(middle) > loss
            high, low = np.where(above, middle, high), np.where(above, low, middle)
        return high

    def delta(self, eps: Array) -> Array:
        """Return the curve of one step."""
        a = eps if self.kind == "mixture" else np.abs(eps)
        x = self.point(a)
        p = (self.weights * ndtr(self.shifts - x[..., None])).sum(-1)
        q = (self.weights * ndtr(-self.shifts - x[..., None])).sum(-1) if self.kind == "replaced" else ndtr(-x)
        above = p - np.exp(a) * q
        if self.kind == "mixture":
            return np.where(eps > math.log(self.weights[0]), above, -np.expm1(eps))
        return np.where(eps < 0.0, -np.expm1(-a) + np.exp(-a) * above, above)

    def outcomes(self, eps: float) -> tuple[Array, Array]:
        """Return losses and their masses under P: Gauss-Legendre nodes between the kinks of delta(eps - loss)."""
        fixed, largest = self.kind == "fixed", float(self.shifts.max())
        low, high = (self.shifts[1] / 2 if fixed else -13.0), largest + 11.0
        kinks = [float(self.point(np.array(eps)))] + ([float(self.point(np.array(-eps)))] if fixed else [])
        width = 0.3 / max(largest, 1.0)
        edges = np.linspace(low, high, int((high - low) / width) + 2)
        edges = np.unique(np.concatenate([edges, [kink for kink in kinks if low < kink < high]]))
        nodes, weights = np.polynomial.legendre.leggauss(10)
        half = 0.5 * np.diff(edges)[:, None]
        x, w = (edges[:-1, None] + half * (1.0 + nodes)).ravel(), (half * weights).ravel()
        normal = w * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        loss, mass = self.loss(x), normal * np.exp(self.ratio(x))
        if not fixed:
            return loss, mass
        at_zero = self.weights[0] * erf(self.shifts[1] / math.sqrt(8.0))
        return np.concatenate([loss, -loss, [0.0]]), np.concatenate([mass, normal, [at_zero]])

    def delta_of_two(self, eps: float) -> float:
        """Return delta(eps) of two steps."""
        loss, mass = self.outcomes(eps)
        return float(mass @ self.delta(eps - loss))

    def delta_of_three(self, eps: float) -> float:
        """Return delta(eps) of three steps, to a relative 1e-4."""
        loss, mass = (part[self.outcomes(eps)[1] > 1e-15] for part in self.outcomes(eps))
        return float(mass @ self.delta(eps - loss[:, None] - loss) @ mass)


def replaced(shift: float, rate: float) -> tuple[hs.mechanisms.Mechanism, Pair]:
    """Return a Poisson sample of which a record is replaced."""
    return hs.PoissonSampled(hs.Gaussian(1 / shift), rate), Pair("replaced", [0.0, shift], [1 - rate, rate])


def mixture(shift: float, rate: float) -> tuple[hs.mechanisms.Mechanism, Pair]:
    """Return a sum that moves by up to two shifts."""
    weights = [(1 - rate) ** 2, 2 * rate * (1 - rate), rate**2]
    shifts = [0.0, shift, 2 * shift]
    return hs.MixtureOfGaussians(1.0, shifts, weights), Pair("mixture", shifts, weights)


def fixed(shift: float, rate: float) -> tuple[hs.mechanisms.Mechanism, Pair]:
    """Return a batch of fixed size of which a record is replaced, of so many that its rate is exact."""
    size = 2**40
    batch = round(rate * size)
    mechanism = hs.FixedSizeSampled(hs.Gaussian(2 / shift), size, batch, replacement=False)
    return mechanism, Pair("fixed", [0.0, shift], [1 - batch / size, batch / size])


CASES = [
    (make, shift, rate, delta)
    for make in (replaced, mixture, fixed)
    for shift, rate in [(0.95, 3e-5), (1.4, 2e-4), (2.3, 1.6e-5), (0.45, 1e-3), (3.1, 5e-4)]
    for delta in (1e-11, 1e-9, 1e-7)
    if delta < rate * 1e-2
]


@pytest.mark.share(12, by_day=4)
@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@pytest.mark.parametrize(("make", "shift", "rate", "delta"), CASES)
def test_two_steps_against_sums_over_outcomes(make: Callable, shift: float, rate: float, delta: float) -> None:
    """Both ends of epsilon enclose the curve of two steps; a batch of fixed size has its pair's upper end only."""
    mechanism, pair = make(shift, rate)
    accountant = hs.Accountant("add_or_remove" if make is mixture else "replace").compose(mechanism, 2)
    found = accountant.epsilon_bracket(delta)
    assert pair.delta_of_two(found.upper) <= delta * (1 + 1e-8)
    assert make is fixed or found.lower == 0.0 or pair.delta_of_two(found.lower) >= delta * (1 - 1e-8)
    curve = accountant.delta_bracket(found.upper)
    exact = pair.delta_of_two(found.upper)
    assert exact <= curve.upper * (1 + 1e-8)
    assert make is fixed or curve.lower <= exact * (1 + 1e-8)


@pytest.mark.share(2)
@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@pytest.mark.parametrize(("make", "adjacency"), [(replaced, "replace"), (mixture, "add_or_remove")])
def test_three_steps_against_sums_over_outcomes(make: Callable, adjacency: str) -> None:
    """A square of measures, times one more."""
    mechanism, pair = make(0.95, 3e-5)
    found = hs.Accountant(adjacency).compose(mechanism, 3).delta_bracket(1e-4)
    truth = pair.delta_of_three(1e-4)
    assert found.lower <= truth * (1 + 1e-4)
    assert truth * (1 - 1e-4) <= found.upper <= 1.01 * truth


def test_rare_jumps_are_narrow() -> None:
    """Cells whose brackets were one to a hundred per cent wide; the upper end rises with the rate."""
    uppers = []
    for mechanism, steps, delta, adjacency in [
        (hs.PoissonSampled(hs.Gaussian(0.64858146), 1.73429e-05), 2, 1.17522e-07, "replace"),
        *(
            (hs.PoissonSampled(hs.Gaussian(0.75), rate), 152616, 3.9e-38, "add_or_remove")
            for rate in (1e-10, 3e-10, 9e-10)
        ),
        (hs.PoissonSampled(hs.Gaussian(0.988), 3.1e-5), 37, 6.6e-10, "replace"),
        (hs.PoissonSampled(hs.Gaussian(0.79955), 2.23e-5), 4995, 1.2e-9, "replace"),
        (mixture(1 / 0.9105, 1.56e-5)[0], 2, 4.1e-11, "add_or_remove"),
    ]:
        explained = hs.Accountant(adjacency).compose(mechanism, steps).explain(delta=delta)
        assert explained.method == GRADED or steps == 152616
        assert explained.bracket.upper - explained.bracket.lower <= 1e-3 * explained.bracket.upper
        uppers.append(explained.bracket.upper)
    assert uppers[1] < uppers[2] < uppers[3]
