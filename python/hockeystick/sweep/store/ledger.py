"""The ledger of a run on a cluster: which parts workers have written, and why they have not written the others."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hockeystick.sweep.store.parquet_part import Counts, Part

logger = logging.getLogger("hockeystick.sweep")


@dataclass(frozen=True)
class Written:
    """A part that a worker has written: all of it but its bytes."""

    index: int
    counts: Counts
    compute_seconds: float
    write_seconds: float
    size: int  # in bytes
    sha256: str  # of the file


@dataclass
class Ledger:
    """What workers said."""

    sizes: dict[int, int] = field(default_factory=dict)  # of the parts that they have written, by number
    handed_over: Counter[str] = field(default_factory=Counter)  # reason -> parts that this process writes

    def note(self, part: Part | Written, worker: str, reason: str) -> None:
        """Take note of a part that came from a worker."""
        if isinstance(part, Part):
            self.handed_over[reason] += 1
            return
        self.sizes[part.index] = part.size
        logger.debug("part %d: %d bytes, SHA-256 %s, written by %s", part.index, part.size, part.sha256, worker)

    def unseen(self, names: Mapping[int, str], found: Mapping[str, int]) -> list[int]:
        """Return the parts that should be among the files found, in full length, and are not."""
        return [index for index, size in self.sizes.items() if found.get(names[index]) != size]

    def __str__(self) -> str:
        """Say in words who wrote the parts; nothing where there was no cluster."""
        told = [f"workers wrote {len(self.sizes):,} parts"] if self.sizes else []
        told += [f"this process wrote {count:,}, since {reason}" for reason, count in self.handed_over.most_common(3)]
        return "; ".join(told)
