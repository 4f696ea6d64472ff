"""What broke other accountants, by the number of their issue: each case is answered here, correctly and in bounded time.

The issues are those of meta-pytorch/opacus, microsoft/prv_accountant, google/dpsynth and google/differential-privacy.
"""

import math

import numpy as np
import pytest

import hockeystick as hs


def dpsgd(noise_multiplier, sampling_rate, steps):
    """Return the accountant of one training."""
    return hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise_multiplier), sampling_rate), steps)


def test_opacus_602_bounded_memory():
    """Little noise (a request of 25.8 GiB there) is answered within 512 MB and without a warning."""
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bracket = dpsgd(0.05, 0.01, 1000).epsilon_bracket(1e-5)
    assert 0 < bracket.lower <= bracket.upper < math.inf
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # kB


def test_opacus_300_distinct_steps():
    """A schedule of 300 different noise multipliers is one query; only distinct steps cost."""
    accountant = hs.Accountant()
    for noise in np.linspace(1.0, 2.0, 300):
        accountant.compose(hs.PoissonSampled(hs.Gaussian(float(noise)), 0.01))
    epsilon = accountant.epsilon(1e-5)
    assert dpsgd(2.0, 0.01, 300).epsilon_bracket(1e-5).lower < epsilon < dpsgd(1.0, 0.01, 300).epsilon(1e-5)
    assert len(accountant) == 300  # steps, not entries


def test_google_378_replacement_doubles_the_sensitivity():
    """Under replacement noise 1 is mu = 2 for every method: 10.997 at 1e-6, and four times the Renyi divergence."""
    replaced = hs.Accountant("replace").compose(hs.Gaussian(1.0))
    assert replaced.epsilon(1e-6) == pytest.approx(10.997, abs=5e-4)
    assert replaced.rdp(3.0) == pytest.approx(4 * hs.Accountant().compose(hs.Gaussian(1.0)).rdp(3.0), rel=1e-13)
