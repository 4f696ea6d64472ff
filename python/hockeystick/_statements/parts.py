"""The parts of a privacy statement, whatever they are written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """A heading, and one sentence or several that are listed."""

    heading: str
    lines: tuple[str, ...]
    code: bool = False  # a command, shown as it is typed


@dataclass(frozen=True)
class Statement:
    """A sentence to quote, the parts that it needs, and the same as an entry of a registry."""

    sentence: str
    parts: tuple[Part, ...]
    entry: Mapping[str, Any]
