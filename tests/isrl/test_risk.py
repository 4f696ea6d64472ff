"""Inter-silo privacy: bounds of the risk, the steps that minimise them, the rounds that reach them, and algorithms that stay below."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick import isrl, published
from silo_arguments import EMPIRICAL, close, setting


def test_epsilon_grid() -> None:
    """The grid is the accountant cell by cell, and NaN where a cell is outside the domain."""
    arguments = {"lipschitz": 1.0, "num_records": 50, "rounds": [[1], [4]], "delta": 1e-5}
    grid = isrl.noisy_mb_sgd_epsilon(**arguments, noise_std=1.0, batch_size=[10, 50])
    one = isrl.noisy_mb_sgd_accountant(noise_std=1.0, lipschitz=1.0, num_records=50, batch_size=10, rounds=4)
    assert grid.shape == (2, 2)
    assert grid[1, 0] == one.epsilon(1e-5)
    again = isrl.noisy_mb_sgd_epsilon(**arguments, noise_std=[1.0, -1.0, 1.0], batch_size=[10, 10, 51], on_error="nan")
    assert np.isnan(again).tolist() == [[False, True, True]] * 2


RISK = setting(
    "diameter rounds lipschitz num_records num_silos silos_per_round dimension noise_std smoothness",
    (2.0, 50, 1.0, 1000, 10, 10, 10, 0.3, 1.0),
)


@pytest.mark.parametrize("convexity", [0.0, 0.25])
@pytest.mark.parametrize("exponent", [-1000, -600, 600, 1000])
def test_risk_scales_with_the_loss(exponent: int, convexity: float) -> None:
    """Losses s f have s times the risk of f to the last digit, also where the square of L is no double."""
    plain = RISK | {"strong_convexity": convexity}
    of_f = isrl.mb_sgd_risk_bound(**plain)
    scaled = {
        name: math.ldexp(plain[name], exponent) for name in ("lipschitz", "noise_std", "smoothness", "strong_convexity")
    }
    assert isrl.mb_sgd_risk_bound(**plain | scaled) == math.ldexp(of_f, exponent)


@pytest.mark.parametrize("diameter", [1e-200, 1e-160, 1e150])
def test_risk_scales_with_the_space(diameter: float) -> None:
    """Only L D, noise D and smoothness D^2 count: the square of D need not be a double."""
    least = RISK | {"smoothness": 1e-300}
    scaled = {"diameter": diameter} | {name: 2.0 * RISK[name] / diameter for name in ("lipschitz", "noise_std")}
    close(isrl.mb_sgd_risk_bound(**least | scaled | {"smoothness": 1e-320}), isrl.mb_sgd_risk_bound(**least))


def test_risk_beyond_the_doubles_is_infinite() -> None:
    """D^2 smoothness/(2 R) overflows, and is no bug."""
    assert isrl.mb_sgd_risk_bound(**RISK | {"diameter": 1e300, "smoothness": 1e300, "lipschitz": 1e300}) == math.inf


def test_step_of_the_specification() -> None:
    """The minimising step and both totals of the specification's example."""
    shape = RISK | {"num_silos": 25, "silos_per_round": 25, "noise_std": 1.597848}
    best = isrl.step_size_convex(**shape)
    close(best, 0.19855348)
    names = ("diameter", "rounds", "lipschitz", "num_records", "dimension", "smoothness")
    printed = published.step_size_convex(**{name: shape[name] for name in names}, silos_per_round=25, epsilon=1.0)
    close(printed, 0.28284271)

    def total(step: float) -> float:
        losses = {"lipschitz": 1.0, "rounds": 50, "learning_rate": step}
        stability = isrl.uniform_stability(**losses, num_records=1000, num_silos=25, smoothness=1.0)
        noise = {"dimension": 10, "noise_std": 1.597848, "silos_per_round": 25}
        empirical = isrl.mb_sgd_empirical_bound(**losses, **noise, diameter=2.0)
        return isrl.population_bound(stability, empirical)

    close([total(printed), total(best)], [0.42840025, 0.40291411])
    close(isrl.mb_sgd_risk_bound(**shape), total(best))


@given(st.floats(0.0, 1.0), st.floats(0.01, 3.0), st.integers(1, 5000))
def test_risk_bound_is_the_sum_of_its_parts(convexity: float, noise: float, rounds: int) -> None:
    """With strong convexity the bound is that of some allowed step, and never above the convex one."""
    shape = RISK | {"noise_std": noise, "rounds": rounds}
    bound = isrl.mb_sgd_risk_bound(**shape, strong_convexity=convexity)
    assert 0 < bound <= isrl.mb_sgd_risk_bound(**shape) * (1 + 1e-12)


def test_strongly_convex_bound_tends_to_the_convex() -> None:
    """The bound is continuous at no strong convexity."""
    arguments = setting(EMPIRICAL, (2, 0.05, 50, 10, 1.6, 25, 1))
    convex = isrl.mb_sgd_empirical_bound(**arguments)
    close(isrl.mb_sgd_empirical_bound(**arguments, strong_convexity=1e-9), convex, rel=1e-8)


def test_moreau_envelope() -> None:
    """The envelope of |v| on [-1, 1] is the Huber function."""

    def prox(w: np.ndarray, beta: float) -> np.ndarray:
        return np.sign(w) * np.maximum(abs(w) - 1 / beta, 0)

    for w, value, gradient in ((0.2, 0.04, 0.4), (1.0, 0.75, 1.0)):
        envelope = isrl.moreau_envelope(lambda v: float(abs(v).sum()), prox, [w], 2.0)
        close([envelope.value, envelope.gradient[0]], [value, gradient])


def test_parameters_of_accelerated_sgd() -> None:
    """The bound at phi is that of `acsa_bound`, and no other phi of 2 beta or more has a smaller one; lambda is V/(D sqrt R)."""
    rounds, distance, variance, beta = 200, 10.0, 25.0, 1.0
    setting = {"rounds": rounds, "distance_squared": distance, "variance": variance, "smoothness": beta}
    found = isrl.accelerated_parameters(**setting)
    bound = lambda phi: 2 * phi * distance / (rounds * (rounds + 1)) + variance * (rounds + 2) / (3 * phi)
    close(bound(found.phi), isrl.acsa_bound(**setting))
    assert all(bound(found.phi) <= bound(phi) for phi in np.geomspace(2 * beta, 1e6, 1000))
    close(found.regularization, 5 / math.sqrt(10 * 200))


def test_stages() -> None:
    """Every stage of the corrected schedule halves the gap."""
    setting = {"smoothness": 10.0, "strong_convexity": 0.1, "gradient_std": 2.0, "initial_gap": 5.0, "rounds": 200_000}
    stages = isrl.multistage_schedule(**setting)
    losses = {"strong_convexity": 0.1, "variance": 4.0, "initial_gap": 5.0}
    assert len(stages) > 3
    for k in range(1, len(stages) + 1):
        assert isrl.multistage_bound(stages[:k], **losses) <= 5.0 * 2.0**-k


SHUFFLED = "smoothness diameter lipschitz silos_per_round num_silos num_records epsilon"


def test_rounds_make_every_term_as_small_as_the_rate() -> None:
    """Those of Theorem G.1's proof, which the printed third term does not, and of Theorem H.1's, whose term is beta D^2/R."""
    shuffled = setting(f"{SHUFFLED} dimension", (1e-6, 1.0, 1.0, 100, 100, 10, 0.1, 2))
    needed, printed = isrl.shuffle_rounds(**shuffled), published.shuffle_rounds(**shuffled)
    rate = 1 / math.sqrt(1000) + math.sqrt(2) / 100  # of Theorem 5.1, logarithms left out
    assert 1 / math.sqrt(needed) < rate < 2.2 / math.sqrt(printed)  # L D/sqrt(R), of its proof
    unequal = {"lipschitz": 2.0, "diameter": 3.0, "silos_per_round": 2.4, "num_records": 500, "dimension": 7}
    for value in (1e-9, 1e-3, 1.0):
        rounds = isrl.unequal_silos_rounds(**unequal, smoothness=1e6, effective_noise=value)
        assert 1e6 * 9 / rounds <= isrl.unequal_silos_rate(**unequal, effective_noise=value).value * (1 + 1e-9)


def test_heterogeneity_that_is_harmless() -> None:
    """At the threshold the rate's last term is the sum of the others."""
    silos = setting(f"{SHUFFLED} dimension", (3.0, 2.0, 1.5, 10, 40, 2000, 0.5, 50), delta=1e-6, gradient_std=0.7)
    for shuffled, rate in ((False, isrl.one_pass_rate), (True, isrl.sdp_one_pass_rate)):
        at = rate(**silos, heterogeneity=isrl.harmless_heterogeneity(**silos, shuffled=shuffled))
        close(at.participation, at.statistical + at.private)
