"""Delta and epsilon of a ledger by its Renyi divergences, where some mechanism has no dominating pair."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

import hockeystick.accounting.renyi.divergence as renyi
from hockeystick._checks import Array
from hockeystick._numeric.renyi_conversion import least_bound
from hockeystick.mechanisms.base import Adjacency, Mechanism
from hockeystick.mechanisms.orders import ORDERS

Key = frozenset[tuple[Mechanism, int]]


def best(ledger: Mapping[Mechanism, int], adjacency: Adjacency, for_epsilon: bool, value: float) -> tuple[float, float]:
    """Return the least upper bound over the orders, and its order."""
    return least_bound(np.array(ORDERS), _curve(frozenset(ledger.items()), adjacency), for_epsilon, value)


@lru_cache(maxsize=256)
def _curve(ledger: Key, adjacency: Adjacency) -> Array:
    return np.array([renyi.of_ledger(dict(ledger), adjacency, order) for order in ORDERS])
