"""Who takes part in a round: reference samplers that do what the mechanisms assume."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hockeystick.mechanisms import FixedSizeSampled, Mechanism, PoissonSampled

__all__ = ["draw_participants"]

Client = TypeVar("Client")


def draw_participants(
    mechanism: Mechanism, client_ids: Iterable[Client], rng: np.random.Generator | None = None
) -> list[Client]:
    """Return who takes part in one round, drawn as the mechanism assumes.

    Parameters
    ----------
    mechanism : Mechanism
        `PoissonSampled`: each client independently with its sampling rate, so that the number varies and may be 0.
        `FixedSizeSampled`: a uniform subset of its batch size, of as many clients as its data set has. Any other: all.
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
        If an id is there twice, or a fixed-size sample is of another number of clients.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.FixedSizeSampled(hs.Gaussian(1.0), 5, 2, replacement=False)
    >>> len(hs.draw_participants(step, ["Ada", "Bo", "Cy", "Di", "Eve"]))
    2
    """
    if not isinstance(mechanism, Mechanism):
        msg = f"mechanism must be one of hockeystick's mechanisms, not {mechanism!r}"
        raise TypeError(msg)
    clients = list(client_ids)
    if len(set(clients)) != len(clients):
        msg = f"client_ids must name each client once, not {len(set(clients))} of them in {len(clients)} places"
        raise ValueError(msg)
    if rng is not None and not isinstance(rng, np.random.Generator):
        msg = f"rng must be a numpy.random.Generator, as numpy.random.default_rng(seed) makes one, or None, not {rng!r}"
        raise TypeError(msg)
    source = np.random.default_rng() if rng is None else rng
    if isinstance(mechanism, PoissonSampled):
        drawn = np.flatnonzero(source.random(len(clients)) < mechanism.sampling_rate)
    elif isinstance(mechanism, FixedSizeSampled):
        if len(clients) != mechanism.dataset_size:
            msg = f"client_ids must be the {mechanism.dataset_size} clients of {mechanism!r}, not {len(clients)}"
            raise ValueError(msg)
        drawn = np.sort(source.choice(len(clients), mechanism.batch_size, replace=False))
    else:
        return clients
    return [clients[position] for position in drawn.tolist()]


def check_participation(
    mechanism: Mechanism, count: int, charged: NDArray[np.bool_], drawn: NDArray[np.bool_] | None
) -> None:
    """Raise ValueError where participation exceeds what is charged."""
    if isinstance(mechanism, FixedSizeSampled) and int(charged.sum()) != mechanism.dataset_size:
        msg = f"clients must be the {mechanism.dataset_size} of {mechanism!r}, not {int(charged.sum())}"
        raise ValueError(msg)
    if drawn is None:
        return
    if count != 1:
        msg = f"count must be 1 where participants are given, not {count}: each step has its own"
        raise ValueError(msg)
    if (drawn & ~charged).any():
        msg = f"participants must be among the clients that are charged, which {int((drawn & ~charged).sum())} are not"
        raise ValueError(msg)
    if isinstance(mechanism, FixedSizeSampled) and int(drawn.sum()) > mechanism.batch_size:
        msg = f"participants must be at most the {mechanism.batch_size} of {mechanism!r}, not {int(drawn.sum())}"
        raise ValueError(msg)
