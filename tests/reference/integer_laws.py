"""Noise on the integers to thirty digits and more, by its definition: masses, sums, hockey-stick and Renyi divergences."""

import functools
import itertools
import math

import mpmath as mp

DIGITS = 40


@functools.cache
def discrete_gaussian(sigma: float) -> tuple[mp.mpf, ...]:
    """Return the masses of -reach, ..., reach; what lies beyond is below 1e-200."""
    with mp.workdps(DIGITS):
        reach = math.ceil(31 * sigma) + 2
        weights = [mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(-reach, reach + 1)]
        total = mp.fsum(weights)
        return tuple(weight / total for weight in weights)


@functools.cache
def skellam(variance: float) -> tuple[mp.mpf, ...]:
    """Return e^-variance I_k(variance)."""
    with mp.workdps(DIGITS):
        x, reach = mp.mpf(variance), math.ceil(31 * math.sqrt(variance)) + 90
        right = [mp.exp(-x) * mp.besseli(k, x) for k in range(reach + 1)]
        return tuple(right[:0:-1] + right)


def convolution(a: tuple[mp.mpf, ...], b: tuple[mp.mpf, ...]) -> tuple[mp.mpf, ...]:
    """Return the law of the sum, term by term; all terms are positive, so that no digits are lost."""
    result = [mp.mpf(0)] * (len(a) + len(b) - 1)
    for (i, x), (j, y) in itertools.product(enumerate(a), enumerate(b)):
        result[i + j] += x * y
    return tuple(result)


@functools.cache
def sum_of_discrete_gaussians(sigma: float, number: int) -> tuple[mp.mpf, ...]:
    """Return the law of a sum of independent ones."""
    with mp.workdps(DIGITS):
        law = discrete_gaussian(sigma)
        for _ in range(number - 1):
            law = convolution(law, discrete_gaussian(sigma))
        return law


def moved(law: tuple[mp.mpf, ...], shift: int) -> list[tuple[mp.mpf, mp.mpf]]:
    """Return the masses of the law moved and of the law, at all outcomes that both have."""
    return list(zip(law[: len(law) - shift], law[shift:], strict=True))


def delta(outcomes: list[tuple[mp.mpf, mp.mpf]], eps: float) -> mp.mpf:
    """Return sum max(p - e^eps q, 0)."""
    ratio = mp.exp(mp.mpf(eps))
    return mp.fsum(max(p - ratio * q, 0) for p, q in outcomes)


def product(*parts: list[tuple[mp.mpf, mp.mpf]]) -> list[tuple[mp.mpf, mp.mpf]]:
    """Return the outcomes of independent coordinates or releases."""
    return [(mp.fprod(p for p, _ in outcome), mp.fprod(q for _, q in outcome)) for outcome in itertools.product(*parts)]


def renyi(outcomes: list[tuple[mp.mpf, mp.mpf]], order: float) -> mp.mpf:
    """Return the Renyi divergence of an order above 1; what is left out only makes it smaller."""
    a = mp.mpf(order)
    return mp.log(mp.fsum(p * (p / q) ** (a - 1) for p, q in outcomes if p)) / (a - 1)
