"""What a total variation distance allows: bounds on differences of utility, bias and variance."""

from __future__ import annotations

from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, broadcast, positive_scalar

__all__ = ["bias_gap_bound", "bounded_function_gap", "utility_loss_tv_bound", "variance_gap_bound"]


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
    width, distance = broadcast(
        STRICT.non_negative("width", width), STRICT.probability("total_variation", total_variation)
    )
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
    variance, radius, distance = broadcast(
        STRICT.non_negative("conditional_variance", conditional_variance),
        STRICT.non_negative("radius", radius),
        STRICT.probability("total_variation", total_variation),
    )
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
