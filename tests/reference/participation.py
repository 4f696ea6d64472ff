"""Strategy matrices, and the sets of steps that one record may be in."""

from __future__ import annotations

import itertools

import numpy as np


def toeplitz(coefficients, num_steps: int) -> np.ndarray:
    """Return the lower triangular matrix with these diagonals."""
    gaps = np.subtract.outer(np.arange(num_steps), np.arange(num_steps))
    return np.where(gaps >= 0, np.pad(np.asarray(coefficients, float), (0, num_steps))[np.abs(gaps)], 0.0)


def patterns(num_steps: int, participation: str, separation: int = 1, max_participations: int | None = None) -> list:
    """Return every set of steps that one record may be in."""
    if participation == "single":
        return [(step,) for step in range(num_steps)]
    if participation == "cyclic":
        return [tuple(range(first, num_steps, separation)) for first in range(min(separation, num_steps))]
    return [
        steps
        for size in range(1, (max_participations or num_steps) + 1)
        for steps in itertools.combinations(range(num_steps), size)
        if all(later - step >= separation for step, later in itertools.pairwise(steps))
    ]
