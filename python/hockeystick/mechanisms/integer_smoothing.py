"""Wide noise on the integers as Gaussian noise that is rounded, up to a tiny probability.

**Theorem.** Let every coordinate of the noise have a law on the integers whose ratio to the discrete Gaussian of scale sigma is known up to a
factor e^h. Moved by any vector of integers of norm D, d coordinates of it at most, it is dominated by the composition of Gaussian noise of deviation
sqrt(sigma^2 - r^2) moved by D, 0 < r < sigma, with a release that tells all with probability 1 - e^(-d (h + log T(0)/T(1/2))), T(y) = sum_k
e^(-(k-y)^2/2r^2).

*Proof.* Round y ~ N(s, sigma^2 - r^2) to k with probability e^(-(k-y)^2/2r^2)/T(y). As T has the period 1, the law of k - s is one law W for every integer
s; as (k-y)^2/r^2 + y^2/(sigma^2-r^2) = k^2/sigma^2 + (y-c k)^2/c', the ratio of W to the discrete Gaussian is known up to T(0)/T(1/2). Two laws whose
ratio is known up to a factor e^g satisfy P >= e^-g W, so that P = e^-g W + (1 - e^-g) W', and d coordinates of it are e^(-d g) those of W, else
anything. Which of both is no more than told, and W is computed from Gaussian noise. QED. (Completing the square is the convolution lemma of
discrete Gaussians: Regev 2009, Peikert 2010.)
"""

from __future__ import annotations

import math

import hockeystick._core as core
from hockeystick._numeric.rounding import DOWN, UP
from hockeystick.mechanisms.base import CountedPair
from hockeystick.mechanisms.integer_curvature import log_range

ROUNDING = 1e-20  # the probability to tell that rounding may have
LEAST_SIGMA = 8.0  # from which the Gaussian has 98 % of the noise
MOST_TELLING = 1e-15


def telling(coordinates: float, log_range_of_law: float) -> float:
    """Return the probability to tell."""
    share = coordinates * (log_range_of_law + log_range(_rounding_variance(coordinates)))
    return -math.expm1(-share * UP) * UP


def dominating_pairs(sigma: float, norm: float, coordinates: float, log_range_of_law: float) -> list[CountedPair]:
    """Return the two pairs of the theorem."""
    deviation = math.sqrt((sigma * sigma * DOWN - _rounding_variance(coordinates)) * DOWN)
    reveals = core.approximate_dp(0.0, telling(coordinates, log_range_of_law))
    return [(core.gaussian_of_shift(norm / deviation * UP), 1.0), (reveals, 1.0)]


def _rounding_variance(coordinates: float) -> float:
    """Return r^2 for which d log T(0)/T(1/2), about 4 d e^(-2 pi^2 r^2), is about `ROUNDING`."""
    return math.log(4.0 * coordinates / ROUNDING) / (2.0 * math.pi**2)
