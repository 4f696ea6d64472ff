"""Silos that differ: who takes part, how noise and gradients average, how weights change the constants, and rates of Appendix H.

`unequal_silos_rate`, its step and its rounds take T = `effective_noise`: the mean of xi_i over silos, divided by the harmonic mean M of the number that take part. It is exact.
The paper has min(Xi/M', xi_max/M) in its place (`hockeystick.published.xi_aggregate`), which is never smaller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, at_most, count_scalar, matrix, pmf, vector
from hockeystick.isrl.domains import checked, left_out, scalars
from hockeystick.isrl.rates import Rate, by_convexity

__all__ = [
    "Heterogeneity",
    "Participation",
    "ReweightedConstants",
    "balanced_batch_sizes",
    "harmonic_participation",
    "heterogeneity",
    "mean_noise_std",
    "noisy_gradient_variance",
    "reweighted_constants",
    "sampled_mean_variance",
    "unequal_silos_empirical_rate",
    "unequal_silos_rate",
    "unequal_silos_rounds",
    "unequal_silos_step",
]


class Participation(NamedTuple):
    """Means of a random number of participating silos.

    Attributes
    ----------
    harmonic : float
        1/E[1/M_r]: the `silos_per_round` of every risk bound.
    harmonic_square : float
        1/sqrt(E[1/M_r^2]), at most `harmonic`; only the printed bounds use it.
    """

    harmonic: float
    harmonic_square: float


def harmonic_participation(participation: Mapping[int, float], num_silos: int) -> Participation:
    """Return the means of a random number of participating silos that the bounds take.

    Parameters
    ----------
    participation : mapping of int to float
        Probability of each number of silos in a round; numbers in [1, num_silos], probabilities that sum to 1.
    num_silos : int
        Number of silos.

    Returns
    -------
    Participation
        The harmonic mean, and that of squares.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Assumption 1(4) and Appendix H of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.harmonic_participation({2: 0.5, 3: 0.5}, 5).harmonic:.4f}")
    2.4000
    """
    num_silos = count_scalar("num_silos", num_silos)
    numbers = np.array([count_scalar("participation", number) for number in participation], dtype=np.float64)
    probabilities = pmf("participation", list(participation.values()))
    at_most("participation", float(numbers.max()), "num_silos", num_silos)
    inverse = float(probabilities @ (1.0 / numbers))
    return Participation(1.0 / inverse, 1.0 / float(np.sqrt(probabilities @ (1.0 / numbers**2))))


def mean_noise_std(noise_stds: ArrayLike) -> float:
    """Return the common noise that the average of unequal silos' noise amounts to.

    Parameters
    ----------
    noise_stds : array_like
        Standard deviation of each silo's noise, >= 0; one-dimensional.

    Returns
    -------
    float
        The root mean square: the mean over a uniform set of M silos has variance (d/M) times its square.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Exact, since the participating silos are uniform given their number; the averages over the noisiest silos in Theorem H.1
    of Lowy and Razaviyayn 2023 are never smaller.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.mean_noise_std([1.0, 2.0, 3.0, 4.0, 0.5]):.6f}")
    2.459675
    """
    stds = vector("noise_stds", STRICT.non_negative("noise_stds", noise_stds))
    return float(np.sqrt(np.mean(stds**2)))


def balanced_batch_sizes(num_records: ArrayLike, batch_size: int) -> Array:
    """Return batch sizes that draw the same share of the records of every silo.

    Parameters
    ----------
    num_records : array_like
        Records of each silo; one-dimensional.
    batch_size : int
        Batch size of the smallest silo, at most its records.

    Returns
    -------
    ndarray of shape (N,)
        Integers in proportion to num_records.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or no integers of one proportion exist.

    Notes
    -----
    Algorithm 7 of Lowy and Razaviyayn 2023: K_i/n_i is the same for all silos.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(isrl.balanced_batch_sizes([1000, 500, 2000], 25))
    [ 50.  25. 100.]
    """
    records = vector("num_records", STRICT.count("num_records", num_records))
    batch_size = count_scalar("batch_size", batch_size)
    smallest = int(records.min())
    at_most("batch_size", batch_size, "the smallest silo", smallest)
    products = [int(n) * batch_size for n in records]
    if any(product % smallest for product in products):
        raise ValueError(
            f"batch_size must give every silo the same share of its records, not {batch_size} of {smallest} "
            f"with silos of {', '.join(f'{n:.0f}' for n in records)}"
        )
    return np.array([product // smallest for product in products], dtype=np.float64)


class ReweightedConstants(NamedTuple):
    """Constants of losses rescaled by N p_i."""

    lipschitz: float
    strong_convexity: float
    smoothness: float


def reweighted_constants(
    weights: ArrayLike, *, lipschitz: float, strong_convexity: float = 0.0, smoothness: float
) -> ReweightedConstants:
    """Return the constants of the losses N p_i f_i, whose plain mean is the weighted one.

    Parameters
    ----------
    weights : array_like
        Weight p_i of each silo, >= 0, summing to 1; positive if strong_convexity is.
    lipschitz : float
        Lipschitz constant L of each loss, positive.
    strong_convexity : float
        Strong convexity mu of each loss, >= 0.
    smoothness : float
        Smoothness beta of each loss, positive.

    Returns
    -------
    ReweightedConstants
        Largest N p_i L, smallest N p_i mu, largest N p_i beta.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Appendix H of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> constants = isrl.reweighted_constants(
    ...     [0.5, 0.3, 0.2], lipschitz=1.0, strong_convexity=0.1, smoothness=1.0
    ... )
    >>> print("{:.2f} {:.2f} {:.2f}".format(*constants))
    1.50 0.06 1.50
    """
    scale = vector("weights", pmf("weights", weights))
    scale = scale * scale.size
    lipschitz, convexity, smoothness = scalars(
        {"lipschitz": lipschitz, "strong_convexity": strong_convexity, "smoothness": smoothness}, ()
    )
    if convexity > 0 and scale.min() == 0:
        raise ValueError("weights must be positive where strong_convexity is, not 0")
    most = float(scale.max())
    return ReweightedConstants(most * lipschitz, float(scale.min()) * convexity, most * smoothness)


class Heterogeneity(NamedTuple):
    """How far the silos' gradients are from their mean.

    Attributes
    ----------
    around_mean : float or ndarray
        upsilon^2 at this point: (1/N) sum of the squared distances to the mean gradient.
    around_zero : float or ndarray
        (1/N) sum of the squared norms; at the optimum it is upsilon_*^2.
    """

    around_mean: Result
    around_zero: Result


def heterogeneity(gradients: ArrayLike) -> Heterogeneity:
    """Return how far the silos' gradients are from their mean, and from zero, at one point or several.

    Parameters
    ----------
    gradients : array_like of shape (..., N, d)
        Gradient of each silo's objective.

    Returns
    -------
    Heterogeneity
        Of shape (...). The paper's upsilon^2 is the supremum of `around_mean` over the domain: no finite set of points gives it.

    Raises
    ------
    ValueError
        If there are fewer than two axes.

    Notes
    -----
    Section 3 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print("{:.1f} {:.1f}".format(*isrl.heterogeneity([[1.0], [-1.0]])))
    1.0 1.0
    """
    silos = STRICT.finite("gradients", gradients)
    if silos.ndim < 2 or silos.size == 0:
        raise ValueError(f"gradients must have the shape (..., silos, dimension), not {silos.shape}")
    centred = silos - silos.mean(axis=-2, keepdims=True)
    return Heterogeneity(*((np.sum(x**2, axis=-1)).mean(axis=-1)[()] for x in (centred, silos)))


def sampled_mean_variance(vectors: ArrayLike, sample_size: ArrayLike) -> Result:
    """Return the mean squared distance of a sample's mean to the mean of all vectors.

    Parameters
    ----------
    vectors : array_like of shape (N, d)
        The vectors.
    sample_size : array_like
        Vectors in the uniform sample without replacement, in [1, N].

    Returns
    -------
    ndarray or float
        (N - M)/((N - 1) M) times the mean squared distance of a vector to their mean.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma F.1 of Lowy and Razaviyayn 2023. Records of sampled silos are no simple random sample: see `noisy_gradient_variance`.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> print(f"{isrl.sampled_mean_variance([[1.0], [-1.0], [0.0], [0.0]], 2):.6f}")
    0.166667
    """
    points = matrix("vectors", vectors, "(number, dimension)")
    size = STRICT.count_up_to("sample_size", sample_size, points.shape[0])
    spread = ((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()
    return (spread * (points.shape[0] - size) / (max(points.shape[0] - 1, 1) * size))[()]


def noisy_gradient_variance(
    *,
    gradient_std: ArrayLike,
    batch_size: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    heterogeneity: ArrayLike,
    dimension: ArrayLike,
    noise_std: ArrayLike,
) -> Result:
    r"""Return the mean squared error of a round's noisy average gradient.

    Parameters
    ----------
    gradient_std : array_like
        Largest root mean square distance phi of a record's gradient to its silo's, >= 0.
    batch_size : array_like
        Records of each silo in a round, K.
    silos_per_round : array_like
        Harmonic mean M of the number of participating silos, in [1, num_silos]; need not be an integer.
    num_silos : array_like
        Number of silos, N.
    heterogeneity : array_like
        Largest root mean square distance upsilon of a silo's gradient to the mean of all, >= 0.
    dimension : array_like
        Number of coordinates, d.
    noise_std : array_like
        Noise of each silo per coordinate, >= 0; `mean_noise_std` if they differ.

    Returns
    -------
    ndarray or float
        :math:`\phi^2/(MK) + \frac{N-M}{N-1}\upsilon^2/M + d\sigma^2/M`, of the broadcast shape; the middle term is 0 for N = 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma E.3 of Lowy and Razaviyayn 2023.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> variance = isrl.noisy_gradient_variance(
    ...     gradient_std=1.0, batch_size=10, silos_per_round=5, num_silos=20, heterogeneity=2.0, dimension=10, noise_std=0.5
    ... )
    >>> print(f"{variance:.6f}")
    1.151579
    """
    phi, batch, taking_part, silos, upsilon, dimension, sigma = checked(locals())
    return ((phi**2 / batch + left_out(taking_part, silos) * upsilon**2 + dimension * sigma**2) / taking_part)[()]


def unequal_silos_rate(
    *,
    lipschitz: ArrayLike,
    diameter: ArrayLike,
    silos_per_round: ArrayLike,
    num_records: ArrayLike,
    dimension: ArrayLike,
    effective_noise: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Rate:
    r"""Return the rate of the population's excess risk with silos of their own sizes and budgets.

    Parameters
    ----------
    lipschitz, diameter : array_like
        L and D, positive.
    silos_per_round : array_like
        Harmonic mean M of the number of participating silos.
    num_records : array_like
        Records of the smallest silo.
    dimension : array_like
        Number of model parameters, d.
    effective_noise : array_like
        T, the mean of `hockeystick.published.silo_xi` over M, or its printed bound `hockeystick.published.xi_aggregate`; positive.
    strong_convexity : array_like
        mu, >= 0.

    Returns
    -------
    Rate
        :math:`LD(1/\sqrt{n_{\min}M} + \sqrt{dT})`, or for mu > 0 :math:`\frac{L^2}{\mu}(1/(Mn_{\min}) + dT)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Theorem H.1 of Lowy and Razaviyayn 2023, the second case being equation 41.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.unequal_silos_rate(
    ...     lipschitz=1.0, diameter=2.0, silos_per_round=2.4, num_records=500, dimension=10, effective_noise=4.733e-4
    ... )
    >>> print(f"{rate.statistical:.6f} {rate.private:.6f}")
    0.057735 0.137594
    """
    lipschitz, diameter, silos, records, dimension, noise, convexity = checked(locals())
    return by_convexity(lipschitz, diameter, convexity, 1.0 / (silos * records), dimension * noise)


def unequal_silos_empirical_rate(
    *,
    lipschitz: ArrayLike,
    strong_convexity: ArrayLike,
    rounds: ArrayLike,
    dimension: ArrayLike,
    effective_noise: ArrayLike,
) -> Result:
    r"""Return the rate of the empirical excess risk with silos of their own sizes and budgets, for strongly convex losses.

    Parameters
    ----------
    lipschitz, strong_convexity : array_like
        L and mu, mu positive where the rate is to be finite.
    rounds, dimension : array_like
        R and d.
    effective_noise : array_like
        T, as in `unequal_silos_rate`.

    Returns
    -------
    ndarray or float
        :math:`\frac{L^2}{\mu}(1/R + dT)`, for R of at least :math:`2\kappa\ln(\beta\mu D^2/(L^2dT))`, the
        first term of `unequal_silos_rounds`; order only.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Lemma H.1.2 of Lowy and Razaviyayn 2023, equation 42. With all its constants: `mb_sgd_empirical_bound` at `mean_noise_std`.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> rate = isrl.unequal_silos_empirical_rate(
    ...     lipschitz=1.0, strong_convexity=0.1, rounds=500, dimension=10, effective_noise=4.733e-4
    ... )
    >>> print(f"{rate:.5f}")
    0.06733
    """
    lipschitz, convexity, rounds, dimension, noise = checked(locals())
    with np.errstate(divide="ignore"):
        return (lipschitz**2 / convexity * (1.0 / rounds + dimension * noise))[()]


def unequal_silos_step(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    rounds: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    dimension: ArrayLike,
    effective_noise: ArrayLike,
) -> Result:
    r"""Return the step size that the proof of Theorem H.1 takes for convex losses.

    Parameters
    ----------
    smoothness, diameter, lipschitz, rounds : array_like
        beta, D, L, R.
    num_records, silos_per_round, dimension, effective_noise : array_like
        As in `unequal_silos_rate`.

    Returns
    -------
    ndarray or float
        :math:`\min(1/\beta, \frac{D}{L\sqrt R}\min(\sqrt{n_{\min}M/R}, 1, 1/\sqrt{dRT}))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> step = isrl.unequal_silos_step(
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     rounds=500,
    ...     num_records=500,
    ...     silos_per_round=2.4,
    ...     dimension=10,
    ...     effective_noise=4.733e-4,
    ... )
    >>> print(format_upper(step, ".6f"))
    0.058143
    """
    beta, diameter, lipschitz, rounds, records, silos, dimension, noise = checked(locals())
    shrunk = np.minimum(np.sqrt(records * silos / rounds), 1.0 / np.sqrt(dimension * rounds * noise))
    return np.minimum(1.0 / beta, diameter / (lipschitz * np.sqrt(rounds)) * np.minimum(shrunk, 1.0))[()]


def unequal_silos_rounds(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    dimension: ArrayLike,
    effective_noise: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the number of rounds that the proof of Theorem H.1 needs; round it up.

    Parameters
    ----------
    smoothness, diameter, lipschitz : array_like
        beta, D, L.
    num_records, silos_per_round, dimension, effective_noise : array_like
        As in `unequal_silos_rate`.
    strong_convexity : array_like
        mu, in [0, smoothness].

    Returns
    -------
    ndarray or float
        :math:`(\beta D/L)\min(\sqrt{Mn_{\min}}, 1/\sqrt{dT}) + \min(n_{\min}M, 1/(dT))`, at least 1; for mu > 0
        :math:`2\kappa\ln(\beta\mu D^2/(L^2dT)) + Mn_{\min}`, the logarithm at least 0.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The convex case is printed with :math:`\sqrt{dT}` in place of its inverse (`hockeystick.published.unequal_silos_rounds`). With that,
    beta D^2/R is not below the rate: compare Theorem D.1.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> rounds = isrl.unequal_silos_rounds(
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     num_records=500,
    ...     silos_per_round=2.4,
    ...     dimension=10,
    ...     effective_noise=4.733e-4,
    ... )
    >>> print(format_upper(rounds, ".2f"))
    240.36
    """
    beta, diameter, lipschitz, records, silos, dimension, noise, convexity = checked(locals())
    enough = np.minimum(records * silos, 1.0 / (dimension * noise))
    convex = beta * diameter / lipschitz * np.sqrt(enough) + enough
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(np.maximum(beta * convexity * (diameter / lipschitz) ** 2 / (dimension * noise), 1.0))
        strong = 2.0 * beta / convexity * log + records * silos
    return np.maximum(np.where(convexity > 0, strong, convex), 1.0)[()]
