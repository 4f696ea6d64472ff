"""With which instructions a sweep computes: those that its plan names, or the best of the machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import hockeystick._core as core


@contextlib.contextmanager
def computing_with(instruction_set: str) -> Iterator[None]:
    """Have compiled functions use a set of instructions in this thread; refuse one that this machine has not."""
    if not instruction_set:
        yield
        return
    before = core.use_instruction_set(instruction_set)
    try:
        yield
    finally:
        core.use_instruction_set(before)
