"""How much of a law's cases the first stage of the tests asks: the others are marked slow, or are examples of a longer run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import hypothesis
import pytest

EXAMPLES = int(os.environ.get("HOCKEYSTICK_EXAMPLES", "25"))  # of hypothesis, a property


def few(share: float = 0.2) -> hypothesis.settings:
    """Return settings with a share of the examples, for properties of which an example takes a tenth of a second or more."""
    return hypothesis.settings(max_examples=max(1, round(share * EXAMPLES)))


def some_quick(cases: Iterable[Any], every: int) -> list[Any]:
    """Return the cases of a table, all marked slow but the first and those `every` further on.

    `every` is coprime to the number of cases of one kind, so that each kind stays in the first stage.
    """
    return [case if k % every == 0 else _slow(case) for k, case in enumerate(cases)]


def all_but_slow(cases: Iterable[Any], *slow: Any) -> list[Any]:
    """Return the cases of a table, those named marked slow."""
    table = list(cases)
    assert all(case in table for case in slow), "a name is of no case"
    return [_slow(case) if case in slow else case for case in table]


def _slow(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
