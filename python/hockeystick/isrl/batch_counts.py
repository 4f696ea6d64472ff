"""Binomial noise for sums of shuffled bits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, at_most, count_scalar, non_negative_scalar, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.binomial import binomial_pmf
from hockeystick._numeric.search import Probe, narrow

__all__ = ["binomial_mechanism_delta", "calibrate_binomial_b", "shuffle_vector_sum"]

MOST_TRIALS = 10**7  # half a gigabyte


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
    epsilon = non_negative_scalar("epsilon", epsilon)
    trials = count_scalar("trials", trials)
    at_most("trials", trials, "a memory of half a gigabyte", MOST_TRIALS)
    probability = scalar("probability", probability, lambda x: 0 < x < 1, "lie in (0, 1)")
    shift = count_scalar("shift", shift)
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
    epsilon = scalar("epsilon", epsilon, lambda x: 0 < x <= 15, "lie in (0, 15]")
    delta = scalar("delta", delta, lambda x: 0 < x < 0.5, "lie in (0, 1/2)")
    num_messages = count_scalar("num_messages", num_messages)
    levels = count_scalar("levels", levels)
    probability = scalar("probability", probability, lambda x: 0 < x < 0.5, "lie in (0, 1/2)")

    def excess(b: float) -> float:
        reached = binomial_mechanism_delta(epsilon, trials=num_messages * int(b), probability=probability, shift=levels)
        return math.log(max(reached, 5e-324) / delta)

    good = Probe(1, excess(1))
    bad = Probe(0, math.inf)
    while good.excess > 0:
        bad = good
        if 2 * bad.x * num_messages > MOST_TRIALS:
            msg = f"levels must be at most what {MOST_TRIALS} noise bits hide at this epsilon and delta, not {levels}"
            raise ValueError(msg)
        good = Probe(2 * bad.x, excess(2 * bad.x))
    return int(narrow(excess, good, bad, whole=True).x)


def shuffle_vector_sum(
    vectors: ArrayLike,
    *,
    lipschitz: float,
    levels: int,
    noise_bits: int,
    probability: float,
    rng: np.random.Generator,
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
    points = STRICT.finite("vectors", vectors)
    lipschitz = positive_scalar("lipschitz", lipschitz)
    levels = count_scalar("levels", levels)
    noise_bits = count_scalar("noise_bits", noise_bits, 0)
    probability = scalar("probability", probability, lambda x: 0 < x < 1, "lie in (0, 1)")
    if points.ndim != 2 or points.size == 0:
        msg = f"vectors must have the shape (number, dimension), not {points.shape}"
        raise ValueError(msg)
    longest = float(np.linalg.norm(points, axis=1).max())
    at_most("the norm of vectors", longest * (1 - 1e-12), "lipschitz", lipschitz)  # a clipped one, rounded
    if not isinstance(rng, np.random.Generator):
        msg = f"rng must be a numpy.random.Generator, as numpy.random.default_rng(seed) makes one, not {shown(rng)}"
        raise TypeError(msg)
    number, dimension = points.shape
    scaled = np.clip((points + lipschitz) * (levels / (2.0 * lipschitz)), 0.0, levels)  # norms are rounded
    whole = np.floor(scaled)
    bits = (whole + (rng.random(points.shape) < scaled - whole)).sum(axis=0)
    bits += rng.binomial(number * noise_bits, probability, dimension)
    return np.asarray((bits - probability * noise_bits * number) * (2.0 * lipschitz / levels) - number * lipschitz)
