"""A sweep's files on any file system that fsspec knows: object stores, SFTP, FTP, memory.

There is no lock: two runs of one plan write the same bytes under the same names, so that a second run wastes time, may
end the first with an error, and spoils nothing. Another plan is refused by the manifest; which of two plans that start at
the same moment writes it is settled by the module `claims`, and again by the store where it can create without replacing.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator

from hockeystick.sweep.errors import OutputError
from hockeystick.sweep.store.names import temporary

try:
    import fsspec
except ImportError as missing:
    need = 'a sweep to a URL needs fsspec: pip install ".[remote]" in a clone'
    raise ImportError(need) from missing

# They show an object when its upload is complete, and would carry out a rename as a copy.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci"})


class RemoteFolder:
    """A URL. In an object store a file appears when its upload is complete, elsewhere by a rename."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self.system, self.root = fsspec.core.url_to_fs(url)
        except ValueError as error:  # an unknown protocol
            message = f"out must be a path or a URL that fsspec knows, not {url}: {error}"
            raise OutputError(message) from error
        protocols = self.system.protocol
        self.uploads_whole = not OBJECT_STORES.isdisjoint([protocols] if isinstance(protocols, str) else protocols)

    def __str__(self) -> str:
        """Return the URL."""
        return self.url

    def create(self) -> None:
        """Make the folder, where there are folders."""
        if not self.uploads_whole:
            with _as_os_error():
                self.system.makedirs(self._path("cells"), exist_ok=True)

    def locked(self) -> contextlib.AbstractContextManager[bool]:
        """Do nothing; the module says why that does."""
        return contextlib.nullcontext(False)

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
        """Publish a file. Where a rename cannot replace a file, a damaged one is removed first."""
        path = self._path(name)
        with _as_os_error():
            if self.uploads_whole:
                self.system.pipe_file(path, content)
                return
            unfinished = self._path(temporary(name))
            self.system.pipe_file(unfinished, content)
            if self.system.exists(path):
                self.system.rm_file(path)
            self.system.mv(unfinished, path)

    def write_new(self, name: str, content: bytes) -> None:
        """Publish a file unless there is one, in one step where the store can: in S3 by the header If-None-Match.

        Old versions of the packages, and some servers, replace the file all the same.
        """
        if not self._creates():
            self.write(name, content)
            return
        self._create(name, content)

    def write_shared(self, name: str, content: bytes, still: Callable[[], bool]) -> bool:
        """Publish a file if `still` holds, and leave a file of that name as it is: in S3 by one conditional upload.

        Without a condition the upload comes after a look, and replaces what another writer uploads in between: the same bytes.
        """
        if self.uploads_whole:
            if not still():
                return False
            found = None if self._creates() else self.read(name)
            return self._create(name, content) if found is None else found == content
        path, unfinished = self._path(name), self._path(temporary(name))
        with _as_os_error():
            self.system.pipe_file(unfinished, content)
            if still() and not self.system.exists(path):
                self.system.mv(unfinished, path)
                return True
            self.system.rm_file(unfinished)
        return still() and self.read(name) == content

    def _creates(self) -> bool:
        """Say whether the package can ask an object store to create and not to replace."""
        options = inspect.signature(getattr(self.system, "_pipe_file", self.system.pipe_file)).parameters
        return self.uploads_whole and "mode" in options

    def _create(self, name: str, content: bytes) -> bool:
        """Upload a file, unless one is there where the store can tell; say whether it is there with these bytes."""
        options = {"mode": "create"} if self._creates() else {}
        try:
            with _as_os_error():
                self.system.pipe_file(self._path(name), content, **options)
        except OSError:
            # A file that is there is the reason, which packages report in different ways. Else the store failed.
            found = self.read(name)
            if found is None:
                raise
            return found == content
        return True

    def _path(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"


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
