"""Sun, Shen and Tao 2024, as printed: theorems on Noisy-FedAvg and Noisy-FedProx, Table 3 with the bounds it rests on, and Table 4.

Table 4 sets nine earlier works beside theirs, and has orders only: O and Omega with all constants left out. What stands here is the expression
in the brackets, with the constant 1, so that its growth can be drawn. The sources are the works named, as the table quotes them; none was checked
against them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import STRICT, Array, Checks, Domain, OnError, Result, broadcast, choice
from hockeystick._checks.arguments import arrays
from hockeystick._checks.shown import shown
from hockeystick.federated.arguments import SCHEDULES, Schedule
from hockeystick.kernels import q_inv
from hockeystick.published.warning import warn_unsound

__all__ = [
    "StepSizeBounds",
    "accumulated_step_size_bounds",
    "compared_noise_std",
    "compared_rdp",
    "fedavg_data_sensitivity",
    "fedavg_gdp",
    "fedavg_model_sensitivity",
    "fedprox_data_sensitivity",
    "fedprox_gdp",
    "fedprox_model_sensitivity",
]

PAPER = "of Sun, Shen and Tao (2024)"
DOMAINS: dict[str, str | Domain] = {
    **dict.fromkeys(("b", "constant", "epsilon", "smoothness", "strong_convexity"), "positive"),
    "delta": "inside",
    "exposures": "count",
    "order": (lambda x: (x > 1) & (x < np.inf), "be finite and above 1"),
    "round_index": "count_or_zero",
}


def _checked(given: Mapping[str, Any], **domains: str) -> list[Array]:
    return broadcast(*arrays(given, **DOMAINS | domains).values())


def table_row(given: Mapping[str, Any], **domains: str) -> list[Array]:
    """Check the arguments of a row of Table 3; the rows of two schedules leave a constant open."""
    schedule, constant, open_rows = given["schedule"], given["constant"], ("cyclic", "continuous")
    if (constant is not None) != (choice("schedule", schedule, SCHEDULES) in open_rows):
        raise ValueError(
            f"constant must be given for the schedules {open_rows} and only there, not {shown(constant)} for schedule={shown(schedule)}"
        )
    return _checked({**given, "constant": 1.0 if constant is None else constant}, **domains)


FALSE = {  # schedule -> what is wrong
    "constant": "Theorem 12(a) of Sun, Shen and Tao (2024) is false: linear losses violate it from T = 2 on",
    "cyclic": "Theorem 12(b) of Sun, Shen and Tao (2024) is false: linear losses violate it, and it lacks the learning rate",
    "continuous": "Theorem 12(d) of Sun, Shen and Tao (2024) is false for z below learning_rate times the harmonic number H_K",
}


def _no_diameter(diameter: ArrayLike | None) -> None:
    if diameter is not None:
        raise ValueError(f"diameter must be None, not {shown(diameter)}: the printed theorem has no bounded domain")


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
    given = {**locals()}
    grid = Checks(num_threads, on_error)
    schedule = choice("schedule", schedule, SCHEDULES)
    cells = arrays(given, grid, diameter=None)
    _no_diameter(diameter)
    constant: ArrayLike | None = None
    for name, value, owner in (("c", c, "cyclic"), ("z", z, "continuous")):
        if (value is not None) != (schedule == owner):
            raise ValueError(
                f"{name} must be given for schedule={shown(owner)} and only there, not {shown(value)} for schedule={shown(schedule)}"
            )
        constant = constant if value is None else grid.positive(name, value)
    if schedule in FALSE:
        warn_unsound(FALSE[schedule], "hockeystick.federated")
    function = partial(core.published_fedavg_gdp, schedule)
    return grid.map(function, *cells.values(), np.asarray(1.0 if constant is None else constant))


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
    grid = Checks(num_threads, on_error)
    cells = arrays(locals(), grid, diameter=None)
    _no_diameter(diameter)
    grid.require(
        lambda a, b: a > b, "prox must be above smoothness", prox=cells["prox"], smoothness=cells["smoothness"]
    )
    grid.require(
        lambda e, a, b: e * (a - b) < 1,
        "learning_rate must be below 1/(prox - smoothness)",
        **{name: cells[name] for name in ("learning_rate", "prox", "smoothness")},
    )
    warn_unsound(
        "Theorem 15 of Sun, Shen and Tao (2024) is false: linear losses violate it from some T on",
        "hockeystick.federated",
    )
    return grid.map(core.published_fedprox_gdp, *cells.values())


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
    t, steps, bound, rate, open_constant = table_row(locals(), smoothness="non_negative")
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
    t, steps, clients, norm, rate, open_constant = table_row(locals())
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
    bound, pull = _checked(locals(), smoothness="non_negative")
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
    clients, norm, pull = _checked(locals())
    return (2.0 * norm / (clients * pull))[()]


class StepSizeBounds(NamedTuple):
    """The printed bounds of eta(K, t), which are false.

    Attributes
    ----------
    lower, upper : ndarray or float
        As printed.
    """

    lower: Result
    upper: Result


def accumulated_step_size_bounds(
    round_index: ArrayLike,
    *,
    local_steps: ArrayLike,
    smoothness: ArrayLike,
    learning_rate: ArrayLike,
    schedule: Literal["cyclic", "continuous"],
    constant: ArrayLike,
    b: ArrayLike,
) -> StepSizeBounds:
    r"""Return the bounds of eta(K, t) = (rho_t - 1)/L that the paper prints on the way to Table 3.

    Parameters
    ----------
    round_index : array_like
        The round t, from 0.
    local_steps, smoothness, learning_rate : array_like
        K, L and mu; L positive, mu L at most 1.
    schedule : {"cyclic", "continuous"}
        The two cases that have bounds.
    constant : array_like
        c, printed as 1 <= c < 1.543, or z > 1; positive.
    b : array_like
        Printed as .693 < b < 1; positive.

    Returns
    -------
    StepSizeBounds
        With lower and upper: neither is a bound.

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
    Cyclic: :math:`\frac{1}{cbL}K^{c\mu bL} \le \eta \le \frac{1}{cL}((1 + K)^{c\mu L} - 1)`. A sum is compared with an integral as if
    the powers grew; for exponents below 1 they fall, and both inequalities turn round. For c = 1 the upper bound is a *lower* one,
    since :math:`(1 + 1/j)^x \le 1 + x/j` for x <= 1. Counterexample for all printed constants: K = 1, mu L = .5, where L eta is
    .5, less than the lower bound 1/(cb) > .648; the upper one is at most .459. The printed range of c is right and not
    sharp: :math:`H_K/\ln(K + 1)` is at most 1/ln 2 = 1.4427, at K = 1. What holds: `hockeystick.federated.accumulated_step_size`.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import federated, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     lower, upper = published.accumulated_step_size_bounds(
    ...         0, local_steps=1, smoothness=1.0, learning_rate=0.5, schedule="cyclic", constant=1.4427, b=0.7
    ...     )
    >>> print(f"{lower:.3f} <= {federated.accumulated_step_size([0.5], smoothness=1.0):.3f} <= {upper:.3f}: twice false")
    0.990 <= 0.500 <= 0.450: twice false
    """
    choice("schedule", schedule, ("cyclic", "continuous"))
    t, steps, bound, rate, open_constant, scale = table_row(locals())
    STRICT.require(
        lambda e, a: e * a <= 1, "learning_rate must be at most 1/smoothness", learning_rate=rate, smoothness=bound
    )
    warn_unsound(f"the bounds of eta(K, t) {PAPER} are false", "hockeystick.federated.accumulated_step_size", "bound")
    growth, done = open_constant * rate * bound, t * steps
    if schedule == "cyclic":
        low, high = steps ** (growth * scale), (1.0 + steps) ** growth - 1.0
    else:
        low = ((done + steps) / (done + 1.0)) ** (growth * scale) - 1.0
        high = ((done + steps + 1.0) / (done + 1.0)) ** growth - 1.0
    unit = open_constant * bound
    return StepSizeBounds((low / (unit * scale))[()], (high / unit)[()])


NoiseWork = Literal["wei2020", "shi2021", "zhang2021", "noble2022", "cheng2022", "hu2023", "fukami2024", "sun2024"]
RenyiWork = Literal["zhang2022", "bastianello2024", "sun2024"]


def compared_noise_std(
    work: NoiseWork,
    *,
    epsilon: ArrayLike,
    delta: ArrayLike,
    rounds: ArrayLike,
    local_steps: ArrayLike = 1,
    num_clients: ArrayLike = 1,
    clip_norm: ArrayLike = 1.0,
    exposures: ArrayLike = 1,
) -> Result:
    r"""Return the noise that Table 4 gives a work for (epsilon, delta), up to a constant factor that the table leaves out.

    Parameters
    ----------
    work : {"wei2020", "shi2021", "zhang2021", "noble2022", "cheng2022", "hu2023", "fukami2024", "sun2024"}
        First author and year; "sun2024" is the paper's own row.
    epsilon, delta : array_like
        Budget: positive, and in (0, 1).
    rounds, local_steps, num_clients : array_like
        T, K and m, positive integers.
    clip_norm : array_like
        V, positive.
    exposures : array_like
        For "wei2020" only: what the row writes L, in that work the number of times that a client uploads; mL^2 at most T^2.

    Returns
    -------
    ndarray or float
        The row's expression: **no guarantee**.

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
    With V for clip_norm: wei2020 :math:`\frac{V}{\epsilon m}\sqrt{T^2 - mL^2}`, shi2021
    :math:`\frac{V}{\epsilon}T\sqrt{K \ln(1/\delta)}`, zhang2021 :math:`\frac{V}{\epsilon m}\sqrt{(T + mK)\ln(1/\delta)}`, noble2022
    :math:`\frac{V}{\epsilon\sqrt m}\sqrt{TK\ln(2T/\delta)}`, cheng2022 :math:`\frac{V}{\epsilon}\sqrt{T\ln(1/\delta)}`, hu2023
    :math:`\frac{V}{\epsilon}\sqrt{T(\epsilon + 2\ln(1/\delta))}`, fukami2024
    :math:`\frac{V}{\epsilon}(1 + \sqrt{1 + \epsilon})\sqrt{T\ln(e + \epsilon/\delta)}`, sun2024
    :math:`\frac{V}{\epsilon\sqrt m}\sqrt{\Phi^{-1}(\delta)^2 + 4\epsilon}\sqrt{2 - 1/T}`. The last follows from Theorem 12 (c), stage-wise
    steps, once the factor 2 learning_rate K is put back: as :math:`\delta(\epsilon) \le \Phi(\mu/2 - \epsilon/\mu)`,
    :math:`1/\mu = (\sqrt{q^2 + 2\epsilon} - q)/(2\epsilon)` suffices, q the quantile of delta, which is less than printed. For
    constant and cyclic steps it is false, as Theorem 12 is: linear losses need noise that grows as the square root of T.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     for work in ("noble2022", "sun2024"):
    ...         print(work, published.compared_noise_std(work, epsilon=1.0, delta=1e-5, rounds=[10, 1000]).round(3))
    noble2022 [ 12.045 138.253]
    sun2024 [6.493 6.66 ]
    """
    choice("work", work, get_args(NoiseWork))
    eps, small, total, steps, clients, norm, uploads = _checked(locals())
    if work == "wei2020":
        STRICT.require(
            lambda a, b, c: a * b**2 <= c**2, "rounds must be at least sqrt(num_clients) exposures",
            num_clients=clients, exposures=uploads, rounds=total,
        )  # fmt: skip
    warn_unsound(f"Table 4 {PAPER} has orders without their constants", "hockeystick.federated.fedavg_epsilon")
    odds = -np.log(small)
    growth: dict[str, Callable[[], Array]] = {
        "wei2020": lambda: np.sqrt(total**2 - clients * uploads**2) / clients,
        "shi2021": lambda: total * np.sqrt(steps * odds),
        "zhang2021": lambda: np.sqrt((total + clients * steps) * odds) / clients,
        "noble2022": lambda: np.sqrt(total * steps * (np.log(2.0 * total) + odds) / clients),
        "cheng2022": lambda: np.sqrt(total * odds),
        "hu2023": lambda: np.sqrt(total * (eps + 2.0 * odds)),
        "fukami2024": lambda: (1.0 + np.sqrt(1.0 + eps)) * np.sqrt(total * np.log(np.e + eps / small)),
        "sun2024": lambda: np.sqrt((q_inv(small) ** 2 + 4.0 * eps) * (2.0 - 1.0 / total) / clients),
    }
    return (norm / eps * growth[work]())[()]


def compared_rdp(
    work: RenyiWork,
    order: ArrayLike,
    *,
    noise_std: ArrayLike,
    rounds: ArrayLike,
    local_steps: ArrayLike = 1,
    num_clients: ArrayLike = 1,
    clip_norm: ArrayLike = 1.0,
    smoothness: ArrayLike = 1.0,
    strong_convexity: ArrayLike = 1.0,
) -> Result:
    r"""Return the Renyi divergence that Table 4 gives a work, up to a constant factor that the table leaves out.

    Parameters
    ----------
    work : {"zhang2022", "bastianello2024", "sun2024"}
        First author and year: Zhang and Tang, Bastianello et al., and the paper's own row.
    order : array_like
        zeta, above 1.
    noise_std, clip_norm : array_like
        sigma and V, positive.
    rounds, local_steps, num_clients : array_like
        T, K and m, positive integers.
    smoothness, strong_convexity : array_like
        For "bastianello2024" only: L and beta, positive.

    Returns
    -------
    ndarray or float
        The row's expression: **no guarantee**.

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
    zhang2022 :math:`\zeta V^2 TK/\sigma^2`, bastianello2024 :math:`\frac{\zeta LV^2}{\beta^2\sigma^2}(1 - e^{-\beta T})`, sun2024
    :math:`\frac{\zeta V^2}{m\sigma^2}(2 - 1/T)`, which Lemma 8 makes of Theorem 12 (c) without its factor
    :math:`2(\mathrm{learning\_rate}\,K)^2`.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(published.compared_rdp("sun2024", 2.0, noise_std=1.0, rounds=[1, 2, 1000]))
    [2.    3.    3.998]
    """
    choice("work", work, get_args(RenyiWork))
    zeta, sigma, total, steps, clients, norm, bound, convexity = _checked(locals())
    warn_unsound(f"Table 4 {PAPER} has orders without their constants", "hockeystick.federated.fedavg_gdp")
    growth: dict[str, Callable[[], Array]] = {
        "zhang2022": lambda: total * steps,
        "bastianello2024": lambda: bound / convexity**2 * -np.expm1(-convexity * total),
        "sun2024": lambda: (2.0 - 1.0 / total) / clients,
    }
    return (zeta * (norm / sigma) ** 2 * growth[work]())[()]
