"""Where a sweep's files are: a directory here, or any file system that fsspec knows at a URL, such as an object store, SFTP or memory.

Files have names with at most one slash. Whoever looks sees all of a file or nothing. Readers of a directory skip what begins with
a dot or an underscore.

At a URL there is no lock: two runs of one plan write the same bytes under the same names, so that a second run wastes time, may
end the first with an error, and spoils nothing. Another plan is refused by the manifest, which is put there only where there is none:
in one step where the store can create without replacing, elsewhere after a look. Where two runs of different plans look at the same
moment, the one whose manifest was replaced is refused when it reads the manifest, at the latest at its end; its parts name
their plan, and are taken for damaged ones of the other.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from hockeystick._files import unfinished, write_whole
from hockeystick.sweep.errors import OutputError, needs

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

MANIFEST = "_manifest.json"
FORMER_MANIFEST = "manifest.json"  # of the formats 1 and 2, which are refused
VIEWS = "_views"  # where pictures and pages go
RUN_TOKEN = "_run-"  # see the module `cluster`; without a dot, since some servers do not list hidden files

# They show an object when its upload is complete, and would carry out a rename as a copy.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci"})

Condition = Callable[[], bool]


def temporary(name: str) -> str:
    """Return the name of a file that is not whole yet: readers of the folder skip it."""
    return unfinished(PurePosixPath(name)).as_posix()


def is_temporary(name: str) -> bool:
    """Say whether a file was left unfinished, or is the token of a run."""
    return name.startswith((".", RUN_TOKEN)) and name.endswith(".tmp")


def is_skipped(name: str) -> bool:
    """Say whether readers of Parquet skip a file, such as `.nfs0001`, `.DS_Store` and `_SUCCESS`."""
    return name.startswith((".", "_"))


def open_folder(out: str | os.PathLike[str]) -> Folder:
    """Return the folder at a path or a URL; nothing is read or written yet."""
    location = os.fspath(out)
    return RemoteFolder(location) if "://" in location else LocalFolder(Path(location))


class LocalFolder:
    """A directory. A file appears by a rename, after its content has reached the disk."""

    system = None  # of fsspec

    def __init__(self, root: Path) -> None:
        self.given = os.fspath(root)
        self.root = root.absolute()
        self.place = os.fspath(self.root)  # by which other processes open it, whatever directory they work in

    def __str__(self) -> str:
        """Return the path as it was given."""
        return self.given

    def create(self) -> None:
        """Make the directory and those above it."""
        self.root.mkdir(parents=True, exist_ok=True)

    def free_bytes(self) -> int:
        """Return the free space of the disk; the directory need not be there yet."""
        folder = next(path for path in [self.root, *self.root.parents] if path.exists())
        return shutil.disk_usage(folder).free

    def entries(self, below: str = "") -> dict[str, int]:
        """Return the names in the directory, or in one in it, with sizes; nothing if it is not there. Folders end in a slash."""
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
        """Publish a file, or replace it, so that whoever looks, even after a power cut, sees all of it or nothing."""
        self._publish(name, content)

    def write_shared(self, name: str, content: bytes, still: Condition) -> bool:
        """Publish a file, beside other writers of the same bytes, if `still` holds just before its rename; say whether it did."""
        return self._publish(name, content, still)

    def _publish(self, name: str, content: bytes, *still: Condition) -> bool:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        return write_whole(path, lambda file: file.write(content), *still)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second run out of the directory, where the file system has locks. They are the kernel's, so that they end with the process."""
        if fcntl is None:
            yield
            return
        folder = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(folder)
            message = f"out must be used by one run at a time, not {self}: another run is writing to it"
            raise OutputError(message) from None
        except OSError:  # a file system without locks
            pass
        try:
            yield
        finally:
            os.close(folder)


class RemoteFolder:
    """A URL. In an object store a file appears when its upload is complete, elsewhere by a rename."""

    def __init__(self, url: str) -> None:
        with needs("remote", "a sweep to a URL needs fsspec"):
            import fsspec  # noqa: PLC0415 - asked for when first needed
        self.place = url
        try:
            self.system, root = fsspec.core.url_to_fs(url)
        except ValueError as error:  # an unknown protocol
            message = f"out must be a path or a URL that fsspec knows, not {url}: {error}"
            raise OutputError(message) from error
        self.root = root.rstrip("/")
        protocols = self.system.protocol
        self.uploads_whole = not OBJECT_STORES.isdisjoint([protocols] if isinstance(protocols, str) else protocols)

    def __str__(self) -> str:
        """Return the URL."""
        return self.place

    def create(self) -> None:
        """Make the folder, where there are folders."""
        if not self.uploads_whole:
            with _as_os_error():
                self.system.makedirs(self._path("cells"), exist_ok=True)

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing; the module says why that does."""
        return contextlib.nullcontext()

    def free_bytes(self) -> None:
        """Return None: it is not known."""

    def entries(self, below: str = "") -> dict[str, int]:
        """Return the names of what is there, with sizes."""
        path = self._path(below).rstrip("/")
        with _as_os_error():
            self.system.invalidate_cache()
            try:
                found = self.system.ls(path, detail=True)
            except FileNotFoundError:
                return {}
        named = {}
        for entry in found:
            name = entry["name"].strip("/")
            if name != path.strip("/"):
                end = "/" if entry.get("type") == "directory" else ""
                named[f"{name.rpartition('/')[2]}{end}"] = int(entry["size"] or 0)
        return named

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is no such file."""
        with _as_os_error():
            try:
                return bytes(self.system.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

    def remove(self, name: str) -> None:
        """Remove a file."""
        with _as_os_error():
            self.system.rm_file(self._path(name))

    def write(self, name: str, content: bytes) -> None:
        """Publish a file, or replace it. Where a rename cannot replace a file, that one is removed first."""
        path = self._path(name)
        with _as_os_error():
            if self.uploads_whole:
                self.system.pipe_file(path, content)
                return
            partial = self._path(temporary(name))
            self.system.pipe_file(partial, content)
            if self.system.exists(path):
                self.system.rm_file(path)
            self.system.mv(partial, path)

    def write_shared(self, name: str, content: bytes, still: Condition) -> bool:
        """Publish a file if `still` holds, and leave a file of that name as it is; say whether it is there now, with these bytes.

        In S3 that is one upload with the header If-None-Match. Without a condition the upload comes after a look, and replaces what
        another writer uploads in between.
        """
        if self.uploads_whole:
            return still() and self._create(name, content)
        path, partial = self._path(name), self._path(temporary(name))
        with _as_os_error():
            self.system.pipe_file(partial, content)
            if still() and not self.system.exists(path):
                self.system.mv(partial, path)
                return True
            self.system.rm_file(partial)
        return still() and self.read(name) == content

    def _create(self, name: str, content: bytes) -> bool:
        """Upload a file unless one is there; say whether it is there with these bytes."""
        # Old versions of the packages, and some servers, replace the file all the same.
        conditional = "mode" in inspect.signature(getattr(self.system, "_pipe_file", self.system.pipe_file)).parameters
        found = None if conditional else self.read(name)
        if found is not None:
            return found == content
        try:
            with _as_os_error():
                self.system.pipe_file(self._path(name), content, **({"mode": "create"} if conditional else {}))
        except OSError:
            # A file that is there is the reason, which packages report in different ways. Else the store failed.
            found = self.read(name)
            if found is None:
                raise
            return found == content
        return True

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}"


Folder: TypeAlias = LocalFolder | RemoteFolder


@contextlib.contextmanager
def _as_os_error() -> Iterator[None]:
    """Name every failure of a remote file system alike: each of them has exceptions of its own."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        raise OSError(message) from error
