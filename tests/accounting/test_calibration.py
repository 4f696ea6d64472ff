"""Calibration: the feasible end, in both directions, among reals and integers, and clear refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import hockeystick as hs
from hockeystick._numeric.search import Probe, last_whole, narrow


def gaussian(noise_multiplier):
    """Return a training of 100 steps with this noise."""
    return hs.Accountant().compose(hs.Gaussian(noise_multiplier), 100)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("bracket", [(0.1, 1e4), (1e4, 0.1)])
def test_noise(epsilon, bracket):
    """Falling epsilon: the noise is 10 over the inverse of theta, from above, to 2e-9."""
    noise = hs.calibrate(gaussian, epsilon=epsilon, delta=1e-6, bracket=bracket)
    truth = 10 / float(hs.theta_inverse(epsilon, 1e-6))
    assert truth * (1 - 1e-12) <= noise <= truth * (1 + 2e-9)
    assert gaussian(noise).epsilon(1e-6) <= epsilon


def test_steps():
    """Rising epsilon among integers: the number of steps is the integer part of (noise mu)^2."""
    make = lambda steps: hs.Accountant().compose(hs.Gaussian(30.0), steps)
    steps = hs.calibrate(make, epsilon=1.0, delta=1e-5, bracket=(1, 10**9), integer=True)
    assert steps == math.floor((30 * float(hs.theta_inverse(1.0, 1e-5))) ** 2)
    assert isinstance(steps, int)


def test_sampling_rate():
    """Any parameter will do: the sampling rate of a mixed training, never above the budget."""
    make = lambda rate: (
        hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(2.0), rate), 10).compose(hs.Laplace(20.0), 2)
    )
    rate = hs.calibrate(make, epsilon=1.0, delta=1e-5, bracket=(0.0, 1.0))
    assert 0 < rate < 1
    assert make(rate).epsilon(1e-5) <= 1.0 < make(1.01 * rate).epsilon(1e-5)


def test_feasible_ends():
    """If the whole bracket keeps the budget, the answer is the end that spends more; one whose epsilon equals the budget keeps it."""
    assert hs.calibrate(gaussian, epsilon=1e3, delta=1e-5, bracket=(5.0, 50.0)) == 5.0
    assert hs.calibrate(gaussian, epsilon=1e3, delta=1e-5, bracket=(50.0, 5.0)) == 5.0
    assert hs.calibrate(gaussian, epsilon=gaussian(7.0).epsilon(1e-5), delta=1e-5, bracket=(1.0, 7.0)) == 7.0


@given(root=st.floats(-1e6, 1e6), bend=st.floats(0.1, 10), noise=st.floats(0, 1e-3), up=st.booleans())
def test_narrow(root, bend, noise, up):
    """The answer was evaluated and found feasible, and lies within the tolerance of the root, of bent and noisy curves."""
    seen = {}

    def excess(x):
        distance = (x - root) if up else (root - x)
        value = math.copysign(abs(distance) ** bend, distance) * (1 + noise * math.sin(1e9 * x))
        seen[x] = value
        return value

    good, bad = (root - 10, root + 1000) if up else (root + 10, root - 1000)
    found = narrow(excess, Probe(good, excess(good)), Probe(bad, excess(bad)), tolerance=1e-9)
    assert seen[found.x] <= 0
    error = abs(found.x - root)
    if len(seen) < 200:  # the tolerance was met
        assert error <= 2.1e-9 * max(abs(root), 1e-3)
    else:  # near 0 a relative one may not be: every fifth of 200 steps halved the 1010 between the ends
        assert error <= max(2.1e-9 * abs(root), 1010 * 2.0**-40)


@given(limit=st.integers(0, 10**12), power=st.floats(0.3, 3))
def test_last_whole(limit, power):
    """The largest feasible integer is found exactly, in few evaluations."""
    calls = []

    def excess(x):
        calls.append(x)
        return x**power - (limit + 0.5) ** power

    assert last_whole(excess, 10**15) == limit
    assert len(calls) < 110
    assert last_whole(lambda x: -1.0, 1000) == 1000  # noqa: ARG005
    assert np.all(np.array(calls) == np.round(calls))


@given(st.floats(0.01, 0.99))
def test_advantage(advantage):
    """The advantage of 100 Gaussian steps is 2 Phi(5/noise) - 1."""
    noise = hs.calibrate(gaussian, advantage=advantage, bracket=(0.1, 1e5))
    truth = 5.0 / norm.isf(0.5 * (1.0 - advantage))
    assert truth * (1.0 - 1e-11) <= noise <= truth * (1.0 + 3e-9)


@settings(max_examples=6)
@given(st.floats(-12.0, -1.0).map(lambda x: 10.0**x), st.floats(1.1, 1e4))
def test_rates(fpr, times):
    """The true-positive rate of 100 Gaussian steps is Phi(Phi^-1(fpr) + 10/noise)."""
    tpr = min(times * fpr, 0.999)
    noise = hs.calibrate(gaussian, tpr=tpr, fpr=fpr, bracket=(0.1, 1e6))
    truth = 10.0 / (norm.isf(fpr) - norm.isf(tpr))
    assert truth * (1.0 - 1e-9) <= noise <= truth * (1.0 + 1e-6)
