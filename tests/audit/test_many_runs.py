"""Audits of many runs: exact ends of the rates, coverage and tightness on mechanisms whose epsilon is known; and what audits refuse."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

import effort
import hockeystick as hs
import refused_calls
from hockeystick import audit
from hockeystick.audit.many_runs import Counts, corner, credible_epsilon, proportion_lower, thresholds_at_ranks

CONFIDENCE = 0.9
AUDITS = effort.at_night(400, by_day=200)
SLACK = int(stats.binom.isf(1e-4, AUDITS, 1 - CONFIDENCE))  # a sound audit fails more often once in 10,000 seeds


class Case(NamedTuple):
    """A mechanism whose epsilon is known at one delta, and how much of it 1e5 runs of each kind show."""

    sample: Callable[[np.random.Generator, int, bool], np.ndarray]
    epsilon: float
    delta: float
    shown: float


def gaussian(rng: np.random.Generator, n: int, present: bool) -> np.ndarray:
    """Draw N(0, 1) or N(1, 1)."""
    return rng.normal(float(present), 1.0, n)


def sampled_gaussian(rng: np.random.Generator, n: int, present: bool) -> np.ndarray:
    """Draw N(0, 1), or (1 - q) N(0, 1) + q N(1, 1) with q = 0.5."""
    return rng.normal(size=n) + (present & (rng.random(n) < 0.5))


CASES = {
    "gaussian": Case(gaussian, hs.gdp_epsilon(1.0, 1e-2), 1e-2, 0.75),
    "gaussian_deep": Case(gaussian, hs.gdp_epsilon(1.0, 1e-5), 1e-5, 0.5),
    "laplace": Case(lambda rng, n, present: rng.laplace(float(present), 1.0, n), 1.0, 0.0, 0.9),
    "laplace_reversed": Case(lambda rng, n, present: -rng.laplace(float(present), 1.0, n), 1.0, 0.0, 0.9),
    "randomised_response": Case(
        lambda rng, n, present: (rng.random(n) < (0.75 if present else 0.25)).astype(float), math.log(3), 0.0, 0.95
    ),
    "sampled_gaussian": Case(
        sampled_gaussian,
        hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.5)).epsilon_bracket(1e-2).upper,
        1e-2,
        0.6,
    ),
    "both_directions": Case(  # the probability ratio is large where the record is absent, so that only 1 - y shows it
        lambda rng, n, present: (rng.random(n) < (0.99 if present else 0.8)).astype(float), math.log(20), 0.0, 0.8
    ),
    "nothing": Case(lambda rng, n, present: rng.normal(size=n) + 0 * present, 0.0, 0.0, 1.0),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.mark.share(3)
@pytest.mark.parametrize("failure", [0.3, 0.05, 1e-6])
@pytest.mark.parametrize(("successes", "trials"), [(1, 1), (1, 30), (17, 30), (30, 30), (3, 4000), (3990, 4000)])
def test_proportion(successes: int, trials: int, failure: float) -> None:
    """At the Clopper-Pearson end so many successes or more have exactly the probability of failure."""
    p = mpmath.mpf(float(proportion_lower(np.array(float(successes)), np.array(float(trials)), failure)))
    with mpmath.workdps(40):
        tail = mpmath.fsum(
            mpmath.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1)
        )
    assert float(tail) == pytest.approx(failure, rel=1e-8)


@pytest.mark.parametrize(("n", "delta", "confidence"), [(1, 0.0, 0.5), (50, 1e-5, 0.95), (1000, 0.0, 0.999999)])
def test_perfect_test(n: int, delta: float, confidence: float) -> None:
    """Where all runs are told apart, both ends have a closed form, and the bound is finite."""
    y = ((1 - confidence) / 2) ** (1 / n)
    found = audit.evaluate(np.ones(n), np.zeros(n), delta=delta, confidence=confidence, threshold=0.5)
    assert found.epsilon == pytest.approx(max(0.0, math.log(max(y - delta, 1e-9) / (1 - y))), rel=1e-9)
    mu = audit.mu_lower_bound(np.ones(n), np.zeros(n), confidence=confidence, threshold=0.5)
    assert mu == pytest.approx(max(0.0, 2 * stats.norm.ppf(y)), rel=1e-9)
    assert (found.true_positives, found.num_in, found.false_positives, found.num_out) == (n, n, 0, n)


@pytest.mark.share(4)
@pytest.mark.parametrize("counts", [Counts(9, 30, 2, 40), Counts(30, 30, 0, 30), Counts(700, 1000, 650, 1000)])
@pytest.mark.parametrize("delta", [0.0, 1e-2])
@pytest.mark.parametrize("failure", [0.05, 1e-4])
def test_credible_region(counts: Counts, delta: float, failure: float) -> None:
    """The privacy region of the Bayesian bound has the posterior probability asked for, by adaptive quadrature."""
    epsilon = credible_epsilon(counts, delta, failure)
    x = stats.beta(counts.false_positives + 0.5, counts.num_out - counts.false_positives + 0.5)
    y = stats.beta(counts.true_positives + 0.5, counts.num_in - counts.true_positives + 0.5)

    def inside(u: float) -> float:
        rate = x.ppf(u)
        return y.cdf(min(1.0, delta + math.exp(epsilon) * rate, 1 - math.exp(-epsilon) * (1 - delta - rate)))

    points = [1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-3, 1 - 1e-6]
    probability = integrate.quad(inside, 0, 1, points=points, limit=500, epsabs=1e-9, epsrel=1e-7)[0]
    if epsilon > 0:
        assert probability == pytest.approx(failure, rel=2e-4)
    else:
        assert probability > failure


def failures(bounds: list[float], truth: float) -> int:
    """Return how many bounds exceed the truth."""
    return int(np.sum(np.array(bounds) > truth * (1 + 1e-12)))


@pytest.mark.share(8)
@cases
@pytest.mark.parametrize("n", [40, 2000])
def test_coverage(case: Case, n: int) -> None:
    """Not more audits than 1 - confidence exceed the true epsilon, by either method that assumes nothing."""
    rng = np.random.default_rng(1)
    runs = [(case.sample(rng, n, True), case.sample(rng, n, False)) for _ in range(AUDITS)]
    for method in ("clopper_pearson", "simultaneous"):
        asked = {"delta": case.delta, "confidence": CONFIDENCE, "method": method}
        assert failures([audit.epsilon_lower_bound(*scores, **asked) for scores in runs], case.epsilon) <= SLACK


@pytest.mark.parametrize("laws", [(stats.norm(1.0), stats.norm()), (stats.binom(20, 0.6), stats.binom(20, 0.5)), (stats.bernoulli(0.7), stats.bernoulli(0.4))], ids=["continuous", "few values", "two values"])  # fmt: skip
def test_all_ends_at_ranks_hold_together(laws: tuple[Any, Any]) -> None:
    """The true rates of all tests lie within their ends together, also where scores are equal; without a share for each they do not.

    Where no scores are equal, what is counted is what each test says of these runs.
    """
    rng = np.random.default_rng(9)
    missed = np.zeros((AUDITS, 2), bool)
    for row in missed:
        runs = [law.rvs(200, random_state=rng).astype(float) for law in laws]
        tests = thresholds_at_ranks(*runs)
        said = (zip(test.apply(*runs), counts, strict=True) for test, counts in tests)
        assert laws[0].support()[0] == 0 or all(np.array_equal(*pair) for pairs in said for pair in pairs)
        number = sum(test.threshold.size for test, _ in tests)
        for (rule, t), counts in tests:
            up, down = np.nextafter(np.ceil(t), -np.inf), np.floor(t)  # scores of few values are whole numbers
            places = t if laws[0].support()[0] < 0 else up if rule == ">=" else down
            y, x = (law.sf(places) if rule == ">=" else law.cdf(places) for law in laws)
            for k, failure in enumerate(((1 - CONFIDENCE) / number, 0.3)):
                most, least = corner(counts, failure)
                row[k] |= bool((x > most).any() or (y < least).any())
    assert missed[:, 0].sum() <= SLACK
    assert missed[:, 1].sum() > SLACK


def gaussian_audits(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the scores of many audits of a Gaussian mechanism with mu = 1."""
    rng = np.random.default_rng(seed)
    return [(gaussian(rng, 1000, True), gaussian(rng, 1000, False)) for _ in range(AUDITS)]


def test_coverage_of_mu() -> None:
    """The same for the parameter of a Gaussian mechanism, whose every threshold attains it, and for its epsilon."""
    runs = gaussian_audits(2)
    mu = [audit.mu_lower_bound(*scores, confidence=CONFIDENCE) for scores in runs]
    epsilon = [audit.epsilon_lower_bound(*scores, delta=1e-5, confidence=CONFIDENCE, method="gdp") for scores in runs]
    assert failures(mu, 1.0) <= SLACK
    assert epsilon == pytest.approx(hs.gdp_epsilon(mu, 1e-5))


def test_the_runs_that_choose_do_not_count() -> None:
    """A quarter of the runs, rounded up, chooses; the counts are those of the others."""
    found = audit.evaluate(np.arange(1, 12), -np.arange(1, 6), delta=0.0, confidence=0.9)
    assert (found.num_in, found.num_out) == (8, 3)
    assert (found.true_positives, found.false_positives) == (8, 0) or found.threshold > 1


def test_sorted_scores_say_the_same() -> None:
    """Scores in ascending order give bounds of the same law: the runs that choose do not tell of those that count."""
    runs = gaussian_audits(7)
    listed, ascending = (
        np.array([audit.mu_lower_bound(*map(order, scores), confidence=0.5) for scores in runs])
        for order in (np.array, np.sort)
    )
    error = math.hypot(listed.std(), ascending.std()) / math.sqrt(AUDITS)
    assert abs(listed.mean() - ascending.mean()) < 4 * error


def test_runs_may_be_paired() -> None:
    """Runs that share their noise in pairs keep the coverage."""
    rng = np.random.default_rng(8)
    noise = rng.normal(size=(AUDITS, 1000))
    bounds = [audit.mu_lower_bound(1.0 + row, row, confidence=CONFIDENCE) for row in noise]
    assert failures(bounds, 1.0) <= SLACK


@cases
def test_tightness(case: Case) -> None:
    """From 1e5 runs of each kind the audit shows the stated part of the true epsilon."""
    rng = np.random.default_rng(4)
    scores = case.sample(rng, 100_000, True), case.sample(rng, 100_000, False)
    bound = audit.epsilon_lower_bound(*scores, delta=case.delta, confidence=0.999)
    assert case.shown * case.epsilon <= bound <= case.epsilon


def test_methods_are_ordered() -> None:
    """Where its assumption is true, the Gaussian fit shows more than the Bayesian bound, and that more than the default."""
    rng = np.random.default_rng(5)
    scores = rng.normal(1.0, 1.0, 100_000), rng.normal(0.0, 1.0, 100_000)
    exact, credible, fit = (
        audit.epsilon_lower_bound(*scores, delta=1e-5, confidence=0.95, method=method)
        for method in ("clopper_pearson", "bayesian", "gdp")
    )
    assert exact < credible < fit <= hs.gdp_epsilon(1.0, 1e-5)


def test_scores_are_only_ordered() -> None:
    """An increasing map of scores and threshold, infinities among them, changes nothing; a decreasing one turns the rule round."""
    rng = np.random.default_rng(6)
    inside, outside = rng.normal(1.0, 1.0, 4000), rng.normal(0.0, 1.0, 4000)
    inside[:5], outside[:5] = np.inf, -np.inf
    asked = {"delta": 1e-3, "confidence": 0.95}
    first = audit.evaluate(inside, outside, **asked, threshold=1.0)
    mapped = audit.evaluate(np.arctan(inside), np.arctan(outside), **asked, threshold=np.arctan(1.0))
    assert dataclasses.replace(mapped, threshold=1.0) == first
    assert audit.evaluate(inside, outside, **asked).rule == ">="
    turned = audit.evaluate(-inside, -outside, **asked)
    assert turned.rule == "<="
    assert turned.epsilon > 1.0


def test_equal_scores_are_called_the_same() -> None:
    """Nothing is learnt from one value, nor from the order of the runs."""
    assert audit.epsilon_lower_bound(np.ones(1000), np.ones(1000), delta=0.0, confidence=0.5) == 0
    assert audit.mu_lower_bound(np.ones(1000), np.ones(1000), confidence=0.5) == 0
    assert audit.epsilon_lower_bound([1, 1], [0, 0], delta=0.0, confidence=0.95) == 0  # one run each is too little


def test_joint_confidence() -> None:
    """Bounds at the individual confidence hold together at the joint one, by the sum of their failures."""
    each = audit.individual_confidence(0.95, 7)
    assert 7 * (1 - each) == pytest.approx(0.05, rel=1e-12)
    assert audit.individual_confidence(0.95, 1) == 0.95


def test_evidence_says_what_it_rests_on() -> None:
    """The sentence has bound, delta, kind of statement, rule and counts."""
    scores = np.r_[np.ones(75), np.zeros(25)], np.r_[np.ones(25), np.zeros(75)]
    asked = {"delta": 1e-5, "confidence": 0.95, "threshold": 0.5}
    sentence = str(audit.evaluate(*scores, **asked))
    assert sentence.endswith("score >= 0.5 in 75 of 100 runs with the record and 25 of 100 without")
    assert "with confidence 0.95" in sentence
    assert "no confidence" in str(audit.evaluate(*scores, **asked, method="bayesian"))
    assert "if the trade-off function is Gaussian" in str(audit.evaluate(*scores, **asked, method="gdp"))


NAMES = {
    **vars(audit),
    "math": math,
    "RUNS": {"scores_in": [1.0, 2.0], "scores_out": [0.0, 1.0], "delta": 1e-5, "confidence": 0.95},
    "PAIR": {"direction": [1.0, 0.0], "clip_norm": 1.0, "loss": "logistic", "reach": 0.1},
    "RUN": {"scores": [1.0, 0.0], "included": [True, False], "num_guesses": 2, "delta": 1e-5, "confidence": 0.95},
}
REFUSED = r"""
evaluate(**RUNS | {"scores_in": []}) -> scores_in must be a sequence of at least 2 scores
evaluate(**RUNS | {"scores_in": [], "threshold": 0.0}) -> scores_in .* at least 1
evaluate(**RUNS | {"scores_out": [[1.0, 2.0]]}) -> scores_out .* not of shape \(1, 2\)
evaluate(**RUNS | {"scores_in": [True, False]}) -> TypeError: scores_in must be a real number
evaluate(**RUNS | {"delta": 0.0, "method": "gdp"}) -> delta must be positive for method='gdp'
evaluate(**RUNS | {"method": "dkw"}) -> method must be one of 'clopper_pearson', 'simultaneous', 'bayesian', 'gdp'
evaluate(**RUNS | {"method": "simultaneous", "threshold": 0.5}) -> threshold must be left out
evaluate(**RUNS | {"threshold": math.nan}) -> threshold must be a number, not nan
individual_confidence(1 - 1e-16, 10) -> num_audits must be smaller
canary_pair(**PAIR | {"direction": [0.0, 0.0]}) -> direction must be a finite vector of positive length
canary_pair(**PAIR | {"direction": 1.0}) -> direction
canary_pair(**PAIR | {"loss": "hinge"}) -> loss must be one of 'linear', 'logistic'
canary_pair(**PAIR | {"reach": None}) -> TypeError: reach must be given for loss='logistic'
canary_pair(**PAIR | {"loss": "linear"}) -> TypeError: reach must be given for loss='logistic' and only there
canary_pair(**PAIR | {"reach": 0.279}) -> clip_norm \* reach must be at most 0.27846
canary_direction([[]]) -> features must be finite and of shape
one_run(**RUN | {"scores": [], "included": []}) -> scores must be a sequence of at least 1
one_run(**RUN | {"included": [1, 0]}) -> TypeError: included must be an array of booleans
one_run(**RUN | {"included": [True]}) -> included must have the shape of scores, \(2,\), not \(1,\)
one_run(**RUN | {"num_guesses": 3}) -> num_guesses must be at most the number of canaries, 2, not 3
one_run(**RUN | {"num_guesses": True}) -> TypeError: num_guesses must be an integer
one_run(**RUN | {"delta": 0.0, "method": "gdp"}) -> delta must be positive for method='gdp'
one_run(**RUN | {"method": "bayesian"}) -> method must be one of 'f_dp', 'binomial', 'gdp'
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """What is outside its domain is named with its value, and wrong types are told from wrong values."""
    refused_calls.check(call, reason, NAMES)
