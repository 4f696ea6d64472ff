"""Noisy SGD with a clip norm that is learnt (Andrew, Thakkar, McMahan and Ramaswamy 2021)."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np

from hockeystick._checks import OPEN_PROBABILITY, POSITIVE, positive_scalar
from hockeystick._numeric.rounding import UP
from hockeystick.federated.released_models import by_composition
from hockeystick.mechanisms import Gaussian
from hockeystick.simulate.algorithms.algorithm import ALL, Algorithm, Views, check_sampler
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import Participation
from hockeystick.simulate.running.rule import UpdateRule
from hockeystick.training import adaptive_clipping_noise

__all__ = ["AdaptiveClippingSGD"]


@dataclass(frozen=True, kw_only=True)
class AdaptiveClippingSGD(Algorithm):
    r"""Noisy minibatch SGD of one silo, whose clip norm follows a quantile of the gradients' norms.

    Parameters
    ----------
    learning_rate : float
        Step size, positive.
    clip_norm : float
        C of the first round, positive and finite. It must not be chosen by looking at the data.
    quantile : float
        Share of the gradients that the clip norm should leave as they are, in (0, 1).
    clip_rate : float
        By how much the logarithm of the clip norm follows the share, positive and finite; Andrew and others take 0.2.
    noise_multiplier : float
        Of a whole round, positive and finite: what is released about gradients and count is one Gaussian of this multiplier.
    count_noise : float
        Standard deviation of the noise on the count, in records; above half the noise_multiplier. Andrew and others take a
        twentieth of the batch.
    records : Participation
        Batches; all records by default.
    radius : float
        Of the ball that models are projected onto.

    Notes
    -----
    A round has m records, or as many are expected. With :math:`b_i = 1` where a gradient's norm is at most C, else 0, it releases

    .. math:: \frac 1 m \Big(\sum_i g_i \min(1, C/\|g_i\|) + N(0, (C z_\Delta)^2 I)\Big), \qquad
        b = \frac 1 2 + \frac 1 m \Big(\sum_i (b_i - \tfrac 1 2) + N(0, \sigma_b^2)\Big),

    steps by the first, and multiplies C by ``exp(-clip_rate (b - quantile))``. :math:`z_\Delta` is `training.adaptive_clipping_noise`
    of the noise multiplier z and :math:`\sigma_b`, the count_noise; the page on mechanisms proves that both together are one Gaussian of
    multiplier z, sampled or not. The guarantee is for a record that is replaced: m, which divides the noise too, is that of the
    records that there are, and a record whose gradient is 0 is counted. With ``Poisson(..., expected_batch_size=m)`` it is for one that is added
    or removed. A clip norm below 1e-138 ends its run like a model that is not finite.

    References
    ----------
    Andrew, Thakkar, McMahan and Ramaswamy 2021, Differentially private learning with adaptive clipping, Algorithm 1.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> problem = simulate.Problem("linear", [[0.1], [0.2], [0.3], [0.4]] * 100)  # gradients are the records
    >>> algorithm = simulate.AdaptiveClippingSGD(
    ...     learning_rate=0.1, clip_norm=5.0, quantile=0.625, clip_rate=0.2, noise_multiplier=1.0, count_noise=5.0
    ... )
    >>> result = simulate.run(algorithm, problem, rounds=200, seed=1)
    >>> print(result.clip_norm.shape, abs(result.clip_norm[0, -1] - 0.3) < 0.02)
    (1, 200) True
    """

    quantile: float
    clip_rate: float
    noise_multiplier: float
    count_noise: float
    records: Participation = ALL

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        positive_scalar("clip_norm", self.clip_norm)
        if self.noise_std != 0.0:
            raise ValueError(f"noise_std must not be given, noise_multiplier decides the noise, not {self.noise_std}")
        self._check(quantile=OPEN_PROBABILITY, clip_rate=POSITIVE, noise_multiplier=POSITIVE, count_noise=POSITIVE)
        adaptive_clipping_noise(self.noise_multiplier, self.count_noise)
        check_sampler("records", self.records)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        self._one_silo(problem)
        divisor = self.records._divisor(problem.num_records)
        scale = adaptive_clipping_noise(self.noise_multiplier, self.count_noise) / divisor * UP
        noise = scale * self.clip_norm
        if not sys.float_info.min <= min(self.clip_norm, scale, noise) <= noise < math.inf:
            raise ValueError(
                f"clip_norm must leave the noise among the normal doubles, not {self.clip_norm}: it is multiplied by {scale}"
            )
        return self._plain_rule(
            problem,
            rounds,
            noise_scales=np.array([scale]),
            quantile=self.quantile,
            clip_rate=self.clip_rate,
            count_noise=self.count_noise,
        )

    def _has_noise(self, problem: Problem) -> bool:
        del problem
        return True  # that of noise_multiplier, which is positive

    def _views(self, problem: Problem, rounds: int) -> Views:
        del rounds
        seen = "every round's noisy mean and count, and so all models and clip norms"
        source = "Accountant; training.adaptive_clipping_noise splits a round's noise"
        release = Gaussian(self.noise_multiplier)
        return {"messages": lambda: by_composition(self._accounts(problem, [release]), seen, source)}
