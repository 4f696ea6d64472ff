"""Equations 3 and 14: against mpmath, shifted interpolation, affine chains, and steps of quadratics."""

import itertools

import mpmath as mp
import numpy as np
import pytest

import theorems
from hockeystick import last_iterate


@pytest.mark.parametrize("lipschitz", [0.0, 1e-3, 0.5, 1 - 1e-12, 1.0, 1 + 1e-12, 1.5, 1e3])
@pytest.mark.parametrize("steps", [1, 2, 40, 10**6])
def test_rdp_encloses_the_formula(lipschitz: float, steps: int) -> None:
    """Alpha D^2/(2 sigma^2 S) to 60 digits, S as a geometric sum, is never above the result, which is within 1e-12."""
    with mp.workdps(60):
        c = mp.mpf(lipschitz)
        total = mp.mpf(steps) if c == 1 else (c**-2) * (c ** (-2 * steps) - 1) / (c**-2 - 1) if c else mp.inf
        for order, distance, noise in itertools.product((1.001, 8.0, 1e6), (0.0, 1e-9, 0.5, 1e9), (1e-3, 1.0, 70.0)):
            exact = mp.mpf(order) * mp.mpf(distance) ** 2 / (2 * mp.mpf(noise) ** 2 * total)
            computed = last_iterate.iteration_rdp(
                order, distance=distance, noise_std=noise, steps=steps, lipschitz=lipschitz
            )
            assert exact <= computed
            if exact > mp.mpf(2) ** -1022:
                # the exponent of a number like e^-700 has fewer digits after the point
                assert computed <= exact * (1 + mp.mpf(1e-12) * (1 + abs(mp.log(exact)) / 100))
            else:
                assert computed < 3e-308


def test_rdp_is_attained() -> None:
    """Affine maps x -> c x with unit noise end as normal laws c^n D apart with variance sum c^(2j), j < n: its exact divergence."""
    c, steps, distance = 0.7, 6, 1.3
    variance = sum(c ** (2 * j) for j in range(steps))
    exact = 4.0 * (c**steps * distance) ** 2 / (2 * variance)
    computed = last_iterate.iteration_rdp(4.0, distance=distance, noise_std=1.0, steps=steps, lipschitz=c)
    assert computed == pytest.approx(exact, rel=1e-12)


def test_lipschitz_constant() -> None:
    """M to 50 digits, rounded up; no step of a quadratic with curvatures in [rho, beta] moves two points further apart."""
    rng = np.random.default_rng(2)
    with mp.workdps(50):
        for _ in range(300):
            beta = 10.0 ** rng.uniform(-3, 3)
            rho = beta * rng.choice([0.0, 1e-6, rng.random(), 1.0])
            eta = 2 / (beta + rho) * rng.choice([1e-3, rng.random(), 1 - 1e-15])
            exact = theorems.contraction(eta, beta, rho)
            computed = last_iterate.pnsgd_lipschitz(learning_rate=eta, smoothness=beta, strong_convexity=rho)
            assert exact <= computed <= mp.sqrt(exact**2 + mp.mpf(1e-14))
            assert max(abs(1 - eta * rho), abs(1 - eta * beta)) <= computed * (1 + 1e-15)
