"""Values in messages: whole where they are short, else their beginning and their end."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

LONGEST = 160  # characters of one value: a message with two of them has at most 500
BEGINNING, END = 110, 40
MANY = 1000  # items of a container that is not written out to be cut
LARGEST_INTEGER = 2**1023  # of those from twice it on, none is a double, and Python refuses to print some


def shown(value: object) -> str:
    """Return the repr of a value, of at most 160 characters; of what has none, or a huge one, what it is."""
    if isinstance(value, int) and not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        return in_bits(value)
    many = isinstance(value, (str, bytes, bytearray, list, tuple, set, frozenset, dict)) and len(value) > MANY
    try:
        return cut(reprlib.repr(value) if many else repr(value))
    except Exception:  # noqa: BLE001, such as integers of 5000 digits within: this is in a message, which says something else
        return f"{type(value).__name__} that cannot be shown"


def listed(names: Iterable[str]) -> str:
    """Return what is allowed, with commas, as much as a message has room for."""
    return cut(", ".join(names), 300, 290, 0)


def counted(ledger: Mapping[Any, int], most: int = 1700) -> str:
    """Return the steps of a ledger in words, as many as there is room for."""
    told: list[str] = []
    room = most
    for mechanism, count in ledger.items():
        step = f"{count} x {cut(repr(mechanism), most - 100, most - 300, 100)}"
        room -= len(step) + 2
        if room < 0:
            return ", ".join([*told, f"and {len(ledger) - len(told)} more mechanisms"])
        told.append(step)
    return ", ".join(told)


def cut(text: str, longest: int = LONGEST, beginning: int = BEGINNING, end: int = END) -> str:
    """Return a text, or where it is too long its beginning and its end."""
    if len(text) <= longest:
        return text
    return f"{text[:beginning]} ... {text[len(text) - end :]}".rstrip()


def in_bits(value: int) -> str:
    """Return what an integer is that is too large to be printed."""
    return f"{'a negative' if value < 0 else 'an'} integer of {value.bit_length()} bits"
