"""Noisy-FedAvg and Noisy-FedProx, with its local steps or its exact proximal step (Sun, Shen and Tao 2024)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from hockeystick._checks import POSITIVE, Array, choice, count_scalar, interval, non_negative_scalar, positive_scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import DOWN, UP
from hockeystick.accounting.gaussian_dp import gdp_epsilon
from hockeystick.federated import data_sensitivity, fedavg_gdp, fedprox_gdp, model_sensitivity, step_sizes
from hockeystick.federated.arguments import SCHEDULES, Schedule
from hockeystick.federated.released_models import (
    WORDS,
    AlikeRounds,
    Clients,
    Guarantee,
    NoGuaranteeError,
    averaged_models,
    smallest_of,
)
from hockeystick.simulate.algorithms.algorithm import ALL, Algorithm, Records, Views, each_silo
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import EveryRound, FixedSize, Participation, RandomSize
from hockeystick.simulate.running.rule import AVERAGE, UpdateRule

ClientWeights: TypeAlias = Literal["equal", "records"] | tuple[float, ...]

ALIKE = ("constant", "cyclic")  # schedules whose rounds are all alike


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
    dropout : float
        Public probability, in [0, 1), that a client that would take part in a round drops out of it, independently of all data. The
        server averages those that remain, and may show how many, not who; if nobody remains, the model stays.
    client_weights : {"equal", "records"} or tuple of float
        Of the clients' models in their mean: all the same; as many as a client has records; or a positive number for each client, of which
        only the ratios count. Weights that differ are for rounds in which all take part. They are public, and so are numbers of records.

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
    dropout: float = 0.0
    client_weights: ClientWeights = "equal"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        self._check(local_steps=count_scalar)
        choice("schedule", self.schedule, SCHEDULES)
        choice("clipping", self.clipping, ("batch", "record"))
        self._check(dropout=interval("[0, 1)"))
        self._set(client_weights=checked_weights(self.client_weights))
        if self.client_weights != "equal" and not (isinstance(self.clients, EveryRound) and self.dropout == 0):
            raise ValueError(
                "client_weights must be 'equal' unless all clients take part in every round, not "
                f"{shown(self.client_weights)} with clients={shown(self.clients)} and dropout={self.dropout}"
            )

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        return self._plain_rule(
            problem,
            rounds,
            local_steps=self.local_steps,
            schedule=SCHEDULES.index(self.schedule),
            clip_batch=self.clipping == "batch",
            server=AVERAGE,
            dropout=self.dropout,
            client_weights=weights_of(self.client_weights, problem),
        )

    def _alike(self, problem: Problem) -> float | None:
        """Return a lower bound of how many clients of equal weight hide one of them as well as the heaviest is hidden; None if all are equal."""
        weights = weights_of(self.client_weights, problem)
        return None if self.client_weights == "equal" else math.fsum(weights**2) * DOWN

    def _settings(self, problem: Problem, smoothness: float) -> dict[str, Any]:
        clients, clip_norm, noise = problem.num_silos, self.clip_norm, self._noises(problem)[0]
        alike = self._alike(problem)
        if alike is not None:  # one client, whose moves and noise are those of the heaviest in the mean
            share = UP / math.fsum(weights_of(self.client_weights, problem))  # of the heaviest
            clients, clip_norm, noise = 1, clip_norm * share * UP, noise * share * math.sqrt(alike) * DOWN * DOWN
        return {
            "local_steps": self.local_steps,
            "num_clients": clients,
            "clip_norm": clip_norm,
            "noise_std": noise,
            "smoothness": smoothness,
            "learning_rate": self.learning_rate,
            "diameter": 2 * self.radius,
        }

    def data_sensitivity(self, rounds: int, num_clients: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return gamma_t of every round, by how much one record can move the averaged model from the same start.

        Parameters
        ----------
        rounds : int
            At least 1.
        num_clients : int
            Clients that are averaged with equal weights, at least 1; the model of a single one moves by its weight times as much.

        Returns
        -------
        ndarray
            Shape (rounds,): 2 clip_norm/num_clients times the sum of the round's step sizes eta_k; of FedProx,
            2 clip_norm/(num_clients prox) (1 - prod_k (1 - eta_k prox)), and without the bracket if there is a tolerance.
        """
        if num_clients != 1 and self.client_weights != "equal":
            raise ValueError(
                f"num_clients must be 1 where client_weights={shown(self.client_weights)}, not {num_clients}: a client moves the "
                "mean by its weight times data_sensitivity(rounds, 1)"
            )
        return np.resize(self._gamma(rounds, num_clients), rounds)

    def _gamma(self, rounds: int, num_clients: int) -> Array:
        """Return gamma_t of every round; of one, if they are alike."""
        settings: dict[str, Any] = {"num_clients": num_clients, "clip_norm": self.clip_norm, "prox": self._pull()}
        gamma: Array = data_sensitivity(self._steps(rounds), **settings)
        return gamma

    def _steps(self, rounds: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """Return the step sizes of every round; of one, if they are alike."""
        return step_sizes(
            rounds=1 if self.schedule in ALIKE else rounds,
            local_steps=self.local_steps,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
        )

    def _pull(self) -> float | None:
        """Return FedProx's coefficient."""
        return None

    def _each_model(self, problem: Problem, rounds: int) -> Guarantee:
        """Return the guarantee of releasing the averaged model of every round."""
        clients = self.clients._clients(problem.num_silos, rounds)
        settings = (self._moves(rounds), self._noise(problem), self._use(problem))
        return averaged_models(clients, *settings, dropout=self.dropout, alike=self._alike(problem))

    def _each_upload(self, problem: Problem, rounds: int) -> Guarantee:
        """Return the guarantee of releasing what every client sends: a mean of one model, of a client that always takes part."""
        always = Clients(1, list(range(rounds)))
        alone = averaged_models(always, self._moves(rounds), self._noise(problem), self._use(problem))
        return dataclasses.replace(
            alone, released=WORDS["messages"], source=f"{alone.source}; one client's own noise, in all rounds"
        )

    def _moves(self, rounds: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return by how much one client's model can move in each round, from the same start."""
        if self._poisson_batches() and self.clipping == "record":
            raise NoGuaranteeError(
                'Poisson batches of records clipped one by one may exceed clip_norm: use clipping="batch" or FixedSize'
            )
        return self.data_sensitivity(rounds, 1)

    def _noise(self, problem: Problem) -> float:
        """Return the deviation of every client's noise."""
        if len(set(self._noises(problem))) > 1:
            raise NoGuaranteeError("clients whose noise differs are not covered: noise_std must be one number")
        return self._noises(problem)[0]

    def _views(self, problem: Problem, rounds: int) -> Views:
        return {
            "last_model": lambda: self._last_model(problem, rounds),
            "every_model": lambda: self._each_model(problem, rounds),
            "messages": lambda: self._each_upload(problem, rounds),
        }

    def _poisson_batches(self) -> bool:
        """Tell whether a batch may be larger than its divisor: its mean gradient is then neither within V nor as smooth as each record's."""
        samplers = self.records if isinstance(self.records, tuple) else (self.records,)
        return any(isinstance(sampler, RandomSize) for sampler in samplers)

    def _last_model(self, problem: Problem, rounds: int) -> Guarantee:
        each = self._each_model(problem, rounds)
        if problem.smoothness is None or self._poisson_batches() or self.dropout > 0:
            return each  # the bounds of the last model alone are for rounds whose noise is the same
        guarantees = [each]
        smoothness, prox = problem.smoothness, self._pull()
        if isinstance(self.clients, EveryRound):
            bound = fedavg_gdp if prox is None else partial(fedprox_gdp, prox=prox)
            settings = self._settings(problem, smoothness)

            def epsilon(t: int, delta: float) -> float:
                return float(gdp_epsilon(bound(rounds=t, schedule=self.schedule, **settings), delta))

            source = f"federated.{'fedavg' if prox is None else 'fedprox'}_gdp"
            guarantees.insert(0, Guarantee("replace", WORDS["last_model"], source, epsilon))
        if alike := self._alike_rounds(problem, smoothness):
            guarantees.append(alike.guarantee())
        return smallest_of(WORDS["last_model"], guarantees)

    def _alike_rounds(self, problem: Problem, smoothness: float) -> AlikeRounds | None:
        """Return rounds of a fixed number of clients that are all alike, in deviations of their mean's noise, or None."""
        fixed = isinstance(self.clients, (EveryRound, FixedSize)) and self.schedule in ALIKE
        expansion = self._expansion(problem, smoothness)
        if not fixed or math.isinf(self.radius) or math.isinf(expansion):
            return None
        _, size, _ = self.clients._numbers("clients", problem.num_silos)
        rate = min(size / problem.num_silos * self._use(problem) * UP, 1.0)
        share, hiding = 1.0 / size, self._alike(problem)  # of a client in the mean; how many like it hide it
        if hiding is not None:
            share = UP / math.fsum(weights_of(self.client_weights, problem))
        noise = self._noises(problem)[0] * math.sqrt(size if hiding is None else hiding) * DOWN
        shift = float(self.data_sensitivity(1, 1)[0]) / noise * UP
        return AlikeRounds(shift, rate, expansion, 2 * self.radius / (noise * share) * UP)

    def _expansion(self, problem: Problem, smoothness: float) -> float:
        """Return a Lipschitz constant of a round's map: 1 for short steps on convex losses that are not clipped."""
        inactive = problem.lipschitz is not None and problem.lipschitz <= self.clip_norm
        if self._pull() is None and problem.convex and inactive and self.learning_rate * smoothness <= 2:
            return 1.0
        known = float(np.max(model_sensitivity(self._steps(1), smoothness=smoothness, prox=self._pull())))
        return known * UP if known > 1.0 else 1.0

    def _use(self, problem: Problem) -> float:
        """Return a bound of the probability that a record is in one of a round's batches, for the worst client."""
        return max(float(sampler._use(n, self.local_steps)) for sampler, n in self._samplers(problem))


# How much each client's model counts in the server's mean, where all take part (docs/core/federated.md has the proof)


def checked_weights(value: ClientWeights) -> ClientWeights:
    """Return weights as floats, after checking that they are one of the words, or positive."""
    if isinstance(value, str):
        return choice("client_weights", value, ("equal", "records"))
    if not isinstance(value, tuple):
        raise TypeError(f"client_weights must be 'equal', 'records' or a tuple of positive numbers, not {shown(value)}")
    return tuple(positive_scalar(f"client_weights[{i}]", weight) for i, weight in enumerate(value))


def weights_of(value: ClientWeights, problem: Problem) -> Array:
    """Return the weight of each client's model in units of the largest; only ratios count."""
    if value == "equal":
        return np.ones(problem.num_silos)
    weights = problem.sizes if value == "records" else each_silo("client_weights", value, problem)
    return np.array(weights, dtype=float) / max(weights or ())


@dataclass(frozen=True, kw_only=True)
class NoisyFedProx(NoisyFedAvg):
    """Noisy-FedAvg whose local steps also pull towards the round's first model: w -= eta (clip(g) + prox (w - w_t)).

    Parameters
    ----------
    learning_rate, local_steps, clip_norm, noise_std, schedule, clipping, records, clients, radius, dropout, client_weights
        As in `NoisyFedAvg`.
    prox : float
        alpha, positive. Guarantees need learning_rate <= 1/prox, and prox > smoothness if the states are hidden.
    tolerance : float
        0: the steps of the paper's Equation 4. Positive: its Equation 3, each client minimises its mean loss plus prox/2 |w - w_t|^2, by
        steps of learning_rate on all its records until the gradient's norm is at most this, at most `local_steps` of them; its
        model then moves by at most clip_norm/prox, and gradients are not clipped.

    Notes
    -----
    With a tolerance the guarantee is that of releasing every averaged model, with gamma = 2 clip_norm/(m prox), and needs nothing of the
    loss, the solver or the steps: two models that are each within clip_norm/prox of the round's first are at most twice that apart. The exact
    minimiser moves by that much itself if gradients have norms of at most clip_norm: prox (w_t - w) is the gradient at w.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.NoisyFedProx(learning_rate=0.1, local_steps=5, clip_norm=1.0, noise_std=0.1, prox=2.0).prox
    2.0
    """

    prox: float
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        self._check(prox=POSITIVE, tolerance=non_negative_scalar)
        if self.tolerance > 0 and (self.schedule != "constant" or self.records != ALL):
            raise ValueError(
                "tolerance must be 0 unless schedule is 'constant' and records are all: the proximal problem is of all "
                f"records, not {self.tolerance} with {shown(self.schedule)} and {shown(self.records)}"
            )

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        rule = super()._rule(problem, rounds)._replace(prox=self.prox)
        if self.tolerance == 0:
            return rule
        return rule._replace(
            clip_norm=math.inf, clip_batch=True, tolerance=self.tolerance, reach=self.clip_norm / self.prox
        )

    def _pull(self) -> float | None:
        return self.prox

    def _gamma(self, rounds: int, num_clients: int) -> Array:
        if self.tolerance > 0:
            return np.full(1, 2 * self.clip_norm / (num_clients * self.prox) * UP)
        if self.learning_rate * self.prox > 1:
            raise NoGuaranteeError(f"learning_rate must be at most 1/prox ({1 / self.prox}), not {self.learning_rate}")
        return super()._gamma(rounds, num_clients)

    def _last_model(self, problem: Problem, rounds: int) -> Guarantee:
        if self.tolerance > 0:
            return self._each_model(problem, rounds)
        self._gamma(1, 1)  # refuses large steps
        if problem.smoothness is not None and problem.smoothness >= self.prox:
            raise NoGuaranteeError(f"prox must be larger than the smoothness ({problem.smoothness}), not {self.prox}")
        return super()._last_model(problem, rounds)
