"""Noise on real numbers: Gaussian, Laplace, staircases, and Laplace noise that is cut off."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import hockeystick._core as core
from hockeystick._checks import POSITIVE, PROBABILITY, interval, positive_scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import HANDFUL, MASS, SHORT_SUM_DOWN, SHORT_SUM_UP
from hockeystick.mechanisms.base import EPSILON, SENSITIVITY, Adjacency, Mechanism
from hockeystick.mechanisms.privacy_profile import PrivacyProfile, ProfiledMechanism

__all__ = ["Gaussian", "Laplace", "Staircase", "TruncatedLaplace"]

LEAST_NOISE = 2.0**-1022


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Gaussian noise on each coordinate of a number or a vector, whose sensitivity is measured in the Euclidean (L2) norm.

    Its sensitivity doubles where a record is replaced.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation in each coordinate over the L2 sensitivity: by how much adding or removing a record moves the
        vector at most, in the Euclidean norm, as a clip norm bounds it. Positive and finite.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.Gaussian(1.5)
    Gaussian(noise_multiplier=1.5)
    """

    noise_multiplier: float
    _never_refused: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(noise_multiplier=_noise_multiplier(self.noise_multiplier))

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.gaussian(self.noise_multiplier / SENSITIVITY[adjacency])


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise on each coordinate of a number or a vector, whose sensitivity is measured in the L1 norm.

    Its sensitivity doubles where a record is replaced.

    Parameters
    ----------
    noise_multiplier : float
        Scale b of the density e^{-abs(x)/b}/(2b) in each coordinate over the L1 sensitivity: by how much adding or removing a record
        moves the vector at most, in the sum of the absolute coordinates. Positive and finite. An L2 sensitivity or that of one
        coordinate is smaller, and would claim too little: in d dimensions L1 is up to sqrt(d), or d, times as large.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.Laplace(2.0)
    Laplace(noise_multiplier=2.0)
    """

    noise_multiplier: float
    _never_refused: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(noise_multiplier=_noise_multiplier(self.noise_multiplier))

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        return core.laplace(self.noise_multiplier / SENSITIVITY[adjacency])


def _noise_multiplier(value: float) -> float:
    """Return a checked noise multiplier: twice its reciprocal, the shift where a record is replaced, is finite."""
    noise = positive_scalar("noise_multiplier", value)
    if noise < LEAST_NOISE:
        raise ValueError(
            f"noise_multiplier must be at least 2^-1022, so that its reciprocal is finite, not {shown(noise)}"
        )
    return noise


MASS_UP, MASS_DOWN = 1.0 + MASS, 1.0 - MASS  # of tails of Laplace noise
CELLS = 300  # between the points of a curve


@dataclass(frozen=True)
class Staircase(ProfiledMechanism):
    r"""Staircase noise on one number (Geng and Viswanath 2016): the least error of all epsilon-DP noise.

    Nothing doubles where a record is replaced.

    Parameters
    ----------
    epsilon : float
        In (0, 600]: the density falls by :math:`e^{-\epsilon}` at each step. Steps are as long as the sensitivity under the adjacency in use.
    inner : float, optional
        gamma in [0, 1]: half the length of the middle step, over the sensitivity. By default :math:`1/(1 + e^{\epsilon/2})`, of the least mean absolute error.

    Notes
    -----
    arXiv:1212.1186, equation (23): the density is a on :math:`|x| < \gamma`, and :math:`a e^{-k \epsilon}` on
    :math:`k - 1 + \gamma \le |x| < k + \gamma`, in units of the sensitivity, with :math:`a = (1 - e^{-\epsilon})/(2(\gamma + e^{-\epsilon}(1 - \gamma)))`.

    A shift by d in [0, 1] takes a point across at most one edge, apart from those that it takes across the whole middle. So losses are
    -epsilon, 0 or epsilon. That of epsilon has the probability :math:`m(d) = a (\min(d, 2\gamma) + d e^{-\epsilon}/(1 - e^{-\epsilon}))`: the points before an edge on the one
    side, d wide at each, and those of the middle which leave it. It grows with d, and :math:`\delta(x) = m (1 - e^{x - \epsilon})` at
    x >= 0 in both orders. So the shift by 1 dominates all others, and its pair is exact. It is for one number, and not for a vector.

    Examples
    --------
    >>> import hockeystick as hs
    >>> for step in (hs.mechanisms.Staircase(1.0), hs.Laplace(1.0)):
    ...     print(hs.format_upper(hs.Accountant().compose(step, 20).epsilon(1e-6), ".3f"))
    19.999
    19.671
    """

    epsilon: float
    inner: float | None = None
    _for_one_adjacency: ClassVar[bool] = True
    _assumes: ClassVar[tuple[str, ...]] = (
        "staircase noise: of one number, which moves by at most the length of a step under this adjacency",
    )

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(epsilon=EPSILON)
        if self.inner is None:
            fall = math.exp(-self.epsilon / 2)
            self._set(inner=fall / (1.0 + fall))
        self._check(inner=PROBABILITY)

    def _profile(self, adjacency: Adjacency, *, upper: bool) -> PrivacyProfile:
        del adjacency  # the steps are as long as the sensitivity of the one in use
        assert self.inner is not None
        falls, rest = -math.expm1(-self.epsilon), math.exp(-self.epsilon)
        distance = falls * (falls * min(1.0, 2.0 * self.inner) + rest)
        distance /= 2.0 * (self.inner + rest * (1.0 - self.inner))
        distance *= SHORT_SUM_UP if upper else SHORT_SUM_DOWN
        return PrivacyProfile([0.0, self.epsilon], [min(distance, 1.0), 0.0])


@dataclass(frozen=True)
class TruncatedLaplace(ProfiledMechanism):
    r"""Laplace noise on one number that is drawn again until it is within some reach (Geng, Ding, Guo and Kumar 2020).

    Its sensitivity doubles where a record is replaced.

    Parameters
    ----------
    noise_multiplier : float
        Scale b of the density, which is proportional to :math:`e^{-|x|/b}`, over the sensitivity to adding or removing a record. In [1/300, 1e9].
    reach : float
        Half-width A of the interval that noise stays in, over the same sensitivity. Positive and finite.

    Notes
    -----
    arXiv:1810.00877. The number moves by at most s: 1, or 2 where a record is replaced. The noise is log-concave, so that the best tests are
    half-lines, and the shift by s dominates all smaller ones: :math:`P(X > t - d)` grows with d. With :math:`u = s/b`, :math:`w = e^{-A/b}` and
    epsilon below both u and (2A - s)/b, the best t is where the density ratio is :math:`e^\epsilon`, and in both orders

    .. math:: \delta(\epsilon) = \frac{2(1 - e^{(\epsilon - u)/2}) + w (e^\epsilon - 1)}{2(1 - w)}.

    Beyond that, delta is the mass that only one data set can give: :math:`w (e^u - 1)/(2(1 - w))` if A >= s,
    :math:`1 - (e^{-(s - A)/b} - w)/(2(1 - w))` if s/2 < A < s, and 1 if A <= s/2. So it is
    (1/noise_multiplier, delta)-DP with the first of these, as in the paper. The upper end has chords of this curve, the lower end tests.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.mechanisms.TruncatedLaplace(2.0, 20.0)
    >>> print(hs.format_upper(step.profile().remove[-1], ".3g"))
    1.48e-05
    """

    noise_multiplier: float
    reach: float
    _assumes: ClassVar[tuple[str, ...]] = ("truncated Laplace noise: of one number",)

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(noise_multiplier=interval("[1/300, 1e9]"), reach=POSITIVE)

    def _profile(self, adjacency: Adjacency, *, upper: bool) -> PrivacyProfile:
        moved = SENSITIVITY[adjacency]
        if 2.0 * self.reach <= moved:
            return PrivacyProfile([0.0], [1.0])
        if not upper:
            return self._tested(moved)
        last = min(moved, 2.0 * self.reach - moved) / self.noise_multiplier
        epsilons = np.linspace(0.0, last * SHORT_SUM_UP, CELLS + 1).tolist()
        before = [min(eps, last) * SHORT_SUM_DOWN for eps in epsilons]  # delta falls
        deltas = [min(self._delta(eps, moved) * MASS_UP, 1.0) for eps in before]
        only = self._above(self.reach - moved)  # the mass of what only one data set can give
        deltas[-1] = min(only * MASS_UP + sys.float_info.min, 1.0)  # and not 0, where it underflows
        return PrivacyProfile(epsilons, np.minimum.accumulate(deltas).tolist())

    def _delta(self, eps: float, moved: float) -> float:
        """Return delta before its end; all terms are positive."""
        rest = math.exp(-self.reach / self.noise_multiplier)
        inside = -2.0 * math.expm1(min(0.5 * (eps - moved / self.noise_multiplier), 0.0)) + rest * math.expm1(eps)
        return inside / (2.0 * -math.expm1(-self.reach / self.noise_multiplier))

    def _above(self, x: float) -> float:
        """Return the probability of noise above x, as a product: differences of small masses would cancel."""
        if x < 0.0:
            return 1.0 - self._above(-x)
        if x >= self.reach:
            return 0.0
        missing = math.expm1((x - self.reach) / self.noise_multiplier) / math.expm1(-self.reach / self.noise_multiplier)
        return 0.5 * math.exp(-x / self.noise_multiplier) * missing

    def _tested(self, moved: float) -> PrivacyProfile:
        """Return what tests by thresholds tell, the same in both orders: a polygon of points of the trade-off function, or just above."""
        only = self._above(self.reach - moved)  # the mass of what only one data set can give
        best = np.linspace(0.5 * moved, min(moved, self.reach), CELLS + 1).tolist()
        slack = HANDFUL * (self.reach + moved)  # so that rounding makes no test look better
        rates = [min(self._above(threshold - slack) * MASS_UP, 1.0) for threshold in best]
        found = [self._above(threshold - moved + slack) * MASS_DOWN for threshold in best]
        return PrivacyProfile(*core.tested_profile([0.0, 0.0, *rates, 1.0], [0.0, only * MASS_DOWN, *found, 1.0]))
