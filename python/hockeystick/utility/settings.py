"""The inputs of a plan, and the settings that each trust model tries, with the noise that each needs.

Those with the smallest risk bounds are found without calibrating the noise of those that cannot be among them.
"""

from __future__ import annotations

import decimal
import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np

from hockeystick._checks import (
    OPEN_PROBABILITY,
    Domain,
    at_most,
    count_scalar,
    non_negative_scalar,
    positive_scalar,
    scalar,
)
from hockeystick._numeric.search import SMALLEST, Probe, narrow
from hockeystick.isrl import noisy_mb_sgd_accountant, noisy_mb_sgd_sigma, one_pass_sigma, shuffled_mb_sgd_sigma
from hockeystick.isrl.risk import smallest_risk
from hockeystick.kernels import theta_inverse
from hockeystick.utility.aggregator_risk import trusted_aggregator_delta, trusted_aggregator_excess_risk

SQUARED = (lambda x: 1e-60 <= x <= 1e60, "lie in [1e-60, 1e60]")  # the risk bounds multiply a few of these


InputChecks: TypeAlias = Mapping[str, Callable[[str, Any], Any] | Domain]


@dataclass(frozen=True)
class Inputs:
    """The checked arguments of a front end, one field each."""

    CHECKS: ClassVar[InputChecks]
    AT_MOST: ClassVar[Mapping[str, str]]  # an argument -> the one that it must not exceed
    OPTIONAL: ClassVar[tuple[str, ...]]  # those of them that, left out, are as large as they may be


Kind = TypeVar("Kind", bound=Inputs)


def checked_inputs(kind: type[Kind], arguments: Mapping[str, Any]) -> Kind:
    """Check the arguments of the fields in their order and fill in what was left out; there may be other arguments."""
    found: dict[str, Any] = {}
    for name, check in kind.CHECKS.items():
        left_out = arguments[name] is None and name in kind.OPTIONAL
        value = found[kind.AT_MOST[name]] if left_out else arguments[name]
        found[name] = scalar(name, value, *check) if isinstance(check, tuple) else check(name, value)
    for small, large in kind.AT_MOST.items():
        at_most(small, found[small], large, found[large])
    return kind(**found)


@dataclass(frozen=True)
class Problem(Inputs):
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

    CHECKS: ClassVar[InputChecks] = {
        **dict.fromkeys(("num_silos", "num_records", "dimension"), count_scalar),
        **dict.fromkeys(("lipschitz", "diameter", "smoothness"), SQUARED),
        "strong_convexity": non_negative_scalar,
        "epsilon": positive_scalar,
        "delta": OPEN_PROBABILITY,
        **dict.fromkeys(("max_rounds", "silos_per_round", "max_batch_size"), count_scalar),
    }
    AT_MOST: ClassVar[Mapping[str, str]] = {
        "strong_convexity": "smoothness",
        "silos_per_round": "num_silos",
        "max_batch_size": "num_records",
    }
    OPTIONAL = ("silos_per_round", "max_batch_size")


Trust: TypeAlias = Literal["central", "inter-silo", "shuffle", "last-iterate"]
TRUST: tuple[Trust, ...] = get_args(Trust)

MAX_ROUND_COUNTS = 6  # numbers of rounds that are tried, each half of the one before
MAX_BATCH_SIZES = 3  # the same for batch sizes, a quarter of the one before
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
        divided_down(problem.max_rounds, MAX_ROUND_COUNTS), divided_down(pool.largest_batch, MAX_BATCH_SIZES, 4)
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
    for rounds in divided_down(problem.max_rounds, MAX_ROUND_COUNTS):
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


Report: TypeAlias = Callable[[int, int], None]  # told after each candidate: how many are done, and of how many


class Found(NamedTuple):
    """The best setting of each group, by its number, the smallest risk bound first; and how many candidates had to be calibrated."""

    found: list[tuple[int, Setting]]
    calibrated: int


def candidates_of(trust: Trust, problem: Problem) -> Iterable[Candidate]:
    """Return what a trust model tries."""
    if trust == "last-iterate":
        return aggregated(problem)
    return shuffled(problem) if trust == "shuffle" else batches(problem, pool_of(trust, problem))


def smallest(groups: Sequence[Sequence[Candidate]], most: int, report: Report | None = None) -> Found:
    """Return the best setting of each of the best `most` groups of candidates, the smallest risk bound first.

    Candidates are taken in the order of what their risk cannot undercut. One is left out where its group has a setting that is
    as good, or where `most` groups have better ones: either way the answer is that of calibrating all.
    """
    order = sorted(
        (candidate.least_risk, number, place)
        for number, group in enumerate(groups)
        for place, candidate in enumerate(group)
    )
    best: dict[int, tuple[float, int, Setting]] = {}  # with the place, by which equal ones are ordered
    calibrated = 0
    for done, (least, number, place) in enumerate(order):
        limit = heapq.nsmallest(most, (risk for risk, _, _ in best.values()))
        hopeless = len(limit) == most and least > limit[-1]
        if not hopeless and not (number in best and least > best[number][0]):
            setting = groups[number][place].evaluate()
            calibrated += 1
            rival = (setting.risk_bound, place, setting)
            best[number] = min(best.get(number, rival), rival, key=lambda one: one[:2])
        if report is not None:
            report(done + 1, len(order))
    ranked = sorted((risk, number) for number, (risk, _, _) in best.items())[:most]
    return Found([(number, best[number][2]) for _, number in ranked], calibrated)
