"""Marks: how a worker knows that the place it sees is the one that its client means.

The same path can be another disk on another machine, and the same URL another server: even a manifest of the same plan may
be there, of an earlier run. So the client leaves a file with a random name while workers write parts, and a worker writes
only while it finds that file. The file holds the digest of the manifest.

- A worker that does not find the mark gives its part to the client, which writes it.
- The mark goes when its run ends, or when the next run tidies what a killed one left. A worker that is still busy for the
  earlier run then finds no mark and writes nothing, unless it has looked a moment before: then it renames a part that the
  next run of the plan would write with the same bytes.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator

from hockeystick.sweep.store.folder import Folder
from hockeystick.sweep.store.names import MARK


@contextlib.contextmanager
def marked(folder: Folder, digest: str) -> Iterator[str]:
    """Leave a mark with the digest of a manifest, and give its name."""
    name = f"{MARK}{uuid.uuid4().hex}.tmp"
    folder.write(name, digest.encode())
    try:
        yield name
    finally:
        with contextlib.suppress(OSError):  # the next run removes it
            folder.remove(name)


def is_marked(folder: Folder, name: str, digest: str) -> bool:
    """Say whether that mark is there."""
    return folder.read(name) == digest.encode()
