"""Mixtures of Gaussians against tails to fifty digits, quadrature, groups of records, and a peer."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtr

import hockeystick as hs
from enumeration import encloses, hockey_stick

MIXTURES = [
    hs.MixtureOfGaussians(1.0, [0.0, 1.0, 2.0], [0.9, 0.09, 0.01]),
    hs.MixtureOfGaussians(0.4, [1.0, 0.5], [0.25, 0.75]),
    hs.MixtureOfGaussians(5.0, [0.0, 1e-3, 1.0, 7.0], [0.5, 0.3, 0.2 - 1e-9, 1e-9]),
    hs.MixtureOfGaussians.of_group(1.0, 8, 1e-3),
]


def exact_delta(mixture, eps, *, forward):
    """Return delta to some fifty digits, the outcome at the cut by bisection."""
    sigma = mp.mpf(mixture.noise_multiplier)
    parts = [(mp.mpf(s) / sigma, mp.mpf(p)) for s, p in zip(mixture.sensitivities, mixture.probabilities, strict=True)]
    total = mp.fsum(p for _, p in parts)
    cut = mp.exp(mp.mpf(eps) if forward else -mp.mpf(eps))
    low, high = mp.mpf(-(10**6)), mp.mpf(10**6)
    for _ in range(400):
        x = (low + high) / 2
        ratio = mp.fsum(p * mp.exp(r * x - r * r / 2) for r, p in parts) / total
        low, high = (x, high) if ratio <= cut else (low, x)
    sign = 1 if forward else -1

    def tail(mean):
        return mp.erfc(sign * (low - mean) / mp.sqrt(2)) / 2

    mixed = mp.fsum(p * tail(r) for r, p in parts) / total
    return mixed - mp.exp(eps) * tail(0) if forward else tail(0) - mp.exp(eps) * mixed


@pytest.mark.share(6, by_day=2)
@pytest.mark.parametrize("mixture", MIXTURES, ids=range(len(MIXTURES)))
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("eps", [-0.7, 0.0, 1e-4, 0.03, 0.6, 3.0, 17.0])
def test_one_step_agrees_with_tails(mixture, forward, eps):
    """Delta of one step lies between ends that are close, in both directions."""
    found = mixture._pair("add_or_remove").one_step(forward, False, eps)
    with mp.workdps(130):
        truth = max(exact_delta(mixture, eps, forward=forward), mp.mpf(0))
        encloses(found, truth, slack=1e-14)  # probabilities of a rate and its complement are rounded
    assert found[1] - found[0] <= 1e-8 * found[1] + 1e-300


@given(
    noise=st.floats(0.3, 6.0),
    most=st.lists(st.just(0.0) | st.floats(1e-3, 4.0), min_size=2, max_size=4),
    shares=st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4),
    eps=st.floats(-2.0, 5.0),
)
def test_smaller_moves_of_any_sign_leak_less(noise, most, shares, eps):
    """Whatever moves within the sensitivities, of either sign, have at most the pair's divergence, in both directions."""
    probabilities = [1 / len(most)] * len(most)
    entry = hs.MixtureOfGaussians(noise, most, probabilities)._pair("add_or_remove")
    x = np.linspace(-9, 9 + 5 / noise, 8_001) if noise > 1 else np.linspace(-24, 24, 20_001)
    moves = [(2 * share - 1) * s / noise for share, s in zip(shares, most, strict=False)]
    edges = [np.diff(ndtr(x - move)) for move in (*moves, 0.0)]  # of cells: merging outcomes only lowers delta
    mixed, still = np.mean(edges[:-1], axis=0), edges[-1]
    for forward in (True, False):
        p, q = (mixed, still) if forward else (still, mixed)
        attained = hockey_stick(p, q, eps)
        upper = entry.one_step(forward, False, eps)[1] if entry.leaks else max(0, -math.expm1(eps))
        assert attained <= upper + 1e-12


def test_sampling_is_a_mixture():
    """Sensitivities (0, 1) are Poisson sampling, one sensitivity is a Gaussian, a sampled mixture is a mixture."""
    sampled = hs.PoissonSampled(hs.Gaussian(2.0), 0.25)
    mixture = hs.MixtureOfGaussians(2.0, [0.0, 1.0], [0.75, 0.25])
    assert mixture._pair("add_or_remove") == sampled._pair("add_or_remove")
    alone = hs.MixtureOfGaussians.of_group(2.0, 1, 0.25)._pair("add_or_remove")
    assert alone.base == sampled._pair("add_or_remove").base
    assert alone.parameters == pytest.approx([0.25], rel=1e-15)
    whole = hs.MixtureOfGaussians(2.0, [1.0, 1.0], [0.5, 0.5])
    assert whole._pair("add_or_remove") == hs.Gaussian(2.0)._pair("add_or_remove")
    assert hs.Accountant().compose(hs.MixtureOfGaussians(1.0, [0.0, 3.0], [1.0, 0.0]), 9).delta(0.0) == 0
    twice = hs.PoissonSampled(hs.MixtureOfGaussians(1.0, [1.0, 3.0], [0.5, 0.5]), 0.5)
    once = hs.MixtureOfGaussians(1.0, [0.0, 1.0, 3.0], [0.5, 0.25, 0.25])
    assert twice._pair("add_or_remove") == once._pair("add_or_remove")


@example(still=0.6875, moves=1e-5)  # a sum between 1 and the next double
@given(still=st.floats(1e-30, 1.0), moves=st.floats(1e-30, 1.0))
def test_rate_is_rounded_up(still, moves):
    """The share that moves is never below the exact one, and no more than a rounding above it."""
    total = still + moves
    mixture = hs.MixtureOfGaussians(1.0, [0.0, 1.0], [still / total, moves / total])
    still, moves = map(Fraction, mixture.probabilities)
    exact, rate = moves / (still + moves), Fraction(mixture._pair("add_or_remove").parameters[-1])
    assert exact <= rate <= min(exact * (1 + Fraction(2) ** -52), 1)


def test_groups():
    """A group without sampling is one record of as many sensitivities; larger groups leak more; nobody sampled, nothing."""
    accountant = hs.Accountant().compose(hs.MixtureOfGaussians.of_group(4.0, 3, 1.0), 2)
    assert accountant.delta(1.0) == hs.Accountant().compose(hs.MixtureOfGaussians(4.0, [3.0], [1.0]), 2).delta(1.0)
    assert hs.Accountant().compose(hs.MixtureOfGaussians.of_group(4.0, 3, 0.0)).delta(0.0) == 0
    deltas = [hs.Accountant().compose(hs.MixtureOfGaussians.of_group(1.0, k, 0.01), 50).delta(1.0) for k in (1, 2, 4)]
    assert deltas == sorted(deltas)
    large = hs.MixtureOfGaussians.of_group(20.0, 1000, 1e-3)
    assert min(large.probabilities) == 1e-300
    assert math.fsum(large.probabilities) == pytest.approx(1.0, abs=1e-12)
