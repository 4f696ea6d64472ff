"""Flower: client-level accounting in the shape of its `PrivacyAccountant` protocol; Flower itself is not imported.

.. code-block:: python

    accountant = Accountant(config)  # was: RdpAccountant(config)

`config` and events may be Flower's `PrivacyConfig` and `GaussianPrivacyEvent`, or anything with the same attributes.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from hockeystick._checks import OPEN_PROBABILITY, choice, count_at_most, count_scalar, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick.accounting import Accountant as CertifiedAccountant
from hockeystick.accounting.locking import ThreadSafe
from hockeystick.mechanisms import FixedSizeSampled, Gaussian, PoissonSampled
from hockeystick.mechanisms.base import Adjacency, Mechanism

__all__ = ["Accountant", "GaussianPrivacyEvent", "PrivacyConfig", "PrivacySpent"]
SCHEMA_VERSION, BACKEND = 1, "hockeystick"


class Rounds(NamedTuple):
    """Rounds as an accountant and as Flower's events with counts; neither is changed in place."""

    accountant: CertifiedAccountant
    compositions: tuple[tuple[dict[str, Any], int], ...] = ()

    def plus(self, fields: dict[str, Any], mechanism: Mechanism, count: int) -> Rounds:
        """Return the rounds with more of them, equal neighbours as one."""
        accountant, before = copy.copy(self.accountant).compose(mechanism, count), self.compositions
        if before and before[-1][0] == fields:
            return Rounds(accountant, (*before[:-1], (fields, before[-1][1] + count)))
        return Rounds(accountant, (*before, (fields, count)))


class Accountant(ThreadSafe[Rounds]):
    """Privacy of a federated training by rounds; every epsilon is a certified upper bound.

    Parameters
    ----------
    config : PrivacyConfig
        Flower's or this module's.

    Raises
    ------
    ValueError
        If a value of the configuration is outside its domain or unknown, or sampling and relation do not fit.

    Examples
    --------
    >>> from hockeystick import format_upper
    >>> config = PrivacyConfig(1e-5, 10_000, "add-or-remove-one", "poisson", max_epsilon=2.0)
    >>> accountant = Accountant(config)
    >>> round_ = GaussianPrivacyEvent(noise_multiplier=1.0, sample_size=100, population_size=10_000)
    >>> accountant.compose(round_, 1000)
    >>> print(f"{format_upper(accountant.get_privacy_spent().epsilon, '.3f')}", accountant.would_exceed(round_, count=500))
    1.829 True
    """

    def __init__(self, config: Any) -> None:
        """Check the configuration."""
        self._config = config
        self._settings = checked_settings(config)
        super().__init__(Rounds(CertifiedAccountant(RELATIONS[self._settings["neighboring_relation"]])))

    @property
    def config(self) -> Any:
        """The configuration: as it was given, or as Flower's own class where Flower is loaded, since its strategies ask for that."""
        return in_flowers_classes(self._config)

    @property
    def num_releases(self) -> int:
        """Rounds so far."""
        return len(self.accountant)

    @property
    def accountant(self) -> CertifiedAccountant:
        """Hockeystick's accountant of the rounds so far, for brackets and explanations; what is composed later is not in it."""
        return self._state.accountant

    def compose(self, event: Any, count: int = 1) -> None:
        """Add rounds.

        Parameters
        ----------
        event : GaussianPrivacyEvent
            Flower's or this module's.
        count : int
            How many, at least 1.

        Raises
        ------
        ValueError
            If something is outside its domain, or the population is not that of the configuration; nothing is added.
        """
        fields, mechanism = self._round(event)
        count = count_scalar("count", count)
        self._change(lambda rounds: rounds.plus(fields, mechanism, count))

    def get_epsilon(self, delta: float) -> float:
        """Return the certified upper end of epsilon.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            Infinity where no epsilon will do.
        """
        return float(self.accountant.epsilon(delta))

    def get_delta(self, epsilon: float) -> float:
        """Return the certified upper end of delta.

        Parameters
        ----------
        epsilon : float
            Non-negative.

        Returns
        -------
        float
            In [0, 1].
        """
        return float(self.accountant.delta(epsilon))

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Return what was spent.

        Parameters
        ----------
        delta : float, optional
            That of the configuration by default.

        Returns
        -------
        PrivacySpent
            The certified epsilon, the delta, the number of rounds and the name of this backend.
        """
        delta = self._settings["target_delta"] if delta is None else delta
        accountant = self.accountant  # both numbers are of the same rounds, whoever composes meanwhile
        return PrivacySpent(float(accountant.epsilon(delta)), delta, len(accountant), BACKEND)

    def would_exceed(self, event: Any, max_epsilon: float | None = None, count: int = 1) -> bool:
        """Say whether rounds would leave the budget; nothing is composed.

        Parameters
        ----------
        event : GaussianPrivacyEvent
            What each round would be.
        max_epsilon : float, optional
            Budget at the configuration's delta; that of the configuration by default.
        count : int
            How many rounds, at least 1.

        Returns
        -------
        bool
            True if the certified epsilon would exceed the budget.

        Raises
        ------
        ValueError
            If there is no budget, or something is outside its domain.
        """
        limit = self._settings["max_epsilon"] if max_epsilon is None else max_epsilon
        if limit is None:
            raise ValueError("max_epsilon must be given, here or in the configuration")
        _, mechanism = self._round(event)
        delta = self._settings["target_delta"]
        return self.accountant.would_exceed(mechanism, count, epsilon=limit, delta=delta)

    def state_dict(self) -> dict[str, Any]:
        """Return the configuration and the rounds as plain JSON values.

        Returns
        -------
        dict
            For `load_state_dict`.
        """
        compositions = [{"event": dict(event), "count": count} for event, count in self._state.compositions]
        return {
            "schema_version": SCHEMA_VERSION,
            "backend": BACKEND,
            "config": dict(self._settings),
            "compositions": compositions,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the rounds of a state.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned, perhaps through JSON, under the same configuration.

        Raises
        ------
        ValueError
            If version, backend or configuration differ, or something is missing or wrong; nothing is changed.
        TypeError
            If it is no mapping.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be a mapping, not {shown(state)}")
        expected = {"schema_version": SCHEMA_VERSION, "backend": BACKEND, "config": self._settings}
        for key, value in expected.items():
            if state.get(key) != value:
                raise ValueError(f"{key} of state must be {shown(value)}, not {shown(state.get(key))}")
        restored = type(self)(self._config)
        try:
            for entry in state["compositions"]:
                restored.compose(GaussianPrivacyEvent(**entry["event"]), entry["count"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"compositions of state must be events with counts: {error}") from error
        self._change(lambda _: restored._state)

    def _round(self, event: Any) -> tuple[dict[str, Any], Mechanism]:
        """Return an event as plain values and as a mechanism."""
        population = self._settings["population_size"]
        if event.population_size != population:
            raise ValueError(
                f"population_size must be that of the configuration, {population}, not {shown(event.population_size)}"
            )
        size = count_at_most("sample_size", event.sample_size, "population_size", population)
        noise = Gaussian(event.noise_multiplier)
        fields = {"noise_multiplier": noise.noise_multiplier, "sample_size": size, "population_size": population}
        return fields, _sampled(noise, size, population, self._settings["sampling_method"])


def _sampled(noise: Gaussian, size: int, population: int, method: str) -> Mechanism:
    if method == "poisson":
        return PoissonSampled(noise, size / population)
    if method == "without-replacement":
        return FixedSizeSampled(noise, population, size, replacement=False)
    return noise


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
        raise ValueError(
            f"sampling_method={shown(method)} has no proven bound under neighboring_relation={shown(relation)}; use 'replace-one'"
        )
    limit = config.max_epsilon
    if limit is not None:
        limit = positive_scalar("max_epsilon", limit)
    return {
        "target_delta": scalar("target_delta", config.target_delta, *OPEN_PROBABILITY),
        "population_size": count_scalar("population_size", config.population_size),
        "neighboring_relation": relation,
        "sampling_method": method,
        "max_epsilon": limit,
    }


def _word(config: Any, name: str) -> Any:
    value = getattr(config, name)
    return value.value if isinstance(value, Enum) else value
