"""The published numbers beside ours (docs/tables/published_numbers): none contradicts a certified end without a reason."""

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tables"


def values() -> list:
    """Return the rows of all subjects."""
    sys.path.insert(0, str(FOLDER))
    try:
        subjects: dict = runpy.run_path(str(FOLDER / "published_values.py"))["SUBJECTS"]
    finally:
        sys.path.remove(str(FOLDER))
    return [pytest.param(value, id=value.question[:60]) for rows in subjects.values() for value in rows]


@pytest.mark.share(3)
@pytest.mark.parametrize("value", values())
def test_row(value):
    """What is published can be true beside our ends and is no better, or the row says why."""
    assert (value.possible() and value.improved()) or value.note
