"""The settings that each trust model tries, with the noise that each needs, and the risk that no noise undercuts."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from hockeystick._numeric.search import SMALLEST, Probe, narrow
from hockeystick.isrl import noisy_mb_sgd_accountant, noisy_mb_sgd_sigma, one_pass_sigma, shuffled_mb_sgd_sigma
from hockeystick.isrl.risk import smallest_risk
from hockeystick.utility.problem import Problem

__all__ = [
    "EXTRA_NOISE",
    "TRUST",
    "Candidate",
    "Pool",
    "Problem",
    "Setting",
    "Trust",
    "batches",
    "divided_down",
    "least_noise",
    "least_risk",
    "log_excess",
    "pool_of",
    "risk_of_batches",
    "rounded_up",
    "shuffled",
]

Trust: TypeAlias = Literal["central", "inter-silo", "shuffle", "last-iterate"]
TRUST: tuple[Trust, ...] = get_args(Trust)

MOST_ROUND_COUNTS = 6  # numbers of rounds that are tried, each half of the one before
MOST_BATCH_SIZES = 3  # the same for batch sizes, a quarter of the one before
EXTRA_NOISE = 1.001  # factor on a feasible noise, for the rounding of the certificate
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


def divided_down(largest: int, most: int, divisor: int = 2) -> list[int]:
    """Return largest, largest // divisor, largest // divisor^2, ..., at most `most` of them, down to 1 at the furthest."""
    numbers = [largest // divisor**k for k in range(most) if largest >= divisor**k]
    return sorted(set(numbers), reverse=True)


def rounded_up(value: float) -> float:
    """Return a number of few digits that is not below the value."""
    context = decimal.Context(prec=DIGITS, rounding=decimal.ROUND_CEILING)
    rounded = float(context.create_decimal_from_float(value))
    return rounded if rounded >= value else math.nextafter(rounded, math.inf)


class Candidate(NamedTuple):
    """A setting whose noise is still to be found, and a bound that its risk bound cannot undercut, whatever the noise."""

    least_risk: float
    evaluate: Callable[[], Setting]


class Pool(NamedTuple):
    """Who adds noise: num_parties with num_records each; taking_part of them in a round, in batches of at most largest_batch."""

    num_parties: int
    num_records: int
    taking_part: int
    largest_batch: int


def pool_of(trust: str, problem: Problem) -> Pool:
    """Return who adds the noise: one server to all records, each silo to its own, or each record to itself."""
    total, together = problem.num_silos * problem.num_records, problem.silos_per_round * problem.max_batch_size
    if trust == "central":
        return Pool(1, total, 1, together)
    if trust == "local":
        return Pool(total, 1, together, 1)
    return Pool(problem.num_silos, problem.num_records, problem.silos_per_round, problem.max_batch_size)


def least_risk(problem: Problem, rounds: int) -> float:
    """Return what `risk_of_batches` is not below, whatever the noise: nine tenths of that of a single pass without any.

    Left out is the stability, which is positive. What remains grows with c = L^2 + d sigma^2/M, but for mu > 0 at Stich's step
    ln(max(2, A/c))/(mu R), A = (mu D R)^2. The derivative of its part eta c/2 is (ln(A/c) - 1)/(2 mu R), and the other part
    grows, so that it can fall for A/c in [2, e] only: by A/(2 mu R) times the integral of (1 - x)e^{-x} from ln 2 to 1, which
    is 0.022, where it is at least 0.34 A/(2 mu R).
    """
    share = 1.0 if problem.strong_convexity == 0.0 else 0.9
    return share * risk_of_batches(problem, rounds, 0.0, 1, math.inf)[1]


def batches(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try mini-batch SGD that draws its batches afresh in every round."""
    for rounds, batch in itertools.product(
        divided_down(problem.max_rounds, MOST_ROUND_COUNTS), divided_down(pool.largest_batch, MOST_BATCH_SIZES, 4)
    ):
        yield Candidate(least_risk(problem, rounds), partial(_noisy_batches, problem, pool, rounds, batch))


def _noisy_batches(problem: Problem, pool: Pool, rounds: int, batch: int) -> Setting:
    training: dict[str, Any] = {
        "lipschitz": problem.lipschitz,
        "num_records": pool.num_records,
        "batch_size": batch,
        "rounds": rounds,
    }
    full = rounded_up(
        one_pass_sigma(lipschitz=problem.lipschitz, batch_size=batch, epsilon=problem.epsilon, delta=problem.delta)
        * math.sqrt(rounds)
    )
    noise = full
    epsilon = _epsilon(problem, full, training) if batch == pool.num_records else math.inf
    if epsilon > problem.epsilon:  # a sample, or a closed form that rounding spoils
        noise = rounded_up(noisy_mb_sgd_sigma(**training, epsilon=problem.epsilon, delta=problem.delta))
        epsilon = _epsilon(problem, noise, training)
    total = pool.num_parties * pool.num_records
    step, risk = risk_of_batches(problem, rounds, noise, pool.taking_part, total)
    shown = problem.silos_per_round if pool.num_parties == 1 else pool.taking_part
    return Setting(noise, rounds, batch, shown, step, epsilon, risk)


def _epsilon(problem: Problem, noise: float, training: dict[str, Any]) -> float:
    return float(noisy_mb_sgd_accountant(noise_std=noise, **training).epsilon(problem.delta))


def risk_of_batches(problem: Problem, rounds: int, noise: float, taking_part: int, total: float) -> tuple[float, float]:
    """Return the step size and `isrl.mb_sgd_risk_bound` there; of a single pass if the total is infinite.

    A single pass has gradients of the risk itself: what Lemma D.6 of Lowy and Razaviyayn 2023 says of the sample's mean holds
    for the population's, and no stability is paid for.
    """
    gradient = (problem.lipschitz, total, noise, problem.dimension, taking_part)
    numbers = (problem.diameter, rounds, *gradient, problem.smoothness, problem.strong_convexity)
    with np.errstate(invalid="ignore"):  # 0 times infinity, where there is no strong convexity
        best = smallest_risk(*(np.asarray(x, dtype=np.float64) for x in numbers))
    return float(best.learning_rate), min(float(best.bound), problem.lipschitz * problem.diameter)


def shuffled(problem: Problem) -> Iterator[Candidate]:
    """Try mini-batch SGD whose messages, each of one record, are shuffled."""
    for rounds in divided_down(problem.max_rounds, MOST_ROUND_COUNTS):
        yield Candidate(least_risk(problem, rounds), partial(_shuffled, problem, rounds))


def _shuffled(problem: Problem, rounds: int) -> Setting:
    noise = rounded_up(
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
    step, risk = risk_of_batches(problem, rounds, noise, problem.silos_per_round, total)
    return Setting(noise, rounds, 1, problem.silos_per_round, step, problem.epsilon, risk)


def log_excess(delta: float, target: float) -> float:
    """Return ln(delta/target), with the smallest double in place of 0."""
    return math.log(max(delta, SMALLEST) / target)


def least_noise(excess: Callable[[float], float], most: float) -> float:
    """Return the smallest feasible noise found below a feasible one, to 1e-6."""
    good = Probe(most, excess(most))
    bad = Probe(most / 2.0, excess(most / 2.0))
    while bad.excess <= 0 and bad.x > most * 1e-6:
        good, bad = bad, Probe(bad.x / 2.0, excess(bad.x / 2.0))
    return good.x if bad.excess <= 0 else narrow(excess, good, bad, tolerance=1e-6).x
