"""The numbers of docs/accounting/published_values.md, computed again: none contradicts a certified end without a reason."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "tables"
PAGE = (ROOT / "docs" / "accounting" / "published_values.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d[\d.]*(?:e[-+]?\d+)?")


def subjects() -> dict:
    """Return the rows of all subjects."""
    sys.path.insert(0, str(FOLDER))
    try:
        found: dict = runpy.run_path(str(FOLDER / "published_values.py"))["SUBJECTS"]
    finally:
        sys.path.remove(str(FOLDER))
    return found


ROWS = [
    pytest.param(subject, value, id=value.question[:60]) for subject, values in subjects().items() for value in values
]


@pytest.mark.parametrize(("subject", "value"), ROWS)
def test_row(subject, value):
    """What is published can be true beside our ends and is no better, or the row says why; and the page has what is computed."""
    assert (value.possible() and value.improved()) or value.note
    section = PAGE.split(f"\n## {subject}\n")[1].split("\n## ")[0]
    cells = value.row().split(" | ")
    (printed,) = [line for line in section.splitlines() if line.startswith(" | ".join(cells[:3]))]
    assert printed.split(" | ")[4] == cells[4]
    for ours, theirs in zip(NUMBER.findall(cells[3]), NUMBER.findall(printed.split(" | ")[3]), strict=True):
        assert float(ours) == pytest.approx(float(theirs), rel=2e-3)


def test_no_row_of_the_page_is_made_up():
    """The page has as many rows as are computed."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| question")]
    assert len(rows) == len(ROWS)
