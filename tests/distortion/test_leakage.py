"""Leakage and utility by properties and samples; the sharp leakage of local privacy: attained, never exceeded, and rounded to the safe side."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from hockeystick import distortion, isrl

FAIR = [0.5, 0.5]


def pmfs(size: int) -> st.SearchStrategy[np.ndarray]:
    """Return distributions, some with zeros."""
    weights = st.lists(st.sampled_from([0.0, 1e-6, 0.1, 0.5, 1.0, 3.0]), min_size=size, max_size=size)
    return weights.filter(lambda w: sum(w) > 0).map(lambda w: np.array(w) / sum(w))


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


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=6))
def test_samples_decompose_exactly(samples: list[tuple[float, float]]) -> None:
    """Variance and squared bias of samples add up to the mean gap."""
    found = distortion.expected_gap_from_samples(samples, [1.0, -0.5], scale=2.0)
    mean = distortion.sum_of_squares_gap(samples, [1.0, -0.5], scale=2.0).mean()
    assert found.total == pytest.approx(mean, rel=1e-12, abs=1e-12)


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


def sharp(epsilon: float) -> mp.mpf:
    """Return sqrt(ln 2 - h(1/(1 + e^{epsilon/2}))) in many digits."""
    with mp.workdps(60):
        low = 1 / (1 + mp.exp(mp.mpf(epsilon) / 2))
        return mp.sqrt(mp.log(2) + low * mp.log(low) + (1 - low) * mp.log1p(-low))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 9.9e-8, 1.1e-7, 1e-3, 0.3, 1.0, 2.0, 30.0, 100.0])
def test_rounded_up(epsilon: float) -> None:
    """The bound is above the formula in many digits, by less than 1e-13 of itself."""
    assert 1 <= float(distortion.privacy_leakage_bound_from_ldp(epsilon)) / sharp(epsilon) < 1 + 1e-13


def test_ends() -> None:
    """A perfectly private release leaks nothing, any other does, and none more than sqrt(ln 2)."""
    zero, tiny, most = distortion.privacy_leakage_bound_from_ldp([0.0, 1e-323, math.inf])
    assert zero == 0
    assert tiny > 0
    assert most == pytest.approx(math.sqrt(math.log(2)), rel=1e-15)


@given(st.floats(0.01, 10.0), st.floats(0.01, 0.99))
def test_randomised_response(epsilon: float, prior: float) -> None:
    """Randomised response leaks at most the bound of its epsilon, and exactly that at one prior."""
    keep = float(isrl.randomized_response_keep_prob(epsilon, 2))

    def leakage(a: float) -> float:
        belief = a * keep / (a * keep + (1 - a) * (1 - keep))
        return float(distortion.privacy_leakage([belief, 1 - belief], [a, 1 - a]))

    most = float(distortion.privacy_leakage_bound_from_ldp(epsilon))
    assert leakage(prior) <= most * (1 + 1e-9)
    assert leakage(1 / (1 + math.exp(epsilon / 2))) == pytest.approx(most, rel=1e-9)


def test_random_kernels() -> None:
    """No release of two to five outcomes on two to five data sets leaks more, for any prior and average over outcomes."""
    rng = np.random.default_rng(7)
    closest = 0.0
    for _ in range(effort.at_night(4000, by_day=1000)):
        data, outcomes, epsilon = rng.integers(2, 6), rng.integers(2, 6), rng.choice([0.1, 1.0, 3.0, 8.0])
        kernel = np.exp(epsilon * rng.choice([0.0, 1.0, rng.random()], size=(data, outcomes)))
        kernel /= kernel.sum(axis=1, keepdims=True)
        # scaling the rows moved the ratios: this is the epsilon that the release has
        truth = float(np.log(kernel.max(axis=0) / kernel.min(axis=0)).max())
        prior = rng.dirichlet(np.full(data, rng.choice([0.2, 1.0, 5.0])))
        posterior = (prior[:, None] * kernel / (prior @ kernel)).T
        belief = rng.dirichlet(np.full(outcomes, 0.3)) @ posterior
        leakage = float(distortion.jensen_shannon_distance(belief, prior))
        bound = float(distortion.privacy_leakage_bound_from_ldp(truth))
        assert leakage <= bound + 1e-9
        closest = max(closest, leakage / bound if bound > 1e-6 else 0.0)
    assert closest > 0.95


@given(st.floats(0.01, 20.0), st.floats(-15.0, 15.0))
def test_coins_differ_most_in_the_middle(epsilon: float, centre: float) -> None:
    """Two coins whose log odds differ by epsilon: the lemma of the proof, off the middle."""
    coins = 1 / (1 + np.exp(-(centre + np.array([0.5, -0.5]) * epsilon)))
    one, other = (np.stack([p, 1 - p]) for p in coins)
    divergence = float(distortion.jensen_shannon_divergence(one, other))
    assert math.sqrt(divergence) <= float(distortion.privacy_leakage_bound_from_ldp(epsilon)) * (1 + 1e-7) + 1e-9


@given(st.floats(1e-9, 0.8325))
def test_inverse_is_feasible(budget: float) -> None:
    """The epsilon found is within the budget, and one that is 1e-6 larger is not."""
    epsilon = float(distortion.ldp_epsilon_for_leakage(budget))
    assert sharp(epsilon) <= budget
    assert distortion.privacy_leakage_bound_from_ldp(epsilon * (1 + 1e-6)) > budget * (1 - 1e-12)
