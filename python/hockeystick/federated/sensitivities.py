"""How far two runs of one round drift apart: model and data sensitivity of Noisy-FedAvg and Noisy-FedProx, for any step sizes.

Both follow one recursion over the local steps, whose terms are all non-negative: with a pull p of the local map towards the
round's first model, s <- s (1 - eta p) + eta. FedAvg has p = -L (model) and p = 0 (data); FedProx has p = alpha - L and
p = alpha. A step is at most four roundings, each relative to the sum that it is added to: where p > 0, s never exceeds 1/p, so
that eta is at least eta p s, and the rounding of 1 - eta p is relative to s too. Results are rounded up by that much.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import (
    STRICT,
    Array,
    Result,
    choice,
    count_scalar,
    non_negative_scalar,
    positive_scalar,
    scalar,
)
from hockeystick._checks.arguments import scalars
from hockeystick._numeric.rounding import UNIT
from hockeystick.federated.arguments import SCHEDULES, Schedule

__all__ = ["accumulated_step_size", "data_sensitivity", "model_sensitivity", "step_sizes"]


def step_sizes(*, rounds: int, local_steps: int, learning_rate: float, schedule: Schedule = "constant") -> Array:
    """Return the step size of every local step of every round.

    Parameters
    ----------
    rounds : int
        Communication rounds T, positive.
    local_steps : int
        Local steps per round K, positive.
    learning_rate : float
        Step size mu, positive.
    schedule : {"constant", "cyclic", "stagewise", "continuous"}
        Step size in local step k of round t, both from 0: learning_rate times 1, 1/(k+1), 1/(t+1), 1/(tK+k+1).

    Returns
    -------
    ndarray of shape (T, K)
        The step sizes, as the simulator takes them. Figure 3 of Sun, Shen and Tao 2024 shows the four.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import federated
    >>> print(federated.step_sizes(rounds=2, local_steps=3, learning_rate=1.0, schedule="cyclic").round(3))
    [[1.    0.5   0.333]
     [1.    0.5   0.333]]
    """
    rounds, local_steps, rate = scalars(locals())
    choice("schedule", schedule, SCHEDULES)
    t, k = np.arange(rounds, dtype=np.float64)[:, None], np.arange(local_steps, dtype=np.float64)
    ones = np.ones((rounds, local_steps))
    divisors = {"constant": ones, "cyclic": ones * (k + 1), "stagewise": ones * (t + 1)}
    return np.asarray(rate / divisors.get(schedule, t * local_steps + k + 1))


def accumulated_step_size(step_sizes: ArrayLike, *, smoothness: float, prox: float | None = None) -> Result:
    r"""Return eta(K, t) = (rho_t - 1)/L: how far the drift of two models adds up in a round, per unit of smoothness.

    Parameters
    ----------
    step_sizes : array_like of shape (..., K)
        Step size of every local step, non-negative; see `step_sizes`.
    smoothness : float
        Lipschitz constant L of the gradient, >= 0.
    prox : float, optional
        Coefficient alpha of FedProx, above `smoothness`, and at most 1 over every step; FedAvg if not given.

    Returns
    -------
    ndarray or float
        :math:`\sum_k \eta_k \prod_{j < k}(1 + \eta_j L)` for FedAvg, rounded up, of shape (...); the sum of the steps where L = 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma 21 of Sun, Shen and Tao 2024. For steps :math:`\mu/j` with j from first to last and h the sum of 1/j,
    :math:`(1 + \mu L)^h - 1 \le L\,\eta(K, t) \le e^{\mu L h} - 1`, because :math:`(\ln(1 + x))/j \le \ln(1 + x/j) \le x/j`: the
    logarithm is concave and 0 at 1. The bounds that the paper prints instead are false
    (`hockeystick.published.accumulated_step_size_bounds`).

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> print(format_upper(federated.accumulated_step_size([0.1, 0.1], smoothness=1.0), ".4f"))
    0.2101
    """
    steps, bound, pull = _local_map(step_sizes, smoothness, prox)
    return _drift(steps, pull - bound)


def model_sensitivity(step_sizes: ArrayLike, *, smoothness: float, prox: float | None = None) -> Result:
    r"""Return rho_t, by which factor a round of local training can move two models apart.

    Parameters
    ----------
    step_sizes : array_like of shape (..., K)
        Step size of every local step, non-negative; see `step_sizes`.
    smoothness : float
        Lipschitz constant L of the gradient, >= 0.
    prox : float, optional
        Coefficient alpha of FedProx, above `smoothness`, and at most 1 over every step; FedAvg if not given.

    Returns
    -------
    ndarray or float
        Upper bound of rho_t, rounded up, of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem 10 and Lemmas 21 and 23 of Sun, Shen and Tao 2024, exactly: :math:`\prod_k (1 + \eta_k L)` for FedAvg,
    :math:`1 + \frac{L}{\alpha - L}(1 - \prod_k (1 - \eta_k(\alpha - L)))` for FedProx (proof: `fedprox_gdp`). The
    steps may be in any order. With `data_sensitivity` and `hockeystick.last_iterate.shifted_interpolation` they give the certified
    Gaussian-DP parameter of any schedule; `fedavg_gdp` and `fedprox_gdp` do so for the four named ones.

    Examples
    --------
    >>> import math
    >>> import hockeystick as hs
    >>> from hockeystick import federated
    >>> steps = [[0.2, 0.1], [0.1, 0.05], [0.05, 0.05]]  # three rounds of two steps
    >>> rho = federated.model_sensitivity(steps, smoothness=1.0)
    >>> gamma = federated.data_sensitivity(steps, num_clients=50, clip_norm=1.0)
    >>> print(*(hs.format_upper(factor, ".3f") for factor in rho))
    1.321 1.156 1.103
    >>> least = hs.last_iterate.shifted_interpolation(rho, gamma).value
    >>> print("mu <=", hs.format_upper(math.sqrt(50 * least) / 0.1, ".4f"))
    mu <= 0.9348
    """
    steps, bound, pull = _local_map(step_sizes, smoothness, prox)
    if bound == 0.0:
        return np.ones(steps.shape[:-1])[()]
    with np.errstate(over="ignore"):
        drift = _drift(steps, pull - bound)
        return np.asarray((1.0 + bound * drift) * (1.0 + 4.0 * UNIT))[()]


def data_sensitivity(step_sizes: ArrayLike, *, num_clients: int, clip_norm: float, prox: float | None = None) -> Result:
    r"""Return gamma_t, how far one record can move a round's averaged model from the same start.

    Parameters
    ----------
    step_sizes : array_like of shape (..., K)
        Step size of every local step, non-negative; see `step_sizes`.
    num_clients : int
        Clients m that are averaged, positive.
    clip_norm : float
        Norm V to which gradients are clipped, positive; may be infinite.
    prox : float, optional
        Coefficient alpha of FedProx, at most 1 over every step; FedAvg if not given.

    Returns
    -------
    ndarray or float
        Upper bound of gamma_t, rounded up, of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem 10 and Lemmas 20 and 22 of Sun, Shen and Tao 2024, exactly: :math:`\frac{2V}{m}\sum_k \eta_k` for FedAvg,
    :math:`\frac{2V}{m\alpha}(1 - \prod_k (1 - \eta_k\alpha))` for FedProx.

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> print(format_upper(federated.data_sensitivity([0.2, 0.1], num_clients=50, clip_norm=1.0), ".4f"))
    0.0121
    """
    steps, _, pull = _local_map(step_sizes, 0.0, prox)
    clients = count_scalar("num_clients", num_clients)
    norm = scalar("clip_norm", clip_norm, lambda x: x > 0, "be positive")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # an infinite norm times no step
        drift = 2.0 * norm * np.asarray(_drift(steps, pull)) / clients
    # the next double keeps what underflows above the truth; no step is no drift
    return np.where((steps > 0.0).any(axis=-1), np.nextafter(drift * (1.0 + 4.0 * UNIT), np.inf), 0.0)[()]


def _local_map(step_sizes: ArrayLike, smoothness: float, prox: float | None) -> tuple[Array, float, float]:
    """Check the arguments of a local map; without a proximal term its coefficient is 0."""
    steps = STRICT.non_negative("step_sizes", step_sizes)
    if steps.ndim == 0 or steps.shape[-1] == 0:
        raise ValueError(
            f"step_sizes must have the local steps as their last axis, at least one, not the shape {steps.shape}"
        )
    bound = non_negative_scalar("smoothness", smoothness)
    if prox is None:
        return steps, bound, 0.0
    pull = positive_scalar("prox", prox)
    if pull <= bound:
        raise ValueError(f"prox must be above smoothness ({bound}), not {pull}")
    if (steps * pull > 1.0).any():
        raise ValueError(f"step_sizes must be at most 1/prox ({1.0 / pull}), not {steps.max()}")
    return steps, bound, pull


def _drift(steps: Array, pull: float) -> Array:
    """Return s after s <- s (1 - eta pull) + eta from 0, along the last axis, rounded up."""
    total = np.zeros(steps.shape[:-1])
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(steps.shape[-1]):
            eta = steps[..., k]
            total = np.where(total > 0.0, total * (1.0 - eta * pull), 0.0) + eta  # 0 even if the factor overflows
        return np.asarray(total * (1.0 + 4.0 * (steps.shape[-1] + 1) * UNIT))[()]
