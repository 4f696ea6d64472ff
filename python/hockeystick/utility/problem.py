"""The inputs of a plan, and what they may be."""

from __future__ import annotations

from dataclasses import dataclass

from hockeystick._checks import at_most, count_scalar, non_negative_scalar, positive_scalar, scalar

__all__ = ["Problem", "checked_problem"]

SQUARED = (lambda x: 1e-60 <= x <= 1e60, "lie in [1e-60, 1e60]")  # the risk bounds multiply a few of these


@dataclass(frozen=True)
class Problem:
    """The checked inputs of a plan."""

    num_silos: int
    num_records: int
    dimension: int
    lipschitz: float
    diameter: float
    smoothness: float
    strong_convexity: float
    epsilon: float
    delta: float
    max_rounds: int
    silos_per_round: int
    max_batch_size: int


def checked_problem(
    *,
    num_silos: int,
    num_records: int,
    dimension: int,
    lipschitz: float,
    diameter: float,
    smoothness: float,
    strong_convexity: float,
    epsilon: float,
    delta: float,
    max_rounds: int,
    silos_per_round: int | None,
    max_batch_size: int | None,
) -> Problem:
    """Check the inputs and fill in what was left out."""
    problem = Problem(
        num_silos=count_scalar("num_silos", num_silos),
        num_records=count_scalar("num_records", num_records),
        dimension=count_scalar("dimension", dimension),
        lipschitz=scalar("lipschitz", lipschitz, *SQUARED),
        diameter=scalar("diameter", diameter, *SQUARED),
        smoothness=scalar("smoothness", smoothness, *SQUARED),
        strong_convexity=non_negative_scalar("strong_convexity", strong_convexity),
        epsilon=positive_scalar("epsilon", epsilon),
        delta=scalar("delta", delta, lambda x: 0 < x < 1, "lie in (0, 1)"),
        max_rounds=count_scalar("max_rounds", max_rounds),
        silos_per_round=num_silos if silos_per_round is None else count_scalar("silos_per_round", silos_per_round),
        max_batch_size=num_records if max_batch_size is None else count_scalar("max_batch_size", max_batch_size),
    )
    at_most("strong_convexity", strong_convexity, "smoothness", smoothness)
    at_most("silos_per_round", problem.silos_per_round, "num_silos", num_silos)
    at_most("max_batch_size", problem.max_batch_size, "num_records", num_records)
    return problem
