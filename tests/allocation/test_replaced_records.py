"""Random allocation where a record is replaced: against quadrature over outputs, and against records that contribute anything."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import effort
import hockeystick as hs
from enumeration import allocated_delta, bracket, directions, encloses, normal_law

replaced = functools.partial(bracket, adjacency="replace")


def integer_law(mechanism):
    """Return the law of the noise on integers, and its ratios to the law moved up and down by the sensitivity."""
    moved, gaussian = int(mechanism.sensitivity), isinstance(mechanism, hs.DiscreteGaussian)
    reach = int(25 * mechanism.noise_std) if gaussian else 60
    k = np.arange(-reach - moved, reach + moved + 1)
    log = -(k**2) / (2 * mechanism.noise_std**2) if gaussian else -mechanism.inverse_scale * abs(k)
    middle = log[moved:-moved]
    law = np.exp(middle) / np.exp(middle).sum()
    return law, np.exp(log[: -2 * moved] - middle), np.exp(log[2 * moved :] - middle)


@pytest.mark.parametrize(
    ("mechanism", "kink"),
    [
        (hs.DiscreteGaussian(0.5), 16.030833333),
        (hs.DiscreteGaussian(1.3639278544165403), 3.762835585749917),
        (hs.DiscreteGaussian(0.7694852509305262, 2), 16.888840509400914),
        (hs.mechanisms.DiscreteLaplace(0.6396338164310605), 0.6230834911559726),
        (hs.mechanisms.DiscreteLaplace(1.611061292204581, 5), 15.440308432232857),
    ],
    ids=str,
)
def test_kinks_of_the_curve_are_not_cut_off(mechanism, kink):
    """Where a curve of outcomes bends close to a point that is computed: both ends, by all outcomes of two steps."""
    law, more, less = integer_law(mechanism)
    for eps in (kink, 0.98 * kink, 1.02 * kink, 1e-3 * kink):
        truth = allocated_delta(law, more, less, 2, 1, eps)
        found = replaced(hs.RandomAllocation(mechanism, 2), eps)
        assert found.lower <= truth * (1 + 1e-9) + 1e-25
        assert truth * (1 - 1e-9) - 1e-25 <= found.upper


@pytest.mark.share(2)
@pytest.mark.parametrize("noise", [0.5, 1.3, 6.0, 25.0])
def test_two_steps_show_their_sum_alone(noise):
    """As (a + b)/(1/a + 1/b) = a b, opposite contributions at two steps are one Gaussian release of their sum."""
    r = 1 / noise
    for eps in np.linspace(0, 4 * r, 12):
        truth = float(hs.theta(eps, math.sqrt(2) * r))
        encloses(replaced(hs.RandomAllocation(hs.Gaussian(noise), 2), eps), truth, slack=1e-12, wide=1e-10)
    for delta in (1e-3, 1e-5, 1e-8):
        found = hs.Accountant("replace").compose(hs.RandomAllocation(hs.Gaussian(noise), 2)).epsilon_bracket(delta)
        assert found[:2] == pytest.approx([float(hs.gdp_epsilon(math.sqrt(2) * r, delta))] * 2, rel=1e-10)


@pytest.mark.share(3)
@pytest.mark.parametrize("noise", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("num_steps", [2, 3])
def test_laplace_noise_agrees_with_all_outcomes(noise, num_steps):
    """Laplace noise in cells, whose ratios are lower and upper sums: opposite contributions attain both ends."""
    r = 1 / noise
    for eps in (0.0, 0.2 * r, 0.5 * r, 0.9 * r):
        truth = laplace_by_sum(r, num_steps, eps)
        found = replaced(hs.RandomAllocation(hs.Laplace(noise), num_steps), eps)
        encloses(found, truth, slack=2e-3, wide=0.01)


def laplace_by_sum(r, num_steps, eps):
    """Return delta of opposite contributions to Laplace noise: the noise is cut into atoms outside [-r, r] and cells inside."""
    cells = {2: 1_200, 3: 160}[num_steps]
    edges = np.linspace(-r, r, cells + 1)

    def below(x):
        return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)

    laws = [
        np.concatenate([below(edges[:1] - m), np.diff(below(edges - m)), 1 - below(edges[-1:] - m)]) for m in (0, r, -r)
    ]
    return allocated_delta(laws[0], laws[1] / laws[0], laws[2] / laws[0], num_steps, 1, eps)


@settings(max_examples=effort.at_night(40, by_day=12))
@given(
    noise=st.floats(0.5, 4.0),
    first=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    slopes=st.tuples(st.floats(-3, 3), st.floats(-3, 3)),
    offsets=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    eps=st.sampled_from([0.0, 0.3, 0.8, 1.6]),
)
def test_other_contributions_leak_less(noise, first, slopes, offsets, eps):
    """Any two records stay below the pair, also where their second contributions depend on the first output."""
    r = 1 / min(NOISES, key=lambda near: abs(near - noise))
    x, law = normal_law(-8.5, 8.5, 601)

    def ratio(move, slope, offset):
        moves = r * np.clip(offset + slope * x, -1, 1)[:, None]
        return np.exp(r * move * x - (r * move) ** 2 / 2)[:, None] + np.exp(moves * x - moves**2 / 2)

    with_one, with_other = (ratio(*arguments) / 2 for arguments in zip(first, slopes, offsets, strict=True))
    truth = np.sum(np.outer(law, law) * np.maximum(with_one - math.exp(eps) * with_other, 0))
    assert truth <= replaced(hs.RandomAllocation(hs.Gaussian(1 / r), 2), eps).upper * (1 + 1e-4) + 1e-9


NOISES = (0.5, 1.0, 2.0, 4.0)


@pytest.mark.parametrize("mechanism", [hs.Gaussian(1.0), hs.Laplace(1.0)])
def test_one_of_one_is_the_mechanism(mechanism):
    """All steps are the mechanism's own pair; a block of one step is, too, within its chords."""
    for eps in (0.0, 0.5, 1.5):
        exact = hs.Accountant("replace").compose(mechanism, 2).delta_bracket(eps)
        found = replaced(hs.RandomAllocation(mechanism, 2, 2), eps)
        assert (found.lower, found.upper) == (exact.lower, exact.upper)
        nearly = replaced(hs.RandomAllocation(mechanism, 3, 2), eps)  # blocks of one step and of two
        assert nearly.lower <= exact.upper
        assert nearly.upper <= 1.03 * exact.upper + 1e-6


@pytest.mark.share(2)
@pytest.mark.parametrize(("num_steps", "num_selected"), [(3, 2), pytest.param(4, 2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", [1.0, 3.0])
def test_subsets_by_brute_force(noise, num_steps, num_selected):
    """Opposite contributions at uniform subsets of the steps stay between the ends; labels tell nearly all of them."""
    r = 1 / noise
    x, law = normal_law(-(7.0 + r), 7.0 + r, {3: 161, 4: 51}[num_steps])
    ratio, other = np.exp(r * x - r * r / 2), np.exp(-r * x - r * r / 2)
    for eps in (0.0, 0.5 * r, 2.0 * r):
        truth = allocated_delta(law, ratio, other, num_steps, num_selected, eps)
        found = replaced(hs.RandomAllocation(hs.Gaussian(noise), num_steps, num_selected), eps)
        encloses(found, truth, slack=2e-2)
        assert found.lower >= 0.9 * truth


PARTS = 6


def through_removal(mechanism, eps):
    """Return the least delta_remove(a) + e^a delta_add(eps - a): a bound through the data set without either record."""
    at = [directions(mechanism, eps * i / PARTS) for i in range(PARTS + 1)]
    return min(at[i][0].upper + math.exp(eps * i / PARTS) * at[PARTS - i][1].upper for i in range(PARTS + 1))


@pytest.mark.share(8, by_day=4)
@pytest.mark.parametrize("mechanism", [hs.Gaussian(1.0), hs.Gaussian(5.0), hs.Laplace(1.0), hs.DiscreteLaplace(0.5)])
@pytest.mark.parametrize("num_steps", [10, 1000])
def test_less_than_through_removal(mechanism, num_steps):
    """The bound lies between what removing a record leaks and what removing one and adding another does."""
    allocation = hs.RandomAllocation(mechanism, num_steps)
    for eps in (0.02, 0.4):
        found = replaced(allocation, eps)
        assert bracket(allocation, eps).lower <= found.upper * (1 + 1e-9)
        assert found.upper <= 1.02 * through_removal(allocation, eps) + 1e-12


def last_in_closed_form(r, num_steps, points, eps):
    """Return delta of opposite contributions: over all outputs but one by the trapezoidal rule, over the last by its threshold."""
    x, law = normal_law(-(8.5 + r), 8.5 + r, points)
    axes = [x.reshape([-1 if j == i else 1 for j in range(num_steps - 1)]) for i in range(num_steps - 1)]
    weight = functools.reduce(np.multiply.outer, [law] * (num_steps - 1))
    more, less = (sum(np.exp(sign * r * axis - r * r / 2) for axis in axes) for sign in (1, -1))
    level = math.exp(eps)
    lead, scale = more - level * less, math.exp(-r * r / 2)
    root = np.sqrt(lead * lead + 4 * level * scale * scale)
    small = 2 * scale * level / (np.abs(lead) + root)  # of the two forms of a root, the one that keeps its digits
    at = np.log(np.where(lead > 0, small, level / small)) / r  # where the sum of differences is 0
    return float(np.sum(weight * (lead * ndtr(-at) + ndtr(r - at) - level * ndtr(-r - at)))) / num_steps


@settings(max_examples=effort.at_night(40, by_day=12))
@given(noise=st.floats(0.5, 30.0), num_steps=st.integers(3, 4), depth=st.floats(0.01, 6.0))
def test_random_settings_agree_with_quadrature(noise, num_steps, depth):
    """Both ends enclose a quadrature of ten digits, down to small deltas."""
    r = min(1 / noise, 2.0 if num_steps == 3 else 1.2)
    eps = depth * r
    truth = last_in_closed_form(r, num_steps, {3: 401, 4: 111}[num_steps], eps)
    found = replaced(hs.RandomAllocation(hs.Gaussian(1 / r), num_steps), eps)
    encloses(found, truth, slack=1e-6, off=1e-14)
    assert found.upper <= 1.1 * truth + 1e-12
    assert found.lower >= 0.8 * truth - 1e-12


def by_sampling(setting, count, eps, samples=20_000):
    """Return delta of opposite contributions in some epochs, and its standard error, by samples of the record's own outputs."""
    noise, num_steps, num_selected = setting
    rng, r, loss = np.random.default_rng(3), 1 / noise, np.zeros(samples)
    for _ in range(count):
        x = rng.standard_normal((num_steps, samples))
        x[:num_selected] += r
        for sign in (1, -1):
            polynomial = np.zeros((num_selected + 1, samples))
            polynomial[0] = 1
            for ratio in np.exp(sign * r * x - r * r / 2):
                polynomial[1:] += polynomial[:-1] * ratio
            loss += sign * np.log(polynomial[-1])
    values = np.maximum(-np.expm1(np.minimum(eps - loss, 0)), 0)
    return values.mean(), values.std() / math.sqrt(samples)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("setting", "count", "eps"),
    [
        *(((1.0, 300, 1), 1, eps) for eps in (0.0, 0.2)),
        *(((0.3, 40, 1), 1, eps) for eps in (3.0, 12.0)),
        *(((0.7, 100, 1), 5, eps) for eps in (0.5, 2.0)),
        ((1.0, 40, 4), 1, 3.0),
        ((0.5, 30, 3), 1, 7.0),
        ((3.0, 60, 20), 2, 1.5),
    ],
)
def test_many_steps_agree_with_sampling(setting, count, eps):
    """Both ends enclose samples within five standard errors; those of one step are close."""
    found = replaced(hs.RandomAllocation(hs.Gaussian(setting[0]), *setting[1:]), eps, count)
    mean, error = by_sampling(setting, count, eps)
    encloses(found, mean, off=5 * error)
    assert found.upper - found.lower <= (0.2 if setting[2] == 1 else 0.6) * found.upper


@settings(max_examples=effort.at_night(40, by_day=10))
@given(
    noise=st.floats(0.25, 50.0),
    num_steps=st.integers(2, 400),
    blocks=st.integers(1, 4),
    count=st.sampled_from([1, 3]),
    delta=st.floats(-14.0, -1.0),
)
def test_between_a_null_replacement_and_shared_steps(noise, num_steps, blocks, count, delta):
    """No less than where one record contributes nothing, but for what the grids lose; no more than where both draw the same steps, and these are shown."""
    allocation = hs.RandomAllocation(hs.Gaussian(noise), num_steps, min(blocks, num_steps))
    found = hs.Accountant("replace").compose(allocation, count).epsilon_bracket(10.0**delta)
    shown = 2 * math.sqrt(count * allocation.num_selected) / noise
    assert found.upper <= float(hs.gdp_epsilon(shown, 10.0**delta)) * (1 + 1e-12)
    null = hs.Accountant().compose(allocation, count).epsilon_bracket(10.0**delta)
    assert found.upper >= null.lower
    assert found.lower >= 0.9 * null.lower


def test_no_end_is_infinite():
    """Where delta is far below what is computed, the curve of two steps serves."""
    allocation = hs.RandomAllocation(hs.Gaussian(0.25), 3)
    for delta in (1e-40, 1e-100, 1e-200):
        found = hs.Accountant("replace").compose(allocation).epsilon_bracket(delta)
        assert found.upper <= float(hs.gdp_epsilon(math.sqrt(2) * 4, delta)) * 1.02


@pytest.mark.parametrize("mechanism", [hs.Laplace(0.01), hs.Laplace(1e6), hs.DiscreteLaplace(100.0, 2)])
def test_extreme_noise_has_the_ends_of_a_null_replacement(mechanism):
    """Where losses are too large or too small for a grid, ends are numbers, and no looser than those of one record that shows."""
    allocation = hs.RandomAllocation(mechanism, 10)
    found, null = replaced(allocation, 0.0), bracket(allocation, 0.0)
    assert null.lower * (1 - 1e-6) <= found.lower <= found.upper <= 1
