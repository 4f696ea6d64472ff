"""Noisy-FedProx (Sun, Shen and Tao 2024): its local steps, and its exact proximal step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hockeystick._checks import non_negative_scalar, positive_scalar
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import UP
from hockeystick.federated import fedprox_gdp
from hockeystick.federated.released_models import Guarantee, NoGuaranteeError
from hockeystick.simulate.algorithms.algorithm import ALL
from hockeystick.simulate.algorithms.fedavg import NoisyFedAvg
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.rule import UpdateRule

__all__ = ["NoisyFedProx"]


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
        self._set("prox", positive_scalar("prox", self.prox))
        self._set("tolerance", non_negative_scalar("tolerance", self.tolerance))
        if self.tolerance > 0 and (self.schedule != "constant" or self.records != ALL):
            msg = (
                "tolerance must be 0 unless schedule is 'constant' and records are all: the proximal problem is of all "
                f"records, not {self.tolerance} with {shown(self.schedule)} and {shown(self.records)}"
            )
            raise ValueError(msg)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        rule = super()._rule(problem, rounds)._replace(prox=self.prox)
        if self.tolerance == 0:
            return rule
        return rule._replace(
            clip_norm=math.inf, clip_batch=True, tolerance=self.tolerance, reach=self.clip_norm / self.prox
        )

    def _pull(self) -> float | None:
        return self.prox

    def _hidden(self, problem: Problem, smoothness: float, rounds: int) -> float:
        settings = self._settings(problem, smoothness)
        return float(fedprox_gdp(rounds=rounds, prox=self.prox, schedule=self.schedule, **settings))

    def data_sensitivity(self, rounds: int, num_clients: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return gamma of every round, by how much one record can move the averaged model from the same start.

        Parameters
        ----------
        rounds : int
            At least 1.
        num_clients : int
            Clients that are averaged with equal weights, at least 1; the model of a single one moves by its weight times as much.

        Returns
        -------
        ndarray
            Shape (rounds,): 2 clip_norm/(num_clients prox) (1 - prod_k (1 - eta_k prox)), with the round's step sizes; without
            the bracket if there is a tolerance.
        """
        self._check_equal(num_clients)
        if self.tolerance > 0:
            return np.full(rounds, 2 * self.clip_norm / (num_clients * self.prox) * UP)
        if self.learning_rate * self.prox > 1:
            msg = f"learning_rate must be at most 1/prox ({1 / self.prox}), not {self.learning_rate}"
            raise NoGuaranteeError(msg)
        return super().data_sensitivity(rounds, num_clients)

    def _guarantee(self, problem: Problem, rounds: int) -> Guarantee:
        if self.tolerance > 0:
            return self._each_model(problem, rounds)
        self.data_sensitivity(1, 1)  # refuses large steps
        if problem.smoothness is not None and problem.smoothness >= self.prox:
            msg = f"prox must be larger than the smoothness ({problem.smoothness}), not {self.prox}"
            raise NoGuaranteeError(msg)
        return super()._guarantee(problem, rounds)
