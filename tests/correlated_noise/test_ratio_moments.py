"""Delta from moments of a likelihood ratio, against quadrature, and the moments of b-min-separated batches against all patterns."""

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.correlated_noise import min_separated_poisson, square_root_coefficients
from hockeystick.correlated_noise.ratio_moments import RatioMoments, min_separated_moments, uniform_moments
from participation import batch_law

LINE = np.linspace(-30.0, 30.0, 60_001)
DENSITY = np.exp(-0.5 * LINE**2) / math.sqrt(2.0 * math.pi) * (LINE[1] - LINE[0])


def moments_of(means: np.ndarray, weights: np.ndarray, order: int) -> float:
    """Return the mean of exp(sum of m_j m_k over j < k) over `order` independent means."""
    total = 0.0
    for chosen in itertools.product(range(len(means)), repeat=order):
        m = means[list(chosen)]
        total += math.prod(weights[list(chosen)]) * math.exp(0.5 * (m.sum() ** 2 - (m**2).sum()))
    return total


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(120))
def test_means_of_gaussians_on_a_line(seed: int) -> None:
    """Random means of any sign: neither direction is below the integral."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1, 5))
    means = rng.exponential(rng.uniform(0.05, 1.0), number) * rng.choice([1.0, -1.0], number, p=[0.8, 0.2])
    weights = rng.dirichlet(np.full(number, 0.5))
    ratio = weights @ np.exp(np.outer(means, LINE) - 0.5 * means[:, None] ** 2)
    bound = RatioMoments(tuple(moments_of(means, weights, order) for order in range(7)), 1e-13)
    for eps in (0.0, 0.05, 0.3, 1.0, 3.0):
        removed = float(DENSITY @ np.maximum(ratio - math.exp(eps), 0.0))
        added = float(DENSITY @ np.maximum(1.0 - math.exp(eps) * ratio, 0.0))
        assert bound._removed(eps) >= removed * (1 - 1e-5) - 1e-13
        assert bound._added(eps) >= added * (1 - 1e-5) - 1e-13


@pytest.mark.parametrize("number", [1, 2, 5])
def test_uniform_moments_are_means_over_draws(number: int) -> None:
    """All pairs, triples and quadruples of means on a line; what overflows is left out, from there on."""
    means = np.random.default_rng(number).exponential(0.7, number)
    found = uniform_moments(np.outer(means, means), 1e-15)
    weights = np.full(number, 1.0 / number)
    assert found.moments == pytest.approx([moments_of(means, weights, order) for order in range(5)], rel=1e-12)
    assert len(uniform_moments(np.full((300, 300), 0.1), 1e-15).moments) == 4
    assert len(uniform_moments(np.array([[300.0]]), 1e-15).moments) == 3
    assert uniform_moments(np.array([[800.0]]), 1e-15).delta(1.0) == 1.0


@pytest.mark.parametrize("mu", [0.05, 0.5, 2.0])
def test_one_gaussian_added_is_nearly_exact(mu: float) -> None:
    """Where little lies below K, the second moment alone tells delta of Gaussian DP, the theorem's extreme case."""
    bound = RatioMoments((1.0, 1.0, math.exp(mu * mu)), 1e-15)
    for eps, above in ((0.5, 1.04), (2.0, 1.001)):
        exact = float(hs.gdp_delta(mu, eps))
        assert exact <= bound._added(eps) <= exact * above + 5e-324


@pytest.mark.parametrize(("steps", "separation", "bands", "rate"), [(6, 2, 2, 0.3), (7, 3, 2, 0.6), (5, 9, 3, 0.2)])
@pytest.mark.parametrize("warm_start", [False, True])
def test_moments_are_means_over_patterns(
    steps: int, separation: int, bands: int, rate: float, warm_start: bool
) -> None:
    """All patterns of two, three and four records, with products that change from step to step."""
    rng = np.random.default_rng(steps)
    first = rng.dirichlet(np.ones(separation)) if warm_start else np.ones(1)
    products = rng.uniform(0.0, 0.5, (steps, bands))
    gram = np.zeros((steps, steps))
    for t, d in itertools.product(range(steps), range(bands)):
        if d <= t:
            gram[t, t - d] = gram[t - d, t] = products[t, d]
    law = batch_law(steps, separation, rate, first)
    patterns, weights = list(law), np.array(list(law.values()))
    pairs = np.exp([[gram[np.ix_(one, other)].sum() for other in patterns] for one in patterns])
    cubes = np.einsum("ij,ik,jk->ijk", pairs, pairs, pairs)
    expected = [
        weights @ pairs @ weights,
        np.einsum("ijk,i,j,k", cubes, weights, weights, weights),
        np.einsum("ijk,il,jl,kl,i,j,k,l", cubes, pairs, pairs, pairs, *[weights] * 4, optimize=True),
    ]
    found = min_separated_moments(products, [2, 3, 4], separation=separation, sampling_rate=rate, first_steps=first)
    assert found.moments[2:5] == pytest.approx([float(each) for each in expected], rel=1e-12)


@pytest.mark.parametrize(
    ("case", "sampled"),
    [((32, 2, 0.1, 300, 2.0), 0.968), ((32, 4, 0.1, 300, 3.0), 0.881), ((16, 16, 0.1, 200, 4.0), 1.863)],
)
def test_near_what_samples_say(case: tuple[int, int, float, int, float], sampled: float) -> None:
    """Epsilons at delta 1e-3 that were estimated by another program are at most a third lower."""
    separation, bands, rate, steps, noise = case
    found = min_separated_poisson(
        square_root_coefficients(bands), separation=separation, sampling_rate=rate, steps=steps, noise_multiplier=noise
    )
    assert sampled * 0.98 < found.epsilon(1e-3) < sampled * 1.35
