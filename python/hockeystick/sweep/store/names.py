"""Names of the files that are no part of the table. Readers of a directory skip what begins with a dot or an underscore."""

from __future__ import annotations

from pathlib import PurePosixPath

from hockeystick._files import unfinished

MANIFEST = "_manifest.json"
FORMER_MANIFEST = "manifest.json"  # of the formats 1 and 2, which are refused
VIEWS = "_views"  # where pictures and pages go
CLAIM = "_claim-"  # see the module `claims`; without a dot, since some servers do not list hidden files
MARK = "_run-"  # see the module `marks`


def temporary(name: str) -> str:
    """Return the name of a file that is not whole yet: readers of the folder skip it."""
    return unfinished(PurePosixPath(name)).as_posix()


def is_temporary(name: str) -> bool:
    """Say whether a file was left unfinished, or is a claim or a mark."""
    return name.startswith((".", CLAIM, MARK)) and name.endswith(".tmp")


def is_skipped(name: str) -> bool:
    """Say whether readers of Parquet skip a file, such as `.nfs0001`, `.DS_Store` and `_SUCCESS`."""
    return name.startswith((".", "_"))
