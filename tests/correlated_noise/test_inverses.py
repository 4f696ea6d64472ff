"""Strategies given by their inverse or by buffers, against exact fractions and all patterns."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import effort
from hockeystick.correlated_noise import (
    buffered_coefficients,
    inverse_sensitivity,
    inverse_square_root_coefficients,
    matrix_sensitivity,
    square_root_coefficients,
    strategy_of_inverse,
)
from participation import patterns

SCHEMES = [
    {"participation": "single"},
    {"participation": "cyclic", "separation": 3},
    {"participation": "min_separation", "separation": 2},
    {"participation": "min_separation", "separation": 3, "max_participations": 2},
]


def inverted(inverse, num_steps):
    """Return the exact coefficients of the strategy."""
    exact = [Fraction(d) for d in inverse]
    found = []
    for k in range(num_steps):
        rest = sum(exact[j] * found[k - j] for j in range(1, min(k, len(exact) - 1) + 1))
        found.append(((k == 0) - rest) / exact[0])
    return found


def largest_square(columns, allowed):
    """Return the largest squared distance of a pattern and signs, exactly."""
    products = [[sum(a * b for a, b in zip(one, two, strict=True)) for two in columns] for one in columns]
    return max(
        sum(
            s * t * products[i][j] for i, s in zip(steps, signs, strict=True) for j, t in zip(steps, signs, strict=True)
        )
        for steps in allowed
        for signs in itertools.product((1,), *[(1, -1)] * (len(steps) - 1))
    )


def toeplitz_columns(coefficients, num_steps):
    """Return the columns of the lower triangular Toeplitz matrix."""
    return [[Fraction(0)] * step + list(coefficients[: num_steps - step]) for step in range(num_steps)]


@pytest.mark.share(4)
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_against_fractions(scheme):
    """Inverses with signs, small pivots and growth: the exact largest distance lies between both ends."""
    rng = np.random.default_rng(11)
    for _ in range(effort.at_night(60, by_day=30)):
        inverse = rng.normal(size=rng.integers(1, 5)) * rng.choice([1.0, 1e-3, 1e200])
        inverse[0] = rng.choice([0.3, 1.0, -2.0]) * np.abs(inverse).max()
        square = largest_square(toeplitz_columns(inverted(inverse, 7), 7), patterns(7, **scheme))
        found = inverse_sensitivity(inverse, steps=7, **scheme)
        assert square <= Fraction(found.upper) ** 2
        assert Fraction(found.lower * (1 - 1e-14)) ** 2 <= square
        matrix = np.array([[inverse[i - j] if 0 <= i - j < len(inverse) else 0.0 for j in range(7)] for i in range(7)])
        assert square <= Fraction(inverse_sensitivity(matrix, **scheme).upper) ** 2


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize(
    "inverse", [inverse_square_root_coefficients(4), [1.0, -1.0], [1.0, -0.5], [2.0, -0.25, -0.125]], ids=str
)
def test_positive_strategies_are_exact(scheme, inverse):
    """Where C is non-negative and never rises both ends are the exact distance."""
    square = largest_square(toeplitz_columns(inverted(inverse, 9), 9), patterns(9, **scheme))
    found = inverse_sensitivity(inverse, steps=9, **scheme)
    assert found.lower == pytest.approx(float(square) ** 0.5, rel=1e-12)
    assert square <= Fraction(found.upper) ** 2
    assert found.upper == pytest.approx(found.lower, rel=1e-12)


def test_dense_inverse():
    """Inverses that are no Toeplitz matrices: the distance of exact fractions is below the upper end."""
    rng = np.random.default_rng(12)
    for _ in range(20):
        inverse = np.tril(rng.normal(size=(5, 5)), -1) + np.diag(rng.uniform(0.2, 2.0, 5))
        exact = [[Fraction(0)] * 5 for _ in range(5)]  # columns of C, by forward substitution
        for column in range(5):
            for row in range(5):
                rest = sum(Fraction(inverse[row, j]) * exact[column][j] for j in range(row))
                exact[column][row] = ((row == column) - rest) / Fraction(inverse[row, row])
        sizes = strategy_of_inverse(inverse)
        assert all(abs(exact[j][i]) <= Fraction(sizes[i, j]) for i in range(5) for j in range(5))
        assert not np.triu(sizes, 1).any()
        for scheme in SCHEMES[:3]:
            square = largest_square(exact, patterns(5, **scheme))
            found = inverse_sensitivity(inverse, **scheme)
            assert square <= Fraction(found.upper) ** 2
            assert found.lower**2 <= float(square) * (1 + 1e-9)


def test_sizes_of_entries():
    """Each rounded coefficient is at least the exact one, by little."""
    for bands, num_steps in ((1, 5), (2, 60), (4, 60), (60, 60)):
        inverse = inverse_square_root_coefficients(bands)
        exact = inverted(inverse, num_steps)
        sizes = strategy_of_inverse(inverse, steps=num_steps)
        assert all(
            abs(c) <= Fraction(size) <= abs(c) + Fraction(1, 10**11) for c, size in zip(exact, sizes, strict=True)
        )


def test_inverse_of_the_square_root():
    """The coefficients are those of (1 - x)^(1/2): their product with the root's is 1, and their square is 1 - x."""
    inverse = inverse_square_root_coefficients(30)
    assert np.convolve(inverse, square_root_coefficients(30))[:30] == pytest.approx(np.eye(30)[0], abs=1e-15)
    assert np.convolve(inverse, inverse)[:30] == pytest.approx([1.0, -1.0] + [0.0] * 28, abs=1e-15)
    root = matrix_sensitivity(square_root_coefficients(30), steps=30, participation="cyclic", separation=7)
    found = inverse_sensitivity(inverse, steps=30, participation="cyclic", separation=7)
    assert found.upper == pytest.approx(root.upper, rel=1e-12)


def test_many_steps():
    """A hundred thousand steps are no matrix of ten billion entries; a geometric strategy has a closed form."""
    found = inverse_sensitivity([1.0, -0.5], steps=100_000, participation="min_separation", separation=10_000)
    # Ten participations whose columns, 2^-k, overlap by 2^-10000 only.
    assert found.lower == pytest.approx((10 * 4 / 3) ** 0.5, rel=1e-10)
    assert (10 * 4 / 3) ** 0.5 <= found.upper <= (10 * 4 / 3) ** 0.5 * (1 + 1e-9)


def test_buffers_against_fractions():
    """Coefficients are at least the exact ones, and the sensitivity at least the exact distance."""
    rng = np.random.default_rng(13)
    for _ in range(6):
        buffers = int(rng.integers(1, 4))
        decays, scales = rng.uniform(size=buffers), rng.uniform(0, 0.8, size=buffers)
        exact = [Fraction(1)] + [
            sum(Fraction(w) * Fraction(t) ** k for t, w in zip(decays, scales, strict=True)) for k in range(7)
        ]
        coefficients = buffered_coefficients(decays, scales, steps=8)
        assert all(
            c <= Fraction(found) <= c * (1 + Fraction(1, 10**14)) for c, found in zip(exact, coefficients, strict=True)
        )
        for scheme in SCHEMES:
            square = largest_square(toeplitz_columns(exact, 8), patterns(8, **scheme))
            assert square <= Fraction(matrix_sensitivity(coefficients, steps=8, **scheme).upper) ** 2
    assert buffered_coefficients(0.0, 0.5, steps=3).tolist()[2] == 0.0


@pytest.mark.parametrize("scale", [1e162, 1e183, 1e262, 1e300])
def test_sizes_of_a_large_inverse(scale):
    """The squares of its strategy's entries underflow; the entries are not below those of the strategy all the same."""
    inverse = np.array([0.79306637, 0.23902645, 0.29068427, 0.15396294, -0.19352675]) * scale
    sizes = strategy_of_inverse(inverse, steps=12)
    for size, exact in zip(sizes, inverted(inverse, 12), strict=True):
        assert Fraction(float(size)) >= abs(exact)


@pytest.mark.parametrize(("decays", "scales"), [([0.999], [1.0]), ([0.99, 0.8], [0.5, 0.5])])
def test_buffers_whose_scales_add_up_to_one(decays, scales):
    """Rounding up makes no coefficient rise: the closed form is taken, for any number of steps."""
    coefficients = buffered_coefficients(decays, scales, steps=100_000)
    assert (np.diff(coefficients) <= 0).all()
    found = matrix_sensitivity(coefficients, steps=100_000, participation="min_separation", separation=20_000)
    assert found.upper == pytest.approx(found.lower, rel=1e-9)
