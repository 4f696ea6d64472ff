"""One federated training, as all analyses see it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from hockeystick._checks import Array, at_most, choice, count_scalar, non_negative_scalar, positive_scalar, scalar
from hockeystick._checks.shown import shown

__all__ = ["Order", "Training", "checked_rounds", "checked_training"]

Order: TypeAlias = Literal["random", "cyclic"]
MOST_POINTS = 10  # numbers of rounds, where only the largest is given


@dataclass(frozen=True)
class Training:
    """The checked inputs, and what follows from them."""

    num_clients: int
    num_records: int
    clients_per_round: int
    batch_size: int
    local_steps: int
    noise_std: float
    lipschitz: float
    smoothness: float
    strong_convexity: float
    learning_rate: float
    diameter: float
    delta: float
    order: Order
    index: int

    @property
    def everybody(self) -> bool:
        """Whether all clients take part in every round."""
        return self.clients_per_round == self.num_clients

    @property
    def protects(self) -> Literal["record", "client"]:
        """What is replaced, if the server is seen: where clients are drawn, one of them with all its records."""
        return "record" if self.everybody or self.order == "cyclic" else "client"

    @property
    def period(self) -> int:
        """In how many rounds every record is used once, in a fixed order."""
        return self.num_clients * self.num_records // (self.clients_per_round * self.batch_size)

    @property
    def rate(self) -> float:
        """With which probability a round uses what is protected."""
        if self.everybody:
            return self.batch_size / self.num_records
        return self.clients_per_round / self.num_clients

    @property
    def full(self) -> bool:
        """Whether every round uses what is protected."""
        return self.period == 1 if self.order == "cyclic" else self.rate == 1.0

    @property
    def share(self) -> float:
        """The largest norm of what is protected within a client's message, of K gradients: a record's is shared by its batch."""
        alone = self.local_steps == 1 and self.protects == "record"
        return self.lipschitz * self.local_steps / (self.batch_size if alone else 1)

    @property
    def multiplier(self) -> float:
        """Noise of the mean of all messages, over what is protected."""
        return self.noise_std * math.sqrt(self.clients_per_round) / self.share

    def uses(self, rounds: Array) -> Array:
        """Return in how many of the first rounds a record of a fixed order is used."""
        return np.where(rounds < self.index, 0, (rounds - self.index) // self.period + 1)


def checked_training(
    *,
    num_clients: int,
    num_records: int,
    clients_per_round: int | None,
    batch_size: int | None,
    local_steps: int,
    noise_std: float,
    lipschitz: float,
    smoothness: float,
    strong_convexity: float,
    learning_rate: float,
    diameter: float,
    delta: float,
    order: Order,
    index: int,
) -> Training:
    """Check the arguments in their order."""
    num_clients = count_scalar("num_clients", num_clients)
    num_records = count_scalar("num_records", num_records)
    training = Training(
        num_clients=num_clients,
        num_records=num_records,
        clients_per_round=count_scalar(
            "clients_per_round", num_clients if clients_per_round is None else clients_per_round
        ),
        batch_size=count_scalar("batch_size", num_records if batch_size is None else batch_size),
        local_steps=count_scalar("local_steps", local_steps),
        noise_std=positive_scalar("noise_std", noise_std),
        lipschitz=positive_scalar("lipschitz", lipschitz),
        smoothness=non_negative_scalar("smoothness", smoothness),
        strong_convexity=non_negative_scalar("strong_convexity", strong_convexity),
        learning_rate=positive_scalar("learning_rate", learning_rate),
        diameter=scalar("diameter", diameter, lambda x: x > 0, "be positive, or infinite where nothing is projected"),
        delta=scalar("delta", delta, lambda x: 0 < x < 1, "lie in (0, 1)"),
        order=choice("order", order, get_args(Order)),
        index=count_scalar("index", index),
    )
    _check_together(training)
    return training


def _check_together(training: Training) -> None:
    at_most("clients_per_round", training.clients_per_round, "num_clients", training.num_clients)
    at_most("batch_size", training.batch_size, "num_records", training.num_records)
    at_most("strong_convexity", training.strong_convexity, "smoothness", training.smoothness)
    _check_order(training)


def _check_order(training: Training) -> None:
    if training.order == "random":
        if training.index != 1:
            msg = f"index must be 1 for order='random', in which a record has no round of its own, not {training.index}"
            raise ValueError(msg)
        return
    together = training.clients_per_round * training.batch_size
    if training.num_clients * training.num_records % together:
        msg = (
            f"clients_per_round batch_size must divide num_clients num_records ({training.num_clients * training.num_records}) "
            f"for order='cyclic', not {together}"
        )
        raise ValueError(msg)
    at_most("index", training.index, "the rounds of a pass", training.period)


def checked_rounds(rounds: int | Sequence[int]) -> Array:
    """Return increasing numbers of rounds; those up to a single one spaced by ratios."""
    if np.ndim(rounds) == 0:
        last = count_scalar("rounds", rounds)  # type: ignore[arg-type]
        return np.unique(np.geomspace(1, last, MOST_POINTS).round()).astype(np.int64)
    given = [count_scalar(f"rounds[{k}]", value) for k, value in enumerate(rounds)]  # type: ignore[arg-type]
    if not given or any(b <= a for a, b in itertools.pairwise(given)):
        msg = f"rounds must be one number, or increasing ones, not {shown(rounds)}"
        raise ValueError(msg)
    return np.array(given)
