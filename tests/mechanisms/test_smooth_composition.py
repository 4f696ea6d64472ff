"""Samples of compositions with a Gaussian part: certified brackets against integrals over the outcomes of all parts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
import slow_values
from enumeration import bracket, encloses

# Gauss-Legendre on [-1, 1], for the losses of Laplace noise between its atoms
NODES, WEIGHTS = np.polynomial.legendre.leggauss(10)


def laplace_outcomes(scale):
    """Return the losses of Laplace noise and their masses without the record: two atoms, and nodes in between."""
    r = 1.0 / scale
    losses = np.concatenate([[-r, r], r * NODES])
    return losses, np.concatenate([[0.5, 0.5 * math.exp(-r)], 0.25 * r * WEIGHTS * np.exp(-0.5 * (r + r * NODES))])


def outcomes(sigma, scales):
    """Return base losses and masses of Gaussian noise and of Laplace noise of each scale, on one record."""
    x = np.linspace(-12.0, 12.0, 73)
    losses, masses = x / sigma - 0.5 / sigma**2, np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    for scale in scales:
        more, weights = laplace_outcomes(scale)
        losses, masses = np.add.outer(losses, more).ravel(), np.multiply.outer(masses, weights).ravel()
    return losses, masses / math.fsum(masses.tolist())


class Reference:
    """The transform of a sample's loss on one line, and with it delta by an inversion integral, in plain NumPy."""

    def __init__(self, sigma, scales, rate, direction, tilt):
        losses, masses = outcomes(sigma, scales)
        mixed = np.log1p(rate * np.expm1(losses))
        self.tilt, self.loss = tilt, mixed if direction == "remove" else -mixed
        self.p = masses * np.exp(mixed) if direction == "remove" else masses
        tilted = self.p * np.exp(tilt * self.loss)
        self.log_moment = math.log(tilted.sum())
        self.weights = tilted / tilted.sum()
        self.mean = float(self.weights @ self.loss)
        self.deviation = math.sqrt(self.weights @ (self.loss - self.mean) ** 2)

    def delta(self, steps, deviations):
        """Return (eps, delta) at a distance from the tilted mean; None where a few hundred nodes are not enough."""
        spread = self.deviation * math.sqrt(steps)
        eps = steps * self.mean + deviations * spread
        if eps <= 0.0:
            return None
        h = 2 * math.pi / (60.0 * spread + 40.0 / self.tilt)
        omega, total, phi = 0.0, 0.5 / (self.tilt * (self.tilt + 1.0)), 1.0
        for k in range(1, 400):
            omega = k * h
            phi = complex(self.weights @ np.exp(1j * omega * (self.loss - self.mean)))
            s = complex(self.tilt, omega)
            total += (phi**steps * np.exp(-1j * omega * (eps - steps * self.mean)) / (s * (s + 1.0))).real
            if abs(phi) ** steps < 1e-13:
                break
        else:
            return None
        return eps, h / math.pi * total * math.exp(steps * self.log_moment - self.tilt * eps)


@pytest.mark.share(6)
@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@pytest.mark.parametrize(
    ("sigma", "scales", "rate", "direction"),
    [
        (*known, direction)
        for known in ((1.0, [3.0], 0.05), (2.0, [4.0, 4.0], 0.1), (5.0, [10.0, 7.0], 0.02))
        for direction in ("remove", "add")
    ],
)
def test_brackets_hold_an_integral_over_the_outcomes(sigma, scales, rate, direction):
    """Delta of many steps is enclosed, and the bracket is narrow: against an inversion integral that shares no code."""
    compared = 0
    for steps in (300, 3000):
        scale = rate * math.sqrt(math.expm1(1.0 / sigma**2) * steps)
        for strength in (1.0, 2.5):
            found = Reference(sigma, scales, rate, direction, strength / scale).delta(steps, 0.3)
            if found is None or found[1] < 1e-100:
                continue
            eps, truth = found
            parts = [(hs.Gaussian(sigma), 1)] + [(hs.Laplace(scale_of), 1) for scale_of in scales]
            found = bracket(hs.PoissonSampled(hs.Composed(parts), rate), eps, steps)
            assert found.upper >= truth * (1 - 1e-9)
            if direction == "remove":  # the larger one
                encloses(found, truth, slack=1e-9, wide=1e-7)
            compared += 1
    assert compared >= 2


@pytest.mark.parametrize(("sigma", "scale", "rate"), slow_values.GAUSSIANS_BESIDE_LAPLACE)
def test_one_step_by_quadrature(sigma, scale, rate):
    """One step has an exact formula: delta against mpmath's integral of the Gaussian's divergence over the Laplace losses."""
    step = hs.PoissonSampled(hs.Composed([(hs.Gaussian(sigma), 1), (hs.Laplace(scale), 1)]), rate)
    for eps in slow_values.EPS_BESIDE_LAPLACE:
        truth = slow_values.committed("gaussian_beside_laplace_delta", sigma, scale, rate, eps)
        found = bracket(step, eps)
        encloses(found, truth)
        assert found.upper - found.lower <= 1e-9 * found.upper + 1e-300


def test_tails_at_any_depth():
    """Certified ends are ordered and the bracket stays narrow down to 1e-290, where a grid would end."""
    step = hs.PoissonSampled(hs.Composed([(hs.Gaussian(1.5), 1), (hs.Laplace(4.0), 2)]), 0.05)
    once = hs.Accountant().compose(step)
    deltas = [once.delta_bracket(eps) for eps in (1.0, 5.0, 10.0, 15.0, 20.0)]
    assert all(0.0 < one.lower <= one.upper <= one.lower * (1 + 1e-9) for one in deltas)
    assert all(later.upper < before.lower for before, later in itertools.pairwise(deltas))


@pytest.mark.parametrize("share", [True, False])
def test_the_gap_of_grids_is_no_gap_of_pairs(share):
    """What lies between the tables of a composition is numerical: "pairs" is for gaps that no computing mends."""
    parts = [(hs.Laplace(4.0), 2), (hs.Laplace(7.0), 1)] + ([(hs.Gaussian(3.0), 1)] if share else [])
    accountant = hs.Accountant().compose(hs.PoissonSampled(hs.Composed(parts), 0.05), 200)
    assert "pairs" not in accountant.explain(delta=1e-6).shares


@pytest.mark.parametrize("eps", [0.1, 1.0, 8.0])
def test_tails_that_no_density_reaches(eps):
    """Far beyond what a billion rare samples lose, delta is below the doubles: an answer, not an error."""
    step = hs.PoissonSampled(hs.Composed([(hs.Gaussian(10.0), 1), (hs.Laplace(100.0), 1)]), 1e-9)
    found = bracket(step, eps, 10**9)
    assert 0.0 <= found.lower <= found.upper <= 1e-300


@pytest.mark.parametrize(("epsilon", "count"), [(0.15, 1), (0.15, 2), (1.0, 3)])
def test_coins_beside_gaussian_noise(epsilon, count):
    """A sample of Gaussian noise and pure mechanisms, whose pair is discrete, against its closed form."""
    sigma, rate = 3.0, 0.1
    parts = [(hs.ApproximateDP(epsilon, 0.0), count), (hs.Gaussian(sigma), 1)]
    ledger = hs.Accountant().compose(hs.PoissonSampled(hs.Composed(parts), rate))
    said = math.exp(epsilon) / (1.0 + math.exp(epsilon))  # that a coin tells the truth
    for eps in (0.0, 0.02, 0.05, 0.1):
        remove = add = 0.0
        for true in range(count + 1):
            base = math.comb(count, true) * (1 - said) ** true * said ** (count - true)
            loss = epsilon * (2 * true - count)
            # ratio of the laws at x: 1 - rate + rate e^(loss + x/sigma - 1/(2 sigma^2)); it grows with x
            for gamma, is_remove in ((math.exp(eps), True), (math.exp(-eps), False)):
                share = (gamma - 1.0 + rate) / rate
                x = sigma * (math.log(share) - loss) + 0.5 / sigma if share > 0.0 else -math.inf
                below, tilted = (0.5 * math.erfc(-t / math.sqrt(2.0)) for t in (x, x - 1.0 / sigma))
                if is_remove:
                    remove += base * ((1 - rate - gamma) * (1 - below) + rate * math.exp(loss) * (1 - tilted))
                else:
                    add += base * (below - ((1 - rate) * below + rate * math.exp(loss) * tilted) / gamma)
        found = ledger.delta_bracket(eps)
        encloses(found, max(remove, add), off=1e-14)
        assert found.upper - found.lower <= 1e-6
