"""Noisy-FedAvg and Noisy-FedProx: Gaussian differential privacy of the last model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import LARGEST_COUNT, Checks, OnError, Result, choice, integers
from hockeystick._checks.arguments import arrays
from hockeystick.federated.arguments import SCHEDULES, Schedule

SCHEDULES_BY_ROUND = ("stagewise", "continuous")  # the cost of a cell grows with its rounds


def scheduled(
    kind: Literal["fedavg", "fedprox"], what: Literal["gdp", "delta", "epsilon"], arguments: Mapping[str, Any]
) -> Result:
    """Check the arguments of a function on schedules of steps in their order, and evaluate it.

    Where a cell's cost grows with its rounds, which are limited there, delta and epsilon are those of the Gaussian-DP parameter.
    """
    grid = Checks(arguments["num_threads"], arguments["on_error"])
    schedule = choice("schedule", arguments["schedule"], SCHEDULES)
    by_round = schedule in SCHEDULES_BY_ROUND
    given = {**arguments, "diameter": np.inf if arguments["diameter"] is None else arguments["diameter"]}
    rounds = integers(1, core.max_scheduled_rounds if by_round else LARGEST_COUNT)
    known = arrays(given, grid, rounds=rounds, diameter="positive_or_infinite")
    question = [known.pop(name) for name in ("epsilon", "delta") if name in known]
    if "prox" in known:
        pull, rate = known["prox"], known["learning_rate"]
        grid.require(lambda a, b: a > b, "prox must be above smoothness", prox=pull, smoothness=known["smoothness"])
        grid.require(lambda e, a: e * a <= 1, "learning_rate must be at most 1/prox", learning_rate=rate, prox=pull)
    cells = known.values()
    if by_round and question:
        mu = grid.map(partial(getattr(core, f"{kind}_gdp"), schedule), *cells)
        return grid.map(core.gdp_dp_delta if what == "delta" else core.gdp_epsilon, np.asarray(mu), *question)
    return grid.map(partial(getattr(core, f"{kind}_{what}"), schedule), *cells, *question)


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
    diameter: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return the certified Gaussian-DP parameter mu of Noisy-FedAvg's last model.

    Parameters
    ----------
    rounds : array_like
        Communication rounds T, a positive integer; at most 10^6 for "stagewise" and "continuous" schedules.
    local_steps : array_like
        Local steps per round K, a positive integer.
    num_clients : array_like
        Clients m, all of which take part in every round; a positive integer.
    clip_norm : array_like
        Norm V to which gradients are clipped, positive.
    noise_std : array_like
        Standard deviation of the noise that each client adds to the model that it uploads, positive.
    smoothness : array_like
        Lipschitz constant of the (clipped) gradient, >= 0. Matters only with a decaying schedule or a diameter.
    learning_rate : array_like
        Step size, positive.
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
    Eq. 12 and Theorem 10 of Sun, Shen and Tao with :math:`\rho_t = \prod_k (1 + \eta_{t,k} L)` and
    :math:`\gamma_t = \frac{2V}{m} \sum_k \eta_{t,k}` and the exact optimum of the shifts. For constant and cyclic
    step sizes on an unbounded domain it is sqrt(T) times one round's: hiding the intermediate models then gains nothing,
    and linear losses attain the value. No convexity is assumed. Assumed are: all clients take part in every round, the server
    averages their models plainly, noise is fresh, the initial model does not depend on the data, and only the last model
    is seen (the clients themselves see the others: against them a decaying schedule or a diameter gains nothing).

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> mus = federated.fedavg_gdp(
    ...     rounds=100, local_steps=5, num_clients=50, clip_norm=1.0, noise_std=[0.1, 1.0], smoothness=1.0, learning_rate=0.01
    ... )
    >>> print(*(format_upper(mu, ".6f") for mu in mus))
    1.414214 0.141422
    """
    return scheduled("fedavg", "gdp", locals())


class GdpLimit(NamedTuple):
    """How the Gaussian-DP parameter of `fedavg_gdp` behaves as the rounds grow without end.

    Attributes
    ----------
    limit : ndarray or float
        Its limit; infinite, positive or 0. **No bound for any number of rounds**: it may be approached from above.
    exponent : ndarray or float
        The limit of ln(mu)/ln(T): mu grows or falls like this power of the rounds, up to logarithms.
    """

    limit: Result
    exponent: Result


def fedavg_gdp_limit(
    *,
    local_steps: ArrayLike,
    num_clients: ArrayLike,
    clip_norm: ArrayLike,
    noise_std: ArrayLike,
    smoothness: ArrayLike,
    learning_rate: ArrayLike,
    schedule: Schedule = "constant",
    diameter: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> GdpLimit:
    r"""Return the limit of the Gaussian-DP parameter of Noisy-FedAvg's last model for many rounds, and the power of T that leads to it.

    Parameters
    ----------
    local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate, schedule, diameter, num_threads, on_error : array_like
        As in `fedavg_gdp`.

    Returns
    -------
    GdpLimit
        Limit and exponent, of the broadcast shape; the limit to about 1e-9 relative.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    With p = learning_rate smoothness for "continuous" steps and local_steps times that for "stagewise" ones: without a diameter both have
    the exponent min(p - 1/2, 0), so that the last model forgets every record for p <= 1/2 (at 1/2 like :math:`1/\sqrt{\ln T}`) and has a positive limit
    above. In a ball the exponent is -1/2 for every p. "constant" and "cyclic" steps grow like :math:`\sqrt T`, and have a positive limit in a ball.
    Proofs: `docs/core/federated.md`, "Many rounds".

    Examples
    --------
    >>> from hockeystick import federated
    >>> setting = dict(local_steps=1, num_clients=1, clip_norm=1.0, noise_std=1.0, smoothness=1.0, schedule="continuous")
    >>> found = federated.fedavg_gdp_limit(**setting, learning_rate=[0.1, 1.0])
    >>> print(found.limit.round(5), found.exponent)
    [0.      2.49042] [-0.4  0. ]
    """
    given = {**locals(), "diameter": np.inf if diameter is None else diameter}
    grid = Checks(num_threads, on_error)
    choice("schedule", schedule, SCHEDULES)
    known = arrays(given, grid, diameter="positive_or_infinite")
    limit = grid.map(partial(core.fedavg_gdp_limit, schedule), *known.values())
    steps, *_, smooth, rate, ball = np.broadcast_arrays(*known.values())
    if schedule in SCHEDULES_BY_ROUND:
        power = rate * smooth * (steps if schedule == "stagewise" else 1.0)
        exponent = np.where(np.isfinite(ball), -0.5, np.minimum(power - 0.5, 0.0))
    else:
        exponent = np.where(np.isfinite(ball), 0.0, 0.5)
    return GdpLimit(limit, np.where(np.isnan(limit), np.nan, exponent)[()])


def fedavg_delta(
    epsilon: ArrayLike,
    *,
    rounds: ArrayLike,
    local_steps: ArrayLike,
    num_clients: ArrayLike,
    clip_norm: ArrayLike,
    noise_std: ArrayLike,
    smoothness: ArrayLike,
    learning_rate: ArrayLike,
    schedule: Schedule = "constant",
    diameter: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return the certified delta of Noisy-FedAvg's last model.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0; broadcast against the other parameters, which are those
        of `fedavg_gdp`.

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
    >>> delta = federated.fedavg_delta(
    ...     1.0, rounds=100, local_steps=5, num_clients=50, clip_norm=1.0, noise_std=0.2, smoothness=1.0, learning_rate=0.01
    ... )
    >>> print(f"{delta:.6f}")
    0.039633
    """
    return scheduled("fedavg", "delta", locals())


def fedavg_epsilon(
    delta: ArrayLike,
    *,
    rounds: ArrayLike,
    local_steps: ArrayLike,
    num_clients: ArrayLike,
    clip_norm: ArrayLike,
    noise_std: ArrayLike,
    smoothness: ArrayLike,
    learning_rate: ArrayLike,
    schedule: Schedule = "constant",
    diameter: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    """Return the certified epsilon of Noisy-FedAvg's last model.

    Parameters
    ----------
    delta : array_like
        Target delta in [0, 1]; broadcast against the other parameters, which are those of `fedavg_gdp`.

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
    >>> epsilon = federated.fedavg_epsilon(
    ...     1e-5, rounds=100, local_steps=5, num_clients=50, clip_norm=1.0, noise_std=0.2, smoothness=1.0, learning_rate=0.01
    ... )
    >>> print(format_upper(epsilon, ".6f"))
    2.943226
    """
    return scheduled("fedavg", "epsilon", locals())


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
    epsilon: ArrayLike,
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
    epsilon : array_like
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
