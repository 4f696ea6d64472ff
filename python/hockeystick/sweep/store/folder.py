"""Where a sweep's files are: a directory here, or, by the module `remote`, any URL that fsspec knows."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from hockeystick._files import write_whole
from hockeystick.sweep.errors import OutputError
from hockeystick.sweep.store.names import temporary

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


class Folder(Protocol):
    """Files by their names, which have at most one slash. Whoever looks sees all of a file or nothing."""

    def create(self) -> None:
        """Make it, if it is not there."""

    def locked(self) -> contextlib.AbstractContextManager[bool]:
        """Keep a second run out, and say whether the file system could."""

    def free_bytes(self) -> int | None:
        """Return how much more fits in, if that is known. The folder need not be there yet."""

    def entries(self, below: str = "") -> dict[str, int]:
        """Return the names in it, or in a folder in it, with sizes; nothing if it is not there. Folders end in a slash."""

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is no such file."""

    def write(self, name: str, content: bytes) -> None:
        """Publish a file, or replace it."""

    def write_new(self, name: str, content: bytes) -> None:
        """Publish a file unless one of that name is there. Not every store can; read it back to see whose it is."""

    def write_shared(self, name: str, content: bytes, still: Callable[[], bool]) -> bool:
        """Publish a file, beside other writers of the same bytes, if `still` holds just before (of object stores, before the upload).

        Say whether the file is there now, with these bytes.
        """

    def remove(self, name: str) -> None:
        """Remove a file."""


def open_folder(out: str | os.PathLike[str]) -> Folder:
    """Return the folder at a path or a URL; nothing is read or written yet."""
    location = os.fspath(out)
    if "://" not in location:
        return LocalFolder(Path(location))
    from hockeystick.sweep.store.remote import RemoteFolder  # noqa: PLC0415 - fsspec is asked for when first needed

    return RemoteFolder(location)


def place_of(folder: Folder) -> str:
    """Return the path or URL by which other processes can open a folder, whatever directory they work in."""
    location = str(folder)
    return location if "://" in location else str(Path(location).absolute())


class LocalFolder:
    """A directory. A file appears by a rename, after its content has reached the disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        """Return the path."""
        return str(self.root)

    def create(self) -> None:
        """Make the directory and those above it."""
        self.root.mkdir(parents=True, exist_ok=True)

    def free_bytes(self) -> int:
        """Return the free space of the disk."""
        folder = next(path for path in [self.root, *self.root.absolute().parents] if path.exists())
        return shutil.disk_usage(folder).free

    def entries(self, below: str = "") -> dict[str, int]:
        """Return what is in the directory, with sizes."""
        found = {}
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.root / below) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # a worker may rename or remove its file just now
                    found[f"{entry.name}/" if entry.is_dir() else entry.name] = entry.stat().st_size
        return found

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if it is not there or cannot be read."""
        try:
            return (self.root / name).read_bytes()
        except OSError:
            return None

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self.root / name).unlink()

    def write(self, name: str, content: bytes) -> None:
        """Write a file so that whoever looks, even after a power cut, sees all of it or nothing."""
        self.write_shared(name, content, lambda: True)

    def write_shared(self, name: str, content: bytes, still: Callable[[], bool]) -> bool:
        """Write a file if `still` holds just before its rename, which replaces a file of that name in one step."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        return write_whole(path, self.root / temporary(name), lambda file: file.write(content), still)

    def write_new(self, name: str, content: bytes) -> None:
        """Write a file. A lock or a claim keeps others from writing it at the same moment."""
        self.write(name, content)

    @contextlib.contextmanager
    def locked(self) -> Iterator[bool]:
        """Keep a second run out of the directory. The lock is the kernel's, so that it ends with the process."""
        if fcntl is None:
            yield False
            return
        held = True
        folder = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(folder)
            message = f"out must be used by one run at a time, not {self}: another run is writing to it"
            raise OutputError(message) from None
        except OSError:  # a file system without locks
            held = False
        try:
            yield held
        finally:
            os.close(folder)
