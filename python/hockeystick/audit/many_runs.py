"""Audits of many independent runs, one score a run, some with the record and some without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from numpy.typing import ArrayLike

from hockeystick._checks import Array, choice, count_scalar
from hockeystick.accounting.gaussian_dp import gdp_epsilon
from hockeystick.audit.rates import Counts, corner, credible_epsilon, epsilon_at, mu_at
from hockeystick.audit.scores import claim, delta_of, failure_probability, scores_of
from hockeystick.audit.threshold import Rule, put_to_test

__all__ = ["Evidence", "epsilon_lower_bound", "evaluate", "individual_confidence", "mu_lower_bound"]

Method: TypeAlias = Literal["clopper_pearson", "bayesian", "gdp"]

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
    method : {"clopper_pearson", "bayesian", "gdp"}
        What kind of statement it is, see `evaluate`.
    rule, threshold : {">=", "<="}, float
        A run is called "in" where its score is >= or <= the threshold.
    true_positives, num_in : int
        How many of the runs with the record were called "in", of how many. Runs that chose the threshold do not count.
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
    method : {"clopper_pearson", "bayesian", "gdp"}
        "clopper_pearson" assumes nothing: whatever the mechanism, the bound is at most its epsilon but with probability
        1 - confidence. "bayesian" is the lower end of a credible interval, tighter and no confidence bound. "gdp" bounds
        mu, then converts; it assumes that the trade-off function is that of a Gaussian mechanism.
    threshold : float, optional
        Call a run "in" where its score is >= this number, which must have been fixed without looking at these scores;
        one score of each kind is enough then. By default a quarter of the runs, at random, chooses the threshold and the
        direction, and the others count.

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
    ImportError
        If SciPy is not installed.

    Notes
    -----
    Scores must come from independent runs with the record, and from independent runs without. Run i with and run i without
    may share their randomness, if there are as many of both and the method is not "bayesian".

    With x the false and y the true positive rate, :math:`\epsilon \ge \max(\log\frac{y-\delta}{x},
    \log\frac{1-x-\delta}{1-y})`, the second from the opposite test (Kairouz, Oh and Viswanath 2015, Theorem 2.1).
    "clopper_pearson": x and y at the ends of exact binomial intervals, each wrong with probability (1 - confidence)/2; both
    logarithms use the same two ends and need no further correction (Jagielski, Ullman and Oprea 2020).
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

    def bound(counts: Counts) -> Array:
        ends = corner(counts, failure)
        return mu_at(*ends) if method == "gdp" else epsilon_at(*ends, delta)

    test, counts = put_to_test(runs_in, runs_out, threshold, bound)
    if method == "bayesian":
        epsilon = credible_epsilon(counts, delta, failure)
    else:
        epsilon = max(0.0, float(bound(counts)))
        epsilon = float(gdp_epsilon(epsilon, delta)) if method == "gdp" else epsilon
    return Evidence(epsilon, delta, float(confidence), method, *test, *counts)


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
    ValueError, TypeError, ImportError
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
    ValueError, TypeError, ImportError
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
        msg = f"num_audits must be smaller at confidence = {confidence}: that of each of {num_audits} audits would round to 1"
        raise ValueError(msg)
    return 1.0 - failure


def _runs(scores_in: ArrayLike, scores_out: ArrayLike, threshold: float | None) -> tuple[Array, Array]:
    fewest = 2 if threshold is None else 1
    return scores_of("scores_in", scores_in, fewest), scores_of("scores_out", scores_out, fewest)
