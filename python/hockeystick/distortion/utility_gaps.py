"""Utility: squared distance to the optimum, what noise and protection cost of it, and what a total variation distance allows."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast, choice, matrix, pmf, positive_scalar, vector
from hockeystick.distortion.domains import checked

__all__ = [
    "GapDecomposition",
    "TotalVariance",
    "bias_gap_bound",
    "bias_norm",
    "bounded_function_gap",
    "expected_gap",
    "expected_gap_from_samples",
    "expected_utility_loss_additive_noise",
    "federated_utility_loss",
    "sum_of_squares_gap",
    "total_variance",
    "utility_loss",
    "utility_loss_tv_bound",
    "variance_gap_bound",
]

Sign: TypeAlias = Literal["protected_minus_original", "original_minus_protected"]


def _points(**points: ArrayLike) -> list[Array]:
    """Check parameter vectors of one shape."""
    arrays = {name: np.atleast_1d(STRICT.finite(name, point)) for name, point in points.items()}
    first, *rest = arrays
    for name in rest:
        if arrays[name].shape[-1:] != arrays[first].shape[-1:] and arrays[name].size != 1:
            raise ValueError(
                f"{name} must have the dimension of {first}, not the shapes {arrays[name].shape} and {arrays[first].shape}"
            )
    return broadcast(*arrays.values())


def sum_of_squares_gap(w: ArrayLike, w_star: ArrayLike, *, scale: float = 1.0) -> Result:
    """Return the utility gap of a parameter: its scaled squared distance to the optimum.

    Parameters
    ----------
    w, w_star : array_like of shape (..., d)
        The parameter and the optimum; a scalar optimum is repeated.
    scale : float
        C, positive: beta/2 bounds the excess loss of a beta-smooth loss.

    Returns
    -------
    ndarray or float
        C |w - w*|^2, of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the dimensions differ.

    Notes
    -----
    Zhang, Chen and Yang 2023, Equation 1.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.sum_of_squares_gap([1.0, 2.0], 0.0, scale=0.5))
    2.5
    """
    at, optimum = _points(w=w, w_star=w_star)
    return (positive_scalar("scale", scale) * ((at - optimum) ** 2).sum(axis=-1))[()]


class GapDecomposition(NamedTuple):
    """An expected gap and its parts, each times the scale."""

    variance: float
    bias_squared: float
    total: float


def expected_gap(mean: ArrayLike, covariance: ArrayLike, w_star: ArrayLike, *, scale: float = 1.0) -> GapDecomposition:
    """Return the expected utility gap of a random parameter, as variance and squared bias.

    Parameters
    ----------
    mean : array_like of shape (d,)
        Expectation of the parameter.
    covariance : array_like of shape (d, d)
        Its covariance: symmetric, with no negative eigenvalue.
    w_star : array_like of shape (d,)
        The optimum; a scalar is repeated.
    scale : float
        C, positive.

    Returns
    -------
    GapDecomposition
        C tr(covariance), C |mean - w*|^2, and their sum.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes do not match.

    Notes
    -----
    Zhang, Chen and Yang 2023, Lemma 5.2.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> distortion.expected_gap([0.0, 0.0], [[1.0, 0.3], [0.3, 2.0]], [1.0, -1.0])
    GapDecomposition(variance=3.0, bias_squared=2.0, total=5.0)
    """
    centre, optimum = _points(mean=mean, w_star=w_star)
    matrix = STRICT.finite("covariance", covariance)
    centre = vector("mean", centre)
    if matrix.shape != (centre.size, centre.size):
        raise ValueError(f"covariance must have the shape {(centre.size, centre.size)}, not {matrix.shape}")
    values = np.linalg.eigvalsh((matrix + matrix.T) / 2.0)
    slack = 1e-9 * max(float(values[-1]), 0.0)
    if np.abs(matrix - matrix.T).max() > slack or values[0] < -slack:
        raise ValueError(
            f"covariance must be symmetric without negative eigenvalues, not with the smallest {values[0]:g}"
        )
    scale = positive_scalar("scale", scale)
    variance = scale * float(np.trace(matrix))
    bias = scale * float(((centre - optimum) ** 2).sum())
    return GapDecomposition(variance, bias, variance + bias)


def expected_gap_from_samples(samples: ArrayLike, w_star: ArrayLike, *, scale: float = 1.0) -> GapDecomposition:
    """Return the mean utility gap of sampled parameters, as variance and squared bias; exactly, since the variance divides by n.

    Parameters
    ----------
    samples : array_like of shape (n, d)
        The parameters.
    w_star : array_like of shape (d,)
        The optimum; a scalar is repeated.
    scale : float
        C, positive.

    Returns
    -------
    GapDecomposition
        Whose total is the mean of `sum_of_squares_gap`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the shapes do not match.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> distortion.expected_gap_from_samples([[1.0], [3.0]], 0.0)
    GapDecomposition(variance=1.0, bias_squared=4.0, total=5.0)
    """
    points, optimum = _points(samples=samples, w_star=w_star)
    if points.ndim != 2:
        raise ValueError(f"samples must have the shape (number, dimension), not {points.shape}")
    scale = positive_scalar("scale", scale)
    centre = points.mean(axis=0)
    variance = scale * float(((points - centre) ** 2).sum(axis=1).mean())
    bias = scale * float(((centre - optimum[0]) ** 2).sum())
    return GapDecomposition(variance, bias, variance + bias)


def bias_norm(mean: ArrayLike, w_star: ArrayLike) -> Result:
    """Return the distance of a parameter's expectation to the optimum.

    Parameters
    ----------
    mean, w_star : array_like of shape (..., d)
        Expectation and optimum; a scalar optimum is repeated.

    Returns
    -------
    ndarray or float
        Of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the dimensions differ.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.bias_norm([3.0, 4.0], 0.0))
    5.0
    """
    return np.sqrt(sum_of_squares_gap(STRICT.finite("mean", mean), w_star))


class TotalVariance(NamedTuple):
    """The two parts of a variance, and their sum."""

    within: float
    between: float
    total: float


def total_variance(weights: ArrayLike, means: ArrayLike, variances: ArrayLike) -> TotalVariance:
    """Return a mixture's variance as the mean of variances and the variance of means.

    Parameters
    ----------
    weights : array_like of shape (n,)
        Probability of each component.
    means : array_like of shape (n,) or (n, d)
        Mean of each component.
    variances : array_like of shape (n,)
        Variance of each component (of a vector the trace), >= 0.

    Returns
    -------
    TotalVariance
        Within, between, and their sum.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the lengths differ.

    Notes
    -----
    Zhang, Chen and Yang 2023, Equation 29.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> distortion.total_variance([0.5, 0.5], [0.0, 2.0], [1.0, 3.0])
    TotalVariance(within=2.0, between=1.0, total=3.0)
    """
    weight = vector("weights", pmf("weights", weights))
    centres = STRICT.finite("means", means)
    within = STRICT.non_negative("variances", variances)
    for name, array in (("means", centres), ("variances", within)):
        if array.shape[:1] != weight.shape:
            raise ValueError(
                f"{name} must have one entry for each weight, not the shapes {array.shape} and {weight.shape}"
            )
    rows = centres.reshape(weight.size, -1)
    between = float(weight @ ((rows - weight @ rows) ** 2).sum(axis=1))
    inside = float(weight @ within)
    return TotalVariance(inside, between, inside + between)


def bounded_function_gap(width: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return how far the expectations of a bounded function differ under two distributions.

    Parameters
    ----------
    width : array_like
        Length of the interval of the function's values, >= 0.
    total_variation : array_like
        Distance of the distributions, in [0, 1].

    Returns
    -------
    ndarray or float
        Their product, which is attained.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Zhang, Chen and Yang 2023, Lemma E.1.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.bounded_function_gap(2.0, 0.25))
    0.5
    """
    width, distance = checked(locals())
    return (width * distance)[()]


def bias_gap_bound(radius: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return by how much a distortion can change the bias.

    Parameters
    ----------
    radius : array_like
        Largest distance of a parameter to the optimum, >= 0.
    total_variation : array_like
        Distance of the parameter's distributions with and without protection, in [0, 1].

    Returns
    -------
    ndarray or float
        2 R TV, which is attained.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    In place of the false Lemma 5.3 of Zhang, Chen and Yang 2023 (`hockeystick.published.bias_gap_bound`).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.bias_gap_bound(1.0, 0.25))
    0.5
    """
    return 2.0 * bounded_function_gap(STRICT.non_negative("radius", radius), total_variation)


def variance_gap_bound(conditional_variance: ArrayLike, radius: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return how much more the conditional mean of a protected parameter can vary than the unprotected parameter.

    Parameters
    ----------
    conditional_variance : array_like
        Expected variance of the protected parameter given the previous one, >= 0.
    radius : array_like
        Largest norm of a parameter C_3, >= 0.
    total_variation : array_like
        Distance of the parameter's distributions with and without protection, in [0, 1].

    Returns
    -------
    ndarray or float
        C_3^2 TV less the conditional variance; protection must not change the mean.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Half of what Lemma 5.4 of Zhang, Chen and Yang 2023 adds (`hockeystick.published.variance_gap_bound`).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.variance_gap_bound(0.3, 1.0, 0.1):.1f}")
    -0.2
    """
    variance, radius, distance = checked(locals())
    return (radius**2 * distance - variance)[()]


def utility_loss_tv_bound(radius: ArrayLike, total_variation: ArrayLike, *, scale: float = 1.0) -> Result:
    """Return a bound on the absolute expected utility loss.

    Parameters
    ----------
    radius : array_like
        Largest distance R of a parameter to the optimum, >= 0; infinite for Gaussian noise without a projection after it.
    total_variation : array_like
        Distance of the parameter's distributions with and without protection, in [0, 1].
    scale : float
        C, positive.

    Returns
    -------
    ndarray or float
        C R^2 TV, which is attained.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    In place of the false Theorem 5.1 of Zhang, Chen and Yang 2023.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(distortion.utility_loss_tv_bound(1.0, 0.25, scale=2.0))
    0.5
    """
    radius = STRICT.non_negative("radius", radius)
    return bounded_function_gap(positive_scalar("scale", scale) * radius**2, total_variation)


def utility_loss(
    w: ArrayLike,
    w_protected: ArrayLike,
    w_star: ArrayLike,
    *,
    scale: float = 1.0,
    sign: Sign = "protected_minus_original",
) -> Result:
    """Return what protection costs in utility.

    Parameters
    ----------
    w, w_protected, w_star : array_like of shape (..., d)
        Parameter without and with protection, and the optimum.
    scale : float
        C, positive.
    sign : {"protected_minus_original", "original_minus_protected"}
        Positive where protection hurts, as in the paper's appendix; or as its Equation 2 prints it.

    Returns
    -------
    ndarray or float
        Difference of the gaps, of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the dimensions differ.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.utility_loss([1.0, 1.0], [1.1, 0.9], 0.0):.2f}")
    0.02
    """
    sign = choice("sign", sign, ("protected_minus_original", "original_minus_protected"))
    protected = STRICT.finite("w_protected", w_protected)
    loss = sum_of_squares_gap(protected, w_star, scale=scale) - sum_of_squares_gap(w, w_star, scale=scale)
    return loss if sign == "protected_minus_original" else -loss


def federated_utility_loss(losses: ArrayLike) -> float:
    """Return the mean utility loss over clients and rounds.

    Parameters
    ----------
    losses : array_like of shape (K, T)
        Loss of each client in each round.

    Returns
    -------
    float
        The mean.

    Raises
    ------
    ValueError
        If there are not two axes, or no entries.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> distortion.federated_utility_loss([[0.1, 0.2], [0.3, 0.4]])
    0.25
    """
    return float(matrix("losses", losses, "(clients, rounds)").mean())


def expected_utility_loss_additive_noise(
    noise_variance: ArrayLike, dimension: ArrayLike, *, scale: float = 1.0, weights: ArrayLike | None = None
) -> Result:
    """Return the expected utility loss of independent zero-mean noise, exactly.

    Parameters
    ----------
    noise_variance : array_like
        Variance per coordinate of each client's noise, >= 0.
    dimension : array_like
        Number of coordinates d.
    scale : float
        C, positive.
    weights : array_like of shape (K,), optional
        Weights of the aggregation, which sum to 1; without them the loss is that of one client.

    Returns
    -------
    ndarray or float
        C d noise_variance, times the sum of squared weights.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Never negative: the term by which Theorem 5.1 of Zhang, Chen and Yang 2023 would make it so does not exist
    (`hockeystick.published.utility_loss_upper_bound`).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.expected_utility_loss_additive_noise(0.01, 10, weights=[0.25] * 4):.4f}")
    0.0250
    """
    noise, dimension = checked(locals())
    share = 1.0 if weights is None else float((vector("weights", pmf("weights", weights)) ** 2).sum())
    return (positive_scalar("scale", scale) * dimension * noise * share)[()]
