"""Poisson-sampled Gaussians, one direction: delta of one step in closed form, of two by an integral, and epsilons by another method."""

import math
from typing import NamedTuple

import mpmath as mp

NAMED = {"A": (1.0, 0.01, 1000), "B": (0.8, 256 / 60000, 14040), "C": (0.7, 1e-3, 100_000)}
# eps at these deltas, direction remove, from a discretised and exponentially tilted FFT: good to about 1e-6
DELTAS = (1e-5, 1e-6, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-15, 1e-20, 1e-30)
BY_FFT = {
    "A": (1.828237, 2.124515, 2.697868, 2.989583, 3.290444, 3.599875, 3.914298, 4.854538, 6.361700, 9.341896),
    "B": (4.546009, 5.136215, 6.214094, 6.720815, 7.214590, 7.699771, 8.179367, 9.598400, 11.911622, 16.411879),
    "C": (3.648428, 4.135252, 5.050093, 5.506019, 5.973935, 6.454109, 6.940076, 8.379152, 10.690807, 15.272433),
}


class Cell(NamedTuple):
    """Arguments of one row."""

    sigma: float
    q: float
    steps: int
    remove: bool
    eps: float


def threshold(cell: Cell, log_ratio: mp.mpf) -> mp.mpf:
    """Return the x where log(1 + z) has this value; -inf if it is always larger."""
    z = mp.expm1(log_ratio)
    return mp.mpf(cell.sigma) ** 2 * mp.log1p(z / cell.q) + mp.mpf(1) / 2 if z > -mp.mpf(cell.q) else mp.ninf


def tail(x: mp.mpf, sigma: float) -> mp.mpf:
    """P(N(0, sigma^2) > x)."""
    return mp.mpf(1) if x == mp.ninf else mp.erfc(x / (mp.sqrt(2) * mp.mpf(sigma))) / 2


def one_step(cell: Cell, eps: mp.mpf) -> mp.mpf:
    """P(L > eps) - e^eps Q(L > eps) of one step, for any real eps."""
    q, sigma = mp.mpf(cell.q), cell.sigma
    if cell.remove:
        x = threshold(cell, eps)
        clean, mixed = tail(x, sigma), (1 - q) * tail(x, sigma) + q * tail(x - 1, sigma)
        return mixed - mp.exp(eps) * clean
    x = threshold(cell, -eps)
    if x == mp.ninf:
        return mp.mpf(0)
    clean, mixed = tail(-x, sigma), (1 - q) * tail(-x, sigma) + q * tail(1 - x, sigma)
    return clean - mp.exp(eps) * mixed


def two_steps(cell: Cell, depth: mp.mpf) -> mp.mpf:
    """Return the mean over the first step's x, distributed as P, of one_step(eps - L(x)); delta is above e^-depth."""
    q, sigma, eps = mp.mpf(cell.q), mp.mpf(cell.sigma), mp.mpf(cell.eps)
    sign = 1 if cell.remove else -1

    def integrand(x: mp.mpf) -> mp.mpf:
        z = q * mp.expm1((2 * x - 1) / (2 * sigma**2))
        density = mp.exp(-x * x / (2 * sigma**2)) / (sigma * mp.sqrt(2 * mp.pi))
        return density * (1 + z if cell.remove else 1) * one_step(cell, eps - sign * mp.log1p(z))

    reach = sigma * mp.sqrt(2 * (mp.log(10) * mp.mp.dps + depth))
    edges = {k * sigma / 2 for k in range(-2 * math.ceil(reach / sigma), 2 * math.ceil((reach + 1) / sigma) + 1)}
    # beyond this x the second step's threshold is outside the support of its loss: smooth there, but not analytic
    edge = threshold(cell, (eps if cell.remove else -eps) - mp.log1p(-q))
    return mp.quad(integrand, sorted(edges | {edge})) if mp.isfinite(edge) else mp.quad(integrand, sorted(edges))


def few_steps(cell: Cell) -> mp.mpf:
    """Return delta of one step or two."""
    if cell.steps == 1:
        return one_step(cell, mp.mpf(cell.eps))
    delta = two_steps(cell, mp.mpf(0))
    # so small that the tails left out count
    return two_steps(cell, -2 * mp.log(delta)) if 0 < delta < mp.exp(-40) else delta
