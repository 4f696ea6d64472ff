"""Balls-in-bins batches with correlated noise, against integrals over the laws of the likelihood ratio, and samples of it."""

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.correlated_noise import balls_in_bins, estimate_balls_in_bins_delta, square_root_coefficients
from participation import mixture_deltas

EPSILONS = (0.0, 0.2, 0.7, 1.5)


def two_bins(first: np.ndarray, second: np.ndarray, noise: float, epsilons: tuple[float, ...]) -> np.ndarray:
    """Return the larger deltas of half N(m_1, s^2 I) and half N(m_2, s^2 I) against N(0, s^2 I), in the plane of both means."""
    means = np.linalg.qr(np.stack([first, second], axis=1) / noise)[1].T  # in coordinates of that plane
    return mixture_deltas(means, np.array([0.5, 0.5]), epsilons, 1000)


def sums(strategy: np.ndarray, bins: int) -> list[np.ndarray]:
    """Return the sums of the columns of each bin."""
    return [np.abs(strategy)[:, first::bins].sum(axis=1) for first in range(bins)]


@pytest.mark.share(12, by_day=6)
@pytest.mark.parametrize("seed", range(60))
def test_two_bins(seed: int) -> None:
    """Random strategies of 2 to 6 steps, entries of any sign: never below the integral."""
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(2, 7))
    strategy = np.tril(rng.normal(size=(steps, steps)) * rng.choice([0.2, 1.0]) + np.eye(steps))
    noise = float(rng.uniform(0.8, 6.0))
    found = balls_in_bins(strategy, bins=2, noise_multiplier=noise)
    for eps, truth in zip(EPSILONS, two_bins(*sums(strategy, 2), noise, EPSILONS), strict=True):
        assert found.delta(eps) >= truth * (1 - 1e-5) - 1e-10


@pytest.mark.parametrize("noise", [0.7, 1.5])
def test_distant_bins_may_be_alike(noise: float) -> None:
    """Every second bin is the same, neighbours are orthogonal: no less than two bins leak."""
    found = balls_in_bins(np.eye(2)[:, np.arange(8) % 2], bins=8, noise_multiplier=noise)
    for eps, truth in zip(EPSILONS, mixture_deltas(np.eye(2) / noise, np.full(2, 0.5), EPSILONS, 1000), strict=True):
        assert found.delta(eps) >= truth * (1 - 1e-5) - 1e-10


@pytest.mark.share(3)
@pytest.mark.parametrize("noise", [0.9, 2.0, 5.0])
@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_equal_covariances_are_exact(noise: float, shared: float) -> None:
    """Two bins of equal norms: the bound is the divergence itself, to the width of an allocation's bracket; an estimate has it too."""
    strategy = np.array([[1.0, 0.0], [0.0, 1.0], [shared, shared]])
    found = balls_in_bins(strategy, bins=2, noise_multiplier=noise)
    for eps, expected in zip(EPSILONS, two_bins(*sums(strategy, 2), noise, EPSILONS), strict=True):
        assert expected * (1 - 1e-5) <= found.delta(eps) <= expected * 1.02 + 1e-9
        many = {"epsilon": eps, "samples": 30_000, "confidence": 1 - 1e-6, "seed": 2}
        estimate = estimate_balls_in_bins_delta(strategy, bins=2, noise_multiplier=noise, **many)
        assert estimate.lower <= expected <= estimate.upper < estimate.lower + 0.05


@pytest.mark.parametrize(("bins", "noise"), [(2, 1.0), (20, 1.0), (100, 0.5)])
def test_independent_noise(bins: int, noise: float) -> None:
    """DP-SGD over one epoch is a random allocation, and over three the same with noise over the root of three."""
    for epochs in (1, 3):
        found = balls_in_bins([1.0], steps=epochs * bins, bins=bins, noise_multiplier=noise)
        step = hs.RandomAllocation(hs.Gaussian(noise / math.sqrt(epochs)), bins)
        expected = hs.Accountant().compose(step).epsilon_bracket(1e-5)
        assert expected.lower <= found.epsilon(1e-5) <= expected.upper * (1 + 1e-6)
    setting = {"steps": 3 * bins, "bins": bins, "noise_multiplier": noise}
    for delta in (1e-2, 1e-5, 1e-9):
        eps = hs.Accountant().compose(step).epsilon(delta)
        sampled = estimate_balls_in_bins_delta([1.0], eps, **setting, samples=20_000, confidence=1 - 1e-9, seed=bins)
        assert sampled.lower <= delta * (1 + 1e-9)
        assert delta * 0.95 <= min(sampled.upper, sampled.mean + 5 * sampled.standard_error)
        assert sampled.mean - 5 * sampled.standard_error <= delta


CASES = [
    (square_root_coefficients(bands), steps, bins, noise)
    for bands, steps, bins, noise in itertools.product((1, 3, 8), (25, 60), (5, 12), (2.0, 6.0))
]


@pytest.mark.share(6, by_day=3)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_no_sample_is_above(case: int) -> None:
    """Estimates of bands of square-root coefficients over several epochs: their lower ends, which hold at 1 - 1e-6, are below."""
    c, steps, bins, noise = CASES[case]
    setting = {"steps": steps, "bins": bins, "noise_multiplier": noise}
    found = balls_in_bins(c, **setting)
    for eps in (0.1, 0.5):
        estimate = estimate_balls_in_bins_delta(
            c, **setting, epsilon=eps, samples=20_000, confidence=1 - 1e-6, seed=case
        )
        assert estimate.lower <= found.delta(eps)
        assert estimate.lower <= estimate.mean <= estimate.upper


def test_blocks_of_equal_covariances_are_exact() -> None:
    """Three blocks of two bins, whose releases share an entry: the bound is in the interval of many samples, or just above."""
    blocks = np.kron(np.eye(3), [[1.0, 1.0]])
    strategy = np.concatenate([np.eye(6), 1.2 * blocks, np.full((1, 6), 0.6)])
    setting = {"bins": 6, "noise_multiplier": 1.5}
    found = balls_in_bins(strategy, **setting)
    for eps in (0.3, 1.0):
        many = {"epsilon": eps, "samples": 400_000, "confidence": 1 - 1e-6, "seed": 5}
        estimate = estimate_balls_in_bins_delta(strategy, **setting, **many)
        assert estimate.lower <= found.delta(eps) <= estimate.upper * 1.002


@pytest.mark.parametrize(
    ("case", "delta", "epsilon"),
    [
        ((8, 500, 100, 4.0), 1e-2, 0.299),  # by moments
        ((20, 1000, 100, 4.0), 1e-3, 1.49),
        ((8, 1000, 99, 4.0), 1e-3, 0.96),
        ((8, 500, 100, 4.0), 1e-3, 0.57),
        ((8, 500, 100, 4.0), 1e-6, 1.18),
        ((32, 3000, 300, 8.0), 1e-6, 1.081),
        ((20, 1000, 100, 4.0), 1e-6, 3.27),
        ((8, 1000, 99, 4.0), 1e-6, 2.50),
        ((10, 1000, 50, 4.0), 1e-6, 5.06),
    ],
)
def test_best_cut_is_found(case: tuple[int, int, int, float], delta: float, epsilon: float) -> None:
    """As good as cuts that were chosen by hand, with a program of their own."""
    bands, steps, bins, noise = case
    found = balls_in_bins(square_root_coefficients(bands), steps=steps, bins=bins, noise_multiplier=noise)
    assert found.epsilon(delta) <= epsilon


def test_bins_of_all_lengths() -> None:
    """One bin with a sum that is 1e8 times as long: the others' samples are as before."""
    strategy = np.zeros((21, 20))
    strategy[:20], strategy[:, 7] = 2 * np.eye(20), 1e8
    found = estimate_balls_in_bins_delta(strategy, 0.5, bins=20, noise_multiplier=1.0, samples=100_000, seed=1)
    rng = np.random.default_rng(2)
    outcomes = rng.standard_normal((100_000, 19))
    outcomes[np.arange(100_000), rng.integers(19, size=100_000)] += 2.0
    ratios = np.exp(2 * outcomes - 2).sum(axis=1) / 20
    truth = 0.05 + 0.95 * np.maximum(1 - math.exp(0.5) / ratios, 0.0).mean()  # the long one shows itself
    assert abs(found.mean - truth) <= 0.006


def test_limits() -> None:
    """Never above no sampling at all; one bin is no sampling; a matrix and its coefficients agree."""
    c = [1.0, 0.5, 0.25]
    matrix = sum(value * np.eye(12, k=-k) for k, value in enumerate(c))
    for bins in (1, 3, 4, 12):
        found = balls_in_bins(c, steps=12, bins=bins, noise_multiplier=1.7)
        same = balls_in_bins(matrix, bins=bins, noise_multiplier=1.7)
        largest = max(float(np.linalg.norm(each)) for each in sums(matrix, bins))
        unsampled = hs.Accountant().compose(hs.Gaussian(1.7 / largest)).epsilon(1e-5)
        assert found.epsilon(1e-5) == pytest.approx(same.epsilon(1e-5), rel=1e-9)
        assert found.epsilon(1e-5) <= unsampled * (1 + 1e-9)
        if bins == 1:
            assert found.epsilon(1e-5) == pytest.approx(unsampled, rel=1e-9)


def test_noise_beyond_the_allocation() -> None:
    """Much or little noise has a bound, too; the certificate of an entry whose square is no double is not zero."""
    assert balls_in_bins([1e-170], steps=4, bins=2, noise_multiplier=1.0).delta(0.0) >= 1e-171
    for noise in (1e-3, 0.2, 1e4):
        found = balls_in_bins([1.0, 0.5], steps=8, bins=4, noise_multiplier=noise)
        assert 0.0 < found.epsilon(1e-9) < math.inf
        assert found.delta(math.inf) == 0.0


@pytest.mark.parametrize("unit", [1e-170, 1e-161, 1e160, 1e200])
def test_units_do_not_matter(unit: float) -> None:
    """C and the noise in tiny or huge units: squares of neither underflow or overflow."""
    setting, sampled = {"steps": 6, "bins": 3}, {"epsilon": 0.3, "samples": 4000, "seed": 1}
    found, plain = ({"strategy": [x, 0.5 * x], "noise_multiplier": 2.0 * x, **setting} for x in (unit, 1.0))
    assert balls_in_bins(**found).delta(0.3) == pytest.approx(balls_in_bins(**plain).delta(0.3), rel=1e-12)
    estimates = [estimate_balls_in_bins_delta(**one, **sampled).mean for one in (found, plain)]
    assert estimates[0] == pytest.approx(estimates[1])
