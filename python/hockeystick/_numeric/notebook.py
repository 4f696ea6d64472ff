"""Small tables in HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of two columns; all of its texts are escaped."""
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"
