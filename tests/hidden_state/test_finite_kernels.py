"""Contraction by finite kernels: against rational arithmetic, linear programs, a random search, and Gaussian kernels."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import linprog

import hockeystick as hs

FLIP = [[0.75, 0.25], [0.25, 0.75]]


def exact_kernel(kernel: np.ndarray) -> list[list[Fraction]]:
    """Return the doubles as fractions, rows divided by their exact sums."""
    rows = [[Fraction(float(p)) for p in row] for row in kernel]
    return [[p / sum(row) for p in row] for row in rows]


def divergence(p: list[Fraction], q: list[Fraction], gamma: mp.mpf) -> mp.mpf:
    """Return E_gamma by its definition, to the digits of mpmath."""
    return mp.fsum(
        max(mp.mpf(0), mp.mpf(a.numerator) / a.denominator - gamma * mp.mpf(b.numerator) / b.denominator)
        for a, b in zip(p, q, strict=True)
    )


def largest(kernel: np.ndarray, gamma: mp.mpf) -> mp.mpf:
    """Return the largest divergence of two rows."""
    rows = exact_kernel(kernel)
    return max((divergence(p, q, gamma) for p, q in itertools.permutations(rows, 2)), default=mp.mpf(0))


def kernels() -> list[np.ndarray]:
    """Return random kernels, also with zeros, tiny entries and rows that do not sum to 1 exactly."""
    rng = np.random.default_rng(21)
    found = []
    for rows, columns, power in itertools.product((1, 2, 5), (1, 2, 3, 8), (0.05, 1.0, 5.0)):
        weights = rng.dirichlet(np.full(columns, power), size=rows)
        weights[rng.random(weights.shape) < 0.2] *= 1e-3
        weights[:, 0] += 1e-300
        found.append(weights / weights.sum(axis=1, keepdims=True) * (1 + 1e-10 * rng.standard_normal((rows, 1))))
    found += [np.eye(3), np.full((4, 3), 1 / 3), np.array([[1.0, 0.0], [1 - 1e-16, 1e-16]]), np.array([[1.0], [1.0]])]
    return found


@pytest.mark.parametrize("eps", [0.0, 1e-17, 1e-9, 0.1, 1.0, 5.0, 40.0, 690.0, 800.0, math.inf])
def test_coefficient_encloses_the_exact_one(eps: float) -> None:
    """The largest divergence of two rows to 60 digits is never above the result, and below it by rounding only."""
    with mp.workdps(400):
        for kernel in kernels():
            computed = hs.contraction_coefficient(kernel, eps)
            exact = largest(kernel, mp.exp(mp.mpf(min(eps, 1e6))))
            assert exact <= computed <= exact + 1e-14 + 2.3e-16 * kernel.shape[1], (kernel, exact, computed)


@pytest.mark.share(3)
@pytest.mark.parametrize("eps", [0.0, 1e-9, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-320, 1e-200, 1e-9, 0.01, 0.4, 1.0])
def test_nonlinear_encloses_the_exact_one(eps: float, delta: float) -> None:
    """Delta times the largest divergence at 1 + (gamma - 1)/delta to 400 digits, rounded up, and never more than delta."""
    with mp.workdps(400):
        for kernel in kernels():
            computed = hs.nonlinear_contraction(kernel, eps, delta)
            exact = mp.mpf(delta) * largest(kernel, 1 + mp.expm1(mp.mpf(eps)) / mp.mpf(delta))
            assert exact <= computed <= delta
            assert computed <= exact + mp.mpf(delta) * mp.mpf(1e-14 + 2.3e-16 * kernel.shape[1]) + 1e-323


@pytest.mark.parametrize("eps", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("delta", [0.05, 0.3, 0.8])
def test_linear_programs(delta: float, eps: float) -> None:
    """The supremum over all pairs of laws is a linear program for each set of outputs; its optimum is the result."""
    rng = np.random.default_rng(5)
    gamma = math.exp(eps)
    for rows, columns in ((2, 3), (4, 3), (3, 4)):
        kernel = rng.dirichlet(np.ones(columns), size=rows)
        best = 0.0
        for subset in itertools.product((0.0, 1.0), repeat=columns):
            value = kernel @ np.array(subset)
            # variables mu, nu, s with s >= mu - gamma nu, s >= 0, sum s <= delta
            objective = -np.concatenate([value, -gamma * value, np.zeros(rows)])
            eye = np.eye(rows)
            limits = np.block([[eye, -gamma * eye, -eye], [np.zeros((1, 2 * rows)), np.ones((1, rows))]])
            sums = np.kron(np.eye(2, 3), np.ones((1, rows)))
            found = linprog(objective, limits, [0.0] * rows + [delta], sums, [1.0, 1.0], bounds=(0, None))
            best = max(best, -found.fun)
        assert hs.nonlinear_contraction(kernel, eps, delta) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("r", [0.1, 1.0, 5.0, math.inf])
def test_gaussian_kernel(r: float) -> None:
    """A number is the diameter of the inputs in noise deviations: delta theta(eps', r) to 60 digits, rounded up."""
    with mp.workdps(60):
        for eps, delta in itertools.product((0.0, 0.01, 1.0, 4.0), (1e-300, 1e-20, 1e-3, 0.9, 1.0)):
            later = mp.log1p(mp.expm1(mp.mpf(eps)) / mp.mpf(delta))
            q = [mp.mpf(1), mp.mpf(0)]
            if r < math.inf:
                q = [mp.erfc((later / r + sign * mp.mpf(r) / 2) / mp.sqrt(2)) / 2 for sign in (-1, 1)]
            exact = mp.mpf(delta) * (q[0] - mp.exp(later) * q[1])
            computed = hs.nonlinear_contraction(r, eps, delta)
            assert exact <= computed <= delta
            if exact > mp.mpf("1e-300"):
                assert mp.log(mp.mpf(float(computed)) / exact) <= 2e-12 * (1 - mp.log(exact))


def test_nothing_is_left() -> None:
    """Where no output tells, the result is exactly 0: pure kernels beyond their epsilon, equal rows, a point."""
    assert hs.nonlinear_contraction(FLIP, 0.5, 0.1) == 0  # gamma' = 7.5 > 3
    assert hs.nonlinear_contraction([[0.5, 0.5]] * 2, 0.0, 0.7) == 0
    assert hs.nonlinear_contraction(0.0, 0.3, 0.5) == 0
    assert hs.nonlinear_contraction(0.0, 0.0, 0.5) == 0
