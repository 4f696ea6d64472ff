"""The noisy mean of a few clients' models, by enumeration of who is drawn and by quadrature."""

import itertools
import math

import numpy as np
from scipy.special import ndtr

import enumeration

PLACES = (-1.0, 0.0, 1.0)  # of a client's model around the round's first one, in units of how far it can move
CLIENTS = range(4)
EPSILONS = (0.0, 0.3, 1.0, 2.5)


def cells(mean, deviation, edges):
    """Return the masses of a normal law between the edges, and none at the point where the model stays."""
    return np.append(np.diff(ndtr((edges - mean) / deviation)), 0.0)


def fixed(size):
    """Return the sets of a fixed number of clients, with their chances."""
    return list(enumeration.fixed(CLIENTS, size))


def poisson(rate):
    """Return the sets of a Poisson sample, with their chances."""
    return list(enumeration.poisson(CLIENTS, rate))


def remaining(size, dropout):
    """Return the sets of those of a fixed number who do not drop out, with their chances."""
    return list(enumeration.nested(fixed(size), lambda drawn: enumeration.poisson(drawn, 1 - dropout)))


def law_of_mean(sets, others, mine, unused, *, use, noise, edges):
    """Return the joint law of how many take part and of their noisy mean, mine being used by the record with a probability."""
    laws = np.zeros((len(CLIENTS) + 1, edges.size))
    for share, drawn in sets:
        number = len(drawn)
        if number == 0:
            laws[0, -1] += share
            continue
        for place, chance in ((mine, use), (unused, 1 - use)):
            models = [*others, place]
            mean = sum(models[i] for i in drawn) / number
            laws[number] += share * chance * cells(mean, noise / math.sqrt(number), edges)
    return laws


def largest(law_of):
    """Return the largest divergence at each epsilon over all places of the models."""
    worst = dict.fromkeys(EPSILONS, 0.0)
    for others in itertools.combinations_with_replacement(PLACES, 3):
        for unused in PLACES:
            laws = [law_of(others, mine, unused) for mine in PLACES]
            for (p, q), eps in itertools.product(itertools.permutations(laws, 2), EPSILONS):
                worst[eps] = max(worst[eps], enumeration.hockey_stick(p, q, eps))
    return worst
