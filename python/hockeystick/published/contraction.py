"""Asoodeh, Diaz and Calmon 2020, and Asoodeh, Chen, Calmon and Ozgur 2021, as printed: projected noisy SGD and the trusted aggregator."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import NON_NEGATIVE_OR_INFINITE, STRICT, Array, Result, broadcast
from hockeystick._checks.arguments import arrays
from hockeystick._hidden_states.contraction import contraction_sum
from hockeystick.isrl import Rate
from hockeystick.isrl.domains import scalars
from hockeystick.kernels import log_theta, theta
from hockeystick.last_iterate.arguments import check_index, check_step
from hockeystick.published.warning import warn_unsound

__all__ = [
    "pnsgd_gaussian_random_stop",
    "pnsgd_rdp",
    "random_stop_excess_risk_rate",
    "trusted_aggregator",
    "trusted_aggregator_delta",
    "trusted_aggregator_excess_risk",
]


def _factor(eta: Array, beta: Array, rho: Array) -> Array:
    """Check a step of this length, smoothness and strong convexity; return M of Equation 14."""
    check_step(STRICT, eta, beta, rho)
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = np.where(rho > 0, 1.0 - 2.0 * eta * rho / (1.0 + rho / beta), 1.0)
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)))


def pnsgd_rdp(
    epsilon: ArrayLike,
    *,
    index: ArrayLike,
    num_records: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the delta of Proposition 1 as printed, also where epsilon is at most kappa.

    Parameters
    ----------
    epsilon, index, num_records, learning_rate, noise_std, lipschitz, smoothness, strong_convexity : array_like
        As in `hockeystick.last_iterate.pnsgd_rdp`.

    Returns
    -------
    ndarray or float
        :math:`\exp(-(\epsilon - \kappa)^2/(4\kappa))`: an upper bound for epsilon > kappa, **none below**.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        If some epsilon is at most kappa.

    Notes
    -----
    The conversion from Renyi divergences takes the order (epsilon + kappa)/(2 kappa), which is above 1 only for epsilon > kappa.
    Counterexample: linear losses with L = 2 sigma, the last record: kappa = 8. At epsilon = 1e-4 the formula is .135, and the two normal laws,
    four deviations apart, have delta .954. `hockeystick.last_iterate.pnsgd_rdp` is 1 there.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import format_upper, last_iterate, published
    >>> cell = dict(index=1, num_records=1, learning_rate=1.0, noise_std=0.5, lipschitz=1.0, smoothness=0.0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.pnsgd_rdp(1e-4, **cell)
    >>> exact = last_iterate.pnsgd_gaussian(1e-4, diameter=1.0, **cell)  # one step: plain noise
    >>> print(f"printed {printed:.3f}, exact {format_upper(exact, '.3f')}")
    printed 0.135, exact 0.955
    """
    epsilon, index, num_records, eta, noise, bound, beta, rho = arrays(locals(), epsilon="non_negative").values()
    m = _factor(eta, beta, rho)
    check_index(STRICT, index, num_records)
    epsilon, later, m, kappa = broadcast(epsilon, num_records - index, m, 2.0 * (bound / noise) ** 2)
    kappa = np.where(later > 0, kappa / np.maximum(later, 1.0) * m ** (later + 1.0), kappa)
    if np.any(epsilon <= kappa):
        what = "Proposition 1 of Asoodeh, Diaz and Calmon (2020) says nothing for epsilon at most kappa"
        warn_unsound(what, "hockeystick.last_iterate.pnsgd_rdp")
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = np.where(kappa > 0, np.exp(-((epsilon - kappa) ** 2) / (4.0 * kappa)), 0.0)
    return delta[()]


def pnsgd_gaussian_random_stop(
    epsilon: ArrayLike,
    *,
    num_records: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
    diameter: ArrayLike,
) -> Result:
    r"""Return the delta of Theorem 5 as printed: the whole geometric series in place of its first n terms.

    Parameters
    ----------
    epsilon, num_records, learning_rate, noise_std, lipschitz, smoothness, strong_convexity, diameter : array_like
        As in `hockeystick.last_iterate.pnsgd_gaussian_random_stop`.

    Returns
    -------
    ndarray or float
        :math:`\theta_\epsilon(2L/\sigma)/(n(1 - \theta_\epsilon(MD/(\eta\sigma))))`: an upper bound, loose, which can exceed 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Sound: the series is above its first n terms, which `hockeystick.last_iterate.pnsgd_gaussian_random_stop` adds up. Infinite
    where the coefficient is 1 in doubles.

    Examples
    --------
    >>> from hockeystick import format_upper, last_iterate, published
    >>> cell = dict(num_records=40, learning_rate=0.1, noise_std=1.0, lipschitz=1.0, smoothness=0.5, diameter=1.0)
    >>> printed = published.pnsgd_gaussian_random_stop(0.0, **cell)
    >>> print(f"{printed:.2f}", format_upper(last_iterate.pnsgd_gaussian_random_stop(0.0, **cell), ".4f"))
    29770.00 0.6827
    """
    epsilon, num_records, eta, noise, bound, beta, rho, width = arrays(locals()).values()
    m = _factor(eta, beta, rho)
    with np.errstate(divide="ignore"):
        factor = 1.0 / (1.0 - np.asarray(theta(epsilon, m * width / (eta * noise))))
        printed: Result = theta(epsilon, 2.0 * bound / noise) * factor / num_records
    return printed


PAPER = "Corollary 1 of Asoodeh, Chen, Calmon and Ozgur (2021)"
USERS = (("batch_size", "num_users"),)


def trusted_aggregator_excess_risk(
    *,
    num_users: int,
    batch_size: int,
    noise_std: float,
    gradient_bound: float,
    gradient_std: float,
    smoothness: float,
    strong_convexity: float,
) -> float:
    r"""Return the excess risk of Corollary 1 as printed, without the noise's dimensions.

    Parameters
    ----------
    num_users, batch_size, noise_std, gradient_bound, gradient_std, smoothness, strong_convexity : float
        As in `hockeystick.utility.trusted_aggregator_excess_risk`; numbers.

    Returns
    -------
    float
        :math:`2\beta(mD^2 + G^2 + \sigma^2)/(\lambda^2n)`.

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
    Counterexample: SGD on |w|^2/2 in the unit ball of 100 dimensions with unit noise and steps 1/t: its risk tends to 50/T,
    the bound is 4/T.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     risk = published.trusted_aggregator_excess_risk(
    ...         num_users=1000,
    ...         batch_size=1,
    ...         noise_std=1.0,
    ...         gradient_bound=1.0,
    ...         gradient_std=0.0,
    ...         smoothness=1.0,
    ...         strong_convexity=1.0,
    ...     )
    >>> print(f"{risk:.3f}")
    0.004
    """
    users, batch, noise, bound, spread, beta, convexity = scalars(locals(), USERS, strong_convexity="positive")
    warn_unsound(
        f"the noise of {PAPER} lacks its dimensions", "hockeystick.utility.trusted_aggregator_excess_risk", "bound"
    )
    return float(2.0 * beta * (batch * bound**2 + spread**2 + noise**2) / (convexity**2 * users))


def trusted_aggregator_delta(
    epsilon: float,
    *,
    num_users: int,
    batch_size: int,
    noise_std: float,
    lipschitz: float,
    radius: float,
    smoothness: float,
    strong_convexity: float,
) -> float:
    r"""Return the delta of Corollary 1 as printed, with sqrt(lambda m j) where sqrt(m) lambda j follows.

    Parameters
    ----------
    epsilon, num_users, batch_size, noise_std, lipschitz, radius, smoothness, strong_convexity : float
        As in `hockeystick.utility.trusted_aggregator_delta`; numbers. The smoothness does not enter.

    Returns
    -------
    float
        :math:`\frac mn\theta_\epsilon(\frac{2L}{\sqrt m\sigma})\sum_t\prod_{j>t}\theta_\epsilon(2\rho\sqrt{\lambda
        mj}/\sigma)`: **no upper bound**.

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
    Theorem 2, of which it is to be a case, gives more as soon as lambda j exceeds 1. It also needs 1/lambda <= 2/beta, which
    is not stated.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import format_upper, published, utility
    >>> cell = dict(
    ...     num_users=100, batch_size=1, noise_std=5.0, lipschitz=1.0, radius=1.0, smoothness=1.0, strong_convexity=0.5
    ... )
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.trusted_aggregator_delta(0.1, **cell)
    >>> print(f"printed {printed:.4f}, by Theorem 2 {format_upper(utility.trusted_aggregator_delta(0.1, **cell), '.4f')}")
    printed 0.0068, by Theorem 2 0.1025
    """
    positive = dict.fromkeys(("noise_std", "strong_convexity"), "positive")
    epsilon, users, batch, noise, clip, ball, _, convexity = scalars(
        locals(), USERS, epsilon=NON_NEGATIVE_OR_INFINITE, **positive
    )
    warn_unsound(f"the exponent of {PAPER} is not Theorem 2's", "hockeystick.utility.trusted_aggregator_delta")
    rounds = users // batch
    later = theta(epsilon, 2.0 * ball * np.sqrt(convexity * batch * np.arange(1.0, rounds + 1.0)) / noise)
    first = float(theta(epsilon, 2.0 * clip / (np.sqrt(batch) * noise)))
    return float(contraction_sum(np.full(rounds, first), later, batch / users))


def trusted_aggregator(
    epsilon: float,
    *,
    num_users: int,
    batch_size: int,
    learning_rate: float,
    noise_std: float,
    lipschitz: float,
    radius: float,
) -> float:
    r"""Return the delta of Theorem 2's closed form as printed, also with a number of rounds n/m that is not whole.

    Parameters
    ----------
    epsilon, num_users, batch_size, learning_rate, noise_std, lipschitz, radius : float
        As in `hockeystick.federated.trusted_aggregator` with ``loss="convex"``; numbers.

    Returns
    -------
    float
        :math:`\frac mn\theta_\epsilon(\frac{2L}{\sqrt m\sigma})(1 - \eta^{n/m})/(1 - \eta)` with
        :math:`\eta = \theta_\epsilon(\frac{2\rho\sqrt m}{\eta\sigma})`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        If batch_size does not divide num_users.

    Notes
    -----
    Where m divides n it is `hockeystick.federated.trusted_aggregator`. Otherwise it bounds the training of floor(n/m) rounds that leaves
    users out, but not the one that takes all of them, since the noise on a smaller last batch hides less. Counterexample: linear losses,
    a batch of 100 users and one of 1, L = 3 sigma, a wide ball. At epsilon = 3 the formula is 1.4e-7, and the two mixtures of normal laws have
    delta 1.0e-3. `hockeystick.federated.trusted_aggregator_batches` bounds it.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import federated, format_upper, published
    >>> cell = dict(learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.trusted_aggregator(0.0, num_users=100, batch_size=30, **cell)
    >>> whole = federated.trusted_aggregator(0.0, num_users=100, batch_size=30, loss="convex", **cell)
    >>> print(f"printed {printed:.7f}, three rounds {format_upper(whole, '.7f')}")
    printed 0.0968762, three rounds 0.0871886
    """
    epsilon, users, batch, step, noise, clip, ball = scalars(
        locals(), USERS, epsilon=NON_NEGATIVE_OR_INFINITE, noise_std="positive"
    )
    if users % batch:
        what = "Theorem 2 of Asoodeh, Chen, Calmon and Ozgur (2021) needs whole batches"
        warn_unsound(what, "hockeystick.federated.trusted_aggregator_batches")
    root = np.sqrt(batch)
    log_later = float(log_theta(epsilon, 2.0 * ball * root / (step * noise)))
    rounds = users / batch
    total = np.expm1(rounds * log_later) / np.expm1(log_later) if log_later < 0 else rounds
    return float(theta(epsilon, 2.0 * clip / (root * noise)) * total / rounds)


def random_stop_excess_risk_rate(
    *,
    num_users: int,
    batch_size: int,
    noise_std: ArrayLike,
    lipschitz: float,
    smoothness: float,
    radius: float,
    gradient_bound: float,
    strong_convexity: float,
) -> Rate:
    r"""Return the rate of Corollary 2 as printed, whose noise term has neither the dimension nor the factor 1/2.

    Parameters
    ----------
    num_users, batch_size, lipschitz, smoothness, radius, gradient_bound, strong_convexity : float
        As in `hockeystick.utility.random_stop_excess_risk_rate`; numbers. The paper writes mu B for smoothness times radius.
    noise_std : array_like
        sigma_t: a number, or one of each of the T = num_users // batch_size rounds; >= 0.

    Returns
    -------
    Rate
        :math:`((L + \beta\rho)^2 + G^2)\ln(T)/(\lambda T)` and :math:`\sum_t\eta_t\sigma_t^2/(mT)` with :math:`\eta_t = 1/(\lambda t)`.

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
    A step adds half of its length times the expected squared norm of the noise, which is :math:`d\sigma_t^2/m`: the term of noise is
    d/2 times the printed one, so that it is too small from three dimensions on. `hockeystick.utility.random_stop_excess_risk_rate` has it.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published, utility
    >>> cell = dict(num_users=10_000, batch_size=100, noise_std=1.0, lipschitz=1.0, smoothness=1.0, radius=1.0)
    >>> cell |= dict(gradient_bound=1.0, strong_convexity=0.5)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.random_stop_excess_risk_rate(**cell)
    >>> print(f"{printed.private:.6f} {utility.random_stop_excess_risk_rate(dimension=10, **cell).private:.6f}")
    0.001037 0.005187
    """
    given = {name: value for name, value in {**locals()}.items() if name != "noise_std"}
    users, batch, clip, beta, ball, bound, convexity = scalars(given, USERS, strong_convexity="positive")
    rounds = users // batch
    noise = STRICT.non_negative("noise_std", noise_std)
    if noise.ndim and noise.shape != (rounds,):
        raise ValueError(
            f"noise_std must be a number or of shape ({rounds},), one for each round, not of shape {noise.shape}"
        )
    what = "the noise of Corollary 2 of Asoodeh, Chen, Calmon and Ozgur (2021) lacks its dimensions and a factor 1/2"
    warn_unsound(what, "hockeystick.utility.random_stop_excess_risk_rate", "bound")
    statistical = ((clip + beta * ball) ** 2 + bound**2) * np.log(rounds) / (convexity * rounds)
    steps = 1.0 / (convexity * np.arange(1.0, rounds + 1.0))
    return Rate(float(statistical), float((steps * noise**2).sum() / (batch * rounds)), 0.0)
