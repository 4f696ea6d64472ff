"""Writes the tables of the papers' pages from those of `hockeystick.published`: each statement, its verdict, its function, its tests.

A page of docs/papers ends with includes of docs/generated/papers/NAME-errata.md, a letter to the authors with what is false, and of NAME.md, all
statements; the index includes docs/generated/papers/index.md, in which all papers stand. tests/project/test_papers.py holds every row
against the code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import format_lower, format_upper
from hockeystick.published.statements import PAPERS, Row, rows, statement

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "generated/papers"


def cells(row: Row) -> list[str]:
    """Return the cells of a row, in MyST."""
    links = [f"{{py:obj}}`{name} <hockeystick.{name}>`" for name in row.functions]
    functions = ", ".join([*links, *(f"`hockeystick figures {name}`" for name in row.figures)])
    tests = ", ".join(f"`{path.removeprefix('tests/')}`" for path in row.tests)
    tried = " ({settings} settings: {deviation})".format(**row.tried) if row.tried else ""
    return [row.name, row.says, row.verdict + tried, "; ".join(filter(None, (functions, row.reason))), tests or "-"]


def table(lines: list[list[str]], head: tuple[str, ...]) -> str:
    """Return a table in MyST; a bar within a cell is no border."""
    whole = [list(head), ["---"] * len(head), *([cell.replace("|", r"\|") for cell in line] for line in lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in whole) + "\n"


LETTER = """\
To the authors: we went through the {statements} statements of the paper, and believe that the {false} below are false as they are printed. For each there
is an instance, which a few lines of Python check (`hockeystick papers {number} "NAME"` writes them), and what holds in its place. As far as
we can see the rest is right, up to what the table says of it. Where we misread you, we should be glad to be told.
"""


def errata(number: str) -> str:
    """Return the letter, in MyST."""
    found = [row for row in rows(number) if row.instead]
    others = [
        f"{row.name} ({row.says}): {row.verdict.removeprefix('false: ')}"
        for row in rows(number)
        if row.false and not row.instead
    ]
    parts = [LETTER.format(statements=len(rows(number)), false=len(found) + len(others), number=number)]
    parts += [f"{place}. {erratum(number, row)}" for place, row in enumerate(found, 1)]
    if others:
        parts.append(f"Instances of the same kind refute {'; '.join(others)}.")
    return "\n\n".join(parts) + "\n"


def erratum(paper: str, row: Row) -> str:
    """Return what is false in a row, its counterexample, and what holds."""
    lines = [f"**{row.name}**: {row.says}.", f"{sentence(row.verdict.removeprefix('false: '))}."]
    if row.python:
        comment = re.match("# (.*)", row.python.strip())
        settings = ", ".join(
            f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}"
            for name, value in row.settings.items()
        )
        values = {
            number.label: number.value for number in statement(paper, row.name).numbers if np.ndim(number.value) == 0
        }
        told = [f"{label} {value:.3g}" for label, value in values.items() if label in ("printed", "exact")]
        told += [f"attained {format_lower(value, '.3g')}" for label, value in values.items() if label == "attained"]
        if len(told) == 1:
            told += [f"{label} {format_upper(value, '.3g')}" for label, value in values.items() if label == "certified"]
        lines.append(
            f"*Instance*: {'; '.join(filter(None, (comment and comment[1], settings and f'`{settings}`', ', '.join(told))))}."
        )
    return "\n   ".join([*lines, f"*Instead*: {row.instead}"])


def sentence(text: str) -> str:
    """Return text with a capital letter."""
    return text[:1].upper() + text[1:]


def write_tables(app: Sphinx) -> None:
    """Write the table of each paper and the index."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for number, (paper, _) in sorted(PAPERS.items(), key=lambda entry: entry[1]):
        head = ("statement", "says", "verdict", "function, or why there is none", "tests")
        lines = [cells(row) for row in rows(number)]
        (folder / f"{paper}.md").write_text(table(lines, head), encoding="utf-8")
        (folder / f"{paper}-errata.md").write_text(errata(number), encoding="utf-8")
        index += [[f"[{paper}](/papers/{paper}.md)", name, *rest] for name, _, *rest in lines]
    head = ("paper", "statement", "verdict", "function, or why there is none", "tests")
    (folder / "index.md").write_text(table(index, head), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write_tables)
    return {"parallel_read_safe": True}
