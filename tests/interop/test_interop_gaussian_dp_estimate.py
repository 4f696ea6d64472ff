"""True-positive rates and Gaussian DP parameters of the dp_accounting adapter against closed forms."""

import math

import numpy as np
import pytest
from scipy.stats import laplace, norm

import hockeystick as hs
from hockeystick import risk
from hockeystick.interop.dp_accounting import largest_mu

RATES = np.concatenate([np.geomspace(1e-12, 0.5, 41), np.linspace(0.5, 1.0, 11)])


def spent(mechanism, count=1):
    """Return an accountant of one mechanism."""
    return hs.Accountant().compose(mechanism, count)


@pytest.mark.share(3)
@pytest.mark.parametrize("mu", [0.01, 1.0, 6.0])
def test_gaussian_noise_has_its_own_curve(mu):
    """The best test of Gaussian noise has rate Phi(mu + q(fpr)), which tests/risk holds ours to; mu is found again."""
    assert mu <= largest_mu(spent(hs.Gaussian(1.0 / mu)), 1e-12, 0.5) <= mu * 1.01


@pytest.mark.share(3)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-14])
def test_guarantees_have_two_lines(epsilon, delta):
    """An (epsilon, delta) guarantee has two lines, which meet where mu is 2 q((1 - delta) e^eps/(1 + e^eps) + delta); the range is all that counts."""
    accountant = spent(hs.ApproximateDP(epsilon, delta))
    grown = math.exp(epsilon)
    exact = np.minimum(grown * RATES + delta, 1 - (1 - delta - RATES) / grown)
    found = risk.true_positive_rate(accountant, RATES)
    assert (found >= np.minimum(exact, 1.0) * (1 - 1e-14)).all()
    assert found == pytest.approx(np.minimum(exact, 1.0), rel=1e-3)
    corner = (1 - delta) / (1 + grown)
    mu = -2 * norm.ppf(corner)
    assert mu <= largest_mu(accountant, 1e-12, 0.5) <= mu + 1e-4
    assert mu <= largest_mu(accountant, corner / 50, min(1.5 * corner, 0.5)) <= mu + 1e-4
    below = corner / 3  # a range that ends before the lines meet
    at_end = norm.ppf(grown * below + delta) - norm.ppf(below)
    assert at_end <= largest_mu(accountant, corner / 50, below) <= at_end + 1e-3
    assert at_end <= largest_mu(accountant, below, below) <= at_end + 1e-3


def test_laplace_noise():
    """The curve of Laplace noise is F(1 + F^-1(fpr)); the largest mu over a range is that of a fine grid, from above."""
    accountant = spent(hs.Laplace(1.0))
    exact = laplace.cdf(1.0 + laplace.ppf(RATES[:-1]))
    assert (risk.true_positive_rate(accountant, RATES[:-1]) >= exact * (1 - 1e-14)).all()
    fine = np.geomspace(1e-6, 0.5, 200_001)
    mu = (norm.ppf(laplace.cdf(1.0 + laplace.ppf(fine))) - norm.ppf(fine)).max()
    assert mu <= largest_mu(accountant, 1e-6, 0.5) <= mu + 1e-3


@pytest.mark.share(2)
@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_samples_have_no_better_test_in_either_direction(rate):
    """A threshold on one sampled Gaussian output, with and without the record as the hypothesis: no rate is above ours."""
    accountant = spent(hs.PoissonSampled(hs.Gaussian(0.7), rate))
    at = np.linspace(-12.0, 20.0, 401)
    without, with_it = norm.sf(at), (1 - rate) * norm.sf(at) + rate * norm.sf(at - 1 / 0.7)
    below = norm.cdf(at), (1 - rate) * norm.cdf(at) + rate * norm.cdf(at - 1 / 0.7)
    for fpr, tpr in ((without, with_it), (below[1], below[0])):
        kept = (fpr > 1e-12) & (fpr < 1.0)
        assert (risk.true_positive_rate(accountant, fpr[kept]) >= tpr[kept] * (1 - 1e-13)).all()
        asked = kept & (fpr <= 0.5)
        mu = largest_mu(accountant, float(fpr[asked].min()), float(fpr[asked].max()))
        assert (norm.ppf(tpr[asked]) - norm.ppf(fpr[asked]) <= mu).all()


def test_ends():
    """Infinite losses show at every rate; rates may have any shape."""
    some = spent(hs.ApproximateDP(1.0, 0.01))
    assert largest_mu(hs.Accountant(), 1e-12, 0.5) == 0.0
    assert largest_mu(some, 1e-12, 0.5) == math.inf
    assert math.isfinite(largest_mu(some, 0.1, 0.5))
    assert 0.01 <= risk.true_positive_rate(some, np.zeros((1, 1)))[0, 0] <= 0.01 * (1 + 1e-12)
    assert risk.true_positive_rate(some, np.ones((2, 2))).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert risk.true_positive_rate(some, np.empty(0)).shape == (0,)


def test_adapter():
    """The adapter gives scalars for scalars, takes dp_accounting's deltas, and refuses rates that are none."""
    dp = pytest.importorskip("dp_accounting")
    adapter = pytest.importorskip("hockeystick.interop.dp_accounting")
    accountant = adapter.HockeyStickAccountant().compose(dp.GaussianDpEvent(1.0))
    exact = norm.cdf(1.0 + norm.ppf(0.1))
    assert exact <= accountant.get_true_positive_rates(0.1) <= exact + 1e-5
    assert accountant.get_true_positive_rates(np.array([0.1, 0.2]), np.array([1e-3])).shape == (2,)
    assert 1.0 <= accountant.get_gdp_parameter_estimate() <= 1.001
    assert 1.0 <= accountant.get_gdp_parameter_estimate(np.array([0.01, 0.3, 0.9]), np.array([1e-3])) <= 1.001
    for rates in ([0.0, 0.1], [1.5], [math.nan]):
        with pytest.raises(ValueError, match="false_positive_rates"):
            accountant.get_gdp_parameter_estimate(np.array(rates))
    with pytest.raises(ValueError, match=r"must have one of at most 0\.5"):
        accountant.get_gdp_parameter_estimate(np.array([0.7]))
    accountant.compose(dp.NonPrivateDpEvent())
    assert accountant.get_true_positive_rates(0.1) == 1
    assert accountant.get_true_positive_rates(np.array([0.1, 0.2])).tolist() == [1.0, 1.0]
    assert accountant.get_gdp_parameter_estimate() == math.inf
