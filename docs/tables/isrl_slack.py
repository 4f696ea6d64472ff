"""The table of docs/isrl/isrl.md: how much noise is printed, and how much the accountant needs."""

from __future__ import annotations

from typing import NamedTuple

from hockeystick import format_upper, isrl, published


class Case(NamedTuple):
    """A silo, its budget, and its batches."""

    name: str
    num_records: int
    rounds: int
    epsilon: float
    delta: float
    batch_size: int


CASES = (
    Case("MNIST, 25 silos", 1238, 35, 0.75, 1 / 1238**2, 443),
    Case("MNIST, 25 silos", 1238, 35, 6.0, 1 / 1238**2, 443),
    Case("hospital", 1000, 50, 1.0, 1e-5, 8),
    Case("small batches", 10_000, 200, 2.0, 1e-6, 66),
    Case("large silo", 100_000, 1000, 1.0, 1e-7, 1000),
    Case("full batches", 10_000, 100, 8.0, 1e-6, 10_000),
    Case("full batches, small silo", 500, 20, 4.0, 1e-4, 500),
    Case("many rounds", 2000, 100, 0.5, 1e-6, 200),
)


def row(case: Case) -> str:
    """Return one row in Markdown."""
    shape = {"lipschitz": 1.0, "num_records": case.num_records, "rounds": case.rounds}
    printed = published.noisy_mb_sgd_sigma(**shape, epsilon=case.epsilon, delta=case.delta)
    needed = isrl.noisy_mb_sgd_sigma(**shape, batch_size=case.batch_size, epsilon=case.epsilon, delta=case.delta)
    spent = isrl.noisy_mb_sgd_accountant(**shape, noise_std=printed, batch_size=case.batch_size).epsilon(case.delta)
    return (
        f"| {case.name} | {case.num_records} | {case.rounds} | {case.batch_size} | {case.epsilon:g} | {case.delta:.2g} | "
        f"{printed:.4g} | {format_upper(needed, '.4g')} | {printed / needed:.1f} | {format_upper(spent, '.3g')} |"
    )


if __name__ == "__main__":
    header = (
        "| silo | n | R | K | epsilon | delta | printed noise | needed noise | ratio | epsilon at the printed noise |"
    )
    print("\n".join([header, "|---|" + "---|" * 9, *map(row, CASES)]))  # noqa: T201
