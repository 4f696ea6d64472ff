"""Noisy-FedProx: Gaussian differential privacy of the last model."""

from __future__ import annotations

from numpy.typing import ArrayLike

from hockeystick._checks import OnError, Result
from hockeystick.federated.arguments import Schedule, scheduled


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
    schedule: Schedule = "constant",
    diameter: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return the certified Gaussian-DP parameter mu of Noisy-FedProx's last model.

    Parameters
    ----------
    rounds : array_like
        Communication rounds T, a positive integer; at most 10^6 for "stagewise" and "continuous" schedules.
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
        First and largest step size, positive, at most 1/prox. (The printed condition, below 1/(prox - smoothness), is not
        enough.)
    prox : array_like
        Coefficient of the proximal term, above `smoothness`.
    schedule : {"constant", "cyclic", "stagewise", "continuous"}
        Step size in local step k of round t, both from 0: learning_rate times 1, 1/(k+1), 1/(t+1), 1/(tK+k+1).
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
    As `fedavg_gdp` with :math:`\rho_t = 1 + \frac{L}{\alpha - L}(1 - \prod_k (1 - \eta_{t,k}(\alpha - L)))` and
    :math:`\gamma_t = \frac{2V}{m\alpha}(1 - \prod_k (1 - \eta_{t,k}\alpha))`: what Theorem 15 of Sun, Shen and Tao should say,
    for every schedule. Proof: as :math:`1 - \eta_k\alpha \ge 0`, two runs from starts at distance 1 are after a step at most
    :math:`x_{k+1} = (1 - \eta_k(\alpha - L))x_k + \eta_k\alpha` apart, :math:`x_0 = 1`, and two runs on different records from one
    start :math:`g_{k+1} = (1 - \eta_k\alpha)g_k + 2V\eta_k`, :math:`g_0 = 0`; the distances to the fixed points
    :math:`\alpha/(\alpha - L)` and :math:`2V/\alpha` shrink by the same factors. Neither exceeds its fixed point, so that both entries
    of the paper's Table 3 hold, and no order of the steps matters.

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> mu = federated.fedprox_gdp(
    ...     rounds=20, local_steps=50, num_clients=4, clip_norm=1.0, noise_std=1.0, smoothness=1.0, learning_rate=0.1, prox=2.0
    ... )
    >>> print(format_upper(mu, ".6f"))
    2.236037
    """
    return scheduled("fedprox", "gdp", locals())


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
    schedule: Schedule = "constant",
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
    return scheduled("fedprox", "delta", locals())


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
    schedule: Schedule = "constant",
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
    return scheduled("fedprox", "epsilon", locals())
