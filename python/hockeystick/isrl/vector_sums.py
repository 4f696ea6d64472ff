"""Shuffled sums of bits and of vectors with binomial noise: what they leak, certified, their noise bits and their error.

One message is hidden by the noise bits of all N messages, so that bounds depend on N b. For vectors they rest on the moments of the
privacy loss at the worst pair of records.

Setting. Coordinate t of a message lies in [0, g]; it is rounded at random to one of the integers beside it, so that its mean is t,
and B = N b noise bits of probability p are added to the sum of all messages. Two records have coordinates t and t' with
|t - t'|_2 <= g. Let the adversary see the other messages' sum and the uniform numbers u_j by which both records are rounded: that
only adds to what is known. Given these, coordinate j is Z_j or Z_j + s_j with Z_j binomial and an integer shift s_j, which is m or m + 1
in size, the latter with probability f, where |t_j - t'_j| = m + f. Coordinates are independent.

Moments. For an order a > 0 let M(m) be the larger, over both signs of the shift, of E[(P(Z)/P(Z -+ m))^a; low <= Z <= high], made increasing
in m. The truncated moment of the whole loss is at most the product over j of (1 - f_j) M(m_j) + f_j M(m_j + 1), and adaptive rounds
multiply. With h(v) the logarithm of one factor at |t_j - t'_j|^2 = v, the sum of h(v_j) over v_j >= 0 of sum at most g^2 is at most
c g^2 + d sup_v (h(v) - c v) for every c >= 0 (Lagrange). h is concave between squares of neighbouring integers, so that the supremum is that of
closed forms, one for each m; c is searched for, and any c is valid.

Delta. Let T bound the probability that any Z_j of any round is cut off. Since (1 - e^{e - x})_+ <= K e^{a(x - e)} with
K = a^a/(1 + a)^(1 + a), delta(e) <= T + K e^{-a e} prod M.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

from hockeystick._checks import OPEN_PROBABILITY, Array, at_most, matrix, non_negative_scalar, random_generator, scalar
from hockeystick._numeric.binomial import binomial_pmf
from hockeystick._numeric.rounding import HANDFUL, PENALTY, UNIT, UP
from hockeystick._numeric.search import Probe, last_whole, narrow
from hockeystick.isrl.domains import scalars

__all__ = [
    "binomial_mechanism_delta",
    "calibrate_binomial_b",
    "calibrate_vector_bits",
    "shuffle_vector_sum",
    "vector_sum_delta",
    "vector_sum_epsilon",
    "vector_sum_mse",
]

MAX_TRIALS = 10**7  # half a gigabyte


def binomial_mechanism_delta(epsilon: float, *, trials: int, probability: float, shift: int) -> float:
    """Return the delta of a sum of integers with binomial noise.

    Parameters
    ----------
    epsilon : float
        The point at which delta is evaluated, >= 0.
    trials : int
        Number of noise bits B, up to 10^7.
    probability : float
        Probability p of each noise bit, in (0, 1).
    shift : int
        By how much one record changes the sum at most.

    Returns
    -------
    float
        The larger of both directions' hockey-stick divergences, to about 1e-9 relative.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    delta = sum over x of (P(x) - e^epsilon P(x - s))_+ with P binomial, whose likelihood ratios are monotone: no smaller
    shift leaks more.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.binomial_mechanism_delta(1.0, trials=10_000, probability=0.25, shift=10):.4e}")
    8.5400e-07
    """
    epsilon, trials, probability, shift = scalars(locals(), epsilon="non_negative")
    at_most("trials", trials, "a memory of half a gigabyte", MAX_TRIALS)
    if shift > trials:
        return 1.0
    p = binomial_pmf(trials, probability)
    padding = np.zeros(shift)
    ahead, behind = np.concatenate([p, padding]), np.concatenate([padding, p])
    # Beyond the doubles' range e^epsilon leaves nothing but what the other never reaches.
    factor = math.exp(min(epsilon, 700.0))
    return max(float(np.maximum(a - factor * b, 0.0).sum()) for a, b in ((ahead, behind), (behind, ahead)))


def calibrate_binomial_b(
    *, epsilon: float, delta: float, num_messages: int, levels: int, probability: float = 0.25
) -> int:
    """Return the fewest noise bits per message with which a shuffled sum of scalars is private.

    Parameters
    ----------
    epsilon : float
        Target for one message replaced, in (0, 15].
    delta : float
        Target, in (0, 1/2).
    num_messages : int
        Messages that are summed, N.
    levels : int
        Levels g to which a scalar is rounded: one message changes the sum by at most g.
    probability : float
        Probability p of each noise bit, in (0, 1/2).

    Returns
    -------
    int
        The smallest b whose delta at N b noise bits is at most the target.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or more than 10^7 noise bits in all would be needed.

    Notes
    -----
    In place of the unstated parameters of Lemma G.1 of Lowy and Razaviyayn 2023. Vectors of d coordinates compose d such sums.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> isrl.calibrate_binomial_b(epsilon=1.0, delta=1e-6, num_messages=1000, levels=32)
    99
    """
    half = (lambda x: 0 < x < 0.5, "lie in (0, 1/2)")
    epsilon, delta, num_messages, levels, probability = scalars(
        {**locals()}, epsilon=(lambda x: 0 < x <= 15, "lie in (0, 15]"), delta=half, probability=half
    )

    def excess(b: float) -> float:
        reached = binomial_mechanism_delta(epsilon, trials=num_messages * int(b), probability=probability, shift=levels)
        return math.log(max(reached, 5e-324) / delta)

    too_many = f"levels must be at most what {MAX_TRIALS} noise bits hide at this epsilon and delta, not {levels}"
    return _fewest_bits(excess, num_messages, MAX_TRIALS, too_many)


def _fewest_bits(excess: Callable[[float], float], messages: int, limit: int, too_many: str) -> int:
    """Return the fewest bits per message without an excess, found by doubling and then between; more than the limit in all are refused."""
    good, bad = Probe(1, excess(1)), Probe(0, math.inf)
    while good.excess > 0:
        bad = good
        if 2 * bad.x * messages > limit:
            raise ValueError(too_many)
        good = Probe(2 * bad.x, excess(2 * bad.x))
    return int(narrow(excess, good, bad, whole=True).x)


def shuffle_vector_sum(
    vectors: ArrayLike, *, lipschitz: float, levels: int, noise_bits: int, probability: float, rng: np.random.Generator
) -> Array:
    """Return the noisy sum of vectors that a shuffler's analyst computes from the messages' bits.

    Parameters
    ----------
    vectors : array_like of shape (N, d)
        One vector a message, of norm at most lipschitz.
    lipschitz : float
        L, positive.
    levels : int
        Levels g to which each coordinate is rounded at random, without bias.
    noise_bits : int
        Noise bits b of each message and coordinate; 0 adds no noise.
    probability : float
        Probability p of each noise bit, in (0, 1).
    rng : numpy.random.Generator
        Source of randomness. Not cryptographic: for experiments.

    Returns
    -------
    ndarray of shape (d,)
        An unbiased estimate of the sum, of variance (2L/g)^2 (N b p (1-p) + rounding) a coordinate, rounding at most N/4.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or a vector is longer than lipschitz.
    TypeError
        If rng is no generator.

    Notes
    -----
    Algorithms 4 and 5 of Lowy and Razaviyayn 2023 with coordinates shifted to [0, 2L] and the sum shifted back by N L, where
    the paper has the range L and shifts back by L.

    Examples
    --------
    >>> import numpy as np
    >>> from hockeystick import isrl
    >>> rng = np.random.default_rng(1)
    >>> isrl.shuffle_vector_sum([[0.5], [-1.0]], lipschitz=1.0, levels=4, noise_bits=0, probability=0.25, rng=rng)
    array([-0.5])
    """
    lipschitz, levels, noise_bits, probability = scalars(locals())
    points = matrix("vectors", vectors, "(number, dimension)")
    longest = float(np.linalg.norm(points, axis=1).max())
    at_most("the norm of vectors", longest * (1 - 1e-12), "lipschitz", lipschitz)  # a clipped one, rounded
    random_generator("rng", rng)
    number, dimension = points.shape
    scaled = np.clip((points + lipschitz) * (levels / (2.0 * lipschitz)), 0.0, levels)  # norms are rounded
    whole = np.floor(scaled)
    bits = (whole + (rng.random(points.shape) < scaled - whole)).sum(axis=0)
    bits += rng.binomial(number * noise_bits, probability, dimension)
    return np.asarray((bits - probability * noise_bits * number) * (2.0 * lipschitz / levels) - number * lipschitz)


MAX_BITS = 10**10  # all of a coordinate; windows of as many outcomes as a few standard deviations are held in memory
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
        messages, self.levels, bits, self.probability, self.dimension, self.rounds = scalars(locals())
        self.trials = messages * bits
        if self.trials > MAX_BITS:
            raise ValueError(f"num_messages times noise_bits must be at most {MAX_BITS:g}, not {self.trials:g}")

    def window(self, spent: float) -> Window | None:
        """Return where noise is compared, where what all rounds cut off is to be `spent` at most."""
        each = spent / (2.0 * self.dimension * self.rounds)
        return window(self.trials, self.probability, self.levels, each) if self.trials > 2 * self.levels else None

    def cut(self, at: Window) -> float:
        return float(at.tail * self.dimension * self.rounds * UP)

    def start(self, log_delta: float) -> float:
        """Return the order that is best for Gaussian noise of the same variance."""
        variance = self.trials * self.probability * (1.0 - self.probability)
        return float(math.sqrt(2.0 * max(-log_delta, 0.1) * variance / self.rounds) / self.levels)

    def exponent(self, at: Window, order: float, more: float) -> float:
        """Return an upper bound of the logarithm of all rounds' moment and K, plus another term."""
        moment, penalty = self.rounds * log_moment_of_vectors(at, order, self.dimension) * UP, _penalty(order)
        return float(moment + penalty + more + HANDFUL * (moment + abs(penalty) + abs(more)))

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
    delta: float,
    *,
    num_messages: int,
    levels: int,
    noise_bits: int,
    probability: float,
    dimension: int,
    rounds: int = 1,
) -> float:
    """Return a certified epsilon of shuffled sums of vectors with binomial noise.

    Parameters
    ----------
    delta : float
        In (0, 1).
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
    delta = scalar("delta", delta, *OPEN_PROBABILITY)
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


def calibrate_vector_bits(
    *,
    epsilon: float,
    delta: float,
    num_messages: int,
    levels: int,
    dimension: int,
    probability: float = 0.25,
    rounds: int = 1,
) -> int:
    """Return noise bits per message and coordinate with which shuffled sums of vectors are private.

    Parameters
    ----------
    epsilon : float
        Target for one message's vector replaced, positive.
    delta : float
        Target, in (0, 1).
    num_messages, levels, dimension : int
        N, g, d.
    probability : float
        Probability p of each noise bit, in (0, 1).
    rounds : int
        Sums in which one record can have a message.

    Returns
    -------
    int
        A number b whose `vector_sum_epsilon` is at most the target; with one bit less it is not, as far as is proven.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or more than 10^10 noise bits in all would be needed.

    Notes
    -----
    In place of the unstated parameters of Lemma G.1 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> isrl.calibrate_vector_bits(epsilon=1.0, delta=1e-6, num_messages=1000, levels=32, dimension=10)
    115
    """
    setting = {**locals()}
    epsilon, delta, messages, levels, *_ = scalars(setting)
    del setting["epsilon"]

    def excess(bits: float) -> float:
        return math.log(max(vector_sum_epsilon(**setting, noise_bits=int(bits)), 1e-300) / epsilon)

    too_many = (
        f"epsilon={epsilon:g} with levels={levels} and delta={delta:g} needs more than {MAX_BITS:g} noise bits in all: "
        "take fewer levels or a larger epsilon"
    )
    return _fewest_bits(excess, messages, MAX_BITS, too_many)


def vector_sum_mse(
    *, num_messages: int, lipschitz: float, levels: int, noise_bits: int, probability: float, dimension: int
) -> float:
    r"""Return a bound on the mean squared error of the shuffled sum of vectors.

    Parameters
    ----------
    num_messages : int
        Messages N.
    lipschitz : float
        L, the largest norm of a vector, positive.
    levels, noise_bits : int
        g, b.
    probability : float
        p, in (0, 1).
    dimension : int
        Number of coordinates, d.

    Returns
    -------
    float
        :math:`d(2L/g)^2N(bp(1-p) + 1/4)`, over noise and rounding.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    What Lemma G.1 of Lowy and Razaviyayn 2023 states in order, :math:`dL^2\ln^2(d/\delta)/\epsilon^2`, for the parameters at hand. The noise
    is exact; rounding one coordinate of one vector has variance f(1 - f), at most 1/4.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> error = isrl.vector_sum_mse(
    ...     num_messages=200, lipschitz=1.0, levels=20, noise_bits=8, probability=0.25, dimension=3
    ... )
    >>> print(format_upper(error, ".2f"))
    10.51
    """
    messages, clip, levels, bits, rate, dimension = scalars(locals())
    return float(dimension * (2.0 * clip / levels) ** 2 * messages * (bits * rate * (1.0 - rate) + 0.25))


LARGEST_STEP = 300.0  # of log M between neighbouring shifts: orders beyond are of no use
MARGIN = 1e-12  # relative: for a maximiser that is rounded, and products of few terms


class Window(NamedTuple):
    """The logarithms of binomial masses, unnormalised, where shifted ones are compared, and what is cut off."""

    logs: Array  # of low - levels, ..., high + levels
    levels: int
    tail: float  # an upper bound of the probability of falling below low or above high
    error: float  # of each logarithm, absolute


def _chernoff(trials: int, probability: float, count: int) -> float:
    """Return an upper bound of P(Z <= count) below the mean, of P(Z >= count) above it."""
    share = count / trials
    distance = float(rel_entr(share, probability) + rel_entr(1.0 - share, 1.0 - probability))
    return math.exp(-max(trials * (distance - 8.0 * UNIT), 0.0)) * UP


def window(trials: int, probability: float, levels: int, tail: float) -> Window | None:
    """Return the window outside of which at most `tail` lies on either side; None if the shifts do not fit into it."""
    mean = trials * probability
    below = last_whole(lambda k: _chernoff(trials, probability, int(k)) - tail, max(int(mean) - 1, 0))
    above = last_whole(lambda k: _chernoff(trials, probability, trials - int(k)) - tail, max(int(trials - mean) - 1, 0))
    low, high = max(below, levels), min(trials - above, trials - levels)
    if not low < mean < high:
        return None
    cut = _chernoff(trials, probability, low - 1) + _chernoff(trials, probability, high + 1)
    k = np.arange(low - levels, high + levels, dtype=np.float64)
    steps = np.log((trials - k) / (k + 1.0) * (probability / (1.0 - probability)))
    mode = int(np.argmax(steps < 0.0)) if steps[-1] < 0.0 else steps.size
    logs = np.concatenate([-np.cumsum(steps[:mode][::-1])[::-1], [0.0], np.cumsum(steps[mode:])])
    error = UNIT * steps.size * (4.0 + float(-logs.min()))
    return Window(logs, levels, cut, error)


def _log_moments(cut: Window, order: float) -> Array:
    """Return upper bounds of log M(0), ..., log M(levels), increasing."""
    logs, g = cut.logs, cut.levels
    kept = logs[g:-g]
    total = math.log(float(np.exp(logs).sum()))  # of at most all masses, so that they are divided by too little
    found = np.zeros(g + 1)
    with np.errstate(over="ignore"):
        for m in range(1, g + 1):
            for shifted in (logs[g - m : logs.size - g - m], logs[g + m : logs.size - g + m]):
                terms = (1.0 + order) * kept - order * shifted
                top = float(terms.max())
                found[m] = max(found[m], top + math.log(float(np.exp(terms - top).sum())) - total)
    found[1:] += (1.0 + 2.0 * order) * cut.error + 3.0 * UNIT * logs.size + MARGIN * np.abs(found[1:])
    return np.maximum.accumulate(found)


def log_moment_of_vectors(cut: Window, order: float, dimension: int) -> float:
    """Return an upper bound of the logarithm of one round's truncated moment, over all pairs of records."""
    moments = _log_moments(cut, order)
    rise = np.diff(moments)
    if rise.max() > LARGEST_STEP:
        return math.inf
    m = np.arange(cut.levels, dtype=np.float64)
    k = np.expm1(rise)
    square = float(cut.levels) ** 2 * (1.0 + 1e-9)  # records are as long as the clip norm but for rounding

    def bound(log_price: float) -> float:
        price = math.exp(log_price)
        root = np.hypot(1.0 - m * k, k * math.sqrt(2.0 / price))
        f = np.clip(2.0 * (k / (2.0 * price) - m) / (1.0 + m * k + root), 0.0, 1.0)
        gains = moments[:-1] + np.log1p(f * k) - price * (m + f) ** 2
        rounding = 16.0 * UNIT * (float(moments[-1]) + price * square)
        return (price * square + dimension * (max(float(gains.max()), 0.0) + rounding)) * (1.0 + MARGIN)

    middle = math.log(max(float(moments[-1]), 1e-300) / square)
    best = minimize_scalar(bound, bounds=(middle - 5.0, middle + 10.0), method="bounded", options={"xatol": 1e-4})
    return min(float(best.fun), dimension * float(moments[-1]) * UP)
