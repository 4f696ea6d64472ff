"""What local differential privacy says of leakage, and how much of it keeps a leakage within a budget.

Theorem. A release W of one client's data D is epsilon-LDP. Then the leakage, the Jensen-Shannon distance of any averaged belief
sum_w F(d|w) q(w) from the prior f(d), is at most sqrt(ln 2 - h(1/(1 + e^{epsilon/2}))), h the binary entropy in nats.

Proof. The ratios r_w(d) = F(d|w)/f(d) = P(w|d)/P(w) of one w lie within a factor e^epsilon of each other and have the mean 1 under f.
So do their averages r over w: r lies in [a, a e^epsilon] for some a <= 1 <= a e^epsilon, and has mean 1. The divergence is the mean
under f of a convex function of r, so that it is at most what its chord over that interval gives, which is the divergence of two coins:
with p = (1 - a)/(a (e^epsilon - 1)), the prior (p, 1 - p) and the belief (p a e^epsilon, (1 - p) a). Their log odds differ by epsilon,
whatever a. It remains to show that two coins of log odds x + c and x - c, c = epsilon/2, differ most where x = 0.

Let u+ > u- be the coins' probabilities, m their mean, d half their difference, l(u) = ln(u/(1 - u)), and J the divergence
h(m) - (h(u+) + h(u-))/2. As h' = -l and du/dx = u(1 - u), 2 dJ/dx = S(d) for S(d) = G(m + d) + G(m - d), G(u) = (l(u) - l(m)) u (1 - u).
J is even in x; let x > 0, so that m = 1/2 + e with e > 0. S(0) = 0, and as G'(u) = 1 + (l(u) - l(m))(1 - 2u),

    S'(d) = -2 (d + e) (l(m + d) - l(m)) + 2 (d - e) (l(m) - l(m - d)).

That is negative for d <= e. Else let k(v) = l(1/2 + v), odd, and on v > 0 increasing, convex and 0 at 0, thus superadditive:
k(d + e) >= k(d - e) + 2 k(e). So (d + e) (k(d + e) - k(e)) >= (d - e) (k(d - e) + k(e)), and S' <= 0 again. Hence J falls in x > 0.

At x = 0 the coins are 1/(1 + e^{-c}) and 1/(1 + e^c): J = ln 2 - h(1/(1 + e^c)). Randomised response of that epsilon on two values
with the prior 1/(1 + e^{epsilon/2}) attains it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Array, Result
from hockeystick._numeric.rounding import SHORT_SUM
from hockeystick._numeric.search import largest_within
from hockeystick.distortion.divergences import spread
from hockeystick.distortion.leakage import LEAKAGE, MOST

__all__ = ["ldp_epsilon_for_leakage", "privacy_leakage_bound_from_ldp"]


def privacy_leakage_bound_from_ldp(epsilon: ArrayLike) -> Result:
    """Return the largest leakage of a locally differentially private release.

    Parameters
    ----------
    epsilon : array_like
        Pure local differential privacy of the release, for any two data sets of the client; >= 0, infinity is legal.

    Returns
    -------
    ndarray or float
        sqrt(ln 2 - h(1/(1 + e^{epsilon/2}))), h the binary entropy in nats, rounded up.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    An upper bound for every prior, every kernel and every average over releases, proven at the head of its file: the ratios of an
    averaged belief to the prior lie within one factor e^epsilon of each other and average to 1. Randomised response
    of this epsilon attains it, for the prior (1/(1 + e^{epsilon/2}), e^{epsilon/2}/(1 + e^{epsilon/2})).

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.privacy_leakage_bound_from_ldp(1.0):.6f}")
    0.174069
    """
    return _leakage(STRICT.non_negative_or_infinite("epsilon", epsilon))[()]


def ldp_epsilon_for_leakage(budget: ArrayLike) -> Result:
    """Return the local differential privacy that keeps the leakage within a budget.

    Parameters
    ----------
    budget : array_like
        Largest leakage tau, in [0, sqrt(ln 2)].

    Returns
    -------
    ndarray or float
        The largest epsilon whose `privacy_leakage_bound_from_ldp` is at most tau; infinite where every release is within it.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import distortion
    >>> print(f"{distortion.ldp_epsilon_for_leakage(0.3):.6f}")
    1.779948
    """
    budget = STRICT.within("budget", budget, LEAKAGE)
    limited = (budget > 0) & (budget < MOST)
    inside = np.where(limited, budget, MOST / 2.0)
    found = largest_within(_leakage, inside, inside)  # feasible from the start: the bound is at most epsilon/(4 sqrt 2)
    return np.where(limited, found, np.where(budget > 0, np.inf, 0.0))[()]


def _leakage(epsilon: Array) -> Array:
    """Return the bound, rounded up; of a tiny epsilon its tangent, which is above it by less than a rounding."""
    tiny = epsilon < 1e-7
    root = np.sqrt(spread(np.tanh(np.where(tiny, 1.0, epsilon) / 4.0)))
    value = np.where(tiny, epsilon / (4.0 * math.sqrt(2.0)), root) * (1.0 + SHORT_SUM)
    above_zero = np.where(epsilon > 0, np.nextafter(value, np.inf), 0.0)
    return np.minimum(above_zero, np.nextafter(MOST, 1.0))  # MOST is below sqrt(ln 2) by its rounding
