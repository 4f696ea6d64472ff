"""Files that are there as a whole or not at all: whoever looks, even after a power cut, sees all of one or what was there before."""

from __future__ import annotations

import contextlib
import os
import shutil
import tomllib
import uuid
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import IO, Any, TypeVar

AnyPath = TypeVar("AnyPath", bound=PurePath)


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a TOML file; a ValueError if it is none."""
    return tomllib.loads(Path(path).read_text(encoding="utf-8"))


def unfinished(path: AnyPath) -> AnyPath:
    """Return another name in the same folder: hidden, and one writer's own, since two would otherwise write into one file."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")


def write_whole(path: Path, write: Callable[[IO[bytes]], object], still: Callable[[], bool] = lambda: True) -> bool:
    """Write a file under another name in the same folder, and rename it when its content has reached the disk.

    Parameters
    ----------
    path : Path
        Of the file. What is written first is removed where anything fails. Of a file that there is, the mode is kept.
    write : callable
        Given the open file, writes its content.
    still : callable
        Asked just before the rename; if it says no, nothing is changed.

    Returns
    -------
    bool
        What `still` said.
    """
    partial = unfinished(path)
    try:
        with partial.open("wb") as file:
            with contextlib.suppress(FileNotFoundError):
                shutil.copymode(path, partial)  # before there is content that others might read
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if not still():
            partial.unlink(missing_ok=True)
            return False
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the rename itself
        finally:
            os.close(folder)
    return True
