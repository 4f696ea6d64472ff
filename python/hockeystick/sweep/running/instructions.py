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


def check(instruction_set: str) -> None:
    """Refuse a set of instructions that this machine has not.

    Raises
    ------
    ValueError
        The set and those that the machine has.
    """
    with computing_with(instruction_set):
        pass
