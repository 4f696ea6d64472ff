"""Names of files that are not whole yet."""

from __future__ import annotations


def temporary(name: str) -> str:
    """Return the name of a file that is not whole yet: hidden, so that a reader of the folder skips it."""
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}.{file}.tmp"


def is_temporary(name: str) -> bool:
    """Say whether a file was left unfinished."""
    return name.startswith(".") and name.endswith(".tmp")
