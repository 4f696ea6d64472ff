"""The arguments of clients' ledgers: ids and budgets."""

from __future__ import annotations

import operator

import numpy as np

from hockeystick._checks import DELTA, positive_scalar, scalar
from hockeystick.accounting.accountant import Accountant
from hockeystick.budgets.filter_base import Filter
from hockeystick.budgets.journal import ClientId
from hockeystick.mechanisms.base import Adjacency


def client_id(client: ClientId) -> ClientId:
    """Return an id as a plain string or integer."""
    if isinstance(client, str):
        return str(client)
    if isinstance(client, (bool, np.bool_)) or not isinstance(client, (int, np.integer)) or abs(client) >= 2**63:
        msg = f"a client's id must be a string or an integer of 64 bits, not {client!r}"
        raise TypeError(msg)
    return operator.index(client)


def checked_budget(
    epsilon: float | None, delta: float | None, adjacency: Adjacency | None, budget: Filter | None
) -> tuple[tuple[float, float] | None, Accountant | Filter]:
    """Return epsilon and delta with an empty accountant, or a filter."""
    if budget is None and epsilon is not None and delta is not None:
        limits = (positive_scalar("epsilon", epsilon), scalar("delta", delta, *DELTA))
        return limits, Accountant("add_or_remove" if adjacency is None else adjacency)
    if isinstance(budget, Filter) and (epsilon, delta, adjacency) == (None, None, None) and not len(budget):
        return None, type(budget).from_state_dict(budget.state_dict())
    given = f"epsilon={epsilon}, delta={delta}, adjacency={adjacency!r}, budget={budget!r}"
    msg = f"either epsilon and delta or a filter of which nothing is spent must be given, not {given}"
    raise ValueError(msg)
