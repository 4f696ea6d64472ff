"""How far one row moves: the law of a sum of distances, each there with a probability of its own, rounded up."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import UNIT
from hockeystick.mechanisms import MixtureOfGaussians

CELLS = 2**14
LEAST_SHIFT = 1e-9  # of a MixtureOfGaussians, in noise multipliers
MOST_SHIFTS = 96


def sum_law(distances: Array, probabilities: Array, cell: float) -> Array:
    """Return the probabilities of 0, 1, ... cells, where each distance is rounded up to whole cells.

    A law that is reached by rounding values up has larger tail probabilities everywhere, and so has the mixture of Gaussians that is made of it.
    """
    places = np.ceil(distances / cell).astype(np.int64)
    law = np.zeros(int(places.sum()) + 1)
    law[0], reached = 1.0, 1
    for place, probability in zip(places, probabilities, strict=True):
        moved = law[:reached] * probability
        law[:reached] *= 1.0 - probability
        law[place : place + reached] += moved
        reached += int(place)
    law[1:] *= 1.0 + (4 * len(places) + 16) * UNIT
    return law


def largest_tails(laws: Iterable[Array]) -> Array:
    """Return the law whose tail probabilities are the largest of those of all laws."""
    tails = [np.cumsum(law[::-1])[::-1] for law in laws]
    most = np.zeros(max(map(len, tails)))
    for tail in tails:
        most[: len(tail)] = np.maximum(most[: len(tail)], tail)
    law: Array = most - np.append(most[1:], 0.0)
    return law


def mixture(law: Array, cell: float) -> MixtureOfGaussians:
    """Return the mechanism whose sensitivity, in noise multipliers, has this law, with few sensitivities, rounded up."""
    places = np.flatnonzero(law[1:]) + 1
    masses = law[places]
    if places.size > MOST_SHIFTS:  # points in proportion to the cube root of the density, as for quantisers
        weights = np.cumsum(np.cbrt(masses))
        parts = np.minimum((weights / weights[-1] * MOST_SHIFTS).astype(np.int64), MOST_SHIFTS - 1)
        first = np.flatnonzero(np.diff(parts, prepend=-1))
        masses = np.add.reduceat(masses, first)
        places = places[np.append(first[1:], places.size) - 1]
    masses = masses * (1.0 + (CELLS + 64) * UNIT)
    rest = 1.0 - math.fsum(masses)
    for i in range(
        masses.size
    ):  # what was rounded up comes off the smallest sensitivities, if 0 is too unlikely to give it
        if rest >= 0:
            break
        rest, masses[i] = min(0.0, rest + masses[i]), max(0.0, masses[i] + rest)
    shifts = np.maximum(places * cell * (1.0 + 4 * UNIT), LEAST_SHIFT)
    return MixtureOfGaussians(1.0, [0.0, *shifts.tolist()], [max(rest, 0.0), *masses.tolist()])
