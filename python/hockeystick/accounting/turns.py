"""Changes in turns: threads, signal handlers, copies and forks share an accountant, and no step is lost.

One lock serves every ledger of the process. A change takes microseconds, so that nobody waits long; a pickle or a copy has no lock
to leave out; and a fork takes one lock, so that the child's ledgers are whole and their lock is free.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Reentrant: a signal handler may save an accountant while the thread that it interrupts changes one.
LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


class Shared:
    """An object that several threads may change, ask, and copy while it changes."""

    _changing = False

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Make what stands inside one step.

        Raises
        ------
        RuntimeError
            If the same thread is in the middle of another change: a signal handler, or a finaliser, came in between.
            The change that it interrupts has read what there was before, and would overwrite this one.
        """
        with LOCK:
            if self._changing:
                raise self._interrupted()
            self._changing = True
            try:
                yield
            finally:
                self._changing = False

    def _interrupted(self) -> RuntimeError:
        """Return the error of a change in the middle of another one."""
        return RuntimeError(
            f"this {type(self).__name__} is being changed, and cannot be by what interrupts it; nothing was added"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle is made from: containers of its own, as they are between two changes."""
        with LOCK:
            state = {name: value for name, value in self.__dict__.items() if name != "_changing"}
            return {
                name: copy.copy(value) if isinstance(value, (dict, list, Shared)) else value
                for name, value in state.items()
            }
