"""Which groups of the data are shown at all: partition selection, where a group that one user alone is in would name that user."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from hockeystick._checks import Array, at_most, count_scalar, interval, scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import GAUSSIAN_TAIL, HANDFUL, SHORT_SUM_UP
from hockeystick.kernels import laplace_theta, q
from hockeystick.mechanisms.base import Adjacency, CountedPair
from hockeystick.mechanisms.discrete import Discrete
from hockeystick.mechanisms.noise import Gaussian, Laplace
from hockeystick.mechanisms.privacy_profile import PrivacyProfile, ProfiledMechanism
from hockeystick.selection.curves import GAUSSIAN_NOISE, end_of, gaussian_curve, profile_until

__all__ = ["OptimalPartitions", "ThresholdedPartitions"]

MOST_PARTITIONS = 10**6


class _Partitions(ProfiledMechanism):
    """Groups that are shown or not, each by its own randomness."""

    partitions: int

    def _check_partitions(self) -> None:
        self._check(partitions=count_scalar)
        at_most("partitions", self.partitions, "the largest supported", MOST_PARTITIONS)

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        return [(pair, times * self.partitions) for pair, times in super()._pairs(adjacency, upper=upper)]

    def _require_adjacency(self, adjacency: Adjacency) -> None:
        if adjacency != "add_or_remove":
            raise self._refusal(
                adjacency,
                "a user is added to the groups or removed; one who is replaced is both, so twice the partitions",
            )

    def keep_probability(self, num_users: int) -> float:
        """Return the probability that a group of so many users is shown.

        Parameters
        ----------
        num_users : int
            Non-negative.

        Returns
        -------
        float
            In [0, 1], to rounding; of `OptimalPartitions` with a relative error below 1e-12.

        Raises
        ------
        ValueError
            If `num_users` is negative.
        TypeError
            If it is no integer.
        """
        return self._keep_probability(count_scalar("num_users", num_users, 0))

    def _keep_probability(self, users: int) -> float:
        raise NotImplementedError

    def _lower_profile(self) -> Discrete:
        """Return the pair of a group that nobody else is in; on samples too, since no other user is drawn for it."""
        alone = self._keep_probability(1) * (1.0 - 1e-9)  # a tail's relative error is less
        return Discrete([alone, 1.0 - alone], [0.0, 1.0])


@dataclass(frozen=True)
class OptimalPartitions(_Partitions):
    r"""Partition selection that shows each group as often as (epsilon, delta)-DP lets it (Desfontaines, Voss and Gipson 2022).

    Parameters
    ----------
    epsilon : float
        In [1e-6, 30]; what one group alone costs, as is `delta`.
    delta : float
        In [1e-200, 1).
    partitions : int
        In how many groups one user is at most, in [1, 10^6]. For l of them the paper takes epsilon/l and delta/l; here each group has the
        epsilon and delta given, and the accountant composes l of them; in a Poisson sample they are one release of one sample.

    Notes
    -----
    arXiv:2006.03684, Theorem 1. A group of n users is shown with probability :math:`\pi_n`, where :math:`\pi_0 = 0` and

    .. math:: \pi_n = \min(e^\epsilon \pi_{n-1} + \delta,\; 1 - e^{-\epsilon}(1 - \pi_{n-1} - \delta),\; 1).

    The first is the smaller one as long as :math:`\pi_{n-1} \le (1 - \delta)/(1 + e^\epsilon)`, say up to n = m. *Curve*, with :math:`\gamma = e^x`. A user who is removed gives
    :math:`(\pi_n - \gamma \pi_{n-1})_+`. Up to m this is :math:`(e^\epsilon - \gamma)\pi_{n-1} + \delta`, which grows with n if x < epsilon. Beyond, with :math:`d = 1 - \pi`, it is
    :math:`(1 - \gamma) + (\gamma - e^{-\epsilon}) d_{n-1} + e^{-\epsilon}\delta`, which falls with n. A user who is added gives :math:`(d_{n-1} - \gamma d_n)_+`,
    which is :math:`1 - \gamma + \gamma\delta + (\gamma e^\epsilon - 1) \pi_{n-1}` up to m and :math:`(e^\epsilon - \gamma) d_n + \delta` beyond. So
    both are largest at n = m or m + 1; at x >= epsilon delta is what is left. Both are exact up to epsilon. The
    lower end is that of groups with no other user.

    Examples
    --------
    >>> import hockeystick as hs
    >>> shown = hs.selection.OptimalPartitions(1.0, 1e-5, partitions=3)
    >>> print([round(shown.keep_probability(n), 6) for n in (0, 1, 5, 12, 20)])
    [0.0, 1e-05, 0.000858, 0.760311, 0.999925]
    >>> print(hs.format_upper(hs.Accountant().compose(shown).epsilon(1e-4), ".4f"))
    2.9998
    """

    epsilon: float
    delta: float
    partitions: int = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(epsilon=interval("[1e-6, 30]"), delta=interval("[1e-200, 1)"))
        self._check_partitions()

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [
            f"partition selection: a user is in at most {self.partitions} groups, and groups with no user are never shown"
        ]

    def _keep_probability(self, users: int) -> float:
        first = self._last_growing()
        if users <= first:
            return min(self._growing(users), 1.0)
        return 1.0 - self._missing(users - first, 1.0 - self._growing(first))

    def _growing(self, users: int) -> float:
        """Return delta (1 + e^epsilon + ... + e^{(n-1) epsilon})."""
        return self.delta * math.expm1(users * self.epsilon) / math.expm1(self.epsilon)

    def _last_growing(self) -> int:
        """Return m, the last number of users at which the first of the three terms is the smallest."""
        most = (1.0 - self.delta) / (1.0 + math.exp(self.epsilon))
        return 1 + math.floor(math.log1p(most * math.expm1(self.epsilon) / self.delta) / self.epsilon)

    def _missing(self, steps: int, missing: float) -> float:
        """Return 1 minus the probability after so many steps of d -> e^-epsilon (d - delta), at least 0."""
        rest = self.delta / math.expm1(self.epsilon)  # where it would stay: d + rest falls by e^-epsilon
        return max((missing + rest) * math.exp(-min(steps * self.epsilon, 800.0)) - rest, 0.0)

    def _upper_profile(self) -> PrivacyProfile:
        last = self._last_growing()
        before, at = self._growing(last - 1), min(self._growing(last), 1.0)
        after = self._missing(1, 1.0 - at)
        gains, lost = math.expm1(self.epsilon), 1.0 - at
        jump = gains * after + self.delta if after > 0.0 else lost  # of the probability, from m to m + 1

        def remove(more: float) -> float:  # more = gamma - 1
            growing = (gains - more) * before + self.delta if more < gains else self.delta
            return max(growing, jump - more * at, self.delta)

        def add(more: float) -> float:
            falling = (gains - more) * after + self.delta if more < gains else self.delta
            return max(gains * before + self.delta - more * lost, falling, self.delta)

        # Both are maxima of three lines in gamma: they bend where two of them cross.
        first = gains * before + self.delta
        bends = [
            *((first - jump) / (before - at), (jump - self.delta) / at),
            *((first - jump) / (lost - after), (first - self.delta) / lost if lost > 0.0 else gains),
        ]
        places = sorted({0.0, self.epsilon, *(math.log1p(x) for x in bends if 0.0 < x < gains)})
        margin = HANDFUL * (4.0 + last * self.epsilon)  # a power's relative error grows with its exponent
        rounding = margin * (first + jump)  # of differences of terms that are no larger
        deltas = [[min(side(math.expm1(x)) * (1.0 + margin) + rounding, 1.0) for x in places] for side in (remove, add)]
        deltas[0][-1] = deltas[1][-1] = self.delta
        return PrivacyProfile(places, *(np.minimum.accumulate(side).tolist() for side in deltas))


@dataclass(frozen=True)
class ThresholdedPartitions(_Partitions):
    r"""Partition selection by a noisy count of users: a group with users is shown if the count and noise reach a threshold.

    Parameters
    ----------
    mechanism : Laplace or Gaussian
        The noise of one group's count of users, which one user moves by 1.
    threshold : float
        In [-1e12, 1e12].
    partitions : int
        In how many groups one user is at most, in [1, 10^6]: the accountant composes so many groups.

    Notes
    -----
    Wilson et al. 2020 (arXiv:1909.01917), Section 5.1; Korolova, Kenthapadi, Mishra and Ntoulas 2009. Between a group of one user and one of none, which is never shown,
    delta is the probability :math:`\pi_1` that one user's group is shown, at all epsilons. Between n and n + 1 users, n >= 1, what is released comes from the noisy
    count, so that delta is at most that of the noise. It is one or the other: the curve is the larger of both, and not their sum. This
    holds too if the noisy counts of groups that are shown are released. The lower end is that of groups with no other user.

    Examples
    --------
    >>> import hockeystick as hs
    >>> shown = hs.selection.ThresholdedPartitions(hs.Laplace(2.0), threshold=25.0, partitions=2)
    >>> print(hs.format_upper(shown.keep_probability(1), ".3e"), round(shown.keep_probability(30), 4))
    3.073e-06 0.959
    >>> print(hs.format_upper(hs.Accountant().compose(shown).epsilon(1e-5), ".4f"))
    1.0001
    """

    mechanism: Laplace | Gaussian
    threshold: float
    partitions: int = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not isinstance(self.mechanism, (Laplace, Gaussian)):
            raise TypeError(f"mechanism must be Laplace or Gaussian, not {shown(self.mechanism)}")
        scalar("noise_multiplier of mechanism", self.mechanism.noise_multiplier, *GAUSSIAN_NOISE)
        self._check(threshold=interval("[-1e12, 1e12]"))
        self._check_partitions()

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        return [
            f"partition selection: a user is in at most {self.partitions} groups, counts once in each, and groups with no user are never shown"
        ]

    def _keep_probability(self, users: int) -> float:
        if users == 0:
            return 0.0
        away = (self.threshold - users) / self.mechanism.noise_multiplier
        if isinstance(self.mechanism, Gaussian):
            return q(away)
        return 0.5 * math.exp(-away) if away > 0.0 else 1.0 - 0.5 * math.exp(away)

    def _upper_profile(self) -> PrivacyProfile:
        distance = 1.0 / self.mechanism.noise_multiplier
        margin = 1.0 + GAUSSIAN_TAIL * (1.0 + abs(self.threshold - 1.0) * distance) ** 2  # the distance is rounded
        alone = min(self.keep_probability(1) * margin + sys.float_info.min, 1.0)

        def noise(eps: Array) -> Array:
            if isinstance(self.mechanism, Gaussian):
                return gaussian_curve(eps, distance)
            return np.asarray(laplace_theta(eps, distance * (1.0 + HANDFUL))) * SHORT_SUM_UP

        def bound(eps: Array) -> Array:
            return np.maximum(noise(eps), alone)

        return profile_until(bound, end_of(noise, alone), distance * SHORT_SUM_UP)  # where Laplace noise ends
