"""The tables of docs/hidden_state/hidden_states.md: how far each bound is above the exact delta, by regime.

"Exact" is the largest delta of linear losses that a search finds over the start and the other records' gradients: a drift of
all rounds, and one of its own in each of the last rounds. A gradient of one record moves the model by at most g/2 deviations, g
its sensitivity; where a round has many other records, their drift is not bounded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from scipy import optimize

from hockeystick import last_iterate

METHODS = ("contraction", "nonlinear", "shifted", "hybrid", "projected", "joint")
REGIMES = ((0.5, 2.0), (1.0, 2.0), (1.0, 3.0), (1.0, 4.0), (2.0, 8.0), (1.0, 20.0))  # 2L/sigma and D/(eta sigma)
LATER = (1, 2, 5, 10)
RESOLVED = 1e-11  # a smaller exact value is not told from 0
DRIFTS = (0.0, 0.15, 0.3, 0.6, 1.0, 3.0)
TRIED = 2  # of the starts of a search


def process(sensitivity: float, reach: float) -> dict[str, float]:
    """Return the arguments of linear losses, lengths in noise deviations."""
    return {
        "learning_rate": 1.0,
        "noise_std": 1.0,
        "lipschitz": sensitivity / 2,
        "smoothness": 0.0,
        "diameter": reach,
    }


def delta(  # noqa: PLR0917
    eps: float, sensitivity: float, reach: float, start: float, drift: np.ndarray, uses: np.ndarray
) -> float:
    """Return the certified lower end of delta for linear losses whose rounds with the record move apart by the sensitivity."""
    half = np.where(uses, sensitivity / 2, 0.0)
    chain = {"gradient_map": "linear", "learning_rate": 1.0, "noise_std": 1.0, "diameter": reach}
    start = float(np.clip(start, -reach / 2, reach / 2))
    return float(
        last_iterate.chain_delta(eps, record=half - drift, neighbour=-half - drift, start=start, **chain).lower
    )


def largest(value: Callable[[np.ndarray], float], starts: list[np.ndarray], bounds: list[tuple[float, float]]) -> float:
    """Return the largest value that Powell's search finds from the best of the starts."""
    found = 0.0
    for start in sorted(starts, key=value, reverse=True)[:TRIED]:
        options = {"maxfev": 120 * len(bounds), "xtol": 1e-3, "ftol": 1e-6}
        result = optimize.minimize(lambda x: -value(x), start, method="Powell", bounds=bounds, options=options)
        found = max(found, -float(result.fun), value(start))
    return found


def exact(eps: float, sensitivity: float, reach: float, later: int) -> float:
    """Return the largest delta over the start and the drift of every later round, which is the gradient of one record."""
    uses = np.arange(later + 1) == 0
    half = sensitivity / 2

    def value(x: np.ndarray) -> float:
        return delta(eps, sensitivity, reach, x[0], np.concatenate([[0.0], x[1:]]), uses)

    grid = itertools.product((-1.0, -0.5, 0.0, 0.5, 1.0), np.linspace(-half, half, 5))
    starts = [np.array([start * reach / 2, *[drift] * later]) for start, drift in grid]
    return largest(value, starts, [(-reach / 2, reach / 2)] + [(-half, half)] * later)


def rows(eps: float) -> list[str]:
    """Return the table's rows in Markdown."""
    lines = []
    for (sensitivity, reach), later in itertools.product(REGIMES, LATER):
        truth = exact(eps, sensitivity, reach, later)
        if truth < RESOLVED:
            continue
        arguments = process(sensitivity, reach)
        best = last_iterate.best(eps, index=1, num_records=later + 1, one_dimensional=True, **arguments)
        ratios = " | ".join(f"{best.bounds[name] / truth:.3g}" for name in METHODS)
        lines.append(f"| {sensitivity:g} | {reach:g} | {later} | {truth:.3g} | {ratios} | {best.method} |")
    return lines


REPEATED = ("plain", "shifted", "hybrid", "divided", "joint")
ROUNDS = 40
OWN = 6  # last rounds with a drift of their own


def exact_repeated(eps: float, sensitivity: float, reach: float, period: int) -> float:
    """Return the largest delta over the start and the drifts, the record used every `period` rounds to the last."""
    uses = (ROUNDS - 1 - np.arange(ROUNDS)) % period == 0

    def value(x: np.ndarray) -> float:
        drift = np.where(uses, x[1], x[2])
        drift[-OWN:] = x[3:]
        return delta(eps, sensitivity, reach, x[0], drift, uses)

    others = DRIFTS if period > 1 else (0.0,)
    starts = [
        np.array([start * reach / 2, a, b, *np.where(uses[-OWN:], a, b)])
        for start, a, b in itertools.product((-1.0, 0.0), DRIFTS, others)
    ]
    return largest(value, starts, [(-reach / 2, reach / 2)] + [(-reach - 3, reach + 3)] * (2 + OWN))


def repeated_rows(eps: float) -> list[str]:
    """Return the rows for a record that is used again and again."""
    lines = []
    for period, (sensitivity, reach) in itertools.product(
        (1, 3), ((0.2, 1.0), (0.2, 2.0), (0.5, 2.0), (0.5, 4.0), (1.0, 8.0))
    ):
        truth = exact_repeated(eps, sensitivity, reach, period)
        if truth < RESOLVED:
            continue
        when = {"index": (ROUNDS - 1) % period + 1, "period": period, "rounds": ROUNDS}
        best = last_iterate.best_cyclic(eps, **when, **process(sensitivity, reach))
        ratios = " | ".join(f"{best.bounds[name] / truth:.3g}" for name in REPEATED)
        lines.append(f"| {period} | {sensitivity:g} | {reach:g} | {truth:.3g} | {ratios} | {best.method} |")
    return lines


def table(columns: tuple[str, ...], lines: list[str]) -> str:
    """Return a table in Markdown."""
    return "\n".join([f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *lines])


if __name__ == "__main__":
    once = ("sensitivity", "diameter", "later rounds", "exact", *METHODS, "smallest")
    often = ("period", "sensitivity", "diameter", "exact", *REPEATED, "smallest")
    print(table(once, rows(1.0)))  # noqa: T201
    print()  # noqa: T201
    print(table(often, repeated_rows(0.5)))  # noqa: T201
