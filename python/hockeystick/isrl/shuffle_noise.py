"""Noise of shuffled mini-batch SGD."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hockeystick._checks import at_most, count_scalar, positive_scalar, scalar, setting_warnings
from hockeystick._numeric.search import Probe, narrow
from hockeystick.isrl.budgets import Budget
from hockeystick.isrl.shuffle import LARGEST, MARGIN, TOLERANCE, amplify, largest_local_epsilon
from hockeystick.kernels import theta_inverse

__all__ = ["ShuffledNoise", "shuffled_mb_sgd_sigma"]


class ShuffledNoise(NamedTuple):
    """Noise of shuffled mini-batch SGD, and the budgets on the way to it.

    Attributes
    ----------
    noise_std : float
        Standard deviation per coordinate of the noise that each silo adds to its clipped gradient.
    local : Budget
        Guarantee of each message towards who sees it unshuffled.
    round : Budget
        Guarantee of each round's shuffled messages.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> isrl.ShuffledNoise(1.0, isrl.Budget(0.1, 1e-9), isrl.Budget(0.01, 1e-7)).noise_std
    1.0
    """

    noise_std: float
    local: Budget
    round: Budget


def shuffled_mb_sgd_sigma(
    *,
    lipschitz: float,
    num_records: int,
    num_silos: int,
    silos_per_round: int,
    rounds: int,
    epsilon: float,
    delta: float,
) -> ShuffledNoise:
    """Return the noise of shuffled mini-batch SGD in which each participating silo sends one record's noisy gradient.

    Parameters
    ----------
    lipschitz : float
        Largest norm L of a record's gradient, positive.
    num_records, num_silos, silos_per_round, rounds : int
        Records a silo n, silos N, silos in each round M (drawn uniformly), rounds R; positive, M at most N.
    epsilon : float
        Target for one record replaced, against who sees the shuffled messages of all rounds; positive.
    delta : float
        Target, in (0, 1).

    Returns
    -------
    ShuffledNoise
        Noise with which the target holds, and the budgets on the way.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or too few silos take part for the shuffler to help.

    Notes
    -----
    Theorem G.1 of Lowy and Razaviyayn 2023 leaves its constant open. Here: half of delta for advanced composition, the rest
    in equal parts for the rounds; amplification by sampling M of the nN records; `shuffle_amplification` for the M messages;
    the analytic Gaussian mechanism for one of them. Secure aggregation would need about a hundredth of it.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> noise = isrl.shuffled_mb_sgd_sigma(
    ...     lipschitz=1.0, num_records=10, num_silos=10_000, silos_per_round=10_000, rounds=10_000, epsilon=1.0, delta=1e-6
    ... )
    >>> print(f"{format_upper(noise.noise_std, '.2f')} {noise.local.epsilon:.4f}")
    154.06 0.0886
    """
    lipschitz = positive_scalar("lipschitz", lipschitz)
    num_records = count_scalar("num_records", num_records)
    num_silos = count_scalar("num_silos", num_silos)
    silos_per_round = count_scalar("silos_per_round", silos_per_round)
    at_most("silos_per_round", silos_per_round, "num_silos", num_silos)
    rounds = count_scalar("rounds", rounds)
    epsilon = positive_scalar("epsilon", epsilon)
    delta = scalar("delta", delta, lambda x: 0 < x < 1, "lie in (0, 1)")
    setting_warnings.warn(setting_warnings.large_delta(delta, num_records * num_silos))

    log = math.log(2.0 / delta)
    per_round = _largest(
        lambda e: math.sqrt(2.0 * rounds * log) * e + rounds * e * math.expm1(e),
        epsilon,
        min(epsilon / math.sqrt(rounds), LARGEST),
    )
    rate = silos_per_round / (num_records * num_silos)
    sampled = Budget(math.log1p(math.expm1(per_round) / rate), delta / (2.0 * rounds) / rate)
    slack = sampled.delta / 2.0
    local = _local_epsilon(sampled.epsilon, silos_per_round, slack)
    near = (math.exp(sampled.epsilon) + 1.0) * (1.0 + math.exp(-local) / 2.0) * silos_per_round
    message = Budget(local, slack / near)
    noise_std = 2.0 * lipschitz / float(theta_inverse(*message)) * (1.0 + MARGIN)
    return ShuffledNoise(noise_std, message, Budget(per_round, delta / (2.0 * rounds)))


def _local_epsilon(epsilon: float, num_silos: int, slack: float) -> float:
    """Return the largest epsilon of a message whose shuffled round stays within `epsilon`."""
    most = -math.inf
    if slack < 1.0:
        most = float(largest_local_epsilon(*map(np.asarray, (num_silos, 1, slack))))
    if most <= 0.0:
        msg = (
            f"silos_per_round must exceed 16 ln(2/slack) for the shuffler to help, where the rounds leave a slack of "
            f"{slack:g} each, not {num_silos}"
        )
        raise ValueError(msg)
    return _largest(lambda e: float(amplify(*map(np.asarray, (e, num_silos, 1, slack)))), epsilon, most)


def _largest(function: Callable[[float], float], target: float, most: float) -> float:
    """Return the largest argument in (0, most] at which an increasing function through the origin is at most the target."""
    end = Probe(most, function(most) - target)
    if end.excess <= 0.0:
        return most
    return narrow(lambda x: function(x) - target, Probe(0.0, -target), end, tolerance=TOLERANCE).x
