"""Sun, Shen and Tao 2024: Table 3."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, broadcast
from hockeystick.federated.arguments import Schedule
from hockeystick.published.federated.rows import PAPER, table_row
from hockeystick.published.warning import warn_unsound

__all__ = [
    "fedavg_data_sensitivity",
    "fedavg_model_sensitivity",
    "fedprox_data_sensitivity",
    "fedprox_model_sensitivity",
]


def fedavg_model_sensitivity(
    round_index: ArrayLike,
    *,
    local_steps: ArrayLike,
    smoothness: ArrayLike,
    learning_rate: ArrayLike,
    schedule: Schedule = "constant",
    constant: ArrayLike | None = None,
) -> Result:
    r"""Return rho_t of Noisy-FedAvg as Table 3 prints it.

    Parameters
    ----------
    round_index : array_like
        The round t, from 0.
    local_steps, smoothness, learning_rate : array_like
        K, L and mu, as in `hockeystick.federated.fedavg_gdp`.
    schedule : {"constant", "cyclic", "stagewise", "continuous"}
        The row of the table.
    constant : array_like, optional
        What the row leaves open, c ("cyclic") or z ("continuous"), positive; required there and only there.

    Returns
    -------
    ndarray or float
        :math:`(1 + \mu L)^K`, :math:`(1 + K)^{c\mu L}`, :math:`(1 + \mu L/(t+1))^K`, :math:`((t+2)/(t+1))^{z\mu L}`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        For "cyclic" and "continuous".

    Notes
    -----
    Constant and stage-wise steps are exact. Cyclic ones need :math:`c \ge H_K/\ln(K + 1)`, which is 1.4427 for K = 1 and falls to 1.
    Counterexample for every smaller c: K = 1, where a small :math:`\mu L` is exceeded. Continuous ones need at t = 0 a z of
    :math:`H_K/\ln 2`, which grows with K and is no constant. What holds: `hockeystick.federated.model_sensitivity`.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import federated, format_upper, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.fedavg_model_sensitivity(
    ...         0, local_steps=1, smoothness=1.0, learning_rate=0.1, schedule="cyclic", constant=1.2
    ...     )
    >>> print(f"printed {printed:.4f}, true", format_upper(federated.model_sensitivity([0.1], smoothness=1.0), ".4f"))
    printed 1.0867, true 1.1001
    """
    t, steps, open_constant = table_row(round_index, local_steps, schedule, constant)
    rate = STRICT.positive("learning_rate", learning_rate)
    t, steps, rate, bound, open_constant = broadcast(
        t, steps, rate, STRICT.non_negative("smoothness", smoothness), open_constant
    )
    if schedule == "constant":
        return ((1.0 + rate * bound) ** steps)[()]
    if schedule == "stagewise":
        return ((1.0 + rate * bound / (t + 1.0)) ** steps)[()]
    warn_unsound(f"Table 3 {PAPER} holds for no one constant", "hockeystick.federated.model_sensitivity")
    base = 1.0 + steps if schedule == "cyclic" else (t + 2.0) / (t + 1.0)
    return (base ** (open_constant * rate * bound))[()]


def fedavg_data_sensitivity(
    round_index: ArrayLike,
    *,
    local_steps: ArrayLike,
    num_clients: ArrayLike,
    clip_norm: ArrayLike,
    learning_rate: ArrayLike,
    schedule: Schedule = "constant",
    constant: ArrayLike | None = None,
) -> Result:
    r"""Return gamma_t of Noisy-FedAvg as Table 3 prints it.

    Parameters
    ----------
    round_index : array_like
        The round t, from 0.
    local_steps, num_clients, clip_norm, learning_rate : array_like
        K, m, V and mu, as in `hockeystick.federated.fedavg_gdp`.
    schedule : {"constant", "cyclic", "stagewise", "continuous"}
        The row of the table.
    constant : array_like, optional
        What the row leaves open, c ("cyclic") or z ("continuous"), positive; required there and only there.

    Returns
    -------
    ndarray or float
        :math:`2\mu VK/m`, :math:`\frac{2cV}{m}\ln(K + 1)`, :math:`2\mu VK/(m(t+1))`, :math:`\frac{2zV}{m}\ln\frac{t+2}{t+1}`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        For "cyclic" and "continuous".

    Notes
    -----
    Constant and stage-wise steps are exact. The other two lack the learning rate: counterexample for both, mu = 2, K = 1, t = 0, where
    linear losses drift by 4 V/m, and print 2 cV (ln 2)/m. What holds: `hockeystick.federated.data_sensitivity`.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import federated, format_upper, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.fedavg_data_sensitivity(
    ...         0, local_steps=1, num_clients=1, clip_norm=1.0, learning_rate=2.0, schedule="cyclic", constant=1.4427
    ...     )
    >>> true = federated.data_sensitivity([2.0], num_clients=1, clip_norm=1.0)
    >>> print(f"printed {printed:.4f}, true", format_upper(true, ".4f"))
    printed 2.0000, true 4.0001
    """
    t, steps, open_constant = table_row(round_index, local_steps, schedule, constant)
    clients, norm = STRICT.count("num_clients", num_clients), STRICT.positive("clip_norm", clip_norm)
    rate = STRICT.positive("learning_rate", learning_rate)
    t, steps, clients, norm, rate, open_constant = broadcast(t, steps, clients, norm, rate, open_constant)
    if schedule == "constant":
        return (2.0 * rate * norm * steps / clients)[()]
    if schedule == "stagewise":
        return (2.0 * rate * norm * steps / (clients * (t + 1.0)))[()]
    warn_unsound(f"Table 3 {PAPER} lacks the learning rate", "hockeystick.federated.data_sensitivity")
    total = np.log1p(steps) if schedule == "cyclic" else np.log1p(1.0 / (t + 1.0))
    return (2.0 * open_constant * norm / clients * total)[()]


def fedprox_model_sensitivity(*, smoothness: ArrayLike, prox: ArrayLike) -> Result:
    """Return rho of Noisy-FedProx as Table 3 prints it: right for steps of at most 1/prox.

    Parameters
    ----------
    smoothness : array_like
        L, in [0, prox).
    prox : array_like
        alpha, positive.

    Returns
    -------
    ndarray or float
        alpha/(alpha - L), the limit for many local steps of `hockeystick.federated.model_sensitivity`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(published.fedprox_model_sensitivity(smoothness=1.0, prox=2.0))
    2.0
    """
    bound, pull = broadcast(STRICT.non_negative("smoothness", smoothness), STRICT.positive("prox", prox))
    STRICT.require(lambda a, b: a > b, "prox must be above smoothness", prox=pull, smoothness=bound)
    return (pull / (pull - bound))[()]


def fedprox_data_sensitivity(*, num_clients: ArrayLike, clip_norm: ArrayLike, prox: ArrayLike) -> Result:
    """Return gamma of Noisy-FedProx as Table 3 prints it: right for steps of at most 1/prox.

    Parameters
    ----------
    num_clients, clip_norm, prox : array_like
        m, V and alpha, positive.

    Returns
    -------
    ndarray or float
        2 V/(m alpha), the limit for many local steps of `hockeystick.federated.data_sensitivity`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Counterexample for the printed steps below 1/(alpha - L): one step of .9, alpha = 2, L = 1 moves linear losses .9 times 2V/m
    apart, and 2V/(2m) is printed.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(published.fedprox_data_sensitivity(num_clients=10, clip_norm=1.0, prox=2.0))
    0.1
    """
    clients, norm, pull = broadcast(
        STRICT.count("num_clients", num_clients), STRICT.positive("clip_norm", clip_norm), STRICT.positive("prox", prox)
    )
    return (2.0 * norm / (clients * pull))[()]
