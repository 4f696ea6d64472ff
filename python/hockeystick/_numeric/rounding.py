"""Margins for rounding: by how much a computed number is moved so that an upper end stays above the truth.

They are relative, in units of the number or, where terms cancel, of the sum of the terms' sizes. Each is a few times the
error that it covers: one operation is off by half a unit at most, and the C library's logarithms, exponentials and
log-gamma functions by a few units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

UNIT = 2.0**-52  # from 1 to the next double: one operation, rounded either way
LARGEST_BELOW_ONE = 1.0 - 2.0**-53

HANDFUL = 2.0**-50  # a handful of operations one after the other: four units
UP, DOWN = 1.0 + HANDFUL, 1.0 - HANDFUL

FUNCTIONS = 2.0**-49  # a term of a few logarithms or exponentials: eight units
SHORT_SUM = 2.0**-48  # a sum of such terms that are few, or the spending that it stands for: sixteen units
SHORT_SUM_UP, SHORT_SUM_DOWN = 1.0 + SHORT_SUM, 1.0 - SHORT_SUM
LONG_SUM = 2.0**-46  # a sum of logarithms over orders or powers, whose largest term is the result: 64 units
PENALTY = 2.0**-45  # what epsilon is above a Renyi divergence, where a few logarithms cancel: 128 units
GAUSSIAN_TAIL = 2.0**-43  # the logarithm of a Gaussian tail, or a penalty that is solved for: 512 units
MASS = 2.0**-40  # a mass e^-x with x up to 700, whose rounding counts x times


def failure_of(steps: Iterable[tuple[int, float]]) -> float:
    """Return a union bound: the sum of counts times probabilities, at most 1, the next double above it if it is none itself."""
    exact = min(Fraction(1), sum((count * Fraction(failure) for count, failure in steps if failure), Fraction(0)))
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
