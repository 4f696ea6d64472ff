"""The arguments of clients' ledgers: ids and budgets."""

from __future__ import annotations

import operator
import os
import re
import unicodedata
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from hockeystick._checks import DELTA, boolean_scalar, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.budgets.filter_base import Filter
from hockeystick.mechanisms.base import Adjacency

ClientId: TypeAlias = int | str
LONGEST_ID = 1024  # characters


def client_id(client: ClientId) -> ClientId:
    """Return an id as a plain integer, or as a plain string in Unicode's normal form C.

    One text can be written in several ways, "é" as one character or as two. In normal form they are one id, with one budget.
    """
    if type(client) is int and -(2**63) <= client < 2**63:  # most ids of a million, at a third of the time
        return client
    if isinstance(client, str):
        return _text_id(client)
    if isinstance(client, (bool, np.bool_)) or not isinstance(client, (int, np.integer)):
        msg = f"a client's id must be a string or an integer of 64 bits, not {shown(client)}"
        raise TypeError(msg)
    number = operator.index(client)
    if not -(2**63) <= number < 2**63:
        msg = f"a client's id must be an integer of 64 bits, in [-2^63, 2^63), not {shown(number)}"
        raise ValueError(msg)
    return number


def require_several(name: str, clients: Iterable[ClientId]) -> Iterable[ClientId]:
    """Return ids that are not one text: its letters would be taken for clients."""
    if isinstance(clients, (str, bytes, bytearray)):
        msg = f"{name} must be several ids, such as a list, not one text {shown(clients)}"
        raise TypeError(msg)
    return clients


def _text_id(client: str) -> str:
    if len(client) > LONGEST_ID:
        msg = f"a client's id must have at most {LONGEST_ID} characters, not {len(client)}"
        raise ValueError(msg)
    text = unicodedata.normalize("NFC", str(client))  # which may be longer
    if len(text) > LONGEST_ID:
        msg = f"a client's id must have at most {LONGEST_ID} characters in Unicode's normal form C, not {len(text)}"
        raise ValueError(msg)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        msg = f"a client's id must be text that UTF-8 can hold, not {client!a}"
        raise ValueError(msg) from error
    return text


def checked_budget(
    epsilon: float | None, delta: float | None, adjacency: Adjacency | None, budget: Filter | None
) -> tuple[tuple[float, float] | None, Accountant | Filter]:
    """Return epsilon and delta with an empty accountant, or a filter."""
    if budget is None and epsilon is not None and delta is not None:
        limits = (positive_scalar("epsilon", epsilon), scalar("delta", delta, *DELTA))
        return limits, Accountant("add_or_remove" if adjacency is None else adjacency)
    if isinstance(budget, Filter) and (epsilon, delta, adjacency) == (None, None, None) and not len(budget):
        return None, type(budget).from_state_dict(budget.state_dict())
    given = f"epsilon={shown(epsilon)}, delta={shown(delta)}, adjacency={shown(adjacency)}, budget={shown(budget)}"
    msg = f"either epsilon and delta or a filter of which nothing is spent must be given, not {given}"
    raise ValueError(msg)


def checked_head(path: str | os.PathLike[str], create: bool, expected_head: str | None) -> str | None:
    """Return the head that is expected of a file, which a new one cannot have."""
    create = boolean_scalar("create", create)
    if expected_head is None:
        return None
    if not isinstance(expected_head, str) or not re.fullmatch("[0-9a-f]{64}", expected_head):
        msg = f"expected_head must be 64 hexadecimal digits, as head returned them, not {shown(expected_head)}"
        raise ValueError(msg)
    if create or path == ":memory:":
        msg = f"expected_head must be None for a new file, which has no history, not {shown(expected_head)}"
        raise ValueError(msg)
    return expected_head
