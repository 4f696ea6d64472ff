"""The test of an audit of many runs: a threshold on the score, chosen on runs that do not count afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import Array, scalar
from hockeystick.audit.rates import Counts
from hockeystick.audit.scores import shuffled

Rule: TypeAlias = Literal[">=", "<="]

CHOOSING = 4  # a quarter of the runs chooses: a threshold is easier to find than a rate to know
MOST_CANDIDATES = 400


class ThresholdTest(NamedTuple):
    """Call a run "in" where its score `rule` threshold."""

    rule: Rule
    threshold: float

    def apply(self, runs_in: Array, runs_out: Array) -> Counts:
        """Return how often the test says "in"; scores that are equal are called the same."""
        called = [x >= self.threshold if self.rule == ">=" else x <= self.threshold for x in (runs_in, runs_out)]
        hits = [int(np.count_nonzero(x)) for x in called]
        return Counts(hits[0], runs_in.size, hits[1], runs_out.size)


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
    best: tuple[float, ThresholdTest] = (-np.inf, ThresholdTest(">=", float(candidates[0])))
    rules: tuple[Rule, Rule] = (">=", "<=")
    for rule in rules:
        hits = [_hits(np.sort(runs), candidates, rule) for runs in (runs_in, runs_out)]
        bounds = bound(Counts(hits[0], runs_in.size, hits[1], runs_out.size))
        winner = int(np.argmax(bounds))
        if bounds[winner] > best[0]:
            best = float(bounds[winner]), ThresholdTest(rule, float(candidates[winner]))
    return best[1]


def _hits(ordered: Array, thresholds: Array, rule: Rule) -> Array:
    if rule == ">=":
        return np.asarray(ordered.size - np.searchsorted(ordered, thresholds, "left"), dtype=np.float64)
    return np.asarray(np.searchsorted(ordered, thresholds, "right"), dtype=np.float64)


def _candidates(scores: Array) -> Array:
    """Return some of the scores, at ranks that grow geometrically from both ends: neighbours have about the same rates."""
    ordered = np.sort(scores)
    ranks = np.unique(np.geomspace(1, ordered.size, MOST_CANDIDATES // 2).astype(np.int64)) - 1
    return np.unique(np.concatenate([ordered[ranks], ordered[-1 - ranks]]))
