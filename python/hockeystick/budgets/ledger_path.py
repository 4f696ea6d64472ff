"""Where a file of client ledgers is: made only when that is asked for, and recognised again before each write."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from hockeystick._checks.shown import shown

MEMORY = ":memory:"


class Mark(NamedTuple):
    """By what a file is recognised: one that was replaced, or written to by another, has another mark."""

    device: int
    inode: int
    size: int
    modified: int


def resolved(path: str | os.PathLike[str]) -> str:
    """Return an absolute path, or ":memory:"."""
    if not isinstance(path, (str, os.PathLike)):
        msg = f"path must be a string or path-like, not {shown(path)}"
        raise TypeError(msg)
    name = os.fsdecode(os.fspath(path))
    if not name or "\0" in name:
        msg = f"path must name a file, or be {shown(MEMORY)}, not {shown(name)}"
        raise ValueError(msg)
    return MEMORY if name == MEMORY else str(Path(name).absolute())


def make(path: str) -> None:
    """Make an empty file where none is."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
    except FileExistsError as error:
        msg = f"create=True makes a new file, and there is one at {path}: open it without create=True"
        raise ValueError(msg) from error
    except OSError as error:
        msg = f"{path} cannot be made: {error}"
        raise RuntimeError(msg) from error


def require_file(path: str) -> None:
    """Refuse what is no file with something in it: a new one in its place would be a full budget."""
    try:
        found = Path(path).stat()
    except FileNotFoundError as error:
        msg = f"path must be a file of client ledgers, and there is none at {path}: only create=True makes one"
        raise ValueError(msg) from error
    except OSError as error:
        msg = f"{path} cannot be opened: {error}"
        raise RuntimeError(msg) from error
    if not stat.S_ISREG(found.st_mode):
        msg = f"path must be a file of client ledgers, not {path}, which is no regular file"
        raise ValueError(msg)
    if not found.st_size:
        msg = f"{path} is empty: what was in it is lost, or its making was interrupted; nothing can be charged to it"
        raise ValueError(msg)


def mark(path: str) -> Mark | None:
    """Return the present mark of a file, None if it is not there.

    The file is not opened: closing it again would end this process's lock on it.
    """
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return Mark(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def identity(found: Mark | None) -> tuple[int, int] | None:
    """Return the part of a mark that writing does not change."""
    return None if found is None else found[:2]
