"""Writes the tables of the papers' pages from those of `hockeystick.published`: each statement, its verdict, its function, its tests.

A page of docs/papers ends with an include of docs/generated/papers/NAME.md; the index includes docs/generated/papers/index.md, in
which all papers stand. tests/project/test_papers.py holds every row against the code.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hockeystick.published.statements import PAPERS, Row, rows

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "generated/papers"


def cells(row: Row) -> list[str]:
    """Return the cells of a row, in MyST."""
    links = [f"{{py:obj}}`{name} <hockeystick.{name}>`" for name in row.functions]
    functions = ", ".join([*links, *(f"`hockeystick figures {name}`" for name in row.figures)])
    tests = ", ".join(f"`{path.removeprefix('tests/')}`" for path in row.tests)
    return [row.name, row.says, row.verdict, functions or row.reason, tests or "-"]


def table(lines: list[list[str]], head: tuple[str, ...]) -> str:
    """Return a table in MyST; a bar within a cell is no border."""
    whole = [list(head), ["---"] * len(head), *([cell.replace("|", r"\|") for cell in line] for line in lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in whole) + "\n"


def write_tables(app: Sphinx) -> None:
    """Write the table of each paper and the index."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for number, (paper, _) in sorted(PAPERS.items(), key=lambda entry: entry[1]):
        head = ("statement", "says", "verdict", "function, or why there is none", "tests")
        lines = [cells(row) for row in rows(number)]
        (folder / f"{paper}.md").write_text(table(lines, head), encoding="utf-8")
        index += [[f"[{paper}](/papers/{paper}.md)", name, *rest] for name, _, *rest in lines]
    head = ("paper", "statement", "verdict", "function, or why there is none", "tests")
    (folder / "index.md").write_text(table(index, head), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write_tables)
    return {"parallel_read_safe": True}
