"""Where a sweep's files are: a directory here, or any file system that fsspec knows at a URL, such as an object store, SFTP or memory.

Files have names with at most one slash. Whoever looks sees all of a file or nothing: here by a rename after the content has
reached the disk, in an object store by one upload, elsewhere by a rename. Readers of a directory skip what begins with a dot or an underscore.

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

from hockeystick._checks.hints import needs
from hockeystick._files import unfinished, write_whole
from hockeystick.sweep.errors import OutputError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

MANIFEST = "_manifest.json"
VIEWS = "_views"  # where pictures and pages go
RUN_TOKEN = "_run-"  # see the module `cluster`; without a dot, since some servers do not list hidden files

# They show an object when its upload is complete, and would carry out a rename as a copy.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci"})


def temporary(name: str) -> str:
    """Return the name of a file that is not whole yet: readers of the folder skip it."""
    return unfinished(PurePosixPath(name)).as_posix()


def is_temporary(name: str) -> bool:
    """Say whether a file was left unfinished, or is the token of a run."""
    return name.startswith((".", RUN_TOKEN)) and name.endswith(".tmp")


def is_skipped(name: str) -> bool:
    """Say whether readers of Parquet skip a file, such as `.nfs0001`, `.DS_Store` and `_SUCCESS`."""
    return name.startswith((".", "_"))


class Folder:
    """A directory, or the folder at a URL; nothing is read or written before it is asked for."""

    def __init__(self, out: str | os.PathLike[str]) -> None:
        with needs("sweep", "a sweep needs fsspec"):
            import fsspec  # noqa: PLC0415 - asked for when first needed
        self.given = os.fspath(out)
        if "://" in self.given:
            self.place = self.given  # by which other processes open it, whatever directory they work in
            try:
                self.system, root = fsspec.core.url_to_fs(self.given)
            except ValueError as error:  # an unknown protocol
                raise OutputError(f"out must be a path or a URL that fsspec knows, not {out}: {error}") from error
        else:
            self.place = root = os.fspath(Path(self.given).absolute())
            self.system = fsspec.filesystem("file")
        self.root = root.rstrip("/")
        protocols = {self.system.protocol} if isinstance(self.system.protocol, str) else {*self.system.protocol}
        self.is_local = "file" in protocols
        self.uploads_whole = not protocols.isdisjoint(OBJECT_STORES)

    def __str__(self) -> str:
        """Return the path or the URL as it was given."""
        return self.given

    def create(self, below: str = "") -> None:
        """Make the folder or one in it, where there are folders."""
        if not self.uploads_whole:
            with _as_os_error():
                self.system.makedirs(self._path(below), exist_ok=True)

    def free_bytes(self) -> int | None:
        """Return the free space of the disk, of which the folder need not be there yet; None where it is not known."""
        if not self.is_local:
            return None
        folder = Path(self.root)
        return shutil.disk_usage(next(path for path in [folder, *folder.parents] if path.exists())).free

    def entries(self, below: str = "") -> dict[str, int]:
        """Return the names in the folder, or in one in it, with sizes; nothing if it is not there. Folders end in a slash."""
        path = self._path(below)
        with _as_os_error():
            self.system.invalidate_cache()
            try:
                found = self.system.ls(path, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return {}
        named = {}
        for entry in found:
            name = entry["name"].strip("/")
            if name != path.strip("/"):
                end = "/" if entry.get("type") == "directory" else ""
                named[f"{name.rpartition('/')[2]}{end}"] = int(entry["size"] or 0)
        return named

    def read(self, name: str) -> bytes | None:
        """Return a file's content, or None if there is no such file, or, on a disk, if it cannot be read."""
        absent = OSError if self.is_local else FileNotFoundError
        with _as_os_error(), contextlib.suppress(absent):
            return bytes(self.system.cat_file(self._path(name)))
        return None

    def remove(self, name: str) -> None:
        """Remove a file."""
        with _as_os_error():
            self.system.rm_file(self._path(name))

    def write(self, name: str, content: bytes) -> None:
        """Publish a file, or replace it. Where a rename cannot replace a file, that one is removed first."""
        path = self._path(name)
        if self.is_local:
            write_whole(Path(path), lambda file: file.write(content))
            return
        with _as_os_error():
            if self.uploads_whole:
                self.system.pipe_file(path, content)
                return
            partial = self._path(temporary(name))
            self.system.pipe_file(partial, content)
            if self.system.exists(path):
                self.system.rm_file(path)
            self.system.mv(partial, path)

    def write_shared(self, name: str, content: bytes, still: Callable[[], bool]) -> bool:
        """Publish a file, beside other writers of the same bytes, if `still` holds just before; say whether it is there now, with these bytes.

        On a disk the rename replaces a file of that name, elsewhere it stays as it is.
        """
        path = self._path(name)
        if self.is_local:
            return write_whole(Path(path), lambda file: file.write(content), still)
        if self.uploads_whole:
            return still() and self._create(name, content)
        with _as_os_error():
            partial = self._path(temporary(name))
            self.system.pipe_file(partial, content)
            if still() and not self.system.exists(path):
                self.system.mv(partial, path)
                return True
            self.system.rm_file(partial)
        return still() and self.read(name) == content

    def _create(self, name: str, content: bytes) -> bool:
        """Upload a file unless one is there; say whether it is there with these bytes.

        In S3 that is one upload with the header If-None-Match. Old versions of the packages, and some servers, know no condition:
        there the upload comes after a look, and replaces what another writer uploads in between.
        """
        conditional = "mode" in inspect.signature(getattr(self.system, "_pipe_file", self.system.pipe_file)).parameters
        found = None if conditional else self.read(name)
        if found is None:
            try:
                with _as_os_error():
                    self.system.pipe_file(self._path(name), content, **({"mode": "create"} if conditional else {}))
            except OSError:
                # A file that is there is the reason, which packages report in different ways. Else the store failed.
                found = self.read(name)
                if found is None:
                    raise
            else:
                return True
        return found == content

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second run out of a directory, where its file system has locks; at a URL do nothing.

        The lock is the kernel's, and of the directory itself: it ends with the process and leaves no file.
        """
        if fcntl is None or not self.is_local:
            yield
            return
        folder = os.open(self.root, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                try:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise OutputError(
                        f"out must be used by one run at a time, not {self}: another run is writing to it"
                    ) from None
            yield
        finally:
            os.close(folder)

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root


@contextlib.contextmanager
def _as_os_error() -> Iterator[None]:
    """Name every failure of a remote file system alike: each of them has exceptions of its own."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
