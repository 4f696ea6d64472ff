"""What accelerated methods and non-smooth losses need: AC-SA, samples of vectors, the Moreau envelope."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast
from hockeystick.isrl.arguments import checked

__all__ = ["MoreauEnvelope", "acsa_bound", "moreau_envelope", "sampled_mean_variance"]


def acsa_bound(
    *,
    rounds: ArrayLike,
    distance_squared: ArrayLike,
    variance: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return a bound on the excess objective of accelerated stochastic approximation (AC-SA), at its own step sizes.

    Parameters
    ----------
    rounds : array_like
        Number of rounds R.
    distance_squared : array_like
        Squared distance of the start to the optimum, positive.
    variance : array_like
        Mean squared error V^2 of each round's gradient, >= 0; `noisy_gradient_variance`.
    smoothness : array_like
        Lipschitz constant of the gradient, beta.
    strong_convexity : array_like
        Strong convexity mu, in [0, smoothness].

    Returns
    -------
    ndarray or float
        :math:`2\varphi r_0^2/(R(R+1)) + V^2 \min((R+2)/(3\varphi), 2/(\mu(R+1)))` with
        :math:`\varphi = \max(2\beta, V\sqrt{R(R+1)(R+2)/6}/r_0)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Ghadimi and Lan 2012 with steps eta_r = 4 phi/(r(r+1)) and alpha_r = 2/(r+1); the explicit form of Lemma E.1 of Lowy and
    Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.acsa_bound(rounds=10, distance_squared=10.0, variance=0.01, smoothness=1.0):.5f}")
    0.38364
    """
    rounds, distance, variance, smoothness, convexity = checked(
        rounds=rounds,
        distance_squared=distance_squared,
        variance=variance,
        smoothness=smoothness,
        strong_convexity=strong_convexity,
    )
    phi = np.maximum(2.0 * smoothness, np.sqrt(variance * rounds * (rounds + 1.0) * (rounds + 2.0) / (6.0 * distance)))
    with np.errstate(divide="ignore"):
        noise = np.minimum((rounds + 2.0) / (3.0 * phi), 2.0 / (convexity * (rounds + 1.0)))
    return (2.0 * phi * distance / (rounds * (rounds + 1.0)) + variance * noise)[()]


def sampled_mean_variance(vectors: ArrayLike, sample_size: ArrayLike) -> Result:
    """Return the mean squared distance of a sample's mean to the mean of all vectors.

    Parameters
    ----------
    vectors : array_like of shape (N, d)
        The vectors.
    sample_size : array_like
        Vectors in the uniform sample without replacement, in [1, N].

    Returns
    -------
    ndarray or float
        (N - M)/((N - 1) M) times the mean squared distance of a vector to their mean.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma F.1 of Lowy and Razaviyayn 2023. Records of sampled silos are no simple random sample: see `noisy_gradient_variance`.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.sampled_mean_variance([[1.0], [-1.0], [0.0], [0.0]], 2):.6f}")
    0.166667
    """
    points = STRICT.finite("vectors", vectors)
    if points.ndim != 2 or points.size == 0:
        msg = f"vectors must have the shape (number, dimension), not {points.shape}"
        raise ValueError(msg)
    size = STRICT.count_up_to("sample_size", sample_size, points.shape[0])
    spread = ((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()
    return (spread * (points.shape[0] - size) / (max(points.shape[0] - 1, 1) * size))[()]


class MoreauEnvelope(NamedTuple):
    """Value and gradient of a Moreau envelope at a point."""

    value: float
    gradient: Array


def moreau_envelope(
    function: Callable[[Array], float], prox: Callable[[Array, float], Array], point: ArrayLike, smoothness: float
) -> MoreauEnvelope:
    """Return the smooth stand-in of a convex loss at a point.

    Parameters
    ----------
    function : callable
        The loss f on arrays of shape (d,).
    prox : callable
        ``prox(point, smoothness)`` minimises f(v) + (smoothness/2) |point - v|^2 over the domain.
    point : array_like of shape (d,)
        Inside the domain.
    smoothness : float
        beta, positive.

    Returns
    -------
    MoreauEnvelope
        Value and gradient of an envelope within L^2/(2 beta) below f, which is beta-smooth and L-Lipschitz on the domain.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma D.7 of Lowy and Razaviyayn 2023, which has 2L for L: beta |w - v|^2 <= f(w) - f(v) <= L |w - v| for w in the domain.
    A mu-strongly convex f has a mu beta/(mu + beta)-strongly convex envelope.

    Examples
    --------
    >>> import numpy as np
    >>> from hockeystick import isrl
    >>> envelope = isrl.moreau_envelope(
    ...     lambda v: float(abs(v).sum()), lambda w, b: np.sign(w) * np.maximum(abs(w) - 1 / b, 0), [0.2], 2.0
    ... )
    >>> print(f"{envelope.value:.2f} {envelope.gradient}")
    0.04 [0.4]
    """
    (at,) = broadcast(np.atleast_1d(STRICT.finite("point", point)))
    (beta,) = checked(smoothness=smoothness)
    nearest = np.asarray(prox(at, float(beta)), dtype=np.float64)
    if nearest.shape != at.shape:
        msg = f"prox must return an array of the shape of point {at.shape}, not {nearest.shape}"
        raise ValueError(msg)
    away = at - nearest
    return MoreauEnvelope(float(function(nearest)) + float(beta) / 2.0 * float(away @ away), float(beta) * away)
