"""Zhang, Chen and Yang 2023: Algorithms 1 to 3, for study."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, count_scalar, vector
from hockeystick.distortion import aggregate, distort_parameters, fedsgd_local_step
from hockeystick.published.distortion.bounds import noise_variance_for_budget
from hockeystick.published.distortion.sampling import sampling_probability
from hockeystick.published.warning import UnsoundBoundWarning, warn_unsound

__all__ = ["DistortionHistory", "run_near_optimal_utility_fl"]


class DistortionHistory(NamedTuple):
    """What happened in rounds 0 to T with K clients and d parameters.

    Attributes
    ----------
    parameters : ndarray of shape (T + 2, d)
        The server's parameter before the first and after each round.
    sampling_probabilities : ndarray of shape (T + 1, K)
        Probability with which each client drew each record.
    batch_sizes : ndarray of int, shape (T + 1, K)
        Records drawn; with none the client takes no step.
    noise_variances : ndarray of shape (T + 1, K)
        Variance per coordinate of each client's noise.
    """

    parameters: Array
    sampling_probabilities: Array
    batch_sizes: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    noise_variances: Array


def run_near_optimal_utility_fl(
    clients: Sequence[Callable[[Array], ArrayLike]],
    start: ArrayLike,
    *,
    rounds: int,
    budget: ArrayLike,
    unprotected: ArrayLike,
    variance: ArrayLike,
    utility_constant: float,
    learning_rate: float,
    weights: ArrayLike | None = None,
    rng: np.random.Generator,
) -> DistortionHistory:
    """Run the algorithm that is to be private and of near-optimal utility. It is neither.

    Parameters
    ----------
    clients : sequence of callable
        Each takes a parameter of shape (d,) and returns its records' gradients, of shape (M, d).
    start : array_like of shape (d,)
        The first parameter.
    rounds : int
        The last round T: as printed, t runs from 0 to T, which is T + 1 rounds.
    budget : array_like
        Largest leakage tau: one number, one of each client, shape (K,), or of each round and client, shape (T + 1, K).
    unprotected : array_like
        C_1, of the same shapes, less than .01 above the budget.
    variance : array_like
        Variance per coordinate of the unprotected parameter, of the same shapes, positive.
    utility_constant : float
        C_6, positive.
    learning_rate : float
        eta, positive.
    weights : array_like of shape (K,), optional
        Shares of the clients; as printed, n_k/n, in proportion to their records, if not given.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    DistortionHistory
        Parameters, sampling probabilities, batch sizes and noise.

    Raises
    ------
    InfeasibleBudgetError
        If a sampling probability does not exist.
    ValueError
        If an argument is outside its domain.
    TypeError
        If rng is no generator.

    Warns
    -----
    UnsoundBoundWarning
        Always: see `noise_variance_for_budget` and `sampling_probability`.

    Notes
    -----
    Where the paper leaves it open: an empty batch is no step. Counterexample to its utility: every
    round costs d times the noise variance in expectation; and its sampling probability draws less than one record in a
    hundred rounds below.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     history = published.run_near_optimal_utility_fl(
    ...         [lambda w: np.ones((200, w.size))],
    ...         np.zeros(100),
    ...         rounds=3,
    ...         budget=0.3,
    ...         unprotected=0.305,
    ...         variance=1.0,
    ...         utility_constant=2.6 * 100,
    ...         learning_rate=0.1,
    ...         rng=np.random.default_rng(1),
    ...     )
    >>> print(f"{history.sampling_probabilities[0, 0]:.2e}", history.noise_variances[0, 0].round(4))
    6.50e-05 0.05
    """
    server = vector("start", STRICT.finite("start", start))
    rounds = count_scalar("rounds", rounds)
    shape = (rounds + 1, len(clients))
    limits = _of_each("budget", STRICT.finite("budget", budget), shape)
    starts = _of_each("unprotected", STRICT.finite("unprotected", unprotected), shape)
    variances = _of_each("variance", STRICT.finite("variance", variance), shape)
    warn_unsound(
        "Algorithm 1 of Zhang, Chen and Yang (2023) promises neither privacy nor utility", "hockeystick.Accountant"
    )
    probabilities, sizes, noises = np.zeros(shape), np.zeros(shape, dtype=np.int64), np.zeros(shape)
    parameters = [server]
    for t in range(rounds + 1):
        sent, records = [], []
        for k, client in enumerate(clients):
            gradients = STRICT.finite("gradients", client(server))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnsoundBoundWarning)  # given above, once
                noises[t, k] = noise_variance_for_budget(starts[t, k], limits[t, k], variances[t, k], server.size)
                probabilities[t, k] = sampling_probability(
                    starts[t, k], limits[t, k], float((gradients**2).sum()), utility_constant
                )
            batch = gradients[rng.random(len(gradients)) < probabilities[t, k]]
            sizes[t, k] = len(batch)
            records.append(len(gradients))
            local = fedsgd_local_step(server, batch, learning_rate=learning_rate) if len(batch) else server
            sent.append(distort_parameters(local, float(noises[t, k]), rng))
        server = aggregate(sent, np.array(records) / sum(records) if weights is None else weights)
        parameters.append(server)
    return DistortionHistory(np.array(parameters), probabilities, sizes, noises)


def _of_each(name: str, value: Array, shape: tuple[int, int]) -> Array:
    """Return an argument for each round and client."""
    if value.shape not in {(), shape[1:], shape}:
        msg = f"{name} must be one number or have the shape {shape[1:]} or {shape}, not {value.shape}"
        raise ValueError(msg)
    return np.broadcast_to(value, shape)
