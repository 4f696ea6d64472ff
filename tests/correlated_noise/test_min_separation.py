"""Batches that are b-min-separated: the certified bound and the estimate, by exact compositions, sums over patterns, quadrature and samples."""

import math

import numpy as np
import pytest
import scipy.stats

import hockeystick as hs
from hockeystick.correlated_noise import (
    conditional_composition,
    estimate_min_separation_delta,
    min_separated_poisson,
    square_root_coefficients,
)
from hockeystick.correlated_noise.estimates import Apart, Bins, Sampling
from participation import batch_law, mixture_deltas

SURE = 1 - 1e-9  # confidence of estimates


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.01, 1.0, 500), (0.3, 4.0, 20), (1.0, 6.0, 10)])
def test_without_separation_it_is_dpsgd(rate, noise, steps):
    """Every step is a candidate then, with the rate itself."""
    found = min_separated_poisson([1.0], steps=steps, separation=1, sampling_rate=rate, noise_multiplier=noise)
    known = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate), steps)
    for eps in (0.0, 0.5, 3.0):
        assert known.delta_bracket(eps).lower <= found.delta(eps) <= known.delta(eps) * (1 + 1e-9)
    for delta in (1e-3, 1e-9):
        assert known.epsilon_bracket(delta).lower <= found.epsilon(delta) <= known.epsilon(delta) * (1 + 1e-6)


def test_a_record_that_must_be_in_every_bth_step():
    """At rate 1 it is in the steps 0, b, 2b, ...: a Gaussian release, for the bound and the estimate."""
    setting = {"strategy": [1.0, 0.5], "steps": 9, "separation": 5, "sampling_rate": 1.0, "noise_multiplier": 2.0}
    found = min_separated_poisson(**setting)
    known = hs.Accountant().compose(hs.Gaussian(2.0 / math.sqrt(2.5)))
    assert known.delta_bracket(0.5).lower <= found.delta(0.5) <= known.delta(0.5) * (1 + 1e-9)
    estimate = estimate_min_separation_delta(**setting, epsilon=0.5, confidence=SURE, seed=6)
    assert estimate.lower <= known.delta(0.5) <= estimate.upper


def test_a_rate_of_zero_leaks_nothing():
    """Nobody is ever in a batch."""
    found = min_separated_poisson([1.0], steps=9, separation=5, sampling_rate=0.0, noise_multiplier=0.1)
    assert found.delta(0.0) == 0.0
    assert found.epsilon(0.0) == 0.0
    for rate in (0.0, 1e-320, 1e-200, 1e-160):
        for eps in (0.4, 1e300):
            setting = {"steps": 9, "separation": 5, "sampling_rate": rate, "noise_multiplier": 0.1}
            assert estimate_min_separation_delta([1.0], eps, **setting, samples=99, seed=1).mean <= 1e-150


@pytest.mark.share(4, by_day=2)
@pytest.mark.parametrize(
    ("rate", "noise", "second"), [(0.3, 0.8, 0.0), (0.5, 1.0, 0.7), (0.1, 2.0, 0.4), (0.02, 0.5, 0.9)]
)
@pytest.mark.parametrize("warm_start", [False, True])
def test_two_steps_by_quadrature(rate, noise, second, warm_start):
    """Two steps of which a record is in one at most: an integral in the plane is never above the bound, and in the estimate's interval."""
    law = batch_law(2, 2, rate, (1 / (1 + rate), rate / (1 + rate)) if warm_start else (1,))
    column = np.array([[1.0, second], [0.0, 1.0]])
    means = np.array([column[list(taken)].sum(axis=0) for taken in law]) / noise
    setting = {"steps": 2, "separation": 2, "sampling_rate": rate, "noise_multiplier": noise}
    setting["warm_start"] = warm_start
    found = min_separated_poisson([1.0, second], **setting)
    epsilons = (0.0, 0.2, 0.6, 2.0)
    for eps, truth in zip(epsilons, mixture_deltas(means, [*law.values()], epsilons, 1200), strict=True):
        assert truth * (1 - 1e-6) <= found.delta(eps)
        estimate = estimate_min_separation_delta([1.0, second], **setting, epsilon=eps, confidence=SURE, seed=4)
        assert estimate.lower * (1 - 1e-6) <= truth <= estimate.upper * (1 + 1e-6)


def test_epsilon_is_the_inverse_of_delta():
    """To a relative 1e-6, and on the safe side."""
    found = min_separated_poisson(
        square_root_coefficients(8), steps=400, separation=8, sampling_rate=0.02, noise_multiplier=5.0
    )
    for delta in (0.1, 1e-5, 1e-40):
        eps = found.epsilon(delta)
        assert found.delta(eps) <= delta < found.delta(eps * (1 - 1e-6))
    assert found.epsilon(0.0) == math.inf
    assert found.delta(math.inf) == 0.0


def test_a_matrix_counts_by_its_longest_column():
    """A matrix gives what its coefficients give."""
    c = np.array([1.0, 0.5, 0.25])
    matrix = sum(np.diag(np.full(12 - k, each), -k) for k, each in enumerate(c))
    setting = {"steps": 12, "separation": 3, "sampling_rate": 0.1, "noise_multiplier": 2.0}
    assert min_separated_poisson(matrix, **setting).delta(0.4) == pytest.approx(
        min_separated_poisson(c, **setting).delta(0.4), rel=1e-12
    )


@pytest.mark.parametrize(
    ("steps", "separation", "bands"), [(1, 1, 1), (6, 1, 1), (7, 2, 2), (9, 3, 3), (8, 4, 2), (5, 9, 9)]
)
@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("warm_start", [False, True])
def test_ratio_is_the_mean_over_patterns(
    steps: int, separation: int, bands: int, rate: float, warm_start: bool
) -> None:
    """One pass gives what all 2^steps outcomes of the coins give."""
    rng = np.random.default_rng(steps)
    first = rng.dirichlet(np.ones(separation)) if warm_start else np.ones(1)
    column = rng.uniform(0.1, 1.0, bands)[:steps]
    outcomes = rng.normal(0.3, 1.5, (steps, 5))
    expected = np.zeros(5)
    for steps_in, chance in batch_law(steps, separation, rate, first).items():
        mean = np.zeros(steps)
        for step in steps_in:
            mean[step : step + bands] += column[: steps - step]
        expected += chance * np.exp(mean @ outcomes - mean @ mean / 2)
    found = Apart(column, steps, separation, rate, first=first).log_ratio(outcomes)
    assert np.exp(found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.share(3)
@pytest.mark.parametrize(("rate", "noise"), [(0.1, 1.5), (0.5, 4.0), (1.0, 6.0)])
def test_poisson_samples(rate: float, noise: float) -> None:
    """Without bands and separation it is DP-SGD, whose delta is known, and near the mean however small it is."""
    known = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate), 20)
    setting = {"steps": 20, "separation": 1, "sampling_rate": rate, "noise_multiplier": noise}
    for delta in (0.1, 1e-2, 1e-4, 1e-6, 1e-9):
        eps = known.epsilon(delta)
        found = estimate_min_separation_delta([1.0], **setting, epsilon=eps, samples=50_000, confidence=SURE, seed=3)
        assert found.lower <= known.delta(eps) <= found.upper
        assert abs(found.mean - delta) <= 4 * found.standard_error <= 0.9 * delta
        assert found.upper < 1.2 * delta + 3e-4


@pytest.mark.parametrize(
    "law", [Bins(np.array([[0.3], [0.4]])), Apart(np.array([0.3, 0.4]), 2, 2, 1.0, first=np.ones(1))]
)
def test_either_direction_of_a_certain_record(law: Bins | Apart) -> None:
    """It is a Gaussian release at a distance of a half, whether the record is removed or added."""
    for eps in (0.0, 0.1, 1.0, 3.0, 6.0):
        truth, sampling = hs.gdp_delta(0.5, eps), Sampling(eps, 20_000, SURE)
        for mean, error, lower, upper in (
            direction(law, np.random.default_rng(2)) for direction in (sampling.removed, sampling.added)
        ):
            assert lower <= truth <= upper < 0.02 * truth**0.5 + 2 * truth
            assert abs(mean - truth) <= 5 * error <= 0.2 * truth


@pytest.mark.parametrize(("rate", "noise"), [(0.3, 1.0), (0.9, 0.5)])
def test_a_record_that_is_added(rate: float, noise: float) -> None:
    """One step of DP-SGD: 1 - e^eps L is positive below one point, between two normal laws."""
    for share in (0.0, 0.5, 0.9):
        eps = -share * math.log1p(-rate)
        end = noise * math.log((math.exp(-eps) - 1 + rate) / rate) + 0.5 / noise  # in units of the noise
        normal = scipy.stats.norm.cdf([end, end - 1 / noise])
        truth = normal[0] - math.exp(eps) * ((1 - rate) * normal[0] + rate * normal[1])
        law = Apart(np.array([1 / noise]), 1, 1, rate, first=np.ones(1))
        mean, error, lower, upper = Sampling(eps, 100_000, SURE).added(law, np.random.default_rng(1))
        assert lower <= truth <= upper
        assert abs(mean - truth) <= 5 * error


def test_estimate_verify_release():
    """A training that was allowed to run is (epsilon, delta)-DP, and no better than the estimate is sure; one that was not is refused."""
    setting = {"steps": 20, "separation": 1, "sampling_rate": 0.5, "noise_multiplier": 4.0}
    found = estimate_min_separation_delta([1.0], **setting, epsilon=2.0, confidence=1 - 1e-5, seed=8)
    for delta, stated in ((found.upper, found.upper), (0.5, 0.5)):
        accountant = hs.Accountant().compose(found.verified(delta))
        assert accountant.delta(2.0) == pytest.approx(stated, rel=1e-12)
        assert accountant.delta(1.9) > 2 * stated or delta == 0.5
        assert "a seed that was drawn for it at random" in str(accountant.statement(0.5))
    unsure = found._replace(upper=0.0, confidence=0.75)
    assert hs.Accountant().compose(unsure.verified(1e-9)).delta(2.0) == pytest.approx(0.25)
    with pytest.raises(ValueError, match="must not be run"):
        found.verified(found.upper * (1 - 1e-9))
    with pytest.raises(ValueError, match="replace"):
        hs.Accountant("replace").compose(found.verified(0.5))


@pytest.mark.share(9, by_day=3)
@pytest.mark.parametrize("bands", [1, 2, 4])
@pytest.mark.parametrize(("rate", "noise"), [(0.01, 4.0), (0.05, 4.0), (0.05, 12.0)])
@pytest.mark.parametrize("warm_start", [False, True])
def test_certified_bounds_are_above(bands: int, rate: float, noise: float, warm_start: bool) -> None:
    """What is certified for records that ignore coins, or are as far apart, is never below what samples say, and more separation leaks less."""
    c = square_root_coefficients(bands)
    setting = {"steps": 60, "sampling_rate": rate, "noise_multiplier": noise}
    bound = conditional_composition(c, **setting, failure=1e-8)
    apart = [setting | {"separation": b, "warm_start": warm_start} for b in (bands, 6 * bands)]
    closer, farther = (min_separated_poisson(c, **one) for one in apart)
    for eps in (0.0, 0.05):
        near, far = (
            estimate_min_separation_delta(c, eps, **one, samples=20_000, confidence=SURE, seed=5) for one in apart
        )
        assert warm_start or far.lower <= near.upper
        assert near.lower <= min(bound.delta(eps), closer.delta(eps))
        assert far.lower <= farther.delta(eps)
