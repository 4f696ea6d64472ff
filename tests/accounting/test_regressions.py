"""What broke other accountants, by the number of their issue: each case is answered here, correctly and in bounded time.

The issues are those of meta-pytorch/opacus, microsoft/prv_accountant, google/dpsynth and google/differential-privacy.
"""

import math

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs


def dpsgd(noise_multiplier, sampling_rate, steps):
    """Return the accountant of one training."""
    return hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise_multiplier), sampling_rate), steps)


def assert_certified(bracket, width=2e-3):
    """Check that the bracket is one, and narrow."""
    assert bracket.status == "certified"
    assert 0 <= bracket.lower <= bracket.upper < math.inf
    assert bracket.upper - bracket.lower <= width * bracket.upper


def test_opacus_604_large_epsilon():
    """Targets above epsilon = 10 are as good as others, and so are queries that give a thousand."""
    noise = hs.dpsgd_noise_multiplier(0.1, 20, 20.0, 1e-5)
    assert hs.dpsgd_epsilon(noise, 0.1, 20, 1e-5) <= 20.0
    assert hs.dpsgd_epsilon(0.99 * noise, 0.1, 20, 1e-5) > 20.0
    assert dpsgd(0.1, 0.1, 100).epsilon_bracket(1e-5).lower > 1000


def test_opacus_602_bounded_memory():
    """Little noise (a request of 25.8 GiB there) is answered within 512 MB and without a warning."""
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bracket = dpsgd(0.05, 0.01, 1000).epsilon_bracket(1e-5)
    assert 0 < bracket.lower <= bracket.upper < math.inf
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000  # kB


def test_opacus_rdp_floor():
    """More noise always helps: no floor near epsilon = 0.1 (Renyi orders that stop at 63) or 0.01 (an error term)."""
    noise = hs.dpsgd_noise_multiplier(0.01, 1000, 0.01, 1e-5)
    assert hs.dpsgd_epsilon(noise, 0.01, 1000, 1e-5) <= 0.01
    assert hs.dpsgd_epsilon(1e6, 0.01, 1000, 1e-5) == 0


def test_opacus_300_distinct_steps():
    """A schedule of 300 different noise multipliers is one query; only distinct steps cost."""
    accountant = hs.Accountant()
    for noise in np.linspace(1.0, 2.0, 300):
        accountant.compose(hs.PoissonSampled(hs.Gaussian(float(noise)), 0.01))
    epsilon = accountant.epsilon(1e-5)
    assert dpsgd(2.0, 0.01, 300).epsilon_bracket(1e-5).lower < epsilon < dpsgd(1.0, 0.01, 300).epsilon(1e-5)
    assert len(accountant) == 300  # steps, not entries


def test_prv_36_moderate_epsilon():
    """Around epsilon = 6.8 nothing is special."""
    noise = hs.dpsgd_noise_multiplier(0.02, 100, 6.8, 1e-5)
    assert_certified(dpsgd(noise, 0.02, 100).epsilon_bracket(1e-5))


def test_prv_42_rate_a_fifth():
    """Rate 0.2, noise 1, 500 steps has a narrow bracket, below the conversion of its Renyi divergence."""
    accountant = dpsgd(1.0, 0.2, 500)
    bracket = accountant.epsilon_bracket(1e-5)
    assert_certified(bracket)
    orders = np.arange(2.0, 12.0)
    assert bracket.lower <= np.min(accountant.rdp(orders) + math.log(1e5) / (orders - 1))


def test_prv_17_tiny_delta():
    """Epsilon rises smoothly as delta goes through 1e-18 to 1e-30, by concave steps in log delta."""
    accountant = dpsgd(1.0, 0.01, 1000)
    exponents = [14, 16, 18, 20, 30]
    brackets = [accountant.epsilon_bracket(10.0**-e) for e in exponents]
    for bracket in brackets:
        assert_certified(bracket)
    slopes = [
        (b.upper - a.lower) / (d - c)
        for a, b, c, d in zip(brackets, brackets[1:], exponents, exponents[1:], strict=False)
    ]
    assert all(0.2 < slope < 0.5 for slope in slopes)  # 0.3 for each factor of 10 in independent values
    assert brackets[3].lower - 1e-6 <= 6.3617 <= brackets[3].upper + 1e-6  # an independent value, good to 1e-6


def test_dpsynth_71_tiny_target():
    """Gaussians are calibrated to epsilon = 0.01, where grids for tiny noise took 45 minutes and 75 GB."""
    make = lambda noise: hs.Accountant().compose(hs.Gaussian(noise), 8).compose(hs.Gaussian(2 * noise), 100)
    noise = hs.calibrate(make, epsilon=0.01, delta=1e-9, bracket=(1e-3, 1e6))
    assert noise == pytest.approx(math.sqrt(8 + 25) / float(hs.theta_inverse(0.01, 1e-9)), rel=3e-9)


@pytest.mark.parametrize("noise", [0.01, 0.001])
def test_single_gaussian_with_little_noise(noise):
    """One Gaussian with noise 0.01 or 0.001 (19 GB, or a memory error there) is its closed form."""
    epsilon = hs.Accountant().compose(hs.Gaussian(noise)).epsilon(1e-6)
    assert epsilon == pytest.approx(float(hs.gdp_epsilon(1 / noise, 1e-6)), rel=1e-10)


def test_randomized_response_keeps_its_count():
    """100 randomised responses leak far more than one (94.3 against 1.0987): the bracket holds the binomial sum's epsilon."""
    bracket = hs.Accountant("replace").compose(hs.RandomizedResponse(0.5, 2), 100).epsilon_bracket(1e-6)
    assert_certified(bracket)
    assert bracket.lower > 94

    def delta(eps):  # 3/4 against 1/4, a loss of log 3 either way
        losses = [(2 * k - 100) * mp.log(3) for k in range(101)]
        chances = [mp.binomial(100, k) * mp.mpf(3) ** k / mp.mpf(4) ** 100 for k in range(101)]
        return sum(c * -mp.expm1(eps - loss) for c, loss in zip(chances, losses, strict=True) if loss > eps)

    with mp.workdps(40):
        assert delta(mp.mpf(bracket.upper)) <= 1e-6 <= delta(mp.mpf(bracket.lower))


def test_google_378_replacement_doubles_the_sensitivity():
    """Under replacement noise 1 is mu = 2 for every method: 10.997 at 1e-6, and four times the Renyi divergence."""
    replaced = hs.Accountant("replace").compose(hs.Gaussian(1.0))
    assert replaced.epsilon(1e-6) == pytest.approx(10.997, abs=5e-4)
    assert replaced.rdp(3.0) == pytest.approx(4 * hs.Accountant().compose(hs.Gaussian(1.0)).rdp(3.0), rel=1e-13)
