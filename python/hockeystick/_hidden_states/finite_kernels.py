"""Contraction of the hockey-stick divergence by a finite kernel: its coefficient, and what it makes of a given divergence.

A kernel is a matrix whose row x is the law of the output for the input x. The most that the divergence of two outputs can be is
attained by two inputs (Asoodeh, Diaz and Calmon 2020, Theorem 2), or by one input and a mixture of both
(docs/core/hidden_state.md, section 2), so that all pairs of rows give the exact value.

Rounding: a row is first divided by its sum. The row on the left is rounded up, that on the right and gamma down, and so are entries
below `LEAST_ENTRY`, to 0; the sum of the positive parts is rounded up. The result is above the exact one by at most a few units
in the last place of 1, and of itself for each output.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import Array, NumpyChecks, OnError, Result, broadcast, first_bad, real
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import DOWN, GAUSSIAN_TAIL, UNIT, UP

ROW_SUM = 1e-9  # how far from 1 a row may sum
LEAST_ENTRY = 1e-290  # smaller probabilities on the right count as 0
LARGEST_EPS = 700.0  # e^700 LEAST_ENTRY is above 1: a larger eps takes no more away
BLOCK = 2**18  # numbers at a time


def contraction_coefficient(
    kernel: ArrayLike, epsilon: ArrayLike, *, num_threads: int | None = None, on_error: OnError = "raise"
) -> Result:
    r"""Return the contraction coefficient of a finite kernel under the hockey-stick divergence.

    Parameters
    ----------
    kernel : array_like of shape (n, m)
        Row x has the probabilities of the m outputs for the input x. Rows sum to 1 within 1e-9, and are divided by their sums.
    epsilon : array_like
        Logarithm of gamma, >= 0; at 0 the result is Dobrushin's coefficient. Shape (...).
    num_threads : int, optional
        Accepted for symmetry; the formula uses one thread.
    on_error : {"raise", "nan"}
        Raise for the first `epsilon` outside the domain, or give NaN there. A matrix that is no kernel always raises.

    Returns
    -------
    ndarray or float
        The coefficient, rounded up: above the exact one by at most 1e-14 + 2.3e-16 m; of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If the kernel is no matrix of numbers.

    Notes
    -----
    :math:`\eta_\gamma(K) = \sup E_\gamma(\mu K\|\nu K)/E_\gamma(\mu\|\nu) = \max_{x,x'} E_\gamma(K(x)\|K(x'))`: Theorem 2 of Asoodeh,
    Diaz and Calmon 2020. Products of coefficients are for `contraction_sum`; `nonlinear_contraction` says more of one kernel.

    Examples
    --------
    >>> import hockeystick as hs
    >>> flip = [[0.75, 0.25], [0.25, 0.75]]
    >>> print(*(hs.format_upper(eta, ".3f") for eta in hs.last_iterate.contraction_coefficient(flip, [0.0, 0.5, 2.0])))
    0.501 0.338 0.000
    """
    grid = NumpyChecks(num_threads, on_error)
    matrix = checked_kernel(kernel)
    epsilon = grid.non_negative_or_infinite("epsilon", epsilon)
    with np.errstate(under="ignore"):
        return grid.finish(_largest_divergence(matrix, np.exp(np.minimum(epsilon, LARGEST_EPS)) * DOWN))


def nonlinear_contraction(
    kernel: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return the largest hockey-stick divergence after a kernel of two laws whose divergence before it is at most delta.

    Parameters
    ----------
    kernel : array_like of shape (n, m), or float
        Row x has the probabilities of the m outputs for the input x. Rows sum to 1 within 1e-9, and are divided by their sums. A
        number >= 0 stands for Gaussian noise on points of a set whose diameter is so many standard deviations.
    epsilon : array_like
        Logarithm of gamma, >= 0; shape (...).
    delta : array_like
        The divergence before the kernel, in [0, 1]; shape (...).
    num_threads : int, optional
        Accepted for symmetry; the formula uses one thread.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there. A matrix that is no kernel always raises.

    Returns
    -------
    ndarray or float
        The largest divergence, rounded up: above the exact one by at most delta (1e-14 + 2.3e-16 m), or 2e-12 of its logarithm for
        a Gaussian kernel; of the broadcast shape of epsilon and delta. It may be given to the next kernel.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If the kernel is neither a matrix of numbers nor a number.

    Notes
    -----
    :math:`F(\delta) = \delta \max_{x,x'} E_{\gamma'}(K(x)\|K(x'))` with :math:`\gamma' = 1 + (e^\epsilon - 1)/\delta`. It is never
    above :math:`\eta_\gamma\delta`, it grows with delta, and two laws attain it: :math:`\delta` at x and the rest at x', and all at x'.
    `docs/core/hidden_state.md`, section 2, has the proof.

    Examples
    --------
    >>> import hockeystick as hs
    >>> flip = [[0.75, 0.25], [0.25, 0.75]]
    >>> after, coefficient = hs.last_iterate.nonlinear_contraction(flip, 0.1, 0.25), hs.last_iterate.contraction_coefficient(flip, 0.1)
    >>> print(hs.format_upper(after, ".4f"), "and by the coefficient", hs.format_upper(0.25 * coefficient, ".4f"))
    0.0988 and by the coefficient 0.1185
    """
    grid = NumpyChecks(num_threads, on_error)
    gaussian = not isinstance(kernel, (list, tuple)) and real("kernel", kernel).ndim == 0
    first = grid.non_negative_or_infinite("kernel", kernel) if gaussian else checked_kernel(kernel)
    epsilon = grid.non_negative_or_infinite("epsilon", epsilon)
    delta = grid.probability("delta", delta)
    epsilon, delta = broadcast(epsilon, delta)
    with np.errstate(all="ignore"):  # delta of 0, and cells outside the domain
        excess = np.minimum(np.expm1(np.minimum(epsilon, LARGEST_EPS)) * DOWN / delta * DOWN, math.exp(LARGEST_EPS))
        if gaussian:
            log_eta = core.log_theta(np.log1p(excess) * DOWN, first)
            log_f = np.log(delta) + log_eta
            after = np.exp(np.minimum(log_f + GAUSSIAN_TAIL * (1.0 - log_f), 0.0))
            factor = np.where(first > 0, 1.0, 0.0)  # equal inputs have equal outputs
        else:
            factor = _largest_divergence(first, (1.0 + excess) * DOWN)
            after = delta * factor
        after = np.where(factor > 0, np.nextafter(after * UP, 1.0), 0.0)
    return grid.finish(np.where(delta > 0, np.minimum(after, delta), 0.0))


def checked_kernel(kernel: ArrayLike) -> Array:
    """Return a row-stochastic matrix whose rows differ, each divided by its sum up to rounding."""
    try:
        matrix = real("kernel", kernel)
    except TypeError:
        raise TypeError(f"kernel must be a matrix of numbers whose rows have one length, not {shown(kernel)}") from None
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"kernel must be a matrix with at least one row and one column, not of shape {matrix.shape}")
    good = (matrix >= 0) & (matrix <= 1 + ROW_SUM)
    if not good.all():
        where, entry = first_bad("kernel", matrix, good)
        raise ValueError(f"{where} must lie in [0, 1], not {entry!s}")
    totals = np.array([math.fsum(row) for row in matrix])
    off = np.abs(totals - 1.0)
    if off.max() > ROW_SUM:
        row = int(np.argmax(off))
        raise ValueError(f"kernel[{row}] must sum to 1 within {ROW_SUM:g}, not to {totals[row]!s}")
    distinct: Array = np.unique(matrix, axis=0)  # before the division, which could make different rows equal
    divided: Array = distinct / np.array([[math.fsum(row)] for row in distinct])
    return divided


def _largest_divergence(matrix: Array, gammas: Array) -> Array:
    """Return the largest divergence of two rows for each gamma, rounded up."""
    rows, columns = matrix.shape
    if rows == 1:
        return np.zeros(gammas.shape)
    left, right = matrix * UP, np.where(matrix < LEAST_ENTRY, 0.0, matrix) * DOWN
    block = max(1, BLOCK // matrix.size)
    values, inverse = np.unique(gammas, return_inverse=True)
    largest = np.zeros(values.size)
    for k, gamma in enumerate(values.tolist()):
        taken = gamma * right
        for start in range(0, rows, block):
            excess = left[start : start + block, np.newaxis] - taken
            largest[k] = max(largest[k], np.maximum(excess, 0.0).sum(axis=-1).max())
    upper: Array = np.minimum(largest * ((1.0 + columns * UNIT) * UP), 1.0)
    return upper[inverse].reshape(gammas.shape)
