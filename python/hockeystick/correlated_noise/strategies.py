"""Strategy matrices: square roots of prefix sums, buffered Toeplitz ones, trees, and those that are given by their inverse.

The noise of a step is a short sum of earlier noise where the inverse is given. Let D be the inverse of C, and A the matrix that is computed for C, so that A D = I - R with a small R. Then A = (I - R) C, and
for all u

    |A u| = |(I - R) C u|,  hence  |A u|/(1 + r) <= |C u| <= |A u|/(1 - r)  with r >= |R| the largest factor by which R stretches a vector.

So both ends of the sensitivity of A, moved by 1 + r and 1 - r, are ends of that of C: whatever way A was computed, only R counts.

Coefficients: A has the computed solution a of d_0 a_k = [k = 0] - sum_j d_j a_(k-j). Each a_k is off by the rounding of one sum of products and one quotient, so
that the coefficients of R are at most (bands + 2) half units times those of the product of |d| and |a| (Higham 2002, Accuracy and Stability of
Numerical Algorithms, section 3.1), and r is at most their sum. Nothing is inverted that is dense.

A matrix: r is at most the root of the sum of squares of the computed I - A D, and as many units as there are steps times that of |A| |D|.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, at_most, choice, count_scalar, same_length, vector
from hockeystick._numeric.rounding import DOWN, UNIT, UP
from hockeystick.correlated_noise.sensitivity import (
    Participation,
    Sensitivity,
    limit_work,
    matrix_sensitivity,
    strategy_of_steps,
)


def square_root_coefficients(bands: int) -> Array:
    """Return the first coefficients of the square root of the matrix of prefix sums.

    Parameters
    ----------
    bands : int
        How many, at least 1; as many as there are steps for the root itself, fewer for a banded strategy.

    Returns
    -------
    ndarray
        Of shape (bands,): binomial(2j, j)/4^j, falling.

    Raises
    ------
    ValueError
        If bands is outside its domain.

    Notes
    -----
    Fichtenberger, Henzinger and Upadhyay 2022 (arXiv 2202.11205); banded by Kalinin and Lampert 2024 (arXiv 2405.13763).

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> correlated_noise.square_root_coefficients(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    bands = count_scalar("bands", bands)
    at_most("bands", bands, "the largest supported", 2.0**24)
    places = np.arange(1, bands)
    return np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / places]))


def inverse_square_root_coefficients(bands: int) -> Array:
    """Return the first coefficients of the inverse of the square root of the matrix of prefix sums.

    Parameters
    ----------
    bands : int
        How many, at least 1: the bands of the inverse of a strategy, for `inverse_sensitivity` and `strategy_of_inverse`.

    Returns
    -------
    ndarray
        Of shape (bands,): 1, and then -binomial(2j, j)/(4^j (2j - 1)).

    Raises
    ------
    ValueError
        If bands is outside its domain.

    Notes
    -----
    The coefficients of (1 - x)^(1/2). Cut off after `bands` they are the inverse of the strategy BISR of Kalinin, McKenna, Upadhyay and Lampert
    2025 (arXiv 2505.12128).

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> correlated_noise.inverse_square_root_coefficients(4).tolist()
    [1.0, -0.5, -0.125, -0.0625]
    """
    root = square_root_coefficients(bands)
    return -root / (2.0 * np.arange(root.size) - 1.0)


def buffered_coefficients(decays: ArrayLike, scales: ArrayLike, *, steps: int) -> Array:
    """Return the coefficients of a buffered linear Toeplitz strategy (BLT).

    Parameters
    ----------
    decays : array_like
        theta_i, by which buffer i is multiplied in each step, in [0, 1]; of shape (buffers,).
    scales : array_like
        omega_i, what is read of buffer i, non-negative and finite; as many, or one number for all.
    steps : int
        How many coefficients: the number of steps, at most 2^24.

    Returns
    -------
    ndarray
        Of shape (steps,): 1, and for k >= 1 sum_i omega_i theta_i^(k-1), rounded up by some units in the last place (what is below 1e-300 may be
        0, which the margin of a sensitivity pays for). All are non-negative: the sensitivity of larger ones is larger.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024 (arXiv 2404.16706); McMahan, Xu and Zhang 2024 (arXiv 2408.08868). Where scales add up to at
    most 1 the coefficients never rise, and `matrix_sensitivity` is exact for any number of participations.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> coefficients = correlated_noise.buffered_coefficients([0.99, 0.8], [0.1, 0.4], steps=1000)
    >>> found = correlated_noise.matrix_sensitivity(
    ...     coefficients, steps=1000, participation="min_separation", separation=200
    ... )
    >>> print(hs.format_upper(found.upper, ".4f"), found.method)
    3.5486 largest products by position
    """
    rates = vector("decays", STRICT.probability("decays", decays))
    read = vector("scales", STRICT.non_negative("scales", scales))
    rates, read = same_length(decays=rates, scales=read)
    steps = count_scalar("steps", steps)
    at_most("steps", steps, "the largest supported", 2.0**24)
    coefficients = np.zeros(steps)
    coefficients[0] = 1.0
    with np.errstate(over="ignore", under="ignore"):
        for rate, scale in zip(rates, read, strict=True):
            coefficients[1:] += scale * rate ** np.arange(steps - 1, dtype=np.float64)
        coefficients[1:] *= 1.0 + (len(rates) + 8) * UNIT
    if not np.isfinite(coefficients).all():
        raise ValueError(f"scales must have a finite sum, not one that overflows, of a largest scale of {read.max()}")
    if math.fsum(read) <= 1.0:  # never rising, and so it stays where rounding up lets one rise
        coefficients = np.maximum.accumulate(coefficients[::-1])[::-1].copy()
    return coefficients


def tree_strategy(steps: int, *, nodes: Literal["all", "prefix"] = "all") -> Array:
    """Return the matrix of a binary tree over the steps: a row of zeros and ones for each node, in the order of release.

    Parameters
    ----------
    steps : int
        Steps of the tree, at most 4096.
    nodes : {"all", "prefix"}
        Every complete node, or those alone that make up prefix sums: see `tree_sensitivity`.

    Returns
    -------
    ndarray
        Of shape (nodes, steps), for `conditional_composition`. The sensitivity is known without it: `tree_sensitivity`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> print(correlated_noise.tree_strategy(3))
    [[1. 0. 0.]
     [0. 1. 0.]
     [1. 1. 0.]
     [0. 0. 1.]]
    """
    steps = count_scalar("steps", steps)
    at_most("steps", steps, "the largest supported", 4096)
    nodes = choice("nodes", nodes, ("all", "prefix"))
    columns, rows = np.arange(steps), []
    for end in range(1, steps + 1):
        size = 1
        while end % size == 0:  # the nodes that this step completes
            if nodes == "all" or end // size % 2:
                rows.append((columns >= end - size) & (columns < end))
            size *= 2
    return np.array(rows, dtype=np.float64)


LARGEST_ERROR = 1e-6  # of a strategy, relative: beyond, its inverse is as good as singular


def inverse_sensitivity(
    inverse: ArrayLike,
    *,
    steps: int | None = None,
    participation: Participation,
    separation: int | None = None,
    max_participations: int | None = None,
) -> Sensitivity:
    """Return the sensitivity of a matrix mechanism whose strategy is given by its inverse.

    Parameters
    ----------
    inverse : array_like
        The inverse of C, square, of shape (steps, steps). Or the coefficients of a lower triangular Toeplitz matrix, of shape (bands,), the
        diagonal's first: step t adds sum_j inverse[j] z_(t-j) to its sum of updates.
    steps : int, optional
        With coefficients, and only there: the number of steps.
    participation : {"single", "min_separation", "cyclic"}
        Which steps one record is in: see `matrix_sensitivity`.
    separation : int, optional
        At least 1; for the last two, and required there.
    max_participations : int, optional
        For "min_separation": in how many steps a record is at most; as many as fit by default.

    Returns
    -------
    Sensitivity
        A tuple (lower, upper, steps, method, participation); `upper` is certified, and pays for the rounding of the inversion. The ends agree to
        rounding where those of `matrix_sensitivity` do.

    Raises
    ------
    ValueError
        If an argument is outside its domain, the inverse is singular or so nearly that C is not known to 1e-6, or the work would take
        more than some ten seconds.

    Notes
    -----
    BISR and BandInvMF: Kalinin, McKenna, Upadhyay and Lampert 2025 (arXiv 2505.12128). The proof that the inversion's rounding is paid for is in
    `hockeystick.correlated_noise.strategies`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> inverse = correlated_noise.inverse_square_root_coefficients(4)
    >>> found = correlated_noise.inverse_sensitivity(
    ...     inverse, steps=2000, participation="min_separation", separation=400
    ... )
    >>> print(hs.format_lower(found.lower, ".4f"), hs.format_upper(found.upper, ".4f"))
    2.8481 2.8482
    """
    strategy, error = _inverted(inverse, steps)
    found = matrix_sensitivity(
        strategy, steps=steps, participation=participation, separation=separation, max_participations=max_participations
    )
    return found._replace(lower=found.lower / (1.0 + error) * DOWN, upper=found.upper / (1.0 - error) * UP)


def strategy_of_inverse(inverse: ArrayLike, *, steps: int | None = None) -> Array:
    """Return the sizes of the entries of a strategy that is given by its inverse, rounded up.

    Parameters
    ----------
    inverse : array_like
        The inverse of C, or the coefficients of it: see `inverse_sensitivity`.
    steps : int, optional
        With coefficients, and only there: the number of steps.

    Returns
    -------
    ndarray
        Of the shape of C, or coefficients of shape (steps,): each at least the absolute value of the entry of C, for
        `conditional_composition`, which counts absolute values only. The sensitivity of C itself is `inverse_sensitivity`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the inverse is singular or so nearly that C is not known to 1e-6.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import correlated_noise
    >>> strategy = correlated_noise.strategy_of_inverse([1.0, -0.5], steps=4)
    >>> print([hs.format_upper(c, ".6f") for c in strategy])
    ['1.000001', '0.500001', '0.250001', '0.125001']
    """
    strategy, error = _inverted(inverse, steps)
    # C = A + R C, and each entry of R C is at most r times a column of C, whose norm is at most that of A's over 1 - r.
    largest = float(np.abs(strategy).max())  # the squares of a norm must not underflow
    with np.errstate(under="ignore"):
        columns = np.linalg.norm(strategy / largest, axis=0) * largest
        off = error / (1.0 - error) * columns * (1.0 + (strategy.shape[0] + 16) * UNIT)
        sizes = (np.abs(strategy) + off) * UP
    is_lower = sizes.ndim == 2 and not np.triu(inverse, 1).any()
    return np.tril(sizes) if is_lower else sizes


def _inverted(inverse: ArrayLike, num_steps: int | None) -> tuple[Array, float]:
    """Return what is computed for C, and the r of the module's docstring."""
    array, steps = strategy_of_steps(inverse, num_steps, "inverse")
    if array.ndim == 2 and array.shape[0] != array.shape[1]:
        raise ValueError(f"inverse of shape {array.shape} must be square")
    if num_steps is not None and array[0] == 0:
        raise ValueError("inverse must have a first coefficient that is not 0, not 0.0: it is singular")
    array = array[:steps]
    power = math.frexp(float(np.abs(array).max()))[1]
    # Scaling is exact, and what underflows is far below the rounding next to a largest entry in [1/2, 1).
    with np.errstate(all="ignore"):  # what overflows is refused by the size of its error
        scaled = np.ldexp(array, -power)
        strategy, error = _matrix(scaled) if num_steps is None else _coefficients(scaled, steps)
        strategy = np.ldexp(strategy, -power)
    if not error <= LARGEST_ERROR:
        raise ValueError(
            f"inverse must be well-conditioned: what it inverts to is not known to {LARGEST_ERROR:g}, but to {error:.1e}"
        )
    if not np.isfinite(strategy).all():
        raise ValueError(
            f"inverse must not be so small that what it inverts to overflows, not have a largest entry of {np.abs(array).max()}"
        )
    return strategy, error


def _coefficients(inverse: Array, num_steps: int) -> tuple[Array, float]:
    bands = len(inverse)
    limit_work(bands * num_steps + 1000 * num_steps)
    backwards = -inverse[:0:-1].copy()
    solution = np.zeros(bands - 1 + num_steps)  # with zeros before the first step
    solution[bands - 1] = 1.0 / inverse[0]
    for step in range(1, num_steps):
        solution[step + bands - 1] = backwards @ solution[step : step + bands - 1] / inverse[0]
    strategy = solution[bands - 1 :]
    return strategy, (bands + 8) * UNIT * float(np.abs(inverse).sum() * np.abs(strategy).sum())


def _matrix(inverse: Array) -> tuple[Array, float]:
    num_steps = len(inverse)
    limit_work(4 * num_steps**3)
    try:
        strategy = np.linalg.inv(inverse)
    except np.linalg.LinAlgError:
        raise ValueError("inverse must be invertible: it is singular") from None
    residual = np.eye(num_steps) - strategy @ inverse
    rounding = (num_steps + 8) * UNIT * float(np.linalg.norm(np.abs(strategy) @ np.abs(inverse)))
    return np.asarray(strategy, np.float64), (float(np.linalg.norm(residual)) + rounding) * UP
