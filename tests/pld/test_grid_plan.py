"""The grid of discretised losses: its transforms, its width at every depth, and bounded work on every cell."""

import math
import signal
import time

import mpmath as mp
import numpy as np
import pytest
import scipy.fft

import effort
import hockeystick as hs
import pairs
from distributions import compose
from enumeration import encloses
from hockeystick import _core


def signals():
    """Random, peaked, alternating and wide-ranging signals."""
    generator = np.random.default_rng(7)
    for n in (64, 1024, 16384):
        yield generator.standard_normal(n)
        yield generator.random(n) ** 20
        peak = np.zeros(n)
        peak[3] = 1.0
        yield peak
        yield np.where(np.arange(n) % 2 == 0, 1.0, -1.0) + 1e-9 * generator.standard_normal(n)
        yield np.exp(-0.5 * ((np.arange(n) - n / 2) / 5.0) ** 2)


def test_transform_errors_are_a_fifth_of_the_bound():
    """Forward and backward errors in the 2-norm stay five times below the bound that certificates rely on."""
    for x in signals():
        (first, *packed), back, bound = _core.fft_round_trip(list(x))
        forward = np.array([first, 0.0, *packed, 0.0]).view(complex)  # the first and the last are real
        exact = scipy.fft.rfft(x.astype(np.longdouble))
        assert exact.dtype == np.clongdouble  # NumPy 1 would compute it in double
        assert np.linalg.norm((forward - exact).astype(complex)) <= bound / 5 * np.linalg.norm(exact.astype(complex))
        assert np.linalg.norm(back - x) <= 2 * bound / 5 * np.linalg.norm(x)


@pytest.mark.share(3)
@pytest.mark.parametrize("steps", [2, 30, 3000])
@pytest.mark.parametrize("mu", [0.2, 1.0, 5.0])
def test_grid_against_closed_form_at_every_depth(mu, steps):
    """With a grid asked for, T Gaussians are composed step by step: the closed form is inside down to 1e-300."""
    pld = compose(hs.Gaussian(math.sqrt(steps) / mu), steps, interval=0.006 * mu / math.sqrt(steps))
    for depth in [0.3, 4.0, 15.0, 33.0, 36.5]:
        eps = depth * mu + mu * mu / 2
        exact = hs.theta(eps, mu)
        bracket = pld.delta_bracket(eps)
        encloses(bracket, exact, 1e-12)
        assert bracket.lower > 0.97 * bracket.upper
        encloses(pld.epsilon_bracket(exact), eps, 1e-11)


def test_unsampled_gaussians_are_one():
    """Gaussians of any noise collapse: the bracket of 300 different ones is the closed form to 1e-8, at every depth."""
    pld = compose(hs.Gaussian(20.0))
    for k in range(1, 300):
        pld = pld.compose(compose(hs.Gaussian(20.0 + k / 10)))
    mp.mp.dps = 30
    mu = float(mp.sqrt(mp.fsum(1 / mp.mpf(20.0 + k / 10) ** 2 for k in range(300))))
    for eps in [0.1, 1.0, 5.0, 20.0]:
        bracket = pld.delta_bracket(eps)
        encloses(bracket, hs.theta(eps, mu), 1e-12)
        assert bracket.upper <= bracket.lower * (1 + 1e-8)


def random_cell(generator, widest):
    """Draw noise, rate, steps and delta, all log-uniform."""
    low, high = widest["noise"]
    noise = low * (high / low) ** generator.random()
    rate = widest["rate"] ** generator.random()
    steps = float(math.floor(widest["steps"] ** generator.random()))
    delta = math.exp(math.log(1e-300) + generator.random() * (math.log(0.9) - math.log(1e-300)))
    return noise, rate, steps, delta


def both_directions(noise, rate, steps, delta, interval=0.0):
    """Return the bracket of epsilon and the work of both directions."""
    ledger = pairs.sampled_gaussians(noise, rate, steps)
    ends = [pairs.pld_bracket(ledger, forward, True, delta, interval, 1e-3) for forward in (True, False)]
    return max(end[0] for end in ends), max(end[1] for end in ends), sum(end[4] for end in ends)


@pytest.mark.parametrize("count", [12, pytest.param(effort.at_night(120, by_day=40), marks=pytest.mark.slow)])
def test_work_is_bounded_on_every_legal_cell(count):
    """No cell of the whole domain costs more than the cap, raises, or has its ends in the wrong order."""
    generator = np.random.default_rng(11)
    for _ in range(count):
        cell = random_cell(generator, {"noise": (1e-3, 1e6), "rate": 1e-12, "steps": 1e9})
        lower, upper, work = both_directions(*cell)
        assert 0 <= lower <= upper, cell
        assert work <= 1e9, cell


@pytest.mark.parametrize("count", [20, pytest.param(effort.at_night(200, by_day=70), marks=pytest.mark.slow)])
def test_most_brackets_are_narrow(count):
    """Nine in ten random cells of the usual domain have brackets of 1e-3 epsilon, however small delta is."""
    generator = np.random.default_rng(12)
    narrow = 0
    for _ in range(count):
        cell = random_cell(generator, {"noise": (0.3, 50.0), "rate": 1e-5, "steps": 1e6})
        lower, upper, _ = both_directions(*cell)
        assert lower <= upper, cell
        narrow += upper - lower <= max(1e-3 * upper, 1e-9)
    assert narrow >= 0.9 * count


def test_long_query_is_interrupted():
    """A signal ends a query of seconds within one."""
    ledger = [("gaussian", [1.0 + k / 1000], 0.01, 50.0) for k in range(400)]
    begin = time.perf_counter()
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            pairs.pld_bracket(ledger, True, True, 1e-8, 0.0, 1e-4)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert time.perf_counter() - begin < 1.2
