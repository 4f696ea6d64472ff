"""Printed formulas of the inter-silo and distortion papers: their values, their warnings, and what refutes them."""

import math
from functools import partial

import numpy as np
import pytest

import silo_arguments
import value_tables
from hockeystick import distortion, isrl, published, utility
from hockeystick.published import UnsoundBoundWarning
from hockeystick.published.warning import quietly
from silo_arguments import SIGMA, close, setting

N2 = 1 / 1238**2


SILOS = {"num_records": [1000, 500, 2000], "epsilons": [1.0, 0.5, 2.0], "deltas": [1e-5, 1e-5, 1e-6], "rounds": 50}
XI = [1.9946235e-4, 3.1913976e-3, 1.6906054e-5]

NAMES = {**vars(silo_arguments), **vars(published), "N2": N2, "SILOS": SILOS, "XI": XI}
SOUND = """
experimental_batch_size(num_records=[1238, 202], rounds=[35, 100], epsilon=[6, 3]) -> [256.29035, 17.493713]
xi_aggregate(XI, {3: 1.0}) -> 3.7864067e-4
erm_rounds(**setting(ERM, (100, 2, 1, 25, 1, 1000, 10, 1e-5, 100, 25))) -> 86.858896
erm_rounds(**setting(ERM, (1, 1, 1, 10, 0.5, 2000, 50, 1e-6, 2000, 10))) -> 10.968968
multistage_schedule(**setting(STAGES, (1.0, 0.1, 1.0, 1.0, 2000)))[0] -> (1707, 2)
multistage_schedule(**setting(STAGES, (10.0, 0.1, 2.0, 5.0, 20_000)))[2] -> (5462, 20)
utility_loss_constant(1, 0.5, 0.1, fixed=True) -> 2.35
sampled_update_variance([1, 2, 3], 0.2) -> 2.24
"""


@pytest.mark.parametrize(("call", "expected"), value_tables.rows(SOUND))
def test_sound_and_loose(call: str, expected: str) -> None:
    """Formulas that hold have the printed values and do not warn (a warning would be an error)."""
    value_tables.check(call, expected, NAMES)


def test_exact_mean_of_unequal_silos_is_smaller() -> None:
    """The specification's example: the exact mean of the noise is below the printed aggregate, and equal if all take part."""
    means = isrl.harmonic_participation({2: 0.5, 3: 0.5}, 3)
    exact = isrl.mean_noise_std(np.sqrt(XI)) ** 2 / means.harmonic
    assert exact == pytest.approx(4.7330084e-4, rel=1e-6)
    assert exact < published.xi_aggregate(XI, {2: 0.5, 3: 0.5})
    assert isrl.mean_noise_std(np.sqrt(XI)) ** 2 / 3 == pytest.approx(published.xi_aggregate(XI, {3: 1.0}), rel=1e-12)


AGGREGATOR = {"num_users": 1000, "batch_size": 10, "smoothness": 1.0, "strong_convexity": 0.5}
UNSOUND = """
experimental_sigma(**setting(SIGMA, (1, 1238, 35, 6, N2))) -> (0.008501593, 256, None)
experimental_sigma(**setting(SIGMA, (20, 202, 100, 3, 1 / 202**2))) -> (3.0415417, 17, None)
experimental_local_sgd_sigma(**setting(SIGMA, (1, 1238, 35, 6, N2)), local_steps=443) -> (0.17893783, 1, None)
experimental_local_sgd_sigma(**setting(SIGMA, (1, 1238, 35, 6, N2)), local_steps=443).certified_epsilon > 100 * 6
    -> True
experimental_local_sgd_sigma(**setting(SIGMA, (20, 202, 100, 3, 1 / 202**2)), local_steps=30) -> (16.659210, 1, None)
shuffle_amplification(1, 1e-12, num_silos=10_000, slack=1e-6) -> (0.21402565, 1.02e-06)
shuffle_amplification(0.01, 1e-12, num_silos=10_000, slack=1e-6, num_records=100) -> (0.0025788357, 6.3824689e-06)
privacy_leakage([0.9, 0.1], [0.5, 0.5]) -> 0.318981543477357
bias_gap_bound(0.5, 0.1) -> 0.05
privacy_leakage_upper_bound([0.2, 0.5], [0.1, 0.5], [0.5, 0.2]) -> [0.34464931046, 0.828171817154]
min_distortion_for_budget([0.305, 0.2], [0.3, 0.25]) -> [0.005, 0]
noise_variance_for_budget([0.305, 0.3, 0.108, 0.1], [0.3, 0.295, 0.1, 0.2], [1, 0.04, 2.5, 1], [100, 10_000, 25, 1])
    -> [0.05, 0.0002, 0.4, 0]
utility_loss_upper_bound([0.3, 0.5], [2.6, 11], [0.1, 0.02]) -> [-0.04, -0.28]
sampling_probability([0.305, 0.305, 0.309, 0.3025], 0.3, [1, 0.05, 4, 0.01], [2, 2, 10, 1])
    -> [0.0101020514433644, 0.276393202250021, 0.0230303992915272, 0.5]
tradeoff_upper_bound([0.2, 0.5], [0.1, 0.5], [2.6, 8], [0.3, 1.5]) -> [0.387226763952298, 0.838911078581965]
nfl_utility_weight([1, 2], [0.5, 0.1], [0.1, 0.5]) -> [0.110701379080085, 8.59140914229523]
optimal_tradeoff_conditions(**setting(OPTIMAL, (0.2, 0.5, 4, 1, 2, 0.5))) -> (True, 0.931162730991, 0.0926073857213)
"""


@pytest.mark.parametrize(("call", "expected"), value_tables.rows(UNSOUND))
def test_unsound(call: str, expected: str) -> None:
    """Formulas that do not hold have the printed values, and warn."""
    with pytest.warns(UnsoundBoundWarning, match=r"use hockeystick\."):
        value_tables.check(call, expected, NAMES, least=1e-15)  # C_1 - tau is a difference


@pytest.mark.share(5)
@pytest.mark.parametrize(
    ("epsilon", "size", "drawn_once", "attained"),
    [(3.0, 181, 3.81, 4.10), (0.75, 90, 0.700, 0.0), (1.5, 128, 1.60, 0.0), (6.0, 256, 9.35, 12.85), (12.0, 362, None, 39.2)],
)  # fmt: skip
def test_noise_of_the_experiments(epsilon: float, size: int, drawn_once: float | None, attained: float) -> None:
    """Nominal budgets are exceeded from 1.5 on: the specification's values without replacement; as the paper draws, no less than is attained.

    What linear losses attain with replacement are another library's lower ends.
    """
    noise = quietly(published.experimental_sigma, **setting(SIGMA, (1, 1238, 35, epsilon, N2)))
    assert noise.batch_size == size
    assert noise.certified_epsilon >= attained
    if drawn_once is not None:
        silo = isrl.noisy_mb_sgd_accountant(
            noise_std=noise.noise_std, lipschitz=1.0, num_records=1238, batch_size=size, rounds=35
        )
        assert silo.epsilon(N2) == pytest.approx(drawn_once, rel=5e-3)
        lower = silo.epsilon_bracket(N2).lower
        assert noise.certified_epsilon >= lower
        assert epsilon < 1.5 or lower > epsilon


def test_printed_shuffling() -> None:
    """Theorem G.1's noise with a constant, Corollary D.1's order, and the biased sum of Algorithms 4 and 5, which warn."""
    many = {"num_records": 10, "num_silos": 5000, "silos_per_round": 2000, "rounds": 100}
    with pytest.warns(published.UnsoundBoundWarning, match="constant of Theorem G.1"):
        sigma = published.shuffled_mb_sgd_sigma(**many, lipschitz=2.0, epsilon=0.7, delta=1e-6, constant=4.0)
    logs = math.log(100 * 2000**2 / (5000 * 1e-6)) * math.log(1e8) * math.log(1e6)
    close(sigma, 2 * math.sqrt(4 * 100 * 2000 * logs) / (10 * 5000 * 0.7))
    with pytest.warns(published.UnsoundBoundWarning, match="states an order"):
        order = published.shuffle_composed_epsilon(0.4, 1e-15, num_silos=50_000, num_records=10, compositionality=2.0)
    close(order, 0.4 * math.log(1 / 5e-10) * 4 / math.sqrt(50_000))
    rng = np.random.default_rng(1)
    vectors = rng.uniform(-0.4, 0.4, (30, 4))
    protocol = {"lipschitz": 1.0, "levels": 5, "noise_bits": 3, "probability": 0.25, "rng": rng}
    with pytest.warns(published.UnsoundBoundWarning, match="too large"):
        runs = [published.shuffle_vector_sum(vectors, **protocol) for _ in range(2000)]
    error = np.mean(runs, axis=0) - vectors.sum(axis=0)
    close(error, np.full(4, 29.0), rel=0.01)


def test_lemma_55_is_violated() -> None:
    """The specification's counterexamples: the true leakage is above the printed bound and below the corrected one."""
    xi = distortion.max_bayesian_privacy_leakage([[0.55, 0.45], [0.6, 0.4], [0.4, 0.6]], [0.5, 0.5])
    before = distortion.unprotected_leakage([0.55, 0.45], [0.5, 0.5])
    for share, true, printed in ((0.9, 0.0394327, 0.0389478), (1.0 - 1e-12, 0.0398802, 0.0354071)):
        moved = share * before / distortion.leakage_tv_coefficient(xi)
        belief = distortion.averaged_posterior([[0.55, 0.45], [0.6, 0.4]], [1 - moved, moved])
        leakage = distortion.privacy_leakage(belief, [0.5, 0.5])
        assert leakage == pytest.approx(true, rel=1e-5)
        claimed = quietly(published.privacy_leakage_upper_bound, before, xi, moved)
        assert claimed == pytest.approx(printed, rel=1e-5)
        assert claimed < leakage <= distortion.privacy_leakage_upper_bound(before, xi, moved)


@pytest.mark.parametrize(
    ("dimension", "factor", "reached"),
    [(1, 23.9477181913799, 0.0978), (100, 28.1373256202761, 0.1367), (10_000, 28.2063244621581, 0.13997)],
)
def test_noise_of_lemma_58_is_excessive(dimension: int, factor: float, reached: float) -> None:
    """The printed noise is 24 to 28 times what its own total variation target needs."""
    printed = quietly(published.noise_variance_for_budget, 0.305, 0.3, 1.0, dimension)
    assert printed / distortion.noise_variance_for_tv(0.005, 1.0, dimension) == pytest.approx(factor, rel=1e-6)
    assert distortion.gaussian_tv_isotropic(1.0, printed, dimension) == pytest.approx(reached, rel=1e-3)


def test_lemma_57_holds_and_is_loose() -> None:
    """The exact distance lies between the printed bounds."""
    ratio, dimension = np.logspace(-6, 3, 40), np.array([[1], [2], [30], [10_000]])
    low, high = published.gaussian_tv_bounds(1.0, ratio, dimension)
    exact = distortion.gaussian_tv_isotropic(1.0, ratio, dimension)
    assert (16 * low <= exact).all()
    assert (exact <= np.minimum(high, 1.0)).all()


def test_theorem_51_needs_no_finite_constant() -> None:
    """Zero-mean noise costs d times its variance where the theorem, at any constant, would allow less than nothing."""
    assert distortion.expected_utility_loss_additive_noise(0.05**2, 5) == pytest.approx(0.0125)
    assert quietly(published.utility_loss_upper_bound, 0.4625, 20.0, 0.01672) < 0


def test_aggregator_corollary_as_printed() -> None:
    """Without the noise's dimensions Corollary 1 is exceeded by SGD on a quadratic."""
    arguments = AGGREGATOR | {"noise_std": 1.0, "gradient_bound": 1.0, "gradient_std": 0.0}
    with pytest.warns(UnsoundBoundWarning, match="Corollary 1"):
        printed = published.trusted_aggregator_excess_risk(**arguments)
    assert printed == pytest.approx(2 * (10 + 1) / (0.25 * 1000), rel=1e-12)
    single = arguments | {"num_users": 3000, "batch_size": 1, "strong_convexity": 1.0}
    claimed = quietly(published.trusted_aggregator_excess_risk, **single)
    rng, d, w = np.random.default_rng(6), 100, np.zeros((50, 100))
    for t in range(1, 3001):
        w -= (w + rng.standard_normal(w.shape)) / t
        w /= np.maximum(1.0, np.linalg.norm(w, axis=1, keepdims=True))
    risk = (w**2).sum(axis=1).mean() / 2
    assert claimed < risk < utility.trusted_aggregator_excess_risk(**single, dimension=d)


def test_aggregator_delta_as_printed() -> None:
    """The printed exponent lets later rounds hide more than Theorem 2 gives."""
    arguments = AGGREGATOR | {"noise_std": 5.0, "lipschitz": 1.0, "radius": 1.0}
    with pytest.warns(UnsoundBoundWarning, match="Corollary 1"):
        printed = published.trusted_aggregator_delta(0.1, **arguments)
    assert printed < utility.trusted_aggregator_delta(0.1, **arguments)


ALIKE = [np.full((200, 100), 0.1)] * 2  # squared gradient norms of 1


def loudly(gradients: list[np.ndarray] = ALIKE, start: float = 0.0, **changes: object) -> published.DistortionHistory:
    """Run Algorithm 1 with clients of these gradients."""
    leakage = {"budget": 0.3, "unprotected": 0.305, "variance": 1.0, "utility_constant": 2.6}
    arguments = leakage | {"rounds": 5, "learning_rate": 0.5, "rng": np.random.default_rng(3)}
    clients = [lambda _, each=each: each for each in gradients]
    return published.run_near_optimal_utility_fl(clients, np.full(gradients[0].shape[1], start), **arguments | changes)


run = partial(quietly, loudly)


def test_algorithm_1() -> None:
    """The specification's sampling probability and noise, an empty batch nearly always, and the cost of the noise."""
    history = run()
    np.testing.assert_allclose(history.sampling_probabilities, 6.50042255493e-5, rtol=1e-9)
    np.testing.assert_allclose(history.noise_variances, 0.05, rtol=1e-12)
    assert pytest.approx(0.98708, rel=1e-5) == (1 - 6.50042255493e-5) ** 200
    assert history.batch_sizes.sum() <= 2
    assert history.parameters.shape == (7, 100)  # rounds 0 to 5
    expected = 6 * distortion.expected_utility_loss_additive_noise(0.05, 100, weights=[0.5, 0.5])
    assert (history.parameters[-1] ** 2).sum() == pytest.approx(expected, rel=0.5)


def test_algorithm_1_steps() -> None:
    """Where nothing must be hidden there is neither noise nor a sample; a large constant draws records, and steps follow them."""
    still = run(budget=0.4)
    assert (still.parameters == 0).all()
    moved = run(utility_constant=0.2499 * 200 / 0.005)
    assert (moved.batch_sizes > 80).all()
    deviation = math.sqrt(6 * 0.05 / 2 / 100)  # six rounds of noise 0.05, the mean of two clients and 100 coordinates
    assert moved.parameters[-1].mean() == pytest.approx(-6 * 0.5 * 0.1, abs=4 * deviation)


def test_algorithm_1_of_each_client() -> None:
    """C_1 and the variance of each client have their own noise; without weights the clients' shares are those of their records."""
    gradients = [np.full((100, 4), 0.1), np.full((300, 4), -0.1)]
    each = {"unprotected": [0.305, 0.302], "variance": [[1.0, 2.0], [3.0, 0.5]]}
    history = run(gradients, rounds=1, **each, utility_constant=1e-9, learning_rate=1.0)
    np.testing.assert_allclose(history.noise_variances, [[0.25, 0.2], [0.75, 0.05]], rtol=1e-9)
    steps = {"rounds": 1, "learning_rate": 1.0, "rng": np.random.default_rng(1)}
    # nothing to hide, no noise; records are drawn by the smallest p, which is 0
    silent = run(gradients, 1.0, **steps, unprotected=[0.3, 0.3], utility_constant=1.0)
    assert (silent.parameters == 1).all()
    # p = 1/2, 400 records: both means are exact, whatever is drawn
    half = {"unprotected": 0.3 + 1e-12, "utility_constant": 0.2499 * 4 / 1e-12, "variance": 1e-12}
    whole = run(gradients, **steps | {"rng": np.random.default_rng(1)}, **half)
    np.testing.assert_allclose(whole.parameters[1], -0.25 * 0.1 + 0.75 * 0.1, rtol=1e-3)


def test_equations_18_and_20_clash() -> None:
    """Equation 20 asks for the opposite of Equation 18: both hold only where C_6 (C_1 - tau) is at most tau."""
    found = quietly(
        published.sampling_conditions, [0.02, 0.305, 0.3], [0.01, 0.3, 0.3], [0.2, 1.0, 2.0], [4.0, 2.0, 1.0]
    )
    np.testing.assert_allclose(found.least, [0.276393202250021, 0.0101020514433644, 0.0], rtol=1e-9)
    np.testing.assert_allclose(found.most, [(1 - math.sqrt(0.8)) / 2, 1.0, (1 - math.sqrt(0.4)) / 2], rtol=1e-12)
    assert found.compatible.tolist() == [False, True, True]
    assert found.least[0] > found.most[0]
    with pytest.warns(UnsoundBoundWarning, match="Equation 20"):
        published.sampling_conditions(0.02, 0.01, 0.2, 4.0)
    # a full batch and no noise satisfies (20), p (1 - p) = 0, and leaks C_1
    assert distortion.privacy_leakage([0.9, 0.1], [0.5, 0.5]) > 0.3


def test_algorithm_1_warns_once() -> None:
    """It warns at the caller, once."""
    with pytest.warns(UnsoundBoundWarning, match="neither privacy nor utility") as caught:
        loudly([np.ones((2, 1))], rounds=2, unprotected=0.3, utility_constant=1.0, learning_rate=1.0)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rounds": 0}, "rounds must be an integer"),
        ({"budget": [0.3, 0.3, 0.3]}, "budget must be one number or have the shape"),
        ({"budget": 0.2}, "less than .01 above budget"),
        ({"utility_constant": 1e5}, "at most 1/4"),
        ({"weights": [0.5, 0.6]}, "weights must sum to 1"),
    ],
)
def test_algorithm_1_rejects(changes: dict[str, object], reason: str) -> None:
    """What is outside its domain is refused with a reason."""
    with pytest.raises(ValueError, match=reason):
        run(**changes)
