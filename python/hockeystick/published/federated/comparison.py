"""Sun, Shen and Tao 2024: Table 4, which sets nine earlier works beside theirs.

The table has orders only: O and Omega with all constants left out. What stands here is the expression in the brackets, with the constant
1, so that its growth can be drawn. The sources are the works named, as the table quotes them; none was checked against them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, broadcast, choice
from hockeystick.kernels import q_inv
from hockeystick.published.federated.rows import PAPER
from hockeystick.published.warning import warn_unsound

__all__ = ["compared_noise_std", "compared_rdp"]

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
    eps, small, total, steps, clients, norm, uploads = broadcast(
        STRICT.positive("epsilon", epsilon),
        STRICT.inside("delta", delta),
        STRICT.count("rounds", rounds),
        STRICT.count("local_steps", local_steps),
        STRICT.count("num_clients", num_clients),
        STRICT.positive("clip_norm", clip_norm),
        STRICT.count("exposures", exposures),
    )
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
    zeta, sigma, total, steps, clients, norm, bound, convexity = broadcast(
        STRICT.within("order", order, (lambda x: (x > 1) & (x < np.inf), "be finite and above 1")),
        STRICT.positive("noise_std", noise_std),
        STRICT.count("rounds", rounds),
        STRICT.count("local_steps", local_steps),
        STRICT.count("num_clients", num_clients),
        STRICT.positive("clip_norm", clip_norm),
        STRICT.positive("smoothness", smoothness),
        STRICT.positive("strong_convexity", strong_convexity),
    )
    warn_unsound(f"Table 4 {PAPER} has orders without their constants", "hockeystick.federated.fedavg_gdp")
    growth: dict[str, Callable[[], Array]] = {
        "zhang2022": lambda: total * steps,
        "bastianello2024": lambda: bound / convexity**2 * -np.expm1(-convexity * total),
        "sun2024": lambda: (2.0 - 1.0 / total) / clients,
    }
    return (zeta * (norm / sigma) ** 2 * growth[work]())[()]
