"""Strategy matrices, the sets of steps that one record may be in and their laws, and what these leak, by quadrature."""

import functools
import itertools
import math

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


def batch_law(steps: int, separation: int, rate, first=(1,)) -> dict:
    """Return the probability of every set of steps that a record is in, from all outcomes of its coins, in the numbers that it is given.

    After a step it sits out until so many later; the first step that it may be in has the law `first`.
    """
    law: dict[tuple[int, ...], object] = {}
    for (start, weight), *coins in itertools.product(enumerate(first), *[(0, 1)] * steps):
        chance, free, taken = weight, start, []
        for step, coin in enumerate(coins):
            chance *= rate if coin else 1 - rate
            if coin and step >= free:
                taken.append(step)
                free = step + separation
        law[tuple(taken)] = law.get(tuple(taken), 0) + chance
    return {taken: chance for taken, chance in law.items() if chance}


def as_arrays(law: dict, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a law of sets of steps as rows of zeros and ones, and their probabilities."""
    patterns = np.array([[float(step in taken) for step in range(steps)] for taken in law])
    return patterns, np.array([float(chance) for chance in law.values()])


NOTHING = np.zeros((1, 1)), np.ones(1)


def mixture_deltas(means: np.ndarray, weights: np.ndarray, epsilons, points: int, other=NOTHING) -> np.ndarray:
    """Return the larger delta of two mixtures of normal laws of deviation 1, by the trapezoidal rule over a few rows; the other is one law around 0 if not given."""
    laws = (means, weights), (other[0] * np.ones_like(means[:1]), other[1])
    ends = np.vstack([law[0] for law in laws])
    axes = [np.linspace(min(row.min(), 0.0) - 8.0, max(row.max(), 0.0) + 8.0, points) for row in ends.T]
    cell = math.prod((x[1] - x[0]) / math.sqrt(2 * math.pi) for x in axes)

    def density(mean: np.ndarray) -> np.ndarray:
        bells = [np.exp(-0.5 * (x - m) ** 2) for m, x in zip(mean, axes, strict=True)]
        return functools.reduce(np.multiply.outer, bells)

    p, q = (sum(weight * density(mean) for mean, weight in zip(*law, strict=True)) for law in laws)
    pairs = [(np.maximum(p - e * q, 0.0), np.maximum(q - e * p, 0.0)) for e in np.exp(epsilons)]
    return np.array([cell * max(float(excess.sum()) for excess in pair) for pair in pairs])
