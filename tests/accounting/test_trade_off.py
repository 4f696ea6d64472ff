"""What is read off a ledger: trade-off functions, curves of epsilon, and how many more steps fit."""

import functools
import json
import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
from compositions import MIXED, SAMPLED, composed


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_trade_off_of_gaussians(mu):
    """The lower bound is below the exact trade-off function, and hardly."""
    fpr = np.array([1e-9, 1e-3, 0.05, 0.3, 0.5, 0.9, 0.999])
    bound = composed((hs.Gaussian(10 / mu), 100)).trade_off(fpr)
    truth = hs.gdp_trade_off(mu, fpr)
    assert np.all(bound <= truth * (1 + 1e-12))
    np.testing.assert_allclose(bound, truth, rtol=1e-7)


def test_trade_off_of_approximate_dp():
    """The trade-off function of (epsilon, delta)-DP is its two lines, and never above."""
    epsilon, delta = 0.8, 1e-3
    fpr = np.array([0.0, 1e-6, 0.1, 0.31, 0.5, 0.99, 1.0])
    truth = np.maximum(0, np.maximum(1 - delta - np.exp(epsilon) * fpr, np.exp(-epsilon) * (1 - delta - fpr)))
    bound = composed((hs.ApproximateDP(epsilon, delta), 1)).trade_off(fpr)
    assert np.all(bound <= truth * (1 + 1e-12) + 1e-16)
    np.testing.assert_allclose(bound, truth, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("step", [hs.Gaussian(1.0), hs.Laplace(0.001), hs.PoissonSampled(hs.Gaussian(1.0), 0.01)])
def test_the_callers_error_state_changes_nothing(step):
    """Products that underflow, of tiny probabilities and of large epsilons, raise nothing in a caller's error state."""
    rates, ledger = [0.0, 5e-324, 1e-300, 0.01, 0.5, 1.0], hs.Accountant().compose(step)
    for answer in (ledger.trade_off, functools.partial(hs.risk.true_positive_rate, ledger)):
        expected = answer(rates).tolist()
        with np.errstate(all="raise"):
            assert answer(rates).tolist() == expected


def test_advantage():
    """The advantage is delta(0): the total variation distance."""
    assert composed((hs.Gaussian(2.0), 4)).advantage() == pytest.approx(float(hs.gdp_advantage(1.0)), rel=1e-11)


RARE, NOISE, LAPLACE = hs.PoissonSampled(hs.Gaussian(1.0), 0.01), hs.Gaussian(5.0), hs.Laplace(2.0)
SCHEDULES = {
    "a few": [NOISE, NOISE, hs.Laplace(8.0), NOISE],
    "what repeats": [RARE, LAPLACE, LAPLACE, RARE, hs.Gaussian(1.0)] * 4 + [LAPLACE, RARE],
    "nothing": [],
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_curve(name):
    """The curve has epsilon after every step in the order of composition, one by one, also saved and loaded, and never falls."""
    accountant = hs.Accountant()
    alone = [accountant.compose(mechanism).epsilon(1e-5) for mechanism in SCHEDULES[name]]
    for one in (accountant, hs.Accountant.from_state_dict(json.loads(json.dumps(accountant.state_dict())))):
        curve = one.epsilon_curve(1e-5)
        assert curve.shape == (len(alone),)
        assert curve == pytest.approx(alone, rel=1e-9)
        assert np.all(np.diff(curve) >= 0)


@pytest.mark.parametrize("mechanism", MIXED, ids=repr)
def test_curve_keeps_nothing_that_moves_a_number(mechanism):
    """What the steps before have left changes no bit: each number is that of a ledger asked for the first time."""
    curve = composed((mechanism, 9)).epsilon_curve(1e-5)
    anew = np.array([composed((mechanism, count)).epsilon(1e-5) for count in range(1, 10)])
    np.testing.assert_array_equal(curve, np.minimum.accumulate(anew[::-1])[::-1])


def test_curve_of_equal_steps():
    """Equal steps of DP-SGD, sampled or not, take one call of the grid."""
    np.testing.assert_allclose(
        composed((hs.Gaussian(50.0), 500)).epsilon_curve(1e-5),
        hs.gdp_epsilon(np.sqrt(np.arange(1, 501)) / 50, 1e-5),
        rtol=1e-10,
    )
    curve = composed((SAMPLED, 12)).epsilon_curve(1e-5)
    assert curve[-1] == pytest.approx(composed((SAMPLED, 12)).epsilon(1e-5), rel=1e-9)
    both = hs.DistributedDiscreteGaussian(5.0, 10, 2.0, 10)  # whose divergences say more than its pair
    assert composed((both, 3)).epsilon_curve(1e-30)[-1] == composed((both, 3)).epsilon(1e-30) < 3.0


def test_remaining_and_would_exceed():
    """What remains can be composed within the budget, and one step more cannot."""
    accountant = composed((hs.Gaussian(10.0), 10))
    step = hs.Gaussian(20.0)
    count = accountant.remaining(step, epsilon=2.0, delta=1e-6)
    with mp.workdps(30):
        mu = mp.mpf(float(hs.theta_inverse(2.0, 1e-6)))
        assert count == int((mu**2 - mp.mpf(10) / 100) * 400)
    assert not accountant.would_exceed(step, count, epsilon=2.0, delta=1e-6)
    assert accountant.would_exceed(step, count + 1, epsilon=2.0, delta=1e-6)
    assert accountant.remaining(step, epsilon=0.1, delta=1e-6) == 0  # spent already
    assert composed((SAMPLED, 3)).remaining(SAMPLED, epsilon=4.0, delta=1e-5) > 0


def test_remaining_without_limit():
    """A step that leaks nothing, or a budget without end, has the largest count there is, which compose takes."""
    idle = hs.PoissonSampled(hs.Gaussian(1.0), 0.0)
    accountant = composed((idle, 5))
    count = accountant.remaining(idle, epsilon=1.0, delta=0.0)
    assert count == 2**53 - 5
    accountant.compose(idle, count)
    assert accountant.remaining(idle, epsilon=1.0, delta=0.0) == 0
    assert hs.Accountant().remaining(hs.Gaussian(1.0), epsilon=math.inf, delta=0.0) == 2**53
    assert composed((hs.Gaussian(0.1), 1)).remaining(idle, epsilon=1.0, delta=1e-5) == 0
