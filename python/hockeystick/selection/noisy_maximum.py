"""Report-noisy-max: the candidate whose score is the largest after noise is released, and neither scores nor noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

import hockeystick._core as core
from hockeystick._checks import Array, boolean_scalar, choice, count_scalar, positive_scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import GAUSSIAN_TAIL, HANDFUL, SHORT_SUM_UP
from hockeystick._numeric.search import halve
from hockeystick.kernels import laplace_theta, log_q, q, q_inv
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism
from hockeystick.mechanisms.dominating import Dominating
from hockeystick.mechanisms.privacy_profile import LARGEST_EPSILON, PrivacyProfile
from hockeystick.mechanisms.selection import ExponentialMechanism, PermuteAndFlip
from hockeystick.selection.curves import GAUSSIAN_NOISE, OneDirection, end_of, gaussian_curve, profile_until

__all__ = ["GaussianNoisyMaximum", "LaplaceNoisyMaximum", "noisy_maximum"]

Noise: TypeAlias = Literal["gumbel", "exponential", "laplace", "gaussian"]
NOISES = ("gumbel", "exponential", "laplace", "gaussian")
# Cells in which the best threshold is sought: a 200th of the shift, or what memory lets be; a smaller shift is not asked.
WIDTH, LEAST_WIDTH, CELLS, MOST_CELLS, LEAST_SHIFT = 5e-4, 1e-4, 200, 4000, 1e-3
MONOTONE = "a record that is added or removed moves all scores in one direction"
FAR = 14.0  # standard deviations beyond the shift: what is further out is 1e-40


def noisy_maximum(
    noise: Noise, noise_multiplier: float, *, num_candidates: int | None = None, monotone: bool = False
) -> Mechanism:
    r"""Return the mechanism that adds noise to every score and releases which one is the largest.

    Parameters
    ----------
    noise : {"gumbel", "exponential", "laplace", "gaussian"}
        Drawn for each score, independently.
    noise_multiplier : float
        Its scale (Gaussian: standard deviation) over the sensitivity of one score under the adjacency in use.
    num_candidates : int, optional
        How many scores there are, at least 2. Needed for Gaussian noise; the others are the same for any number.
    monotone : bool
        True if a record moves all scores in one direction, as counts when it is added or removed. They do not if it is replaced.

    Returns
    -------
    Mechanism
        For noise of scale b, epsilon is 2/b (1/b if monotone), of `ExponentialMechanism` for Gumbel noise and of `PermuteAndFlip` for exponential noise, which are
        the same algorithms. For Laplace and Gaussian noise `LaplaceNoisyMaximum` and `GaussianNoisyMaximum`. If monotone it is refused where a record is
        replaced.

    Raises
    ------
    ValueError
        If a number is outside its domain, or the number of candidates is missing.
    TypeError
        If an argument is of a wrong type.

    Notes
    -----
    Gumbel: McSherry and Talwar 2007. Exponential: Ding, Kifer, Steinke and others 2021.

    Examples
    --------
    >>> import hockeystick as hs
    >>> for noise in ("gumbel", "laplace", "gaussian"):
    ...     step = hs.selection.noisy_maximum(noise, 10.0, num_candidates=100)
    ...     print(noise, hs.format_upper(hs.Accountant().compose(step, 20).epsilon(1e-6), ".3f"))
    gumbel 1.972
    laplace 3.671
    gaussian 9.250
    """
    choice("noise", noise, NOISES)
    monotone = boolean_scalar("monotone", monotone)
    if noise == "gaussian":
        if num_candidates is None:
            raise ValueError("num_candidates must be given for Gaussian noise, not None")
        return GaussianNoisyMaximum(noise_multiplier, num_candidates, monotone)
    if num_candidates is not None:
        count_scalar("num_candidates", num_candidates, 2)
    if noise == "laplace":
        return LaplaceNoisyMaximum(noise_multiplier, monotone)
    epsilon = _epsilon(noise_multiplier, monotone)
    step = ExponentialMechanism(epsilon) if noise == "gumbel" else PermuteAndFlip(epsilon)
    return (
        Dominating(step, step, assumes=(MONOTONE, *step.assumptions()), adjacency="add_or_remove") if monotone else step
    )


@dataclass(frozen=True)
class LaplaceNoisyMaximum(OneDirection):
    r"""Report-noisy-max with Laplace noise.

    Parameters
    ----------
    noise_multiplier : float
        Scale of each score's noise over the sensitivity of one score under the adjacency in use; at least 1/300 (1/600 if monotone).
    monotone : bool
        True if a record moves all scores in one direction.

    Notes
    -----
    With epsilon = 2/noise_multiplier (1/noise_multiplier if monotone) it is epsilon-DP (Dwork and Roth 2014, Claim 3.9), and the curve of Laplace
    noise at distance epsilon dominates (docs/core/loss.md), for any number of candidates. The lower end is that of choices between two candidates, with the gap of scores
    that a search finds worst: a score that is lower by a wins with probability :math:`\tfrac12 (1 + \tfrac a2) e^{-a}`, in units of the noise.

    Examples
    --------
    >>> import hockeystick as hs
    >>> ledger = hs.Accountant().compose(hs.selection.LaplaceNoisyMaximum(10.0), 20)
    >>> print(hs.format_upper(ledger.epsilon(1e-6), ".3f"))
    3.671
    """

    noise_multiplier: float
    monotone: bool = False
    _moved: ClassVar[str] = "noisy maximum: a record moves all scores in one direction"

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(monotone=boolean_scalar)
        _epsilon(self.noise_multiplier, self.monotone)
        self._set(noise_multiplier=float(self.noise_multiplier))

    def _said(self) -> str:
        return "noisy maximum: no score moves by more than the sensitivity used, and only the winner is released"

    def _upper_profile(self) -> PrivacyProfile:
        epsilon = _epsilon(self.noise_multiplier, self.monotone)
        return profile_until(lambda eps: np.asarray(laplace_theta(eps, epsilon)) * SHORT_SUM_UP, epsilon)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        distance = self._moves / self.noise_multiplier
        return super()._pairs(adjacency) if upper else [(core.two_candidates(distance, False), 1.0)]


def _epsilon(noise_multiplier: float, monotone: bool) -> float:
    """Return the epsilon of noise of this scale, rounded up."""
    scale = positive_scalar("noise_multiplier", noise_multiplier)
    epsilon = (1.0 if monotone else 2.0) / scale * (1.0 + HANDFUL)
    if not epsilon <= LARGEST_EPSILON:
        raise ValueError(
            f"noise_multiplier must be at least {1 / 300 if not monotone else 1 / 600:g}, not {shown(scale)}"
        )
    return epsilon


@dataclass(frozen=True)
class GaussianNoisyMaximum(OneDirection):
    r"""Report-noisy-max with Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of each score's noise over the sensitivity of one score under the adjacency in use, in [0.01, 1e9].
    num_candidates : int
        k, at least 2.
    monotone : bool
        True if a record moves all scores in one direction.

    Notes
    -----
    The smallest of three bounds, with d = 2/noise_multiplier (1/noise_multiplier if monotone).

    *All scores.* The maximum is seen from differences of the noisy scores. Of a change of the scores, its part along (1, ..., 1) does not count,
    and what is left has at most the length :math:`d \sqrt{j (k-j)/k}`, j = k/2 rounded down: it is largest where scores move by the most,
    up or down. So the curve of Gaussian noise at this distance is a bound; for two candidates it is attained.

    *One outcome at a time.* Given the noise of the others, outcome i needs noise above some x, and after the change at most x + d. As
    :math:`u \mapsto \Phi(\Phi^{-1}(u) - d)` is convex, its mean over x gives :math:`Q_i \ge \Phi(\Phi^{-1}(P_i) - d)`. Then
    :math:`\delta(\epsilon) \le \sum_i g(P_i)`, where :math:`g(u) = (u - e^\epsilon \Phi(\Phi^{-1}(u) - d))_+` is concave where it is positive, and 0 at 0. With probabilities that
    sum to 1 that is at most k g(1/k), or k times the largest g, which is the Gaussian delta, if that is at a u below 1/k.

    *Sets of outcomes.* As for exponential noise in docs/core/loss.md, :math:`P(S) \le G(d)` and :math:`Q(S) = G(0)`, where G is the law of a difference of
    two maxima. The density of the maximum of m Gaussians where it is exceeded with probability u is at most :math:`I(u)`, that of m equal ones: with
    :math:`y_j = -\log \Phi_j` it is :math:`(1 - u) \sum_j h(y_j)`, where :math:`h = \varphi/\Phi` is concave in y (its second derivative is
    :math:`-(1 - h (x + h))/h < 0`, as :math:`1 - h (x + h)` is the variance of a truncated normal variable) and the :math:`y_j` have a given sum. I grows with m, and is concave since that
    maximum is log-concave. So :math:`G' \le \min(I(G), I(1 - G))` with m = k - 1, by Jensen's inequality in the other maximum. Let F be the distribution function with
    :math:`F' = I(F)` up to 1/2, the upper tail of the maximum of k - 1 Gaussians, and symmetric. Then :math:`F^{-1}(G(x))` has a slope of at most 1, and

    .. math:: \delta(\epsilon) \le \sup_x\, (F(x + d) - e^\epsilon F(x)).

    The distance counts in units of that maximum's spread, so that the bound grows with :math:`\sqrt{2 \log k}` and not with :math:`\sqrt{k}`; it is asked for d >= 0.001. Cf. Lebensold, Precup and Balle
    2024 (arXiv:2402.06137), whose bounds are for scores in a bounded interval. The curve is followed down to a delta of 1e-30, below which epsilon
    is infinite. The lower end is that of choices between two candidates, far above all others, with the gap of scores that a search finds worst.

    Examples
    --------
    >>> import hockeystick as hs
    >>> few, many = hs.selection.GaussianNoisyMaximum(10.0, 10), hs.selection.GaussianNoisyMaximum(10.0, 1000)
    >>> for step in (few, many):
    ...     print(hs.format_upper(hs.Accountant().compose(step).epsilon(1e-6), ".3f"))
    0.931
    1.105
    """

    noise_multiplier: float
    num_candidates: int
    monotone: bool = False
    _moved: ClassVar[str] = LaplaceNoisyMaximum._moved

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(noise_multiplier=GAUSSIAN_NOISE)
        self._set(num_candidates=count_scalar("num_candidates", self.num_candidates, 2))
        self._check(monotone=boolean_scalar)

    def _said(self) -> str:
        return f"noisy maximum: no score of the {self.num_candidates} moves by more than the sensitivity used, and only the winner is released"

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        distance = self._moves / self.noise_multiplier / math.sqrt(2.0)
        return super()._pairs(adjacency) if upper else [(core.two_candidates(distance, True), 1.0)]

    def _upper_profile(self) -> PrivacyProfile:
        k, distance, half = self.num_candidates, self._moves / self.noise_multiplier, self.num_candidates // 2
        sets = _BySets(k - 1, distance) if k > 2 and distance >= LEAST_SHIFT else None

        def bound(eps: Array) -> Array:
            several = gaussian_curve(eps, distance * math.sqrt(half * (k - half) / k))
            found = np.minimum(several, _by_outcomes(eps, distance, k))
            return np.minimum(found, sets.bound(eps)) if sets else found

        return profile_until(bound, end_of(bound))


def _by_outcomes(eps: Array, distance: float, count: int) -> Array:
    """Return the bound from each outcome alone."""
    largest_at = q(eps / distance - 0.5 * distance)
    alone = count * gaussian_curve(eps, distance)
    moved = q(q_inv(1.0 / count) + distance) * count
    with np.errstate(over="ignore"):
        equal = -np.expm1(np.minimum(eps + math.log(moved), 0.0)) if moved > 0.0 else np.ones_like(eps)
    # Above where g is largest, k g(1/k) is a bound too, and below it k times the largest: near the place itself the larger is taken.
    inside = 1.0 / count < np.asarray(largest_at) * (1.0 - 1e-9)
    return np.where(inside, np.clip(equal + 8.0 * GAUSSIAN_TAIL, 0.0, 1.0), np.minimum(alone, 1.0))


class _BySets:
    """The bound from sets of outcomes, by cells of the threshold x: none is missed, since F does not fall."""

    def __init__(self, others: int, distance: float) -> None:
        finest = max(min(WIDTH, distance / CELLS), LEAST_WIDTH, distance / MOST_CELLS)
        width = distance / math.ceil(distance / finest)
        cells = round(distance / width)
        # log Phi of the median of the maximum is -log(2)/others
        target = -math.log(2.0) / others
        median = halve(lambda x: log_q(-x) <= target, -1.0, 40.0, tolerance=1e-14, smallest=1.0)[0]
        far = math.ceil((FAR + distance) / width) + 1
        x = np.arange(-far, far + 1) * width
        tail = -np.expm1(others * np.asarray(log_q(-(np.abs(x) + median))))
        law = np.where(x <= 0.0, tail, 1.0 - tail)
        # F(x + d) at the right end of each cell, and F(x) at its left end
        self._after = law[cells + 1 :] * (1.0 + GAUSSIAN_TAIL)
        self._before = law[: -cells - 1] * (1.0 - GAUSSIAN_TAIL)

    def bound(self, eps: Array) -> Array:
        """Return the largest F(x + d) - e^eps F(x) at each of some increasing epsilons."""
        found = np.empty(eps.size)

        def fill(first: int, last: int, low: int, high: int) -> None:
            """Find those of some epsilons, whose best cells are among some: the larger epsilon is, the smaller is the best F."""
            if first < last:
                middle = (first + last) // 2
                values = self._after[low:high] - math.exp(eps[middle]) * self._before[low:high]
                best = low + int(values.argmax())
                found[middle] = values[best - low]
                fill(first, middle, best, high)
                fill(middle + 1, last, low, best + 1)

        fill(0, eps.size, 0, self._after.size)
        return np.clip(found, self._after[1], 1.0)  # at least what is below all cells, and 1 - F above them
