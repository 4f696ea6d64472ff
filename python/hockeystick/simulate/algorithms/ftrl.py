"""DP-FTRL with tree noise (Kairouz et al. 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hockeystick._checks import boolean_scalar
from hockeystick.accounting.gaussian_dp import gdp_epsilon
from hockeystick.correlated_noise.sensitivity import cyclic_squares
from hockeystick.federated.released_models import Guarantee, NoGuaranteeError
from hockeystick.simulate.algorithms.algorithm import Algorithm, Views, check_sampler
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import Cyclic, Shuffled
from hockeystick.simulate.running.rule import TREE, UpdateRule

__all__ = ["TreeFTRL"]


@dataclass(frozen=True, kw_only=True)
class TreeFTRL(Algorithm):
    """Follow the regularised leader: w = Proj(w_0 - learning_rate (sum of all mean gradients + tree noise)).

    Parameters
    ----------
    learning_rate : float
        Step size, positive.
    clip_norm : float
        Of each record's gradient, positive; infinite for no clipping.
    noise_std : float
        Of the Gaussian noise of each node of the tree, on sums of mean gradients.
    records : Cyclic or Shuffled
        Batches, each record in one of them in a pass.
    restart : bool
        Whether each pass starts a new tree from the model that it finds, or one tree goes on over all passes.
    radius : float
        Of the ball that models are projected onto.

    Notes
    -----
    The noise of a prefix is that of the tree's nodes that make it up, at most log2(rounds) + 1, without the variance reduction
    of Honaker. A record counts in every node above its rounds, and with one tree for several passes more than once in some:
    the guarantee adds these up, for the worst position.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.TreeFTRL(learning_rate=0.1, clip_norm=1.0, noise_std=0.5, records=simulate.Cyclic(8), restart=True).restart
    True
    """

    records: Cyclic | Shuffled
    restart: bool

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        check_sampler("records", self.records, (Cyclic, Shuffled))
        self._check(restart=boolean_scalar)

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        self._one_silo(problem)
        parts, left = divmod(problem.num_records, self.records.size)
        rule = self._plain_rule(problem, rounds)
        if left and isinstance(self.records, Cyclic):
            raise ValueError(
                f"records must draw a divisor of the number of records ({problem.num_records}), not {self.records.size}"
            )
        return rule._replace(
            server=TREE,
            noise_scales=np.zeros(1),
            tree_noise=self._noises(problem)[0],
            tree_rounds=parts if self.restart else rounds,
        )

    def _views(self, problem: Problem, rounds: int) -> Views:
        return {"every_model": lambda: self._every_model(problem, rounds)}

    def _every_model(self, problem: Problem, rounds: int) -> Guarantee:
        parts = problem.num_records // self.records.size
        if not self.restart and rounds > parts and isinstance(self.records, Shuffled):
            raise NoGuaranteeError(
                "one tree over several passes in random orders is not covered; use Cyclic, or restart"
            )
        unit = 2 * self.clip_norm / (self.records.size * self._noises(problem)[0])

        def epsilon(t: int, delta: float) -> float:
            if self.restart:
                whole, rest = divmod(t, parts)
                # a record of the last, unfinished pass has been in all passes before
                loss = whole * tree_sensitivity(parts, parts) + (tree_sensitivity(rest, parts) if rest else 0)
            else:
                loss = tree_sensitivity(t, parts)
            return float(gdp_epsilon(unit * math.sqrt(loss), delta))

        return Guarantee("replace", "all models", "gdp_epsilon; the nodes of the tree above a record's rounds", epsilon)


def tree_sensitivity(rounds: int, period: int) -> int:
    """Return the largest sum of squared counts, over the nodes that prefixes of `rounds` use, of rounds that are equal modulo `period`."""
    return int(cyclic_squares(rounds, period, prefixes_only=True).max())
