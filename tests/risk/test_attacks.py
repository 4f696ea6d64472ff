"""Chances of attacks: closed forms, pairs whose best attack is known, and attacks that are played through."""

import functools
import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

import hockeystick as hs
import refused_calls
from compositions import composed
from hockeystick import risk

TIGHT = 1e-9  # what a bound that is attained may lose
# Numbers below the normal doubles have few digits, in references too; they have a test of their own.
PROBABILITIES = st.one_of(st.floats(0.0, 1.0, allow_subnormal=False), st.floats(-300.0, 0.0).map(lambda x: 10.0**x))


released = functools.partial(composed, adjacency="replace")


def best_event(p, q, fpr: float) -> float:
    """Return the largest P(S) among randomised events with Q(S) <= fpr, by Neyman and Pearson."""
    found, left = 0.0, fpr
    for x, y in sorted(zip(p, q, strict=True), key=lambda pair: -math.inf if pair[1] == 0 else -pair[0] / pair[1]):
        share = 1.0 if y <= left else left / y
        found, left = found + share * x, left - share * y
    return found


@given(st.floats(0.05, 50.0), PROBABILITIES)
def test_gaussian(noise_multiplier, fpr):
    """One Gaussian release has Phi(Phi^-1(fpr) + 1/noise multiplier), to all digits however small."""
    found = risk.true_positive_rate(released(hs.Gaussian(noise_multiplier), adjacency="add_or_remove"), fpr)
    exact = norm.sf(norm.isf(fpr) - 1.0 / noise_multiplier) if 0.0 < fpr < 1.0 else fpr
    assert exact * (1.0 - 1e-10) <= found <= exact * (1.0 + 1e-8)


@pytest.mark.parametrize("fpr", [5e-324, 1e-310, 1e-300])
def test_rates_as_small_as_doubles_can_be(fpr):
    """The same at the end of the doubles, where the farthest line still counts."""
    found = risk.true_positive_rate(released(hs.Gaussian(1.0), adjacency="add_or_remove"), fpr)
    with mp.workdps(30):
        quantile = mp.findroot(lambda x: mp.log(mp.ncdf(x)) - mp.log(mp.mpf(fpr)), -37.5)
        exact = mp.ncdf(quantile + 1)
    assert exact * (1 - mp.mpf("1e-10")) <= found <= exact * (1 + mp.mpf("1e-6")) + mp.mpf("1e-321")


def masses(n):
    """Return strategies of n masses that sum to 1; the losses between two of them are at most 700."""
    numbers = st.lists(st.just(0.0) | st.floats(1e-290, 1.0), min_size=n, max_size=n).filter(lambda x: sum(x) > 0.1)
    return numbers.map(lambda x: [value / math.fsum(x) for value in x])


@given(masses(4), masses(4), PROBABILITIES)
def test_any_pair(p, q, fpr):
    """No event is more likely than that, in either order of the laws; and a symmetric pair attains it."""
    pair = hs.Discrete(p, q)
    found = risk.true_positive_rate(released(pair), fpr)
    attained = max(best_event(p, q, fpr), best_event(q, p, fpr))
    assert found >= attained * (1.0 - 1e-12)
    both = [*(x / 2 for x in p), *(x / 2 for x in q)], [*(x / 2 for x in q), *(x / 2 for x in p)]
    again = risk.true_positive_rate(released(hs.Discrete(*both)), fpr)
    exact = best_event(*both, fpr)
    assert exact * (1.0 - 1e-12) <= again <= exact * (1.0 + 1e-6) + 1e-12


@given(st.floats(0.1, 10.0), st.floats(0.0, 1.0))
def test_it_is_one_less_the_trade_off(noise_multiplier, fpr):
    """The true-positive rate and the false-negative rate are bounds of the same test."""
    accountant = released(hs.PoissonSampled(hs.Gaussian(noise_multiplier), 0.1), adjacency="add_or_remove")
    assert risk.true_positive_rate(accountant, fpr) == pytest.approx(1.0 - accountant.trade_off(fpr), abs=1e-12)


def k_answers(epsilon: float, k: int) -> tuple[float, float]:
    """Return the probabilities of the true and of any other answer of randomised response among k."""
    true = 1.0 / (1.0 + (k - 1) * math.exp(-epsilon))
    return true, (1.0 - true) / (k - 1)


@given(st.floats(0.01, 8.0), st.integers(2, 1000))
def test_randomised_response_attains_the_bounds(epsilon, k):
    """Guessing the answer that is seen is the best attack, and the bounds are its chance."""
    a, b = k_answers(epsilon, k)
    replaced = released(hs.Discrete([a, b, 1.0 - a - b], [b, a, 1.0 - a - b]) if k > 2 else hs.Discrete([a, b], [b, a]))
    wrong = risk.bayes_risk(replaced, [1.0 / k] * k)
    assert (1.0 - a) - 1e-9 <= wrong <= (1.0 - a) + 1e-12
    uniform = released(hs.Discrete([a, 1.0 - a], [1.0 / k, 1.0 - 1.0 / k]), adjacency="add_or_remove")
    assert a * (1.0 - 1e-12) <= risk.reconstruction(uniform, 1.0 / k) <= a * (1.0 + TIGHT)
    assert 1.0 - a - 1e-9 <= risk.bayes_risk(uniform, [1.0 / k] * k) <= 1.0 - a + 1e-12


@given(st.floats(0.2, 20.0), masses(5), st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5))
def test_the_best_guess_of_a_value(noise_multiplier, prior, values):
    """The Bayes risk of five values with Gaussian noise, by quadrature, is no smaller than the bound."""
    grid = np.linspace(-8.0 * noise_multiplier, 1.0 + 8.0 * noise_multiplier, 20_001)
    right = np.max(
        [p * norm.pdf(grid, value, noise_multiplier) for p, value in zip(prior, values, strict=True)], axis=0
    )
    exact = 1.0 - float(integrate.trapezoid(right, grid))
    bound = risk.bayes_risk(released(hs.Gaussian(2.0 * noise_multiplier)), prior)  # "replace" doubles the distance
    assert bound <= exact + 1e-6
    outside = risk.bayes_risk(released(hs.Gaussian(noise_multiplier), adjacency="add_or_remove"), prior)
    assert outside <= exact + 1e-6


@given(st.floats(0.2, 20.0), st.floats(0.0, 1.0))
def test_two_candidates(noise_multiplier, p):
    """Whether a record is there, with Gaussian noise: the closed form of the best test, and both spellings of the prior."""
    m = 1.0 / noise_multiplier
    exact = min(p, 1.0 - p)
    if 0.0 < p < 1.0 and exact > 1e-12:
        at = math.log((1.0 - p) / p) / m
        exact = (1.0 - p) * norm.sf(at + m / 2) + p * norm.cdf(at - m / 2)
    found = risk.bayes_risk(released(hs.Gaussian(noise_multiplier), adjacency="add_or_remove"), p)
    assert exact * (1.0 - 1e-8) - 1e-12 <= found <= exact * (1.0 + 1e-10)
    replaced = released(hs.Gaussian(2.0 * noise_multiplier))
    assert risk.bayes_risk(replaced, [p, 1.0 - p]) == pytest.approx(found, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_singling_out_is_played_through(n, epsilon):
    """Record 1, one of five values, is published by randomised response; the attack names "has the value that was published"."""
    a, b = k_answers(epsilon, 5)
    chance = 0.0
    for data in itertools.product(range(5), repeat=n):
        for answer in range(5):
            law = a if answer == data[0] else b
            chance += law * (data.count(answer) == 1) / 5**n
    assert chance <= risk.singling_out(released(hs.Discrete([a, b, 1 - a - b], [b, a, 1 - a - b])), 0.2, n)
    # A fresh record makes all answers equally likely: this pair, with which a single record attains the bound.
    bound = risk.singling_out(released(hs.Discrete([a, 1 - a], [0.2, 0.8])), 0.2, n)
    assert chance <= bound * (1.0 + 1e-12)
    if n == 1:
        assert bound <= chance * (1.0 + TIGHT)


@settings(max_examples=4)
@given(st.lists(PROBABILITIES, min_size=2, max_size=6))
def test_more_is_found_where_more_is_allowed(rates):
    """Chances rise with the baseline, lie above it, and an array answers as its numbers do."""
    accountant = released(hs.PoissonSampled(hs.Gaussian(1.0), 0.1), hs.Laplace(2.0), adjacency="add_or_remove")
    found = risk.attribute_inference(accountant, np.sort(rates))
    assert (found >= np.sort(rates)).all()
    assert (np.diff(found) >= -1e-9 * found[1:]).all()
    assert found == pytest.approx(
        [risk.reconstruction(accountant, rate) for rate in sorted(rates)], rel=1e-7, abs=1e-300
    )


def test_nothing_and_everything():
    """Nothing released leaves the baseline; a release of the data leaves nothing."""
    nothing = hs.Accountant()
    assert risk.true_positive_rate(nothing, [0.0, 1e-9, 0.5, 1.0]).tolist() == [0.0, 1e-9, 0.5, 1.0]
    assert risk.bayes_risk(nothing, 0.3) == pytest.approx(0.3, rel=1e-12)
    assert risk.bayes_risk(nothing, [0.2, 0.5, 0.3]) == pytest.approx(0.5, rel=1e-9)
    everything = released(hs.ApproximateDP(0.0, 1.0))
    assert risk.true_positive_rate(everything, [0.0, 0.5]).tolist() == [1.0, 1.0]
    assert risk.bayes_risk(everything, [0.5, 0.5]) == 0.0
    assert risk.bayes_risk(nothing, [1.0]) == risk.bayes_risk(nothing, 1.0) == 0.0


def test_numbers_below_the_normal_doubles_are_on_the_safe_side():
    """There margins of rounding are nothing: an upper end goes up, a lower end is 0."""
    two_lines = released(hs.ApproximateDP(0.4, 0.3), adjacency="add_or_remove")
    assert risk.true_positive_rate(released(hs.ApproximateDP(0.4, 0.0)), 5e-324) >= 1e-323
    assert risk.bayes_risk(two_lines, 5e-324) == 0.0
    assert type(risk.bayes_risk(two_lines, 0.5)) is float


def test_many_different_candidates():
    """A prior of three hundred different weights takes as few questions as one of two."""
    weights = np.arange(1.0, 301.0)
    assert 0.9 < risk.bayes_risk(released(hs.Gaussian(4.0)), weights / math.fsum(weights)) < 1.0


NAMES = {"risk": risk, "a": hs.Accountant()}
REFUSED = r"""
risk.bayes_risk(a, [0.5, 0.4]) -> prior must be probabilities .* sum to 1
risk.bayes_risk(a, []) -> prior
risk.true_positive_rate(3, 0.5) -> TypeError: accountant must be an Accountant, not 3
risk.attribute_inference(3, 0.5) -> TypeError: accountant must be an Accountant, not 3
risk.reconstruction(3, 0.5) -> TypeError: accountant must be an Accountant, not 3
risk.bayes_risk(3, 0.5) -> TypeError: accountant must be an Accountant, not 3
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is outside its domain, and what is no accountant, is named."""
    refused_calls.check(call, reason, NAMES)
