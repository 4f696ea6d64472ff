"""Audits of one run: the tail of right guesses against linear programmes and known laws, coverage on known mechanisms."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import optimize, special, stats

import hockeystick as hs
from hockeystick import audit
from hockeystick.audit.one_run import Guesses, approximate_dp_inverse, binomial_rejects, gaussian_inverse, impossible

METHODS = ("f_dp", "binomial")
AUDITS = 200


def largest_tail(right: int, made: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return the largest P(W >= right) that (epsilon, delta)-DP allows, by a linear programme over the law of W.

    For every c: sum_{j>=c} j p_j <= m (1 - f)(sum_{j>=c-1} (r - j) p_j / m), 1 - f the smallest of three lines.
    """
    j = np.arange(made + 1)
    rows, limits = [], []
    for c in range(1, made + 1):
        hits, misses = j * (j >= c), (made - j) * (j >= c - 1)
        rows += [hits - math.exp(epsilon) * misses, hits - math.exp(-epsilon) * misses]
        limits += [canaries * delta, canaries * (1 - math.exp(-epsilon) * (1 - delta))]
    found = optimize.linprog(
        -(j >= right).astype(float), A_ub=np.array(rows), b_ub=limits, A_eq=np.ones((1, made + 1)), b_eq=[1.0]
    )
    assert found.success
    return -found.fun


@pytest.mark.parametrize(("made", "canaries"), [(12, 12), (12, 40), (25, 25)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.5, 0.0), (1.0, 1e-3), (2.0, 0.02)])
def test_recursion_solves_the_linear_programme(made: int, canaries: int, epsilon: float, delta: float) -> None:
    """The recursion refutes a failure probability exactly where the linear programme cannot reach it."""
    for right in (made // 2, made // 2 + 3, made):
        tail = largest_tail(right, made, canaries, epsilon, delta)
        guesses, inverse = Guesses(right, made, canaries), approximate_dp_inverse(epsilon, delta)
        assert impossible(guesses, inverse, min(1.0, tail * 1.001)) or tail > 0.999
        assert not impossible(guesses, inverse, tail * 0.999)


@pytest.mark.parametrize("made", [1, 10, 60])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (1.0, 1e-4), (1.0, 5e-3)])
def test_binomial_solves_the_worst_coupling(made: int, epsilon: float, delta: float) -> None:
    """The binomial tail is the worst over all couplings of a binomial B with an N of mean m delta, by a linear programme."""
    canaries = 2 * made
    masses = stats.binom.pmf(np.arange(made + 1), made, 1 / (1 + math.exp(-epsilon)))
    for right in {1, made // 2 + 1, made}:
        missing = np.maximum(right - np.arange(made + 1), 0)  # how much N must be; gain at most the mass there
        found = optimize.linprog(
            -np.ones(made + 1),
            A_ub=missing[None].astype(float),
            b_ub=[canaries * delta],
            bounds=list(zip(np.zeros(made + 1), masses, strict=True)),
        )
        tail = -found.fun
        assert binomial_rejects(Guesses(right, made, canaries), epsilon, delta, min(1.0, tail * (1 + 1e-7)) + 1e-12)
        assert not binomial_rejects(Guesses(right, made, canaries), epsilon, delta, tail * (1 - 1e-7))


def known_laws() -> Iterator[tuple[Guesses, float, float | None, float]]:
    """Yield guesses, and what they obey: (epsilon, delta)-DP, or mu-GDP without a delta; with the probability of so many right ones.

    Randomised response is right with e^eps/(1 + e^eps); it may show each coin, or all, with probability delta. The best guess at a
    coin behind N(+-mu/2, 1) is right with Phi(mu/2).
    """
    for epsilon, made in itertools.product((0.1, 1.0, 3.0), (1, 7, 50, 1000)):
        for right in {1, made // 2 + 1, int(0.9 * made) + 1, made}:
            yield Guesses(right, made, made), epsilon, 0.0, stats.binom.sf(right - 1, made, special.expit(epsilon))
    for delta, right in itertools.product((1e-3, 0.05), (20, 30, 36, 40)):
        rate = special.expit(1.0)
        each = stats.binom.sf(right - 1, 40, delta + (1 - delta) * rate)
        together = delta + (1 - delta) * stats.binom.sf(right - 1, 40, rate)
        for tail in (each, together):
            yield Guesses(right, 40, 40), 1.0, delta, tail
    for mu, made in itertools.product((0.2, 1.0, 3.0), (1, 20, 400)):
        for right in {1, made // 2 + 1, made}:
            yield Guesses(right, made, made), mu, None, stats.binom.sf(right - 1, made, stats.norm.cdf(mu / 2))


def test_what_mechanisms_attain_is_never_refuted() -> None:
    """Each law's own probability, but for rounding, is not called impossible; randomised response attains the binomial tail."""
    for guesses, parameter, delta, tail in known_laws():
        failure = float(tail) * (1 - 1e-9)
        inverse = gaussian_inverse(parameter) if delta is None else approximate_dp_inverse(parameter, delta)
        assert not impossible(guesses, inverse, failure), (guesses, parameter, delta)
        if delta is not None:
            assert not binomial_rejects(guesses, parameter, delta, failure), (guesses, parameter, delta)
        if delta == 0.0:
            assert binomial_rejects(guesses, parameter, 0.0, min(failure * (1 + 1e-6), 1.0))
    for delta in (1e-3, 0.05):
        assert binomial_rejects(Guesses(40, 40, 40), 1.0, 0.0, delta)  # what is possible with delta only


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_two_methods_agree(delta: float) -> None:
    """At small m delta the two bounds are within 5 % of each other, and the binomial one is the larger without delta."""
    coins = np.arange(2000) % 2 == 0
    scores = np.where(np.arange(2000) % 10 < 3, ~coins, coins).astype(float)
    first, second = (
        audit.one_run(scores, coins, num_guesses=1000, delta=delta, confidence=0.95, method=method).epsilon
        for method in METHODS
    )
    assert first == pytest.approx(second, rel=0.05)
    assert delta > 0 or first <= second


def exceeding(method: str, epsilon: float, delta: float, make_scores, num_guesses: int) -> int:
    """Return how many audits at confidence 0.9 exceed the true epsilon."""
    rng = np.random.default_rng(1)
    count = 0
    for _ in range(AUDITS):
        coins = rng.random(300) < 0.5
        scores = make_scores(rng, coins)
        evidence = audit.one_run(scores, coins, num_guesses=num_guesses, delta=delta, confidence=0.9, method=method)
        count += evidence.epsilon > epsilon
    return count


def answers(rng: np.random.Generator, coins: np.ndarray) -> np.ndarray:
    """Answer by randomised response with epsilon = 1."""
    return (coins ^ (rng.random(coins.size) < 1 / (1 + math.e))).astype(float)


def noisy(rng: np.random.Generator, coins: np.ndarray) -> np.ndarray:
    """Add Gaussian noise of standard deviation 1."""
    return coins + rng.normal(size=coins.size)


def answers_or_all(rng: np.random.Generator, coins: np.ndarray) -> np.ndarray:
    """Show all coins with probability 0.15, else answer."""
    return coins.astype(float) if rng.random() < 0.15 else answers(rng, coins)


SLACK = int(stats.binom.isf(1e-4, AUDITS, 0.1))


KNOWN = [  # epsilon at delta; "gdp" where its assumption is true
    *((method, 1.0, 0.0, answers) for method in METHODS),
    *((method, hs.gdp_epsilon(1.0, 1e-3), 1e-3, noisy) for method in METHODS),
    *((method, 1.0, 0.15, answers_or_all) for method in METHODS),
    ("gdp", hs.gdp_epsilon(1.0, 1e-5), 1e-5, noisy),
]


@pytest.mark.share(7)
@pytest.mark.parametrize("num_guesses", [40, 300])
@pytest.mark.parametrize(("method", "epsilon", "delta", "make_scores"), KNOWN)
def test_coverage(method: str, epsilon: float, delta: float, make_scores, num_guesses: int) -> None:
    """Not more audits than 1 - confidence exceed the true epsilon, which without delta is infinite for answers that are sometimes plain."""
    assert exceeding(method, epsilon, delta, make_scores, num_guesses) <= SLACK
    if make_scores is answers_or_all:
        assert exceeding(method, epsilon, 0.0, make_scores, num_guesses) > SLACK


@pytest.mark.parametrize(
    ("method", "make_scores", "truth", "delta", "shown"),
    [
        ("binomial", answers, 1.0, 0.0, 0.93),
        ("f_dp", answers, 1.0, 0.0, 0.93),
        ("f_dp", noisy, hs.gdp_epsilon(1.0, 1e-5), 1e-5, 0.4),
        ("gdp", noisy, hs.gdp_epsilon(1.0, 1e-5), 1e-5, 0.6),
    ],
)
def test_tightness(method: str, make_scores, truth: float, delta: float, shown: float) -> None:
    """1000 guesses at 1e4 canaries in one run show the stated part of the true epsilon."""
    rng = np.random.default_rng(2)
    coins = rng.random(10_000) < 0.5
    scores = make_scores(rng, coins)
    guesses = 5000 if make_scores is answers else 1000
    bound = audit.one_run(scores, coins, num_guesses=guesses, delta=delta, confidence=0.95, method=method).epsilon
    assert shown * truth <= bound <= truth


@pytest.mark.parametrize("method", [*METHODS, "gdp"])
def test_nothing_is_learnt_from_equal_scores(method: str) -> None:
    """Canaries listed by inclusion have no order that a guess could use, and one right guess is too little."""
    asked = {"delta": 1e-5, "confidence": 0.9, "method": method}
    rng = np.random.default_rng(3)
    listed = [np.sort(rng.random(300) < 0.5) for _ in range(AUDITS)]
    for order in (np.array, np.flip):
        bounds = [audit.one_run(np.zeros(300), order(coins), num_guesses=50, **asked).epsilon for coins in listed]
        assert np.count_nonzero(bounds) <= SLACK
    assert audit.one_run([1.0], [True], num_guesses=1, **asked).epsilon == 0
    assert audit.one_run([1.0], [False], num_guesses=1, **asked).epsilon == 0


@pytest.mark.parametrize("method", [*METHODS, "gdp"])
def test_all_right_is_finite(method: str) -> None:
    """100 right guesses of 100 show a probability of 0.05^(1/100), no more; less under mu-GDP, where they may be correlated."""
    coins = np.arange(100) % 2 == 0
    found = audit.one_run(coins.astype(float), coins, num_guesses=100, delta=1e-9, confidence=0.95, method=method)
    assert found.num_correct == 100
    rate = 0.05 ** (1 / 100)
    at_most = math.log(rate / (1 - rate)) if method != "gdp" else hs.gdp_epsilon(2 * stats.norm.ppf(rate), 1e-9)
    assert (0.9 if method != "gdp" else 0.3) * at_most < found.epsilon < at_most * (1 + 1e-9)


def test_evidence_says_what_it_rests_on() -> None:
    """The sentence has the bound and the counts; mu is there for the Gaussian fit alone."""
    coins = np.arange(100) % 2 == 0
    asked = {"num_guesses": 51, "delta": 1e-5, "confidence": 0.95}
    found = audit.one_run(coins.astype(float), coins, **asked)
    assert str(found).endswith("with confidence 0.95: 51 of 51 guesses right at 100 canaries")
    assert found.mu is None
    fit = audit.one_run(coins.astype(float), coins, **asked, method="gdp")
    assert fit.epsilon == pytest.approx(hs.gdp_epsilon(fit.mu, 1e-5))
    assert "if the trade-off function is Gaussian" in str(fit)
