"""Audits of many independent runs, one score a run, some with the record and some without.

A test calls a run "in" or "out". With the true positive rate y and the false positive rate x, (epsilon, delta)-DP says
y <= e^epsilon x + delta and 1 - x <= e^epsilon (1 - y) + delta, and mu-GDP says y <= Phi(Phi^-1(x) + mu). Each is the
weaker the larger x and the smaller y, so that an upper end of x and a lower end of y, right together, bound epsilon and
mu from below, in both directions at once.

The test is a threshold on the score; if it has to be chosen, it is chosen on runs that do not count afterwards, or it is the best of some
whose rates are bounded together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from hockeystick._checks import Array, choice, count_scalar, scalar
from hockeystick._numeric.search import last_that_holds
from hockeystick.accounting.gaussian_dp import gdp_epsilon
from hockeystick.audit.scores import TOLERANCE, claim, delta_of, failure_probability, scores_of, shuffled
from hockeystick.kernels import q_inv

__all__ = ["Evidence", "epsilon_lower_bound", "evaluate", "individual_confidence", "mu_lower_bound"]

QUADRATURE = np.linspace(-40.0, 40.0, 8001)  # logit of a probability; relative error 2e-4 at most, from the kink of f


class Counts(NamedTuple):
    """How often the test said "in"; numbers or arrays, one element a threshold."""

    true_positives: Any
    num_in: Any
    false_positives: Any
    num_out: Any


def proportion_lower(successes: Array, trials: Array, failure: float) -> Array:
    """Return the Clopper-Pearson lower end: P(Bin(trials, p) >= successes) = failure, and 0 without a success."""
    some = np.maximum(successes, 1.0)  # betaincinv has no value at 0
    return np.where(successes > 0, special.betaincinv(some, trials - successes + 1.0, failure), 0.0)


def corner(counts: Counts, failure: float) -> tuple[Array, Array]:
    """Return x and y such that x is too small or y too large with probability `failure` at most."""
    correct_out = np.asarray(counts.num_out - counts.false_positives, dtype=np.float64)
    true_positives = np.asarray(counts.true_positives, dtype=np.float64)
    x = 1.0 - proportion_lower(correct_out, counts.num_out, failure / 2)
    return x, proportion_lower(true_positives, counts.num_in, failure / 2)


def epsilon_at(x: Array, y: Array, delta: float) -> Array:
    """Return the smallest epsilon that allows the rates: negative where even guessing is better."""
    with np.errstate(divide="ignore"):
        first = np.log(np.maximum(y - delta, 0.0) / x)
        second = np.log(np.maximum(1.0 - x - delta, 0.0) / (1.0 - y))
    return np.maximum(first, second)


def mu_at(x: Array, y: Array) -> Array:
    """Return the smallest mu that allows the rates: negative where even guessing is better, minus infinity at y = 0."""
    return np.asarray(q_inv(x) - q_inv(y))


def credible_epsilon(counts: Counts, delta: float, failure: float) -> float:
    """Return the epsilon whose region {(x, y)} of (epsilon, delta)-DP has the posterior probability `failure`, or 0.

    The rates have independent Jeffreys priors. P(y <= 1 - f(x)) = E_x[P(y <= 1 - f(x) | x)] with the trade-off function
    f of (epsilon, delta)-DP; the outer integral is over the logit of x's posterior distribution function.
    """
    a, b = counts.true_positives + 0.5, counts.num_in - counts.true_positives + 0.5
    c, d = counts.false_positives + 0.5, counts.num_out - counts.false_positives + 0.5
    below, above = special.expit(QUADRATURE), special.expit(-QUADRATURE)
    weights = below * above * (QUADRATURE[1] - QUADRATURE[0])
    x = np.where(below < 0.5, special.betaincinv(c, d, below), 1.0 - special.betaincinv(d, c, above))

    def inside(epsilon: float) -> float:
        largest_y = np.minimum(delta + np.exp(epsilon) * x, 1.0 - np.exp(-epsilon) * (1.0 - delta - x))
        return float(weights @ special.betainc(a, b, np.clip(largest_y, 0.0, 1.0)))

    return last_that_holds(lambda epsilon: inside(epsilon) <= failure, TOLERANCE)


Rule: TypeAlias = Literal[">=", "<="]

RULES: tuple[Rule, Rule] = (">=", "<=")

CHOOSING = 4  # a quarter of the runs chooses: a threshold is easier to find than a rate to know
MAX_CANDIDATES = 400


class ThresholdTest(NamedTuple):
    """Call a run "in" where its score `rule` threshold."""

    rule: Rule
    threshold: Any  # a number, or an array of those of several tests

    def apply(self, runs_in: Array, runs_out: Array) -> Counts:
        """Return how often the test says "in"; scores that are equal are called the same."""
        return Counts(self._hits(np.sort(runs_in)), runs_in.size, self._hits(np.sort(runs_out)), runs_out.size)

    def _hits(self, ordered: Array) -> Any:
        if self.rule == ">=":
            return ordered.size - np.searchsorted(ordered, self.threshold, "left")
        return np.searchsorted(ordered, self.threshold, "right")


def put_to_test(
    runs_in: Array, runs_out: Array, threshold: float | None, bound: Callable[[Counts], Array]
) -> tuple[ThresholdTest, Counts]:
    """Return the test and its counts on all runs, or, if it has to be chosen, on the runs that did not choose it."""
    if threshold is not None:
        test = ThresholdTest(">=", scalar("threshold", threshold, lambda x: not np.isnan(x), "be a number"))
        return test, test.apply(runs_in, runs_out)
    (choosing_in, counted_in), (choosing_out, counted_out) = (
        _split(runs, shuffled(runs.size, runs_in, runs_out)) for runs in (runs_in, runs_out)
    )
    test = _choose(choosing_in, choosing_out, bound)
    return test, test.apply(counted_in, counted_out)


def _split(runs: Array, order: NDArray[np.int64]) -> tuple[Array, Array]:
    """Return the runs that choose and those that count."""
    choosing = -(-runs.size // CHOOSING)
    return runs[order[:choosing]], runs[order[choosing:]]


def _choose(runs_in: Array, runs_out: Array, bound: Callable[[Counts], Array]) -> ThresholdTest:
    """Return the test with the largest bound on the runs that choose.

    Any choice is sound. This one is wary of thresholds that few runs pass: so few runs bound their rates badly.
    """
    candidates = _candidates(np.concatenate([runs_in, runs_out]))
    tests = (ThresholdTest(rule, candidates) for rule in RULES)
    return _best([(test, test.apply(runs_in, runs_out)) for test in tests], bound)[0]


def _best(tests: list[tuple[ThresholdTest, Counts]], bound: Callable[[Counts], Array]) -> tuple[ThresholdTest, Counts]:
    """Return the test of many with the largest bound, and its counts."""
    bounds = [bound(counts) for _, counts in tests]
    (rule, thresholds), counts = tests[place := int(np.argmax([each.max() for each in bounds]))]
    winner = int(np.argmax(bounds[place]))
    return ThresholdTest(rule, float(thresholds[winner])), Counts(
        *(np.ravel(each)[winner if np.ndim(each) else 0] for each in counts)
    )


def _candidates(scores: Array) -> Array:
    """Return some of the scores, at ranks that grow geometrically from both ends: neighbours have about the same rates."""
    ordered = np.sort(scores)
    ranks = np.unique(np.geomspace(1, ordered.size, MAX_CANDIDATES // 2).astype(np.int64)) - 1
    return np.unique(np.concatenate([ordered[ranks], ordered[-1 - ranks]]))


LEAST_RANK = 8  # fewer runs than this bound a rate badly


def thresholds_at_ranks(runs_in: Array, runs_out: Array) -> list[tuple[ThresholdTest, Counts]]:
    """Return tests of both rules whose thresholds are scores of fixed ranks: half of the runs of a kind, a quarter, and so on.

    Of n runs of one kind, independent with ties broken by coins, a fraction beyond the r-th largest has Beta(r, n - r + 1) as its law, that of
    `proportion_lower` at n - r + 1 successes. Scores that are equal to the threshold count as if they were not beyond it, which
    can only make that fraction smaller. Given these runs the threshold is known, and how many of the other kind lie beyond it is binomial. So
    both rates of each test have ends that fail as said, whatever the data; ranks depend on the numbers of runs alone.
    """
    found = []
    for sign, rules in ((1.0, RULES), (-1.0, RULES[::-1])):
        for own, other, rule in ((runs_out, runs_in, rules[0]), (runs_in, runs_out, rules[1])):
            halvings = max(1, (own.size // LEAST_RANK).bit_length() - 1)
            ranks = np.maximum(own.size >> np.arange(1, halvings + 1), 1)
            cuts = np.sort(sign * own)[-ranks]
            beyond = ThresholdTest(">=", np.nextafter(cuts, np.inf)).apply(sign * other, own)[0]
            if own is runs_out:
                counts = Counts(beyond, runs_in.size, ranks - 1, runs_out.size)
                cuts = np.nextafter(cuts, np.inf)
            else:
                counts = Counts(runs_in.size - ranks + 1, runs_in.size, runs_out.size - beyond, runs_out.size)
            found.append((ThresholdTest(rule, sign * cuts), counts))
    return found


Method: TypeAlias = Literal["clopper_pearson", "simultaneous", "bayesian", "gdp"]

METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class Evidence:
    """A lower bound of epsilon from many runs, and what it rests on.

    Attributes
    ----------
    epsilon : float
        The lower bound; 0 where nothing can be said, never infinite.
    delta, confidence : float
        The delta for which it holds, and with which confidence.
    method : {"clopper_pearson", "simultaneous", "bayesian", "gdp"}
        What kind of statement it is, see `evaluate`.
    rule, threshold : {">=", "<="}, float
        A run is called "in" where its score is >= or <= the threshold.
    true_positives, num_in : int
        How many of the runs with the record were called "in", of how many. Runs that chose the threshold do not count. Of "simultaneous" one
        of both numbers is that of a rank: at least, or at most, so many where scores are equal.
    false_positives, num_out : int
        The same for the runs without.
    """

    epsilon: float
    delta: float
    confidence: float
    method: Method
    rule: Rule
    threshold: float
    true_positives: int
    num_in: int
    false_positives: int
    num_out: int

    def __str__(self) -> str:
        """Return the statement in a sentence."""
        return (
            f"{claim(self.epsilon, self.delta, self.method, self.confidence)}: "
            f"score {self.rule} {self.threshold:.4g} in {self.true_positives} of {self.num_in} runs with the record "
            f"and {self.false_positives} of {self.num_out} without"
        )


def evaluate(
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    *,
    delta: float,
    confidence: float,
    method: Method = "clopper_pearson",
    threshold: float | None = None,
) -> Evidence:
    r"""Return a lower bound of epsilon from the scores of many runs, with what it rests on.

    Parameters
    ----------
    scores_in : array-like of shape (num_in,)
        One score for each run with the record, at least two. Any real numbers or infinities, larger or smaller "in".
    scores_out : array-like of shape (num_out,)
        One score for each run on the adjacent data set, at least two.
    delta : float
        In [0, 1); positive for "gdp".
    confidence : float
        Probability, in [0.5, 1), with which the bound may be relied on.
    method : {"clopper_pearson", "simultaneous", "bayesian", "gdp"}
        "clopper_pearson" assumes nothing: whatever the mechanism, the bound is at most its epsilon but with probability
        1 - confidence. "simultaneous" assumes as little, and all runs count: it is the best of some tests whose thresholds are scores of fixed
        ranks, and holds for all delta together. "bayesian" is the lower end of a credible interval, tighter and no confidence bound. "gdp" bounds
        mu, then converts; it assumes that the trade-off function is that of a Gaussian mechanism.
    threshold : float, optional
        Call a run "in" where its score is >= this number, which must have been fixed without looking at these scores;
        one score of each kind is enough then. By default a quarter of the runs, at random, chooses the threshold and the
        direction, and the others count. Not for "simultaneous".

    Returns
    -------
    Evidence
        The lower bound, method, threshold and counts.

    Raises
    ------
    ValueError
        If an argument is outside its domain, scores are NaN or too few.
    TypeError
        If an argument has the wrong type.

    Notes
    -----
    Scores must come from independent runs with the record, and from independent runs without. Run i with and run i without
    may share their randomness, if there are as many of both and the method is neither "bayesian" nor "simultaneous".

    With x the false and y the true positive rate, :math:`\epsilon \ge \max(\log\frac{y-\delta}{x},
    \log\frac{1-x-\delta}{1-y})`, the second from the opposite test (Kairouz, Oh and Viswanath 2015, Theorem 2.1).
    "clopper_pearson": x and y at the ends of exact binomial intervals, each wrong with probability (1 - confidence)/2; both
    logarithms use the same two ends and need no further correction (Jagielski, Ullman and Oprea 2020).
    "simultaneous": the same ends for thresholds at the n/2-th, n/4-th, ... largest and smallest of the n scores of either kind, down to the eighth;
    all ends fail together with probability 1 - confidence at most. The fraction beyond such a score has a beta law, and given it the other kind's count is
    binomial. Few thresholds are enough, since epsilon hardly changes near the best, and they pay less than a band over all of them does:
    that of Dvoretzky, Kiefer and Wolfowitz is as wide in the tails, where audits live, as in the middle. Scores of few values show less.
    "bayesian": the epsilon whose privacy region has posterior probability 1 - confidence under independent Jeffreys
    priors of x and y (Zanella-Beguelin et al. 2023). "gdp": :math:`\mu \ge \Phi^{-1}(y) - \Phi^{-1}(x)` at the same ends
    as "clopper_pearson" (Nasr et al. 2023).

    Examples
    --------
    >>> import numpy as np
    >>> from hockeystick import audit
    >>> rng = np.random.default_rng(0)
    >>> evidence = audit.evaluate(
    ...     rng.normal(1.0, 1.0, 100_000), rng.normal(0.0, 1.0, 100_000), delta=1e-5, confidence=0.95
    ... )
    >>> evidence.num_in, evidence.rule, evidence.epsilon > 2
    (75000, '>=', True)
    """
    runs_in, runs_out = _runs(scores_in, scores_out, threshold)
    choice("method", method, METHODS)
    delta = delta_of(delta, method)
    failure = failure_probability(confidence)
    if together := method == "simultaneous":
        if threshold is not None:
            raise ValueError(
                f"threshold must be left out for method='simultaneous', which has several, not {threshold}"
            )
        tests = thresholds_at_ranks(runs_in, runs_out)
        failure /= sum(test.threshold.size for test, _ in tests)

    def bound(counts: Counts) -> Array:
        ends = corner(counts, failure)
        return mu_at(*ends) if method == "gdp" else epsilon_at(*ends, delta)

    test, counts = _best(tests, bound) if together else put_to_test(runs_in, runs_out, threshold, bound)
    if method == "bayesian":
        epsilon = credible_epsilon(counts, delta, failure)
    else:
        epsilon = max(0.0, float(bound(counts)))
        epsilon = float(gdp_epsilon(epsilon, delta)) if method == "gdp" else epsilon
    return Evidence(epsilon, delta, float(confidence), method, *test, *map(int, counts))


def epsilon_lower_bound(
    scores_in: ArrayLike,
    scores_out: ArrayLike,
    *,
    delta: float,
    confidence: float,
    method: Method = "clopper_pearson",
    threshold: float | None = None,
) -> float:
    """Return the lower bound of epsilon alone.

    Parameters
    ----------
    scores_in, scores_out, delta, confidence, method, threshold : as in `evaluate`
        Same arguments and assumptions as `evaluate`.

    Returns
    -------
    float
        ``evaluate(...).epsilon``: at most the true epsilon, but with probability 1 - confidence. 0 where nothing can be
        said, never infinite.

    Raises
    ------
    ValueError, TypeError
        As `evaluate`.

    Examples
    --------
    >>> import numpy as np
    >>> from hockeystick import audit
    >>> rng = np.random.default_rng(0)
    >>> answers = rng.random(20_000) < 0.75, rng.random(20_000) < 0.25  # randomised response, epsilon = log 3 = 1.0986
    >>> lower = audit.epsilon_lower_bound(*np.asarray(answers, dtype=float), delta=0.0, confidence=0.95)
    >>> 1.0 < lower < 1.0986
    True
    """
    return evaluate(
        scores_in, scores_out, delta=delta, confidence=confidence, method=method, threshold=threshold
    ).epsilon


def mu_lower_bound(
    scores_in: ArrayLike, scores_out: ArrayLike, *, confidence: float, threshold: float | None = None
) -> float:
    """Return a lower bound of the Gaussian-DP parameter.

    Parameters
    ----------
    scores_in, scores_out : array-like of shape (num_in,), (num_out,)
        One score for each run with and without the record, as in `evaluate`.
    confidence : float
        Probability, in [0.5, 1), with which the bound may be relied on.
    threshold : float, optional
        As in `evaluate`.

    Returns
    -------
    float
        At most the smallest mu for which the mechanism is mu-GDP, but with probability 1 - confidence. This assumes nothing of
        its trade-off function. 0 where nothing can be said, never infinite.

    Raises
    ------
    ValueError, TypeError
        As `evaluate`.

    Notes
    -----
    mu >= Phi^-1(y) - Phi^-1(x) for the rates y and x of every test (Dong, Roth and Su 2022); their ends as in `evaluate`.

    Examples
    --------
    >>> import numpy as np
    >>> from hockeystick import audit
    >>> rng = np.random.default_rng(0)
    >>> lower = audit.mu_lower_bound(rng.normal(1.0, 1.0, 100_000), rng.normal(0.0, 1.0, 100_000), confidence=0.95)
    >>> 0.95 < lower < 1.0
    True
    """
    runs_in, runs_out = _runs(scores_in, scores_out, threshold)
    failure = failure_probability(confidence)

    def bound(counts: Counts) -> Array:
        return mu_at(*corner(counts, failure))

    return max(0.0, float(bound(put_to_test(runs_in, runs_out, threshold, bound)[1])))


def individual_confidence(confidence: float, num_audits: int) -> float:
    """Return the confidence that each of several audits must have for all of them to hold together.

    Parameters
    ----------
    confidence : float
        Joint confidence, in [0.5, 1).
    num_audits : int
        How many bounds are reported together, at least 1; those that were tried and not reported count, too.

    Returns
    -------
    float
        1 - (1 - confidence)/num_audits (Bonferroni): whether or not the audits share runs.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the result would be 1 in doubles.
    TypeError
        If an argument has the wrong type.

    Examples
    --------
    >>> from hockeystick import audit
    >>> audit.individual_confidence(0.95, 10)
    0.995
    """
    failure = failure_probability(confidence) / count_scalar("num_audits", num_audits)
    if 1.0 - failure == 1.0:
        raise ValueError(
            f"num_audits must be smaller at confidence = {confidence}: that of each of {num_audits} audits would round to 1"
        )
    return 1.0 - failure


def _runs(scores_in: ArrayLike, scores_out: ArrayLike, threshold: float | None) -> tuple[Array, Array]:
    fewest = 2 if threshold is None else 1
    return scores_of("scores_in", scores_in, fewest), scores_of("scores_out", scores_out, fewest)
