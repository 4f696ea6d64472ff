"""The file behind client ledgers: entries in order, each on the disk before the call returns, each verified when it is read.

The file is made only when that is asked for, and recognised again before each write. An SQLite data base with two tables: `entries` has a
row for each entry, settings, enrolments and charges, with the digest of it and of all before it; `head` has how many there are and the
digest of the last, so that entries missing at the end are noticed too.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import secrets
import sqlite3
import stat
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import count_scalar
from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.state import Run, dump_steps, load_runs

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
        raise TypeError(f"path must be a string or path-like, not {shown(path)}")
    name = os.fsdecode(os.fspath(path))
    if not name or "\0" in name:
        raise ValueError(f"path must name a file, or be {shown(MEMORY)}, not {shown(name)}")
    return MEMORY if name == MEMORY else str(Path(name).absolute())


def make(path: str) -> None:
    """Make an empty file where none is."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
    except FileExistsError as error:
        raise ValueError(
            f"create=True makes a new file, and there is one at {path}: open it without create=True"
        ) from error
    except OSError as error:
        raise RuntimeError(f"{path} cannot be made: {error}") from error


def require_file(path: str) -> None:
    """Refuse what is no file with something in it: a new one in its place would be a full budget."""
    try:
        found = Path(path).stat()
    except FileNotFoundError as error:
        raise ValueError(
            f"path must be a file of client ledgers, and there is none at {path}: only create=True makes one"
        ) from error
    except OSError as error:
        raise RuntimeError(f"{path} cannot be opened: {error}") from error
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"path must be a file of client ledgers, not {path}, which is no regular file")
    if not found.st_size:
        raise ValueError(
            f"{path} is empty: what was in it is lost, or its making was interrupted; nothing can be charged to it"
        )


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


ClientId: TypeAlias = int | str
Mask: TypeAlias = NDArray[np.bool_]
NO_DIGEST = b""  # what stands before the first entry


class Enrolment(NamedTuple):
    """Clients that were added, after those before them."""

    clients: list[ClientId]


class Charge(NamedTuple):
    """What was charged, which of the clients enrolled so far it was charged to, and which of them took part."""

    round: int
    steps: list[Run]
    charged: Mask
    participants: Mask | None


Entry: TypeAlias = Enrolment | Charge


class Row(NamedTuple):
    """An entry as it is stored: JSON, and a mask each for who is charged and who takes part."""

    content: bytes
    charged: bytes | None = None
    participants: bytes | None = None


def digest(previous: bytes, row: Row) -> bytes:
    """Return the digest of a row and of all before it: SHA-256 of the previous digest and the row's fields.

    The length of each field stands before it, so that no two rows have the same bytes.
    """
    found = hashlib.sha256(previous)
    for field in row:
        found.update(b"absent" if field is None else b"%d:" % len(field) + field)
    return found.digest()


def decode_settings(row: Row) -> dict[str, Any]:
    """Return what the first row says, or raise ValueError."""
    settings = json.loads(row.content)
    if not isinstance(settings, dict):
        raise ValueError(f"settings must be a mapping, not {shown(settings)}")
    if "plan" in settings.get("fresh", {}):  # as it is written today: before, each run of it was written out
        settings["fresh"]["plan"] = Accountant.from_state_dict(settings["fresh"]["plan"]).state_dict()
    return settings


def encode(entry: Entry) -> Row:
    """Return the row of an entry."""
    if isinstance(entry, Enrolment):
        return Row(_json({"clients": entry.clients}))
    participants = None if entry.participants is None else _pack(entry.participants)
    content = {"round": entry.round, "steps": dump_steps(entry.steps)}
    return Row(_json(content), _pack(entry.charged), participants)


def decode(row: Row, num_clients: int) -> Entry:
    """Return the entry of a row that stands after the enrolment of `num_clients`.

    What is not of this form raises an error of some kind: whoever reads a file says of which file.
    """
    content = json.loads(row.content)
    if row.charged is None:
        clients = content["clients"]
        if not isinstance(clients, list):
            raise ValueError("clients must be a list")
        return Enrolment(clients)
    steps = load_runs(content["steps"])
    for _, count in steps:
        count_scalar("count", count)
    participants = None if row.participants is None else _unpack(row.participants, num_clients)
    return Charge(count_scalar("round", content["round"]), steps, _unpack(row.charged, num_clients), participants)


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode("ascii")


def _pack(mask: Mask) -> bytes:
    """Return a bit for each client: 125 kB for a million, a hundred bytes where all are alike."""
    return zlib.compress(np.packbits(mask).tobytes(), 1)


def _unpack(blob: bytes, num_clients: int) -> Mask:
    """Return a mask of so many clients; no more memory is taken than it needs, whatever the blob would expand to."""
    size = -(-num_clients // 8)
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(blob, size + 1)
    mask = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=num_clients).astype(np.bool_)
    if len(data) != size or not unpacker.eof or unpacker.unused_data:
        raise ValueError(f"a mask must have a bit for each of {num_clients} clients")
    return mask


FORMAT, VERSION = "hockeystick.ClientLedgers", 2
TABLES = {
    "entries": "CREATE TABLE entries (sequence INTEGER PRIMARY KEY, content BLOB, charged BLOB, participants BLOB, digest BLOB)",
    "head": "CREATE TABLE head (entries INTEGER, digest BLOB)",
}
BEFORE_DIGESTS = {"settings", "clients", "charges"}  # the tables of version 1
DAMAGED = "damaged, and nothing can be charged to it"
FIELDS = "SELECT content, charged, participants, digest FROM entries WHERE sequence = ?"
UNREADABLE = (
    sqlite3.Error, zlib.error, ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError
)  # fmt: skip


class Journal:
    """An append-only file, held by one process at a time."""

    def __init__(self, path: str | os.PathLike[str], settings: dict[str, Any], *, create: bool) -> None:
        self.path = resolved(path)
        self._is_file = self.path != MEMORY
        if self._is_file and create:
            make(self.path)
        elif self._is_file:
            require_file(self.path)
        before = self._present()
        self._db: sqlite3.Connection | None = self._connection()
        self._end = self._next = (0, NO_DIGEST)  # rows and their digest: as they are, and after the row that is written
        _OPEN.add(self)
        try:
            self._hold()
            # Only now: taking the file undoes what an interrupted process had half written.
            self._mark = self._present()
            if identity(self._mark) != identity(before):
                raise RuntimeError(f"{self.path} was replaced while it was opened")
            if create or not self._is_file:
                self._make(settings)
            self._open(settings)
        except BaseException:
            self.close()
            raise

    @property
    def head(self) -> str:
        """The digest of all entries."""
        return self._end[1].hex()

    @property
    def num_entries(self) -> int:
        """How many entries there are; the settings are none."""
        return self._end[0] - 1

    def close(self) -> None:
        """Release the file, so that another process can take it."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def require_unchanged(self) -> None:
        """Refuse a file that is closed, or not as this process left it."""
        if self._db is None:
            raise self._closed()
        if self._present() != self._mark:
            raise self._changed()

    def settle(self) -> None:
        """Find out whether an interrupted `append` has written its entry. A file that has neither end is not as it was left."""
        if self._db is None:
            raise self._closed()
        try:
            if self._db.in_transaction:
                self._run("ROLLBACK")
            (end,) = self._run("SELECT entries, digest FROM head")
        except sqlite3.Error as error:
            raise RuntimeError(f"{self.path} cannot be read after an interrupt: {error}") from error
        present = self._present()
        if end not in (self._end, self._next) or identity(present) != identity(self._mark):
            raise self._changed()
        self._end, self._mark = end, present

    def append(self, entry: Entry) -> None:
        """Append an entry."""
        row = encode(entry)
        try:
            self._write([], row)
        except sqlite3.Error as error:
            raise RuntimeError(f"{self.path} cannot be written: {error}") from error

    def replay(self, take: Callable[[Entry], None], expected_head: str | None) -> None:
        """Give all entries to `take`, and refuse a file that never had the expected head."""
        reached = expected_head in (None, self.head)
        for number, (before, entry) in enumerate(self.history(), 1):
            reached = reached or before == expected_head
            with self._readable(f"entry {number} of {self.num_entries}"):
                take(entry)
        if not reached:
            raise ValueError(
                f"{self.path} never had the expected_head {expected_head}: it is an older copy or another file"
            )

    def history(self) -> Iterator[tuple[str, Entry]]:
        """Return all entries in order, each with the head before it; what is damaged raises ValueError."""
        found, num_clients = NO_DIGEST, 0
        count, head = self._end
        for sequence in range(count):
            before = found
            with self._readable(f"entry {sequence} of {count - 1}"):
                row, found = self._row(sequence, found)
                entry = decode(row, num_clients) if sequence else None  # the first are the settings
            if entry is not None:
                num_clients += len(entry.clients) if isinstance(entry, Enrolment) else 0
                yield before.hex(), entry
        if found != head:
            raise ValueError(f"{self.path} is {DAMAGED}: its head is not the digest of its entries")

    def _connection(self) -> sqlite3.Connection:
        """Return a connection that makes no file, and that several threads may use in turn."""
        where = f"{Path(self.path).as_uri()}?mode=rw" if self._is_file else self.path
        options: dict[str, Any] = {"timeout": 0.0, "isolation_level": None, "check_same_thread": False}
        try:
            database: sqlite3.Connection = sqlite3.connect(where, uri=self._is_file, **options)
        except sqlite3.Error as error:
            raise RuntimeError(f"{self.path} cannot be opened: {error}") from error
        database.text_factory = bytes  # damaged text is then no error of its own
        return database

    def _hold(self) -> None:
        """Take the file for this process: another would charge what this one does not see."""
        try:
            self._run("PRAGMA locking_mode = EXCLUSIVE")
            self._run("PRAGMA synchronous = EXTRA")  # a commit survives the loss of power, its directory entry too
            self._run("BEGIN EXCLUSIVE")
            self._run("COMMIT")
        except sqlite3.OperationalError as error:
            raise RuntimeError(
                f"{self.path} cannot be locked: {error}; close the other process or connection that has it open"
            ) from error
        except sqlite3.DatabaseError as error:
            raise ValueError(f"path must be a file of client ledgers, not {self.path}: {error}") from error

    def _make(self, settings: dict[str, Any]) -> None:
        """Write the tables and the settings, with a name that no other file has."""
        about = {"format": FORMAT, "version": VERSION, "name": secrets.token_hex(16)}
        self._write([*TABLES.values(), "INSERT INTO head VALUES (0, x'')"], Row(_json(about | settings)))

    def _open(self, settings: dict[str, Any]) -> None:
        """Read the head and the settings, and compare them with what is asked for."""
        with self._readable("its tables"):
            tables = {name.decode(): text.decode() for name, text in self._run("SELECT name, sql FROM sqlite_master")}
        if set(tables) == BEFORE_DIGESTS:
            raise ValueError(
                f"{self.path} is of format 1, which has no digests, and this release reads format {VERSION}: make a new file, and charge to it what was charged"
            )
        if tables != TABLES:
            raise ValueError(f"path must be a file of client ledgers, not {self.path}")
        with self._readable("its head"):
            (self._end,) = self._run("SELECT entries, digest FROM head")
            ((last,),) = self._run("SELECT max(sequence) FROM entries")
            count, head = self._end
            if type(count) is not int or type(head) is not bytes or last != count - 1:
                raise ValueError(f"{last} is the last entry of {count}")
        with self._readable("its settings"):
            made = decode_settings(self._row(0, NO_DIGEST)[0])
        self._require(made, settings)

    def _require(self, made: dict[str, Any], settings: dict[str, Any]) -> None:
        asked = json.loads(json.dumps({"format": FORMAT, "version": VERSION} | settings))
        changed = [key for key in asked if made.get(key) != asked[key]]
        if changed:
            stated = (", ".join(f"{key}={json.dumps(of.get(key))}" for key in changed) for of in (made, asked))
            raise ValueError(
                f"{self.path} was made with {' but is opened with '.join(stated)}; open it as it was made, or begin a new file"
            )

    def _row(self, sequence: int, previous: bytes) -> tuple[Row, bytes]:
        """Return a row and its digest, which must be the one that is stored with it."""
        ((*fields, stored),) = self._run(FIELDS, sequence)
        if type(fields[0]) is not bytes or not all(field is None or type(field) is bytes for field in fields[1:]):
            raise ValueError("a field is of another type")
        row = Row(*fields)
        found = digest(previous, row)
        if found != stored:
            raise ValueError("its digest is not that of what it holds")
        return row, found

    def _write(self, commands: Iterable[str], row: Row) -> None:
        """Run commands and write a row and the new head: all of it, or nothing."""
        count, head = self._end
        self._next = (count + 1, digest(head, row))
        self._run("BEGIN")
        try:
            for command in commands:
                self._run(command)
            self._run("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", count, *row, self._next[1])
            self._run("UPDATE head SET entries = ?, digest = ?", *self._next)
            self._run("COMMIT")
        except BaseException:
            if self._db is not None and self._db.in_transaction:
                self._run("ROLLBACK")
            raise
        self._end, self._mark = self._next, self._present()

    def _run(self, command: str, *values: Any) -> list[Any]:
        """Return all rows of a command at once, so that no command is under way when the file is closed."""
        if self._db is None:
            raise self._closed()
        try:
            return self._db.execute(command, values).fetchall()
        except UnicodeDecodeError as error:  # SQLite's message quotes what is damaged
            raise sqlite3.DatabaseError(str(error)) from error

    def _present(self) -> Mark | None:
        return mark(self.path) if self._is_file else None

    @contextlib.contextmanager
    def _readable(self, what: str) -> Iterator[None]:
        """Raise ValueError with the file's name for whatever cannot be read."""
        try:
            yield
        except UNREADABLE as error:
            raise ValueError(f"{self.path} is {DAMAGED}: {what} cannot be read: {error}") from error

    def _changed(self) -> RuntimeError:
        what = "it was moved, deleted, replaced or written to; nothing is charged to it"
        return RuntimeError(f"{self.path} is not as it was left: {what}")

    def _closed(self) -> RuntimeError:
        return RuntimeError(f"{self.path} is closed: open it again")


_OPEN: weakref.WeakSet[Journal] = weakref.WeakSet()


def _after_fork() -> None:
    """Keep a child from closing its parent's connections: it would delete the parent's rollback journal, and SQLite forbids it their use.

    A reference is taken that is never given back, so that a connection outlives even the interpreter's end.
    """
    for journal in _OPEN:
        if journal._db is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(journal._db))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
