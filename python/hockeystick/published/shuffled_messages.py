"""Lowy and Razaviyayn 2023, Section 5 and Appendices D.3 and G, as printed: shuffled messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, at_most, broadcast, random_generator, scalar
from hockeystick.isrl import Budget
from hockeystick.isrl import shuffle_amplification as corrected_amplification
from hockeystick.isrl.domains import checked, require_at_most, scalars
from hockeystick.isrl.rounds_and_steps import shuffled_terms
from hockeystick.published.warning import warn_unsound

__all__ = [
    "shuffle_amplification",
    "shuffle_composed_delta",
    "shuffle_composed_epsilon",
    "shuffle_rounds",
    "shuffle_vector_sum",
    "shuffled_mb_sgd_sigma",
]


def shuffle_amplification(
    epsilon: ArrayLike, delta: ArrayLike, *, num_silos: ArrayLike, num_records: ArrayLike = 1, slack: ArrayLike
) -> Budget:
    """Return what Theorem D.5 prints for one round of shuffled messages; its delta lacks a factor of its own lemma.

    Parameters
    ----------
    epsilon, delta, num_silos, num_records, slack : array_like
        As in `hockeystick.isrl.shuffle_amplification`.

    Returns
    -------
    Budget
        The same epsilon, and slack + 2 N n e^{(n-1) epsilon} delta.

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
    Lemma D.13 charges (e^eps + 1) times the total variation distance, which the theorem leaves out. Without that factor the
    lemma is false: from P = Q move mass t from A to B in one and from B to A in the other, and delta at epsilon = 0 becomes
    2t.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import format_upper, isrl, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     printed = published.shuffle_amplification(1.0, 1e-12, num_silos=10_000, slack=1e-6)
    >>> corrected = isrl.shuffle_amplification(1.0, 1e-12, num_silos=10_000, slack=1e-6)
    >>> print(f"printed {printed.delta:.5g}, corrected {format_upper(corrected.delta, '.5g')}")
    printed 1.02e-06, corrected 1.0266e-06
    """
    one = corrected_amplification(epsilon, delta, num_silos=num_silos, num_records=num_records, slack=slack)
    warn_unsound(
        "the delta of Theorem D.5 of Lowy and Razaviyayn (2023) is not what its proof gives",
        "hockeystick.isrl.shuffle_amplification",
    )
    eps, d, silos, records, spent = broadcast(
        *(np.asarray(x, dtype=np.float64) for x in (epsilon, delta, num_silos, num_records, slack))
    )
    return Budget(one.epsilon, np.minimum(spent + 2.0 * silos * records * np.exp((records - 1.0) * eps) * d, 1.0)[()])


def shuffled_mb_sgd_sigma(
    *,
    lipschitz: ArrayLike,
    num_records: ArrayLike,
    num_silos: ArrayLike,
    silos_per_round: ArrayLike,
    rounds: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    constant: float,
) -> Result:
    r"""Return the noise that Theorem G.1 prints for shuffled mini-batch SGD, with the constant that it does not state.

    Parameters
    ----------
    lipschitz, num_records, num_silos, silos_per_round, rounds : array_like
        L, n, N, M, R; M at least 16 ln(18 R M^2/(N delta)).
    epsilon, delta : array_like
        Budget against who sees the shuffled messages; epsilon at most ln(2/delta).
    constant : float
        C, positive. Nobody knows which suffices; those that `hockeystick.isrl.shuffled_mb_sgd_sigma` amounts to were 182 to 235 in four settings.

    Returns
    -------
    ndarray or float
        :math:`\sqrt{CRM\ln(RM^2/(N\delta))\ln(R/\delta)\ln(1/\delta)}L/(nN\epsilon)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always: a constant that is assumed certifies nothing.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     sigma = published.shuffled_mb_sgd_sigma(
    ...         lipschitz=1.0,
    ...         num_records=10,
    ...         num_silos=10_000,
    ...         silos_per_round=10_000,
    ...         rounds=10_000,
    ...         epsilon=1.0,
    ...         delta=1e-6,
    ...         constant=231.0,
    ...     )
    >>> print(f"{sigma:.2f}")
    153.91
    """
    lipschitz, records, all_silos, silos, number, eps, d = checked(locals())
    (constant,) = scalars({"constant": constant}, constant="positive")
    require_at_most("epsilon must be at most ln(2/delta)", epsilon=eps, limit=np.log(2.0 / d))
    STRICT.require(
        lambda m, least: m >= least,
        "silos_per_round must be at least 16 ln(18 R M^2/(N delta))",
        silos_per_round=silos,
        smallest=16.0 * np.log(18.0 * number * silos**2 / (all_silos * d)),
    )
    warn_unsound(
        "the constant of Theorem G.1 of Lowy and Razaviyayn (2023) is not known",
        "hockeystick.isrl.shuffled_mb_sgd_sigma",
    )
    logs = np.log(number * silos**2 / (all_silos * d)) * np.log(number / d) * np.log(1.0 / d)
    return (lipschitz * np.sqrt(constant * number * silos * logs) / (records * all_silos * eps))[()]


def shuffle_rounds(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    num_records: ArrayLike,
    epsilon: ArrayLike,
    dimension: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the rounds that the proof of Theorem G.1 prints: too few for its rate where n epsilon^2 < 1 and d < M.

    Parameters
    ----------
    smoothness, diameter, lipschitz, silos_per_round, num_silos, num_records, epsilon, dimension, strong_convexity : array_like
        As in `hockeystick.isrl.shuffle_rounds`.

    Returns
    -------
    ndarray or float
        That with :math:`\min(n, \epsilon^2n^2N^2/(dM))` in place of :math:`\min(nM, \epsilon^2n^2N^2/d)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import format_upper, published
    >>> rounds = published.shuffle_rounds(
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     silos_per_round=100,
    ...     num_silos=100,
    ...     num_records=10,
    ...     epsilon=0.1,
    ...     dimension=2,
    ... )
    >>> print(format_upper(rounds, ".0f"))
    100
    """
    statistical, others, silos = shuffled_terms(locals())
    return np.maximum(statistical / silos, others)[()]


def shuffle_composed_delta(epsilon: float, delta: float, *, num_silos: int, num_records: int = 1, rounds: int) -> float:
    """Return the delta of Corollary D.1 for several shuffled rounds; its epsilon has an unspecified constant.

    Parameters
    ----------
    epsilon : float
        Guarantee of each message, in (0, 1/num_records].
    delta : float
        Guarantee of each message, in (0, 1/(14 num_silos num_records rounds)].
    num_silos, num_records, rounds : int
        N, n, R.

    Returns
    -------
    float
        14 N n R delta, which rests on the round's delta that `shuffle_amplification` tells of and holds for small epsilon only.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.shuffle_composed_delta(0.005, 1e-15, num_silos=10_000, num_records=100, rounds=50):.1e}")
    7.0e-07
    """
    epsilon, delta, silos, records, number = scalars(locals(), delta="positive")
    messages = silos * number
    at_most("epsilon", epsilon, "1/num_records", 1.0 / records)
    at_most("delta", delta, "1/(14 num_silos num_records rounds)", 1.0 / (14.0 * messages * records))
    return float(14.0 * messages * records * delta)


def shuffle_composed_epsilon(
    epsilon: float, delta: float, *, num_silos: int, num_records: int = 1, compositionality: float = 1.0
) -> float:
    r"""Return the order of epsilon that Corollary D.1 and Theorem D.4 state for several shuffled rounds: no bound.

    Parameters
    ----------
    epsilon : float
        Guarantee of all of a silo's messages, in [0, sqrt(num_silos)].
    delta : float
        Smallest guarantee of one message, in (0, 1/(num_silos num_records)).
    num_silos, num_records : int
        N, n.
    compositionality : float
        C, positive.

    Returns
    -------
    float
        :math:`\epsilon\ln(1/(nN\delta))C^2/\sqrt N`, with the constant 1 where none is stated. `shuffle_composed_delta` goes with it.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     order = published.shuffle_composed_epsilon(0.4, 1e-15, num_silos=50_000, num_records=10)
    >>> print(f"{order:.5f}")
    0.03831
    """
    epsilon, delta, silos, records, constant = scalars(locals(), epsilon="non_negative")
    messages = silos * records
    at_most("epsilon", epsilon, "sqrt(num_silos)", silos**0.5)
    scalar("delta", delta, lambda x: x < 1 / messages, f"lie in (0, 1/(num_silos num_records) = {1 / messages:g})")
    weight = constant**2
    warn_unsound(
        "Corollary D.1 of Lowy and Razaviyayn (2023) states an order", "hockeystick.isrl.shuffle_amplification_composed"
    )
    return float(epsilon * np.log(1.0 / (messages * delta)) * weight / np.sqrt(silos))


def shuffle_vector_sum(
    vectors: ArrayLike, *, lipschitz: float, levels: int, noise_bits: int, probability: float, rng: np.random.Generator
) -> Array:
    r"""Return the sum that Algorithms 4 and 5 print: (N - 1) L too large in every coordinate.

    Parameters
    ----------
    vectors : array_like of shape (N, d)
        One vector a message, of norm at most lipschitz.
    lipschitz : float
        L, positive.
    levels : int
        Levels g of the range [0, L]; coordinates are moved to [0, 2L], so that up to 2g are used.
    noise_bits : int
        Noise bits b of each message and coordinate.
    probability : float
        Probability p of each noise bit, in (0, 1).
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (d,)
        :math:`(L/g)(\text{bits} - pbN) - L`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or a vector is longer than lipschitz.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Notes
    -----
    Counterexample: N messages 0 sum to (N - 1) L, since L is added N times and subtracted once. Nor can the message be sent: it has g + b bits, of
    which up to 2g + b would be set. `hockeystick.isrl.shuffle_vector_sum` has the range 2L and moves back by N L.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from hockeystick import published
    >>> rng = np.random.default_rng(1)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     print(
    ...         published.shuffle_vector_sum(
    ...             [[0.0]] * 5, lipschitz=1.0, levels=4, noise_bits=0, probability=0.25, rng=rng
    ...         )
    ...     )
    [4.]
    """
    clip, levels, bits, rate = scalars(locals())
    points = np.atleast_2d(STRICT.finite("vectors", vectors))
    at_most("the norm of vectors", float(np.linalg.norm(points, axis=1).max()) * (1 - 1e-12), "lipschitz", clip)
    random_generator("rng", rng)
    warn_unsound(
        "the sum of Algorithms 4 and 5 of Lowy and Razaviyayn (2023) is (N - 1) L too large",
        "hockeystick.isrl.shuffle_vector_sum",
        "unbiased sum",
    )
    number, dimension = points.shape
    scaled = (points + clip) * (levels / clip)
    ones = np.floor(scaled + rng.random(points.shape)).sum(axis=0) + rng.binomial(number * bits, rate, dimension)
    return np.asarray((clip / levels) * (ones - rate * bits * number) - clip)
