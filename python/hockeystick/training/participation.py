"""Who takes part in a round: reference samplers that do what the mechanisms assume."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks.shown import shown
from hockeystick.mechanisms import FixedSizeSampled, PoissonSampled, RandomAllocation, Shuffled, TruncatedPoissonSampled
from hockeystick.mechanisms.base import Mechanism, require_mechanism

__all__ = ["draw_batches", "draw_participants"]

Client = TypeVar("Client")
SAMPLERS = (PoissonSampled, TruncatedPoissonSampled, FixedSizeSampled, RandomAllocation)


def draw_participants(
    mechanism: Mechanism, client_ids: Iterable[Client], rng: np.random.Generator | None = None
) -> list[Client]:
    """Return who takes part in one round, drawn as the mechanism assumes.

    Parameters
    ----------
    mechanism : Mechanism
        `PoissonSampled`: each client independently with its sampling rate, so that the number varies and may be 0.
        `TruncatedPoissonSampled`: of such a sample, if it is larger than the largest batch, a uniform subset of that size.
        `FixedSizeSampled`: a uniform subset of its batch size, of as many clients as its data set has; with replacement a
        client can be there more than once. `RandomAllocation` is for `draw_batches`. One that does not sample: all.
    client_ids : iterable
        Hashable, each once.
    rng : numpy.random.Generator, optional
        By default a fresh one from the operating system's entropy. A seed that others know makes the sample public, and
        amplification by sampling needs it secret.

    Returns
    -------
    list
        Of the ids, in their order. Probabilities are those of the mechanism to 2^-53.

    Raises
    ------
    ValueError
        If an id is there twice, the number of clients is not that of the mechanism, or each of several releases has a sample of its own.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.FixedSizeSampled(hs.Gaussian(1.0), 5, 2, replacement=False)
    >>> len(hs.training.draw_participants(step, ["Ada", "Bo", "Cy", "Di", "Eve"]))
    2
    """
    require_mechanism(mechanism)
    clients = _distinct(client_ids)
    drawn = _draw(mechanism, len(clients), _source(rng))
    return [clients[position] for position in np.sort(drawn).tolist()]


def _draw(mechanism: Mechanism, number: int, source: np.random.Generator) -> NDArray[np.int64]:
    """Return positions below `number`, those of a sample of a sample where samplers are nested."""
    if isinstance(mechanism, PoissonSampled):
        drawn = np.flatnonzero(source.random(number) < mechanism.sampling_rate)
    elif isinstance(mechanism, TruncatedPoissonSampled):
        if number > mechanism.num_records:
            raise ValueError(
                f"client_ids must be at most the {mechanism.num_records} clients of {shown(mechanism)}, not {number}"
            )
        drawn = source.permutation(np.flatnonzero(source.random(number) < mechanism.sampling_rate))
        drawn = drawn[: mechanism.max_batch_size]
    elif isinstance(mechanism, FixedSizeSampled):
        if number != mechanism.num_records:
            raise ValueError(
                f"client_ids must be the {mechanism.num_records} clients of {shown(mechanism)}, not {number}"
            )
        drawn = source.choice(number, mechanism.batch_size, replace=mechanism.replacement)
    elif isinstance(mechanism, RandomAllocation):
        raise ValueError(
            f"mechanism must be one that clients can be drawn for in one round, not {shown(mechanism)}: draw_batches has whole epochs"
        )
    elif any(isinstance(part, SAMPLERS) for part in mechanism._within()):
        raise ValueError(
            f"mechanism must be one that clients can be drawn for: one sample for all of its releases, not one for each as {shown(mechanism)} does"
        )
    else:
        return np.arange(number)
    return drawn[_draw(mechanism.mechanism, len(drawn), source)]


def draw_batches(
    mechanism: RandomAllocation, client_ids: Iterable[Client], rng: np.random.Generator | None = None
) -> list[list[Client]]:
    """Return who takes part in each round of an epoch, drawn as random allocation assumes.

    Parameters
    ----------
    mechanism : RandomAllocation
        Each client takes part in `num_selected` of its `steps` rounds, a uniform subset, independently of the others.
    client_ids : iterable
        Hashable, each once.
    rng : numpy.random.Generator, optional
        As in `draw_participants`.

    Returns
    -------
    list of list
        Of the ids in each of the `steps` rounds, in their order; a round may be empty.

    Raises
    ------
    ValueError
        If an id is there twice.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import hockeystick as hs
    >>> batches = hs.training.draw_batches(hs.mechanisms.RandomAllocation(hs.Gaussian(1.0), 3), range(6))
    >>> sorted(client for batch in batches for client in batch)
    [0, 1, 2, 3, 4, 5]
    """
    if not isinstance(mechanism, RandomAllocation):
        raise TypeError(f"mechanism must be RandomAllocation, not {shown(mechanism)}")
    clients, source = _distinct(client_ids), _source(rng)
    batches: list[list[Client]] = [[] for _ in range(mechanism.steps)]
    if mechanism.num_selected == 1:
        rounds = source.integers(mechanism.steps, size=(len(clients), 1))
    else:
        drawn = [source.choice(mechanism.steps, mechanism.num_selected, replace=False) for _ in clients]
        rounds = np.array(drawn).reshape(len(clients), mechanism.num_selected)
    for client, selected in zip(clients, rounds.tolist(), strict=True):
        for step in selected:
            batches[step].append(client)
    return batches


def _distinct(client_ids: Iterable[Client]) -> list[Client]:
    clients = list(client_ids)
    if len(set(clients)) != len(clients):
        raise ValueError(
            f"client_ids must name each client once, not {len(set(clients))} of them in {len(clients)} places"
        )
    return clients


def _source(rng: np.random.Generator | None) -> np.random.Generator:
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be a numpy.random.Generator, as numpy.random.default_rng(seed) makes one, or None, not {shown(rng)}"
        )
    return np.random.default_rng() if rng is None else rng


def check_participation(
    mechanism: Mechanism, count: int, charged: NDArray[np.bool_], drawn: NDArray[np.bool_] | None
) -> None:
    """Raise ValueError where somebody is left out who may have been drawn, or participation exceeds what is charged."""
    _require_everybody(mechanism, charged, drawn)
    number = int(charged.sum())
    if isinstance(mechanism, FixedSizeSampled) and number != mechanism.num_records:
        raise ValueError(f"clients must be the {mechanism.num_records} of {shown(mechanism)}, not {number}")
    if isinstance(mechanism, TruncatedPoissonSampled) and number > mechanism.num_records:
        raise ValueError(f"clients must be at most the {mechanism.num_records} of {shown(mechanism)}, not {number}")
    reports = max((part.num_users for part in mechanism._within() if isinstance(part, Shuffled)), default=0)
    if drawn is None:
        if number < reports and not isinstance(mechanism, FixedSizeSampled):  # which has compared its batch
            raise ValueError(
                f"clients must be at least the {reports} whose reports {shown(mechanism)} mixes, not {number}"
            )
        return
    if int(drawn.sum()) < reports:
        raise ValueError(
            f"participants must be at least the {reports} whose reports {shown(mechanism)} mixes, not {int(drawn.sum())}"
        )
    if count != 1:
        raise ValueError(f"count must be 1 where participants are given, not {count}: each step has its own")
    if (drawn & ~charged).any():
        raise ValueError(
            f"participants must be among the clients that are charged, which {int((drawn & ~charged).sum())} are not"
        )
    most = getattr(mechanism, "batch_size", getattr(mechanism, "max_batch_size", number))
    if int(drawn.sum()) > most:
        raise ValueError(f"participants must be at most the {most} of {shown(mechanism)}, not {int(drawn.sum())}")


def _require_everybody(mechanism: Mechanism, charged: NDArray[np.bool_], drawn: NDArray[np.bool_] | None) -> None:
    """Raise ValueError where a mechanism samples, and some clients are not charged who may have been drawn.

    Who could have been drawn is known if it is everybody. Of fewer it is believed if participants are given and their number
    can be held against the sampler, so that those drawn cannot pass for those who could have been.
    """
    if charged.all() or not any(isinstance(part, SAMPLERS) for part in mechanism._within()):
        return
    if isinstance(mechanism, FixedSizeSampled):  # says of how many it draws; check_participation compares
        return
    if drawn is None:
        raise ValueError(
            f"clients must be everyone who could have been drawn by {shown(mechanism)}, drawn or not: leave it out to charge all, "
            f"or, where the others cannot be drawn, give participants beside it; {int(charged.sum())} of {len(charged)} were given"
        )
    # In an epoch of random allocation everybody takes part in some round.
    if isinstance(mechanism, RandomAllocation) and (drawn == charged).all():
        return
    if not isinstance(mechanism, (PoissonSampled, TruncatedPoissonSampled)):
        raise ValueError(
            f"clients must be all {len(charged)} for {shown(mechanism)}, not {int(charged.sum())}: participants cannot be held against it"
        )
