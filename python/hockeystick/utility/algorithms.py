"""The algorithms that a plan and a comparison try, under each trust model: the noise that a budget asks for, and a bound on the risk."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hockeystick._numeric.search import SMALLEST, Probe, narrow
from hockeystick.federated import fedavg_epsilon, fedavg_gdp, fedprox_epsilon, fedprox_gdp
from hockeystick.isrl import (
    acsa_bound,
    multistage_schedule,
    noisy_mb_sgd_accountant,
    noisy_mb_sgd_sigma,
    one_pass_sigma,
    shuffled_mb_sgd_sigma,
)
from hockeystick.isrl.risk import smallest_risk
from hockeystick.kernels import theta_inverse
from hockeystick.last_iterate import best_random_stop
from hockeystick.utility.aggregator_risk import trusted_aggregator_delta, trusted_aggregator_excess_risk
from hockeystick.utility.settings import Candidate, Problem, Setting, rounded_up

MAX_ROUND_COUNTS = 6  # numbers of rounds that are tried, each half of the one before
MAX_BATCH_SIZES = 3  # the same for batch sizes, a quarter of the one before
EXTRA_NOISE = 1.001  # factor on a feasible noise, for the rounding of the certificate
PROX = 2.0  # FedProx's coefficient, in units of the smoothness, which it must exceed


def divided_down(largest: int, most: int, divisor: int = 2) -> list[int]:
    """Return largest, largest // divisor, largest // divisor^2, ..., at most `most` of them, down to 1 at the furthest."""
    return [largest // divisor**k for k in range(most) if largest >= divisor**k]


class Pool(NamedTuple):
    """Who adds noise: num_parties with num_records each; taking_part of them in a round, in batches of at most largest_batch."""

    num_parties: int
    num_records: int
    taking_part: int
    largest_batch: int

    @property
    def total(self) -> int:
        """Records of all parties."""
        return self.num_parties * self.num_records

    def single_pass(self, rounds: int) -> tuple[int, int]:
        """Return the batch and the parties of each round of a single pass: records of all parties are used once at most."""
        if rounds <= self.num_records:
            return min(self.largest_batch, self.num_records // rounds), self.taking_part
        return 1, min(self.taking_part, self.total // rounds)


def pool_of(trust: str, problem: Problem) -> Pool:
    """Return who adds the noise: one server to all records, each silo to its own, or each record to itself."""
    together = problem.silos_per_round * problem.max_batch_size
    if trust == "central":
        return Pool(1, problem.num_silos * problem.num_records, 1, together)
    if trust == "local":
        return Pool(problem.num_silos * problem.num_records, 1, together, 1)
    return Pool(problem.num_silos, problem.num_records, problem.silos_per_round, problem.max_batch_size)


def _silos(problem: Problem, pool: Pool, parties: int) -> int:
    """Return what is shown as the silos of a round."""
    return problem.silos_per_round if pool.num_parties == 1 else parties


def _once(problem: Problem, batch: int) -> float:
    """Return the noise of a batch whose records are used in no other round."""
    return float(problem.of(one_pass_sigma, batch_size=batch))


def _epsilon(problem: Problem, noise: float, **shape: int) -> float:
    """Return the certified epsilon of one party's messages."""
    return float(problem.of(noisy_mb_sgd_accountant, noise_std=noise, **shape).epsilon(problem.delta))


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
    shape = {"num_records": pool.num_records, "batch_size": batch, "rounds": rounds}
    noise = rounded_up(_once(problem, batch) * math.sqrt(rounds))
    epsilon = _epsilon(problem, noise, **shape) if batch == pool.num_records else math.inf
    if epsilon > problem.epsilon:  # a sample, or a closed form that rounding spoils
        noise = rounded_up(problem.of(noisy_mb_sgd_sigma, **shape))
        epsilon = _epsilon(problem, noise, **shape)
    step, risk = risk_of_batches(problem, rounds, noise, pool.taking_part, pool.total)
    return Setting(noise, rounds, batch, _silos(problem, pool, pool.taking_part), step, epsilon, risk)


def risk_of_batches(problem: Problem, rounds: int, noise: float, taking_part: int, total: float) -> tuple[float, float]:
    """Return the step size and `isrl.mb_sgd_risk_bound` there; of a single pass if the total is infinite.

    A single pass has gradients of the risk itself: what Lemma D.6 of Lowy and Razaviyayn 2023 says of the sample's mean holds
    for the population's, and no stability is paid for.
    """
    gradient = (problem.lipschitz, total, noise, problem.dimension, taking_part)
    numbers = (problem.diameter, rounds, *gradient, problem.smoothness, problem.strong_convexity)
    with np.errstate(invalid="ignore"):  # 0 times infinity, where there is no strong convexity
        best = smallest_risk(*(np.asarray(x, dtype=np.float64) for x in numbers))
    return float(best.learning_rate), min(float(best.bound), problem.gap)


def shuffled(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try mini-batch SGD whose messages, each of one record, are shuffled."""
    for rounds in divided_down(problem.max_rounds, MAX_ROUND_COUNTS):
        yield Candidate(least_risk(problem, rounds), partial(_shuffled, problem, pool, rounds))


def _shuffled(problem: Problem, pool: Pool, rounds: int) -> Setting:
    noise = rounded_up(problem.of(shuffled_mb_sgd_sigma, rounds=rounds).noise_std)
    step, risk = risk_of_batches(problem, rounds, noise, problem.silos_per_round, pool.total)
    return Setting(noise, rounds, 1, problem.silos_per_round, step, problem.epsilon, risk)


def aggregated(problem: Problem, _: Pool) -> Iterator[Candidate]:
    """Try a single pass over the silos, with steps of 1/(lambda t), of which only the last model is seen."""
    if problem.strong_convexity == 0.0:
        raise ValueError(
            "strong_convexity must be positive for the trusted aggregator, whose risk bound needs it, not 0"
        )
    sizes = divided_down(problem.silos_per_round, 40)
    fitting = [size for size in sizes if problem.num_silos // size <= problem.max_rounds]
    if not fitting:
        raise ValueError(
            f"max_rounds must be at least num_silos // silos_per_round = {problem.num_silos // sizes[0]}, "
            f"not {problem.max_rounds}: every silo takes part once"
        )
    return (Candidate(_risk_of_one_pass(problem, size, 0.0), partial(_aggregated, problem, size)) for size in fitting)


def _risk_of_one_pass(problem: Problem, size: int, noise: float) -> float:
    users = {"num_users": problem.num_silos, "batch_size": size, "noise_std": noise}
    risk = problem.of(trusted_aggregator_excess_risk, **users, gradient_bound=problem.lipschitz, gradient_std=0.0)
    return min(float(risk), problem.gap)


def _aggregated(problem: Problem, size: int) -> Setting:
    """Return the least noise with which a single pass in batches of this size stays within the budget."""

    def excess(noise: float) -> float:
        users = {"num_users": problem.num_silos, "batch_size": size, "noise_std": noise}
        delta = problem.of(trusted_aggregator_delta, epsilon=problem.epsilon, **users, radius=problem.diameter / 2.0)
        return log_excess(float(delta), problem.delta)

    # Without any later round to hide it, the user's own noise must do.
    most = (
        2.0 * problem.lipschitz / math.sqrt(size) / float(theta_inverse(problem.epsilon, problem.delta)) * EXTRA_NOISE
    )
    noise = rounded_up(least_noise(excess, most))
    risk = _risk_of_one_pass(problem, size, noise)
    step = 1.0 / problem.strong_convexity
    return Setting(noise, problem.num_silos // size, problem.num_records, size, step, problem.epsilon, risk)


def _one_pass_settings(
    problem: Problem, pool: Pool, risk: Callable[[int, int, float, int], tuple[float, float]]
) -> Iterator[Candidate]:
    """Try numbers of rounds for single passes with a step size and a risk that follow from rounds, batch, noise and parties."""
    for rounds in divided_down(min(problem.max_rounds, pool.total), MAX_ROUND_COUNTS):
        batch, parties = pool.single_pass(rounds)
        noise = rounded_up(_once(problem, batch))
        step, bound = risk(rounds, batch, noise, parties)
        if bound < math.inf:
            found = Setting(noise, rounds, batch, _silos(problem, pool, parties), step, math.nan, bound)
            yield Candidate(bound, partial(_with_epsilon_of_one_pass, problem, found))


def _with_epsilon_of_one_pass(problem: Problem, setting: Setting) -> Setting:
    batch = setting.batch_size
    epsilon = _epsilon(problem, setting.noise_std, num_records=batch, batch_size=batch, rounds=1)
    return setting._replace(epsilon=epsilon)


def one_pass(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try mini-batch SGD with a single pass: gradients of the risk itself, of second moment L^2 + d sigma^2/M."""
    return _one_pass_settings(
        problem, pool, lambda rounds, _, noise, parties: risk_of_batches(problem, rounds, noise, parties, math.inf)
    )


def _variance(problem: Problem, batch: int, noise: float, parties: int) -> float:
    """Return a bound on the mean squared error of a round's gradient, of independent records of norm L at most."""
    return (problem.lipschitz**2 / batch + problem.dimension * noise**2) / parties


def accelerated(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try accelerated SGD (AC-SA) with a single pass: its explicit bound, `isrl.acsa_bound`, for a start anywhere in the ball."""

    def risk(rounds: int, batch: int, noise: float, parties: int) -> tuple[float, float]:
        variance = _variance(problem, batch, noise, parties)
        bound = problem.of(acsa_bound, rounds=rounds, distance_squared=problem.diameter**2, variance=variance)
        return math.nan, min(float(bound), problem.gap)

    return _one_pass_settings(problem, pool, risk)


def multistage(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try multi-stage AC-SA with a single pass: every stage of `isrl.multistage_schedule` halves the bound, from L D on.

    A stage starts with a risk of g at most, hence at a distance of r with r^2 <= 2g/mu, and ends with 2 phi r^2/(R(R+1)) +
    V^2 (R+2)/(3 phi). With phi >= s = sqrt(mu V^2 R(R+1)(R+2)/(3g)) the second term is at most that at s, and the first is at most
    its value at 2 beta, 8 beta g/(mu R(R+1)) <= g/4 for R >= 4 sqrt(2 beta/mu), or that at s. Both at s are 5V sqrt(g(R+2)/(3 mu R(R+1)))
    <= 0.26 g for R >= 512 V^2/(3 mu g); the second alone is a fifth of that. So the stage ends below g/2.
    """
    if problem.strong_convexity == 0.0:
        raise ValueError("strong_convexity must be positive for multi-stage AC-SA, not 0")

    def risk(rounds: int, batch: int, noise: float, parties: int) -> tuple[float, float]:
        deviation = math.sqrt(_variance(problem, batch, noise, parties))
        try:
            stages = problem.of(multistage_schedule, gradient_std=deviation, initial_gap=problem.gap, rounds=rounds)
        except ValueError:  # the first stage does not fit
            return math.nan, math.inf
        return math.nan, problem.gap * 0.5 ** len(stages)

    return _one_pass_settings(problem, pool, risk)


def random_stop(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try projected noisy SGD with a single pass, of which only the model after a uniformly random step is seen."""
    for rounds in divided_down(min(problem.max_rounds, pool.total), MAX_ROUND_COUNTS):
        batch = pool.single_pass(rounds)[0]
        yield Candidate(_stopped_risk(problem, rounds, 0.0)[1], partial(_stopped, problem, rounds, batch))


def _stopped_risk(problem: Problem, rounds: int, noise: float) -> tuple[float, float]:
    """Return the best step and the bound on the mean risk of the models after steps 1 to T.

    With c = L^2 + d sigma^2, 2 eta (F(w_r) - F*) is at most |w_r - w*|^2 - E|w_{r+1} - w*|^2 + eta^2 c. Summed over r = 1..T it is
    (D^2/eta + eta T c)/(2T), least at eta = D/sqrt(T c); a step above 1/beta would lose the contraction.
    """
    moment = problem.dimension * noise**2 + problem.lipschitz**2
    step = min(1.0 / problem.smoothness, problem.diameter / math.sqrt(rounds * moment))
    bound = problem.diameter**2 / (2.0 * step * rounds) + step * moment / 2.0
    return step, min(bound, problem.gap)


def _stopped(problem: Problem, rounds: int, batch: int) -> Setting:
    def excess(noise: float) -> float:
        step = _stopped_risk(problem, rounds, noise)[0]
        release = {"learning_rate": step, "noise_std": noise, "lipschitz": problem.lipschitz / batch}
        found = problem.of(best_random_stop, epsilon=problem.epsilon, num_records=rounds, **release)
        return log_excess(float(found.delta), problem.delta)

    noise = rounded_up(least_noise(excess, _once(problem, batch) * EXTRA_NOISE))
    while excess(noise) > 0.0:
        noise = rounded_up(noise * EXTRA_NOISE)  # rounding up the noise changes the step
    step, bound = _stopped_risk(problem, rounds, noise)
    return Setting(noise, rounds, batch, problem.silos_per_round, step, problem.epsilon, bound)


def uploaded(problem: Problem, local_steps: int, *, averaged: int, prox: float = 0.0) -> Setting:
    """Return the noise of Noisy-FedAvg's uploads, or with `prox` of Noisy-FedProx's, for the largest number of rounds.

    So many uploads are averaged before anybody sees them: all, or 1 where each is seen. Mu is in proportion to the inverse of the
    noise, which makes it that of the budget; its epsilon is checked. No bound on the risk is known. All local steps together move
    by D sqrt(T) at most.
    """
    gdp, epsilon = (fedprox_gdp, fedprox_epsilon) if prox else (fedavg_gdp, fedavg_epsilon)
    rounds, clip = problem.max_rounds, problem.lipschitz
    step = min(problem.diameter / (clip * local_steps * math.sqrt(rounds)), 1.0 / (prox or problem.smoothness))
    training: dict[str, Any] = {
        "rounds": rounds,
        "local_steps": local_steps,
        "num_clients": averaged,
        "clip_norm": clip,
        "smoothness": problem.smoothness,
        "learning_rate": step,
    }
    if prox:
        training["prox"] = prox
    noise = rounded_up(float(gdp(**training, noise_std=1.0)) / float(theta_inverse(problem.epsilon, problem.delta)))
    while (reached := float(epsilon(problem.delta, **training, noise_std=noise))) > problem.epsilon:
        noise = rounded_up(np.nextafter(noise, np.inf))
    return Setting(noise, rounds, problem.num_records, problem.num_silos, step, reached, math.nan)


class Algorithm(NamedTuple):
    """What is tried under one trust model, what it protects, and what its numbers assume beyond clipped gradients and fresh noise."""

    trust: str
    name: str
    candidates: Callable[[Problem, Pool], Iterable[Candidate]]
    risk_assumes: str
    protects: str = "record"
    privacy_assumes: str = "nothing"

    def settings(self, problem: Problem) -> Iterable[Candidate]:
        """Return what is tried."""
        return self.candidates(problem, pool_of(self.trust, problem))


CONVEX = "convex, L-Lipschitz and beta-smooth losses, independent records"
AVERAGED = f"{CONVEX}; average of the models"
ALGORITHMS = (  # the first of each trust model is the one of `plan`
    *(
        Algorithm(trust, name, candidates, assumes)
        for trust in ("central", "inter-silo", "local")
        for name, candidates, assumes in (
            ("MB-SGD", batches, AVERAGED),
            ("one-pass SGD", one_pass, AVERAGED),
            ("one-pass AC-SA", accelerated, f"{CONVEX}; phi of isrl.acsa_bound"),
            ("multi-stage AC-SA", multistage, f"{CONVEX}; stages of isrl.multistage_schedule"),
        )
    ),
    Algorithm(
        "central", "PNSGD, random stop", random_stop, CONVEX,
        privacy_assumes="convex and smooth losses; only the model after a random step is seen",
    ),
    Algorithm("shuffle", "MB-SGD", shuffled, AVERAGED),
    Algorithm(
        "last-iterate", "trusted aggregator", aggregated, "strongly convex and smooth risk, minimum inside the ball",
        protects="silo", privacy_assumes="strongly convex and smooth losses; each silo takes part once",
    ),
)  # fmt: skip
