"""Writes the tables of the papers' pages from docs/papers/statements: each statement, its verdict, its function, its tests.

A page of docs/papers ends with an include of docs/generated/papers/NAME.md; the index includes docs/generated/papers/index.md, in
which all papers stand. tests/project/test_papers.py holds every row against the code.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from sphinx.application import Sphinx

STATEMENTS = "papers/statements"
FOLDER = "generated/papers"


@dataclass(frozen=True)
class Statement:
    """One row of a paper's table; every field but the last is required."""

    name: str  # as printed
    says: str
    functions: list[str]  # public names below hockeystick; none where `reason` says why
    tests: list[str]
    verdict: str
    reason: str
    figures: list[str] = field(default_factory=list)  # names of `hockeystick figures`

    def cells(self) -> list[str]:
        """Return the cells of the row, in MyST."""
        links = [f"{{py:obj}}`{name} <hockeystick.{name}>`" for name in self.functions]
        functions = ", ".join([*links, *(f"`hockeystick figures {name}`" for name in self.figures)])
        tests = ", ".join(f"`{path.removeprefix('tests/')}`" for path in self.tests)
        return [self.name, self.says, self.verdict, functions or self.reason, tests or "-"]


def statements(source: Path) -> dict[str, list[Statement]]:
    """Return the statements of every paper, in their order; a TypeError if a row has other fields."""
    return {
        file.stem: [Statement(**row) for row in tomllib.loads(file.read_text(encoding="utf-8"))["statement"]]
        for file in sorted((source / STATEMENTS).glob("*.toml"))
    }


def table(rows: list[list[str]], head: tuple[str, ...]) -> str:
    """Return a table in MyST; a bar within a cell is no border."""
    lines = [list(head), ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def write_tables(app: Sphinx) -> None:
    """Write the table of each paper and the index."""
    source = Path(app.srcdir)
    folder = source / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for paper, rows in statements(source).items():
        head = ("statement", "says", "verdict", "function, or why there is none", "tests")
        (folder / f"{paper}.md").write_text(table([row.cells() for row in rows], head), encoding="utf-8")
        link = f"[{paper}](/papers/{paper}.md)"
        index += [[link, name, *rest] for name, _, *rest in (row.cells() for row in rows)]
    head = ("paper", "statement", "verdict", "function, or why there is none", "tests")
    (folder / "index.md").write_text(table(index, head), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write_tables)
    return {"parallel_read_safe": True}
