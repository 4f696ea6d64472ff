"""Noisy-FedProx: Gaussian differential privacy of the last model."""

from __future__ import annotations

from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import OnError, Result
from hockeystick.federated.arguments import FederationGrid

__all__ = ["fedprox_delta", "fedprox_epsilon", "fedprox_gdp"]


def fedprox_gdp(
    *,
    rounds: ArrayLike,
    local_steps: ArrayLike,
    num_clients: ArrayLike,
    clip_norm: ArrayLike,
    noise_std: ArrayLike,
    smoothness: ArrayLike,
    learning_rate: ArrayLike,
    prox: ArrayLike,
    diameter: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return the certified Gaussian-DP parameter mu of Noisy-FedProx's last model.

    Parameters
    ----------
    rounds : array_like
        Communication rounds T, a positive integer.
    local_steps : array_like
        Local steps per round K, a positive integer.
    num_clients : array_like
        Clients m, all of which take part in every round; a positive integer.
    clip_norm : array_like
        Norm V to which gradients of the loss are clipped, positive.
    noise_std : array_like
        Standard deviation of the noise that each client adds to the model that it uploads, positive.
    smoothness : array_like
        Lipschitz constant of the gradient, in [0, prox).
    learning_rate : array_like
        Step size, positive, at most 1/prox. (The printed condition, below 1/(prox - smoothness), is not enough.)
    prox : array_like
        Coefficient of the proximal term, above `smoothness`.
    diameter : array_like, optional
        Diameter of a convex set that the global model is projected onto every round; unbounded if None or infinite.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        mu, up to a relative rounding of 1e-12, of the broadcast shape: the last model is mu-GDP with respect to replacing one record.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    As `fedavg_gdp` with :math:`\rho = 1 + \frac{L}{\alpha - L}(1 - (1 - \eta(\alpha - L))^K)` and
    :math:`\gamma = \frac{2V}{m\alpha}(1 - (1 - \eta\alpha)^K)`.

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> mu = federated.fedprox_gdp(
    ...     rounds=20, local_steps=50, num_clients=4, clip_norm=1.0, noise_std=1.0, smoothness=1.0, learning_rate=0.1, prox=2.0
    ... )
    >>> print(format_upper(mu, ".6f"))
    2.236037
    """
    grid = FederationGrid(num_threads, on_error)
    federation = (rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate)
    return grid.map(core.fedprox_gdp, *grid.prox_federation(*federation, prox=prox, diameter=diameter))


def fedprox_delta(
    eps: ArrayLike,
    *,
    rounds: ArrayLike,
    local_steps: ArrayLike,
    num_clients: ArrayLike,
    clip_norm: ArrayLike,
    noise_std: ArrayLike,
    smoothness: ArrayLike,
    learning_rate: ArrayLike,
    prox: ArrayLike,
    diameter: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return the certified delta of Noisy-FedProx's last model.

    Parameters
    ----------
    eps : array_like
        The point at which delta is evaluated, >= 0; broadcast against the other parameters, which are those
        of `fedprox_gdp`.

    Returns
    -------
    ndarray or float
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import federated
    >>> delta = federated.fedprox_delta(
    ...     1.0, rounds=20, local_steps=50, num_clients=4, clip_norm=1.0, noise_std=2.0, smoothness=1.0, learning_rate=0.1, prox=2.0
    ... )
    >>> print(f"{delta:.6f}")
    0.170081
    """
    grid = FederationGrid(num_threads, on_error)
    eps = grid.non_negative_or_infinite("eps", eps)
    federation = (rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate)
    cells = grid.prox_federation(*federation, prox=prox, diameter=diameter)
    return grid.map(core.fedprox_delta, *cells, eps)


def fedprox_epsilon(
    delta: ArrayLike,
    *,
    rounds: ArrayLike,
    local_steps: ArrayLike,
    num_clients: ArrayLike,
    clip_norm: ArrayLike,
    noise_std: ArrayLike,
    smoothness: ArrayLike,
    learning_rate: ArrayLike,
    prox: ArrayLike,
    diameter: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return the certified epsilon of Noisy-FedProx's last model.

    Parameters
    ----------
    delta : array_like
        Target delta in [0, 1]; broadcast against the other parameters, which are those of `fedprox_gdp`.

    Returns
    -------
    ndarray or float
        Upper bound of epsilon, >= 0, up to rounding (1e-12 relative in log delta), of the broadcast shape; infinity where delta = 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> epsilon = federated.fedprox_epsilon(
    ...     1e-5, rounds=20, local_steps=50, num_clients=4, clip_norm=1.0, noise_std=2.0, smoothness=1.0, learning_rate=0.1, prox=2.0
    ... )
    >>> print(format_upper(epsilon, ".6f"))
    4.983224
    """
    grid = FederationGrid(num_threads, on_error)
    delta = grid.probability("delta", delta)
    federation = (rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate)
    cells = grid.prox_federation(*federation, prox=prox, diameter=diameter)
    return grid.map(core.fedprox_epsilon, *cells, delta)
