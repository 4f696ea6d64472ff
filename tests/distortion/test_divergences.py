"""Distances of laws: by fractions, by their relations, by the accountant; and of Gaussians, by references, samples and inverses."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
from hockeystick import distortion


def laws() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of random laws."""
    rng = np.random.default_rng(4)
    return [(rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k))) for k in (2, 3, 10) for _ in range(20)]


def test_chi_squared() -> None:
    """The sum of p^2/q - 1 in fractions; infinite where q = 0 < p; 0 for equal laws; at least e^KL - 1."""
    for p, q in laws():
        a, b = ([Fraction(float(x)) for x in law] for law in (p, q))
        exact = sum((x - y) ** 2 / y for x, y in zip(a, b, strict=True))
        computed = distortion.chi_squared_divergence(p, q)
        assert computed == pytest.approx(float(exact), rel=1e-13)
        assert computed >= math.expm1(distortion.kl_divergence(p, q)) - 1e-12
    assert distortion.chi_squared_divergence([0.5, 0.5], [1.0, 0.0]) == math.inf
    assert distortion.chi_squared_divergence([1.0, 0.0], [1.0, 0.0]) == 0
    assert distortion.chi_squared_divergence([[0.5, 0.5]] * 2, [0.25, 0.75]).shape == (2,)


def test_hockey_stick() -> None:
    """Total variation at eps = 0, the mass without a counterpart at infinity, and the accountant's bracket between."""
    for p, q in laws():
        assert distortion.hockey_stick_divergence(p, q, 0.0) == pytest.approx(
            distortion.total_variation_distance(p, q), rel=1e-12
        )
        step = hs.Accountant("replace").compose(hs.Discrete(p, q))
        both = max(distortion.hockey_stick_divergence(*pair, 0.3) for pair in ((p, q), (q, p)))
        assert both == pytest.approx(float(step.delta(0.3)), rel=1e-9, abs=0)
    lost = distortion.hockey_stick_divergence([0.5, 0.25, 0.25], [0.0, 1.0 - 1e-323, 1e-323], [math.inf, 1500.0])
    assert lost.tolist() == [0.5, 0.5]
    tiny = distortion.hockey_stick_divergence([0.5, 0.5], [1.0, 5e-324], 743.0)  # e^743 is beyond the doubles
    assert tiny == pytest.approx(0.5 - math.exp(743.0 - 1074 * math.log(2.0)), rel=1e-12)


LOG_2 = math.log(2.0)
FAIR = [0.5, 0.5]


@pytest.mark.share(6)
@pytest.mark.parametrize("dimension", [41, 1, 2, 3, 1000, 10**6])
def test_gaussian_tv_for_all_ratios(dimension: int) -> None:
    """It agrees with the incomplete gamma function in 60 digits, where the difference of two does not cancel."""
    for ratio in (1e-14, 1e-7, 1e-4, 3e-3, 0.05, 0.5, 1.0, 1.5, 30.0, 1e6):
        with mp.workdps(60):
            rho, half = mp.mpf(ratio), mp.mpf(dimension) / 2
            low = half * mp.log1p(rho) / rho
            reference = mp.quad(
                lambda x, a=half: mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a)),
                mp.linspace(low, low * (1 + rho), 3) if rho < 2 else [low, half, half + 20 * mp.sqrt(half), mp.inf],
            ) - (0 if rho < 2 else mp.gammainc(half, low * (1 + rho), regularized=True))
        values = distortion.gaussian_tv_isotropic([1.0, 4.0], [ratio, 4.0 * ratio], dimension)  # in two units
        if reference < 1 - 1e-12:
            assert values == pytest.approx([float(reference)] * 2, rel=2e-11), (dimension, ratio)


def test_noise_variance_for_every_tv() -> None:
    """The inverse undoes the distance from 1e-12 to close to 1, and nothing is allowed for 0."""
    targets = np.array([[1e-12, 1e-6, 0.01, 0.3, 0.9, 0.999]])
    dimensions = np.array([[1], [7], [10_000]])
    noise = distortion.noise_variance_for_tv(targets, 1.0, dimensions)
    again = distortion.gaussian_tv_isotropic(1.0, noise, dimensions)
    np.testing.assert_allclose(again, np.broadcast_to(targets, again.shape), rtol=1e-9)
    assert np.all(again <= targets)
    assert distortion.noise_variance_for_tv(0.0, 1.0, 3) == 0.0
    # Far below, rho sqrt(d)/(2 sqrt(pi)) bounds the distance, which is rho/sqrt(2 pi e) for d = 1.
    smallest = 1e-310 * math.sqrt(2 * math.pi * math.e)
    assert distortion.noise_variance_for_tv(1e-310, 1.0, 1) == pytest.approx(smallest, rel=1e-6, abs=0)


def test_ratios_beyond_the_doubles() -> None:
    """Where a ratio of variances or probabilities overflows, its logarithm does not."""
    tiny = 2.0**-1074
    assert distortion.gaussian_tv_isotropic(1e-300, [1e300, 1e8], 3).tolist() == [1.0, 1.0]
    assert distortion.gaussian_tv_isotropic(1.0, 0.0, 5) == 0.0
    assert distortion.kl_divergence([1.0, 0.0], [tiny, 1.0]) == pytest.approx(1074 * LOG_2)
    assert distortion.kl_divergence([1.0, 0.0], [0.0, 1.0]) == math.inf
    assert distortion.max_bayesian_privacy_leakage([FAIR], [tiny, 1.0]) == pytest.approx(1073 * LOG_2)
    assert distortion.max_bayesian_privacy_leakage([[1.0, 0.0]], FAIR) == math.inf
