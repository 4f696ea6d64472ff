"""The settings that each trust model tries, with the noise that each needs."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from hockeystick._numeric.search import Probe, narrow
from hockeystick.isrl import noisy_mb_sgd_accountant, noisy_mb_sgd_sigma, shuffled_mb_sgd_sigma
from hockeystick.isrl.risk import smallest_risk
from hockeystick.kernels import theta_inverse
from hockeystick.utility.trusted_aggregator import trusted_aggregator_delta, trusted_aggregator_excess_risk

__all__ = ["SEARCHES", "TRUST", "Problem", "Setting", "Trust"]

Trust: TypeAlias = Literal["central", "inter-silo", "shuffle", "last-iterate"]
TRUST: tuple[Trust, ...] = get_args(Trust)

MOST_ROUND_COUNTS = 6  # numbers of rounds that are tried, each half of the one before
MOST_BATCH_SIZES = 3  # the same for batch sizes, a quarter of the one before
DIGITS = 4  # of the noise, rounded up, so that what is printed is what is certified


class Setting(NamedTuple):
    """One feasible setting.

    Attributes
    ----------
    noise_std : float
        Standard deviation per coordinate of the noise: on each silo's mean gradient, or under "central" on that of the pooled
        batch.
    rounds : int
        Number of rounds T.
    batch_size : int
        Records K of each participating silo in a round; under "central" of all together.
    silos_per_round : int
        Participating silos m.
    learning_rate : float
        Step size; under "last-iterate" that of the first round, 1/strong_convexity, which falls as 1/t.
    epsilon : float
        Certified epsilon at the plan's delta.
    risk_bound : float
        Bound on the excess risk, at most L D, which every model of the ball meets.
    """

    noise_std: float
    rounds: int
    batch_size: int
    silos_per_round: int
    learning_rate: float
    epsilon: float
    risk_bound: float


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


def _halves(largest: int, most: int, divisor: int = 2) -> list[int]:
    """Return a number, its half, its quarter, ..., down to 1 at the furthest."""
    numbers = [largest // divisor**k for k in range(most) if largest >= divisor**k]
    return sorted(set(numbers), reverse=True)


def _rounded_up(value: float) -> float:
    """Return a number of few digits that is not below the value."""
    context = decimal.Context(prec=DIGITS, rounding=decimal.ROUND_CEILING)
    rounded = float(context.create_decimal_from_float(value))
    return rounded if rounded >= value else math.nextafter(rounded, math.inf)


def _batches(
    problem: Problem, *, num_silos: int, num_records: int, largest: int, taking_part: int
) -> Iterator[Setting]:
    """Try mini-batch SGD on silos of this size, of which so many count for the risk."""
    for rounds, batch in itertools.product(
        _halves(problem.max_rounds, MOST_ROUND_COUNTS), _halves(largest, MOST_BATCH_SIZES, 4)
    ):
        least = noisy_mb_sgd_sigma(
            lipschitz=problem.lipschitz,
            num_records=num_records,
            batch_size=batch,
            rounds=rounds,
            epsilon=problem.epsilon,
            delta=problem.delta,
        )
        noise = _rounded_up(least)
        silo = noisy_mb_sgd_accountant(
            noise_std=noise, lipschitz=problem.lipschitz, num_records=num_records, batch_size=batch, rounds=rounds
        )
        step, risk = _risk(problem, rounds, noise, taking_part, num_silos * num_records)
        shown = problem.silos_per_round if num_silos == 1 else taking_part
        yield Setting(noise, rounds, batch, shown, step, float(silo.epsilon(problem.delta)), risk)


def _risk(problem: Problem, rounds: int, noise: float, taking_part: int, total: int) -> tuple[float, float]:
    """Return the step size and `isrl.mb_sgd_risk_bound` there."""
    gradient = (problem.lipschitz, total, noise, problem.dimension, taking_part)
    numbers = (problem.diameter, rounds, *gradient, problem.smoothness, problem.strong_convexity)
    best = smallest_risk(*(np.asarray(x, dtype=np.float64) for x in numbers))
    return float(best.learning_rate), min(float(best.bound), problem.lipschitz * problem.diameter)


def _central(problem: Problem) -> Iterator[Setting]:
    return _batches(
        problem,
        num_silos=1,
        num_records=problem.num_silos * problem.num_records,
        largest=problem.silos_per_round * problem.max_batch_size,
        taking_part=1,
    )


def _inter_silo(problem: Problem) -> Iterator[Setting]:
    return _batches(
        problem,
        num_silos=problem.num_silos,
        num_records=problem.num_records,
        largest=problem.max_batch_size,
        taking_part=problem.silos_per_round,
    )


def _shuffle(problem: Problem) -> Iterator[Setting]:
    for rounds in _halves(problem.max_rounds, MOST_ROUND_COUNTS):
        noise = _rounded_up(
            shuffled_mb_sgd_sigma(
                lipschitz=problem.lipschitz,
                num_records=problem.num_records,
                num_silos=problem.num_silos,
                silos_per_round=problem.silos_per_round,
                rounds=rounds,
                epsilon=problem.epsilon,
                delta=problem.delta,
            ).noise_std
        )
        total = problem.num_silos * problem.num_records
        step, risk = _risk(problem, rounds, noise, problem.silos_per_round, total)
        yield Setting(noise, rounds, 1, problem.silos_per_round, step, problem.epsilon, risk)


def _last_iterate(problem: Problem) -> Sequence[Setting]:
    if problem.strong_convexity == 0.0:
        msg = "strong_convexity must be positive for trust='last-iterate', whose risk bound needs it, not 0"
        raise ValueError(msg)
    sizes = _halves(problem.silos_per_round, 40)
    settings = [_one_pass(problem, size) for size in sizes if problem.num_silos // size <= problem.max_rounds]
    if not settings:
        msg = (
            f"max_rounds must be at least num_silos // silos_per_round = {problem.num_silos // sizes[0]}, "
            f"not {problem.max_rounds}: every silo takes part once"
        )
        raise ValueError(msg)
    return settings


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
        return math.log(max(float(delta), 5e-324) / problem.delta)

    # Without any later round to hide it, the user's own noise must do.
    most = 2.0 * problem.lipschitz / math.sqrt(size) / float(theta_inverse(problem.epsilon, problem.delta)) * 1.001
    noise = _rounded_up(_least(excess, most))
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
    return Setting(
        noise_std=noise,
        rounds=problem.num_silos // size,
        batch_size=problem.num_records,
        silos_per_round=size,
        learning_rate=1.0 / problem.strong_convexity,
        epsilon=problem.epsilon,
        risk_bound=min(float(risk), problem.lipschitz * problem.diameter),
    )


def _least(excess: Callable[[float], float], most: float) -> float:
    """Return the smallest feasible noise found below a feasible one, to 1e-6."""
    good = Probe(most, excess(most))
    bad = Probe(most / 2.0, excess(most / 2.0))
    while bad.excess <= 0 and bad.x > most * 1e-6:
        good, bad = bad, Probe(bad.x / 2.0, excess(bad.x / 2.0))
    return good.x if bad.excess <= 0 else narrow(excess, good, bad, tolerance=1e-6).x


SEARCHES: dict[str, Callable[[Problem], Iterator[Setting] | Sequence[Setting]]] = {
    "central": _central,
    "inter-silo": _inter_silo,
    "shuffle": _shuffle,
    "last-iterate": _last_iterate,
}
