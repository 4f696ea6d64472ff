"""The risk and the privacy of a trusted aggregator's last model, and of the one after a uniformly random round.

Asoodeh, Chen, Calmon and Ozgur 2021, Corollaries 1 and 2 with what their statements miss, and Section IV, without strong convexity.
The noise has d coordinates; the exponent of Corollary 1 is 2 rho sqrt(m) lambda j/sigma; steps of 1/(lambda t) exceed 2/beta
in the first rounds, where they expand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import LARGEST_COUNT, STRICT, Array, NumpyChecks, OnError, Result
from hockeystick._hidden_states.contraction import contraction_sum
from hockeystick._numeric.rounding import FUNCTIONS
from hockeystick.isrl import Rate
from hockeystick.isrl.domains import checked
from hockeystick.isrl.rates import rate_of
from hockeystick.kernels import theta

__all__ = [
    "random_stop_excess_risk_convex",
    "random_stop_excess_risk_rate",
    "trusted_aggregator_delta",
    "trusted_aggregator_excess_risk",
]

MAX_ROUNDS = 10**7  # their coefficients are written out


def whole_rounds(users: Array, batch: Array) -> Array:
    """Return the number of rounds n // m, where both counts are legal."""
    return np.floor(users / np.where((batch >= 1) & (users <= LARGEST_COUNT), batch, 1.0))


def trusted_aggregator_excess_risk(
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
    gradient_bound: ArrayLike,
    gradient_std: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a bound on the excess risk of the last model of a trusted aggregator, for steps of 1/(lambda t).

    Parameters
    ----------
    num_users, batch_size : array_like
        Users n and users per round m: T = n // m rounds.
    dimension : array_like
        Number of coordinates d.
    noise_std : array_like
        Standard deviation sigma per coordinate of the noise that each user adds to the gradient, >= 0.
    gradient_bound : array_like
        Largest norm D of the risk's gradient, >= 0.
    gradient_std : array_like
        Root mean square distance G of a user's gradient to it, >= 0; D^2 + G^2/m is at most L^2 for L-Lipschitz losses.
    smoothness, strong_convexity : array_like
        beta and lambda of the risk, positive, lambda at most beta.
    num_threads : int, optional
        Accepted for symmetry; the formula uses one thread.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        :math:`2\beta(D^2 + (G^2 + d\sigma^2)/m)/(\lambda^2T)`, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Corollary 1, from Rakhlin, Shamir and Sridharan 2012 (Lemma 1): users are drawn from one distribution, and the risk's
    gradient vanishes at its minimum over the ball. Printed without d
    (`hockeystick.published.trusted_aggregator_excess_risk`).

    Examples
    --------
    >>> from hockeystick import utility
    >>> risk = utility.trusted_aggregator_excess_risk(
    ...     num_users=10_000,
    ...     batch_size=100,
    ...     dimension=10,
    ...     noise_std=1.0,
    ...     gradient_bound=1.0,
    ...     gradient_std=0.0,
    ...     smoothness=1.0,
    ...     strong_convexity=0.5,
    ... )
    >>> print(f"{risk:.4f}")
    0.0880
    """
    grid = NumpyChecks(num_threads, on_error)
    users, batch, dimension, noise, bound, spread, smoothness, convexity = checked(
        locals(), grid, strong_convexity="positive"
    )
    with np.errstate(all="ignore"):  # cells outside the domain become NaN
        moment = bound**2 + (spread**2 + dimension * noise**2) / batch
        risk = 2.0 * smoothness * moment / (convexity**2 * whole_rounds(users, batch))
    return grid.finish(risk)


def trusted_aggregator_delta(
    epsilon: ArrayLike,
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    radius: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified delta of a trusted aggregator's last model, for steps of 1/(lambda t).

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0.
    num_users, batch_size : array_like
        Users n and users per round m: T = n // m rounds, at most 10^7; each user takes part in at most one.
    noise_std : array_like
        Standard deviation sigma per coordinate of the noise that each user adds to the gradient, positive.
    lipschitz : array_like
        Largest norm L of a user's gradient, positive.
    radius : array_like
        Radius rho of the ball that the model is projected onto after each round, positive.
    smoothness, strong_convexity : array_like
        beta and lambda of every user's loss, positive, lambda at most beta.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of delta for one user replaced, of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem 2 with :math:`\eta_t = 1/(\lambda t)`: :math:`\frac mn \theta_\epsilon(\frac{2L}{\sqrt m\sigma})
    \sum_t\prod_{j>t}\theta_\epsilon(d_j\sqrt m\lambda j/\sigma)`. The diameter of the step's image is :math:`d_j = 2\rho`, as in Corollary 1,
    where :math:`\eta_j \le 2/\beta`; before, it is the smaller of :math:`2\rho(\eta_j\beta - 1)` and :math:`2(\rho + \eta_jL)`. The
    corollary prints :math:`\sqrt{\lambda mj}` (`hockeystick.published.trusted_aggregator_delta`).

    Examples
    --------
    >>> from hockeystick import format_upper, utility
    >>> delta = utility.trusted_aggregator_delta(
    ...     1.0,
    ...     num_users=1000,
    ...     batch_size=100,
    ...     noise_std=1.0,
    ...     lipschitz=1.0,
    ...     radius=1.0,
    ...     smoothness=1.0,
    ...     strong_convexity=0.5,
    ... )
    >>> print(format_upper(delta, ".3g"))
    1.76e-08
    """
    grid = NumpyChecks(num_threads, on_error)
    positive = dict.fromkeys(("noise_std", "strong_convexity"), "positive")
    cells = np.stack(checked(locals(), grid, epsilon="non_negative_or_infinite", **positive))
    rounds = whole_rounds(*cells[1:3])
    grid.require(lambda t: t <= MAX_ROUNDS, f"num_users // batch_size must be at most {MAX_ROUNDS}", rounds=rounds)
    good = np.broadcast_to(grid.inside_domain, rounds.shape).ravel()
    table = cells.reshape(len(cells), -1).T
    values = [_delta(cell, grid.threads) if legal else np.nan for cell, legal in zip(table, good, strict=True)]
    return grid.finish(np.array(values, dtype=np.float64).reshape(rounds.shape))


def _delta(cell: Array, num_threads: int) -> float:
    eps, users, batch, noise, lipschitz, radius, smoothness, convexity = cell
    rounds = np.floor(users / batch)
    step = 1.0 / (convexity * np.arange(1.0, rounds + 1.0))
    image = np.minimum(2.0 * radius * np.maximum(1.0, step * smoothness - 1.0), 2.0 * (radius + step * lipschitz))
    coefficients = theta(eps, image * np.sqrt(batch) / (step * noise))
    first = theta(eps, 2.0 * lipschitz / (np.sqrt(batch) * noise))
    return float(contraction_sum(np.full(int(rounds), first), coefficients, batch / users, num_threads=num_threads))


def random_stop_excess_risk_rate(
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    smoothness: ArrayLike,
    radius: ArrayLike,
    gradient_bound: ArrayLike,
    strong_convexity: ArrayLike,
) -> Rate:
    r"""Return the rate of the excess risk of a trusted aggregator that stops after a random round, on any users' data.

    Parameters
    ----------
    num_users, batch_size : array_like
        Users n and users per round m: T = n // m rounds.
    dimension : array_like
        Number of coordinates d.
    noise_std : array_like
        Standard deviation sigma per coordinate of the noise that each user adds to the gradient, >= 0.
    lipschitz, smoothness : array_like
        L and beta of the scalar loss l in f(W) = l(<W, x>) + r(W), |x| <= 1; positive.
    radius : array_like
        Radius of the ball of models, positive.
    gradient_bound : array_like
        Largest norm G of a user's gradient, >= 0.
    strong_convexity : array_like
        lambda, positive.

    Returns
    -------
    Rate
        :math:`((L + \beta\rho)^2 + G^2)\ln(T)/(\lambda T)`, whose constant is not known, and the noise's
        :math:`d\sigma^2\sum_{t\le T}1/t/(2\lambda mT)`, rounded up.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Corollary 2 with steps of 1/(lambda t), from Shamir 2016. The noise's term is printed without d, and without the factor 1/2: a
    step adds half of its length times the expected squared norm of the noise. So this term is d/2 times the printed one.
    `federated.trusted_aggregator_random_stop` has its delta.

    Examples
    --------
    >>> from hockeystick import utility
    >>> rate = utility.random_stop_excess_risk_rate(
    ...     num_users=10_000,
    ...     batch_size=100,
    ...     dimension=10,
    ...     noise_std=1.0,
    ...     lipschitz=1.0,
    ...     smoothness=1.0,
    ...     radius=1.0,
    ...     gradient_bound=1.0,
    ...     strong_convexity=0.5,
    ... )
    >>> print(f"{rate.statistical:.4f} {rate.private:.6f}")
    0.4605 0.005187
    """
    others = {name: value for name, value in {**locals()}.items() if name != "strong_convexity"}
    from scipy.special import digamma  # noqa: PLC0415 - takes longer to import than everything else here

    users, batch, dimension, noise, lipschitz, smoothness, radius, bound = checked(others)
    # The strong convexity is that of f and the smoothness that of l, so that it may be the larger one: `checked` would refuse that.
    convexity = STRICT.positive("strong_convexity", strong_convexity)
    rounds = whole_rounds(users, batch)
    statistical = ((lipschitz + smoothness * radius) ** 2 + bound**2) * np.log(rounds) / (convexity * rounds)
    harmonic = digamma(rounds + 1.0) + np.euler_gamma
    private = dimension * noise**2 * harmonic / (2.0 * convexity * batch * rounds) * (1.0 + FUNCTIONS)
    return rate_of(statistical, private)


def random_stop_excess_risk_convex(
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
    gradient_bound: ArrayLike,
    radius: ArrayLike,
    learning_rate: ArrayLike | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a bound on the excess risk of a trusted aggregator that stops after a random round, for convex losses.

    Parameters
    ----------
    num_users, batch_size : array_like
        Users n and users per round m: T = n // m rounds.
    dimension : array_like
        Number of coordinates d.
    noise_std : array_like
        Standard deviation sigma per coordinate of the noise that each user adds to the gradient, >= 0.
    gradient_bound : array_like
        Largest norm G of a user's gradient, positive.
    radius : array_like
        Radius rho of the ball of models, positive.
    learning_rate : array_like, optional
        The step eta of all rounds, positive; by default the one for which the bound is smallest.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        :math:`(2\rho)^2/(2\eta T) + \eta(G^2 + d\sigma^2/m)/2`, of the broadcast shape; by default
        :math:`2\rho\sqrt{(G^2 + d\sigma^2/m)/T}`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The rate 1/sqrt(T) that the paper states, with its constant: Shalev-Shwartz and Ben-David 2014, Theorem 14.8, whose proof
    follows. Users are drawn from one distribution, so that a round's gradient is that of the risk F on average. A step moves the model no
    further from w* than :math:`|W_t - w^*|^2 - 2\eta\langle\nabla F(W_t), W_t - w^*\rangle + \eta^2(G^2 + d\sigma^2/m)`, on average; the sum over
    the rounds, from the first released model at most 2 rho away, bounds the mean of F(W_1), ..., F(W_T), which is the risk after a
    uniformly random round.

    Examples
    --------
    >>> from hockeystick import utility
    >>> risk = utility.random_stop_excess_risk_convex(
    ...     num_users=10_000, batch_size=100, dimension=10, noise_std=1.0, gradient_bound=1.0, radius=1.0
    ... )
    >>> print(f"{risk:.4f}")
    0.2098
    """
    grid = NumpyChecks(1, on_error)
    given = {name: value for name, value in {**locals()}.items() if name != "learning_rate"}
    users, batch, dimension, noise, bound, radius = checked(given, grid, gradient_bound="positive")
    rounds, width = whole_rounds(users, batch), 2.0 * radius
    with np.errstate(all="ignore"):  # cells outside the domain become NaN
        moment = bound**2 + dimension * noise**2 / batch
        best = width / np.sqrt(moment * rounds)
        step = best if learning_rate is None else grid.positive("learning_rate", learning_rate)
        return grid.finish(width**2 / (2.0 * step * rounds) + step * moment / 2.0)
