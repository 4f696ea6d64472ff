"""Warnings of one thread: `warnings.catch_warnings` takes those of all threads, and forgets some where two overlap."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

_LOCK = threading.Lock()
_HERE = threading.local()  # has the list of its thread, if that is listening
_catch: Any = None
_listening = 0  # threads


@contextlib.contextmanager
def captured_warnings() -> Iterator[list[str]]:
    """Give the texts of this thread's warnings, repeated ones too, and show none of them."""
    if getattr(sys.flags, "context_aware_warnings", False):  # then each thread has filters of its own
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            texts: list[str] = []
            yield texts
            texts += [str(warning.message) for warning in caught]
        return
    _enter()
    _HERE.texts = []
    try:
        yield _HERE.texts
    finally:
        del _HERE.texts
        _leave()


def _enter() -> None:
    """Let the first thread install what sorts warnings by thread."""
    global _catch, _listening  # noqa: PLW0603 - filters are the process's, so whoever changes them is, too
    with _LOCK:
        if not _listening:
            _catch = warnings.catch_warnings()
            _catch.__enter__()
            warnings.simplefilter("always")
            warnings.showwarning = _sorted_by_thread(warnings.showwarning)
        _listening += 1


def _leave() -> None:
    """Let the last thread restore what was there."""
    global _listening  # noqa: PLW0603
    with _LOCK:
        _listening -= 1
        if not _listening:
            _catch.__exit__(None, None, None)


def _sorted_by_thread(others: Any) -> Any:
    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        texts = getattr(_HERE, "texts", None)
        if texts is None:  # not of a thread that is listening
            others(message, *where, **more)
        else:
            texts.append(str(message))

    return show
