"""The file behind client ledgers: settings once, clients and charges in order, each on the disk before the call returns."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FORMAT, VERSION = "hockeystick.ClientLedgers", 1
TABLES = (
    "CREATE TABLE settings (json TEXT)",
    "CREATE TABLE clients (position INTEGER PRIMARY KEY, id)",  # no type: integers and strings stay apart
    "CREATE TABLE charges (sequence INTEGER PRIMARY KEY, round INTEGER, steps TEXT, charged BLOB, participants BLOB)",
)

ClientId = int | str
Mask = NDArray[np.bool_]


class Charge(NamedTuple):
    """One charge, as it is in the file."""

    round: int
    steps: list[dict[str, Any]]
    charged: Mask
    participants: Mask | None


class Journal:
    """An append-only SQLite file, held by one process at a time."""

    def __init__(self, path: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        self._db = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        try:
            self._open(os.fspath(path), {"format": FORMAT, "version": VERSION} | settings)
        except BaseException:
            self._db.close()
            raise

    def _open(self, path: str, settings: dict[str, Any]) -> None:
        try:
            self._db.execute(
                "PRAGMA locking_mode = EXCLUSIVE"
            )  # another process would charge what this one does not see
            self._db.execute(
                "PRAGMA synchronous = EXTRA"
            )  # a commit survives the loss of power, its directory entry too
            self._db.execute("BEGIN EXCLUSIVE")
            tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        except sqlite3.OperationalError as error:
            msg = f"{path} cannot be locked: {error}; close the other process or connection that has it open"
            raise RuntimeError(msg) from error
        except sqlite3.DatabaseError as error:
            msg = f"path must be a file of client ledgers or a new one, not {path}: {error}"
            raise ValueError(msg) from error
        if not tables:
            for table in TABLES:
                self._db.execute(table)
            self._db.execute("INSERT INTO settings VALUES (?)", (json.dumps(settings),))
        elif "settings" not in tables:
            msg = f"path must be a file of client ledgers or a new one, not {path}"
            raise ValueError(msg)
        (text,) = self._db.execute("SELECT json FROM settings").fetchone()
        self._db.execute("COMMIT")
        if json.loads(text) != json.loads(json.dumps(settings)):
            made, asked = json.loads(text), json.loads(json.dumps(settings))
            changed = [key for key in asked if made.get(key) != asked[key]]
            stated = (", ".join(f"{key}={json.dumps(of.get(key))}" for key in changed) for of in (made, asked))
            msg = f"{path} was made with {' but is opened with '.join(stated)}; open it as it was made, or begin a new file"
            raise ValueError(msg)

    def close(self) -> None:
        """Give the file free."""
        self._db.close()

    def clients(self) -> list[ClientId]:
        """Return the ids in order of enrolment."""
        return [client for (client,) in self._db.execute("SELECT id FROM clients ORDER BY position")]

    def enrol(self, first: int, clients: Iterable[ClientId]) -> None:
        """Append ids from a position on, all or none."""
        with self._db:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT INTO clients VALUES (?, ?)", enumerate(clients, first))

    def append(self, entry: Charge) -> None:
        """Append a charge."""
        participants = None if entry.participants is None else _pack(entry.participants)
        row = (entry.round, json.dumps(entry.steps), _pack(entry.charged), participants)
        with self._db:
            self._db.execute("INSERT INTO charges (round, steps, charged, participants) VALUES (?, ?, ?, ?)", row)

    def entries(self) -> Iterator[Charge]:
        """Return all charges in order."""
        rows = self._db.execute("SELECT round, steps, charged, participants FROM charges ORDER BY sequence")
        for number, steps, charged, participants in rows:
            drawn = None if participants is None else _unpack(participants)
            yield Charge(number, json.loads(steps), _unpack(charged), drawn)


def _pack(mask: Mask) -> bytes:
    """Return a bit for each client: 125 kB for a million, a hundred bytes where all are alike."""
    return len(mask).to_bytes(8, "little") + zlib.compress(np.packbits(mask).tobytes(), 1)


def _unpack(blob: bytes) -> Mask:
    bits = np.frombuffer(zlib.decompress(blob[8:]), dtype=np.uint8)
    return np.unpackbits(bits, count=int.from_bytes(blob[:8], "little")).astype(np.bool_)
