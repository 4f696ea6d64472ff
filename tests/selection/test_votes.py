"""Noisy votes against the laws of the winner, for all votes that one teacher can change."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import log_ndtr

import hockeystick as hs
from enumeration import hockey_stick
from hockeystick.selection import gaussian_votes, votes_epsilon, votes_renyi

ORDERS = np.array([1.01, 1.5, 2.0, 4.0, 8.0, 16.0, 40.0, 400.0, 5000.0])


def log_law(votes, noise):
    """Return the logarithms of the winner's probabilities, by the trapezoid rule."""
    scores = np.asarray(votes, dtype=float) / noise
    found = []
    for i, score in enumerate(scores):
        # Around where the integrand is largest, so that small probabilities keep their digits.
        x = np.linspace(score - 14.0, scores.max() + 14.0, 6001)
        logs = -0.5 * (x - score) ** 2 - 0.5 * math.log(2 * math.pi)
        for j, other in enumerate(scores):
            if j != i:
                logs = logs + log_ndtr(x - other)
        top = logs.max()
        found.append(top + math.log(np.exp(logs - top).sum() * (x[1] - x[0])))
    return np.array(found)


def renyi(p, q, order):
    """Return the divergence of laws given by logarithms."""
    terms = order * p + (1 - order) * q
    return float((terms.max() + np.log(np.exp(terms - terms.max()).sum())) / (order - 1))


def changed(votes):
    """Yield all votes with one moved to another class."""
    for a, b in itertools.permutations(range(len(votes)), 2):
        if votes[a] > 0:
            moved = list(votes)
            moved[a] -= 1
            moved[b] += 1
            yield moved


HISTOGRAMS = [  # votes, noise, and how many times as large as the truth the bound is at most, at orders from 2 to 16
    ([100, 2, 1], 5.0, 1.1), ([100, 2, 1], 20.0, 34.0), ([60, 40], 8.0, 4.0), ([51, 50, 9], 6.0, 2.6), ([30, 5, 5, 5], 3.0, 2.7),
    ([250, 0], 40.0, 22.0), ([20, 10, 3], 1.5, 1.3), ([90, 85, 75], 40.0, 1.8), ([7, 3], 1.0, 3.3), ([40, 1, 1, 1, 1], 7.0, 9.2),
    ([240, 5, 5], 40.0, 88.0), ([200, 30, 20], 30.0, 34.0),
]  # fmt: skip


@pytest.mark.parametrize(("votes", "noise", "times"), HISTOGRAMS)
def test_divergences(votes, noise, times):
    """Both directions, of all votes that one teacher can change, at all orders, are below the bound, not far where it matters."""
    bounds, p = votes_renyi(votes, noise, ORDERS), log_law(votes, noise)
    assert (bounds <= ORDERS / noise**2 * (1 + 1e-9)).all()
    others = [log_law(moved, noise) for moved in changed(votes)]
    for order, bound in zip(ORDERS, bounds, strict=True):
        largest = max(max(renyi(p, q, order), renyi(q, p, order)) for q in others)
        assert largest <= bound * (1 + 1e-6) + 1e-9 / (order - 1)
        assert not 2 <= order <= 16 or bound <= times * largest + 1e-9


def test_the_theorem_of_the_paper_has_one_direction():
    """Theorem 6 of Papernot et al. 2018 bounds the divergence from these votes to others; that from others to these can be larger."""
    votes, order, q = [7, 3], 2.0, math.erfc(2.0) / 2  # of a change of the winner, under noise of 1
    second = math.sqrt(-math.log(q))  # the orders of its Section B
    first = second + 1
    a = (1 - q) / (1 - (q * math.exp(second)) ** (1 - 1 / second))
    b = math.exp(first) / q ** (1 / second)
    printed = math.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)
    p, others = log_law(votes, 1.0), [log_law(moved, 1.0) for moved in changed(votes)]
    assert max(renyi(p, other, order) for other in others) <= printed
    assert max(renyi(other, p, order) for other in others) > 1.5 * printed


def test_the_guarantee_is_gaussian():
    """Whatever the votes, the laws of all histograms are below one Gaussian release."""
    for noise in (1.0, 3.0, 10.0):
        ledger = hs.Accountant().compose(gaussian_votes(noise))
        for votes in ([10, 10], [12, 9, 9], [30, 2, 1, 1], [5, 5, 5, 5]):
            p = np.exp(log_law(votes, noise))
            for moved in changed(votes):
                q = np.exp(log_law(moved, noise))
                for eps in (0.0, 0.3 / noise, 1.0 / noise, 2.0 / noise):
                    assert hockey_stick(p, q, eps) <= ledger.delta(eps) + 1e-9


def test_many_queries():
    """Divergences of queries add up; epsilon is that of their conversion, below the guarantee if votes agree."""
    agreed, split = [230, 10, 10], [90, 85, 75]
    both = votes_renyi([agreed] * 3 + [split], 40.0, ORDERS)
    assert both == pytest.approx(3 * votes_renyi(agreed, 40.0, ORDERS) + votes_renyi(split, 40.0, ORDERS), rel=1e-12)
    found = votes_epsilon([agreed] * 100, 40.0, 1e-6)
    assert found.status == "data-dependent"
    assert found.epsilon < 0.2 * found.guaranteed
    ledger = hs.Accountant().compose(hs.RenyiDP([found.order], [100 * votes_renyi(agreed, 40.0, [found.order])[0]]))
    assert found.epsilon <= ledger.epsilon(1e-6) * (1 + 1e-9)
    assert "private itself" in str(found)
    assert votes_epsilon([split] * 10, 40.0, 1e-6).epsilon <= votes_epsilon([split] * 10, 40.0, 1e-6).guaranteed


@pytest.mark.parametrize("times", [1, 7, 400])
def test_sums_are_rounded_up(times):
    """Even votes have the divergence of the noise, and the sum of many is never below the exact one."""
    rng = np.random.default_rng(times)
    for noise in rng.uniform(1.0, 100.0, 30):
        orders = rng.uniform(1.1, 40.0, 5)
        found = votes_renyi([[9, 9]] * times, float(noise), orders)
        for order, value in zip(orders, found, strict=True):
            exact = times * Fraction(float(order)) / Fraction(float(noise)) ** 2
            assert exact <= Fraction(float(value)) <= exact * (1 + Fraction(1, 10**12))


def test_it_is_no_mechanism():
    """No accountant takes a data-dependent number, and no arithmetic mixes it into a guarantee."""
    found = votes_epsilon([10, 2], 3.0, 1e-5)
    with pytest.raises(TypeError, match="mechanism must be one of"):
        hs.Accountant().compose(found)
    with pytest.raises(TypeError):
        found + 1.0
