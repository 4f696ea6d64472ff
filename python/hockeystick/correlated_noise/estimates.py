"""Estimates of delta, by sampling, of what `balls_in_bins` and `min_separated_poisson` bound. No certificates.

Delta is a mean over samples of the likelihood ratio of P, the mixture of N(m, I) over the steps that a record is in, and Q = N(0, I); it has an interval of a
stated confidence. m is the sum of the columns of |C| of these steps, in units of the noise (`hockeystick.correlated_noise.conditional`).

Batches that are b-min-separated. A record throws a coin in every step that it may be in, and sits out the next b - 1 steps after one that it was in.
A banded C of at most b bands has no row in which the record counts twice, so that a step i that it is in multiplies the likelihood ratio by exp(<y, c_i> - |c_i|^2/2),
c_i the column, whatever else it is in. Let L_i be the ratio of what follows for a record that may be in step i:

    L_i = (1 - p) L_{i+1} + p exp(<y, c_i> - |c_i|^2/2) L_{i+b},    L_i = 1 beyond the last step.

L_0 is the ratio of all, in one pass (Dong and Ganesh 2026, arXiv 2602.09338). With a warm start it is the mean of L_j over the step j that the record may be in first.

Small deltas. Plain samples hardly ever show what a small delta is a mean of. So samples are drawn from another law R, and weighed by the ratio of the densities. Below, E is the mean over
the steps that the record is in.

- The record is removed: delta = E_P (1 - e^eps/L)_+. R is the mixture of N(s m, I), s >= 1, with weights in proportion to exp((s-1)|m|^2/2). With Z = E exp((s-1)|m|^2/2) and
  L_s = E exp(s <y, m> - (s^2 - s + 1)|m|^2/2) we have dR/dQ = L_s/Z and dP/dR = Z L/L_s. By Hölder's inequality with exponents s and s/(s-1), L <= L_s^(1/s) Z^((s-1)/s), so that no weighed sample is
  above Z^s L^(1-s) (1 - e^eps/L)_+ <= Z^s e^(-(s-1) eps) (s-1)^(s-1)/s^s. s is chosen where this bound is least. Of all weights these have the least such bound.
- The record is added: delta = E_Q (1 - e^eps L)_+. R is N(-s E m, I), s >= 0, so that dQ/dR = exp(s <y, E m> + s^2 |E m|^2/2). By Jensen's inequality log L >= <y, E m> - A with A = E |m|^2/2. So
  where L < e^-eps, dQ/dR is at most exp(s (A - eps) + s^2 |E m|^2/2). This bound is least at s = (eps - A)/|E m|^2, or at 0 if that is negative.

The mean of such samples is near delta, relative to it, however small delta is. The interval is in proportion to the bound of one sample, which falls with delta, but more slowly: it gets wider relative to delta.

Estimate, verify, release (after Wang, Mahloujifar, Wu, Jia and Mittal 2023, arXiv 2304.07927). A training is run only if the upper end of such an interval, of confidence 1 - beta, is at most
some delta that was chosen before. Then the whole, the decision with what may follow it, is (eps, max(delta, beta))-DP, with no confidence to it. Proof: the decision depends on no data. If
the training is (eps, delta)-DP, nothing is to be shown. Else the interval misses the truth whenever the training is run, so that it is run with a probability of at
most beta, on either data set, and P(S) <= e^eps Q(S) + beta for all sets of outcomes S. One interval decides, and a refusal is final: another training that runs instead is one
more release.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from hockeystick._checks import (
    OPEN_PROBABILITY,
    Array,
    at_most,
    count_scalar,
    non_negative_scalar,
    positive_scalar,
    scalar,
    seed_scalar,
    vector,
)
from hockeystick._checks.arguments import scalars
from hockeystick._numeric.search import SMALLEST
from hockeystick.correlated_noise.balls_in_bins import bin_sums, drawn_bins, in_noise
from hockeystick.correlated_noise.min_separation import drawn_apart
from hockeystick.correlated_noise.sensitivity import matrix_mechanism, strategy_array
from hockeystick.correlated_noise.thinning import first_steps
from hockeystick.mechanisms import ApproximateDP
from hockeystick.mechanisms.dominating import Dominating

AT_ONCE = 2**22  # numbers held in memory
LEAST = -700.0  # where the bound of a sample is below e^-700, this is taken for it


class DeltaEstimate(NamedTuple):
    """A mean over samples, and ends that hold with a stated confidence. Not certified.

    Attributes
    ----------
    mean, standard_error : float
        Of the direction that has the larger mean.
    lower, upper : float
        The truth lies between them with at least the confidence asked for. They are far apart where delta is small, even if the mean is near: samples that were not drawn may
        have been as large as the bound of one.
    epsilon, confidence : float
        What was asked.
    takes_part : str
        Which steps a record is in, in words.
    """

    mean: float
    standard_error: float
    lower: float
    upper: float
    epsilon: float
    confidence: float
    takes_part: str

    def verified(self, delta: float) -> Dominating:
        """Return what a training leaks that is run only if this estimate allows it: estimate, verify, release.

        Parameters
        ----------
        delta : float
            In (0, 1), chosen before the estimate was made.

        Returns
        -------
        Dominating
            (epsilon, max(delta, 1 - confidence))-DP, for a record added or removed (zeroed out).

        Raises
        ------
        ValueError
            If `upper` is above `delta`: then the training must not be run.

        Notes
        -----
        The proof is in `hockeystick.correlated_noise.estimates`. It needs one estimate, with a seed that was drawn at random for it, and no second one where it refuses.

        Examples
        --------
        >>> import hockeystick as hs
        >>> from hockeystick import correlated_noise
        >>> setting = {"steps": 100, "bins": 20, "noise_multiplier": 4.0}
        >>> found = correlated_noise.estimate_balls_in_bins_delta(
        ...     [1.0, 0.5], 1.0, **setting, confidence=1 - 1e-6, seed=7823
        ... )
        >>> hs.Accountant().compose(found.verified(3e-5)).epsilon(3e-5)
        1.0
        """
        delta = scalar("delta", delta, *OPEN_PROBABILITY)
        if not self.upper <= delta:
            raise ValueError(
                f"delta must be at least the estimate's upper end, {self.upper}, not {delta}: the training must not be run"
            )
        whole = matrix_mechanism(
            ApproximateDP(self.epsilon, max(delta, 1.0 - self.confidence)),
            takes_part=self.takes_part,
            adjacency="add_or_remove",
        )
        how = (
            f"one estimate by samples, in double precision from a seed that was drawn for it at random, decided that the training is run: at epsilon {self.epsilon} its upper end, of confidence "
            f"{self.confidence}, is at most {delta}"
        )
        return dataclasses.replace(whole, assumes=(*whole.assumes, how))


class Sampling:
    """At which epsilon delta is estimated, from how many samples, and with which confidence."""

    def __init__(self, eps: float, samples: int, confidence: float) -> None:
        """Check the arguments."""
        self.eps = non_negative_scalar("epsilon", eps)
        self.samples = count_scalar("samples", samples, 2)
        self.confidence = scalar("confidence", confidence, *OPEN_PROBABILITY)

    def estimate(self, law: Bins | Apart, rng: np.random.Generator, takes_part: str) -> DeltaEstimate:
        """Return the larger direction's estimate."""
        with np.errstate(under="ignore", over="ignore"):
            found = [self.removed(law, rng), self.added(law, rng)]
        lower, upper = (max(each[end] for each in found) for end in (2, 3))
        return DeltaEstimate(*max(found)[:2], lower, upper, self.eps, self.confidence, takes_part)

    def removed(self, law: Bins | Apart, rng: np.random.Generator) -> tuple[float, float, float, float]:
        """Return mean, standard error, lower and upper end where the record is removed."""

        def log_bound(log_excess: float) -> float:
            excess = math.exp(log_excess)
            s = 1.0 + excess
            return s * (law.log_weight(s) - math.log1p(excess)) + excess * (log_excess - self.eps)

        best = minimize_scalar(log_bound, bounds=(-7.0, 7.0), method="bounded", options={"xatol": 1e-2})
        s, bound = (1.0 + math.exp(best.x), max(float(best.fun), LEAST)) if best.fun < 0.0 else (1.0, 0.0)
        weight = law.log_weight(s) - bound
        draws = np.empty(self.samples)
        for part in self._parts(law):
            ratio, power = law.removed(rng, part.stop - part.start, s)
            draws[part] = _excess(weight + ratio - power, self.eps - ratio)
        return self._interval(draws, bound)

    def added(self, law: Bins | Apart, rng: np.random.Generator) -> tuple[float, float, float, float]:
        """Return mean, standard error, lower and upper end where the record is added."""
        half, square = law.mean()
        s = min(max(self.eps - half, 0.0) / max(square, SMALLEST), -LEAST / max(self.eps - half, SMALLEST))
        bound = s * (half - self.eps) + s * s * square / 2.0
        draws = np.empty(self.samples)
        for part in self._parts(law):
            ratio, along = law.added(rng, part.stop - part.start, s)
            draws[part] = _excess(s * along + s * s * square / 2.0 - bound, self.eps + ratio)
        return self._interval(draws, bound)

    def _parts(self, law: Bins | Apart) -> list[slice]:
        """Return the samples that are drawn at once."""
        size = max(1, AT_ONCE // law.numbers)
        return [slice(first, min(first + size, self.samples)) for first in range(0, self.samples, size)]

    def _interval(self, draws: Array, log_bound: float) -> tuple[float, float, float, float]:
        """Return mean, standard error and ends of draws from [0, 1], times the bound; there are two directions with two ends each."""
        depth = math.log(2.0 * 4.0 / (1.0 - self.confidence))
        mean, variance = float(draws.mean()), float(draws.var(ddof=1))
        off = math.sqrt(2.0 * variance * depth / draws.size) + 7.0 * depth / (3.0 * (draws.size - 1))
        unit = math.exp(log_bound)
        error = math.sqrt(variance / draws.size)
        return mean * unit, error * unit, max(0.0, mean - off) * unit, min(1.0, mean + off) * unit


def _excess(log_weight: Array, gap: Array) -> Array:
    """Return weights times (1 - e^gap)_+."""
    excess: Array = np.exp(np.where(gap < 0.0, log_weight, -np.inf)) * -np.expm1(np.minimum(gap, 0.0))
    return excess


def _log_mean(logs: Array) -> Array:
    """Return the logarithms of means over the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    means: Array = top[..., 0] + np.log(np.exp(logs - top).mean(axis=-1))
    return means


def estimate_balls_in_bins_delta(
    strategy: ArrayLike,
    epsilon: float,
    *,
    steps: int | None = None,
    bins: int,
    noise_multiplier: float,
    samples: int = 100_000,
    confidence: float = 0.99,
    seed: int,
) -> DeltaEstimate:
    """Estimate the delta of a matrix mechanism with balls-in-bins batches by sampling its likelihood ratio.

    Parameters
    ----------
    strategy : array_like
        C, or its coefficients: see `balls_in_bins`.
    epsilon : float
        Non-negative and finite, chosen before the samples are seen.
    steps : int, optional
        With coefficients, and only there: the number of steps.
    bins : int
        As in `balls_in_bins`.
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.
    samples : int
        How many, at least 2.
    confidence : float
        In (0, 1): the probability with which both ends hold.
    seed : int
        Of `numpy.random.default_rng`, in [0, 2^64).

    Returns
    -------
    DeltaEstimate
        An estimate, with an empirical Bernstein interval (Maurer and Pontil 2009, Theorem 4) in each direction.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If an argument is of a wrong type.

    Notes
    -----
    The law and the likelihood ratio are those in `hockeystick.correlated_noise.balls_in_bins`, sampled in as many dimensions as there are bins. Where C has
    no negative entry the pair is attained, and this is the delta of the mechanism.

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> setting = {"steps": 100, "bins": 20, "noise_multiplier": 4.0}
    >>> found = correlated_noise.estimate_balls_in_bins_delta([1.0, 0.5], **setting, epsilon=0.5, seed=1)
    >>> bound = correlated_noise.balls_in_bins([1.0, 0.5], **setting).delta(0.5)
    >>> found.lower <= bound
    True
    """
    noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
    sampling = Sampling(epsilon, samples, confidence)
    sums, _ = bin_sums(strategy, steps, bins, noise_multiplier)
    rng = np.random.default_rng(seed_scalar("seed", seed))
    return sampling.estimate(Bins(sums), rng, drawn_bins(sums.shape[1]))


class Bins:
    """The bin of a record; samples are <y, m_j> for all bins j."""

    def __init__(self, sums: Array) -> None:
        self._root = np.linalg.qr(sums, mode="r")  # of the covariances: off by little in each column, however short
        self._covariances = sums.T @ sums
        self._halves, self.numbers = 0.5 * np.diag(self._covariances), sums.shape[1]

    def _log_weights(self, s: float) -> Array:
        return (s - 1.0) * self._halves

    def log_weight(self, s: float) -> float:
        """Return log Z."""
        return float(_log_mean(self._log_weights(s)))

    def removed(self, rng: np.random.Generator, count: int, s: float) -> tuple[Array, Array]:
        """Return log L and log L_s of draws from R."""
        logs = self._log_weights(s)
        weights = np.exp(logs - logs.max())
        bins = rng.choice(self.numbers, size=count, p=weights / weights.sum())
        along = self._normal(rng, count) + s * self._covariances[bins]
        return _log_mean(along - self._halves), _log_mean(s * along - (s * s - s + 1.0) * self._halves)

    def mean(self) -> tuple[float, float]:
        """Return A and |E m|^2."""
        return float(self._halves.mean()), float(self._covariances.mean())

    def added(self, rng: np.random.Generator, count: int, s: float) -> tuple[Array, Array]:
        """Return log L and <y, E m> of draws from N(-s E m, I)."""
        along = self._normal(rng, count) - s * self._covariances.mean(axis=0)
        return _log_mean(along - self._halves), along.mean(axis=1)

    def _normal(self, rng: np.random.Generator, count: int) -> Array:
        draws: Array = rng.standard_normal((count, len(self._root))) @ self._root
        return draws


MAX_STEPS = 2.0**20


def estimate_min_separation_delta(
    strategy: ArrayLike,
    epsilon: float,
    *,
    steps: int,
    separation: int,
    sampling_rate: float,
    noise_multiplier: float,
    warm_start: bool = False,
    samples: int = 100_000,
    confidence: float = 0.99,
    seed: int,
) -> DeltaEstimate:
    """Estimate the delta of a banded matrix mechanism with b-min-separated batches by sampling its likelihood ratio.

    Parameters
    ----------
    strategy : array_like of shape (bands,)
        Coefficients of a lower triangular Toeplitz matrix C, at most `separation` of them. Absolute values count.
    epsilon : float
        Non-negative and finite, chosen before the samples are seen.
    steps : int
        Number of steps, from 1 to 2^20.
    separation : int
        b, at least 1: after a step that it was in, a record sits out the next b - 1. With b = 1 every step draws its own Poisson sample.
    sampling_rate : float
        Probability, in [0, 1], with which a record is in a step that it may be in; by a coin of its own, fresh and secret.
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.
    warm_start : bool
        Whether each record starts by sitting out a random number of steps: see `min_separated_poisson`.
    samples : int
        How many, at least 2.
    confidence : float
        In (0, 1): the probability with which both ends hold.
    seed : int
        Of `numpy.random.default_rng`, in [0, 2^64).

    Returns
    -------
    DeltaEstimate
        An estimate, with an empirical Bernstein interval (Maurer and Pontil 2009, Theorem 4) in each direction; for a record added or removed
        (zeroed out).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or there are more bands than `separation`.
    TypeError
        If an argument is of a wrong type.

    Notes
    -----
    Dong and Ganesh 2026 (arXiv 2602.09338); the law and its ratio are in `hockeystick.correlated_noise.estimates`. `min_separated_poisson` has a certified
    upper bound of the same quantity.

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> setting = {"steps": 50, "separation": 2, "sampling_rate": 0.02, "noise_multiplier": 6.0}
    >>> found = correlated_noise.estimate_min_separation_delta([1.0, 0.5], **setting, epsilon=0.1, seed=1)
    >>> bound = correlated_noise.min_separated_poisson([1.0, 0.5], **setting).delta(0.1)
    >>> found.lower <= bound
    True
    """
    array = vector("strategy", strategy_array(strategy))
    steps, separation, rate, noise_multiplier, warm_start, seed = scalars(locals(), epsilon=None)
    at_most("steps", steps, "the largest supported", MAX_STEPS)
    at_most("bands of strategy", len(array), "separation", separation)
    first = first_steps(rate, separation) if warm_start else np.ones(1)
    sampling = Sampling(epsilon, samples, confidence)
    column = in_noise(np.abs(array[:steps]), noise_multiplier)
    rng = np.random.default_rng(seed)

    law = Apart(column, steps, separation, rate, first=first)
    return sampling.estimate(law, rng, drawn_apart(rate, separation, warm_start=warm_start))


class Apart:
    """The steps that a record is in, at least some `separation` apart; `first` is the law of the first that it may be in, at most `separation` - 1."""

    def __init__(self, column: Array, steps: int, separation: int, rate: float, *, first: Array) -> None:
        self._column, self._steps, self._separation = column, steps, separation
        self._rate, self._first = rate, first
        self.numbers = 3 * steps
        squares = np.cumsum(column * column)
        self._halves = 0.5 * squares[np.minimum(np.arange(steps, 0, -1), len(column)) - 1]

    def log_ratio(self, outcomes: Array, s: float = 1.0) -> Array:
        """Return log L_s of outcomes of shape (steps, samples)."""

        def exponents(step: int) -> Array:
            rows = min(len(self._column), self._steps - step)
            along = self._column[:rows] @ outcomes[step : step + rows]
            own: Array = s * along - (s * s - s + 1.0) * self._halves[step]
            return own

        return self._whole(self._following(exponents, outcomes.shape[1]))

    def _following(self, exponents: Callable[[int], Array | float], samples: int) -> Array:
        """Return log L_i for all steps i and beyond, with these exponents in place of those of the likelihood ratio."""
        with np.errstate(divide="ignore"):
            stays, goes = np.log1p(-self._rate), np.log(self._rate)
        following = np.zeros((self._steps + 1, samples))
        for step in range(self._steps - 1, -1, -1):
            later = following[min(step + self._separation, self._steps)]
            following[step] = np.logaddexp(stays + following[step + 1], goes + exponents(step) + later)
        return following

    def _whole(self, following: Array) -> Array:
        """Return the logarithm of the mean over the first step that the record may be in."""
        starts = following[np.minimum(np.arange(len(self._first)), self._steps)]
        with np.errstate(divide="ignore"):
            whole: Array = np.logaddexp.reduce(np.log(self._first)[:, np.newaxis] + starts, axis=0)
        return whole

    def _weights(self, s: float) -> Array:
        return self._following(lambda step: (s - 1.0) * self._halves[step], 1)

    def log_weight(self, s: float) -> float:
        """Return log Z."""
        return float(self._whole(self._weights(s))[0])

    def removed(self, rng: np.random.Generator, count: int, s: float) -> tuple[Array, Array]:
        """Return log L and log L_s of draws from R."""
        later = self._weights(s)[:, 0]
        starts = np.minimum(np.arange(len(self._first)), self._steps)
        first = self._first * np.exp(later[starts] - later[starts].max())
        free = rng.choice(len(first), size=count, p=first / first.sum())  # the next step that the record may be in
        outcomes = rng.standard_normal((self._steps, count))
        goes = math.log(self._rate) if self._rate > 0.0 else -math.inf
        for step in range(self._steps):
            after = later[min(step + self._separation, self._steps)]
            rate = math.exp(min(goes + (s - 1.0) * self._halves[step] + after - later[step], 0.0))
            drawn = np.flatnonzero((free <= step) & (rng.random(count) < rate))
            free[drawn] = step + self._separation
            rows = min(len(self._column), self._steps - step)
            outcomes[step : step + rows, drawn] += s * self._column[:rows, np.newaxis]
        return self.log_ratio(outcomes), self.log_ratio(outcomes, s)

    def _rates(self) -> Array:
        """Return with which probability the record is in each step."""
        free = np.zeros(self._steps)  # that it may be in it
        for step in range(self._steps):
            free[step] = self._first[step] if step < len(self._first) else 0.0
            if step > 0:
                free[step] += (1.0 - self._rate) * free[step - 1]
            if step >= self._separation:
                free[step] += self._rate * free[step - self._separation]
        return self._rate * free

    def _mean(self) -> Array:
        """Return E m."""
        mean: Array = np.convolve(self._rates(), self._column)[: self._steps]
        return mean

    def mean(self) -> tuple[float, float]:
        """Return A and |E m|^2."""
        return float(self._rates() @ self._halves), float(self._mean() @ self._mean())

    def added(self, rng: np.random.Generator, count: int, s: float) -> tuple[Array, Array]:
        """Return log L and <y, E m> of draws from N(-s E m, I)."""
        mean = self._mean()
        outcomes = rng.standard_normal((self._steps, count)) - s * mean[:, np.newaxis]
        return self.log_ratio(outcomes), mean @ outcomes
