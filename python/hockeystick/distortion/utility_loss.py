"""What protection costs in utility."""

from __future__ import annotations

from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, broadcast, choice, pmf, positive_scalar, vector
from hockeystick.distortion.gaps import Sign, sum_of_squares_gap

__all__ = ["expected_utility_loss_additive_noise", "federated_utility_loss", "utility_loss"]


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
    loss = sum_of_squares_gap(w_protected, w_star, scale=scale) - sum_of_squares_gap(w, w_star, scale=scale)
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
    table = STRICT.finite("losses", losses)
    if table.ndim != 2 or table.size == 0:
        msg = f"losses must have the shape (clients, rounds) and not be empty, not {table.shape}"
        raise ValueError(msg)
    return float(table.mean())


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
    noise, dimension = broadcast(
        STRICT.non_negative("noise_variance", noise_variance), STRICT.count("dimension", dimension)
    )
    share = 1.0 if weights is None else float((vector("weights", pmf("weights", weights)) ** 2).sum())
    return (positive_scalar("scale", scale) * dimension * noise * share)[()]
