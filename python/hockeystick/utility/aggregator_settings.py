"""The settings of a trusted aggregator of which only the last model is seen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from hockeystick.kernels import theta_inverse
from hockeystick.utility.settings import (
    EXTRA_NOISE,
    Candidate,
    Problem,
    Setting,
    divided_down,
    least_noise,
    log_excess,
    rounded_up,
)
from hockeystick.utility.trusted_aggregator import trusted_aggregator_delta, trusted_aggregator_excess_risk

__all__ = ["aggregated"]


def aggregated(problem: Problem) -> Iterator[Candidate]:
    """Try a single pass over the silos, with steps of 1/(lambda t), of which only the last model is seen."""
    if problem.strong_convexity == 0.0:
        msg = "strong_convexity must be positive for the trusted aggregator, whose risk bound needs it, not 0"
        raise ValueError(msg)
    sizes = divided_down(problem.silos_per_round, 40)
    fitting = [size for size in sizes if problem.num_silos // size <= problem.max_rounds]
    if not fitting:
        msg = (
            f"max_rounds must be at least num_silos // silos_per_round = {problem.num_silos // sizes[0]}, "
            f"not {problem.max_rounds}: every silo takes part once"
        )
        raise ValueError(msg)
    return (Candidate(_risk(problem, size, 0.0), partial(_one_pass, problem, size)) for size in fitting)


def _risk(problem: Problem, size: int, noise: float) -> float:
    risk = trusted_aggregator_excess_risk(
        num_users=problem.num_silos,
        batch_size=size,
        dimension=problem.dimension,
        noise_std=noise,
        gradient_bound=problem.lipschitz,
        gradient_std=0.0,
        smoothness=problem.smoothness,
        strong_convexity=problem.strong_convexity,
    )
    return min(float(risk), problem.lipschitz * problem.diameter)


def _one_pass(problem: Problem, size: int) -> Setting:
    """Return the least noise with which a single pass in batches of this size stays within the budget."""

    def excess(noise: float) -> float:
        delta = trusted_aggregator_delta(
            problem.epsilon,
            num_users=problem.num_silos,
            batch_size=size,
            noise_std=noise,
            lipschitz=problem.lipschitz,
            radius=problem.diameter / 2.0,
            smoothness=problem.smoothness,
            strong_convexity=problem.strong_convexity,
        )
        return log_excess(float(delta), problem.delta)

    # Without any later round to hide it, the user's own noise must do.
    most = (
        2.0 * problem.lipschitz / math.sqrt(size) / float(theta_inverse(problem.epsilon, problem.delta)) * EXTRA_NOISE
    )
    noise = rounded_up(least_noise(excess, most))
    return Setting(
        noise_std=noise,
        rounds=problem.num_silos // size,
        batch_size=problem.num_records,
        silos_per_round=size,
        learning_rate=1.0 / problem.strong_convexity,
        epsilon=problem.epsilon,
        risk_bound=_risk(problem, size, noise),
    )
