r"""The sparse vector technique: asking many queries, and paying for those alone whose noisy answer is above a noisy threshold.

The threshold T gets noise z once. Each query gets fresh noise; "above" is released if its noisy answer is at least T + z, else "below". After a given
number of answers "above" all ends. Answers themselves are not released. Queries may depend on what was released before.

*Lemma.* Let a record move every query by at most the sensitivity 1, let o be a sequence of answers, p the density of z, and let A(z) and B(z) be
the probabilities of o's answers "below" and "above" on one data set, given z. With the data set changed, and z replaced by z + 1,
a query is below at least as likely as it was, because it rises by at most 1; and above if its own noise is larger by 2. If noise of queries loses at most a factor
:math:`e^{-\epsilon_2}` by that, over all answers "above", then

.. math:: P'(o) = \int p(z + 1) A'(z + 1) B'(z + 1)\, dz \ge e^{-\epsilon_2} \int p(z + 1) A(z) B(z)\, dz = e^{-\epsilon_2} R(o),

where R is the law of the *same* algorithm on the first data set with the threshold's noise moved by 1. If all queries move in one direction (monotone
queries, such as counts under add or remove): if none falls, z + 1 and noise larger by 1 suffice, and if none rises, z itself and
noise larger by 1. So 1 takes the place of 2. ∎

Sources: Dwork and Roth 2014, Algorithm 1; Lyu, Su and Li 2017 (arXiv:1603.01699) for c answers "above", with counterexamples to four published variants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hockeystick._checks import POSITIVE, Array, boolean_scalar, count_scalar
from hockeystick._numeric.rounding import HANDFUL, SHORT_SUM_UP, UNIT
from hockeystick.kernels import laplace_theta
from hockeystick.mechanisms.discrete import Discrete
from hockeystick.mechanisms.privacy_profile import LARGEST_EPSILON, PrivacyProfile
from hockeystick.selection.curves import GAUSSIAN_NOISE, OneDirection, end_of, gaussian_curve, profile_until

__all__ = ["AboveThreshold", "GaussianAboveThreshold"]

SPLITS = 200  # of epsilon between the threshold and the queries, of which the best is taken


@dataclass(frozen=True)
class AboveThreshold(OneDirection):
    r"""The sparse vector technique with Laplace noise.

    Parameters
    ----------
    threshold_noise_multiplier : float
        Scale of the threshold's noise, over the sensitivity of one query under the adjacency in use. Drawn once. Positive and finite.
    query_noise_multiplier : float
        Scale of the noise of each query, which is fresh, over the same sensitivity. Positive and finite.
    hits : int
        After how many answers "above" it stops.
    monotone : bool
        True if a record moves all queries in one direction, as counts when it is added or removed. They do not if it is replaced.

    Notes
    -----
    With :math:`\epsilon_1` = 1/threshold_noise_multiplier and :math:`\epsilon_2` = 2 hits/query_noise_multiplier (hits/query_noise_multiplier if monotone) it is
    (:math:`\epsilon_1 + \epsilon_2`)-DP: Lyu, Su and Li 2017, Theorems 4 and 5. The curve says more. By the lemma of selection/sparse_vector.py

    .. math:: \delta(\epsilon) \le \sum_o (P(o) - e^{\epsilon - \epsilon_2} R(o))_+ \le \delta_L(\epsilon - \epsilon_2),

    with :math:`\delta_L` that of Laplace noise at distance :math:`\epsilon_1`, since P and R differ by the threshold's noise alone. The smaller of this and
    the curve of all pure mechanisms is taken. The lower end is what a single query attains that is half a sensitivity
    below the threshold on one data set and half one above it on the other.

    Noise of queries that does not grow with `hits` is not private (Lyu and others, Algorithms 4 and 6), nor are queries without noise
    (Algorithm 5), nor an answer that is released with the noise that was compared (Algorithm 3): release it with fresh noise, as a step of its own.

    Examples
    --------
    >>> import hockeystick as hs
    >>> search = hs.selection.AboveThreshold(threshold_noise_multiplier=10.0, query_noise_multiplier=20.0, monotone=True)
    >>> for step in (search, hs.ApproximateDP(0.15, 0.0)):
    ...     print(hs.format_upper(hs.Accountant().compose(step, 30).epsilon(1e-6), ".3f"))
    3.539
    3.591
    """

    threshold_noise_multiplier: float
    query_noise_multiplier: float
    hits: int = 1
    monotone: bool = False
    _moved: ClassVar[str] = "sparse vector: a record moves all queries in one direction"

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(
            threshold_noise_multiplier=POSITIVE,
            query_noise_multiplier=POSITIVE,
            hits=count_scalar,
            monotone=boolean_scalar,
        )
        if not sum(self._epsilons()) <= LARGEST_EPSILON:
            first, second = self._epsilons()
            raise ValueError(
                f"the epsilons of threshold_noise_multiplier and query_noise_multiplier must be at most 600 together, not {first:g} + {second:g}"
            )

    def _said(self) -> str:
        return f"sparse vector: queries move by the sensitivity used at most, their noise is fresh, it stops after {self.hits} answers above"

    def _epsilons(self) -> tuple[float, float]:
        return 1.0 / self.threshold_noise_multiplier, self.hits * self._moves / self.query_noise_multiplier

    def _upper_profile(self) -> PrivacyProfile:
        first, second = (epsilon * (1.0 + HANDFUL) for epsilon in self._epsilons())
        whole = first + second

        def bound(eps: Array) -> Array:
            pure = -np.expm1(np.minimum(eps - whole, 0.0)) / (1.0 + math.exp(-whole))
            return np.minimum(pure, np.asarray(laplace_theta(_rest(eps, second), first))) * SHORT_SUM_UP

        last = min(whole * (1.0 + HANDFUL), LARGEST_EPSILON)
        return profile_until(bound, last, second, abs(second - first))

    def _lower_profile(self) -> Discrete:
        small, large = sorted((self.threshold_noise_multiplier, self.query_noise_multiplier))
        ratio, half = small / large, 0.5 / large
        if ratio > 1.0 - 1e-4:  # the formula below would cancel; more noise tells less
            return _one_answer(-math.expm1(-half) - 0.5 * half * math.exp(-half))
        told = -math.expm1(-half) + ratio**2 * math.expm1(-0.5 / small)
        return _one_answer(told / ((1.0 - ratio) * (1.0 + ratio)))


@dataclass(frozen=True)
class GaussianAboveThreshold(OneDirection):
    r"""The sparse vector technique with Gaussian noise, which stops at the first answer "above".

    Parameters
    ----------
    threshold_noise_multiplier : float
        Standard deviation of the threshold's noise, over the sensitivity of one query under the adjacency in use. Drawn anew each time it is run.
    query_noise_multiplier : float
        Standard deviation of the noise of each query, over the same sensitivity.
    num_queries : int
        After how many queries it stops at the latest.
    monotone : bool
        As in `AboveThreshold`.

    Notes
    -----
    Zhu and Wang 2020 (NeurIPS) bound its Renyi divergences; here is a curve. Let :math:`\delta_1, \delta_2` be the curves of Gaussian noise at distance
    1/threshold_noise_multiplier and 2/query_noise_multiplier (1/query_noise_multiplier if monotone), and k the number of queries. Let :math:`H_i(z)` be the probability that query i is above, and
    :math:`H'_i(z)` that with its noise moved. Then :math:`H_i \le e^a H'_i + \delta_2(a)` for every a. It stops at one query at most, so that in the
    lemma of selection/sparse_vector.py the errors :math:`\delta_2(a)` add up over the queries that are reached, of which there are at most k:
    :math:`P'(o) \ge e^{-a}(R(o) - \delta_2(a)\, R(o \text{ is reached}))`, and

    .. math:: \delta(\epsilon) \le \delta_1(\epsilon - a) + k e^{\epsilon - a} \delta_2(a),\qquad \delta(\epsilon) \le e^a \delta_1(\epsilon - a) + k\, \delta_2(a),

    the second by replacing H in P instead. Releasing all noisy answers would say no less, so the curve of Gaussian noise at distance
    :math:`\sqrt{k}`/query_noise_multiplier is a bound as well. The best of all, over a, is taken. For more answers "above", compose it so many times. The curve is followed
    down to a delta of 1e-30, below which epsilon is infinite. The lower end is that of one query, as of `AboveThreshold`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> search = hs.selection.GaussianAboveThreshold(10.0, 20.0, 10_000, monotone=True)
    >>> print(hs.format_upper(hs.Accountant().compose(search, 30).epsilon(1e-6), ".3f"))
    7.670
    """

    threshold_noise_multiplier: float
    query_noise_multiplier: float
    num_queries: int
    monotone: bool = False
    _moved: ClassVar[str] = AboveThreshold._moved

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._check(threshold_noise_multiplier=GAUSSIAN_NOISE, query_noise_multiplier=GAUSSIAN_NOISE)
        self._check(num_queries=count_scalar, monotone=boolean_scalar)

    def _said(self) -> str:
        return f"sparse vector: queries move by the sensitivity used at most, it stops at the first answer above or after {self.num_queries} queries"

    def _upper_profile(self) -> PrivacyProfile:
        first, second = 1.0 / self.threshold_noise_multiplier, self._moves / self.query_noise_multiplier
        everything = math.sqrt(self.num_queries) / self.query_noise_multiplier

        def bound(eps: Array) -> Array:
            return np.minimum(gaussian_curve(eps, everything), _split(eps, first, second, self.num_queries))

        return profile_until(bound, end_of(bound))

    def _lower_profile(self) -> Discrete:
        noise = math.hypot(self.threshold_noise_multiplier, self.query_noise_multiplier)
        return _one_answer(math.erf(0.5 / noise / math.sqrt(2.0)))


def _one_answer(told: float) -> Discrete:
    """Return the pair of an answer that is likelier by `told`, a little less for rounding, than the other one, and less likely on the other data set."""
    likelier = 0.5 + 0.5 * max(told * (1.0 - 1e-9) - 8.0 * UNIT, 0.0)
    return Discrete([likelier, 1.0 - likelier], [1.0 - likelier, likelier])


def _rest(eps: Array, taken: float | Array) -> Array:
    """Return what is left of epsilon, rounded down: where little noise makes a curve steep, a rounding counts."""
    return np.asarray(eps - taken - HANDFUL * (eps + taken))


def _split(eps: Array, first: float, second: float, count: int) -> Array:
    """Return the best of both bounds over what the queries take of epsilon."""
    steps = np.linspace(0.0, 1.0, SPLITS + 1)[:, None]
    # Beyond this no query's error is left; below 0 the threshold would take more than all.
    most = np.minimum(np.maximum(eps, 0.0) + 40.0 * first, second * (second / 2.0 + 40.0))
    taken = steps * most
    error = count * gaussian_curve(taken, second)
    threshold = gaussian_curve(_rest(eps, taken), first)
    with np.errstate(over="ignore"):
        reference = threshold + np.exp(eps - taken) * error
        likelier = np.exp(taken) * threshold + error
    best: Array = np.minimum(reference, likelier).min(axis=0) * SHORT_SUM_UP
    return best
