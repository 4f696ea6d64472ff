"""Shuffled batches: what is proven, and what is attained; no amplification by sampling is claimed."""

from __future__ import annotations

import hockeystick._core as core
from hockeystick._checks import DELTA, NON_NEGATIVE_OR_INFINITE, at_most, count_scalar, positive_scalar, scalar
from hockeystick.accounting.brackets import Bracket
from hockeystick.mechanisms.sampled import MOST_STEPS

__all__ = ["shuffled_batches_delta_bracket", "shuffled_batches_epsilon_bracket"]


def shuffled_batches_delta_bracket(
    epsilon: float, *, noise_multiplier: float, num_batches: int, epochs: int = 1
) -> Bracket:
    """Return ends of delta for Gaussian noise on batches that a shuffle of the records fills.

    Parameters
    ----------
    epsilon : float
        Non-negative; infinity is legal.
    noise_multiplier : float
        Standard deviation of the noise over the sensitivity to one record; positive and finite.
    num_batches : int
        Batches of an epoch, in [1, 10^6]. Every record is in exactly one of them.
    epochs : int
        How often all records are used, shuffled anew each time; the upper end holds for one shuffle, too.

    Returns
    -------
    Bracket
        The upper end holds for every algorithm of this kind, with or without the shuffle; the lower end is attained by one. `method`
        says by which, and `status` is "certified": no such algorithm leaks more than the upper end, one leaks at least the lower end.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Adjacency: a record is zeroed out, its place in its batch staying empty; what `Accountant` calls adding or removing.

    Upper end: with the order of the records shown, each epoch is one Gaussian step for a record; showing it only raises delta. Nothing
    smaller is known to hold: a shuffle is no Poisson sample, and may leak far more than one (Chua et al. 2024, arXiv:2403.17673).

    Lower end, the largest of these, a shuffle for each epoch, r = 1/noise_multiplier, N of variance 1, in both directions:
    (a) all others contribute -1, the record 1 or nothing: means of N(2r e_t) against means of N(r e_t) over the T batches t (Chua et
    al. 2024), by the largest output of each epoch, in cells; their events are unions of these.
    (b) the same, by the sum over the outputs x of exp(2r(x - r)) - exp(r(x - r/2)), the likelihood ratio to first order.
    (c) the others contribute nothing: `RandomAllocation`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> bracket = hs.accounting.shuffled_batches_delta_bracket(1.0, noise_multiplier=1.0, num_batches=1000)
    >>> print(hs.format_lower(bracket.lower, ".1e"), hs.format_upper(bracket.upper, ".1e"))
    1.0e-03 1.3e-01
    """
    epsilon = scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)
    return _bracket(False, epsilon, noise_multiplier, num_batches, epochs)


def shuffled_batches_epsilon_bracket(
    delta: float, *, noise_multiplier: float, num_batches: int, epochs: int = 1
) -> Bracket:
    """Return ends of epsilon for Gaussian noise on batches that a shuffle of the records fills.

    Parameters
    ----------
    delta : float
        In [0, 1).
    noise_multiplier : float
        Standard deviation of the noise over the sensitivity to one record; positive and finite.
    num_batches : int
        Batches of an epoch, in [1, 10^6]. Every record is in exactly one of them.
    epochs : int
        How often all records are used, shuffled anew each time; the upper end holds for one shuffle, too.

    Returns
    -------
    Bracket
        As in `shuffled_batches_delta_bracket`, where the adjacency and the sources are.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> import hockeystick as hs
    >>> bracket = hs.accounting.shuffled_batches_epsilon_bracket(1e-5, noise_multiplier=1.0, num_batches=1000)
    >>> print(hs.format_lower(bracket.lower, ".2f"), hs.format_upper(bracket.upper, ".2f"))
    2.88 4.38
    """
    delta = scalar("delta", delta, *DELTA)
    return _bracket(True, delta, noise_multiplier, num_batches, epochs)


def _bracket(for_epsilon: bool, value: float, noise_multiplier: float, num_batches: int, epochs: int) -> Bracket:
    noise = positive_scalar("noise_multiplier", noise_multiplier)
    num_batches = count_scalar("num_batches", num_batches)
    at_most("num_batches", num_batches, "the largest supported", MOST_STEPS)
    epochs = count_scalar("epochs", epochs)
    lower, upper, by = core.shuffled_batches(for_epsilon, value, noise, float(num_batches), float(epochs))
    return Bracket(lower, upper, f"upper end without amplification, lower end by {by}", "certified")
