"""Sun, Shen and Tao 2024: Noisy-FedAvg and Noisy-FedProx."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import OnError, Result, choice
from hockeystick._checks.shown import shown
from hockeystick.federated.arguments import SCHEDULES, FederationChecks, Schedule
from hockeystick.published.warning import warn_unsound

__all__ = ["fedavg_gdp", "fedprox_gdp"]

FALSE = {  # schedule -> what is wrong
    "constant": "Theorem 12(a) of Sun, Shen and Tao (2024) is false: linear losses violate it from T = 2 on",
    "cyclic": "Theorem 12(b) of Sun, Shen and Tao (2024) is false: linear losses violate it, and it lacks the learning rate",
    "continuous": "Theorem 12(d) of Sun, Shen and Tao (2024) is false for z below learning_rate times the harmonic number H_K",
}


def _no_diameter(diameter: ArrayLike | None) -> None:
    if diameter is not None:
        msg = f"diameter must be None, not {shown(diameter)}: the printed theorem has no bounded domain"
        raise ValueError(msg)


def fedavg_gdp(
    *,
    rounds: ArrayLike,
    local_steps: ArrayLike,
    num_clients: ArrayLike,
    clip_norm: ArrayLike,
    noise_std: ArrayLike,
    smoothness: ArrayLike,
    learning_rate: ArrayLike,
    schedule: Schedule = "constant",
    diameter: None = None,
    c: ArrayLike | None = None,
    z: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return the Gaussian-DP parameter that Theorem 12 of Sun, Shen and Tao prints for Noisy-FedAvg.

    Parameters
    ----------
    rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate : array_like
        As in `hockeystick.federated.fedavg_gdp`.
    schedule : {"constant", "cyclic", "stagewise", "continuous"}
        Parts (a) to (d) of the theorem.
    diameter : None
        Accepted for symmetry; the theorem has no bounded domain.
    c : array_like, optional
        The constant that part (b) leaves open, positive; required for "cyclic" and only there.
    z : array_like, optional
        The constant that part (d) leaves open, positive; required for "continuous" and only there.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        The printed mu, of the broadcast shape: **no upper bound**, but for "stagewise".

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        For every schedule but "stagewise".

    Notes
    -----
    (a) :math:`g \sqrt{\frac{\rho+1}{\rho-1} \frac{\rho^T-1}{\rho^T+1}}` with :math:`g = 2\mu VK/(\sqrt m \sigma)`,
    :math:`\rho = (1+\mu L)^K`. Counterexample: linear losses whose gradients are not clipped shift the last model by
    exactly T times one round's sensitivity under noise of variance T, so the true parameter is :math:`g\sqrt T`;
    every smoothness L is an upper bound of theirs, and the printed value is smaller for T >= 2 and L > 0.
    (b) has the same defect from some T on, and its one-round value lacks the learning rate. (d) needs z >= learning_rate H_K, which is no
    constant; already T = 1 violates it below.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import federated, published
    >>> cell = dict(
    ...     rounds=50, local_steps=1, num_clients=4, clip_norm=1.0, noise_std=1.0, smoothness=1.0, learning_rate=1.0
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.fedavg_gdp(**cell)
    >>> print(f"printed {printed:.4f}, true and certified {federated.fedavg_gdp(**cell):.4f}")
    printed 1.7321, true and certified 7.0711
    """
    grid = FederationChecks(num_threads, on_error)
    schedule = choice("schedule", schedule, SCHEDULES)
    cells = grid.federation(rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate)
    _no_diameter(diameter)
    constant: ArrayLike | None = None
    for name, value, owner in (("c", c, "cyclic"), ("z", z, "continuous")):
        if (value is not None) != (schedule == owner):
            msg = f"{name} must be given for schedule={shown(owner)} and only there, not {shown(value)} for schedule={shown(schedule)}"
            raise ValueError(msg)
        constant = constant if value is None else grid.positive(name, value)
    if schedule in FALSE:
        warn_unsound(FALSE[schedule], "hockeystick.federated")
    function = partial(core.published_fedavg_gdp, schedule)
    return grid.map(function, *cells, np.asarray(1.0 if constant is None else constant))


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
    diameter: None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return the Gaussian-DP parameter that Theorem 15 of Sun, Shen and Tao prints for Noisy-FedProx.

    Parameters
    ----------
    rounds, local_steps, num_clients, clip_norm, noise_std, smoothness : array_like
        As in `hockeystick.federated.fedprox_gdp`.
    learning_rate : array_like
        Step size, positive, below 1/(prox - smoothness) as printed. Does not enter the formula.
    prox : array_like
        Coefficient of the proximal term, above `smoothness`.
    diameter : None
        Accepted for symmetry; the theorem has no bounded domain.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        The printed mu, of the broadcast shape: **no upper bound**.

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
    :math:`\frac{2V}{\sqrt m \alpha \sigma} \sqrt{\frac{2\alpha-L}{L} \big(1 - \frac{2}{(\alpha/(\alpha-L))^T + 1}\big)}`.
    Counterexample: linear losses have exactly :math:`\frac{2V}{\sqrt m \alpha\sigma} (1 - (1-\eta\alpha)^K) \sqrt T`.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import federated, format_upper, published
    >>> cell = dict(
    ...     rounds=20, local_steps=50, num_clients=4, clip_norm=1.0, noise_std=1.0, smoothness=1.0, learning_rate=0.1, prox=2.0
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.fedprox_gdp(**cell)
    >>> print(f"printed {printed:.4f}, true and certified {format_upper(federated.fedprox_gdp(**cell), '.4f')}")
    printed 0.8660, true and certified 2.2361
    """
    grid = FederationChecks(num_threads, on_error)
    cells = grid.federation(rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate)
    prox = grid.positive("prox", prox)
    _no_diameter(diameter)
    grid.require(lambda a, b: a > b, "prox must be above smoothness", prox=prox, smoothness=cells[5])
    grid.require(
        lambda e, a, b: e * (a - b) < 1,
        "learning_rate must be below 1/(prox - smoothness)",
        learning_rate=cells[6],
        prox=prox,
        smoothness=cells[5],
    )
    warn_unsound(
        "Theorem 15 of Sun, Shen and Tao (2024) is false: linear losses violate it from some T on",
        "hockeystick.federated",
    )
    return grid.map(core.published_fedprox_gdp, *cells, prox)
