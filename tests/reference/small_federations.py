"""The noisy mean of a few clients' models, by enumeration of who is drawn and by quadrature."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import ndtr

PLACES = (-1.0, 0.0, 1.0)  # of a client's model around the round's first one, in units of how far it can move
EPSILONS = (0.0, 0.3, 1.0, 2.5)


def cells(mean, deviation, edges):
    """Return the masses of a normal law between the edges, and none at the point where the model stays."""
    return np.append(np.diff(ndtr((edges - mean) / deviation)), 0.0)


def mean_of_fixed(others, mine, unused, size, use, noise, edges):  # noqa: PLR0917
    """Return the law of the noisy mean of `size` clients' models, mine being used by the record with a probability."""
    everybody, law = len(others) + 1, np.zeros(edges.size)
    for drawn in itertools.combinations(range(everybody), size):
        for place, chance in ((mine, use), (unused, 1 - use)):
            models = [*others, place]
            mean = sum(models[i] for i in drawn) / size
            law += chance / math.comb(everybody, size) * cells(mean, noise / math.sqrt(size), edges)
    return law


def mean_of_poisson(others, mine, unused, rate, use, noise, edges):  # noqa: PLR0917
    """Return the law of the noisy mean over a Poisson sample of clients; its last mass is that of nobody."""
    everybody, law = len(others) + 1, np.zeros(edges.size)
    for number in range(everybody + 1):
        for drawn in itertools.combinations(range(everybody), number):
            share = rate**number * (1 - rate) ** (everybody - number)
            if number == 0:
                law[-1] += share
                continue
            for place, chance in ((mine, use), (unused, 1 - use)):
                models = [*others, place]
                mean = sum(models[i] for i in drawn) / number
                law += share * chance * cells(mean, noise / math.sqrt(number), edges)
    return law


def largest(law_of, eps):
    """Return the largest divergence over all places of the models."""
    worst = 0.0
    for others in itertools.combinations_with_replacement(PLACES, 3):
        for unused in PLACES:
            laws = [law_of(others, mine, unused) for mine in PLACES]
            for p, q in itertools.permutations(laws, 2):
                worst = max(worst, float(np.maximum(p - math.exp(eps) * q, 0.0).sum()))
    return worst


def mean_of_remaining(others, mine, unused, size, dropout, use, noise, edges):  # noqa: PLR0917
    """Return the joint law of how many of `size` clients do not drop out, and of their noisy mean."""
    everybody, laws = len(others) + 1, np.zeros((size + 1, edges.size))
    for drawn in itertools.combinations(range(everybody), size):
        for stays in itertools.product((False, True), repeat=size):
            number = sum(stays)
            share = (1 - dropout) ** number * dropout ** (size - number) / math.comb(everybody, size)
            if number == 0:
                laws[0, -1] += share
                continue
            for place, chance in ((mine, use), (unused, 1 - use)):
                models = [*others, place]
                mean = sum(models[i] for i, stay in zip(drawn, stays, strict=True) if stay) / number
                laws[number] += share * chance * cells(mean, noise / math.sqrt(number), edges)
    return laws.ravel()
