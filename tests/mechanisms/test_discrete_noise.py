"""Discrete Gaussian and discrete Laplace noise against sums to fifty digits, and peers."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
import slow_values
from hockeystick import _core

inf = math.inf


MECHANISMS = [
    (hs.DiscreteGaussian if kind == "gaussian" else hs.DiscreteLaplace)(scale, sensitivity)
    for kind, scale, sensitivity in slow_values.DISCRETE
]


def described(mechanism):
    """Return the kind and the scale of the noise."""
    if isinstance(mechanism, hs.DiscreteGaussian):
        return "gaussian", mechanism.sigma
    return "laplace", mechanism.parameter


def pair(mechanism, moved):
    """Return the laws of the moved noise and the noise."""
    return slow_values.discrete_pair(*described(mechanism), moved)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize(("adjacency", "rate"), [("add_or_remove", 1.0), ("replace", 1.0), ("add_or_remove", 0.03)])
def test_one_step_agrees_with_the_sum(mechanism, adjacency, rate):
    """Delta of one step, whole or sampled, in both directions, lies between ends that are close."""
    moved = mechanism.sensitivity * (2 if adjacency == "replace" else 1)
    pair = _core.poisson_sampled(mechanism._pair(adjacency), rate)
    with mp.workdps(50):
        for forward in (True, False):
            for eps in slow_values.DISCRETE_EPS:
                truth = slow_values.committed("discrete_noise_delta", *described(mechanism), moved, rate, forward, eps)
                lower, upper = pair.one_step(forward, False, eps)
                assert lower <= truth <= upper
                assert upper - lower <= 1e-11 * (1 + abs(mp.log(truth + mp.mpf("1e-300")))) * truth + mp.mpf("1e-300")


@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
@pytest.mark.parametrize("mechanism", MECHANISMS[1:3], ids=repr)
def test_two_steps_agree_with_a_convolution(mechanism, adjacency):
    """The loss of two discrete Gaussians is that of their outcomes' sum, whose law is a convolution."""
    moved = mechanism.sensitivity * (2 if adjacency == "replace" else 1)
    with mp.workdps(30):
        p = [float(x) for x in pair(mechanism, moved)[0]]
    twice = np.convolve(p, p)
    reach = (len(p) - 1 - moved) // 2
    loss = moved * (np.arange(len(twice)) - 2 * reach - moved) / mechanism.sigma**2
    for eps in (0.0, 0.5, 2.0):
        truth = np.sum(twice * np.maximum(-np.expm1(np.minimum(eps - loss, 0.0)), 0.0))
        found = hs.Accountant(adjacency).compose(mechanism, 2).delta_bracket(eps)
        assert found.lower <= truth * (1 + 1e-12) + 1e-300
        assert truth * (1 - 1e-12) <= found.upper
        assert found.upper - found.lower <= 2e-3 * found.upper


@given(sigma=st.floats(0.2, 20.0), less=st.integers(1, 6), more=st.integers(0, 6), eps=st.floats(-1.0, 5.0))
def test_moving_less_leaks_less(sigma, less, more, eps):
    """A query that moves by less than the sensitivity is dominated, for both kinds of noise."""
    for of in (hs.DiscreteGaussian, lambda x, s: hs.DiscreteLaplace(1 / x, s)):
        deltas = []
        for sensitivity in (less, less + more):
            pair = of(sigma, sensitivity)._pair("add_or_remove")
            deltas.append(pair.one_step(True, False, eps))
        assert deltas[0][0] <= deltas[1][1]


def test_wide_noise_is_nearly_continuous():
    """From sigma = 10 up a discrete Gaussian is the continuous one to 1e-3, and no table is too long."""
    for sigma in (10.0, 1e3, 1e5):
        moved = int(sigma)
        found = hs.Accountant().compose(hs.DiscreteGaussian(sigma, moved)).delta(1.0)
        assert found == pytest.approx(float(hs.theta(1.0, moved / sigma)), rel=20 / sigma)


def test_far_tails():
    """Delta goes on to the end of the doubles, its lower end too, and is no more than its upper end below them."""
    accountant = hs.Accountant().compose(hs.DiscreteGaussian(1.0))
    with mp.workdps(50):
        for eps in (20.2, 35.7, 39.3, 60.0):
            truth = slow_values.discrete_noise_delta("gaussian", 1.0, 1, 1.0, True, eps)
            found = accountant.delta_bracket(eps)
            assert found.lower <= truth <= found.upper
    assert 0 < accountant.delta(35.7) < 1e-270
    assert accountant.epsilon(0.0) == inf


def test_largest_loss_of_discrete_laplace():
    """At delta = 0 epsilon is parameter times how far a record moves, n times."""
    for adjacency, moved in (("add_or_remove", 3), ("replace", 6)):
        found = hs.Accountant(adjacency).compose(hs.DiscreteLaplace(0.7, 3), 5).epsilon_bracket(0.0)
        assert found.lower <= 3.5 * moved <= found.upper <= 3.5 * moved * (1 + 1e-12)


@pytest.mark.parametrize("order", [1.5, 2.0, 7.0])
@pytest.mark.parametrize("mechanism", MECHANISMS[1:5], ids=repr)
def test_renyi_divergence(mechanism, order):
    """Never below the sum, and for discrete Laplace, or Gaussian of an integer order, that sum."""
    with mp.workdps(40):
        p, q = pair(mechanism, mechanism.sensitivity)
        truth = mp.log(mp.fsum(a ** mp.mpf(order) * b ** (1 - mp.mpf(order)) for a, b in zip(p, q, strict=True)))
        truth /= order - 1
        found = hs.Accountant().compose(mechanism, 3).rdp(order)
        assert 3 * truth * (1 - mp.mpf("1e-13")) <= found
        if isinstance(mechanism, hs.DiscreteLaplace) or order == int(order):
            assert found <= 3 * truth * (1 + mp.mpf("1e-10"))


@pytest.mark.parametrize("mechanism", [hs.DiscreteGaussian(3.0, 2), hs.DiscreteLaplace(0.4, 2)], ids=repr)
def test_peer(mechanism):
    """Ten steps agree with dp_accounting, whose grid is pessimistic."""
    pld = pytest.importorskip("dp_accounting").pld.privacy_loss_distribution
    if isinstance(mechanism, hs.DiscreteGaussian):
        theirs = pld.from_discrete_gaussian_mechanism(mechanism.sigma, mechanism.sensitivity)
    else:
        theirs = pld.from_discrete_laplace_mechanism(mechanism.parameter, mechanism.sensitivity)
    theirs = theirs.self_compose(10)
    found = hs.Accountant().compose(mechanism, 10)
    for eps in (0.5, 2.0, 5.0):
        assert found.delta_bracket(eps).lower <= theirs.get_delta_for_epsilon(eps) * (1 + 1e-9)
        assert found.delta(eps) == pytest.approx(theirs.get_delta_for_epsilon(eps), rel=1e-2)


BAD = [
    (ValueError, r"sigma must lie in \[0.001, 100000\], not 0", lambda: hs.DiscreteGaussian(0.0)),
    (ValueError, "not nan", lambda: hs.DiscreteGaussian(math.nan)),
    (ValueError, "not 1000000", lambda: hs.DiscreteGaussian(1e6)),  # the table of tails would be too long
    (TypeError, "sensitivity must be an integer", lambda: hs.DiscreteGaussian(1.0, 1.5)),
    (ValueError, "sensitivity must be an integer in", lambda: hs.DiscreteGaussian(1.0, 0)),
    (ValueError, "sensitivity must be at most 1000000000", lambda: hs.DiscreteGaussian(1.0, 10**10)),
    (ValueError, "parameter must be positive", lambda: hs.DiscreteLaplace(-1.0)),
    (ValueError, "sensitivity must be at most 10000", lambda: hs.DiscreteLaplace(1e-6, 10**5)),
    (ValueError, "at most 300, not 301", lambda: hs.DiscreteLaplace(0.301, 1000)),  # masses would leave the doubles
    (TypeError, "sensitivity", lambda: hs.DiscreteLaplace(1.0, True)),  # a bool is no count
]


@pytest.mark.parametrize(("error", "message", "make"), BAD)
def test_bad_arguments(error, message, make):
    """A constructor names the argument, its value and its domain."""
    with pytest.raises(error, match=message):
        make()
