"""What a rate tolerates, and what it saves, up to constants: heterogeneity of the silos, rounds of communication, smoothing by a Moreau envelope."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast, choice
from hockeystick.isrl.domains import checked, left_out
from hockeystick.isrl.rates import Problem, average_noise, erm_rate, excess_risk_rate_iid

__all__ = ["MoreauEnvelope", "communication_gain", "harmless_heterogeneity", "moreau_envelope", "smoothing_parameter"]


def harmless_heterogeneity(
    *,
    gradient_std: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    smoothness: ArrayLike,
    lipschitz: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    diameter: ArrayLike = 1.0,
    strong_convexity: ArrayLike = 0.0,
    shuffled: bool = False,
) -> Result:
    r"""Return the heterogeneity up to which it costs a single pass nothing, in order, that not all silos take part.

    Parameters
    ----------
    gradient_std, num_records, silos_per_round, num_silos, smoothness, lipschitz, dimension, epsilon, delta : array_like
        As in `one_pass_rate`, or in `sdp_one_pass_rate` if shuffled.
    diameter : array_like
        D; not used where strong_convexity is positive.
    strong_convexity : array_like
        mu, in [0, smoothness].
    shuffled : bool
        Whether messages are shuffled.

    Returns
    -------
    ndarray or float
        The upsilon at which the participation term of the rate is the sum of the other two; infinite where all silos take part.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Remarks E.1 and G.1 of Lowy and Razaviyayn 2023. The convex case of G.1 prints :math:`(d\ln(d/\delta))^{3/10}`, where its own rate gives
    :math:`(d\ln^2(d/\delta))^{3/10}`.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> most = isrl.harmless_heterogeneity(
    ...     gradient_std=1.0,
    ...     num_records=2000,
    ...     silos_per_round=10,
    ...     num_silos=20,
    ...     smoothness=10.0,
    ...     lipschitz=1.0,
    ...     dimension=50,
    ...     epsilon=0.5,
    ...     delta=1e-6,
    ...     diameter=1.0,
    ... )
    >>> print(f"{most:.4f}")
    0.7456
    """
    phi, records, silos, all_silos, beta, lipschitz, dimension, epsilon, delta, diameter, convexity = checked(locals())
    noise = average_noise(dimension, epsilon, delta, records, silos, shuffled=shuffled)
    convex = (beta**2 * lipschitz**3 * diameter**2) ** 0.2 * noise**0.6 * np.sqrt(silos)
    convex += phi * (beta * diameter / lipschitz) ** 0.2 / (np.sqrt(records) * noise**0.2)
    with np.errstate(divide="ignore"):
        root = np.sqrt(beta / convexity)
        private = (
            dimension * np.log(1.0 / delta) * (lipschitz / (epsilon * records)) ** 2 / (silos if shuffled else 1.0)
        )
        strong = np.sqrt(root * (phi**2 / records + root * private))
        return (np.where(convexity > 0, strong, convex) / np.sqrt(left_out(silos, all_silos)))[()]


def communication_gain(
    *,
    silos_per_round: ArrayLike,
    num_records: ArrayLike,
    batch_size: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
) -> Result:
    r"""Return by which factor, in order, accelerated noisy mini-batch SGD needs fewer rounds than the algorithm of Girgis et al. 2021.

    Parameters
    ----------
    silos_per_round, num_records, batch_size, dimension : array_like
        M, n, K, d.
    epsilon : array_like
        Inter-silo record-level budget, positive.

    Returns
    -------
    ndarray or float
        :math:`\min(\sqrt M\epsilon n/\sqrt d, MK)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Remark F.1 of Lowy and Razaviyayn 2023, for all silos in every round: with fewer, `erm_rounds` is too small where silos differ.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> gain = isrl.communication_gain(
    ...     silos_per_round=25, num_records=1000, batch_size=100, dimension=10, epsilon=1.0
    ... )
    >>> print(format_upper(gain, ".1f"))
    1581.2
    """
    silos, records, batch, dimension, epsilon = checked(locals())
    return np.minimum(np.sqrt(silos / dimension) * epsilon * records, silos * batch)[()]


def smoothing_parameter(
    *,
    lipschitz: ArrayLike,
    diameter: ArrayLike,
    silos_per_round: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    problem: Problem = "population",
) -> Result:
    r"""Return the smoothness beta of the Moreau envelope that costs no more, in order, than the rate.

    Parameters
    ----------
    lipschitz, diameter, silos_per_round, num_records, dimension, epsilon, delta, strong_convexity : array_like
        As in `excess_risk_rate_iid`.
    problem : {"population", "empirical"}
        Whose excess risk: Theorem D.2 or F.2.

    Returns
    -------
    ndarray or float
        The beta at which L^2/beta is the rate, `excess_risk_rate_iid` or `erm_rate`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lowy and Razaviyayn 2023: the proof of Theorem D.2; that of F.2 prints :math:`\epsilon n\sqrt ML/(\sqrt dD)` and :math:`\mu M\epsilon^2n^2/d`, which is this
    without the logarithm of delta. The envelope is at most L^2/(2 beta) below the loss (`moreau_envelope`).

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> beta = isrl.smoothing_parameter(
    ...     lipschitz=1.0, diameter=2.0, silos_per_round=25, num_records=1000, dimension=10, epsilon=1.0, delta=1e-5
    ... )
    >>> print(format_upper(beta, ".3f"))
    59.029
    """
    arguments = {**locals()}
    whole = choice("problem", arguments.pop("problem"), ("population", "empirical")) == "population"
    found = excess_risk_rate_iid(**arguments) if whole else erm_rate(**arguments)
    return (STRICT.positive("lipschitz", lipschitz) ** 2 / found.value)[()]


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
    (beta,) = checked({"smoothness": smoothness})
    nearest = np.asarray(prox(at, float(beta)), dtype=np.float64)
    if nearest.shape != at.shape:
        raise ValueError(f"prox must return an array of the shape of point {at.shape}, not {nearest.shape}")
    away = at - nearest
    return MoreauEnvelope(float(function(nearest)) + float(beta) / 2.0 * float(away @ away), float(beta) * away)
