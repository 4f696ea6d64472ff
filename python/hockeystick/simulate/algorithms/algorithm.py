"""What all algorithms share: settings that are checked once, and how they become a rule for the compiled loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from hockeystick._checks import POSITIVE, choice, count_scalar, non_negative_scalar
from hockeystick._checks.checked import Checked
from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import UP
from hockeystick.federated.released_models import (
    VIEWS,
    WORDS,
    Account,
    Guarantee,
    NoGuaranteeError,
    View,
    by_composition,
    view_from,
)
from hockeystick.mechanisms import Gaussian
from hockeystick.simulate.problem.loss import Loss
from hockeystick.simulate.problem.problem import Problem
from hockeystick.simulate.running.participation import OF_RECORDS, EveryRound, Participation, Poisson
from hockeystick.simulate.running.rule import LEAST_CLIP_NORM, UpdateRule

__all__ = ["Algorithm"]

Records: TypeAlias = "Participation | tuple[Participation, ...]"  # a sampler of batches, or one for each silo
Noise: TypeAlias = "float | tuple[float, ...]"  # a standard deviation, or one for each silo
CLIP_NORM = (lambda x: x >= LEAST_CLIP_NORM, f"be at least {LEAST_CLIP_NORM:.1e}, where squares are still doubles")
RADIUS = (lambda x: x > 0, "be positive")
Views: TypeAlias = "dict[View, Callable[[], Guarantee]]"


@dataclass(frozen=True, kw_only=True)
class Algorithm(Checked):
    """The base of all algorithms.

    Parameters
    ----------
    learning_rate : float
        Step size, positive and finite.
    clip_norm : float
        Each record's gradient g is multiplied by min(1, clip_norm/|g|); positive, infinite for no clipping.
    noise_std : float
        Standard deviation of the noise, non-negative.
    radius : float
        Of the ball around the origin that models are projected onto, positive; infinite for no projection.
    """

    learning_rate: float
    clip_norm: float
    noise_std: Noise = 0.0
    radius: float = math.inf

    def __post_init__(self) -> None:
        """Check the settings that all algorithms share."""
        self._check(learning_rate=POSITIVE, clip_norm=CLIP_NORM, noise_std=checked_noise, radius=RADIUS)
        records = getattr(self, "records", ALL)
        for sampler in records if isinstance(records, tuple) else (records,):
            check_sampler("records", sampler)
        check_sampler("clients", getattr(self, "clients", ALL))

    @property
    def _records(self) -> Records:
        """Whose gradients are taken: the setting of algorithms that have it, else all."""
        records: Records = getattr(self, "records", ALL)
        return records

    @property
    def _clients(self) -> Participation:
        """Who takes part in a round, likewise."""
        clients: Participation = getattr(self, "clients", ALL)
        return clients

    def _one_silo(self, problem: Problem) -> None:
        if problem.num_silos > 1:
            raise ValueError(f"{type(self).__name__} is for one silo, not {problem.num_silos}; see Problem.pooled")

    def _samplers(self, problem: Problem) -> list[tuple[Participation, int]]:
        """Return each silo's sampler of batches, and its number of records."""
        return list(zip(each_silo("records", self._records, problem), problem.sizes or (), strict=True))

    def _noises(self, problem: Problem) -> tuple[float, ...]:
        """Return the standard deviation of each silo's noise."""
        return each_silo("noise_std", self.noise_std, problem)

    def _has_noise(self, problem: Problem) -> bool:
        """Return whether no silo goes without noise; an algorithm whose noise is not `noise_std` overrides this."""
        return min(self._noises(problem)) > 0

    def _rule(self, problem: Problem, rounds: int) -> UpdateRule:
        """Return what the compiled loops are told, after checking that settings and problem fit."""
        raise NotImplementedError

    def _plain_rule(self, problem: Problem, rounds: int, **changes: Any) -> UpdateRule:
        clients = self._clients
        if isinstance(clients, OF_RECORDS):
            raise ValueError(
                f"clients must be drawn by a sampler of clients, each at most once in a round, not {shown(clients)}"
            )
        if isinstance(clients, Poisson) and clients.expected_batch_size is not None:
            raise ValueError(
                f"clients must have no expected_batch_size ({clients.expected_batch_size}): the mean is over those drawn"
            )
        samplers = self._samplers(problem)
        batches = [s._numbers(f"records of silo {i}", count) for i, (s, count) in enumerate(samplers)]
        kinds, sizes, rates = map(np.array, zip(*batches, strict=True))
        kind, size, rate = clients._numbers("clients", problem.num_silos)
        return UpdateRule(
            rounds=rounds,
            client_sampler=kind,
            client_size=size,
            client_rate=rate,
            client_weights=np.ones(problem.num_silos),
            record_samplers=kinds,
            record_sizes=sizes,
            record_rates=rates,
            record_divisors=np.array([sampler._divisor(count) for sampler, count in samplers]),
            clip_norm=self.clip_norm,
            noise_scales=np.array(self._noises(problem)),
            learning_rate=self.learning_rate,
            radius=self.radius,
            stop_rounds=rounds,
        )._replace(**changes)

    def guarantee(
        self, problem: Problem, *, rounds: int, index: int | None = None, released: View | None = None
    ) -> Guarantee:
        """Return what is certified about a run of at most `rounds` rounds.

        Parameters
        ----------
        problem : Problem
            What is learned.
        rounds : int
            How many rounds are planned, at least 1.
        index : int, optional
            The record whose guarantee is asked, by its number from 1, for `ProjectedNoisySGD`; by default all records.
        released : {"messages", "shuffled_messages", "every_model", "last_model", "random_model"}, optional
            What may be seen: what every client sends; the same, shuffled; the model after every round; after the last one; after a
            uniformly random one (``random_stop=True``). By default what the algorithm is meant to release; `Guarantee.released` says what.

        Returns
        -------
        Guarantee
            Epsilon after any number of rounds: the smallest of all that are proven for what may be seen, or for more.

        Raises
        ------
        NoGuaranteeError
            If no certified bound covers these settings.
        """
        rounds = count_scalar("rounds", rounds)
        self._rule(problem, rounds)
        if math.isinf(self.clip_norm):
            raise NoGuaranteeError("nothing is certified without clipping: clip_norm is infinite")
        if not self._has_noise(problem):
            raise NoGuaranteeError("nothing is certified without noise: noise_std is 0")
        views = self._views(problem, rounds) if index is None else self._views_of(index, problem, rounds)
        if released is None:
            found = next(iter(views.values()))()
        else:
            found = view_from(choice("released", released, VIEWS), views)
        stated = problem.loss.stated if isinstance(problem.loss, Loss) else ""
        return replace(found, source=f"{found.source}; the loss as stated by the caller: {stated}") if stated else found

    def _views(self, problem: Problem, rounds: int) -> Views:
        """Return what is proven for which views of all records, first what the algorithm is meant to release."""
        raise NotImplementedError

    def _views_of_sums(self, problem: Problem) -> Views:
        """Return what is proven where the server adds up noisy means of batches' gradients, and releases models."""
        return {"messages": lambda: self._each_message(problem), "every_model": lambda: self._each_sum(problem)}

    def _views_of(self, index: int, problem: Problem, rounds: int) -> Views:
        """Return what is proven of one record, where its step is known."""
        del problem, rounds
        raise NoGuaranteeError(f"{type(self).__name__} has one guarantee for all records, none for index={index}")

    def _each_sum(self, problem: Problem) -> Guarantee:
        """Return the guarantee of every round's sum of noisy means, who takes part being known; docs/core/federated.md has the proof.

        The noise of those who take part adds up: at least that of the quietest silos, and a Poisson sample may be one silo.
        """
        if isinstance(self._clients, Poisson):
            raise NoGuaranteeError("a Poisson sample of silos may be one, whose message is the sum")
        together = self._clients._numbers("clients", problem.num_silos)[1]
        noise = math.sqrt(math.fsum(x * x for x in sorted(self._noises(problem))[:together])) / UP
        alone = replace(self, noise_std=noise)._each_message(problem)
        source = f"{alone.source}, hidden by the noise of {together} messages together"
        return replace(alone, released=WORDS["every_model"], source=source)

    def _accounts(self, problem: Problem, mechanisms: Sequence[Gaussian]) -> list[Account]:
        """Return what each silo's batches leak, whose mean has the noise of its mechanism."""
        pairs = zip(self._samplers(problem), mechanisms, strict=True)
        try:
            return [sampler._account(mechanism, count) for (sampler, count), mechanism in pairs]
        except ValueError as error:
            raise NoGuaranteeError(str(error)) from None

    def _each_message(self, problem: Problem) -> Guarantee:
        """Return the guarantee of releasing every noisy mean of a batch's clipped gradients; every silo counts all rounds."""
        samplers = self._samplers(problem)
        mechanisms = [
            Gaussian(noise * sampler._divisor(count) / self.clip_norm)
            for noise, (sampler, count) in zip(self._noises(problem), samplers, strict=True)
        ]
        accounts = self._accounts(problem, mechanisms)
        if len({account[0] for account in accounts}) > 1:
            raise NoGuaranteeError("silos whose samplers have different adjacencies have no common guarantee")
        source = f"Accountant; {samplers[0][0]!r} in each silo, which is charged for all rounds"
        return by_composition(accounts, WORDS["messages"], source)


def checked_noise(name: str, value: Noise) -> Noise:
    """Return a standard deviation, or one for each silo."""
    if not isinstance(value, tuple):
        return non_negative_scalar(name, value)
    return tuple(non_negative_scalar(f"{name}[{i}]", x) for i, x in enumerate(value))


def each_silo(name: str, value: Any, problem: Problem) -> tuple[Any, ...]:
    """Return one value for each silo, where one may be given for all."""
    if not isinstance(value, tuple):
        return (value,) * problem.num_silos
    if len(value) != problem.num_silos:
        raise ValueError(f"Length of {name} ({len(value)}) must match number of silos ({problem.num_silos})")
    return value


def check_sampler(name: str, value: Any, kinds: Sequence[type] = (Participation,)) -> None:
    """Check that a value is a sampler of one of these kinds."""
    if not isinstance(value, tuple(kinds)):
        raise TypeError(f"{name} must be {' or '.join(kind.__name__ for kind in kinds)}, not {shown(value)}")


ALL = EveryRound()
