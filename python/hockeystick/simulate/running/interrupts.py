"""Ctrl-C between two pieces of a run, not inside one: what was computed before it is whole."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


class Interrupted(Exception):
    """Ctrl-C was pressed, and the state is whole."""


@contextlib.contextmanager
def noted() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether Ctrl-C was pressed; a second one raises KeyboardInterrupt at once.

    Only where Ctrl-C would raise KeyboardInterrupt: in the main thread, with Python's own handler. Elsewhere nothing changes.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return
    pressed = False

    def note(_signal: int, _frame: object) -> None:
        nonlocal pressed
        pressed = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
