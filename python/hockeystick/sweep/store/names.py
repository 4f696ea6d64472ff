"""Names of files that are not there to stay."""

from __future__ import annotations

CLAIM = "claim-"  # see the module `claims`; without a dot, since some servers do not list hidden files


def temporary(name: str) -> str:
    """Return the name of a file that is not whole yet: hidden, so that a reader of the folder skips it."""
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}.{file}.tmp"


def is_temporary(name: str) -> bool:
    """Say whether a file was left unfinished, or is a claim."""
    return name.startswith((".", CLAIM)) and name.endswith(".tmp")
