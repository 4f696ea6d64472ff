"""Lowy and Razaviyayn 2023, as printed: budgets, noise, step sizes and rounds of inter-silo record-level privacy, and the noise of the experiments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result, vector
from hockeystick.isrl import Budget, Stage, harmonic_participation, noisy_mb_sgd_accountant
from hockeystick.isrl import erm_rounds as corrected_rounds
from hockeystick.isrl import multistage_schedule as corrected_schedule
from hockeystick.isrl.domains import checked, checked_vectors, require_at_most, require_small_epsilon, scalars
from hockeystick.isrl.risk import require_small_steps, stability_of_steps
from hockeystick.published.warning import warn_unsound

__all__ = [
    "HeuristicNoise",
    "erm_rounds",
    "experimental_batch_size",
    "experimental_local_sgd_sigma",
    "experimental_sigma",
    "group_privacy",
    "min_batch_size",
    "multistage_schedule",
    "noisy_mb_sgd_sigma",
    "one_pass_sigma",
    "silo_noise_sigmas",
    "silo_xi",
    "step_size_convex",
    "subsampling_amplification",
    "unequal_silos_rounds",
    "uniform_stability",
    "user_level_to_isrl",
    "xi_aggregate",
]


def group_privacy(epsilon: ArrayLike, delta: ArrayLike, group_size: ArrayLike) -> Budget:
    """Return the guarantee of a group as Lemma D.9 has it: sound, and looser than `hockeystick.isrl.group_privacy`.

    Parameters
    ----------
    epsilon, delta : array_like
        Guarantee for one record; epsilon >= 0, delta in [0, 1].
    group_size : array_like
        Number of records k, a positive integer.

    Returns
    -------
    Budget
        k epsilon and k e^{(k-1) epsilon} delta, at most 1.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print("{:.1f} {:.4g}".format(*published.group_privacy(0.1, 1e-8, 10)))
    1.0 2.46e-07
    """
    epsilon, delta, group_size = checked(locals(), epsilon="non_negative", delta="probability", group_size="count")
    with np.errstate(over="ignore", invalid="ignore"):
        grown = delta * group_size * np.exp((group_size - 1) * epsilon)
    return Budget((group_size * epsilon)[()], np.where(delta == 0, 0.0, np.minimum(grown, 1.0))[()])


def user_level_to_isrl(epsilon: ArrayLike, delta: ArrayLike, num_records: ArrayLike) -> Budget:
    """Return the record-level budget of Appendix D.3.5: sound, and smaller than `hockeystick.isrl.user_level_to_isrl`.

    Parameters
    ----------
    epsilon : array_like
        Budget of the silo, in (0, 1].
    delta : array_like
        Budget of the silo, in [0, 1].
    num_records : array_like
        Records in the silo, n.

    Returns
    -------
    Budget
        epsilon/n and delta/(4n).

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print("{:.2f} {:.2g}".format(*published.user_level_to_isrl(1.0, 1e-5, 100)))
    0.01 2.5e-08
    """
    epsilon, delta, records = checked(locals(), epsilon="fraction", delta="probability")
    return Budget((epsilon / records)[()], (delta / (4.0 * records))[()])


def subsampling_amplification(epsilon: ArrayLike, delta: ArrayLike, sampling_rate: ArrayLike) -> Budget:
    """Return amplification by sampling as the proof of Theorem D.1 has it: sound, and loose.

    Parameters
    ----------
    epsilon : array_like
        Guarantee on the sample, in (0, 1].
    delta : array_like
        Guarantee on the sample, in [0, 1].
    sampling_rate : array_like
        Share q of the records in the sample, in (0, 1].

    Returns
    -------
    Budget
        2 q epsilon and delta.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print("{:.2f} {:.0e}".format(*published.subsampling_amplification(1.0, 1e-5, 0.1)))
    0.20 1e-05
    """
    epsilon, delta, rate = checked(locals(), epsilon="fraction", delta="probability", sampling_rate="fraction")
    return Budget((2.0 * rate * epsilon)[()], delta[()])


def noisy_mb_sgd_sigma(
    *, lipschitz: ArrayLike, num_records: ArrayLike, rounds: ArrayLike, epsilon: ArrayLike, delta: ArrayLike
) -> Result:
    r"""Return the noise that Theorems D.1 and F.1 print: 4 to 31 times what is needed.

    Parameters
    ----------
    lipschitz, num_records, rounds : array_like
        L, n, R.
    epsilon, delta : array_like
        Budget of the silo; epsilon at most 2 ln(2/delta).

    Returns
    -------
    ndarray or float
        :math:`16L\sqrt{R\ln(2.5R/\delta)\ln(2/\delta)}/(n\epsilon)`, whatever the batch size, which must be at least
        `min_batch_size`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl, published
    >>> sigma = published.noisy_mb_sgd_sigma(lipschitz=1.0, num_records=1000, rounds=50, epsilon=1.0, delta=1e-5)
    >>> needed = isrl.noisy_mb_sgd_sigma(
    ...     lipschitz=1.0, num_records=1000, batch_size=8, rounds=50, epsilon=1.0, delta=1e-5
    ... )
    >>> print(f"{sigma:.6f} {format_upper(needed, '.4f')}")
    1.597848 0.2048
    """
    lipschitz, records, rounds, epsilon, delta = checked(locals())
    require_small_epsilon(epsilon, delta)
    return (
        16.0 * lipschitz * np.sqrt(rounds * np.log(2.5 * rounds / delta) * np.log(2.0 / delta)) / records / epsilon
    )[()]


def min_batch_size(*, num_records: ArrayLike, rounds: ArrayLike, epsilon: ArrayLike, delta: ArrayLike) -> Result:
    r"""Return the batch size from which on the printed noise is proven to suffice; round it up.

    Parameters
    ----------
    num_records, rounds : array_like
        n, R.
    epsilon, delta : array_like
        Budget of the silo; epsilon at most 2 ln(2/delta).

    Returns
    -------
    ndarray or float
        :math:`\epsilon n/(4\sqrt{2R\ln(2/\delta)})`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the batch would exceed the silo, which the theorems forget.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.min_batch_size(num_records=1000, rounds=50, epsilon=1.0, delta=1e-5):.6f}")
    7.155698
    """
    records, rounds, epsilon, delta = checked(locals())
    require_small_epsilon(epsilon, delta)
    least = epsilon * records / (4.0 * np.sqrt(2.0 * rounds * np.log(2.0 / delta)))
    STRICT.require(
        lambda k, n: np.ceil(k) <= n,
        "epsilon must allow a batch within the silo",
        batch_size=least,
        num_records=records,
    )
    return least[()]


def one_pass_sigma(*, lipschitz: ArrayLike, batch_size: ArrayLike, epsilon: ArrayLike, delta: ArrayLike) -> Result:
    r"""Return the noise that Theorem E.1 prints for a single pass: up to 2.8 times what is needed.

    Parameters
    ----------
    lipschitz, batch_size : array_like
        L, K.
    epsilon, delta : array_like
        Budget of the silo; epsilon at most 8 ln(1/delta).

    Returns
    -------
    ndarray or float
        :math:`4L\sqrt{2\ln(1.25/\delta)}/(\epsilon K)`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.one_pass_sigma(lipschitz=1.0, batch_size=10, epsilon=1.0, delta=1e-5):.6f}")
    1.937922
    """
    lipschitz, batch, epsilon, delta = checked(locals())
    require_at_most("epsilon must be at most 8 ln(1/delta)", epsilon=epsilon, limit=8.0 * np.log(1.0 / delta))
    return (lipschitz * np.sqrt(32.0 * np.log(1.25 / delta)) / (epsilon * batch))[()]


def step_size_convex(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    rounds: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    dimension: ArrayLike,
    epsilon: ArrayLike,
) -> Result:
    r"""Return the step size of Theorem D.1: right in order, with a larger bound than `hockeystick.isrl.step_size_convex`.

    Parameters
    ----------
    smoothness, diameter, lipschitz : array_like
        beta, D, L.
    rounds, num_records, silos_per_round, dimension : array_like
        R, n, M, d.
    epsilon : array_like
        Budget of each silo.

    Returns
    -------
    ndarray or float
        :math:`\min(1/\beta, \frac{D}{L\sqrt R}\min(1, \epsilon n\sqrt{M/(Rd)}, \sqrt{nM/R}))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> eta = published.step_size_convex(
    ...     smoothness=1.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     rounds=50,
    ...     num_records=1000,
    ...     silos_per_round=25,
    ...     dimension=10,
    ...     epsilon=1.0,
    ... )
    >>> print(f"{eta:.6f}")
    0.282843
    """
    beta, diameter, lipschitz, number, records, silos, dimension, eps = checked(locals())
    private = eps * records * np.sqrt(silos / (number * dimension))
    shrunk = np.minimum(np.minimum(1.0, private), np.sqrt(records * silos / number))
    return np.minimum(1.0 / beta, diameter / (lipschitz * np.sqrt(number)) * shrunk)[()]


def uniform_stability(
    *,
    lipschitz: ArrayLike,
    rounds: ArrayLike,
    learning_rate: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    smoothness: ArrayLike,
    strong_convexity: ArrayLike = 0.0,
) -> Result:
    r"""Return the stability that Lemma D.2 prints: sound, and N/M times that of `hockeystick.isrl.uniform_stability`.

    Parameters
    ----------
    lipschitz, rounds, learning_rate : array_like
        L, R, eta; eta at most 1/smoothness.
    num_records, silos_per_round : array_like
        n, M.
    smoothness, strong_convexity : array_like
        beta, mu; mu in [0, beta].

    Returns
    -------
    ndarray or float
        :math:`2L^2R\eta/(nM)`, and for mu > 0 :math:`4L^2/(\mu(Mn - 1))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain; for mu > 0 the print asks for M > 1 and n > 1.

    Examples
    --------
    >>> from hockeystick import published
    >>> alpha = published.uniform_stability(
    ...     lipschitz=1.0, rounds=100, learning_rate=0.1, num_records=1000, silos_per_round=10, smoothness=1.0
    ... )
    >>> print(f"{alpha:.6f}")
    0.002000
    """
    lipschitz, number, rate, records, silos, beta, convexity = checked(locals())
    require_small_steps(rate, beta)
    STRICT.require(
        lambda least, mu: (least > 1) | (mu == 0),
        "silos_per_round and num_records must exceed 1 if strong_convexity is positive",
        smallest=np.minimum(silos, records),
        strong_convexity=convexity,
    )
    endless = np.where(convexity > 0, np.inf, number)  # of which the contracting bound is the smaller one
    return stability_of_steps(lipschitz, endless, rate, silos * records, convexity)[()]


def erm_rounds(
    *,
    lipschitz: ArrayLike,
    silos_per_round: ArrayLike,
    num_silos: ArrayLike,
    num_records: ArrayLike,
    batch_size: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    dimension: ArrayLike,
    diameter: ArrayLike,
    smoothness: ArrayLike,
) -> Result:
    r"""Return the rounds of Theorem F.1.1 as printed, with sqrt(beta D/L) in place of beta D/L: too few for its rate if that exceeds 1.

    Parameters
    ----------
    lipschitz, silos_per_round, num_silos, num_records, batch_size, epsilon, delta, dimension, diameter, smoothness : array_like
        As in `hockeystick.isrl.erm_rounds`, for convex smooth losses.

    Returns
    -------
    ndarray or float
        The larger of :math:`(\sqrt{\beta D/L}\sqrt M\epsilon n/\sqrt{d\ln(1/\delta)})^{1/2}` and
        :math:`\epsilon^2n^2/(Kd\ln(1/\delta))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> rounds = published.erm_rounds(
    ...     smoothness=100.0,
    ...     diameter=2.0,
    ...     lipschitz=1.0,
    ...     silos_per_round=25,
    ...     num_silos=25,
    ...     num_records=1000,
    ...     batch_size=100,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     dimension=10,
    ... )
    >>> print(f"{rounds:.3f}")
    86.859
    """
    arguments = {**locals()}
    beta, width, clip = checked({"smoothness": smoothness, "diameter": diameter, "lipschitz": lipschitz})
    root = np.sqrt(beta * clip / width)  # with it in place of beta, beta D/L is its root
    return corrected_rounds(**arguments | {"lipschitz": clip, "diameter": width, "smoothness": root})


def multistage_schedule(
    *, smoothness: float, strong_convexity: float, gradient_std: float, initial_gap: float, rounds: int
) -> list[Stage]:
    """Return the stages of Appendix E.1 as printed: phi is then always 2 beta, and stages do not halve the gap.

    Parameters
    ----------
    smoothness, strong_convexity, gradient_std, initial_gap : float
        As in `hockeystick.isrl.multistage_schedule`.
    rounds : int
        Rounds to spend in all.

    Returns
    -------
    list of Stage
        The same rounds, with R(R + 1)(R + 2) in the denominator of phi.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the first stage does not fit.

    Examples
    --------
    >>> from hockeystick import published
    >>> published.multistage_schedule(
    ...     smoothness=1.0, strong_convexity=0.1, gradient_std=1.0, initial_gap=1.0, rounds=2000
    ... )
    [Stage(rounds=1707, phi=2.0)]
    """
    stages = corrected_schedule(**locals())

    def phi(k: int, r: int) -> float:
        scale = strong_convexity * gradient_std**2 * 2.0**k / (3.0 * initial_gap)
        return max(2.0 * smoothness, math.sqrt(scale / (r * (r + 1) * (r + 2))))

    return [Stage(stage.rounds, phi(k, stage.rounds)) for k, stage in enumerate(stages)]


def silo_xi(*, num_records: ArrayLike, epsilons: ArrayLike, deltas: ArrayLike, rounds: ArrayLike) -> Array:
    r"""Return the quantity of Appendix H to which the printed noise variance of a silo is proportional.

    Parameters
    ----------
    num_records, epsilons, deltas : array_like
        n_i and the budget of each silo; one-dimensional, a single number is repeated.
    rounds : array_like
        R.

    Returns
    -------
    ndarray of shape (N,)
        :math:`\xi_i = \ln(2.5R/\delta_i)\ln(2/\delta_i)/(n_i\epsilon_i)^2`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the lengths differ.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(published.silo_xi(num_records=[1000, 500], epsilons=[1.0, 0.5], deltas=1e-5, rounds=50))
    [0.00019946 0.0031914 ]
    """
    records, eps, delta, number = checked_vectors(locals(), epsilons="positive", deltas="inside")
    require_small_epsilon(eps, delta)
    return np.asarray(np.log(2.5 * number / delta) * np.log(2.0 / delta) / (records * eps) ** 2)


def silo_noise_sigmas(
    *, lipschitz: ArrayLike, num_records: ArrayLike, epsilons: ArrayLike, deltas: ArrayLike, rounds: ArrayLike
) -> Array:
    r"""Return the noise that Theorem H.1 prints for unequal silos: as loose as `noisy_mb_sgd_sigma`.

    Parameters
    ----------
    lipschitz : array_like
        L.
    num_records, epsilons, deltas, rounds : array_like
        As in `silo_xi`.

    Returns
    -------
    ndarray of shape (N,)
        :math:`16L\sqrt{R\xi_i}`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or the lengths differ.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(
    ...     published.silo_noise_sigmas(
    ...         lipschitz=1.0, num_records=[1000, 500], epsilons=[1.0, 0.5], deltas=1e-5, rounds=50
    ...     )
    ... )
    [1.59784796 6.39139186]
    """
    clip = STRICT.positive("lipschitz", lipschitz)
    xi = silo_xi(num_records=num_records, epsilons=epsilons, deltas=deltas, rounds=rounds)
    return np.asarray(16.0 * clip * np.sqrt(STRICT.count("rounds", rounds) * xi))


def xi_aggregate(xi: ArrayLike, participation: Mapping[int, float]) -> Result:
    r"""Return the effective xi/M of Theorem H.1: sound, and never smaller than the exact mean.

    Parameters
    ----------
    xi : array_like
        `silo_xi`, one-dimensional.
    participation : mapping of int to float
        Probability of each number of silos in a round.

    Returns
    -------
    float
        :math:`\min(\Xi/M', \xi_{\max}/M)` with :math:`\Xi` the root mean square of the mean of the largest xi. Exact is
        mean(xi)/M.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.xi_aggregate([1.0, 4.0, 9.0], {2: 0.5, 3: 0.5}):.4f}")
    2.4042
    """
    values = np.sort(vector("xi", STRICT.non_negative("xi", xi)))[::-1]
    means = harmonic_participation(participation, values.size)
    tops = np.array([values[:number].mean() for number in participation])
    root = float(np.sqrt(np.array(list(participation.values())) @ tops**2))
    return min(root / means.harmonic_square, float(values[0]) / means.harmonic)


def unequal_silos_rounds(
    *,
    smoothness: ArrayLike,
    diameter: ArrayLike,
    lipschitz: ArrayLike,
    num_records: ArrayLike,
    silos_per_round: ArrayLike,
    dimension: ArrayLike,
    effective_noise: ArrayLike,
) -> Result:
    r"""Return the rounds that the proof of Theorem H.1 prints for convex losses: a term is inverted, so that they are too few.

    Parameters
    ----------
    smoothness, diameter, lipschitz, num_records, silos_per_round, dimension, effective_noise : array_like
        As in `hockeystick.isrl.unequal_silos_rounds`.

    Returns
    -------
    ndarray or float
        :math:`(\beta D/L)\min(\sqrt{Mn_{\min}}, \sqrt{dT}) + \min(n_{\min}M, 1/(dT))`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Counterexample: beta D/L = 10^6, M n_min = 10^4 and dT = 10^-2 give 10^5 + 100 rounds, where beta D^2/R is then 10 L D and the rate 0.11 L D.

    Examples
    --------
    >>> from hockeystick import isrl, published
    >>> setting = dict(smoothness=1e6, diameter=1.0, lipschitz=1.0, num_records=100, silos_per_round=100)
    >>> noise = dict(dimension=10, effective_noise=1e-3)
    >>> print(round(published.unequal_silos_rounds(**setting, **noise)), round(isrl.unequal_silos_rounds(**setting, **noise)))
    100100 10000100
    """
    beta, diameter, lipschitz, records, silos, dimension, noise = checked(locals())
    whole, private = records * silos, dimension * noise
    printed = beta * diameter / lipschitz * np.sqrt(np.minimum(whole, private)) + np.minimum(whole, 1.0 / private)
    return printed[()]


class HeuristicNoise(NamedTuple):
    """Noise of the paper's experiments, and what it really gives.

    Attributes
    ----------
    noise_std : float
        Standard deviation per coordinate.
    batch_size : int
        Batch size that was accounted for.
    certified_epsilon : float
        An upper bound of epsilon at the delta asked for, by `hockeystick.isrl.noisy_mb_sgd_accountant`, of batches that are drawn
        with replacement, as the paper draws them; perhaps infinite.
    """

    noise_std: float
    batch_size: int
    certified_epsilon: float


_HEURISTIC = "the noise of the experiments (Appendix I of Lowy and Razaviyayn, 2023) is a heuristic"
_INSTEAD = "hockeystick.isrl.noisy_mb_sgd_sigma"


def experimental_batch_size(*, num_records: ArrayLike, rounds: ArrayLike, epsilon: ArrayLike) -> Result:
    r"""Return the batch size that goes with `experimental_sigma`.

    Parameters
    ----------
    num_records, rounds : array_like
        n, R.
    epsilon : array_like
        Nominal budget.

    Returns
    -------
    ndarray or float
        :math:`n\sqrt\epsilon/(2\sqrt R)`; the experiments round it down.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import published
    >>> print(f"{published.experimental_batch_size(num_records=1238, rounds=35, epsilon=6.0):.4f}")
    256.2903
    """
    records, rounds, epsilon = checked(locals())
    return (records / 2.0 * np.sqrt(epsilon / rounds))[()]


def experimental_sigma(
    *, lipschitz: float, num_records: int, rounds: int, epsilon: float, delta: float
) -> HeuristicNoise:
    r"""Return the noise of the paper's experiments with mini-batch SGD: no certificate.

    Parameters
    ----------
    lipschitz : float
        L.
    num_records, rounds : int
        n, R.
    epsilon, delta : float
        Nominal budget of the silo.

    Returns
    -------
    HeuristicNoise
        :math:`2L\sqrt{2R\ln(1/\delta)}/(n\epsilon)` on the mean of a batch of `experimental_batch_size`, and its certified
        epsilon.

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
    Counterexample: for n = 1238, R = 35 and a nominal epsilon of 6 at delta = 1/n^2, linear losses attain at least 13.6. The paper
    draws batches with replacement (Section 4), so that a record may count several times. Drawn without replacement, the epsilon of
    the same noise lies between 8.89 and 9.36.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import format_upper, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     noise = published.experimental_sigma(
    ...         lipschitz=1.0, num_records=1238, rounds=35, epsilon=6.0, delta=1 / 1238**2
    ...     )
    >>> print(f"{noise.noise_std:.6f} nominal 6, certified {format_upper(noise.certified_epsilon, '.2f')}")
    0.008502 nominal 6, certified 14.77
    """
    clip, records, number, eps, d = scalars(locals())
    warn_unsound(_HEURISTIC, _INSTEAD)
    size = experimental_batch_size(num_records=records, rounds=number, epsilon=eps)
    batch = min(max(int(size), 1), records)
    return _heuristic(clip, records, number, eps, d, batch, replacement=True)


def _heuristic(  # noqa: PLR0917, checked arguments in their order
    clip: float, records: int, steps: int, epsilon: float, delta: float, batch: int, *, replacement: bool
) -> HeuristicNoise:
    sigma = float(2.0 * clip * np.sqrt(2.0 * steps * np.log(1.0 / delta)) / (records * epsilon))
    silo = noisy_mb_sgd_accountant(
        noise_std=sigma, lipschitz=clip, num_records=records, batch_size=batch, rounds=steps, replacement=replacement
    )
    return HeuristicNoise(sigma, batch, float(silo.epsilon(delta)))


def experimental_local_sgd_sigma(
    *, lipschitz: float, num_records: int, rounds: int, local_steps: int, epsilon: float, delta: float
) -> HeuristicNoise:
    r"""Return the noise of the paper's experiments with local SGD: no certificate, and far from one.

    Parameters
    ----------
    lipschitz : float
        L.
    num_records, rounds, local_steps : int
        n, R, K.
    epsilon, delta : float
        Nominal budget of the silo.

    Returns
    -------
    HeuristicNoise
        :math:`2L\sqrt{2RK\ln(1/\delta)}/(n\epsilon)` for every local step on one record, and the certified epsilon of all R K
        steps.

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
    The certified epsilon is that of releasing every step; if only the end of each round is sent, no theorem is known to give
    less. Counterexample: for linear losses the end of a round is the sum of its steps.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import format_upper, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     noise = published.experimental_local_sgd_sigma(
    ...         lipschitz=1.0, num_records=1238, rounds=35, local_steps=443, epsilon=0.75, delta=1 / 1238**2
    ...     )
    >>> print(f"{noise.noise_std:.6f} nominal 0.75, certified {format_upper(noise.certified_epsilon, '.2f')}")
    1.431503 nominal 0.75, certified 1.67
    """
    clip, records, number, local_steps, eps, d = scalars(locals())
    warn_unsound(_HEURISTIC, _INSTEAD)
    return _heuristic(clip, records, number * local_steps, eps, d, 1, replacement=False)
