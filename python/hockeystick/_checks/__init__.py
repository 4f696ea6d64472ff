"""Checks of arguments: single ones, arrays, and the grids of array functions."""

from __future__ import annotations

from hockeystick._checks import implausible
from hockeystick._checks.arrays import Array, Doubles, Result, broadcast, distribution, real, same_length, vector
from hockeystick._checks.grid import STRICT, Grid, LateGrid, NumpyGrid, pmf
from hockeystick._checks.implausible import ImplausibleSettingWarning
from hockeystick._checks.refusals import Refusal, collected
from hockeystick._checks.scalars import (
    DELTA,
    LARGEST_COUNT,
    NON_NEGATIVE_OR_INFINITE,
    OPEN_PROBABILITY,
    POSITIVE,
    PROBABILITY,
    Domain,
    OnError,
    at_most,
    boolean_scalar,
    choice,
    count_scalar,
    non_negative_scalar,
    positive_scalar,
    probability_scalar,
    scalar,
    seed_scalar,
    thread_count,
)

__all__ = [
    "DELTA",
    "LARGEST_COUNT",
    "NON_NEGATIVE_OR_INFINITE",
    "OPEN_PROBABILITY",
    "POSITIVE",
    "PROBABILITY",
    "STRICT",
    "Array",
    "Domain",
    "Doubles",
    "Grid",
    "ImplausibleSettingWarning",
    "LateGrid",
    "NumpyGrid",
    "OnError",
    "Refusal",
    "Result",
    "at_most",
    "boolean_scalar",
    "broadcast",
    "choice",
    "collected",
    "count_scalar",
    "distribution",
    "implausible",
    "non_negative_scalar",
    "pmf",
    "positive_scalar",
    "probability_scalar",
    "real",
    "same_length",
    "scalar",
    "seed_scalar",
    "thread_count",
    "vector",
]
