"""Warnings of one thread: `warnings.catch_warnings` takes those of all threads, and forgets some where two overlap."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

_LOCK = threading.Lock()
_TEXTS: dict[int, list[str]] = {}  # of each thread that is listening
_FILTERS = contextlib.ExitStack()  # restores what was there


@contextlib.contextmanager
def captured_warnings() -> Iterator[list[str]]:
    """Give the texts of this thread's warnings, repeated ones too, and show none of them."""
    texts: list[str] = []
    if getattr(sys.flags, "context_aware_warnings", False):  # then each thread has filters of its own
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield texts
            texts += [str(warning.message) for warning in caught]
        return
    thread = threading.get_ident()
    with _LOCK:
        if not _TEXTS:  # the first thread installs what sorts warnings by thread
            _FILTERS.enter_context(warnings.catch_warnings())
            warnings.simplefilter("always")
            warnings.showwarning = _sorted_by_thread(warnings.showwarning)
        _TEXTS[thread] = texts
    try:
        yield texts
    finally:
        with _LOCK:
            del _TEXTS[thread]
            if not _TEXTS:  # the last one removes it
                _FILTERS.close()


def _sorted_by_thread(others: Any) -> Any:
    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        texts = _TEXTS.get(threading.get_ident())
        if texts is None:  # not of a thread that is listening
            others(message, *where, **more)
        else:
            texts.append(str(message))

    return show
