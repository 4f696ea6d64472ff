"""Attack risk: the package's numbers, the peer's values, and noise from risk."""

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import risk
from hockeystick.interop import riskcal

TRAINING = (1.0, 0.01, 300)
OURS = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 300)


def test_numbers_are_those_of_the_accountant():
    """Advantage, trade-off and Bayes risk, of priors in any shape, are those that the package has under other names."""
    assert riskcal.get_advantage_for_dpsgd(*TRAINING) == OURS.advantage()
    alpha, priors = np.linspace(0.05, 0.9, 7), np.array([[0.0, 0.3], [0.9, 1.0]])
    assert (riskcal.get_beta_for_dpsgd(*TRAINING, alpha) == OURS.trade_off(alpha)).all()
    expected = [[risk.bayes_risk(OURS, prior) for prior in row] for row in priors]
    assert riskcal.get_bayes_risk(OURS, priors).tolist() == expected


def test_noise_from_risk():
    """The noise found is feasible, and a thousandth less is not."""
    sigma = riskcal.find_noise_multiplier_for_advantage(0.1, 0.01, 300, grid_step=1e-4, noise_max=50.0)
    assert (
        riskcal.get_advantage_for_dpsgd(sigma, 0.01, 300)
        <= 0.1
        < riskcal.get_advantage_for_dpsgd(0.999 * sigma, 0.01, 300)
    )
    sigma = riskcal.find_noise_multiplier_for_err_rates(0.1, 0.8, 0.01, 300, beta_tol=1e-3)
    betas = [float(riskcal.get_beta_for_dpsgd(x, 0.01, 300, 0.1)) for x in (sigma, 0.999 * sigma)]
    assert betas[0] >= 0.8 > betas[1]


def test_no_noise_where_none_is_needed():
    """Ten steps that draw a record with probability 1/10 miss it with .35; no step draws one at rate 0."""
    assert riskcal.find_noise_multiplier_for_err_rates(0.1, 0.0, 0.1, 10) == 0.0
    assert riskcal.find_noise_multiplier_for_err_rates(0.1, 0.8, 0.0, 10) == 0.0
    with pytest.raises(ValueError, match="beta must be below 1 - alpha by more than rounding"):
        riskcal.find_noise_multiplier_for_err_rates(0.1, 0.9 - 1e-16, 0.1, 10)


def test_former_names():
    """Names that riskcal will drop are taken, with its warning; the grid of its distributions is taken everywhere."""
    with pytest.warns(DeprecationWarning, match="advantage_error is deprecated"):
        sigma = riskcal.find_noise_multiplier_for_advantage(0.1, 0.01, 300, advantage_error=1e-2)
    assert riskcal.get_advantage_for_dpsgd(sigma, 0.01, 300, grid_step=1e-2) <= 0.1
    with pytest.warns(DeprecationWarning, match="mu_max is deprecated"):
        sigma = riskcal.find_noise_multiplier_for_err_rates(0.1, 0.5, 0.01, 300, mu_max=40.0)
    assert riskcal.get_beta_for_dpsgd(sigma, 0.01, 300, 0.1, grid_step=1e-2) >= 0.5


def test_beside_riskcal():
    """Riskcal's numbers, from connected dots of step 1e-4, agree to what such a grid gives."""
    peer = pytest.importorskip("riskcal.analysis")
    plds = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    pld = plds.from_gaussian_mechanism(1.0, sampling_prob=0.01).self_compose(300)
    assert riskcal.get_advantage_for_dpsgd(*TRAINING) == pytest.approx(peer.get_advantage_from_pld(pld), rel=1e-4)
    assert riskcal.get_beta_for_dpsgd(*TRAINING, 0.1) == pytest.approx(peer.get_beta_from_pld(pld, alpha=0.1), rel=1e-4)
    for prior in (0.3, 0.5, 0.8):
        assert riskcal.get_bayes_risk(OURS, prior) == pytest.approx(peer.get_bayes_risk_from_pld(pld, prior), rel=1e-3)
