"""How far a sweep is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

from hockeystick.sweep.running.summary import Progress

LOG_SECONDS = 5.0
BAR = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} cells [{elapsed}, {rate_fmt}{postfix}]"

logger = logging.getLogger("hockeystick.sweep")


@contextlib.contextmanager
def bar() -> Iterator[Progress]:
    """Give a progress callback that draws a tqdm bar with the remaining time on standard error."""
    try:
        from tqdm import tqdm  # noqa: PLC0415 - needed on a terminal only
    except ImportError as error:
        message = 'a progress bar needs tqdm: pip install ".[sweep]" in a clone'
        raise ImportError(message) from error
    drawn: Any = None

    def progress(done: int, total: int, left: float | None) -> None:
        nonlocal drawn
        if drawn is None:  # where an earlier run stopped
            drawn = tqdm(total=total, initial=done, unit="cell", unit_scale=True, file=sys.stderr, bar_format=BAR)
        drawn.set_postfix_str(_words(left, done < total), refresh=False)
        drawn.update(done - drawn.n)

    try:
        yield progress
    finally:
        if drawn is not None:
            drawn.close()


@contextlib.contextmanager
def lines(every: float = LOG_SECONDS) -> Iterator[Progress]:
    """Give a progress callback that logs at the start, at the end, and every few seconds between."""
    last: float | None = None

    def progress(done: int, total: int, left: float | None) -> None:
        nonlocal last
        now = time.monotonic()
        if last is not None and done < total and now - last < every:
            return
        last = now
        words = _words(left, done < total)
        logger.info("%s of %s cells (%.1f %%)%s", f"{done:,}", f"{total:,}", 100 * done / total, words and f", {words}")

    yield progress


def _words(left: float | None, unfinished: bool) -> str:
    return "" if left is None or not unfinished else f"{left:.0f} s left"
