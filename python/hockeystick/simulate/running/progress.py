"""A bar for finished rounds."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

from hockeystick._checks.shown import shown

SECONDS = 3.0  # after which a bar that was not asked for is drawn


@contextlib.contextmanager
def bar(rounds: int, progress: bool | None, *, finished: int = 0) -> Iterator[Callable[[int], object]]:
    """Give a callback for finished rounds that draws a bar: always, never, or, if None, on a terminal after some seconds."""
    if progress is not None and not isinstance(progress, bool):
        msg = f"progress must be True, False or None, not {shown(progress)}"
        raise TypeError(msg)
    if progress is False:
        yield lambda _: None
        return
    try:
        from tqdm import tqdm  # noqa: PLC0415 - only for a bar
    except ImportError as error:
        if progress is None:
            yield lambda _: None
            return
        message = 'a progress bar needs tqdm: pip install ".[simulate]" in a clone'
        raise ImportError(message) from error
    with tqdm(
        total=rounds,
        initial=finished,
        unit="round",
        unit_scale=rounds > 10**4,
        miniters=max(1, math.ceil(rounds / 1000)),
        disable=None if progress is None else False,
        delay=SECONDS if progress is None else 0,
    ) as drawn:
        yield drawn.update
