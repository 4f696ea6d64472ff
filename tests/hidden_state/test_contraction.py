"""contraction_sum against the naive double loop, with and without rounds=."""

import itertools
from collections.abc import Iterator

import hypothesis
import hypothesis.strategies as st
import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs


def naive(first: np.ndarray, eta: np.ndarray, weights: np.ndarray) -> mp.mpf:
    """Sum w_t f_t prod_{j>t} eta_j as it is written, to 50 digits."""
    with mp.workdps(50):
        total = mp.mpf(0)
        for t in range(len(first)):
            term = mp.mpf(float(weights[t])) * mp.mpf(float(first[t]))
            for j in range(t + 1, len(first)):
                term *= mp.mpf(float(eta[j]))
            total += term
        return total


def schedules() -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield random schedules, of weak or strong contractions; sums of 1e-290; and huge early terms behind small contractions."""
    for rounds, shape in itertools.product((1, 2, 3, 7, 60), (0.1, 1.0, 30.0)):
        rng = np.random.default_rng(rounds)
        first, weights = rng.uniform(0, 1, rounds), rng.uniform(0, 3, rounds)
        yield first, rng.uniform(0, 1, rounds) ** shape, weights
    yield np.array([1e-250, 1e-290, 1e-295]), np.array([0.9, 1e-40, 0.5]), np.ones(3)
    yield np.concatenate([[1e200], np.full(50, 1e-100)]), np.full(51, 1e-3), np.ones(51)
    yield np.full(51, 1e-100), np.full(51, 1e-3), np.concatenate([[1e250], np.ones(50)])


@pytest.mark.parametrize(("first", "eta", "weights"), list(schedules()))
def test_against_the_definition(first: np.ndarray, eta: np.ndarray, weights: np.ndarray) -> None:
    """The naive sum to 1e-14, relatively: there is no absolute cut-off, and no early exit before what dominates."""
    assert abs(hs.contraction_sum(first, eta, weights) / naive(first, eta, weights) - 1) < 1e-14


@pytest.mark.parametrize("eta", [0.0, 1e-300, 0.3, 0.999, 1 - 1e-9, 1 - 2.0**-53, 1.0])
@pytest.mark.parametrize("rounds", [1, 2, 10, 10**4, 10**6, 10**9, 2**53])
def test_constants(eta: float, rounds: int) -> None:
    """With rounds= the value is the geometric sum, at once for any number of rounds."""
    with mp.workdps(60):
        e = mp.mpf(eta)
        exact = mp.mpf(0.3) * mp.mpf(0.7) * (rounds if e == 1 else (1 - e**rounds) / (1 - e))
    value = hs.contraction_sum(0.3, eta, 0.7, rounds=rounds)
    assert abs(value / exact - 1) < 1e-14


@hypothesis.given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 10), st.integers(1, 300))
def test_constants_are_arrays(first: float, eta: float, weight: float, rounds: int) -> None:
    """rounds= gives what an array of equal rounds gives."""
    array = hs.contraction_sum(np.full(rounds, first), eta, weight)
    np.testing.assert_allclose(hs.contraction_sum(first, eta, weight, rounds=rounds), array, rtol=1e-13, atol=1e-305)


def test_never_below_the_sum() -> None:
    """The remainder that the early exit leaves out is charged, not dropped: never below the sum by more than rounding."""
    rng = np.random.default_rng(3)
    for scale in (0.01, 0.3, 0.9):
        first, eta = rng.uniform(0, 1, 400), rng.uniform(0, scale, 400)
        exact = naive(first[-60:], eta[-60:], np.ones(60))
        assert hs.contraction_sum(first, eta) >= exact * (1 - mp.mpf(2e-15))


def test_long_array() -> None:
    """A million rounds without contraction add up to 1e-9 at worst."""
    n = 10**6
    assert abs(hs.contraction_sum(np.full(n, 0.1), 1.0) / (0.1 * n) - 1) < 1e-9


def test_last_axis_is_the_round() -> None:
    """Leading axes broadcast; the last one is summed; rounds= sums none."""
    rng = np.random.default_rng(0)
    first, eta = rng.uniform(0, 1, (4, 1, 6)), rng.uniform(0, 1, (3, 6))
    table = hs.contraction_sum(first, eta)
    assert table.shape == (4, 3)
    for i in range(4):
        for j in range(3):
            assert table[i, j] == hs.contraction_sum(first[i, 0], eta[j])
    assert hs.contraction_sum(0.5, np.full((4, 3), 0.5), rounds=7).shape == (4, 3)
    assert hs.contraction_sum(0.5, 0.5, rounds=[1, 2, 3]).shape == (3,)
    assert isinstance(hs.contraction_sum([0.5], [0.5]), float)


@pytest.mark.parametrize("num_threads", [2, 7])
def test_threads(num_threads: int) -> None:
    """Any number of threads gives the bits of one."""
    rng = np.random.default_rng(1)
    first, eta = rng.uniform(0, 1, (500, 40)), rng.uniform(0, 1, (500, 40))
    alone = hs.contraction_sum(first, eta, num_threads=1)
    np.testing.assert_array_equal(hs.contraction_sum(first, eta, num_threads=num_threads), alone)
