"""Numbers of rounds, batch sizes and step sizes that the theorems prescribe: choices, not bounds; any other is as private."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, at_most
from hockeystick.isrl.domains import checked, scalars
from hockeystick.isrl.rates import average_noise

__all__ = [
    "averaging_weights",
    "erm_rounds",
    "mb_sgd_rounds",
    "one_pass_batch_size",
    "one_pass_batch_size_sc",
    "sdp_batch_size",
    "sdp_batch_size_sc",
    "shuffle_rounds",
    "step_size_convex",
    "step_size_stich",
]


def mb_sgd_rounds(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    silos_per_round: ArrayLike,
    num_records: ArrayLike,
    epsilon: ArrayLike,
    dimension: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the number of rounds that Theorem D.1 prescribes for noisy mini-batch SGD; round it up.

    Parameters
    ----------
    smoothness, diameter, lipschitz : array_like
        beta, D, L; positive.
    silos_per_round, num_records : array_like
        Participating silos M, records of each n.
    epsilon : array_like
        Inter-silo record-level budget, positive.
    dimension : array_like
        Number of coordinates d.
    strong_convexity : array_like
        mu, in [0, smoothness].

    Returns
    -------
    ndarray or float
        :math:`(\beta D\sqrt M/L)\min(\sqrt n, \epsilon n/\sqrt d) + \min(nM, \epsilon^2n^2M/d)`, at least 1; for mu > 0
        :math:`\max(2\kappa\ln(\beta D^2\mu M\epsilon^2n^2/(dL^2)), \min(Mn, M\epsilon^2n^2/d))`, the logarithm at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorems D.1 and D.2 of Lowy and Razaviyayn 2023, chosen for the rate: fewer rounds often have a smaller `mb_sgd_risk_bound`.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> rounds = isrl.mb_sgd_rounds(
    ...     smoothness=2.0, diameter=1.0, silos_per_round=10, lipschitz=1.0, num_records=500, epsilon=0.1, dimension=50
    ... )
    >>> print(format_upper(rounds, ".3f"))
    544.722
    """
    beta, diameter, lipschitz, silos, records, epsilon, dimension, convexity = checked(locals())
    private = (epsilon * records) ** 2 / dimension
    statistical = silos * np.minimum(records, private)
    convex = beta * diameter * np.sqrt(silos) / lipschitz * np.sqrt(np.minimum(records, private)) + statistical
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(np.maximum(beta * diameter**2 * convexity * silos * private / lipschitz**2, 1.0))
        strong = np.maximum(2.0 * beta / convexity * log, statistical)
    return np.maximum(np.where(convexity > 0, strong, convex), 1.0)[()]


def erm_rounds(
    *,
    lipschitz: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    num_records: ArrayLike,
    batch_size: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    dimension: ArrayLike,
    diameter: ArrayLike | None = None,
    initial_gap: ArrayLike | None = None,
    smoothness: ArrayLike | None = None,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the number of rounds of accelerated noisy mini-batch SGD for the empirical risk; round it up.

    Parameters
    ----------
    lipschitz : array_like
        L, positive.
    silos_per_round, num_silos, num_records, batch_size : array_like
        Participating silos M of N, records of each n, batch size K.
    epsilon, delta : array_like
        Inter-silo record-level budget.
    dimension : array_like
        Number of coordinates d.
    diameter : array_like, optional
        Diameter D of the domain; needed for convex smooth losses.
    initial_gap : array_like, optional
        Excess objective Delta of the start; needed for strongly convex smooth losses.
    smoothness : array_like, optional
        beta; without it the losses are not smooth.
    strong_convexity : array_like
        mu: 0 everywhere, or positive everywhere, at most smoothness.

    Returns
    -------
    ndarray or float
        The larger of :math:`\sqrt{(\beta D/L)\sqrt M\epsilon n/\sqrt{d\ln(1/\delta)}}` (without smoothness, whatever mu, :math:`\sqrt
        M\epsilon n/\sqrt{d\ln(1/\delta)}`; with it for mu > 0 :math:`\sqrt\kappa\ln(\Delta\mu M\epsilon^2n^2/(L^2d))`) and
        :math:`\epsilon^2n^2/(Kd\ln(1/\delta))`, the latter unless MK = Nn; at least 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the optional one that is needed is missing.

    Notes
    -----
    Theorems F.1 and F.2 of Lowy and Razaviyayn 2023, F.1.1 with beta D/L in place of its root, F.2.2 without the logarithm that it does not
    state. For M < N the silos' heterogeneity needs further rounds.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rounds = isrl.erm_rounds(
    ...     smoothness=100.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     silos_per_round=25,
    ...     num_silos=25,
    ...     num_records=1000,
    ...     batch_size=100,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     dimension=10,
    ... )
    >>> print(f"{rounds:.3f}")
    305.284
    """
    optional = ("diameter", "initial_gap", "smoothness")
    needed = {name: value for name, value in {**locals()}.items() if name not in optional}
    lipschitz, silos, all_silos, records, batch, epsilon, delta, dimension, convexity = checked(needed)
    log = np.log(1.0 / delta)
    sampled = np.where(silos * batch < all_silos * records, (epsilon * records) ** 2 / (batch * dimension * log), 0.0)
    if smoothness is not None and (convexity > 0).any():
        gap = _needed("initial_gap", initial_gap, "smoothness is given and strong_convexity is positive")
        STRICT.positive("strong_convexity", convexity)
        beta, gap, convexity = checked({"smoothness": smoothness, "initial_gap": gap, "strong_convexity": convexity})
        private = gap * convexity * silos * (epsilon * records / lipschitz) ** 2 / dimension
        optimisation = np.sqrt(beta / convexity) * np.log(np.maximum(private, 1.0))
    else:
        optimisation = np.sqrt(silos) * epsilon * records / np.sqrt(dimension * log)
        if smoothness is not None:
            width = _needed("diameter", diameter, "smoothness is given")
            beta, width = checked({"smoothness": smoothness, "diameter": width})
            optimisation = np.sqrt(beta * width / lipschitz * optimisation)
    return np.maximum(np.maximum(optimisation, sampled), 1.0)[()]


def _needed(name: str, value: ArrayLike | None, where: str) -> ArrayLike:
    if value is None:
        raise ValueError(f"{name} must be given where {where}")
    return value


def shuffle_rounds(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    num_records: ArrayLike,
    epsilon: ArrayLike,
    dimension: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the number of rounds that Theorem G.1 needs for shuffled mini-batch SGD; round it up.

    Parameters
    ----------
    smoothness, diameter, lipschitz : array_like
        beta, D, L; positive.
    silos_per_round, num_silos, num_records : array_like
        Silos M of N in each round, records of each n.
    epsilon : array_like
        Budget against who sees the shuffled messages.
    dimension : array_like
        Number of coordinates d.
    strong_convexity : array_like
        mu, in [0, smoothness].

    Returns
    -------
    ndarray or float
        The largest of :math:`n^2N^2\epsilon^2/M`, :math:`N/M`, :math:`\min(nM, \epsilon^2n^2N^2/d)` and :math:`(\beta D/L)\min(\sqrt{nM}, \epsilon
        nN/\sqrt d)`; for mu > 0 the last is :math:`8\kappa\ln(\beta D^2\mu\epsilon^2n^2N^2/(dL^2))`, the logarithm at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The proof of Theorem G.1 of Lowy and Razaviyayn 2023, whose third term is printed M times smaller
    (`hockeystick.published.shuffle_rounds`): then L^2/R need not be below the rate.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> rounds = isrl.shuffle_rounds(
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     silos_per_round=100,
    ...     num_silos=100,
    ...     num_records=10,
    ...     epsilon=0.1,
    ...     dimension=2,
    ... )
    >>> print(format_upper(rounds, ".0f"))
    1000
    """
    statistical, others, _ = shuffled_terms(locals())
    return np.maximum(statistical, others)[()]


def shuffled_terms(arguments: dict[str, Any]) -> tuple[Array, Array, Array]:
    """Return what Theorem G.1's rounds are the largest of, the statistical term apart, and the silos of a round."""
    beta, diameter, lipschitz, silos, all_silos, records, epsilon, dimension, convexity = checked(arguments)
    total = (epsilon * records * all_silos) ** 2
    statistical = np.minimum(records * silos, total / dimension)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(np.maximum(beta * diameter**2 * convexity * total / (dimension * lipschitz**2), 1.0))
        strong = 8.0 * beta / convexity * log
    optimisation = np.where(convexity > 0, strong, beta * diameter / lipschitz * np.sqrt(statistical))
    return statistical, np.maximum.reduce([total / silos, all_silos / silos, optimisation]), silos


def _convex_batch_size(arguments: dict[str, Any], *, shuffled: bool) -> Result:
    lipschitz, beta, diameter, records, dimension, epsilon, delta, silos = checked(arguments)
    noise = average_noise(dimension, epsilon, delta, records, silos, shuffled=shuffled)
    return np.clip(records * (lipschitz / (beta * diameter) * noise) ** 0.4, 1.0, records)[()]


def one_pass_batch_size(
    *,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    silos_per_round: ArrayLike,
) -> Result:
    r"""Return the batch size of one-pass accelerated mini-batch SGD for convex losses; round it.

    Parameters
    ----------
    lipschitz, smoothness, diameter : array_like
        L, beta, D; positive.
    num_records, dimension : array_like
        Records of each silo n, coordinates d.
    epsilon, delta : array_like
        Inter-silo record-level budget.
    silos_per_round : array_like
        Participating silos M.

    Returns
    -------
    ndarray or float
        :math:`K = (L/(\beta D))^{2/5}n^{3/5}(d\ln(1/\delta))^{1/5}/(\epsilon^{2/5}M^{1/5})`, in [1, n]; there are n // K rounds.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem E.1 of Lowy and Razaviyayn 2023; `one_pass_rate` is its rate.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> size = isrl.one_pass_batch_size(
    ...     lipschitz=1.0,
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     num_records=10_000,
    ...     dimension=10,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     silos_per_round=25,
    ... )
    >>> print(f"{size:.3f}")
    258.367
    """
    return _convex_batch_size(locals(), shuffled=False)


def one_pass_batch_size_sc(
    *,
    num_records: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike,
    initial_gap: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    silos_per_round: ArrayLike,
    lipschitz: ArrayLike,
    dimension: ArrayLike,
    gradient_std: ArrayLike,
) -> Result:
    r"""Return the batch size of one-pass accelerated mini-batch SGD for strongly convex losses; round it.

    Parameters
    ----------
    num_records : array_like
        Records of each silo, n.
    smoothness, strong_convexity : array_like
        beta and mu, positive.
    initial_gap : array_like
        Excess objective Delta of the start, positive.
    epsilon, delta : array_like
        Inter-silo record-level budget.
    silos_per_round, lipschitz, dimension : array_like
        M, L, d.
    gradient_std : array_like
        phi, positive.

    Returns
    -------
    ndarray or float
        :math:`K = n/(\sqrt\kappa \ln(\mu\Delta\min(\epsilon^2n^2M/(L^2d\ln(1/\delta)), nM/\phi^2)))`, in [1, n].

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the logarithm is not positive.

    Notes
    -----
    Theorem E.1 of Lowy and Razaviyayn 2023; `one_pass_rate_sc` is its rate.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> size = isrl.one_pass_batch_size_sc(
    ...     num_records=10_000,
    ...     smoothness=1.0,
    ...     strong_convexity=0.1,
    ...     initial_gap=1.0,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     silos_per_round=25,
    ...     lipschitz=1.0,
    ...     dimension=10,
    ...     gradient_std=1.0,
    ... )
    >>> print(f"{size:.3f}")
    312.273
    """
    return _strongly_convex_batch_size(locals(), shuffled=False)


def _strongly_convex_batch_size(arguments: dict[str, Any], *, shuffled: bool) -> Result:
    """Return n/(sqrt(kappa) ln(mu gap reach)), from 1 to n: the batches of a pass whose rounds the multi-stage algorithm needs."""
    records, beta, convexity, gap, epsilon, delta, silos, lipschitz, dimension, phi = checked(
        arguments, strong_convexity="positive", gradient_std="positive"
    )
    hiding, averaged = (silos, 1.0) if shuffled else (1.0, silos)
    private = (epsilon * records * hiding / lipschitz) ** 2 * averaged / (dimension * np.log(1.0 / delta))
    inside = convexity * gap * np.minimum(private, records * silos / phi**2)
    STRICT.require(
        lambda _, x: x > 1,
        "initial_gap must be larger: the logarithm in the batch size must be positive",
        initial_gap=gap,
        argument_of_logarithm=inside,
    )
    return np.clip(records / (np.sqrt(beta / convexity) * np.log(inside)), 1.0, records)[()]


def sdp_batch_size(
    *,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    silos_per_round: ArrayLike,
) -> Result:
    r"""Return the batch size of one-pass accelerated mini-batch SGD with a shuffler, for convex losses; round it.

    Parameters
    ----------
    lipschitz, smoothness, diameter, num_records, dimension, epsilon, delta, silos_per_round : array_like
        As in `one_pass_batch_size`, the budget being that of the shuffled messages.

    Returns
    -------
    ndarray or float
        :math:`K = (L/(\beta D))^{2/5}n^{3/5}(d\ln^2(d/\delta))^{1/5}/(\epsilon^{2/5}M^{2/5})`, in [1, n].

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem G.2 of Lowy and Razaviyayn 2023, with the logarithm and the epsilon of its statement in place of its proof's.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> size = isrl.sdp_batch_size(
    ...     lipschitz=1.0,
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     num_records=10_000,
    ...     dimension=10,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     silos_per_round=25,
    ... )
    >>> print(f"{size:.3f}")
    237.990
    """
    return _convex_batch_size(locals(), shuffled=True)


def sdp_batch_size_sc(
    *,
    num_records: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike,
    initial_gap: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    silos_per_round: ArrayLike,
    lipschitz: ArrayLike,
    dimension: ArrayLike,
    gradient_std: ArrayLike,
) -> Result:
    r"""Return the batch size of one-pass accelerated mini-batch SGD with a shuffler, for strongly convex losses; round it.

    Parameters
    ----------
    num_records, smoothness, strong_convexity, initial_gap, epsilon, delta : array_like
        As in `one_pass_batch_size_sc`, the budget being that of the shuffled messages.
    silos_per_round, lipschitz, dimension, gradient_std : array_like
        M, L, d, phi.

    Returns
    -------
    ndarray or float
        :math:`K = n/(\sqrt\kappa \ln(\mu\Delta\min(\epsilon^2n^2M^2/(L^2d\ln(1/\delta)), nM/\phi^2)))`, in [1, n].

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the logarithm is not positive.

    Notes
    -----
    The proof of Theorem G.2 of Lowy and Razaviyayn 2023, with the budget of the shuffled messages, where the print has that of one silo.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> size = isrl.sdp_batch_size_sc(
    ...     num_records=10_000,
    ...     smoothness=1.0,
    ...     strong_convexity=0.1,
    ...     initial_gap=1.0,
    ...     epsilon=0.01,
    ...     delta=1e-5,
    ...     silos_per_round=25,
    ...     lipschitz=1.0,
    ...     dimension=10,
    ...     gradient_std=1.0,
    ... )
    >>> print(f"{size:.3f}")
    367.730
    """
    return _strongly_convex_batch_size(locals(), shuffled=True)


def step_size_convex(
    *,
    diameter: ArrayLike,
    rounds: ArrayLike,
    lipschitz: ArrayLike,
    num_records: ArrayLike,
    num_silos: ArrayLike,
    silos_per_round: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
    smoothness: ArrayLike,
) -> Result:
    r"""Return the constant step size that minimises the bound on the population's excess risk, for convex losses.

    Parameters
    ----------
    diameter, rounds, lipschitz, num_records, num_silos, silos_per_round, dimension, noise_std, smoothness : array_like
        As in `mb_sgd_risk_bound`.

    Returns
    -------
    ndarray or float
        :math:`\min(1/\beta, D/\sqrt{R(4L^2R/(nN) + d\sigma^2/M + L^2)})`, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The minimiser of `uniform_stability` plus `mb_sgd_empirical_bound`, in place of the step of Theorem D.1 of Lowy and
    Razaviyayn 2023 (`hockeystick.published.step_size_convex`), whose bound is larger.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> eta = isrl.step_size_convex(
    ...     diameter=2.0,
    ...     rounds=50,
    ...     lipschitz=1.0,
    ...     num_records=1000,
    ...     num_silos=25,
    ...     silos_per_round=25,
    ...     dimension=10,
    ...     noise_std=1.6,
    ...     smoothness=1.0,
    ... )
    >>> print(f"{eta:.5f}")
    0.19842
    """
    diameter, rounds, lipschitz, records, silos, taking_part, dimension, noise, smoothness = checked(locals())
    slope = lipschitz**2 * (4.0 * rounds / (records * silos) + 1.0) + dimension * noise**2 / taking_part
    return np.minimum(1.0 / smoothness, diameter / np.sqrt(rounds * slope))[()]


def step_size_stich(
    *,
    strong_convexity: ArrayLike,
    distance_squared: ArrayLike,
    rounds: ArrayLike,
    second_moment: ArrayLike,
    max_step: ArrayLike,
) -> Result:
    r"""Return a constant step size for strongly convex losses, to be used with `averaging_weights`.

    Parameters
    ----------
    strong_convexity : array_like
        mu, positive.
    distance_squared : array_like
        Bound on the squared distance of the start to the optimum, such as the squared diameter; positive.
    rounds : array_like
        Number of rounds R.
    second_moment : array_like
        Bound c on the mean squared norm of the noisy gradient, such as d sigma^2/M + L^2; >= 0.
    max_step : array_like
        Largest step allowed, in (0, 1/strong_convexity]; 1/(2 smoothness) in the paper.

    Returns
    -------
    ndarray or float
        :math:`\min(s, \ln(\max(2, \mu^2 r_0 R^2/c))/(\mu R))` with s the largest step; s where c = 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Stich 2019, Lemma 2; Lemma D.5 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> eta = isrl.step_size_stich(
    ...     strong_convexity=0.1, distance_squared=4.0, rounds=500, second_moment=1.016, max_step=0.5
    ... )
    >>> print(f"{eta:.6f}")
    0.183889
    """
    convexity, distance, rounds, moment, largest = checked(locals(), strong_convexity="positive")
    STRICT.require(
        lambda s, m: s * m <= 1,
        "max_step must be at most 1/strong_convexity",
        max_step=largest,
        strong_convexity=convexity,
    )
    with np.errstate(divide="ignore"):
        log = np.log(np.maximum(2.0, (convexity * rounds) ** 2 * distance / moment))
    return np.minimum(largest, log / (convexity * rounds))[()]


def averaging_weights(*, strong_convexity: float, learning_rate: float, rounds: int) -> Array:
    """Return the weights of the iterates before each step in the averaged model.

    Parameters
    ----------
    strong_convexity : float
        mu, >= 0; 0 gives equal weights.
    learning_rate : float
        Step size eta, positive, below 1/strong_convexity.
    rounds : int
        Number of rounds R, up to 10^8.

    Returns
    -------
    ndarray of shape (R,)
        In proportion to (1 - mu eta)^{-(r+1)} for r = 0..R-1, summing to 1; without overflow.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem D.1 of Lowy and Razaviyayn 2023. The last iterate has no weight.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print((7 * isrl.averaging_weights(strong_convexity=1.0, learning_rate=0.5, rounds=3)).round(6))
    [1. 2. 4.]
    """
    convexity, rate, rounds = scalars(locals())
    at_most("rounds", rounds, "a memory of 1 GB", 10**8)
    if convexity * rate >= 1:
        raise ValueError(f"learning_rate must be below 1/strong_convexity = {1 / convexity:g}, not {rate:g}")
    weights = np.exp(np.arange(1 - rounds, 1) * -math.log1p(-convexity * rate))
    return np.asarray(weights / weights.sum())
