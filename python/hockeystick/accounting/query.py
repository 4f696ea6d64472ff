"""What the queries of an accountant share: an answer for each number, and how many records the ledger speaks of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Domain, Grid, Result
from hockeystick.mechanisms import FixedSizeSampled, Shuffled, TruncatedPoissonSampled
from hockeystick.mechanisms.base import Mechanism


def each(name: str, value: ArrayLike, domain: Domain, function: Callable[[float], float]) -> Result:
    """Check every number and answer for each; a scalar for a scalar."""
    numbers = Grid(None, "raise").within(name, value, domain)
    if numbers.ndim == 0:
        return function(float(numbers))
    return np.array([function(x) for x in numbers.ravel().tolist()], dtype=np.float64).reshape(numbers.shape)


def num_records(ledger: Iterable[Mechanism]) -> int | None:
    """Return the least number of records that a mechanism names, None if none does."""
    parts = [part for mechanism in ledger for part in mechanism._within()]
    sizes = [part.dataset_size for part in parts if isinstance(part, (FixedSizeSampled, TruncatedPoissonSampled))]
    return min([*sizes, *(part.num_users for part in parts if isinstance(part, Shuffled))], default=None)
