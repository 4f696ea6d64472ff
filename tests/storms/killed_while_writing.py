"""Loaded by the workers of worker_storm.py (`--preload`): now and then a worker dies while it publishes a part.

It ends by SIGKILL, at random with half of the hidden file on the disk, with all of it before the rename, after the rename,
or, on an object store, before or after the upload; or it sleeps there, so that its client dies before it goes on.
"""

import os
import random
import signal
import time
from pathlib import Path

from hockeystick.sweep.folders import Folder, temporary

CHANCE = 0.08
SLEEP_SECONDS = 3.0  # longer than a storm's client lives after the first part


def die(how, folder):
    """End this process as a power cut would, and leave a note of it."""
    with open(os.environ["HOCKEYSTICK_STORM_LOG"], "a") as log:  # noqa: PTH123 - one line, appended in one call
        log.write(f"{how} {type(folder).__name__}\n")
    os.kill(os.getpid(), signal.SIGKILL)


def dangerous(write):
    """Return a `write_shared` that may kill its process."""

    def wrapped(folder, name, content, still):
        fate = random.choice(["torn", "before", "after", "asleep"]) if random.random() < CHANCE else "spared"

        def then():
            if fate == "before":
                die("before", folder)
            if fate == "asleep":  # on either side of its look at the token
                time.sleep(SLEEP_SECONDS / 2)
                found = still()
                time.sleep(SLEEP_SECONDS / 2)
                return found
            return still()

        if fate == "torn" and folder.is_local:
            Path(folder.root, temporary(name)).write_bytes(content[: len(content) // 2])
            die("torn", folder)
        there = write(folder, name, content, then)
        if fate == "after":
            die("after", folder)
        return there

    return wrapped


Folder.write_shared = dangerous(Folder.write_shared)
