"""The papers' pages: every statement has a function that is public and a test that names it, or the reason why it has none."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from hockeystick import figures, published
from hockeystick.published import statements
from hockeystick.published.statements import PAPERS, rows
from hockeystick.published.warning import quietly

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "extensions"))
pages = importlib.import_module("papers")

COUNTS = {
    "000": 35,
    "001": 43,
    "002": 29,
    "003": 118,
    "004": 45,
}  # statements, algorithms, tables and figures of each paper
ROWS = [(paper, row) for paper in PAPERS for row in rows(paper)]
EXAMPLES = [pytest.param(paper, row, id=f"{paper} {row.name}") for paper, row in ROWS if row.python]


def is_public(name):
    """Say whether a name below hockeystick leads through public names only, to a function, a class or a member of one."""
    *path, last = f"hockeystick.{name}".split(".")
    found, listed = importlib.import_module("hockeystick"), True
    for part in [*path[1:], last]:
        if not hasattr(found, part):
            return False
        listed = not hasattr(found, "__all__") or part in found.__all__ or hasattr(getattr(found, part), "__path__")
        if not listed or part.startswith("_"):
            return False
        found = getattr(found, part)
    return callable(found) or isinstance(found, property)


def faults(row):
    """Yield what is wrong with a row and its functions."""
    if not (row.name and row.says and row.verdict):
        yield "no name, no words or no verdict"
    if not (row.functions or row.figures or row.reason):
        yield "neither a function nor a reason"
    if row.functions and not row.tests:
        yield "a function without a test"
    if row.false and "assert " not in row.python:
        yield "false, without a counterexample"
    yield from (f"not public below hockeystick: {name}" for name in row.functions if not is_public(name))


def faults_of_tests(row):
    """Yield test files of a row that name none of its functions, and functions that none of the files names."""
    words = {path: set(re.findall(r"\w+", (ROOT / path).read_text(encoding="utf-8"))) for path in row.tests}
    names = {name.rpartition(".")[2] for name in row.functions}
    yield from (f"{path} is no test" for path in words if not path.startswith("tests/"))
    yield from (f"{path} names none of {names}" for path, found in words.items() if names and not names & found)
    yield from (f"no test names {name}" for name in names - set().union(*words.values()))


def test_statement_has_a_function_or_a_reason():
    """A row says what the statement is and what it is worth; without a function it says why."""
    assert [f"{paper}, {row.name}: {fault}" for paper, row in ROWS for fault in faults(row)] == []


def test_tests_name_the_functions():
    """Every test file of a row is there and names a function of the row; every function is named by one of them."""
    assert [f"{paper}, {row.name}: {fault}" for paper, row in ROWS for fault in faults_of_tests(row)] == []


def test_figures_are_those_of_the_command():
    """Every name is known to `hockeystick figures`, and every figure that has a number in its paper is in its row."""
    named = {name for _, row in ROWS for name in row.figures}
    known = {entry.name for entry in figures.catalogue()}
    assert named <= known
    assert {name for name in known if re.fullmatch(r"\d+/(table-)?\d+(-network)?", name)} <= named


@pytest.mark.parametrize(("paper", "row"), EXAMPLES)
def test_counterexample_refutes(paper, row):
    """What is false is refuted by its row's own lines, and what the command prints runs by itself; its printed value is no guarantee."""
    found = published.statement(paper, row.name)
    assert found.refuted
    quietly(exec, found.counterexample, {})
    assert all(number.worth != statements.WORTH["certified"] for number in found.numbers if "printed" in number.label)


def test_worth_is_of_functions_that_rows_have():
    """What a function's values are worth is said once, of functions that some row has."""
    named = [name for paper in PAPERS for names in statements._table(paper)["worth"].values() for name in names]
    assert len(named) == len(set(named))
    assert set(named) <= {name for _, row in ROWS for name in row.functions}
    assert not any(name.startswith("published.") for name in named)


def test_every_paper_has_its_rows_and_its_page():
    """A paper has its number of statements, and a page that shows them; names are different."""
    assert {paper: len(rows(paper)) for paper in PAPERS} == COUNTS
    for paper, (name, _) in PAPERS.items():
        texts = [(row.name, row.says) for row in rows(paper)]
        assert len(set(texts)) == len(texts), paper
        page = (DOCS / "papers" / f"{name}.md").read_text(encoding="utf-8")
        assert f"```{{include}} ../{pages.FOLDER}/{name}.md\n```" in page
    assert {page.stem for page in (DOCS / "papers").glob("*.md")} - {"index"} == {name for name, _ in PAPERS.values()}


def test_tables_have_all_rows(tmp_path):
    """What the site includes has a line for every statement, and a letter with all that is false; a bar in a text makes no cell."""
    pages.write_tables(type("App", (), {"srcdir": tmp_path}))
    lengths = {name: COUNTS[paper] for paper, (name, _) in PAPERS.items()} | {"index": sum(COUNTS.values())}
    for name, length in lengths.items():
        lines = (tmp_path / pages.FOLDER / f"{name}.md").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 2 + length
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {6}
    assert any("|" in row.name for _, row in ROWS)
    for paper, (name, _) in PAPERS.items():
        letter = (tmp_path / pages.FOLDER / f"{name}-errata.md").read_text(encoding="utf-8")
        assert [row.name for row in rows(paper) if (row.false or row.instead) and row.name not in letter] == []
