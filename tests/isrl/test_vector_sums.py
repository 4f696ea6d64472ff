"""Binomial noise on vectors: certified bounds against all outcomes, all shifts, and what Gaussian noise would leak."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
from enumeration import either, hockey_stick
from hockeystick import isrl
from hockeystick.isrl import vector_sums


def _binomial(trials: int, p: float) -> np.ndarray:
    return np.array([math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)])


def _law(points: np.ndarray, levels: int, noise: np.ndarray) -> np.ndarray:
    """Return the masses of all outcomes of one vector, rounded at random, plus noise: by definition, coordinate by coordinate."""
    joint = np.ones(())
    for t in points:
        rounded = np.zeros(levels + 2)
        whole = math.floor(t)
        rounded[whole], rounded[whole + 1] = 1 - (t - whole), t - whole
        joint = np.multiply.outer(joint, np.convolve(rounded[: levels + 1], noise))
    return joint


def _pairs(levels: int, dimension: int, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs at distance g or less: along an axis, along the diagonal, halfway between levels, and at random."""
    centre = np.full(dimension, levels / 2)
    ways = [np.eye(dimension)[0], np.ones(dimension) / math.sqrt(dimension)]
    ways += [way / np.linalg.norm(way) for way in rng.standard_normal((6, dimension))]
    found = [(centre - levels / 2 * way, centre + levels / 2 * way) for way in ways]
    found += [(centre, centre + 0.5 * np.eye(dimension)[0]), (centre - 0.3, centre + 0.3)]
    return found


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("dimension", "levels", "trials", "p"), [(1, 3, 60, 0.25), (2, 2, 60, 0.3), (2, 4, 90, 0.5), (3, 3, 36, 0.4)]
)
def test_no_pair_leaks_more(dimension: int, levels: int, trials: int, p: float) -> None:
    """The delta of every pair of vectors, by enumeration of all outcomes, is at most the certified one, in both directions."""
    noise = _binomial(trials, p)
    setting = {"num_messages": trials, "levels": levels, "noise_bits": 1, "probability": p, "dimension": dimension}
    laws = [
        [_law(points, levels, noise) for points in pair] for pair in _pairs(levels, dimension, np.random.default_rng(1))
    ]
    for epsilon in (0.0, 0.3, 1.0, 2.0, 4.0):
        worst = max(either(one, two, epsilon) for one, two in laws)
        assert worst <= isrl.vector_sum_delta(epsilon, **setting) <= 1.0


def test_two_rounds_of_two_coordinates() -> None:
    """Two sums about the same record: the product of all outcomes."""
    noise = _binomial(30, 0.4)
    one, two = (_law(np.array(t), 2, noise).ravel() for t in ((0.0, 1.0), (1.5, 2.0)))
    twice, shifted = np.outer(one, one), np.outer(two, two)
    for epsilon in (0.0, 1.0, 3.0):
        exact = hockey_stick(twice, shifted, epsilon)
        bound = isrl.vector_sum_delta(
            epsilon, num_messages=30, levels=2, noise_bits=1, probability=0.4, dimension=2, rounds=2
        )
        assert exact <= bound


@pytest.mark.parametrize("order", [0.05, 1.0, 7.5])
def test_moments_of_all_shifts(order: float) -> None:
    """The bound holds for every division of the distance among three coordinates, with thirty digits."""
    trials, p, levels, dimension = 120, 0.25, 3, 3
    cut = vector_sums.window(trials, p, levels, 1e-9)
    assert cut is not None
    low = next(k for k in range(levels, trials) if _matches(cut, trials, p, k))
    high = low + cut.logs.size - 2 * levels - 1
    mp.mp.dps = 30
    mass = [mp.binomial(trials, k) * mp.mpf(p) ** k * (1 - mp.mpf(p)) ** (trials - k) for k in range(trials + 1)]
    outside = mp.fsum(mass[:low]) + mp.fsum(mass[high + 1 :])
    assert outside <= cut.tail <= 1e-8

    def moment(shift: int) -> mp.mpf:
        return mp.fsum(mass[k] * (mass[k] / mass[k - shift]) ** order for k in range(low, high + 1))

    exact = {s: moment(s) for s in range(-levels, levels + 1)}
    bound = vector_sums.log_moment_of_vectors(cut, order, dimension)

    def log_factor(t: float) -> float:
        m = min(int(t), levels - 1)
        f = t - m
        return float(max(mp.log((1 - f) * exact[sign * m] + f * exact[sign * (m + 1)]) for sign in (1, -1)))

    factors = {t: log_factor(t) for t in np.linspace(0.0, levels, 25).tolist()}
    inside = [part for part in itertools.product(factors, repeat=dimension) if sum(t * t for t in part) <= levels**2]
    largest = max(sum(factors[t] for t in part) for part in inside)
    assert largest <= bound <= 1.5 * largest + 1e-6


def _matches(cut: vector_sums.Window, trials: int, p: float, low: int) -> bool:
    """Return whether the window's first kept outcome is `low`: by the ratio of neighbouring masses."""
    ratio = math.log((trials - low) / (low + 1) * p / (1 - p))
    return abs(cut.logs[cut.levels + 1] - cut.logs[cut.levels] - ratio) < 1e-9


@pytest.mark.parametrize(
    ("levels", "bits", "dimension"), [(32, 200, 1), (32, 200, 10), (100, 2000, 100), (50, 500, 2000)]
)
def test_close_to_gaussian_noise(levels: int, bits: int, dimension: int) -> None:
    """Where there is much noise, epsilon lies up to a quarter above that of Gaussian noise of the same variance, and not below."""
    reached = isrl.vector_sum_epsilon(
        num_messages=1000, levels=levels, noise_bits=bits, probability=0.25, dimension=dimension, delta=1e-6
    )
    gaussian = hs.gdp_epsilon(levels / math.sqrt(1000 * bits * 0.1875), 1e-6)
    assert 0.99 * gaussian <= reached <= 1.3 * gaussian


def test_epsilon_and_delta_agree() -> None:
    """Delta at the certified epsilon is the delta asked for, nearly; rounds and coordinates only add."""
    setting = {"num_messages": 1000, "levels": 16, "noise_bits": 50, "probability": 0.25}
    epsilon = isrl.vector_sum_epsilon(**setting, dimension=4, delta=1e-6)
    assert isrl.vector_sum_delta(epsilon, **setting, dimension=4) == pytest.approx(1e-6, rel=0.05)
    assert isrl.vector_sum_epsilon(**setting, dimension=40, delta=1e-6) >= epsilon
    assert isrl.vector_sum_epsilon(**setting, dimension=4, delta=1e-6, rounds=2) > 1.3 * epsilon
    assert isrl.vector_sum_epsilon(**setting, dimension=4, delta=1e-7) > epsilon


def test_too_little_noise_promises_nothing() -> None:
    """Noise that cannot cover one record's levels has an infinite epsilon and a delta of 1, as has none."""
    for messages, bits in ((3, 2), (100, 0), (10, 1)):
        setting = {"num_messages": messages, "levels": 8, "noise_bits": bits, "probability": 0.25, "dimension": 2}
        assert isrl.vector_sum_epsilon(**setting, delta=1e-6) == math.inf
        assert isrl.vector_sum_delta(1.0, **setting) > 0.1


def test_calibrated_bits() -> None:
    """The number of bits meets the target, and one less does not."""
    setting = {"num_messages": 500, "levels": 20, "dimension": 5}
    bits = isrl.calibrate_vector_bits(**setting, epsilon=1.0, delta=1e-6)
    reached = [isrl.vector_sum_epsilon(**setting, noise_bits=b, probability=0.25, delta=1e-6) for b in (bits, bits - 1)]
    assert reached[0] <= 1.0 < reached[1]


def test_mean_squared_error() -> None:
    """The sum is unbiased; the bound holds for the protocol, and is attained where every coordinate lies between two levels."""
    rng = np.random.default_rng(3)
    vectors = np.full((50, 2), 0.05)  # 10.5 of 20 levels
    setting = {"lipschitz": 1.0, "levels": 20, "noise_bits": 4, "probability": 0.25}
    runs = np.array([isrl.shuffle_vector_sum(vectors, **setting, rng=rng) for _ in range(4000)])
    bound, errors = isrl.vector_sum_mse(num_messages=50, dimension=2, **setting), runs - vectors.sum(axis=0)
    assert (errors**2).sum(axis=1).mean() == pytest.approx(bound, rel=0.08)
    assert (abs(errors.mean(axis=0)) < 4 * errors.std(axis=0) / math.sqrt(4000)).all()
