"""The classes of Flower's configuration, events and answers, and how a configuration is checked."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from hockeystick._checks import choice, count_scalar, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick.mechanisms.base import Adjacency

RELATIONS: Mapping[str, Adjacency] = {"add-or-remove-one": "add_or_remove", "replace-one": "replace"}
SAMPLING = ("poisson", "without-replacement", "no-amplification")


@dataclass(frozen=True)
class PrivacyConfig:
    """What stays the same over a training.

    Parameters
    ----------
    target_delta : float
        Delta of reports and limits, in (0, 1).
    population_size : int
        Clients from which each round samples.
    neighboring_relation : {"add-or-remove-one", "replace-one"}
        Which populations are adjacent, by one client.
    sampling_method : {"poisson", "without-replacement", "no-amplification"}
        How each round samples.
    max_epsilon : float, optional
        Limit for `Accountant.would_exceed`.
    """

    target_delta: float
    population_size: int
    neighboring_relation: str
    sampling_method: str
    max_epsilon: float | None = None


@dataclass(frozen=True)
class GaussianPrivacyEvent:
    """A round with Gaussian noise on the sum of clipped updates.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over clip norm.
    sample_size : int
        Clients in the round; with Poisson sampling their expected number.
    population_size : int
        That of the configuration.
    """

    noise_multiplier: float
    sample_size: int
    population_size: int


class PrivacySpent(NamedTuple):
    """What was spent.

    Attributes
    ----------
    epsilon, delta : float
        Certified upper end of epsilon, at delta.
    num_releases : int
        Rounds so far.
    accounting_method : str
        "hockeystick".
    optimal_order : None
        There are no orders.
    """

    epsilon: float
    delta: float
    num_releases: int
    accounting_method: str
    optimal_order: None = None


def in_flowers_classes(config: Any) -> Any:
    """Return a configuration as Flower's own class, whose enumerations its strategies ask for, where Flower is loaded and takes it."""
    flower = sys.modules.get("flwr.serverapp")
    theirs = getattr(flower, "PrivacyConfig", None)
    if theirs is None or isinstance(config, theirs):
        return config
    relation = flower.NeighboringRelation(_word(config, "neighboring_relation"))  # type: ignore[union-attr]
    method = flower.SamplingMethod(_word(config, "sampling_method"))  # type: ignore[union-attr]
    try:
        return theirs(config.target_delta, config.population_size, relation, method, config.max_epsilon)
    except ValueError:  # a combination that we answer and Flower does not
        return config


def checked_settings(config: Any) -> dict[str, Any]:
    """Return a configuration as plain values, checked."""
    relation, method = (_word(config, name) for name in ("neighboring_relation", "sampling_method"))
    choice("neighboring_relation", relation, tuple(RELATIONS))
    choice("sampling_method", method, SAMPLING)
    if method == "without-replacement" and RELATIONS[relation] != "replace":
        msg = f"sampling_method={shown(method)} has no proven bound under neighboring_relation={shown(relation)}; use 'replace-one'"
        raise ValueError(msg)
    limit = config.max_epsilon
    if limit is not None:
        limit = positive_scalar("max_epsilon", limit)
    return {
        "target_delta": scalar("target_delta", config.target_delta, lambda x: 0 < x < 1, "lie in (0, 1)"),
        "population_size": count_scalar("population_size", config.population_size),
        "neighboring_relation": relation,
        "sampling_method": method,
        "max_epsilon": limit,
    }


def _word(config: Any, name: str) -> Any:
    value = getattr(config, name)
    return value.value if isinstance(value, Enum) else value
