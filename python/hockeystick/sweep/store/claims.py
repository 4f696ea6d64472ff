"""Claims: how runs of different plans that start at one place at the same moment agree on whose it is, without a lock.

A run that finds no manifest

1. writes a claim, a file whose name holds the digest of its plan and a random number,
2. lists the claims, and goes on only when there is none of another plan,
3. looks for a manifest again, writes its own if there is none, and then removes its claim.

Suppose that two runs write their claims, one after the other. When the later one lists the claims, the earlier claim is
there, or is gone because the earlier run's manifest is there. Either way the later run does not write its own manifest.
So there is never a second manifest. All that this needs of a store is that a file which has been written is found by the
next listing and the next reading, as in S3, Google Cloud Storage, Azure, and on a disk.

Of two runs that see each other's claims the one with the smaller digest waits until the other has given up.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator

from hockeystick.sweep.errors import OtherRunError, OutputError
from hockeystick.sweep.plan.axes import shorten
from hockeystick.sweep.store.folder import Folder
from hockeystick.sweep.store.names import CLAIM

PATIENCE_SECONDS = 20.0  # a run that is alive keeps its claim for a few requests to the store
POLL_SECONDS = 0.05
CONFLICT_SECONDS = 2.0  # a store that refused an upload beside another one shows that one by then


@contextlib.contextmanager
def claimed(folder: Folder, digest: str) -> Iterator[None]:
    """Keep runs of other plans from writing a manifest, or refuse this one."""
    mine = f"{CLAIM}{digest[:32]}-{uuid.uuid4().hex}.tmp"
    folder.write(mine, digest.encode())
    try:
        _wait_for_others(folder, f"{CLAIM}{digest[:32]}")
        yield
    finally:
        with contextlib.suppress(OSError):  # another run of this plan may have removed it
            folder.remove(mine)


def _wait_for_others(folder: Folder, ours: str) -> None:
    """Return when no claim of another plan is left; refuse to go on beside a smaller one, or beside one that stays."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while others := sorted(name for name in folder.entries() if name.startswith(CLAIM) and not name.startswith(ours)):
        if others[0] < ours or time.monotonic() > deadline:
            message = (
                f"out must be used by one plan at a time, not {folder}: a run of another plan is about to begin there; "
                f"if there is no such run any more, remove {others[0]}"
            )
            raise OutputError(message)
        time.sleep(POLL_SECONDS)


def blame_another_run(folder: Folder, is_ours: Callable[[], bool | None], error: OSError) -> None:
    """Raise OtherRunError if a run of the same plan is or was at work where a request has failed: it may have removed a file, or written it first.

    `is_ours` says whether the manifest is that of this plan, None if there is none.
    """
    deadline = time.monotonic() + CONFLICT_SECONDS
    while (ours := is_ours()) is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    if ours:
        message = (
            f"another run of the same plan writes to {folder}, and came in between ({shorten(str(error))}); "
            "wait until it has ended, and start this command again: it resumes"
        )
        raise OtherRunError(message) from error
