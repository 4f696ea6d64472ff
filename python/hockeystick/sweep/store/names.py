"""Names of the files that are no part of the table. Readers of a directory skip what begins with a dot or an underscore."""

from __future__ import annotations

MANIFEST = "_manifest.json"
FORMER_MANIFEST = "manifest.json"  # of the formats 1 and 2, which are refused
VIEWS = "_views"  # where pictures and pages go
CLAIM = "_claim-"  # see the module `claims`; without a dot, since some servers do not list hidden files


def temporary(name: str) -> str:
    """Return the name of a file that is not whole yet: hidden, so that a reader of the folder skips it."""
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}.{file}.tmp"


def is_temporary(name: str) -> bool:
    """Say whether a file was left unfinished, or is a claim."""
    return name.startswith((".", CLAIM)) and name.endswith(".tmp")
