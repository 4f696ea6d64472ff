"""What counts say about the two rates of a test, and what the rates say about epsilon and mu.

A test calls a run "in" or "out". With the true positive rate y and the false positive rate x, (epsilon, delta)-DP says
y <= e^epsilon x + delta and 1 - x <= e^epsilon (1 - y) + delta, and mu-GDP says y <= Phi(Phi^-1(x) + mu). Each is the
weaker the larger x and the smaller y, so that an upper end of x and a lower end of y, right together, bound epsilon and
mu from below, in both directions at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.search import last_that_holds
from hockeystick.kernels import q_inv

TOLERANCE = 1e-9  # of an epsilon that is searched for, relative
QUADRATURE = np.linspace(-40.0, 40.0, 8001)  # logit of a probability; relative error 2e-4 at most, from the kink of f


class Counts(NamedTuple):
    """How often the test said "in"; numbers or arrays, one element a threshold."""

    true_positives: Any
    num_in: Any
    false_positives: Any
    num_out: Any


def special() -> Any:
    """Return scipy.special, which the package needs for nothing else."""
    try:
        import scipy.special  # noqa: PLC0415 - asked for when first needed
    except ImportError as error:
        message = 'an audit needs SciPy: pip install ".[audit]" in a clone'
        raise ImportError(message) from error
    return scipy.special


def proportion_lower(successes: Array, trials: Array, failure: float) -> Array:
    """Return the Clopper-Pearson lower end: P(Bin(trials, p) >= successes) = failure, and 0 without a success."""
    some = np.maximum(successes, 1.0)  # betaincinv has no value at 0
    return np.where(successes > 0, special().betaincinv(some, trials - successes + 1.0, failure), 0.0)


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
    functions = special()
    a, b = counts.true_positives + 0.5, counts.num_in - counts.true_positives + 0.5
    c, d = counts.false_positives + 0.5, counts.num_out - counts.false_positives + 0.5
    below, above = functions.expit(QUADRATURE), functions.expit(-QUADRATURE)
    weights = below * above * (QUADRATURE[1] - QUADRATURE[0])
    x = np.where(below < 0.5, functions.betaincinv(c, d, below), 1.0 - functions.betaincinv(d, c, above))

    def inside(epsilon: float) -> float:
        largest_y = np.minimum(delta + np.exp(epsilon) * x, 1.0 - np.exp(-epsilon) * (1.0 - delta - x))
        return float(weights @ functions.betainc(a, b, np.clip(largest_y, 0.0, 1.0)))

    return last_that_holds(lambda epsilon: inside(epsilon) <= failure, TOLERANCE)
