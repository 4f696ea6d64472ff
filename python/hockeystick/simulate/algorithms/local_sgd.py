"""The local SGD that ISRL-DP is compared with (Lowy and Razaviyayn 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hockeystick._checks import count_scalar
from hockeystick.federated.released_models import Account, Leaks
from hockeystick.mechanisms import Gaussian
from hockeystick.simulate.algorithms.algorithm import ALL, Algorithm, Views
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import FixedSize, Participation
from hockeystick.simulate.running.rule import AVERAGE, UpdateRule

__all__ = ["LocalSGD"]


@dataclass(frozen=True, kw_only=True)
class LocalSGD(Algorithm):
    """Clients take noisy local steps on single records, and the server averages their models (Lowy and Razaviyayn 2023).

    Parameters
    ----------
    learning_rate : float
        Step size, positive.
    local_steps : int
        Steps of each client in a round.
    clip_norm : float
        Of each record's gradient, positive; infinite for no clipping.
    noise_std : float
        Of the Gaussian noise added to each local gradient.
    clients : Participation
        Which clients take part in a round; all by default.
    radius : float
        Of the ball that the averaged model is projected onto.

    Notes
    -----
    The baseline of that paper's experiments, whose noise certifies nothing like the epsilon that they name; the guarantee here
    composes every local step.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.LocalSGD(learning_rate=0.1, local_steps=5, clip_norm=1.0, noise_std=1.0).local_steps
    5
    """

    local_steps: int
    clients: Participation = ALL

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        self._check(local_steps=count_scalar)

    @property
    def _records(self) -> Participation:
        return FixedSize(1)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        noises = self._noises(problem)
        if len(set(noises)) > 1:
            raise ValueError(f"noise_std must be one number for local steps, not {self.noise_std}")
        return self._plain_rule(
            problem,
            rounds,
            local_steps=self.local_steps,
            step_noise=noises[0],
            noise_scales=np.zeros(problem.num_silos),
            server=AVERAGE,
        )

    def _accounts(self, problem: Problem, mechanisms: Sequence[Gaussian]) -> list[Account]:
        steps = super()._accounts(problem, mechanisms)

        def of_rounds(leaks: Leaks) -> Leaks:
            return lambda rounds: leaks(rounds * self.local_steps)

        return [(adjacency, of_rounds(leaks)) for adjacency, leaks in steps]

    def _views(self, problem: Problem, rounds: int) -> Views:
        del rounds
        return {"messages": lambda: self._each_message(problem)}
