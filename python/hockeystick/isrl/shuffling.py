"""A shuffler that hides which silo sent which message: amplification, and the noise and the epsilon of shuffled mini-batch SGD."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import DELTA, STRICT, Array, Result, setting_warnings
from hockeystick._numeric.search import Probe, halve, narrow
from hockeystick.isrl.budgets import Budget, advanced_composition
from hockeystick.isrl.domains import checked, require_at_most, scalars
from hockeystick.isrl.noise import noisy_mb_sgd_accountant
from hockeystick.kernels import theta_inverse

__all__ = [
    "ShuffledNoise",
    "clone_bound",
    "shuffle_amplification",
    "shuffle_amplification_composed",
    "shuffled_mb_sgd_epsilon",
    "shuffled_mb_sgd_sigma",
]

TOLERANCE = 1e-12  # of the searches, which end on the feasible side
MARGIN = 1e-9  # more noise than the analytic Gaussian mechanism needs, to cover its rounding
LARGEST = 600.0  # epsilon of a round that is used: exponentials of more leave the doubles


def largest_local_epsilon(num_silos: Array, num_records: Array, slack: Array) -> Array:
    """Return the largest local epsilon for which the clones of Theorem D.5 are many enough."""
    return np.log(num_silos / (16.0 * np.log(2.0 / slack))) / num_records


def amplify(epsilon: Array, num_silos: Array, num_records: Array, slack: Array) -> Array:
    """Return epsilon after one shuffled round; tanh(x/2) is (e^x - 1)/(e^x + 1)."""
    grown = np.exp(num_records * epsilon)
    clones = 8.0 * np.sqrt(grown * np.log(4.0 / slack) / num_silos) + 8.0 * grown / num_silos
    return np.log1p(np.tanh(epsilon / 2.0) * clones)


def clone_bound(probability: ArrayLike, num_silos: ArrayLike, delta: ArrayLike) -> Result:
    """Return the epsilon of shuffled messages by the clones that other senders provide.

    Parameters
    ----------
    probability : array_like
        Probability p with which each other silo sends a clone, in [16 ln(2/delta)/num_silos, 1].
    num_silos : array_like
        Messages N, a positive integer.
    delta : array_like
        In (0, 1).

    Returns
    -------
    ndarray or float
        ln(1 + 8 sqrt(ln(4/delta)/(pN)) + 8/(pN)).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma D.10 of Lowy and Razaviyayn 2023, from Feldman, McMillan and Talwar 2020.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> print(format_upper(isrl.clone_bound(0.5, 1000, 1e-4), ".6f"))
    0.779616
    """
    p, silos, delta = checked(locals(), probability="fraction")
    STRICT.require(
        lambda x, least: x >= least,
        "probability must be at least 16 ln(2/delta)/num_silos",
        probability=p,
        smallest=16.0 * np.log(2.0 / delta) / silos,
    )
    clones = p * silos
    return np.log1p(8.0 * np.sqrt(np.log(4.0 / delta) / clones) + 8.0 / clones)[()]


def shuffle_amplification(
    epsilon: ArrayLike, delta: ArrayLike, *, num_silos: ArrayLike, num_records: ArrayLike = 1, slack: ArrayLike
) -> Budget:
    r"""Return the guarantee of one round of shuffled messages from the local guarantee of each message.

    Parameters
    ----------
    epsilon : array_like
        Inter-silo record-level guarantee of each message, positive, at most ln(N/(16 ln(2/slack)))/n.
    delta : array_like
        Guarantee of each message, in [0, 1).
    num_silos : array_like
        Messages that are shuffled, N, a positive integer.
    num_records : array_like
        Records behind each message, n, a positive integer.
    slack : array_like
        The delta that the amplification itself may spend, in (0, 1).

    Returns
    -------
    Budget
        Guarantee for one record of any silo against who sees the shuffled messages; delta at most 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain; for epsilon the message has the largest admissible value.

    Notes
    -----
    Theorem D.5 of Lowy and Razaviyayn 2023 with :math:`\epsilon_r = \ln(1 +
    \tanh(\epsilon/2)(8\sqrt{e^{n\epsilon}\ln(4/\delta_r)/N} + 8 e^{n\epsilon}/N))` as printed and :math:`\delta_r +
    (e^{\epsilon_r} + 1) N (n e^{(n-1)\epsilon} + e^{-n\epsilon}/2)\delta` in place of a delta that lacks a factor
    (`hockeystick.published.shuffle_amplification`). For n = 1 it is Theorem 3.8 of Feldman, McMillan and Talwar 2020.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> epsilon, delta = isrl.shuffle_amplification(1.0, 1e-12, num_silos=10_000, slack=1e-6)
    >>> print(format_upper(epsilon, ".4f"), format_upper(delta, ".4g"))
    0.2141 1.027e-06
    """
    epsilon, delta, silos, records, slack = checked(locals(), delta=DELTA, slack="inside")
    largest = largest_local_epsilon(silos, records, slack)
    rule = "epsilon must be at most ln(num_silos/(16 ln(2/slack)))/num_records"
    require_at_most(rule, epsilon=epsilon, largest=largest)
    amplified = amplify(epsilon, silos, records, slack)
    near = records * np.exp((records - 1.0) * epsilon) + np.exp(-records * epsilon) / 2.0
    spent = slack + (np.exp(amplified) + 1.0) * silos * near * delta
    return Budget(amplified[()], np.minimum(spent, 1.0)[()])


def shuffle_amplification_composed(
    epsilon: float, delta: float, *, num_silos: int, num_records: int = 1, rounds: int
) -> Budget:
    """Return the composed guarantee of several rounds of shuffled messages.

    Parameters
    ----------
    epsilon : float
        Inter-silo record-level guarantee of each message of each round; as in `shuffle_amplification`.
    delta : float
        Guarantee of each message, positive, below 1/(num_silos num_records rounds).
    num_silos, num_records, rounds : int
        Messages a round N, records behind each n, rounds R; positive.

    Returns
    -------
    Budget
        `shuffle_amplification` with a slack of N n delta in each round, then `advanced_composition` with R N n delta.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    What Corollary D.1 of Lowy and Razaviyayn 2023 states with unspecified constants, made computable.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> epsilon, delta = isrl.shuffle_amplification_composed(
    ...     0.1, 1e-15, num_silos=50_000, num_records=10, rounds=20
    ... )
    >>> print(format_upper(epsilon, ".4f"), format_upper(delta, ".3g"))
    0.3839 7e-08
    """
    epsilon, delta, num_silos, num_records, rounds = scalars(locals(), delta="positive")
    slack = num_silos * num_records * delta
    if rounds * slack >= 1:
        raise ValueError(
            f"delta must be below 1/(num_silos num_records rounds) = {delta / (rounds * slack):g}, not {delta:g}"
        )
    one = shuffle_amplification(epsilon, delta, num_silos=num_silos, num_records=num_records, slack=slack)
    return advanced_composition(np.full(rounds, one.epsilon), one.delta, rounds * slack)


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
    lipschitz, num_records, num_silos, silos_per_round, rounds, epsilon, delta = scalars(locals())
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
        raise ValueError(
            f"silos_per_round must exceed 16 ln(2/slack) for the shuffler to help, where the rounds leave a slack of "
            f"{slack:g} each, not {num_silos}"
        )
    return _largest(lambda e: float(amplify(*map(np.asarray, (e, num_silos, 1, slack)))), epsilon, most)


def _largest(function: Callable[[float], float], target: float, most: float) -> float:
    """Return the largest argument in (0, most] at which an increasing function through the origin is at most the target."""
    end = Probe(most, function(most) - target)
    if end.excess <= 0.0:
        return most
    return narrow(lambda x: function(x) - target, Probe(0.0, -target), end, tolerance=TOLERANCE).x


LEAST_SHARE = 1e-9  # share of the guarantee without a shuffler, below which none is sought
EPSILON_TOLERANCE = 1e-4  # of the search, which ends on the certified side


def shuffled_mb_sgd_epsilon(
    delta: float,
    *,
    noise_std: float,
    lipschitz: float,
    num_records: int,
    num_silos: int,
    silos_per_round: int,
    rounds: int,
) -> float:
    """Return the certified epsilon of shuffled mini-batch SGD in which each participating silo sends one record's noisy gradient.

    Parameters
    ----------
    delta : float
        In (0, 1).
    noise_std : float
        Standard deviation per coordinate of the noise that each silo adds to its clipped gradient, positive.
    lipschitz : float
        Largest norm L of a record's gradient, positive.
    num_records, num_silos, silos_per_round, rounds : int
        Records a silo n, silos N, silos in each round M (drawn uniformly), rounds R; positive, M at most N.

    Returns
    -------
    float
        Upper bound of epsilon for one record replaced, against who sees the shuffled messages of all rounds.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The smaller of two bounds. Shuffling is post-processing: what every silo promises by itself (`noisy_mb_sgd_accountant`) holds. And every epsilon for
    which `shuffled_mb_sgd_sigma` asks for no more than this noise holds (Theorem G.1 of Lowy and Razaviyayn 2023, computable), more noise being
    post-processing too. The second is smaller for very many silos only.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> epsilon = isrl.shuffled_mb_sgd_epsilon(
    ...     noise_std=60.0,
    ...     lipschitz=1.0,
    ...     num_records=1,
    ...     num_silos=10**6,
    ...     silos_per_round=10**6,
    ...     rounds=100,
    ...     delta=1e-7,
    ... )
    >>> print(format_upper(epsilon, ".3f"))
    0.323
    """
    delta, noise, clip, num_records, num_silos, silos_per_round, rounds = scalars(locals(), noise_std="positive")
    setting_warnings.warn(setting_warnings.large_delta(delta, num_records * num_silos))
    setting = {"lipschitz": clip, "num_records": num_records, "rounds": rounds}
    alone = noisy_mb_sgd_accountant(**setting, noise_std=noise, batch_size=1).epsilon(delta)
    setting |= {"num_silos": num_silos, "silos_per_round": silos_per_round, "delta": delta}

    def too_small(epsilon: float) -> bool:
        try:
            needed = shuffled_mb_sgd_sigma(**setting, epsilon=epsilon)
        except ValueError:  # too few silos for the shuffler to help
            return True
        return not needed.noise_std <= noise

    if not math.isfinite(alone) or alone == 0.0 or too_small(alone):
        return float(alone)
    return halve(too_small, LEAST_SHARE * alone, alone, tolerance=EPSILON_TOLERANCE)[1]
