"""What is in a file of client ledgers: settings, enrolments and charges, each chained to all before it by a digest."""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import count_scalar
from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.state import Run, dump_steps, load_steps
from hockeystick.budgets.client_arguments import ClientId

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


def encode_settings(settings: dict[str, Any]) -> Row:
    """Return the first row."""
    return Row(_json(settings))


def decode_settings(row: Row) -> dict[str, Any]:
    """Return what the first row says, or raise ValueError."""
    settings = json.loads(row.content)
    if not isinstance(settings, dict):
        msg = f"settings must be a mapping, not {shown(settings)}"
        raise ValueError(msg)  # noqa: TRY004, a wrong file rather than a wrong call
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
            msg = "clients must be a list"
            raise ValueError(msg)
        return Enrolment(clients)
    steps = load_steps(content["steps"])
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
        msg = f"a mask must have a bit for each of {num_clients} clients"
        raise ValueError(msg)
    return mask
