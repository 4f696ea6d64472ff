"""What a run left on disk, to be compared byte by byte with what another left."""

from __future__ import annotations

from pathlib import Path


def content(out: Path) -> dict[str, bytes]:
    """Return every file below a directory."""
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
