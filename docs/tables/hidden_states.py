"""The table of docs/hidden_states.md: how far each bound is above the exact delta, by regime."""

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


if __name__ == "__main__":
    header = f"| sensitivity | diameter | later rounds | exact | {' | '.join(METHODS)} | smallest |"
    print("\n".join([header, "|" + "---|" * (5 + len(METHODS)), *rows(1.0)]))  # noqa: T201
