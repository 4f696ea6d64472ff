"""Poisson samples of what is zero-concentrated, by upper bounds of their Renyi divergences where a record is added or removed.

With the record the output has the law M = (1 - q) Q + q P, without it Q. Divergences are jointly quasi-convex, so that the other
records may be taken as given. Let r = P/Q. For orders a = 2, 3, ...

- of M from Q: E_Q (1 - q + q r)^a is a binomial sum of the moments E_Q r^k, which are 1 for k = 0, 1 and at most e^{(k - 1)(xi + k rho)}
  for others. Gaussian noise with 1/(2 sigma^2) = rho attains it, xi being 0;
- of Q from M: E_Q (1 + t)^{-n} with n = a - 1 and t = q (r - 1) > -q. As E_Q t = 0, this is 1 + E_Q R(t) t^2 with
  R(t) = n (n + 1) int_0^1 (1 - u) (1 + u t)^{-n-2} du, which falls with t. So it is at most 1 + R(-q) q^2 E_Q (r - 1)^2, where
  E_Q (r - 1)^2 <= e^{xi + 2 rho} - 1 and R(-q) q^2 = (1 - q)^{-n} - 1 - n q <= n (n + 1) q^2 (1 - q)^{-n-2}/2. The divergence is at most
  log 1/(1 - q), too, since M >= (1 - q) Q.

Both are at most xi + a rho, that of the mechanism without sampling.
"""

from __future__ import annotations

import itertools
import math

from hockeystick._checks import non_negative_scalar, probability_scalar
from hockeystick.mechanisms import RenyiDP

ORDERS = (*range(2, 65), 80, 96, 128, 192, 256, 384, 512, 768, 1024)
MARGIN = 1.0 + 1e-9  # exponents of up to 10^6 lose 1e-10 by rounding
SMALLEST = 1e-300  # of rho and q; raising either raises the bound


def poisson_sampled(rho: float, sampling_rate: float, xi: float = 0.0) -> RenyiDP:
    """Return the bounds of a sample of rate in (0, 1) of a mechanism with (xi, rho)-zCDP."""
    rho = max(non_negative_scalar("rho", rho), SMALLEST)
    q = max(probability_scalar("sampling_rate", sampling_rate), SMALLEST)
    xi = non_negative_scalar("xi", xi)
    bounds = (_divergence(order, rho, xi, q) for order in ORDERS)
    return RenyiDP(ORDERS, list(itertools.accumulate(bounds, max)))


def _divergence(order: int, rho: float, xi: float, q: float) -> float:
    removed = _log_one_and(_binomial_sum(order, rho, xi, q)) / (order - 1)
    added = _log_one_and(_remainder(order - 1, q) + _log_expm1(xi + 2.0 * rho)) / (order - 1)
    least = min(max(removed, min(added, -math.log1p(-q))), xi + order * rho)
    return math.nextafter(least * MARGIN, math.inf)


def _binomial_sum(order: int, rho: float, xi: float, q: float) -> float:
    """Return the logarithm of E_Q (1 - q + q r)^a - 1, in which the powers' weights cancel the 1."""
    terms = [
        math.log(math.comb(order, k))
        + k * math.log(q)
        + (order - k) * math.log1p(-q)
        + _log_expm1((k - 1) * (xi + k * rho))
        for k in range(2, order + 1)
    ]
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms))


def _remainder(n: int, q: float) -> float:
    """Return an upper bound of log R(-q) q^2; where n q is small, the difference of the exact form would cancel."""
    if n * q > 0.01 and n * -math.log1p(-q) < 700.0:
        return math.log(math.expm1(-n * math.log1p(-q)) - n * q)
    return math.log(0.5 * n * (n + 1)) + 2.0 * math.log(q) - (n + 2) * math.log1p(-q)


def _log_expm1(x: float) -> float:
    return math.log(math.expm1(x)) if x < 30.0 else x + math.log1p(-math.exp(-x))


def _log_one_and(log_excess: float) -> float:
    """Return log(1 + e^x)."""
    if log_excess < 30.0:
        return math.log1p(math.exp(log_excess))
    return log_excess + math.log1p(math.exp(-log_excess))
