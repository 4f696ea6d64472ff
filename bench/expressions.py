"""What hockeystick is measured against: the expressions that a user of NumPy and SciPy would write.

They are written for speed, not to lose: no loops in Python, no copies that can be avoided, tight brackets for roots.
Where they lose digits (small theta by cancellation) or range (e^eps overflows), the samples of cases.py stay inside
what they can do.
"""

import numpy as np
from scipy.special import erf, log_ndtr, ndtr, ndtri

try:
    from scipy.optimize import elementwise
except ImportError:  # before SciPy 1.15 there was no vectorised root finder to compare with
    elementwise = None

HAS_ROOTS = elementwise is not None


def q(x):
    return ndtr(-x)


def log_q(x):
    return log_ndtr(-x)


def q_inv(p):
    return -ndtri(p)


def theta(eps, r):
    """Return the two-ndtr expression of the Gaussian mechanism's delta (Balle and Wang 2018)."""
    shift, half = eps / r, r / 2
    return ndtr(half - shift) - np.exp(eps) * ndtr(-half - shift)


def log_theta(eps, r):
    shift, half = eps / r, r / 2
    first = log_ndtr(half - shift)
    return first + np.log1p(-np.exp(eps + log_ndtr(-half - shift) - first))


def _root(function, lower, upper, *args):
    """Return the roots by SciPy's vectorised Chandrupatla iteration."""
    result = elementwise.find_root(function, (lower, upper), args=args)
    return result.x


def gaussian_epsilon(r, delta):
    """Return the root of log theta in eps, between 1 - e^eps <= delta and the tail bound of the privacy loss."""
    upper = r * (r / 2 + np.sqrt(-2 * np.log(delta)))
    return _root(lambda e, r, d: log_theta(e, r) - d, np.log1p(-delta), upper, r, np.log(delta))


def theta_inverse(eps, delta):
    """Return the root of log theta in r, between the same tail bound and where theta is nearly 1."""
    tail = np.sqrt(-2 * np.log(delta))
    lower = np.sqrt(tail**2 + 2 * eps) - tail
    return _root(lambda r, e, d: log_theta(e, r) - d, lower, np.sqrt(2 * eps) + 10, eps, np.log(delta))


def contraction_sum(first, eta):
    """Return the sum over rounds of first times the product of all later eta, by a cumulative product from the end."""
    sums = first * np.append(np.cumprod(eta[:0:-1])[::-1], 1.0)
    return np.asarray(sums.sum())


def constant_contraction_sum(first, eta, rounds):
    return contraction_sum(np.full(rounds, first), np.full(rounds, eta))


def pnsgd_gaussian(eps, index, noise_std):
    """Return Theorem 4 of Asoodeh, Diaz and Calmon for the constants of cases.py."""
    return theta(eps, 2.0 / noise_std) * theta(eps, 1.0 / (0.5 * noise_std)) ** (100 - index)


def trusted_aggregator(eps, noise_std):
    """Return Theorem 2 of Asoodeh et al. as its geometric sum, for the constants of cases.py."""
    contraction = theta(eps, 0.2 * np.sqrt(10.0) / (0.5 * noise_std))
    geometric = (1.0 - contraction**100) / (1.0 - contraction)
    return 0.01 * theta(eps, 2.0 / (np.sqrt(10.0) * noise_std)) * geometric


def gdp_delta(mu, eps):
    return theta(eps, mu)


def gdp_epsilon(mu, delta):
    return np.maximum(gaussian_epsilon(mu, delta), 0.0)


def gdp_trade_off(mu, fpr):
    return ndtr(-mu - ndtri(fpr))


def gdp_advantage(mu):
    return erf(mu / np.sqrt(8.0))


def pnsgd_laplace(eps, index, noise_scale):
    """Return Theorem 3 for the constants of cases.py; a factor is 0 from its own distance on."""
    first = np.maximum(0.0, -np.expm1(eps / 2 - 1.0 / noise_scale))
    later = np.maximum(0.0, -np.expm1(eps / 2 - 1.0 / noise_scale))
    return first * later ** (100 - index)


def pnsgd_rdp(eps, index, noise_std):
    """Return Proposition 1 for the constants of cases.py, with M = 1."""
    after = np.maximum(100 - index, 1)
    kappa = 2.0 / (after * noise_std**2)
    return np.where(eps > kappa, np.exp(-((eps - kappa) ** 2) / (4 * kappa)), 1.0)


def fedavg_delta(rounds, local_steps, noise_std):
    """Return theta of g sqrt(T), the certified Gaussian-DP parameter of constant steps, for the constants of cases.py."""
    return theta(np.asarray(1.0), 0.02 * local_steps * np.sqrt(rounds / 50.0) / noise_std)
