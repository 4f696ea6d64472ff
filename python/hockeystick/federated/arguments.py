"""The arguments that functions of federated training share, and those of the trusted aggregator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import LARGEST_COUNT, Array, Checks, OnError, Result, broadcast, choice

Loss: TypeAlias = Literal["convex", "nonconvex"]

LOSSES: tuple[Loss, ...] = get_args(Loss)
Schedule: TypeAlias = Literal["constant", "cyclic", "stagewise", "continuous"]

SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
SCHEDULES_BY_ROUND = ("stagewise", "continuous")  # the cost of a cell grows with its rounds


CHECKS = {
    **dict.fromkeys(("local_steps", "num_clients"), Checks.count),
    **dict.fromkeys(("clip_norm", "noise_std"), Checks.positive),
    "smoothness": Checks.non_negative,
    **dict.fromkeys(("learning_rate", "prox"), Checks.positive),
}


def scheduled(
    kind: Literal["fedavg", "fedprox"], what: Literal["gdp", "delta", "epsilon"], arguments: Mapping[str, Any]
) -> Result:
    """Check the arguments of a function on schedules of steps in their order, and evaluate it.

    Where a cell's cost grows with its rounds, which are limited there, delta and epsilon are those of the Gaussian-DP parameter.
    """
    grid = Checks(arguments["num_threads"], arguments["on_error"])
    schedule = choice("schedule", arguments["schedule"], SCHEDULES)
    by_round = schedule in SCHEDULES_BY_ROUND
    question: tuple[Array, ...] = ()
    if what == "delta":
        question = (grid.non_negative_or_infinite("eps", arguments["eps"]),)
    elif what == "epsilon":
        question = (grid.probability("delta", arguments["delta"]),)
    rounds = grid.count_up_to("rounds", arguments["rounds"], core.max_scheduled_rounds if by_round else LARGEST_COUNT)
    known = {name: check(grid, name, arguments[name]) for name, check in CHECKS.items() if name in arguments}
    if "prox" in known:
        pull, rate = known["prox"], known["learning_rate"]
        grid.require(lambda a, b: a > b, "prox must be above smoothness", prox=pull, smoothness=known["smoothness"])
        grid.require(lambda e, a: e * a <= 1, "learning_rate must be at most 1/prox", learning_rate=rate, prox=pull)
    diameter = arguments["diameter"]
    bound = np.asarray(np.inf) if diameter is None else grid.positive_or_infinite("diameter", diameter)
    cells = (rounds, *known.values(), bound)
    if by_round and question:
        mu = grid.map(partial(getattr(core, f"{kind}_gdp"), schedule), *cells)
        return grid.map(core.gdp_dp_delta if what == "delta" else core.gdp_epsilon, np.asarray(mu), *question)
    return grid.map(partial(getattr(core, f"{kind}_{what}"), schedule), *cells, *question)


class AggregatorChecks(Checks):
    """The arguments of the trusted-aggregator functions, whose arrays have the round as their last axis."""

    def __init__(self, loss: Loss, num_threads: int | None, on_error: OnError) -> None:
        super().__init__(num_threads, on_error)
        self.convex = choice("loss", loss, LOSSES) == "convex"
        self.rounds: dict[str, Array] = {}

    def aggregation(  # noqa: PLR0917, in the order of its callers' arguments
        self,
        eps: ArrayLike,
        num_users: ArrayLike,
        batch_size: ArrayLike,
        learning_rate: ArrayLike,
        noise_std: ArrayLike,
        lipschitz: ArrayLike,
        radius: ArrayLike,
        smoothness: ArrayLike | None,
    ) -> tuple[Array, ...]:
        """Check the arguments in their order; return those of a cell and keep those of the rounds."""
        cells = (
            self.non_negative_or_infinite("eps", eps),
            self.count("num_users", num_users),
            self.count("batch_size", batch_size),
        )
        self.per_round("learning_rate", learning_rate)
        self.per_round("noise_std", noise_std)
        self.per_round("lipschitz", lipschitz)
        self.per_round("radius", radius)
        self.smoothness(smoothness)
        return cells

    def per_round(self, name: str, value: ArrayLike) -> None:
        """Check an argument that may be a schedule."""
        array = self.positive(name, value)
        self.rounds[name] = array if array.ndim else array.reshape(1)

    def smoothness(self, value: ArrayLike | None) -> None:
        """Check the smoothness, where it is known, and with it the step size: a convex loss's step must not expand."""
        bound = np.atleast_1d(self.non_negative("smoothness", 0.0 if value is None else value))
        if self.convex:
            self.require(
                lambda rate, b: rate * b <= 2,
                "learning_rate must be at most 2/smoothness for a convex loss",
                learning_rate=self.rounds["learning_rate"],
                smoothness=bound,
            )
        self.rounds["smoothness"] = bound

    def length(self, num_users: Array, batch_size: Array) -> int:
        """Return the length of the schedules, 1 where all are constant."""
        self.require(
            lambda m, n: m <= n, "batch_size must be at most num_users", batch_size=batch_size, num_users=num_users
        )
        # Cells with other counts are NaN, whatever their schedules.
        legal = (num_users >= batch_size) & (batch_size >= 1) & (num_users <= LARGEST_COUNT)
        rounds = np.unique(num_users[legal] // batch_size[legal])
        for name, array in self.rounds.items():
            if array.shape[-1] != 1 and np.any(rounds != array.shape[-1]):
                wanted = " and ".join(f"{count:.0f}" for count in rounds[:3])
                msg = (
                    f"the last axis of {name} is the round: its length must be 1 or num_users // batch_size = {wanted}, "
                    f"not {array.shape[-1]}; a grid of constants has the shape (..., 1)"
                )
                raise ValueError(msg)
        longest: int = max(array.shape[-1] for array in self.rounds.values())
        return longest

    def evaluate(self, function: Callable[..., Array], *cells: Array) -> Result:
        """Broadcast cells against the leading axes of the rounds, and evaluate."""
        length = self.length(*np.broadcast_arrays(*cells[1:3]))
        wide = broadcast(*cells, *(r[..., 0] for r in self.rounds.values()))
        shape = wide[0].shape
        rows = [np.broadcast_to(r, (*shape, length)) for r in self.rounds.values()]
        return self.finish(function(wide[: len(cells)], rows, self.convex, self.threads))
