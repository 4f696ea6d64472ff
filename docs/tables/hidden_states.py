"""The table of docs/hidden_state/hidden_states.md: how far each bound is above the exact delta, by regime."""

from __future__ import annotations

import itertools

import numpy as np

from hockeystick import last_iterate

METHODS = ("contraction", "nonlinear", "shifted", "hybrid", "projected")
REGIMES = ((0.5, 2.0), (1.0, 2.0), (1.0, 4.0), (2.0, 8.0), (1.0, 20.0))  # in noise deviations: 2L/sigma, D/(eta sigma)
LATER = (0, 1, 2, 5, 10)
RESOLVED = 1e-11  # a smaller exact value is not told from 0


def exact(eps: float, sensitivity: float, reach: float, later: int) -> float:
    """Return the largest exact delta over five starts and three directions of the other records, linear losses."""
    half = sensitivity / 2
    return max(
        last_iterate.chain_delta(
            eps,
            gradient_map="linear",
            record=np.concatenate([[half], np.full(later, others * half)]),
            neighbour=np.concatenate([[-half], np.full(later, others * half)]),
            learning_rate=1.0,
            noise_std=1.0,
            diameter=reach,
            start=start * reach / 2,
        ).lower
        for start, others in itertools.product((-1.0, -0.5, 0.0, 0.5, 1.0), (-1.0, 0.0, 1.0))
    )


def rows(eps: float) -> list[str]:
    """Return the table's rows in Markdown."""
    lines = []
    for (sensitivity, reach), later in itertools.product(REGIMES, LATER):
        truth = exact(eps, sensitivity, reach, later)
        if truth < RESOLVED:
            continue
        best = last_iterate.best(
            eps,
            index=1,
            num_records=later + 1,
            learning_rate=1.0,
            noise_std=1.0,
            lipschitz=sensitivity / 2,
            smoothness=0.0,
            diameter=reach,
            one_dimensional=True,
        )
        ratios = " | ".join(f"{best.bounds[name] / truth:.3g}" for name in METHODS)
        lines.append(f"| {sensitivity:g} | {reach:g} | {later} | {truth:.3g} | {ratios} | {best.method} |")
    return lines


REPEATED = ("plain", "shifted", "hybrid", "divided")
ROUNDS = 40


def exact_repeated(eps: float, sensitivity: float, reach: float, period: int) -> float:
    """Return the largest exact delta over the same starts and directions, the record used every `period` rounds to the last."""
    uses = (ROUNDS - 1 - np.arange(ROUNDS)) % period == 0
    half = sensitivity / 2
    return max(
        last_iterate.chain_delta(
            eps,
            gradient_map="linear",
            record=np.where(uses, half, others * half),
            neighbour=np.where(uses, -half, others * half),
            learning_rate=1.0,
            noise_std=1.0,
            diameter=reach,
            start=start * reach / 2,
        ).lower
        for start, others in itertools.product((-1.0, -0.5, 0.0, 0.5, 1.0), (-1.0, 0.0, 1.0) if period > 1 else (0.0,))
    )


def repeated_rows(eps: float) -> list[str]:
    """Return the rows for a record that is used again and again."""
    lines = []
    for period, (sensitivity, reach) in itertools.product(
        (1, 3), ((0.2, 1.0), (0.2, 2.0), (0.5, 2.0), (0.5, 4.0), (1.0, 8.0))
    ):
        truth = exact_repeated(eps, sensitivity, reach, period)
        if truth < RESOLVED:
            continue
        best = last_iterate.best_cyclic(
            eps,
            index=(ROUNDS - 1) % period + 1,
            period=period,
            rounds=ROUNDS,
            learning_rate=1.0,
            noise_std=1.0,
            lipschitz=sensitivity / 2,
            smoothness=0.0,
            diameter=reach,
        )
        ratios = " | ".join(f"{best.bounds[name] / truth:.3g}" for name in REPEATED)
        lines.append(f"| {eps:g} | {period} | {sensitivity:g} | {reach:g} | {truth:.3g} | {ratios} | {best.method} |")
    return lines


def table(columns: tuple[str, ...], lines: list[str]) -> str:
    """Return a table in Markdown."""
    return "\n".join([f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *lines])


if __name__ == "__main__":
    once = ("sensitivity", "diameter", "later rounds", "exact", *METHODS, "smallest")
    often = ("eps", "period", "sensitivity", "diameter", "exact", *REPEATED, "smallest")
    print(table(once, rows(1.0)))  # noqa: T201
    print()  # noqa: T201
    print(table(often, [*repeated_rows(0.1), *repeated_rows(0.5)]))  # noqa: T201
