"""The settings of algorithms other than mini-batch SGD: single passes, accelerated ones, projected noisy SGD, FedAvg and FedProx."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from hockeystick.federated import fedavg_epsilon, fedavg_gdp, fedprox_epsilon, fedprox_gdp
from hockeystick.isrl import acsa_bound, multistage_schedule, noisy_mb_sgd_accountant, one_pass_sigma
from hockeystick.kernels import theta_inverse
from hockeystick.last_iterate import best_random_stop
from hockeystick.utility.settings import (
    EXTRA_NOISE,
    MOST_ROUND_COUNTS,
    Candidate,
    Pool,
    Problem,
    Setting,
    divided_down,
    least_noise,
    log_excess,
    risk_of_batches,
    rounded_up,
)

__all__ = [
    "accelerated",
    "fedavg",
    "fedprox",
    "local_step",
    "multistage",
    "one_pass",
    "one_pass_settings",
    "random_stop",
    "single_pass",
]

PROX = 2.0  # FedProx's coefficient, in units of the smoothness, which it must exceed


def single_pass(pool: Pool, rounds: int) -> tuple[int, int]:
    """Return the batch and the parties of each round of a single pass: records of all parties are used once at most."""
    if rounds <= pool.num_records:
        return min(pool.largest_batch, pool.num_records // rounds), pool.taking_part
    return 1, min(pool.taking_part, pool.num_parties * pool.num_records // rounds)


def one_pass_settings(
    problem: Problem, pool: Pool, risk: Callable[[int, int, float, int], tuple[float, float]]
) -> Iterator[Candidate]:
    """Try numbers of rounds for single passes with a step size and a risk that follow from rounds, batch, noise and parties."""
    total = pool.num_parties * pool.num_records
    for rounds in divided_down(min(problem.max_rounds, total), MOST_ROUND_COUNTS):
        batch, parties = single_pass(pool, rounds)
        budget = {"epsilon": problem.epsilon, "delta": problem.delta}
        noise = rounded_up(float(one_pass_sigma(lipschitz=problem.lipschitz, batch_size=batch, **budget)))
        step, bound = risk(rounds, batch, noise, parties)
        if bound < math.inf:
            yield Candidate(
                bound, partial(_one_pass_setting, problem, pool, (rounds, batch, parties), noise, step, bound)
            )


def _one_pass_setting(  # noqa: PLR0917, in the order of its fields
    problem: Problem, pool: Pool, sizes: tuple[int, int, int], noise: float, step: float, bound: float
) -> Setting:
    rounds, batch, parties = sizes
    once = noisy_mb_sgd_accountant(
        noise_std=noise, lipschitz=problem.lipschitz, num_records=batch, batch_size=batch, rounds=1
    )
    shown = problem.silos_per_round if pool.num_parties == 1 else parties
    return Setting(noise, rounds, batch, shown, step, float(once.epsilon(problem.delta)), bound)


def one_pass(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try mini-batch SGD with a single pass: gradients of the risk itself, of second moment L^2 + d sigma^2/M."""
    return one_pass_settings(
        problem, pool, lambda rounds, _, noise, parties: risk_of_batches(problem, rounds, noise, parties, math.inf)
    )


def _variance(problem: Problem, batch: int, noise: float, parties: int) -> float:
    """Return a bound on the mean squared error of a round's gradient, of independent records of norm L at most."""
    return (problem.lipschitz**2 / batch + problem.dimension * noise**2) / parties


def accelerated(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try accelerated SGD (AC-SA) with a single pass: its explicit bound, `isrl.acsa_bound`, for a start anywhere in the ball."""

    def risk(rounds: int, batch: int, noise: float, parties: int) -> tuple[float, float]:
        bound = acsa_bound(
            rounds=rounds,
            distance_squared=problem.diameter**2,
            variance=_variance(problem, batch, noise, parties),
            smoothness=problem.smoothness,
            strong_convexity=problem.strong_convexity,
        )
        return math.nan, min(float(bound), problem.lipschitz * problem.diameter)

    return one_pass_settings(problem, pool, risk)


def multistage(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try multi-stage AC-SA with a single pass: every stage of `isrl.multistage_schedule` halves the bound, from L D on.

    A stage starts with a risk of g at most, hence at a distance of r with r^2 <= 2g/mu, and ends with 2 phi r^2/(R(R+1)) +
    V^2 (R+2)/(3 phi). With phi >= s = sqrt(mu V^2 R(R+1)(R+2)/(3g)) the second term is at most that at s, and the first is at most
    its value at 2 beta, 8 beta g/(mu R(R+1)) <= g/4 for R >= 4 sqrt(2 beta/mu), or that at s. Both at s are 5V sqrt(g(R+2)/(3 mu R(R+1)))
    <= 0.26 g for R >= 512 V^2/(3 mu g); the second alone is a fifth of that. So the stage ends below g/2.
    """
    if problem.strong_convexity == 0.0:
        msg = "strong_convexity must be positive for multi-stage AC-SA, not 0"
        raise ValueError(msg)

    def risk(rounds: int, batch: int, noise: float, parties: int) -> tuple[float, float]:
        gap = problem.lipschitz * problem.diameter
        try:
            stages = multistage_schedule(
                smoothness=problem.smoothness,
                strong_convexity=problem.strong_convexity,
                gradient_std=math.sqrt(_variance(problem, batch, noise, parties)),
                initial_gap=gap,
                rounds=rounds,
            )
        except ValueError:  # the first stage does not fit
            return math.nan, math.inf
        return math.nan, gap * 0.5 ** len(stages)

    return one_pass_settings(problem, pool, risk)


def random_stop(problem: Problem, pool: Pool) -> Iterator[Candidate]:
    """Try projected noisy SGD with a single pass, of which only the model after a uniformly random step is seen."""
    total = pool.num_parties * pool.num_records
    for rounds in divided_down(min(problem.max_rounds, total), MOST_ROUND_COUNTS):
        batch = single_pass(pool, rounds)[0]
        yield Candidate(_stopped_risk(problem, rounds, 0.0)[1], partial(_stopped, problem, rounds, batch))


def _stopped_risk(problem: Problem, rounds: int, noise: float) -> tuple[float, float]:
    """Return the best step and the bound on the mean risk of the models after steps 1 to T.

    With c = L^2 + d sigma^2, 2 eta (F(w_r) - F*) is at most |w_r - w*|^2 - E|w_{r+1} - w*|^2 + eta^2 c. Summed over r = 1..T it is
    (D^2/eta + eta T c)/(2T), least at eta = D/sqrt(T c); a step above 1/beta would lose the contraction.
    """
    moment = problem.dimension * noise**2 + problem.lipschitz**2
    step = min(1.0 / problem.smoothness, problem.diameter / math.sqrt(rounds * moment))
    bound = problem.diameter**2 / (2.0 * step * rounds) + step * moment / 2.0
    return step, min(bound, problem.lipschitz * problem.diameter)


def _stopped(problem: Problem, rounds: int, batch: int) -> Setting:
    def excess(noise: float) -> float:
        found = best_random_stop(
            problem.epsilon,
            num_records=rounds,
            learning_rate=_stopped_risk(problem, rounds, noise)[0],
            noise_std=noise,
            lipschitz=problem.lipschitz / batch,
            smoothness=problem.smoothness,
            strong_convexity=problem.strong_convexity,
            diameter=problem.diameter,
        )
        return log_excess(float(found.delta), problem.delta)

    budget = {"epsilon": problem.epsilon, "delta": problem.delta}
    most = float(one_pass_sigma(lipschitz=problem.lipschitz, batch_size=batch, **budget)) * EXTRA_NOISE
    noise = rounded_up(least_noise(excess, most))
    while excess(noise) > 0.0:
        noise = rounded_up(noise * EXTRA_NOISE)  # rounding up the noise changes the step
    step, bound = _stopped_risk(problem, rounds, noise)
    return Setting(noise, rounds, batch, problem.silos_per_round, step, problem.epsilon, bound)


def local_step(problem: Problem, local_steps: int) -> float:
    """Return D/(L K sqrt T), with which all local steps together move by D sqrt(T) at most, or 1/beta if that is smaller."""
    free = problem.diameter / (problem.lipschitz * local_steps * math.sqrt(problem.max_rounds))
    return min(free, 1.0 / problem.smoothness)


def fedavg(problem: Problem, local_steps: int, *, averaged: int) -> Setting:
    """Return the noise of Noisy-FedAvg's uploads for the largest number of rounds; no bound on its risk is known.

    So many uploads are averaged before anybody sees them: all, or 1 where each is seen.
    """
    training: dict[str, Any] = {
        "rounds": problem.max_rounds,
        "local_steps": local_steps,
        "num_clients": averaged,
        "clip_norm": problem.lipschitz,
        "smoothness": problem.smoothness,
        "learning_rate": local_step(problem, local_steps),
    }
    return _uploaded(
        problem, partial(fedavg_gdp, **training), partial(fedavg_epsilon, **training), training["learning_rate"]
    )


def fedprox(problem: Problem, local_steps: int) -> Setting:
    """Return the same for Noisy-FedProx, with a proximal coefficient of twice the smoothness."""
    prox = PROX * problem.smoothness
    training: dict[str, Any] = {
        "rounds": problem.max_rounds,
        "local_steps": local_steps,
        "num_clients": problem.num_silos,
        "clip_norm": problem.lipschitz,
        "smoothness": problem.smoothness,
        "learning_rate": min(local_step(problem, local_steps), 1.0 / prox),
        "prox": prox,
    }
    return _uploaded(
        problem, partial(fedprox_gdp, **training), partial(fedprox_epsilon, **training), training["learning_rate"]
    )


def _uploaded(problem: Problem, gdp: Callable[..., float], epsilon: Callable[..., float], step: float) -> Setting:
    """Return the noise with which mu, in proportion to its inverse, is that of the budget; its epsilon is checked."""
    noise = float(gdp(noise_std=1.0)) / float(theta_inverse(problem.epsilon, problem.delta))
    noise = rounded_up(noise)
    while (reached := float(epsilon(problem.delta, noise_std=noise))) > problem.epsilon:
        noise = rounded_up(np.nextafter(noise, np.inf))
    return Setting(noise, problem.max_rounds, problem.num_records, problem.num_silos, step, reached, math.nan)
