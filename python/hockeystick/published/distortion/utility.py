"""Zhang, Chen and Yang 2023: utility."""

from __future__ import annotations

from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, broadcast, non_negative_scalar, scalar
from hockeystick.published.warning import warn_unsound

PAPER = "of Zhang, Chen and Yang (2023)"

__all__ = [
    "bias_gap_bound",
    "sampled_update_variance",
    "utility_loss_constant",
    "utility_loss_upper_bound",
    "variance_gap_bound",
]


def bias_gap_bound(constant: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return the bias gap of Lemma 5.3.

    Parameters
    ----------
    constant : array_like
        C_3 (main text) or C_4 (appendix), >= 0.
    total_variation : array_like
        In [0, 1].

    Returns
    -------
    ndarray or float
        Their product.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Notes
    -----
    Counterexample: mass .1 at -R and .9 at R, against all at R, the optimum at 0: TV = .1, the bias changes by .2 R.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(published.bias_gap_bound(0.5, 0.1))
    0.05
    """
    constant, distance = broadcast(
        STRICT.non_negative("constant", constant), STRICT.probability("total_variation", total_variation)
    )
    warn_unsound(f"Lemma 5.3 {PAPER} is false", "hockeystick.distortion.bias_gap_bound", "bound")
    return (constant * distance)[()]


def variance_gap_bound(conditional_variance: ArrayLike, radius: ArrayLike, total_variation: ArrayLike) -> Result:
    """Return the variance gap of Lemma 5.4: true where protection leaves the mean, and twice as large as need be.

    Parameters
    ----------
    conditional_variance, radius, total_variation : array_like
        As in `hockeystick.distortion.variance_gap_bound`.

    Returns
    -------
    ndarray or float
        2 C_3^2 TV less the conditional variance.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.variance_gap_bound(0.3, 1.0, 0.1):.1f}")
    -0.1
    """
    variance, radius, distance = broadcast(
        STRICT.non_negative("conditional_variance", conditional_variance),
        STRICT.non_negative("radius", radius),
        STRICT.probability("total_variation", total_variation),
    )
    return (2.0 * radius**2 * distance - variance)[()]


def utility_loss_constant(norm: float, bias: float, bias_slope: float, *, fixed: bool = False) -> float:
    """Return the constant C_6 of Theorem 5.1, which the paper does not state, as its proof has it.

    Parameters
    ----------
    norm : float
        C_3, largest norm of a parameter, >= 0.
    bias : float
        C_4, bound on the bias, >= 0.
    bias_slope : float
        C_5, bias over total variation, >= 0.
    fixed : bool
        Use C_4 in place of C_3 where the proof has a slip.

    Returns
    -------
    float
        2 C_3^2 + C_4 (C_3 + 2 C_5).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.utility_loss_constant(1.0, 0.5, 0.1):.2f}")
    2.60
    """
    c3 = non_negative_scalar("norm", norm)
    c4 = non_negative_scalar("bias", bias)
    c5 = non_negative_scalar("bias_slope", bias_slope)
    return 2.0 * c3**2 + c4 * ((c4 if fixed else c3) + 2.0 * c5)


def utility_loss_upper_bound(
    conditional_variance: ArrayLike, utility_constant: ArrayLike, total_variation: ArrayLike
) -> Result:
    """Return the utility bound of Theorem 5.1.

    Parameters
    ----------
    conditional_variance : array_like
        Expected variance of the protected parameter given the previous one, >= 0.
    utility_constant : array_like
        C_6, >= 0.
    total_variation : array_like
        In [0, 1].

    Returns
    -------
    ndarray or float
        C_6 TV less the conditional variance.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Notes
    -----
    Counterexample: without distortion TV and the loss are 0, and the bound is negative as soon as records are sampled.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(f"{published.utility_loss_upper_bound(0.5, 2.0, 0.0)}, true 0.0")
    -0.5, true 0.0
    """
    variance, constant, distance = broadcast(
        STRICT.non_negative("conditional_variance", conditional_variance),
        STRICT.non_negative("utility_constant", utility_constant),
        STRICT.probability("total_variation", total_variation),
    )
    warn_unsound(f"Theorem 5.1 {PAPER} is false", "hockeystick.distortion.utility_loss_tv_bound", "bound")
    return (constant * distance - variance)[()]


def sampled_update_variance(gradients: ArrayLike, sampling_rate: float) -> float:
    """Return the variance of the sampled update as Theorem 5.10 states it, without the 1/N of its proof.

    Parameters
    ----------
    gradients : array_like of shape (M, d) or (M,)
        Gradient of each record.
    sampling_rate : float
        p, in (0, 1).

    Returns
    -------
    float
        p (1 - p) times the sum of squared norms: right for one sampling round, unit step and no noise.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.sampled_update_variance([1.0, 2.0, 3.0], 0.2):.2f}")
    2.24
    """
    rows = STRICT.finite("gradients", gradients)
    p = scalar("sampling_rate", sampling_rate, lambda x: 0 < x < 1, "lie in (0, 1)")
    return float(p * (1.0 - p) * (rows**2).sum())
