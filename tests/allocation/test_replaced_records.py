"""Random allocation where a record is replaced: against quadrature over outputs, and against records that contribute anything."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
from enumeration import allocated_delta, bracket, directions, encloses, normal_law

replaced = functools.partial(bracket, adjacency="replace")


@pytest.mark.share(4, by_day=2)
@pytest.mark.parametrize("noise", [0.7, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("num_steps", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_gaussian_noise_agrees_with_quadrature(noise, num_steps):
    """The upper end is that of opposite contributions, to a fifth; the lower end stays below it."""
    r = 1 / noise
    x, law = normal_law(-(7.5 + r), 7.5 + r, {1: 20_001, 2: 2_001, 3: 241}[num_steps])
    ratio, other = np.exp(r * x - r * r / 2), np.exp(-r * x - r * r / 2)
    for eps in (0.0, 0.2 * r, 0.7 * r, 1.5 * r, 3.0 * r):
        truth = allocated_delta(law, ratio, other, num_steps, 1, eps)
        found = replaced(hs.RandomAllocation(hs.Gaussian(noise), num_steps), eps)
        error = 1e-2 if num_steps == 3 else 1e-4
        encloses(found, truth, slack=error)
        assert found.upper <= 1.2 * truth * (1 + error) + 1e-7


@pytest.mark.share(2)
@pytest.mark.parametrize("noise", [0.5, 1.3, 6.0, 25.0])
def test_two_steps_show_their_sum_alone(noise):
    """As (a + b)/(1/a + 1/b) = a b, opposite contributions at two steps are one Gaussian release of their sum."""
    r = 1 / noise
    for eps in np.linspace(0, 4 * r, 12):
        truth = float(hs.theta(eps, math.sqrt(2) * r))
        found = replaced(hs.RandomAllocation(hs.Gaussian(noise), 2), eps)
        encloses(found, truth, slack=1e-12)
        assert found.upper <= 1.5 * truth


@pytest.mark.share(3)
@pytest.mark.parametrize("noise", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("num_steps", [2, 3])
def test_laplace_noise_agrees_with_all_outcomes(noise, num_steps):
    """Laplace noise in cells, whose ratios are lower and upper sums: opposite contributions attain the upper end."""
    r = 1 / noise
    for eps in (0.0, 0.2 * r, 0.5 * r, 0.9 * r):
        truth = laplace_by_sum(r, num_steps, eps)
        found = replaced(hs.RandomAllocation(hs.Laplace(noise), num_steps), eps)
        encloses(found, truth, slack=2e-3)
        assert found.upper <= 1.03 * truth + 1e-6


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


@settings(max_examples=40)
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
    """Opposite contributions at uniform subsets of the steps stay between the ends."""
    r = 1 / noise
    x, law = normal_law(-(7.0 + r), 7.0 + r, {3: 161, 4: 51}[num_steps])
    ratio, other = np.exp(r * x - r * r / 2), np.exp(-r * x - r * r / 2)
    for eps in (0.0, 0.5 * r, 2.0 * r):
        truth = allocated_delta(law, ratio, other, num_steps, num_selected, eps)
        found = replaced(hs.RandomAllocation(hs.Gaussian(noise), num_steps, num_selected), eps)
        encloses(found, truth, slack=2e-2)


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
