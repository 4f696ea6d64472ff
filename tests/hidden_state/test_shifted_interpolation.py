"""The optimum of shifted interpolation against three independent solvers, its certificate and its attained chain."""

import itertools
import json
import math
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import hockeystick as hs
from interpolation import by_all_starts, by_max_min, by_pooling, by_quadratic_programming

VECTORS = json.loads((Path(__file__).parents[1] / "reference" / "values" / "shifted_interpolation.json").read_text())
FACTOR = st.one_of(st.floats(1e-9, 3.0), st.sampled_from([0.0, 1.0, 0.5, 2.0]))
SHIFT = st.one_of(st.floats(1e-9, 5.0), st.sampled_from([0.0, 1.0]))
ROUND = st.tuples(FACTOR, SHIFT)


def random_rounds(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rounds of every kind: contracting, expanding, forgetting; noisy, silent."""
    rho = rng.choice([0.0, 0.5, 1.0, 1.0, 1.3, 3.0], n, p=[0.05, 0.2, 0.2, 0.15, 0.2, 0.2]) * rng.uniform(0.8, 1.2, n)
    gamma = np.where(rng.uniform(size=n) < 0.15, 0.0, np.exp(rng.normal(0, 1.5, n)))
    return rho, gamma


def assert_certificate(found: object, rho: np.ndarray, gamma: np.ndarray, gap: float) -> None:
    """Assert that the weights, put through the recursion from the start, close the gap and give shifts and value."""
    weights, shifts = found.weights, found.shifts
    assert weights.shape == shifts.shape == (len(rho),)
    assert np.all((weights >= 0) & (weights <= 1))
    assert not shifts[: found.start].any()
    z, total = gap, 0.0
    for t in range(found.start, len(rho)):
        offered = rho[t] * z + gamma[t]
        shift = weights[t] * offered
        assert math.isclose(shift, shifts[t], rel_tol=1e-12, abs_tol=1e-300)
        total += shift * shift
        z = (1 - weights[t]) * offered
    assert z == 0
    assert math.isclose(total, found.value, rel_tol=1e-12)


@pytest.mark.parametrize("case", VECTORS["unbounded"] + VECTORS["bounded"], ids=lambda case: str(case["rho"])[:30])
def test_vectors(case: dict) -> None:
    """Published check values: optimum, weights, and its place between Cauchy-Schwarz and plain composition; the start with a diameter."""
    asked = {name: case[name] for name in ("rho", "gamma", "rounds", "diameter") if name in case}
    found = hs.shifted_interpolation(**asked)
    np.testing.assert_allclose(found.value, case["value"], rtol=1e-13)
    if "diameter" in case:
        assert found.start == case["start"]
        return
    assert case["cauchy_schwarz"] * (1 - 1e-12) <= found.value <= case["plain"] * (1 + 1e-12)
    assert_certificate(found, np.array(case["rho"], float), np.array(case["gamma"], float), 0.0)
    if 0 not in case["rho"]:  # else the weights are not unique
        np.testing.assert_allclose(found.weights, case["weights"], rtol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_against_quadratic_programming(seed: int) -> None:
    """A general solver on the constrained problem finds the same minimum."""
    rho, gamma = random_rounds(np.random.default_rng(seed), 3 + 2 * seed)
    found = hs.shifted_interpolation(rho, gamma, initial_gap=2.0)
    assert math.isclose(by_quadratic_programming(rho, gamma, 2.0), found.value, rel_tol=1e-5)


@hypothesis.given(st.lists(ROUND, min_size=1, max_size=12), st.sampled_from([0.0, 0.3, 10.0]))
def test_against_exact_fractions(rounds: list[tuple[float, float]], gap: float) -> None:
    """The max-min formula in exact fractions agrees to 1e-13, zeros included, and pooling to 1e-15; the certificate holds."""
    rho, gamma = (np.array(x) for x in zip(*rounds, strict=True))
    exact = by_max_min(rho, gamma, gap)
    found = hs.shifted_interpolation(rho, gamma, initial_gap=gap)
    assert math.isclose(found.value, exact, rel_tol=1e-13, abs_tol=1e-280)
    assert math.isclose(by_pooling(rho, gamma, gap), exact, rel_tol=1e-15, abs_tol=1e-300)
    assert_certificate(found, rho, gamma, gap)


@pytest.mark.parametrize("n", [30, 200, 3000])
def test_long_sequences(n: int) -> None:
    """Hundreds of mixed rounds, and ramps up and down, agree with pooling at 40 digits; the certificate holds."""
    rng = np.random.default_rng(n)
    t = np.arange(n)
    cases = [random_rounds(rng, n) for _ in range(5)]
    cases += [
        (1 + 1 / (t + 1), 1 / (t + 1)),
        (np.full(n, 1.01), np.exp(-t / 50)),
        (np.full(n, 0.9), 1 + t),
        (0.5 + t % 2, t % 3 + 0.0),
    ]
    for rho, gamma in cases:
        found = hs.shifted_interpolation(rho, gamma)
        np.testing.assert_allclose(found.value, float(by_pooling(rho, gamma)), rtol=1e-12)
        assert_certificate(found, rho, gamma, 0.0)


@pytest.mark.parametrize("seed", range(25))
def test_every_start(seed: int) -> None:
    """With a diameter the value is the least over all starts, found by trying them all; its certificate starts there."""
    rng = np.random.default_rng(100 + seed)
    n = int(rng.integers(1, 50))
    rho, gamma = random_rounds(rng, n) if seed % 2 else (rng.uniform(0.9, 1.3, n), rng.uniform(0.0, 1.0, n))
    diameter = float(np.exp(rng.normal(0, 1.5)))
    gap = float(rng.choice([0.0, diameter / 2, diameter]))
    found = hs.shifted_interpolation(rho, gamma, initial_gap=gap, diameter=diameter)
    np.testing.assert_allclose(found.value, float(by_all_starts(rho, gamma, gap, diameter)), rtol=1e-12)
    assert_certificate(found, rho, gamma, diameter if found.start else gap)


@pytest.mark.share(3)
@pytest.mark.parametrize("rho", [0.0, 1e-3, 0.5, 0.99, 1.0, 1 + 1e-9, 1.05, 2.0, 10.0])
@pytest.mark.parametrize("gamma", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize(
    ("gap", "diameter"), [(0.0, None), (2.0, None), (0.0, 0.3), (0.0, 4.0), (1.0, 4.0), (4.0, 4.0)]
)
def test_constants_are_arrays(rho: float, gamma: float, gap: float, diameter: float | None) -> None:
    """rounds= gives what an array of equal rounds gives, and what trying every start gives."""
    for n in (1, 2, 3, 10, 200):
        constant = hs.shifted_interpolation(rho, gamma, rounds=n, initial_gap=gap, diameter=diameter)
        array = hs.shifted_interpolation(np.full(n, rho), np.full(n, gamma), initial_gap=gap, diameter=diameter)
        if constant.value == 0 < rho * gap:  # the optimum underflows: the array's value is a bound only
            continue
        assert math.isclose(constant.value, array.value, rel_tol=1e-12, abs_tol=1e-300), n
        assert_certificate(constant, np.full(n, rho), np.full(n, gamma), diameter if constant.start else gap)
        if n <= 10:
            reference = by_all_starts([rho] * n, [gamma] * n, gap, gap if diameter is None else diameter)
            if diameter is None:
                reference = by_pooling([rho] * n, [gamma] * n, gap)
            assert math.isclose(constant.value, reference, rel_tol=1e-12, abs_tol=1e-300), n


def test_closed_forms() -> None:
    """Constant gamma: T gamma^2 for rho >= 1, the classical contractive form below 1, which must not cancel next to it."""
    for rho, n in ((1.0, 7), (1.5, 40), (100.0, 3)):
        assert math.isclose(hs.shifted_interpolation(rho, 0.3, rounds=n).value, n * 0.09, rel_tol=1e-14)
    cells = itertools.product((1e-3, 1e-6, 1e-9, 1e-12, 2.0**-53), (10, 1000, 10**6, 10**9))
    for gap, n in ((0.5, 6), (0.1, 50), *cells):
        rho = 1 - gap
        log_n = n * math.log1p(-(1 - rho))
        form = 0.09 * math.expm1(log_n) ** 2 / -math.expm1(2 * log_n) / (1 - rho) * (1 + rho)
        assert math.isclose(hs.shifted_interpolation(rho, 0.3, rounds=n).value, form, rel_tol=1e-12), (gap, n)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.999999, 1.0, 1.0001, 10.0])
@pytest.mark.parametrize("diameter", [None, 1e-3, 1.0, 100.0])
def test_a_billion_rounds(rho: float, diameter: float | None) -> None:
    """Constants cost the same for a billion rounds, do not overflow, and more rounds never give less."""
    value = hs.shifted_interpolation(rho, 0.1, rounds=10**9, diameter=diameter).value
    assert math.isfinite(value)
    fewer = hs.shifted_interpolation(rho, 0.1, rounds=10**6, diameter=diameter).value
    assert value >= fewer * (1 - 1e-12)


def test_no_overflow() -> None:
    """Rho = 10 over 2,000 rounds: products of 1e2000 leave no trace."""
    n = 2000
    rng = np.random.default_rng(0)
    assert hs.shifted_interpolation(np.full(n, 10.0), np.ones(n)).value == n
    gamma = rng.uniform(0, 1, n)
    found = hs.shifted_interpolation(np.full(n, 10.0), gamma)
    np.testing.assert_allclose(found.value, float(by_pooling([10.0] * n, gamma.tolist())), rtol=1e-12)
    decaying = np.exp(-np.arange(n) * 3.0)
    assert 0 < hs.shifted_interpolation(np.full(n, 10.0), decaying).value < float(decaying @ decaying)
    tiny = hs.shifted_interpolation(np.full(n, 0.1), np.ones(n)).value
    assert math.isclose(tiny, 1.1 / 0.9, rel_tol=1e-12)


@hypothesis.given(st.lists(ROUND, min_size=1, max_size=10), st.data())
def test_monotone(rounds: list[tuple[float, float]], data: st.DataObject) -> None:
    """Raising any rho, gamma, gap or diameter never lowers the value: overestimates are safe."""
    rho, gamma = (np.array(x) for x in zip(*rounds, strict=True))
    n = len(rho)
    more_rho = rho + np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    more_gamma = gamma + np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n)))
    for diameter, more_diameter in ((None, None), (1.5, 1.5), (1.5, 2.0), (2.0, None)):
        less = hs.shifted_interpolation(rho, gamma, initial_gap=0.5, diameter=diameter).value
        more = hs.shifted_interpolation(more_rho, more_gamma, initial_gap=0.7, diameter=more_diameter).value
        assert less <= more * (1 + 1e-12) + 1e-300


@hypothesis.given(st.lists(st.tuples(st.floats(0.1, 3.0), st.floats(0.01, 5.0)), min_size=1, max_size=20))
def test_attained_by_an_affine_chain(rounds: list[tuple[float, float]]) -> None:
    """The chain w' = a_t w + gamma_t b + N(0, 1), a_t = s_{t-1}/s_t <= rho_t, has exactly this Gaussian-DP parameter.

    Its last iterate is N(mean b, variance), so that nothing smaller than the value can be certified from rho and gamma.
    """
    rho, gamma = (np.array(x) for x in zip(*rounds, strict=True))
    found = hs.shifted_interpolation(rho, gamma)
    slopes = np.concatenate([[0.0], found.shifts[:-1] / found.shifts[1:]])
    assert np.all(slopes <= rho * (1 + 1e-12))
    mean, variance = 0.0, 0.0
    for slope, step in zip(slopes, gamma, strict=True):
        mean, variance = slope * mean + step, slope * slope * variance + 1.0
    assert math.isclose(mean * mean / variance, found.value, rel_tol=1e-11)


def test_plain_composition_exactly_when() -> None:
    """The value is sum gamma^2 if and only if gamma_{t-1} <= rho_t gamma_t for every t."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        rho, gamma = rng.uniform(0.3, 2.5, 6), np.exp(rng.normal(0, 0.5, 6))
        plain = np.all(gamma[:-1] <= rho[1:] * gamma[1:])
        assert math.isclose(hs.shifted_interpolation(rho, gamma).value, gamma @ gamma, rel_tol=1e-12) == plain
