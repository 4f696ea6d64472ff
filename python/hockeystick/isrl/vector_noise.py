"""What sums of vectors with binomial noise leak: certified bounds for the shuffled vector sum, and its noise.

`binomial_moments` has the proof. One message is hidden by the noise bits of all N messages, so that bounds depend on N b.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import minimize_scalar

from hockeystick._checks import count_scalar, non_negative_scalar, scalar
from hockeystick._numeric.rounding import HANDFUL, PENALTY, UP
from hockeystick.isrl.binomial_moments import Window, log_moment_of_vectors, window

__all__ = ["vector_sum_delta", "vector_sum_epsilon"]

MOST_BITS = 10**10  # all of a coordinate; windows of as many outcomes as a few standard deviations are held in memory
SHARES = (0.1, 1e-3)  # of delta, for noise that is cut off
DEPTHS = (2, 4, 8, 16, 32, 64, 128, 256)  # powers of ten at which noise is cut off where delta is sought


def _penalty(order: float) -> float:
    """Return log K, rounded up: the largest log of (1 - e^-x) e^{-order x}."""
    return order * math.log(order) - (1.0 + order) * math.log1p(order) + PENALTY * (1.0 + order)


def _best_order(value: Callable[[float], float], start: float) -> float:
    """Return the smallest value found over orders; each of them is valid."""
    orders = [start * 2.0**k for k in range(-4, 4)]
    values = [value(order) for order in orders]
    at = min(range(len(orders)), key=values.__getitem__)
    if not math.isfinite(values[at]):
        return math.inf
    ends = math.log(orders[at] / 2.0), math.log(orders[at] * 2.0)
    finite = lambda x: min(value(math.exp(x)), 1e300)
    refined = minimize_scalar(finite, bounds=ends, method="bounded", options={"xatol": 0.02})
    return min(values[at], float(refined.fun))


class _Sum:
    """A sum of messages, checked."""

    def __init__(  # noqa: PLR0917, checked arguments in their order
        self, num_messages: int, levels: int, noise_bits: int, probability: float, dimension: int, rounds: int
    ) -> None:
        messages = count_scalar("num_messages", num_messages)
        self.levels = count_scalar("levels", levels)
        self.trials = messages * count_scalar("noise_bits", noise_bits, 0)
        if self.trials > MOST_BITS:
            msg = f"num_messages times noise_bits must be at most {MOST_BITS:g}, not {self.trials:g}"
            raise ValueError(msg)
        self.probability = scalar("probability", probability, lambda x: 0 < x < 1, "lie in (0, 1)")
        self.dimension = count_scalar("dimension", dimension)
        self.rounds = count_scalar("rounds", rounds)

    def window(self, spent: float) -> Window | None:
        """Return where noise is compared, where what all rounds cut off is to be `spent` at most."""
        each = spent / (2.0 * self.dimension * self.rounds)
        return window(self.trials, self.probability, self.levels, each) if self.trials > 2 * self.levels else None

    def cut(self, at: Window) -> float:
        return at.tail * self.dimension * self.rounds * UP

    def start(self, log_delta: float) -> float:
        """Return the order that is best for Gaussian noise of the same variance."""
        variance = self.trials * self.probability * (1.0 - self.probability)
        return math.sqrt(2.0 * max(-log_delta, 0.1) * variance / self.rounds) / self.levels

    def exponent(self, at: Window, order: float, more: float) -> float:
        """Return an upper bound of the logarithm of all rounds' moment and K, plus another term."""
        moment, penalty = self.rounds * log_moment_of_vectors(at, order, self.dimension) * UP, _penalty(order)
        return moment + penalty + more + HANDFUL * (moment + abs(penalty) + abs(more))

    def epsilon(self, delta: float, share: float) -> float:
        at = self.window(share * delta)
        if at is None or self.cut(at) >= delta:
            return math.inf
        log_delta = math.log((delta - self.cut(at)) / UP)
        value = lambda order: self.exponent(at, order, -log_delta) / order * UP
        return max(_best_order(value, self.start(log_delta)), 0.0)

    def delta(self, epsilon: float, spent: float) -> float:
        at = self.window(spent)
        if at is None:
            return 1.0
        start = max(self.start(-1.0), self.start(math.log(spent)) / 2.0)
        value = lambda order: self.exponent(at, order, -order * epsilon)
        return min((math.exp(min(_best_order(value, start), 0.0)) + self.cut(at)) * UP, 1.0)


def vector_sum_epsilon(
    *,
    num_messages: int,
    levels: int,
    noise_bits: int,
    probability: float,
    dimension: int,
    delta: float,
    rounds: int = 1,
) -> float:
    """Return a certified epsilon of shuffled sums of vectors with binomial noise.

    Parameters
    ----------
    num_messages : int
        Messages N that are summed in a round; each has one vector and its noise bits.
    levels : int
        Levels g to which a coordinate is rounded at random.
    noise_bits : int
        Noise bits b of each message and coordinate.
    probability : float
        Probability p of each noise bit, in (0, 1).
    dimension : int
        Coordinates d.
    delta : float
        In (0, 1).
    rounds : int
        Sums in which one record can have a message; later ones may depend on earlier ones.

    Returns
    -------
    float
        Upper bound of epsilon where one vector is replaced by another, both within the clip norm (which cancels); infinite where noise is too little.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or N b exceeds 10^10.

    Notes
    -----
    The privacy of Lemma G.1 of Lowy and Razaviyayn 2023, for the parameters that `shuffle_vector_sum` takes and every dimension. Moments
    of the loss are bounded over all pairs of vectors; `docs/isrl/isrl.md` has the proof. For one coordinate
    `binomial_mechanism_delta` is sharper.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> epsilon = isrl.vector_sum_epsilon(
    ...     num_messages=1000, levels=32, noise_bits=200, probability=0.25, dimension=10, delta=1e-6
    ... )
    >>> print(format_upper(epsilon, ".3f"))
    0.740
    """
    total = _Sum(num_messages, levels, noise_bits, probability, dimension, rounds)
    delta = scalar("delta", delta, lambda x: 0 < x < 1, "lie in (0, 1)")
    return min(total.epsilon(delta, share) for share in SHARES)


def vector_sum_delta(
    epsilon: float,
    *,
    num_messages: int,
    levels: int,
    noise_bits: int,
    probability: float,
    dimension: int,
    rounds: int = 1,
) -> float:
    """Return a certified delta of shuffled sums of vectors with binomial noise.

    Parameters
    ----------
    epsilon : float
        The point at which delta is evaluated, >= 0.
    num_messages, levels, noise_bits, probability, dimension, rounds : int or float
        As in `vector_sum_epsilon`.

    Returns
    -------
    float
        Upper bound of delta, at most 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or N b exceeds 10^10.

    Notes
    -----
    As `vector_sum_epsilon`.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> delta = isrl.vector_sum_delta(
    ...     1.0, num_messages=1000, levels=32, noise_bits=200, probability=0.25, dimension=10
    ... )
    >>> print(format_upper(delta, ".1e"))
    2.8e-10
    """
    epsilon = non_negative_scalar("epsilon", epsilon)
    total = _Sum(num_messages, levels, noise_bits, probability, dimension, rounds)
    found = min(total.delta(epsilon, 10.0**-depth) for depth in DEPTHS)
    return min(found, total.delta(epsilon, max(found * 1e-3, 1e-300)))
