"""Federated learning with a trusted aggregator that releases the last model: users in one batch, batches of any sizes, and batches that are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import LARGEST_COUNT, STRICT, Array, Checks, OnError, Result, broadcast, choice, vector
from hockeystick._checks.arguments import arrays
from hockeystick._hidden_states.best import Best, sampled_bounds, smallest
from hockeystick._hidden_states.contraction import contraction_sum
from hockeystick.federated.arguments import LOSSES, Loss

T = TypeVar("T")
PER_ROUND = ("learning_rate", "noise_std", "lipschitz", "radius")  # what may be a schedule
CONVEXITY = {
    "smoothness": None,
    "strong_convexity": None,
}  # what the kind of loss asks of them is checked after the others


class AggregatorChecks(Checks):
    """The arguments of the trusted-aggregator functions, whose arrays have the round as their last axis."""

    def __init__(self, loss: Loss, num_threads: int | None, on_error: OnError) -> None:
        super().__init__(num_threads, on_error)
        self.convex = choice("loss", loss, LOSSES) == "convex"
        self.rounds: dict[str, Array] = {}

    def aggregation(self, arguments: Mapping[str, Any]) -> tuple[Array, ...]:
        """Check the arguments in their order; return those of a cell and keep those of the rounds."""
        known = arrays(arguments, self, **CONVEXITY)
        self.rounds = {name: np.atleast_1d(known.pop(name)) for name in PER_ROUND}
        smoothness = 0.0 if arguments["smoothness"] is None else arguments["smoothness"]
        self.rounds["smoothness"] = np.atleast_1d(self.non_negative("smoothness", smoothness))
        self.contracting_steps(self.rounds["learning_rate"], self.rounds["smoothness"])
        return tuple(known.values())

    def contracting_steps(self, rate: Array, smoothness: Array) -> None:
        """Check the step size where the smoothness is known: a convex loss's step must not expand."""
        if self.convex:
            rule = "learning_rate must be at most 2/smoothness for a convex loss"
            self.require(lambda eta, b: eta * b <= 2, rule, learning_rate=rate, smoothness=smoothness)

    def convexity(self, value: ArrayLike, smoothness: Array) -> Array:
        """Check the strong convexity, which losses have that are convex and smooth."""
        strong = self.non_negative("strong_convexity", value)
        self.require(
            lambda r, b: (r == 0) | ((r <= b) & self.convex),
            "strong_convexity must be 0, or at most the smoothness of a convex loss",
            strong_convexity=strong,
            smoothness=smoothness,
        )
        return strong

    def whole_batches(self, num_users: Array, batch_size: Array) -> None:
        """Check that there is a first batch."""
        rule = "batch_size must be at most num_users"
        self.require(lambda m, n: m <= n, rule, batch_size=batch_size, num_users=num_users)

    def length(self, num_users: Array, batch_size: Array) -> int:
        """Return the length of the schedules, 1 where all are constant."""
        self.whole_batches(num_users, batch_size)
        # Cells with other counts are NaN, whatever their schedules.
        legal = (num_users >= batch_size) & (batch_size >= 1) & (num_users <= LARGEST_COUNT)
        rounds = np.unique(num_users[legal] // batch_size[legal])
        for name, array in self.rounds.items():
            if array.shape[-1] != 1 and np.any(rounds != array.shape[-1]):
                wanted = " and ".join(f"{count:.0f}" for count in rounds[:3])
                raise ValueError(
                    f"the last axis of {name} is the round: its length must be 1 or num_users // batch_size = {wanted}, "
                    f"not {array.shape[-1]}; a grid of constants has the shape (..., 1)"
                )
        longest: int = max(array.shape[-1] for array in self.rounds.values())
        return longest

    def evaluate(self, function: Callable[..., T], *cells: Array) -> T:
        """Broadcast cells against the leading axes of the rounds, and call a function of the core."""
        length = self.length(*np.broadcast_arrays(*cells[1:3]))
        wide = broadcast(*cells, *(r[..., 0] for r in self.rounds.values()))
        shape = wide[0].shape
        rows = [np.broadcast_to(r, (*shape, length)) for r in self.rounds.values()]
        return function(wide[: len(cells)], rows, self.convex, self.threads)


def trusted_aggregator(
    epsilon: ArrayLike,
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    radius: ArrayLike,
    loss: Loss,
    smoothness: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified delta of federated learning with a trusted aggregator that releases the last model.

    Users are split at random into T = num_users // batch_size batches, one a round, and each takes part at most once.
    The aggregator averages the batch's noisy updates and projects the model onto a ball.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0; shape (...).
    num_users : array_like
        Number of users, a positive integer; shape (...).
    batch_size : array_like
        Users per round, an integer in [1, num_users]; shape (...).
    learning_rate : array_like
        Step size, positive: a constant, or shape (..., T) with one value a round, or (..., 1) for a grid of constants.
    noise_std : array_like
        Standard deviation of the noise that each user adds to the gradient, positive; shape as `learning_rate`.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive; shape as `learning_rate`.
    radius : array_like
        Radius of the ball that the model is projected onto after each round, positive; shape as `learning_rate`. The initial
        model lies in the first ball.
    loss : {"convex", "nonconvex"}
        "convex" assumes convex, smooth losses and learning_rate <= 2/smoothness, so that a gradient step does not expand;
        "nonconvex" assumes neither. Clipped gradients are "nonconvex".
    smoothness : array_like, optional
        Lipschitz constant of the gradient, >= 0; shape as `learning_rate`. Where it is given and the loss is convex, the step
        size is checked; where it is not, learning_rate <= 2/smoothness is your assumption.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or a schedule has not one value a round.

    Notes
    -----
    Theorem 2: :math:`\frac{m}{n} \sum_t \theta_\epsilon\big(\frac{2L}{\sqrt m \sigma_t}\big)
    \prod_{j>t} \theta_\epsilon\big(\frac{d_j \sqrt m}{\eta_j \sigma_j}\big)` with :math:`d_j = 2\rho_{j-1}` for convex losses
    and :math:`2(\rho_{j-1} + \eta_j L_j)` otherwise: round j starts from the ball of the round before (the paper has one radius).
    False if users take part repeatedly, if intermediate models are seen, or if noise is shared between rounds.

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> deltas = federated.trusted_aggregator(
    ...     [0.5, 1.0], num_users=100, batch_size=10, learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0, loss="convex"
    ... )
    >>> print(*(format_upper(delta, ".6f") for delta in deltas))
    0.030799 0.002022
    """
    grid = AggregatorChecks(loss, num_threads, on_error)
    cells = grid.aggregation(locals())
    return grid.finish(grid.evaluate(core.trusted_aggregator, *cells, np.asarray(1.0)))


def trusted_aggregator_random_stop(
    epsilon: ArrayLike,
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    radius: ArrayLike,
    loss: Loss,
    smoothness: ArrayLike | None = None,
    suffix: ArrayLike = 1.0,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return a certified delta of `trusted_aggregator` stopped after a uniformly random round.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0; shape (...).
    num_users : array_like
        Number of users, a positive integer; shape (...).
    batch_size : array_like
        Users per round, an integer in [1, num_users]; shape (...).
    learning_rate : array_like
        Step size, positive: a constant, or shape (..., T) with one value a round, or (..., 1) for a grid of constants.
    noise_std : array_like
        Standard deviation of the noise that each user adds to the gradient, positive; shape as `learning_rate`.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive; shape as `learning_rate`.
    radius : array_like
        Radius of the ball that the model is projected onto after each round, positive; shape as `learning_rate`. The initial
        model lies in the first ball.
    loss : {"convex", "nonconvex"}
        As in `trusted_aggregator`.
    smoothness : array_like, optional
        As in `trusted_aggregator`.
    suffix : array_like
        The stop is uniform over the last ceil(suffix T) rounds; in (0, 1], shape (...). 1 is Corollary 3.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or a schedule has not one value a round.

    Notes
    -----
    Corollary 3: the mean over the stopping round of Theorem 2's sum up to that round, times m/n (printed as 1/T, which is
    the same where m divides n).

    Examples
    --------
    >>> from hockeystick import federated
    >>> delta = federated.trusted_aggregator_random_stop(
    ...     1.0, num_users=100, batch_size=10, learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0, loss="convex"
    ... )
    >>> print(f"{delta:.6f}")
    0.001112
    """
    grid = AggregatorChecks(loss, num_threads, on_error)
    cells = grid.aggregation(locals())
    suffix = grid.fraction("suffix", suffix)
    return grid.finish(grid.evaluate(core.trusted_aggregator_random_stop, *cells, suffix))


def trusted_aggregator_batches(
    epsilon: ArrayLike,
    *,
    batch_sizes: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    radius: float,
    loss: Loss,
    smoothness: float | None = None,
    num_threads: int | None = None,
) -> Result:
    r"""Return a certified delta of `trusted_aggregator` for batches of any sizes, into which all users are split at random.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0; shape (...).
    batch_sizes : array_like of shape (T,)
        Users of each round, positive integers; every user is in exactly one batch.
    learning_rate, noise_std, lipschitz : array_like
        As in `trusted_aggregator`; a number, or one of each round.
    radius : float
        Radius of the ball that the model is projected onto after each round, positive. The initial model lies in it.
    loss : {"convex", "nonconvex"}
        As in `trusted_aggregator`.
    smoothness : float, optional
        As in `trusted_aggregator`.
    num_threads : int, optional
        Threads to use; all cores by default.

    Returns
    -------
    ndarray or float
        Upper bound of delta, up to rounding (1e-12 relative in log delta), of shape (...).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or a schedule has not one value a round.

    Notes
    -----
    Theorem 2's proof for batches of :math:`m_t` users: :math:`\sum_t\frac{m_t}n\theta_\epsilon\big(\frac{2L_t}{\sqrt{m_t}\sigma_t}\big)
    \prod_{j>t}\theta_\epsilon\big(\frac{d_j\sqrt{m_j}}{\eta_j\sigma_j}\big)`, since a user is in batch t with probability
    :math:`m_t/n`. The users of a small batch have less noise around them.

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> cell = dict(learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0, loss="convex")
    >>> delta = federated.trusted_aggregator_batches(0.0, batch_sizes=[30, 30, 30, 10], **cell)
    >>> print(format_upper(delta, ".5f"))
    0.10389
    """
    grid = AggregatorChecks(loss, num_threads, "raise")
    epsilon = STRICT.non_negative_or_infinite("epsilon", epsilon)
    sizes = vector("batch_sizes", STRICT.count("batch_sizes", batch_sizes))
    rounds = sizes.size
    step = _each_round("learning_rate", learning_rate, rounds)
    noise = _each_round("noise_std", noise_std, rounds)
    clip = _each_round("lipschitz", lipschitz, rounds)
    ball = STRICT.positive("radius", radius)
    beta = STRICT.non_negative("smoothness", 0.0 if smoothness is None else smoothness)
    for name, value in (("radius", ball), ("smoothness", beta)):
        if value.ndim:
            raise ValueError(f"{name} must be a number, not of shape {value.shape}")
    if sizes.sum() > LARGEST_COUNT:
        raise ValueError(f"batch_sizes must sum to at most {LARGEST_COUNT}, not {sizes.sum():g}")
    grid.contracting_steps(step, beta)
    image = 2.0 * (ball + (0.0 if grid.convex else step * clip))
    points = epsilon[..., np.newaxis]
    first = core.theta(points, 2.0 * clip / (np.sqrt(sizes) * noise))
    later = core.theta(points, image * np.sqrt(sizes) / (step * noise))
    return contraction_sum(first, later, sizes / sizes.sum(), num_threads=num_threads)


def _each_round(name: str, value: ArrayLike, rounds: int) -> Array:
    array = STRICT.positive(name, value)
    if array.ndim and array.shape != (rounds,):
        raise ValueError(
            f"{name} must be a number or of shape ({rounds},), one for each batch, not of shape {array.shape}"
        )
    filled: Array = np.broadcast_to(array, (rounds,))
    return filled


def best(
    epsilon: ArrayLike,
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    radius: ArrayLike,
    loss: Loss,
    smoothness: ArrayLike | None = None,
    strong_convexity: ArrayLike = 0.0,
    suffix: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Best:
    r"""Return the smallest certified delta of `trusted_aggregator`, and what gave it.

    Users are split at random into T = num_users // batch_size batches, one a round, and each takes part at most once; only
    the last model is released.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0; shape (...).
    num_users : array_like
        Number of users, a positive integer; shape (...).
    batch_size : array_like
        Users per round, an integer in [1, num_users]; shape (...).
    learning_rate : array_like
        Step size, positive: a constant, or shape (..., T) with one value a round, or (..., 1) for a grid of constants.
    noise_std : array_like
        Standard deviation of the noise that each user adds to the gradient, positive; shape as `learning_rate`.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive; shape as `learning_rate`.
    radius : array_like
        Radius of the ball that the model is projected onto after each round, positive; shape as `learning_rate`.
    loss : {"convex", "nonconvex"}
        As in `trusted_aggregator`. For nonconvex losses shifted interpolation needs the smoothness.
    smoothness : array_like, optional
        Lipschitz constant of the gradient, >= 0; shape as `learning_rate`.
    strong_convexity : array_like
        Strong convexity of convex losses, in [0, smoothness]; shape as `learning_rate`.
    suffix : array_like, optional
        If given, the stop is uniform over the last ceil(suffix T) rounds; in (0, 1], shape (...).
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN (and an empty method) there.

    Returns
    -------
    Best
        `delta`, upper bounds with rounding included; `method`, the bound that is smallest; `bounds`, all of them.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or a schedule has not one value a round.

    Notes
    -----
    The sum of `trusted_aggregator` over the user's round, each term bounded as in `hockeystick.last_iterate.best`:
    "contraction" (the published product), "nonlinear", "shifted", "hybrid", and "plain", which counts no amplification by
    later rounds. The maps' Lipschitz constant is :math:`c = \max(|1-\eta\beta|, |1-\eta\rho|)` for convex and smooth losses, 1
    where no smoothness is given, and 1 + eta beta for nonconvex ones.

    Examples
    --------
    >>> from hockeystick import federated, format_upper
    >>> best = federated.best(
    ...     1.0, num_users=100, batch_size=10, learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0, loss="convex"
    ... )
    >>> print(f"{format_upper(best.delta, '.6f')} by {best.method}; {format_upper(best.bounds['contraction'], '.6f')} by contraction")
    0.000208 by shifted; 0.002022 by contraction
    """
    grid = AggregatorChecks(loss, num_threads, on_error)
    cells = grid.aggregation(locals())
    grid.rounds["strong_convexity"] = np.atleast_1d(grid.convexity(strong_convexity, grid.rounds["smoothness"]))
    stop = np.asarray(0.0) if suffix is None else grid.fraction("suffix", suffix)
    return smallest(grid.evaluate(core.trusted_aggregator_bounds, *cells, stop), grid)


def best_sampled(
    epsilon: ArrayLike,
    *,
    num_users: ArrayLike,
    batch_size: ArrayLike,
    rounds: ArrayLike,
    learning_rate: ArrayLike,
    noise_std: ArrayLike,
    lipschitz: ArrayLike,
    radius: ArrayLike,
    loss: Loss,
    smoothness: ArrayLike | None = None,
    strong_convexity: ArrayLike = 0.0,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Best:
    r"""Return the smallest certified delta with a trusted aggregator that draws a batch in every round, and what gave it.

    In each round `batch_size` of the users are drawn at random, independently of the other rounds and unseen: a user takes
    part in any number of rounds. Only the last model is released. The sum over rounds of `best`, where each user takes part
    at most once, does not hold here. Arguments are constant over rounds.

    Parameters
    ----------
    epsilon : array_like
        The point at which delta is evaluated, >= 0.
    num_users : array_like
        Number of users, a positive integer.
    batch_size : array_like
        Users per round, an integer in [1, num_users].
    rounds : array_like
        Number of rounds, a positive integer.
    learning_rate : array_like
        Step size, positive; at most 2/smoothness for a convex loss.
    noise_std : array_like
        Standard deviation of the noise that each user adds to the gradient, positive.
    lipschitz : array_like
        Lipschitz constant of the loss (bound of the gradient norm), positive.
    radius : array_like
        Radius of the ball that the model is projected onto after each round, positive.
    loss : {"convex", "nonconvex"}
        As in `trusted_aggregator`. For nonconvex losses the smoothness is needed.
    smoothness : array_like, optional
        Lipschitz constant of the gradient, >= 0; for convex losses it need not be known, but must be at most 2/learning_rate.
    strong_convexity : array_like
        Strong convexity of convex losses, in [0, smoothness].
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN (and an empty method) there.

    Returns
    -------
    Best
        `delta`, upper bounds with rounding included; `method`, the bound that is smallest; `bounds`, all of them.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the smoothness of a nonconvex loss is missing.

    Notes
    -----
    The bounds of `hockeystick.last_iterate.best_sampled` for a sampling rate of m/n, sensitivity :math:`2L/(\sqrt m\,\sigma)` and
    diameter :math:`2\rho\sqrt m/(\eta\sigma)`. One user is replaced, who adds noise either way.

    Examples
    --------
    >>> from hockeystick import federated
    >>> best = federated.best_sampled(
    ...     1.0, num_users=100, batch_size=10, rounds=10, learning_rate=0.5, noise_std=1.5, lipschitz=1.0, radius=1.0,
    ...     loss="convex",
    ... )
    >>> print(f"{best.delta:.1e} by {best.method}")
    6.8e-09 by plain
    """
    grid = AggregatorChecks(loss, num_threads, on_error)
    epsilon, num_users, batch_size, rounds, learning_rate, noise_std, lipschitz, radius = arrays(
        locals(), grid, **CONVEXITY
    ).values()
    if smoothness is None and not grid.convex:
        raise ValueError("smoothness must be given for a nonconvex loss")
    smooth = grid.non_negative("smoothness", 0.0 if smoothness is None else smoothness)
    grid.contracting_steps(learning_rate, smooth)
    convexity = grid.convexity(strong_convexity, smooth)
    grid.whole_batches(num_users, batch_size)
    if grid.convex:
        learning_rate = np.where(learning_rate * smooth <= 2, learning_rate, np.nan)
    one = np.asarray(1.0)
    mean_noise, share, radius = _lengths(noise_std, lipschitz, radius, batch_size)
    rate = batch_size / num_users
    cells = broadcast(epsilon, one, rounds, learning_rate, mean_noise, share, smooth, convexity, 2 * radius, rate)
    return smallest(sampled_bounds(cells, grid, convex=grid.convex), grid)


def _lengths(noise: Array, lipschitz: Array, radius: Array, batch_size: Array) -> tuple[Array, Array, Array]:
    """Return the deviation of a batch's mean noise, a record's share in the mean gradient, and the radius, in one unit.

    Only their ratios count. The unit is small where the noise is, so that it keeps its digits. Beside such noise a Lipschitz constant that
    overflows hides no more than the largest double, and an infinite radius is a legal one. A subnormal share is rounded up.
    """
    smallest, largest = np.finfo(np.float64).tiny, np.finfo(np.float64).max
    unit = np.where(noise < math.ldexp(1.0, -900), math.ldexp(1.0, -500), 1.0)
    with np.errstate(over="ignore"):
        shown = np.where(lipschitz < np.inf, np.minimum(lipschitz / unit, largest), lipschitz)
        share = shown / batch_size
        share = np.where((lipschitz > 0) & (share < smallest), np.nextafter(share, np.inf), share)
        return noise / unit / np.sqrt(batch_size), share, radius / unit
