"""Noise bits of shuffled sums of vectors, and the error that they make."""

from __future__ import annotations

import math

from hockeystick._checks import count_scalar, positive_scalar, scalar
from hockeystick._numeric.search import Probe, narrow
from hockeystick.isrl.vector_noise import MOST_BITS, vector_sum_epsilon

__all__ = ["calibrate_vector_bits", "vector_sum_mse"]


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
    epsilon = positive_scalar("epsilon", epsilon)
    messages = count_scalar("num_messages", num_messages)

    def excess(bits: float) -> float:
        reached = vector_sum_epsilon(
            num_messages=messages,
            levels=levels,
            noise_bits=int(bits),
            probability=probability,
            dimension=dimension,
            delta=delta,
            rounds=rounds,
        )
        return math.log(max(reached, 1e-300) / epsilon)

    good, bad = Probe(1, excess(1)), Probe(0, math.inf)
    while good.excess > 0:
        bad = good
        if 2 * bad.x * messages > MOST_BITS:
            msg = (
                f"epsilon={epsilon:g} with levels={levels} and delta={delta:g} needs more than {MOST_BITS:g} noise bits in all: "
                "take fewer levels or a larger epsilon"
            )
            raise ValueError(msg)
        good = Probe(2 * bad.x, excess(2 * bad.x))
    return int(narrow(excess, good, bad, whole=True).x)


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
    messages = count_scalar("num_messages", num_messages)
    clip = positive_scalar("lipschitz", lipschitz)
    step = 2.0 * clip / count_scalar("levels", levels)
    bits = count_scalar("noise_bits", noise_bits, 0)
    rate = scalar("probability", probability, lambda x: 0 < x < 1, "lie in (0, 1)")
    return count_scalar("dimension", dimension) * step**2 * messages * (bits * rate * (1.0 - rate) + 0.25)
