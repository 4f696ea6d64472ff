"""Subsets of the steps against quadrature over all outputs but one, and the lower end against other functions of the outputs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

import hockeystick as hs


def directions(noise, num_steps, num_selected, eps):
    """Return the brackets of delta of one epoch when a record is removed and when it is added."""
    epoch = hs.RandomAllocation(hs.Gaussian(noise), num_steps, num_selected)
    return hs.Accountant().compose(epoch).explain(eps=eps).directions


def nodes(low, high, kinks):
    """Return the points and weights of Gauss's rule on panels of [low, high], narrow where a kink lies above: an axis more."""
    around = kinks[..., None] - np.array([0.0, 0.01, 0.08, 0.4, 1.0, 2.0])
    fixed = np.broadcast_to(np.linspace(low, high, 9), (*kinks.shape, 9))
    ends = np.sort(np.concatenate([fixed, np.clip(around, low, high)], axis=-1), axis=-1)
    at, weight = np.polynomial.legendre.leggauss(PANEL)
    half = np.diff(ends)[..., None] / 2
    points = ends[..., :-1, None] + half * (1 + at)
    return points.reshape(*kinks.shape, -1), (half * weight).reshape(*kinks.shape, -1)


PANEL = 8


def by_quadrature(noise, num_steps, num_selected, eps):
    """Return delta when a record is removed and when it is added.

    The likelihood ratio is e_k/C(t, k), an elementary symmetric polynomial of log-normals, which is linear in the last one:
    the mean over that has a closed form. The others are integrated one after the other, on panels that end where the
    polynomial of those so far reaches the level.
    """
    r, total = 1 / noise, math.comb(num_steps, num_selected)

    def mean(level, sign):
        polynomials, weight = [np.ones(())] + [np.zeros(())] * num_selected, np.ones(())
        for _ in range(num_steps - 1):
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = (level - polynomials[-1]) / polynomials[-2]
                kinks = np.where(reach > 0, np.log(np.where(reach > 0, reach, 1.0)) / r + r / 2, 50.0)
            x, step = nodes(-8.5, 8.5 + 2 * r, np.clip(np.nan_to_num(kinks, nan=50.0), -50, 50))
            ratio, weight = (
                np.exp(r * x - r * r / 2),
                weight[..., None] * step * np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
            )
            known = [polynomial[..., None] + 0 * ratio for polynomial in polynomials]
            polynomials = [known[0], *(known[j] + known[j - 1] * ratio for j in range(1, num_selected + 1))]
        need = (level - polynomials[-1]) / polynomials[-2]
        at = np.log(np.where(need > 0, need, 1.0)) / r
        beyond = sign * (ndtr(sign * (r / 2 - at)) - need * ndtr(sign * (-r / 2 - at)))
        return float(np.sum(weight * polynomials[-2] * np.where(need > 0, beyond, (1 - need) * (sign > 0))))

    return mean(math.exp(eps) * total, 1) / total, math.exp(eps) * mean(math.exp(-eps) * total, -1) / total


@pytest.mark.parametrize("noise", [0.4, 0.8, 2.0, 9.0])
@pytest.mark.parametrize(
    ("num_steps", "num_selected"),
    [(2, 1), (3, 1), (3, 2), *(pytest.param(4, selected, marks=pytest.mark.slow) for selected in (1, 2, 3))],
)
def test_few_steps_agree_with_quadrature(noise, num_steps, num_selected):
    """The ends enclose the truth; that of labels loses a few per cent, that of one step a few thousandths."""
    for eps in (0.0, 0.4 / noise, 1.5 / noise):
        found, truths = (
            directions(noise, num_steps, num_selected, eps),
            by_quadrature(noise, num_steps, num_selected, eps),
        )
        for name, truth in zip(("remove", "add"), truths, strict=True):
            if truth < 1e-9:  # what the quadrature resolves
                continue
            assert found[name].lower <= truth * (1 + 1e-6)
            assert truth * (1 - 1e-6) <= found[name].upper
            assert found[name].lower >= truth * (0.995 if num_selected == 1 else 0.85)


def test_quadrature_agrees_with_sums_over_all_outputs():
    """The reference itself, against a plain sum over a grid of all three outputs."""
    noise, eps = 1.3, 0.7
    x = np.linspace(-8, 9, 171)
    law = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    ratio = np.exp(x / noise - 0.5 / noise**2)
    cube = [ratio[:, None, None], ratio[None, :, None], ratio[None, None, :]]
    mean = sum(cube[i] * cube[j] for i, j in itertools.combinations(range(3), 2)) / 3
    weight = law[:, None, None] * law[None, :, None] * law[None, None, :]
    removed, added = by_quadrature(noise, 3, 2, eps)
    assert removed == pytest.approx(np.sum(weight * np.maximum(mean - math.exp(eps), 0)), rel=2e-3)
    assert added == pytest.approx(np.sum(weight * np.maximum(1 - math.exp(eps) * mean, 0)), rel=2e-3)


def by_counting(noise, num_steps, num_selected, threshold, eps):
    """Return P - e^eps Q of the best event about how many outputs exceed a threshold: a lower bound of delta."""
    high, low = float(ndtr(1 / noise - threshold)), float(ndtr(-threshold))

    def binomial(trials, rate):
        j = np.arange(trials + 1)
        choose = np.array([math.lgamma(trials + 1) - math.lgamma(i + 1) - math.lgamma(trials - i + 1) for i in j])
        return np.exp(choose + j * math.log(rate) + (trials - j) * math.log1p(-rate))

    with_record = np.convolve(binomial(num_selected, high), binomial(num_steps - num_selected, low))
    return float(np.sum(np.maximum(with_record - math.exp(eps) * binomial(num_steps, low), 0)))


@pytest.mark.parametrize(
    ("noise", "num_steps", "num_selected", "eps"),
    [(0.5, 50, 5, 6.0), (0.7, 500, 5, 2.0), (1.0, 1000, 100, 20.0), (2.0, 1000, 10, 0.5), (4.0, 2000, 200, 2.0)],
)
def test_labels_tell_more_than_other_statistics(noise, num_steps, num_selected, eps):
    """The lower end is at least that of the sum of outputs, and of the number of outputs above any threshold."""
    found = directions(noise, num_steps, num_selected, eps)["remove"]
    others = [by_counting(noise, num_steps, num_selected, at, eps) for at in (0.0, 0.5, 1.0, 2.0, 3.0)]
    assert found.lower >= max([*others, hs.theta(eps, num_selected / noise / math.sqrt(num_steps))])
    assert found.lower <= found.upper


def test_issue_of_wide_brackets():
    """Brackets of subsets that were wide: the review's settings."""
    small = hs.Accountant().compose(hs.RandomAllocation(hs.Gaussian(2.0), 9, 4)).delta_bracket(2.0)
    assert small.lower > 8.4e-4  # of 8.5e-4; 6.6e-4 is what the sum of outputs tells
    large = hs.Accountant().compose(hs.RandomAllocation(hs.Gaussian(1.0), 1000, 100)).epsilon_bracket(1e-6)
    assert large.upper - large.lower < 0.05 * large.upper


def test_two_epochs_of_labels_stay_below_sampling():
    """Two epochs of 2 of 3 steps: the lower end is at most what the product of two exact ratios gives, by sampling."""
    noise, eps, rng = 1.5, 1.0, np.random.default_rng(11)
    r = 1 / noise
    x = rng.standard_normal((2, 3, 2_000_000))
    x[:, :2] += r  # under P; by symmetry the first two steps may be those selected
    ratio = np.exp(r * x - r * r / 2)
    log_ratio = np.log((ratio[:, 0] * ratio[:, 1] + ratio[:, 2] * (ratio[:, 0] + ratio[:, 1])) / 3).sum(0)
    values = -np.expm1(np.minimum(eps - log_ratio, 0))
    epoch = hs.RandomAllocation(hs.Gaussian(noise), 3, 2)
    found = hs.Accountant().compose(epoch, 2).explain(eps=eps).directions["remove"]
    error = 5 * values.std() / math.sqrt(values.size)
    assert found.lower <= values.mean() + error
    assert values.mean() - error <= found.upper


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("noise", "num_steps", "num_selected"),
    [
        (0.25, 1_000_000, 2),
        (1000.0, 1_000_000, 500_000),
        (0.25, 3, 2),
        (1000.0, 3, 2),
        (1.0, 100_000, 7),
        (0.3, 40, 39),
    ],
)
def test_extreme_subsets_have_brackets(noise, num_steps, num_selected):
    """At the ends of the domain lower ends are numbers, below upper ones, and above the sum of the outputs."""
    for eps in (0.0, 1.0, 30.0):
        for found in directions(noise, num_steps, num_selected, eps).values():
            assert 0 <= found.lower <= found.upper <= 1
