"""The sharp leakage of locally private releases: attained, never exceeded, and rounded to the safe side."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick import distortion, isrl


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
    for _ in range(4000):
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
