"""Writes the tables of the papers' pages from the package's: each statement, its verdict, its function, its tests.

A page of docs/papers ends with an include of docs/generated/papers/NAME.md; the index includes docs/generated/papers/index.md, in
which all papers stand. tests/project/test_papers.py holds every row against the code.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hockeystick.published.statements import PAPERS, Row, table

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "generated/papers"
HEAD = ("statement", "says", "verdict", "function, or why there is none", "tests")


def cells(row: Row) -> list[str]:
    """Return the cells of a row, in MyST."""
    links = [f"{{py:obj}}`{name} <hockeystick.{name}>`" for name in row.functions]
    functions = ", ".join([*links, *(f"`hockeystick figures {name}`" for name in row.figures)])
    tests = ", ".join(f"`{path.removeprefix('tests/')}`" for path in row.tests)
    return [row.name, row.says, row.verdict, functions or row.reason, tests or "-"]


def lines(rows: list[list[str]], head: tuple[str, ...]) -> str:
    """Return a table in MyST; a bar within a cell is no border."""
    found = [list(head), ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in found) + "\n"


def write_tables(app: Sphinx) -> None:
    """Write the table of each paper and the index."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for number, (page, _) in PAPERS.items():
        rows = [cells(row) for row in table() if row.paper == number]
        (folder / f"{page}.md").write_text(lines(rows, HEAD), encoding="utf-8")
        index += [[f"[{page}](/papers/{page}.md)", name, *rest] for name, _, *rest in rows]
    (folder / "index.md").write_text(lines(index, ("paper", HEAD[0], *HEAD[2:])), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write_tables)
    return {"parallel_read_safe": True}
