"""Noisy-FedAvg and Noisy-FedProx (Sun, Shen and Tao 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hockeystick._checks import choice, count_scalar, positive_scalar
from hockeystick._numeric.rounding import UP
from hockeystick.accounting.gaussian_dp import gdp_epsilon
from hockeystick.federated import fedavg_gdp, fedprox_gdp
from hockeystick.federated.arguments import SCHEDULES, Schedule
from hockeystick.simulate.algorithms.algorithm import (
    ALL,
    Algorithm,
    Records,
    check_records,
    check_sampler,
    each_silo,
)
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.averaged_models import averaged_models
from hockeystick.simulate.running.guarantee import Guarantee, NoGuaranteeError
from hockeystick.simulate.running.last_averaged_model import (
    LARGEST_EXPONENT,
    SampledRounds,
    last_averaged_model,
)
from hockeystick.simulate.running.participation import EveryRound, FixedSize, Participation, Poisson
from hockeystick.simulate.running.rule import AVERAGE, UpdateRule

__all__ = ["NoisyFedAvg", "NoisyFedProx"]


@dataclass(frozen=True, kw_only=True)
class NoisyFedAvg(Algorithm):
    """Clients take local steps, add noise to their models, and the server averages these.

    Parameters
    ----------
    learning_rate : float
        Step size, positive.
    local_steps : int
        Steps of each client in a round, K.
    clip_norm : float
        V, positive; infinite for no clipping.
    noise_std : float
        Of the Gaussian noise that each client adds to the model that it uploads.
    schedule : {"constant", "cyclic", "stagewise", "continuous"}
        Step size in local step k of round t, both from 0: learning_rate times 1, 1/(k+1), 1/(t+1), 1/(tK+k+1).
    clipping : {"batch", "record"}
        What is clipped: the batch's mean gradient, as in the paper, or each record's gradient, which is covered too.
    records, clients : Participation
        Which records are in a local step's batch, and which clients take part in a round; all by default.
    radius : float
        Of the ball that the averaged model is projected onto.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.NoisyFedAvg(learning_rate=0.1, local_steps=5, clip_norm=1.0, noise_std=0.1).schedule
    'constant'
    """

    local_steps: int
    schedule: Schedule = "constant"
    clipping: Literal["batch", "record"] = "batch"
    records: Records = ALL
    clients: Participation = ALL

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        self._set("local_steps", count_scalar("local_steps", self.local_steps))
        choice("schedule", self.schedule, SCHEDULES)
        choice("clipping", self.clipping, ("batch", "record"))
        check_records(self.records)
        check_sampler("clients", self.clients)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        return self._plain_rule(
            problem,
            rounds,
            self.clients,
            self.records,
            local_steps=self.local_steps,
            schedule=SCHEDULES.index(self.schedule),
            clip_batch=self.clipping == "batch",
            server=AVERAGE,
        )

    def _settings(self, problem: Problem, smoothness: float) -> dict[str, Any]:
        return {
            "local_steps": self.local_steps,
            "num_clients": problem.num_silos,
            "clip_norm": self.clip_norm,
            "noise_std": self._noises(problem)[0],
            "smoothness": smoothness,
            "learning_rate": self.learning_rate,
            "diameter": 2 * self.radius,
        }

    def _hidden(self, problem: Problem, smoothness: float, rounds: int) -> float:
        """Return the certified Gaussian-DP parameter of the last model."""
        settings = self._settings(problem, smoothness)
        return float(fedavg_gdp(rounds=rounds, schedule=self.schedule, **settings))

    def data_sensitivity(self, rounds: int, num_clients: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return gamma_t of every round, by how much one record can move the averaged model from the same start.

        Parameters
        ----------
        rounds : int
            At least 1.
        num_clients : int
            Clients that are averaged, at least 1.

        Returns
        -------
        ndarray
            Shape (rounds,): 2 clip_norm/num_clients times the sum of the round's step sizes.
        """
        local, t = self.local_steps, np.arange(rounds, dtype=np.float64)
        harmonic = float(np.sum(1 / np.arange(1, local + 1)))
        if self.schedule == "constant":
            steps = np.full(rounds, float(local))
        elif self.schedule == "cyclic":
            steps = np.full(rounds, harmonic)
        elif self.schedule == "stagewise":
            steps = local / (t + 1)
        else:
            steps = np.array([np.sum(1 / (i * local + np.arange(1, local + 1))) for i in t])
        return np.asarray(2 * self.clip_norm * self.learning_rate / num_clients * steps)

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        if len(set(self._noises(problem))) > 1:
            msg = "clients whose noise differs are not covered: noise_std must be one number"
            raise NoGuaranteeError(msg)
        noise = self._noises(problem)[0]
        # a Poisson batch may be larger than its divisor: its mean gradient is then neither within V nor as smooth as each record's
        poisson = any(isinstance(sampler, Poisson) for sampler in _samplers(self.records))
        if poisson and self.clipping == "record":
            msg = (
                'Poisson batches of records clipped one by one may exceed clip_norm: use clipping="batch" or FixedSize'
            )
            raise NoGuaranteeError(msg)
        each = averaged_models(
            self.clients, problem.num_silos, self.data_sensitivity(rounds, 1), noise, self._use(problem)
        )
        if problem.smoothness is None or poisson:
            return each
        smoothness = problem.smoothness
        if not isinstance(self.clients, EveryRound):
            alike = self._sampled_rounds(problem, smoothness)
            return each if alike is None else last_averaged_model(each, alike, rounds)
        return Guarantee(
            "replace",
            "the last model only",
            f"federated.{'fedprox' if isinstance(self, NoisyFedProx) else 'fedavg'}_gdp; or, if smaller: {each.source}",
            lambda t, delta: min(
                float(gdp_epsilon(self._hidden(problem, smoothness, t), delta)), each.epsilon(t, delta)
            ),
        )

    def _sampled_rounds(self, problem: Problem, smoothness: float) -> SampledRounds | None:
        """Return rounds of a fixed number of clients that are all alike, in deviations of their mean's noise, or None."""
        alike = isinstance(self.clients, FixedSize) and self.schedule in {"constant", "cyclic"}
        if not alike or math.isinf(self.radius):
            return None
        _, size, _ = self.clients._numbers("clients", problem.num_silos)
        rate = size / problem.num_silos * self._use(problem) * UP
        deviation = self._noises(problem)[0] / math.sqrt(size)
        shift = float(self.data_sensitivity(1, size)[0]) / deviation * UP
        expansion = self._expansion(smoothness) * UP
        return SampledRounds(shift, rate, expansion, 2 * self.radius / deviation * UP) if rate < 1 else None

    def _expansion(self, smoothness: float) -> float:
        """Return the Lipschitz constant of a round's map, which is the same for all rounds."""
        steps = np.arange(1, self.local_steps + 1) if self.schedule == "cyclic" else np.ones(self.local_steps)
        growth = math.fsum(np.log1p(self.learning_rate * smoothness / steps))
        return math.exp(growth) if growth < LARGEST_EXPONENT else math.inf

    def _use(self, problem: Problem) -> float:
        """Return a bound of the probability that a record is in one of a round's batches, for the worst client."""
        samplers = each_silo("records", self.records, problem)
        sizes = problem.sizes or ()
        return max(float(sampler._use(n, self.local_steps)) for sampler, n in zip(samplers, sizes, strict=True))


@dataclass(frozen=True, kw_only=True)
class NoisyFedProx(NoisyFedAvg):
    """Noisy-FedAvg whose local steps also pull towards the round's first model: w -= eta (clip(g) + prox (w - w_t)).

    Parameters
    ----------
    learning_rate, local_steps, clip_norm, noise_std, clipping, records, clients, radius
        As in `NoisyFedAvg`; the schedule must be "constant".
    prox : float
        alpha, positive. Guarantees need learning_rate <= 1/prox, and prox > smoothness if the states are hidden.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.NoisyFedProx(learning_rate=0.1, local_steps=5, clip_norm=1.0, noise_std=0.1, prox=2.0).prox
    2.0
    """

    prox: float

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        self._set("prox", positive_scalar("prox", self.prox))
        choice("schedule", self.schedule, ("constant",))

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        return super()._rule(problem, rounds)._replace(prox=self.prox)

    def _expansion(self, smoothness: float) -> float:
        gap = self.prox - smoothness  # positive, or nothing is certified
        shrinks_by = self.learning_rate * gap
        power = self.local_steps * math.log1p(-shrinks_by) if shrinks_by < 1 else -math.inf
        return 1 - smoothness / gap * math.expm1(power)

    def _hidden(self, problem: Problem, smoothness: float, rounds: int) -> float:
        settings = self._settings(problem, smoothness)
        return float(fedprox_gdp(rounds=rounds, prox=self.prox, **settings))

    def data_sensitivity(self, rounds: int, num_clients: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return gamma of every round, by how much one record can move the averaged model from the same start.

        Parameters
        ----------
        rounds : int
            At least 1.
        num_clients : int
            Clients that are averaged, at least 1.

        Returns
        -------
        ndarray
            Shape (rounds,): 2 clip_norm/(num_clients prox) (1 - (1 - learning_rate prox)^local_steps).
        """
        if self.learning_rate * self.prox > 1:
            msg = f"learning_rate must be at most 1/prox ({1 / self.prox}), not {self.learning_rate}"
            raise NoGuaranteeError(msg)
        shrunk = (
            -math.expm1(self.local_steps * math.log1p(-self.learning_rate * self.prox))
            if self.learning_rate * self.prox < 1
            else 1.0
        )
        return np.full(rounds, 2 * self.clip_norm / (num_clients * self.prox) * shrunk)

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        self.data_sensitivity(1, 1)  # refuses large steps
        if problem.smoothness is not None and problem.smoothness >= self.prox:
            msg = f"prox must be larger than the smoothness ({problem.smoothness}), not {self.prox}"
            raise NoGuaranteeError(msg)
        return super()._guarantee(problem, rounds)


def _samplers(records: Records) -> tuple[Participation, ...]:
    return records if isinstance(records, tuple) else (records,)
