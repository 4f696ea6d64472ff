"""Conditional composition against the pair of all participation patterns, by quadrature and by sampling; and attacks on that pair."""

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.correlated_noise import (
    conditional_composition,
    inverse_square_root_coefficients,
    square_root_coefficients,
    strategy_of_inverse,
    tree_sensitivity,
    tree_strategy,
)
from hockeystick.correlated_noise.conditional import PRODUCTS, posterior_bounds
from participation import as_arrays, batch_law, mixture_deltas, toeplitz


def exact_deltas(strategy, rate, noise, epsilons, separation=1):
    """Return the larger delta over all patterns of coins: for smooth tails good to 1e-8 or so."""
    rows, steps = strategy.shape
    patterns, weights = as_arrays(batch_law(steps, separation, rate), steps)
    return mixture_deltas(patterns @ strategy.T / noise, weights, epsilons, 161 if rows == 2 else 55)


STRATEGIES = [
    toeplitz([1.0, 0.5], 2),
    np.array([[1.0, 0.0], [-0.7, 0.4]]),
    toeplitz(square_root_coefficients(3), 3),
    np.array([[0.6, 0.0, 0.0], [0.9, 1.0, 0.0], [0.0, 0.3, 1.2]]),
    tree_strategy(2),
]
EPSILONS = [0.0, 0.05, 0.2, 0.5, 1.0, 2.0]


@pytest.mark.share(4, by_day=2)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=[str(s.shape) + str(i) for i, s in enumerate(STRATEGIES)])
@pytest.mark.parametrize("rate", [0.3, 0.02])
@pytest.mark.parametrize("noise", [0.7, 2.0, 6.0])
def test_against_quadrature(strategy, rate, noise):
    """Delta is never below that of all patterns, with 1e-6 for failures and where it decides all (0.2).

    Records that sit out the step after one that they were in leak no more than those that heed every coin.
    """
    exact, ignored = (exact_deltas(np.abs(strategy), rate, noise, EPSILONS, separation=b) for b in (1, 2))
    assert (ignored <= exact + 1e-8).all()
    for failure in (1e-6, 0.2):
        found = conditional_composition(strategy, sampling_rate=rate, noise_multiplier=noise, failure=failure)
        assert found.premises.failure == failure
        for epsilon, truth in zip(EPSILONS, exact, strict=True):
            assert truth <= found.delta(epsilon) + 1e-8  # the rule's own error
        alone = hs.Accountant().compose(next(iter(found.ledger)).mechanism)
        assert found.epsilon(failure + 0.1) == pytest.approx(alone.epsilon(0.1), rel=1e-9)


def test_chosen_updates_gain_nothing():
    """Updates of any sign, chosen by the first release, leak no more than equal ones."""
    rng = np.random.default_rng(22)
    noise, rate = 1.3, 0.3
    strategy = toeplitz([1.0, 0.8], 2)
    exact = exact_deltas(strategy, rate, noise, EPSILONS)
    line = np.linspace(-9.0, 11.0, 301)
    first, second = np.meshgrid(line, line, indexing="ij")
    density = np.exp(-0.5 * (first**2 + second**2) / noise**2) / (2 * math.pi * noise**2) * (line[1] - line[0]) ** 2
    for _ in range(5):
        cuts, signs = np.sort(rng.normal(size=3)), rng.choice([-1.0, 0.0, 1.0], 4)
        second_update = signs[np.searchsorted(cuts, first)] * rng.choice([1.0, 0.6])
        ratio = np.zeros_like(first)
        for (one, two), weight in zip(*as_arrays(batch_law(2, 1, rate), 2), strict=True):
            mean_1, mean_2 = one * strategy[0, 0], one * strategy[1, 0] + two * strategy[1, 1] * second_update
            ratio += weight * np.exp((first * mean_1 + second * mean_2 - 0.5 * (mean_1**2 + mean_2**2)) / noise**2)
        for epsilon, truth in zip(EPSILONS, exact, strict=True):
            removed = float((density * np.maximum(ratio - math.exp(epsilon), 0)).sum())
            added = float((density * np.maximum(1 - math.exp(epsilon) * ratio, 0)).sum())
            assert max(removed, added) <= truth + 1e-4  # of the rule, where updates jump


def test_posteriors_fail_as_seldom_as_stated():
    """Of 40,000 trainings, no more have a posterior above its bound than the failure probability allows, with and without the record."""
    rng = np.random.default_rng(23)
    strategy, rate, failure, size = toeplitz([1.0, 0.6, 0.4], 3) / 1.5, 0.2, 0.02, 40_000
    patterns, weights = as_arrays(batch_law(3, 1, rate), 3)
    means = patterns @ strategy[:2].T
    products = strategy[:2].T @ strategy[:2] * PRODUCTS
    bounds = posterior_bounds(products[:2], np.diagonal(products)[:2].copy(), rate, failure)
    for centres in (means[rng.choice(8, size=size, p=weights)], np.zeros((size, 2))):
        y = centres + rng.normal(size=centres.shape)
        likelihood = np.exp(y @ means.T - 0.5 * (means**2).sum(axis=1)) * weights
        for step in range(2):
            worst = np.zeros(size)  # given each choice of the other steps
            for others in itertools.product((0.0, 1.0), repeat=2):
                same = np.all(np.delete(patterns, step, axis=1) == others, axis=1)
                inside = likelihood[:, same & (patterns[:, step] == 1)].sum(axis=1)
                worst = np.maximum(worst, inside / likelihood[:, same].sum(axis=1))
            failed = int((worst > bounds[step]).sum())
            assert failed <= failure * size + 6 * math.sqrt(failure * size)
            assert rate < bounds[step] < 1


def test_limits():
    """One band is DP-SGD, up to the failure; all records in all steps are no less than the whole sum; more noise is better."""
    found = conditional_composition([1.0], steps=300, sampling_rate=0.02, noise_multiplier=1.5, failure=1e-9)
    sampled = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.5), 0.02), 300)
    assert sampled.epsilon_bracket(1e-5).lower <= found.epsilon(1e-5) <= sampled.epsilon(1e-5) * 1.001
    everybody = conditional_composition(toeplitz([1.0, 0.5], 4), sampling_rate=1.0, noise_multiplier=2.0, failure=1e-9)
    moved = math.sqrt(1 + 3 * 1.5**2) / 2.0
    assert hs.gdp_delta(moved, 0.5) <= everybody.delta(0.5) <= hs.gdp_delta(moved, 0.5) * 1.01
    never = conditional_composition([1.0], steps=3, sampling_rate=0.0, noise_multiplier=1.0, failure=1e-9)
    assert never.delta(0.1) <= 2e-9
    step = {"strategy": [1.0, 0.5], "steps": 50, "sampling_rate": 0.1, "failure": 1e-7}
    noises = (1.0, 2.0, 4.0, 8.0, 16.0)
    epsilons = [conditional_composition(**step, noise_multiplier=noise).epsilon(1e-6) for noise in noises]
    assert epsilons == sorted(epsilons, reverse=True)


def test_amplified_inverse_and_tree():
    """A strategy by its inverse and a tree have less epsilon sampled than unsampled, at the same noise."""
    sizes = strategy_of_inverse(inverse_square_root_coefficients(3), steps=100)
    found = conditional_composition(sizes, steps=100, sampling_rate=0.02, noise_multiplier=6.0, failure=1e-7)
    assert found.epsilon(1e-6) < 3.0
    tree = conditional_composition(tree_strategy(16), sampling_rate=0.05, noise_multiplier=8.0, failure=1e-7)
    unsampled = tree_sensitivity(16, participation="cyclic", separation=1).mechanism(8.0)
    assert tree.epsilon(1e-6) < hs.Accountant().compose(unsampled).epsilon(1e-6) / 2


def test_delta_must_exceed_the_failure():
    """A delta that the failure uses up has no epsilon; a first coefficient of 0 shifts the rows only."""
    found = conditional_composition([0.0, 1.0], steps=3, sampling_rate=0.1, noise_multiplier=1.0, failure=1e-6)
    plain = conditional_composition([1.0], steps=3, sampling_rate=0.1, noise_multiplier=1.0, failure=1e-6)
    assert found.epsilon(1e-4) == pytest.approx(plain.epsilon(1e-4), rel=1e-9)
    assert found.epsilon(1e-6) == math.inf
