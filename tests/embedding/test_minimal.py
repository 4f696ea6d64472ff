"""If only one test file is run, then this is the one: everything is there and gives known numbers."""

import math

import numpy as np
import pytest

import hockeystick as hs


def test_theta_is_the_gaussian_mechanism():
    """The value theta(1, 1) equals the reference value of the Gaussian mechanism with noise multiplier 1."""
    assert hs.theta(1.0, 1.0) == pytest.approx(0.1269367375066439458, rel=2e-14)


def test_a_deep_tail_keeps_its_digits():
    """A tail is relatively accurate where two tail functions would cancel to nothing."""
    assert hs.theta(3.0, 0.1) == pytest.approx(7.304806101754309777828064e-200, rel=1e-11)


def test_inverses_go_back():
    """Both inverses undo theta."""
    assert hs.theta(2.0, hs.theta_inverse(2.0, 1e-6)) == pytest.approx(1e-6, rel=1e-12)
    assert hs.theta(hs.gaussian_epsilon(0.7, 1e-6), 0.7) == pytest.approx(1e-6, rel=1e-12)


def test_a_federated_grid_broadcasts():
    """With linear losses the Gaussian-DP parameter is sqrt(T) 2V lr K/(sqrt(m) sigma)."""
    rounds = np.array([[100], [400]])
    noise = np.array([0.5, 1.0, 2.0])
    mu = hs.federated.fedavg_gdp(
        rounds=rounds, local_steps=5, num_clients=16, clip_norm=1.0, noise_std=noise, smoothness=0.0, learning_rate=0.1
    )
    assert mu == pytest.approx(np.sqrt(rounds) * 2 * 0.1 * 5 / (4 * noise), rel=1e-14)


def test_shifted_interpolation_of_two_rounds():
    """Half of a gap of 1 is paid in each of two rounds: 1/4 + 1/4."""
    assert hs.shifted_interpolation([1.0, 1.0], [1.0, 0.0]).value == 0.5


def test_a_published_bound_warns():
    """The printed Theorem 12(a) says that it is false, and is smaller than the truth."""
    cell = {
        "rounds": 50,
        "local_steps": 1,
        "num_clients": 4,
        "clip_norm": 1.0,
        "noise_std": 1.0,
        "smoothness": 1.0,
        "learning_rate": 1.0,
    }
    with pytest.warns(hs.published.UnsoundBoundWarning):
        printed = hs.published.fedavg_gdp(**cell)
    assert printed < hs.federated.fedavg_gdp(**cell) == pytest.approx(math.sqrt(50), rel=1e-14)


def test_bad_input_is_named():
    """An error names the argument, its value and its domain."""
    with pytest.raises(ValueError, match=r"mu\[1\] must be non-negative, not -2.0"):
        hs.gdp_delta([1.0, -2.0], 1.0)
