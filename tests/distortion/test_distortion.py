"""Leakage and utility under distortion: the specification's values, exact references, and what is refused."""

from __future__ import annotations

import math
import sys

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from hockeystick import distortion, isrl

REL = 1e-9
LN5, LOG_2 = math.log(5.0), math.log(2.0)
GRADIENTS = [(1.0, 0.0), (0.0, 2.0), (1.0, 1.0), (-2.0, 0.5)]
KERNEL = [[0.6, 0.4], [0.9, 0.1]]
FAIR = [0.5, 0.5]

VALUES = {
    "gap": (distortion.sum_of_squares_gap([1, 2], 0), 5),
    "gap, scaled": (distortion.sum_of_squares_gap([1, 2], 0, scale=0.5), 2.5),
    "expected gap": (distortion.expected_gap([1, 2], [[0.5, 0], [0, 0.25]], 0), (0.75, 5, 5.75)),
    "expected gap, correlated": (distortion.expected_gap([0, 0], [[1, 0.3], [0.3, 2]], [1, -1]), (3, 2, 5)),
    "total variance": (distortion.total_variance(FAIR, [0, 2], [1, 3]), (2, 1, 3)),
    "total variance, one mean": (distortion.total_variance([0.25, 0.75], [1, 1], [0, 4]), (3, 0, 3)),
    "utility": (distortion.utility_loss([1, 1], [1.1, 0.9], 0), 0.02),
    "utility, printed sign": (distortion.utility_loss([1, 1], [1.1, 0.9], 0, sign="original_minus_protected"), -0.02),
    "utility, scaled": (distortion.utility_loss([0, 0], [3, 4], 0, scale=2), 50),
    "federated utility": (distortion.federated_utility_loss([[0.1, 0.2], [0.3, 0.4]]), 0.25),
    "noise": (distortion.expected_utility_loss_additive_noise(0.01, 10), 0.1),
    "noise of 4": (distortion.expected_utility_loss_additive_noise(0.01, 10, weights=[0.25] * 4), 0.025),
    "noise of 3": (distortion.expected_utility_loss_additive_noise(0.01, 10, weights=[0.5, 0.25, 0.25]), 0.0375),
    "JS": (distortion.jensen_shannon_divergence(FAIR, [0.9, 0.1]), 0.101749225079197),
    "JS distance": (distortion.jensen_shannon_distance(FAIR, [0.9, 0.1]), 0.318981543477357),
    "JS of 3": (distortion.jensen_shannon_divergence([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]), 0.0466133843198648),
    "JS of disjoint": (distortion.jensen_shannon_divergence([1, 0], [0, 1]), LOG_2),
    "JS distance of disjoint": (distortion.jensen_shannon_distance([1, 0], [0, 1]), 0.832554611157698),
    "JS of close": (distortion.jensen_shannon_divergence([0.6, 0.4], FAIR), 0.0050593899289876),
    "belief": (distortion.averaged_posterior(KERNEL, [0.75, 0.25]), (0.675, 0.325)),
    "belief, told": (distortion.averaged_posterior([[1, 0], [0, 1]], [0.3, 0.7]), (0.3, 0.7)),
    "leakage": (distortion.privacy_leakage([0.8, 0.2], FAIR), 0.225104058127715),
    "mean leakage": (
        distortion.federated_privacy_leakage(distortion.privacy_leakage([[0.9, 0.1], [0.8, 0.2]], FAIR), "mean"),
        0.272042800802536,
    ),
    "worst leakage": (distortion.federated_privacy_leakage([0.1, 0.3, 0.2]), 0.3),
    "unprotected": (distortion.unprotected_leakage([0.6, 0.4], FAIR), 0.0711293886448323),
    "unprotected, less": (distortion.unprotected_leakage([0.55, 0.45], FAIR), 0.0354070906502),
    "log ratio": (distortion.max_bayesian_privacy_leakage(KERNEL, FAIR), LN5),
    "log ratio, less": (distortion.max_bayesian_privacy_leakage([[0.55, 0.45], [0.6, 0.4]], FAIR), -math.log(0.8)),
    "log ratio, told": (distortion.max_bayesian_privacy_leakage([[1, 0]], FAIR), math.inf),
    "C_2 .01": (distortion.leakage_tv_coefficient(0.01), 0.0101006700133779),
    "C_2 .1": (distortion.leakage_tv_coefficient(0.1), 0.110701379080085),
    "C_2 .5": (distortion.leakage_tv_coefficient(0.5), 0.859140914229523),
    "C_2 ln 5": (distortion.leakage_tv_coefficient(LN5), 12),
    "C_2 2": (distortion.leakage_tv_coefficient(2), 26.7990750165721),
    "C_2, no end": (distortion.leakage_tv_coefficient([400, math.inf]), (math.inf, math.inf)),
    "shift .1": (distortion.belief_shift_bound(0.1, 0.2) ** 2, 0.000490191813209),
    "shift .5": (distortion.belief_shift_bound(0.5, 0.1) ** 2, 0.00738123110503),
    "shift, free of xi": (distortion.belief_shift_bound(2, 0.25), math.sqrt(0.25 * LOG_2)),
    "shift of nothing": (distortion.belief_shift_bound(math.inf, 0.0), 0.0),
    "TV": (distortion.total_variation_distance(FAIR, [0.9, 0.1]), 0.4),
    "TV of 3": (distortion.total_variation_distance([0.2, 0.3, 0.5], [0.1, 0.6, 0.3]), 0.3),
    "bias gap .5": (distortion.bias_gap_bound(0.5, 0.1), 0.1),
    "bias gap 1": (distortion.bias_gap_bound(1, 0.25), 0.5),
    "utility bound": (distortion.utility_loss_tv_bound(2, 0.1), 0.4),
    "utility bound, scaled": (distortion.utility_loss_tv_bound(1, 0.25, scale=2), 0.5),
    "variance gap": (distortion.variance_gap_bound(0.3, 1, 0.1), -0.2),
    "lower leakage": (
        distortion.privacy_leakage_lower_bound([0.3, 0.2], 0.1, [0.5, 0.1]),
        (0.24464931046, 0.188929862092),
    ),
    "upper leakage": (
        distortion.privacy_leakage_upper_bound([0.3, 0.2], 0.1, [0.5, 0.1]),
        (0.35535068954, 0.211070137908),
    ),
    "least distortion": (
        distortion.min_distortion_for_budget(0.3, [0.28, 0.1], [0.1, 0.5]),
        (0.180666222645, 0.232790682748),
    ),
    "least distortion, any xi": (distortion.min_distortion_for_budget(0.3, 0.1, math.inf), 0.0577078016356),
    "no distortion needed": (distortion.min_distortion_for_budget(0.2, 0.25, 0.0), 0.0),
    "LDP": (
        distortion.privacy_leakage_bound_from_ldp([0.1, 0.5, 1, 2]),
        (0.0353332596044, 0.174068555405, 0.333082679934, 0.572549845405),
    ),
    "LDP, inverse": (
        distortion.ldp_epsilon_for_leakage([0.1, 0.3, 0.5]),
        (0.284269229921, 0.889974055794, 1.64263436949),
    ),
    "LDP, ends": (distortion.ldp_epsilon_for_leakage([0.0, math.sqrt(LOG_2)]), (0.0, math.inf)),
    "update": (distortion.sampled_update_mean(1, [1, 2, 3], 0.2, noise=0.1), -0.1),
    "update of vectors": (distortion.sampled_update_mean(0, GRADIENTS, 0.3), (0, -1.05)),
    "variance": (distortion.sampled_update_variance([1, 2, 3], 0.2), 2.24),
    "variance of 4 rounds": (distortion.sampled_update_variance([1, 2, 3], 0.2, num_rounds=4), 0.56),
    "variance of vectors": (distortion.sampled_update_variance(GRADIENTS, 0.3), 2.3625),
    "variance of vectors, 4": (distortion.sampled_update_variance(GRADIENTS, 0.3, num_rounds=4), 0.590625),
    "variance of vectors, 10": (distortion.sampled_update_variance(GRADIENTS, 0.3, num_rounds=10), 0.23625),
    "batch mean": (
        distortion.batch_mean_gradient_variance(GRADIENTS, 0.3),
        (1.36889311094, 0.501579155152, 0.2401),
    ),
    "batch factor": (distortion.batch_mean_gradient_variance([1.0] * 50, 0.1).factor, 0.232437275387),
    "normalised": (distortion.normalised_gradient_variance(GRADIENTS, 0.3), 1.640625),
    "trade-off": (
        distortion.tradeoff_upper_bound([0.2, 0.5], [0.1, 0.5], [0.1, 0.05]),
        (0.222140275816, 0.585914091423),
    ),
    "weight": (distortion.nfl_utility_weight([1, 2], [0.5, 0.1], [0.1, 0.5]), (0.44280551632034, 34.3656365691809)),
    "ratio": (distortion.distortion_ratio([0.1, 0.2, 0.3], 0.2), 1),
    "ratio of 2": (distortion.distortion_ratio([0.05, 0.05], 0.1), 0.5),
    "near optimal": (distortion.max_near_optimal_gap([0, 0.1, 0.5], [0.1, 0.2, 0.7], 0.5), 0.1),
    "near optimal, more": (distortion.max_near_optimal_gap([0, 0.1, 0.5], [0.1, 0.2, 0.7], 0.7), 0.5),
    "near optimal, all": (distortion.max_near_optimal_gap([0, 0.1], [0.1, 0.4 + 0.5], 1.0), 0.1),
    "average": (distortion.aggregate([[1, 2], [3, 6]]), (2, 4)),
    "weighted average": (distortion.aggregate([[1, 2], [3, 6]], [0.25, 0.75]), (2.5, 5)),
    "KL": (distortion.kl_divergence([0.5, 0.5, 0.0], [0.25, 0.25, 0.5]), LOG_2),
    "KL, no end": (distortion.kl_divergence(FAIR, [1, 0]), math.inf),
    "bias": (distortion.bias_norm([3, 4], 0), 5),
    "bounded": (distortion.bounded_function_gap(2, 0.25), 0.5),
}


@pytest.mark.parametrize("case", VALUES)
def test_values(case: str) -> None:
    """Every formula has the specification's value, to the digits given."""
    value, expected = VALUES[case]
    np.testing.assert_allclose(np.asarray(value, dtype=float), np.asarray(expected, dtype=float), rtol=REL, atol=1e-15)


TV = {
    (1, 0.01): 0.00240768379944585,
    (1, 1): 0.166064074983513,
    (2, 0.5): 4 / 27,
    (10, 0.1): 0.0834611641790038,
    (100, 0.05): 0.136726920643536,
    (1000, 0.01): 0.0885656128277734,
    (10000, 0.005): 0.139967859877155,
    (1, 10): 0.520002650824056,
    (100, 1): 0.985251147254215,
    (5, 0): 0.0,
}


@pytest.mark.parametrize(("dimension", "ratio"), TV)
def test_gaussian_tv(dimension: int, ratio: float) -> None:
    """The exact distance has the specification's values, whatever the unit."""
    expected = TV[dimension, ratio]
    value = distortion.gaussian_tv_isotropic([1.0, 4.0], [ratio, 4.0 * ratio], dimension)
    np.testing.assert_allclose(value, expected, rtol=1e-11)


@pytest.mark.parametrize("dimension", [1, 2, 3, 41, 1000, 10**6])
def test_gaussian_tv_for_all_ratios(dimension: int) -> None:
    """It agrees with the incomplete gamma function in 60 digits, where the difference of two does not cancel."""
    for ratio in (1e-14, 1e-7, 1e-4, 3e-3, 0.05, 0.5, 1.0, 1.5, 30.0, 1e6):
        with mp.workdps(60):
            rho, half = mp.mpf(ratio), mp.mpf(dimension) / 2
            low = half * mp.log1p(rho) / rho
            reference = mp.quad(
                lambda x, a=half: mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a)),
                mp.linspace(low, low * (1 + rho), 3) if rho < 2 else [low, half, half + 20 * mp.sqrt(half), mp.inf],
            ) - (0 if rho < 2 else mp.gammainc(half, low * (1 + rho), regularized=True))
        value = distortion.gaussian_tv_isotropic(1.0, ratio, dimension)
        if reference < 1 - 1e-12:
            assert value == pytest.approx(float(reference), rel=2e-11), (dimension, ratio)


def test_gaussian_tv_by_sampling() -> None:
    """The distance is what the likelihood-ratio test reaches on a million draws, to five standard errors."""
    rng = np.random.default_rng(7)
    n, d, ratio = 10**6, 2, 0.5
    radius = d * (1 + ratio) * math.log1p(ratio) / ratio
    near = ((rng.standard_normal((n, d)) ** 2).sum(axis=1) < radius).mean()
    far = (((1 + ratio) * rng.standard_normal((n, d)) ** 2).sum(axis=1) < radius).mean()
    assert abs(near - far - distortion.gaussian_tv_isotropic(1.0, ratio, d)) < 5 * math.sqrt(0.5 / n)


INVERSE = {(1, 0.005): 0.0208788159274389, (100, 0.05): 0.0179245287059941, (1000, 0.3): 0.0350711197668336}


@pytest.mark.parametrize(("dimension", "target"), INVERSE)
def test_noise_variance_for_tv(dimension: int, target: float) -> None:
    """The inverse has the specification's values and never exceeds the target."""
    value = distortion.noise_variance_for_tv(target, 2.0, dimension)
    assert value == pytest.approx(2 * INVERSE[dimension, target], rel=1e-11)
    assert distortion.gaussian_tv_isotropic(2.0, value, dimension) <= target


def test_scipy_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without SciPy the one formula that needs it says which extra has it."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match=r"pip install 'hockeystick\[distortion\]'"):
        distortion.gaussian_tv_isotropic(1.0, 0.1, 3)


def test_noise_variance_for_every_tv() -> None:
    """The inverse undoes the distance from 1e-12 to close to 1, and nothing is allowed for 0."""
    targets = np.array([[1e-12, 1e-6, 0.01, 0.3, 0.9, 0.999]])
    dimensions = np.array([[1], [7], [10_000]])
    noise = distortion.noise_variance_for_tv(targets, 1.0, dimensions)
    again = distortion.gaussian_tv_isotropic(1.0, noise, dimensions)
    np.testing.assert_allclose(again, np.broadcast_to(targets, again.shape), rtol=1e-9)
    assert distortion.noise_variance_for_tv(0.0, 1.0, 3) == 0.0
    # Far below, rho sqrt(d)/(2 sqrt(pi)) bounds the distance, which is rho/sqrt(2 pi e) for d = 1.
    smallest = 1e-310 * math.sqrt(2 * math.pi * math.e)
    assert distortion.noise_variance_for_tv(1e-310, 1.0, 1) == pytest.approx(smallest, rel=1e-6, abs=0)


def test_ratios_beyond_the_doubles() -> None:
    """Where a ratio of variances or probabilities overflows, its logarithm does not."""
    tiny = 2.0**-1074
    assert distortion.gaussian_tv_isotropic(1e-300, [1e300, 1e8], 3).tolist() == [1.0, 1.0]
    assert distortion.kl_divergence([1.0, 0.0], [tiny, 1.0]) == pytest.approx(1074 * LOG_2)
    assert distortion.kl_divergence([1.0, 0.0], [0.0, 1.0]) == math.inf
    assert distortion.max_bayesian_privacy_leakage([FAIR], [tiny, 1.0]) == pytest.approx(1073 * LOG_2)
    assert distortion.max_bayesian_privacy_leakage([[1.0, 0.0]], FAIR) == math.inf


def pmfs(size: int) -> st.SearchStrategy[np.ndarray]:
    """Return distributions, some with zeros."""
    weights = st.lists(st.sampled_from([0.0, 1e-6, 0.1, 0.5, 1.0, 3.0]), min_size=size, max_size=size)
    return weights.filter(lambda w: sum(w) > 0).map(lambda w: np.array(w) / sum(w))


@given(pmfs(4), pmfs(4))
def test_jensen_shannon_agrees_with_scipy(p: np.ndarray, q: np.ndarray) -> None:
    """SciPy's distance, which is the square root, is the same."""
    assert distortion.jensen_shannon_distance(p, q) == pytest.approx(jensenshannon(p, q), abs=3e-8)


@pytest.mark.parametrize("step", [1e-3, 1e-8, 1e-13])
def test_jensen_shannon_of_close_distributions(step: float) -> None:
    """No digits are lost for close distributions: the divergence is step^2/2 up to its square."""
    high = 0.5 + step
    exact_step = high - 0.5
    value = distortion.jensen_shannon_divergence([high, 1 - high], FAIR)
    assert value == pytest.approx(exact_step**2 / 2, rel=1e-9 + 2 * step**2)


@given(pmfs(3), st.lists(pmfs(2), min_size=3, max_size=3), pmfs(3), pmfs(2))
def test_leakage_bounds_hold(p: np.ndarray, kernel: list[np.ndarray], q: np.ndarray, prior: np.ndarray) -> None:
    """The true leakage of any kernel and prior lies between the two bounds."""
    if (prior == 0).any():
        prior = np.array([0.25, 0.75])
    xi = distortion.max_bayesian_privacy_leakage(kernel, prior)
    tv = distortion.total_variation_distance(p, q)
    before = distortion.unprotected_leakage(distortion.averaged_posterior(kernel, p), prior)
    after = distortion.privacy_leakage(distortion.averaged_posterior(kernel, q), prior)
    assert distortion.privacy_leakage_lower_bound(before, xi, tv) <= after + 1e-9
    assert after <= distortion.privacy_leakage_upper_bound(before, xi, tv) + 1e-9


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 2.0, 30.0])
def test_leakage_from_ldp_is_attained(epsilon: float) -> None:
    """Beliefs whose ratio to the prior is e^epsilon and e^-epsilon have exactly the leakage that is bounded."""
    keep = float(isrl.randomized_response_keep_prob(epsilon, 2))
    leakage = distortion.privacy_leakage([keep, 1 - keep], [1 - keep, keep])
    assert leakage == pytest.approx(float(distortion.privacy_leakage_bound_from_ldp(epsilon)), rel=1e-9)


@given(st.floats(0.01, 5.0), st.floats(0.01, 0.99))
def test_leakage_of_randomised_response(epsilon: float, prior: float) -> None:
    """Randomised response leaks at most what is bounded for half its epsilon, and that at one prior."""
    keep = float(isrl.randomized_response_keep_prob(epsilon, 2))

    def leakage(a: float) -> float:
        belief = a * keep / (a * keep + (1 - a) * (1 - keep))
        return float(distortion.privacy_leakage([belief, 1 - belief], [a, 1 - a]))

    most = float(distortion.privacy_leakage_bound_from_ldp(epsilon / 2))
    assert leakage(prior) <= most * (1 + 1e-9)
    assert leakage(1 / (1 + math.exp(epsilon / 2))) == pytest.approx(most, rel=1e-9)


@given(st.floats(1e-9, 0.8325))
def test_ldp_inverse_is_feasible(budget: float) -> None:
    """The epsilon found is within the budget, and one that is 1e-9 larger is not."""
    epsilon = distortion.ldp_epsilon_for_leakage(budget)
    assert distortion.privacy_leakage_bound_from_ldp(epsilon) <= budget
    assert distortion.privacy_leakage_bound_from_ldp(epsilon * (1 + 1e-6)) > budget * (1 - 1e-12)


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=6))
def test_samples_decompose_exactly(samples: list[tuple[float, float]]) -> None:
    """Variance and squared bias of samples add up to the mean gap."""
    found = distortion.expected_gap_from_samples(samples, [1.0, -0.5], scale=2.0)
    mean = distortion.sum_of_squares_gap(samples, [1.0, -0.5], scale=2.0).mean()
    assert found.total == pytest.approx(mean, rel=1e-12, abs=1e-12)


def test_moments_by_sampling() -> None:
    """Sampled steps have the mean and variances stated, to five standard errors."""
    rng = np.random.default_rng(3)
    n, gradients = 200_000, np.array(GRADIENTS)
    chosen = rng.random((n, 4)) < 0.3
    sums = chosen @ gradients
    spread = ((sums - 0.3 * gradients.sum(axis=0)) ** 2).sum(axis=1)
    assert abs(spread.mean() - 2.3625) < 5 * spread.std() / math.sqrt(n)
    sizes = chosen.sum(axis=1)
    means = sums[sizes > 0] / sizes[sizes > 0, None]
    apart = ((means - gradients.mean(axis=0)) ** 2).sum(axis=1)
    expected = distortion.batch_mean_gradient_variance(gradients, 0.3)
    assert abs(apart.mean() - expected.variance) < 5 * apart.std() / math.sqrt(len(apart))
    assert abs((sizes == 0).mean() - expected.empty) < 5 * math.sqrt(0.25 / n)


def test_federated_step() -> None:
    """One local step of the specification's quadratic losses, and what noise of variance .01 adds on average."""
    start, data = np.array([2.0, 2.0]), np.array([[1, 0], [0, 1], [1, 1], [0, 0]])
    step = distortion.fedsgd_local_step(start, start - data, learning_rate=0.5)
    np.testing.assert_allclose(step, [1.25, 1.25])
    optimum = data.mean(axis=0)
    gap = distortion.sum_of_squares_gap(step, optimum)
    assert gap == pytest.approx(1.125)
    noise = distortion.expected_utility_loss_additive_noise(0.01, 2)
    assert gap + noise == pytest.approx(1.145)
    assert gap + distortion.expected_utility_loss_additive_noise(0.01, 2, weights=FAIR) == pytest.approx(1.135)
    noisy = distortion.distort_parameters(np.zeros(10_000), 0.25, np.random.default_rng(5))
    assert noisy.std() == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: distortion.jensen_shannon_distance(FAIR, [0.2, 0.3, 0.5]), r"outcomes.*\(3,\) and \(2,\)"),
        (lambda: distortion.total_variation_distance([0.5, 0.6], FAIR), "p must sum to 1"),
        (lambda: distortion.kl_divergence([1.5, -0.5], FAIR), r"p\[0\] must lie in \[0, 1\], not 1.5"),
        (lambda: distortion.sum_of_squares_gap([1, 2], 0, scale=0), "scale must be positive"),
        (lambda: distortion.sum_of_squares_gap([1, 2], [1, 2, 3]), r"w_star.*\(3,\) and \(2,\)"),
        (lambda: distortion.sum_of_squares_gap([1, math.nan], 0), r"w\[1\] must be finite"),
        (lambda: distortion.expected_gap([0, 0], [[1, 2], [2, 1]], 0), "without negative eigenvalues"),
        (lambda: distortion.expected_gap([0, 0], [[1, 0.5], [0, 1]], 0), "must be symmetric"),
        (lambda: distortion.expected_gap([0, 0], [[1, 0, 0]], 0), "covariance must have the shape"),
        (lambda: distortion.expected_gap_from_samples([1.0, 2.0], 0), "samples must have the shape"),
        (lambda: distortion.total_variance(FAIR, [0, 2], [1, -3]), r"variances\[1\] must be non-negative"),
        (lambda: distortion.total_variance([0.5, 0.4], [0, 2], [1, 3]), "weights must sum to 1"),
        (lambda: distortion.total_variance(FAIR, [0, 2, 3], [1, 3]), "means must have one entry for each weight"),
        (lambda: distortion.federated_utility_loss([]), "losses must have the shape"),
        (lambda: distortion.federated_utility_loss([0.1]), "losses must have the shape"),
        (lambda: distortion.averaged_posterior([[0.5, 0.6]], [1.0]), "kernel must sum to 1"),
        (lambda: distortion.averaged_posterior(KERNEL, [1.0]), "a row for each weight"),
        (lambda: distortion.max_bayesian_privacy_leakage(KERNEL, [1.0, 0.0]), "prior must be positive"),
        (lambda: distortion.federated_privacy_leakage([0.9]), "per_client"),
        (lambda: distortion.federated_privacy_leakage([]), "per_client must not be empty"),
        (lambda: distortion.federated_privacy_leakage([0.1], "median"), "reduction must be one of"),
        (lambda: distortion.leakage_tv_coefficient(-0.1), "log_ratio must be non-negative"),
        (lambda: distortion.belief_shift_bound(0.1, 1.2), "total_variation must lie in"),
        (lambda: distortion.gaussian_tv_isotropic(0.0, 1.0, 1), "variance must be positive"),
        (lambda: distortion.gaussian_tv_isotropic(1.0, -1.0, 1), "noise_variance must be non-negative"),
        (lambda: distortion.gaussian_tv_isotropic(1.0, 1.0, 0), "dimension must be an integer"),
        (lambda: distortion.noise_variance_for_tv(1.0, 1.0, 1), "total_variation must lie in"),
        (lambda: distortion.bias_gap_bound(-1.0, 0.1), "radius must be non-negative"),
        (lambda: distortion.privacy_leakage_lower_bound(0.9, 0.1, 0.1), "unprotected must lie in"),
        (lambda: distortion.min_distortion_for_budget(0.3, 0.9, 0.1), "budget must lie in"),
        (lambda: distortion.privacy_leakage_bound_from_ldp(-1.0), "epsilon must be non-negative"),
        (lambda: distortion.ldp_epsilon_for_leakage(0.9), "budget must lie in"),
        (lambda: distortion.sampled_update_mean(0.0, GRADIENTS, 1.0), "sampling_rate must lie in"),
        (lambda: distortion.sampled_update_variance([], 0.3), "gradients must have the shape"),
        (lambda: distortion.sampled_update_variance(GRADIENTS, 0.3, num_rounds=0), "num_rounds must be an integer"),
        (lambda: distortion.fedsgd_local_step([0.0], np.zeros((0, 1)), learning_rate=1.0), "not be empty"),
        (lambda: distortion.aggregate([[1.0], [2.0]], [0.5, 0.6]), "weights must sum to 1"),
        (lambda: distortion.aggregate([[1.0], [2.0]], [1.0]), "one entry for each client"),
        (lambda: distortion.nfl_utility_weight(0.0, 1.0, 0.1), "ratio must be positive"),
        (lambda: distortion.nfl_utility_weight(1.0, 0.0, 0.1), "near_optimal_gap must be positive"),
        (lambda: distortion.distortion_ratio([0.1], 0.0), "aggregated_distance must lie in"),
        (lambda: distortion.max_near_optimal_gap([0.0, 1.0], [1.0], 0.5), "as long as deficits"),
    ],
)
def test_rejected(call: object, reason: str) -> None:
    """What is outside its domain is refused with a reason."""
    with pytest.raises(ValueError, match=reason):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: distortion.min_distortion_for_budget(0.8, 0.1, 0.1),
        lambda: distortion.min_distortion_for_budget(0.3, 0.1, 0.0),
        lambda: distortion.max_near_optimal_gap([0, 0.1, 0.5], [0.1, 0.2, 0.7], 0.1),
    ],
)
def test_infeasible(call: object) -> None:
    """A budget that nothing meets has an error of its own."""
    with pytest.raises(distortion.InfeasibleBudgetError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: distortion.sampled_update_variance(GRADIENTS, 0.3, num_rounds=True),
        lambda: distortion.sampled_update_variance(GRADIENTS, 0.3, num_rounds=2.0),
        lambda: distortion.gaussian_tv_isotropic("1", 1.0, 1),
        lambda: distortion.distort_parameters([0.0], 0.1, 7),
        lambda: distortion.leakage_tv_coefficient(True),
    ],
)
def test_wrong_types(call: object) -> None:
    """Wrong types are told from wrong values."""
    with pytest.raises(TypeError):
        call()
