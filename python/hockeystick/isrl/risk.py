"""Explicit bounds on excess risk: every constant is there, so that plans can be compared before a budget is spent.

Losses are convex and L-Lipschitz on a domain of diameter D; expectations are over data, noise and sampling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special  # its logarithms and exponentials have the same bits on every processor, NumPy's have not

from hockeystick._checks import STRICT, Array, NumpyChecks, OnError, Result, scalar, vector
from hockeystick.isrl.domains import checked

__all__ = ["mb_sgd_empirical_bound", "mb_sgd_risk_bound", "population_bound", "relative_rmse", "uniform_stability"]


def mb_sgd_empirical_bound(
    *,
    diameter: ArrayLike,
    learning_rate: ArrayLike,
    rounds: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
    silos_per_round: ArrayLike,
    lipschitz: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return a bound on the excess empirical risk of noisy mini-batch SGD's averaged model.

    Parameters
    ----------
    diameter : array_like
        Diameter D of the domain.
    learning_rate : array_like
        Constant step size eta, below 1/strong_convexity; at most 1/smoothness for `uniform_stability`.
    rounds : array_like
        Number of rounds R.
    dimension : array_like
        Number of coordinates d.
    noise_std : array_like
        Noise sigma of each silo's mean gradient, per coordinate; `mean_noise_std` if they differ.
    silos_per_round : array_like
        Harmonic mean M of the number of participating silos.
    lipschitz : array_like
        Lipschitz constant of the loss, L.
    strong_convexity : array_like
        Strong convexity mu, >= 0.

    Returns
    -------
    ndarray or float
        :math:`D^2/(2\eta R) + (\eta/2)(d\sigma^2/M + L^2)` for mu = 0 and the plain average of the iterates before each step;
        otherwise :math:`\frac12(\mu D^2/((1-\mu\eta)^{-R} - 1) + \eta(d\sigma^2/M + L^2))` for `averaging_weights`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma D.6 of Lowy and Razaviyayn 2023; for mu > 0 the recursion is summed with its constants, and tends to the convex form.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> bound = isrl.mb_sgd_empirical_bound(
    ...     diameter=1.0, learning_rate=0.01, rounds=200, dimension=5, noise_std=0.5, silos_per_round=10, lipschitz=2.0
    ... )
    >>> print(f"{bound:.6f}")
    0.270625
    """
    diameter, rate, rounds, dimension, noise, silos, lipschitz, convexity = checked(locals())
    STRICT.require(
        lambda e, m: e * m < 1,
        "learning_rate must be below 1/strong_convexity",
        learning_rate=rate,
        strong_convexity=convexity,
    )
    return _empirical(diameter, rate, rounds, dimension * noise**2 / silos + lipschitz**2, convexity)[()]


def _empirical(diameter: Array, rate: Array, rounds: Array, second_moment: Array, convexity: Array) -> Array:
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        grown = special.expm1(-rounds * special.log1p(-convexity * rate)) / convexity
        start = np.where(convexity * rate * rounds > 0, 1.0 / grown, 1.0 / (rate * rounds))
    return (diameter * (diameter * start) + rate * second_moment) / 2.0


class Risk(NamedTuple):
    """The best bound over step sizes, and the step size."""

    bound: Array
    learning_rate: Array


def smallest_risk(  # noqa: PLR0917, checked arguments in their order
    diameter: Array,
    rounds: Array,
    lipschitz: Array,
    total: Array,
    noise: Array,
    dimension: Array,
    taking_part: Array,
    smoothness: Array,
    convexity: Array,
) -> Risk:
    """Return the smaller of the convex bound at its minimising step and the strongly convex one at Stich's step.

    The risk of s f is s times that of f: dividing f by a power of two changes no digit and keeps squares in range. A risk that
    overflows all the same is reported as infinite.
    """
    unit = np.ldexp(1.0, np.frexp(np.maximum(np.maximum(lipschitz, noise), smoothness))[1] - 1)
    lipschitz, noise, smoothness, convexity = lipschitz / unit, noise / unit, smoothness / unit, convexity / unit
    second_moment = dimension * noise**2 / taking_part + lipschitz**2

    def at(rate: Array, used: Array) -> Risk:
        empirical = _empirical(diameter, rate, rounds, second_moment, used)
        return Risk(empirical + stability_of_steps(lipschitz, rounds, rate, total, convexity), rate)

    slope = second_moment + 4.0 * lipschitz**2 * rounds / total
    plain = at(np.minimum(1.0 / smoothness, diameter / np.sqrt(rounds * slope)), np.zeros_like(convexity))
    with np.errstate(divide="ignore", invalid="ignore"):
        log = special.xlogy(1.0, np.maximum(2.0, (convexity * diameter * rounds) ** 2 / second_moment))
        step = np.where(convexity > 0, np.minimum(1.0 / smoothness, log / (convexity * rounds)), plain.learning_rate)
    strong = at(step, convexity)
    better = strong.bound < plain.bound
    bound, rate = (np.where(better, a, b) for a, b in zip(strong, plain, strict=True))
    return Risk(np.where(np.isnan(bound), np.inf, bound * unit), rate / unit)


def mb_sgd_risk_bound(
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
    strong_convexity: ArrayLike = 0.0,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return a bound on the population's excess risk of noisy mini-batch SGD, at the best step size.

    Parameters
    ----------
    diameter : array_like
        Diameter D of the domain.
    rounds : array_like
        Number of rounds R.
    lipschitz : array_like
        Lipschitz constant of the loss, L.
    num_records, num_silos : array_like
        Records of each silo n, silos N.
    silos_per_round : array_like
        Harmonic mean M of the number of participating silos, in [1, num_silos].
    dimension : array_like
        Number of coordinates d.
    noise_std : array_like
        Noise sigma of each silo's mean gradient, per coordinate.
    smoothness : array_like
        Lipschitz constant of the gradient, beta.
    strong_convexity : array_like
        Strong convexity mu, in [0, smoothness].
    num_threads : int, optional
        Accepted for symmetry; the formula uses one thread.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        `uniform_stability` plus `mb_sgd_empirical_bound` at the step size that minimises the sum, or for mu > 0 at
        `step_size_stich` if that is smaller; of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Records of all silos are drawn independently from one distribution, as in Theorem 2.1 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> bound = isrl.mb_sgd_risk_bound(
    ...     diameter=2.0,
    ...     rounds=50,
    ...     lipschitz=1.0,
    ...     num_records=1000,
    ...     num_silos=25,
    ...     silos_per_round=25,
    ...     dimension=10,
    ...     noise_std=[1.6, 0.16],
    ...     smoothness=1.0,
    ... )
    >>> print([format_upper(risk, ".4f") for risk in bound])
    ['0.4032', '0.2855']
    """
    grid = NumpyChecks(num_threads, on_error)
    diameter, rounds, lipschitz, records, silos, taking_part, dimension, noise, smoothness, convexity = checked(
        locals(), grid
    )
    with np.errstate(all="ignore"):  # cells outside the domain become NaN
        risk = smallest_risk(
            diameter, rounds, lipschitz, records * silos, noise, dimension, taking_part, smoothness, convexity
        )
    return grid.finish(risk.bound)


def relative_rmse(targets: ArrayLike, predictions: ArrayLike, *, mean: float) -> float:
    """Return the error of a regression relative to that of predicting the training mean.

    Parameters
    ----------
    targets, predictions : array_like of shape (n,)
        True and predicted values.
    mean : float
        Mean of the training targets.

    Returns
    -------
    float
        The root of the ratio of the sums of squares: 0 is perfect, 1 as bad as the mean.

    Raises
    ------
    ValueError
        If an argument is outside its domain, the shapes differ, or all targets equal the mean.

    Notes
    -----
    The metric of the experiments of Lowy and Razaviyayn 2023 with linear regression.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.relative_rmse([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], mean=2.0):.6f}")
    0.707107
    """
    truth = vector("targets", STRICT.finite("targets", targets))
    guess = vector("predictions", STRICT.finite("predictions", predictions))
    mean = scalar("mean", mean, np.isfinite, "be finite")
    if truth.shape != guess.shape:
        raise ValueError(f"predictions must be as long as targets ({truth.size}), not of length {guess.size}")
    spread = float(((truth - mean) ** 2).sum())
    if spread == 0.0:
        raise ValueError(f"targets must not all equal the mean {mean:g}")
    return float(np.sqrt(((truth - guess) ** 2).sum() / spread))


def uniform_stability(
    *,
    lipschitz: ArrayLike,
    rounds: ArrayLike,
    learning_rate: ArrayLike,
    num_records: ArrayLike,
    num_silos: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return by how much one record changes the loss of the model of (noisy) mini-batch SGD, in expectation.

    Parameters
    ----------
    lipschitz : array_like
        Lipschitz constant of the loss, L.
    rounds : array_like
        Number of rounds R.
    learning_rate : array_like
        Constant step size eta, at most 1/smoothness.
    num_records : array_like
        Records of each silo, n; of the smallest if they differ.
    num_silos : array_like
        Number of silos, N, of which a uniform random set takes part in each round.
    smoothness : array_like
        Lipschitz constant of the gradient, beta.
    strong_convexity : array_like
        Strong convexity mu, in [0, smoothness].

    Returns
    -------
    ndarray or float
        alpha: :math:`2L^2R\eta/(nN)`, and for mu > 0 the smaller of that and :math:`4L^2/(\mu(nN - 1))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma D.2 of Lowy and Razaviyayn 2023, which has the participating M in place of N: a silo takes part with probability
    M/N, which cancels.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> alpha = isrl.uniform_stability(
    ...     lipschitz=1.0, rounds=100, learning_rate=0.1, num_records=1000, num_silos=10, smoothness=1.0
    ... )
    >>> print(f"{alpha:.6f}")
    0.002000
    """
    lipschitz, rounds, rate, records, silos, smoothness, convexity = checked(locals())
    require_small_steps(rate, smoothness)
    total = records * silos
    STRICT.require(
        lambda t, m: (t > 1) | (m == 0),
        "num_records num_silos must exceed 1 if strong_convexity is positive",
        records=total,
        strong_convexity=convexity,
    )
    return stability_of_steps(lipschitz, rounds, rate, total, convexity)[()]


def require_small_steps(rate: Array, smoothness: Array) -> None:
    """Check that a step moves two models no further apart."""
    rule = "learning_rate must be at most 1/smoothness"  # which the caller may have rounded
    STRICT.require(lambda e, b: e * b <= 1 + 1e-12, rule, learning_rate=rate, smoothness=smoothness)


def stability_of_steps(lipschitz: Array, rounds: Array, rate: Array, total: Array, convexity: Array) -> Array:
    """Return `uniform_stability` of checked arguments."""
    convex = 2.0 * lipschitz**2 * rounds * rate / total
    with np.errstate(divide="ignore"):
        contracting = 4.0 * lipschitz**2 / (convexity * np.maximum(total - 1.0, 0.0))
    return np.where(convexity > 0, np.minimum(convex, contracting), convex)


def population_bound(stability: ArrayLike, empirical: ArrayLike) -> Result:
    """Return the bound on the population's excess risk from that on the sample's.

    Parameters
    ----------
    stability : array_like
        `uniform_stability`, >= 0.
    empirical : array_like
        Bound on the excess risk on the sample, >= 0.

    Returns
    -------
    ndarray or float
        Their sum.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma D.1 of Lowy and Razaviyayn 2023; all records of all silos are drawn independently from one distribution.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(isrl.population_bound(0.002, 0.85))
    0.852
    """
    return (STRICT.non_negative("stability", stability) + STRICT.non_negative("empirical", empirical))[()]
