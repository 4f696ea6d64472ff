"""Canaries: records whose presence shows most in linear and logistic models with clipped gradients."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Array, choice, non_negative_scalar, positive_scalar, real
from hockeystick._checks.shown import shown
from hockeystick._numeric.search import halve

__all__ = ["canary_direction", "canary_pair"]

Loss: TypeAlias = Literal["linear", "logistic"]

LOSSES: tuple[Loss, ...] = get_args(Loss)
STEEPEST = 1.2784645427610738  # argmax of z/(1 + e^z): 1 + e^z = z e^z


def canary_direction(features: ArrayLike) -> Array:
    """Return the direction that a data set uses least, in which a canary is disturbed least.

    Parameters
    ----------
    features : array-like of shape (num_records, dimension)
        Finite features of the other records.

    Returns
    -------
    ndarray of shape (dimension,)
        Unit vector u with the least sum of squared inner products with the records; its largest component is positive.

    Raises
    ------
    ValueError
        If the shape is another or a feature is not finite.

    Examples
    --------
    >>> from hockeystick import audit
    >>> print(audit.canary_direction([[1.0, 0.0, 0.0], [1.0, 0.0, 2.0]]) + 0.0)
    [0. 1. 0.]
    """
    records = real("features", features)
    if records.ndim != 2 or 0 in records.shape or not np.isfinite(records).all():
        raise ValueError(f"features must be finite and of shape (num_records, dimension), not of shape {records.shape}")
    records = _near_one(records)
    direction = np.linalg.eigh(records.T @ records)[1][:, 0]  # eigenvalues ascend
    return np.asarray(direction * math.copysign(1.0, direction[np.argmax(np.abs(direction))]))


def canary_pair(
    direction: ArrayLike, *, clip_norm: float, loss: Loss, reach: float | None = None
) -> tuple[Array, Array]:
    r"""Return two records whose gradients point in opposite directions and are never shorter than the clip norm.

    Replacing one by the other moves every clipped gradient sum by 2 clip_norm, the most that is possible, in every step. The
    inner product of the released model with the direction is the score of an audit.

    Parameters
    ----------
    direction : array-like of shape (dimension,)
        Finite, not zero; of any length. `canary_direction` gives one that other records do not disturb.
    clip_norm : float
        The norm at which gradients are clipped, positive.
    loss : {"linear", "logistic"}
        The loss of a model w at a record x is <x, w>, or log(1 + exp(-<x, w>)), the label +-1 a factor of x.
    reach : float, optional
        Bound of abs(<direction, w>)/norm(direction) over all models w at which a gradient is taken, non-negative; for
        "logistic" and only there, whose gradients become short where the model has learned the canary.

    Returns
    -------
    (ndarray, ndarray)
        The record and its neighbour, of the direction's shape; one is minus the other. The shortest such.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or clip_norm * reach is above 0.27846, beyond which no record will do.
    TypeError
        If an argument has the wrong type, or reach is missing or given needlessly.

    Notes
    -----
    The gradient of a linear loss is the record. That of the logistic loss at x = s u, u a unit vector and z = s reach, is at
    least s/(1 + e^z) long: s is the smallest number for which this is clip_norm; z/(1 + e^z) <= W(1/e) = 0.27846.

    Examples
    --------
    >>> from hockeystick import audit
    >>> record, neighbour = audit.canary_pair([0.0, 3.0], clip_norm=1.5, loss="linear")
    >>> print(record, neighbour)
    [0.  1.5] [-0.  -1.5]
    """
    vector = _near_one(real("direction", direction))
    length = float(np.linalg.norm(vector))
    if vector.ndim != 1 or not 0 < length < math.inf:
        raise ValueError(f"direction must be a finite vector of positive length, not {shown(direction)}")
    clip_norm = positive_scalar("clip_norm", clip_norm)
    choice("loss", loss, LOSSES)
    if (reach is None) != (loss == "linear"):
        raise TypeError(
            f"reach must be given for loss='logistic' and only there, not {shown(reach)} for loss={shown(loss)}"
        )
    size = clip_norm
    if reach is not None:
        reach = non_negative_scalar("reach", reach)
        size = _logistic_size(clip_norm, reach)
    record = np.asarray(size * (vector / length))
    return record, -record


def _near_one(array: Array) -> Array:
    """Return an array in units of a power of two in which its largest entry is about 1, so that squares neither overflow nor all underflow."""
    power = math.frexp(float(np.abs(array).max(initial=0.0)))[1]
    with np.errstate(under="ignore"):
        return np.ldexp(array, -power)


def _logistic_size(clip_norm: float, reach: float) -> float:
    """Return the smallest s with s/(1 + e^(s reach)) = clip_norm, from above."""
    most = STEEPEST / (1.0 + math.exp(STEEPEST))
    if clip_norm * reach > most:
        raise ValueError(
            f"clip_norm * reach must be at most {most:.5f} for a logistic canary, not {clip_norm} * {reach}"
        )
    low, high = 2.0 * clip_norm, clip_norm * (1.0 + math.exp(STEEPEST))
    high = STEEPEST / reach if high * reach > STEEPEST else high
    return halve(lambda s: s < clip_norm * (1.0 + math.exp(s * reach)), low, high, tolerance=1e-12)[1]
