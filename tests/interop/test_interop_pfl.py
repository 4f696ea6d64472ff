"""pfl-research: the third of epsilon, delta and noise."""

import pytest

import hockeystick as hs
from hockeystick.interop.pfl import PrivacyAccountant


@pytest.mark.parametrize("mechanism", ["gaussian", "Laplace"])
def test_the_third_follows(mechanism):
    """From noise and delta comes epsilon, from epsilon and noise delta, from the budget the noise, each within the others."""
    given = {"num_compositions": 200, "sampling_probability": 0.02, "mechanism": mechanism}
    first = PrivacyAccountant(**given, delta=1e-5, noise_parameter=1.5)
    kind = hs.Gaussian if mechanism == "gaussian" else hs.Laplace
    ours = hs.Accountant().compose(hs.PoissonSampled(kind(1.5), 0.02), 200)
    assert first.epsilon == ours.epsilon(1e-5)
    second = PrivacyAccountant(**given, epsilon=first.epsilon, noise_parameter=1.5)
    assert second.delta == pytest.approx(1e-5, rel=1e-2)
    third = PrivacyAccountant(**given, epsilon=first.epsilon, delta=1e-5)
    assert third.accountant().epsilon(1e-5) <= first.epsilon
    assert third.noise_parameter == pytest.approx(1.5, rel=1e-2)
    all_three = PrivacyAccountant(**given, epsilon=first.epsilon, delta=1e-5, noise_parameter=2.0, noise_scale=0.5)
    assert all_three.cohort_noise_parameter == 1.0


def test_in_their_mechanism():
    """The Gaussian mechanism of pfl takes it for one of its own."""
    pfl = pytest.importorskip("pfl.privacy")
    accountant = PrivacyAccountant(100, 0.01, "gaussian", epsilon=1.0, delta=1e-6)
    mechanism = pfl.GaussianMechanism.from_privacy_accountant(accountant=accountant, clipping_bound=1.0)
    assert mechanism.relative_noise_stddev == accountant.noise_parameter
