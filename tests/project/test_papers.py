"""The papers' pages: every statement has a function that is public and a test that names it, or the reason why it has none."""

import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import figures, published
from hockeystick.published.statements import PAPERS, Row, table

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "extensions"))
papers = importlib.import_module("papers")

ROWS = table()
COUNTS = {
    "000": 32,
    "001": 43,
    "002": 27,
    "003": 114,
    "004": 40,
}  # statements, algorithms, tables and figures of each paper


def is_public(name: str) -> bool:
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


def faults(row: Row) -> Iterator[str]:
    """Yield what is wrong with a row and its functions."""
    if not (row.name and row.says and row.verdict):
        yield "no name, no words or no verdict"
    if not (row.functions or row.figures or row.reason):
        yield "neither a function nor a reason"
    if row.functions and not row.tests:
        yield "a function without a test"
    yield from (f"not public below hockeystick: {name}" for name in row.functions if not is_public(name))


def faults_of_tests(row: Row) -> Iterator[str]:
    """Yield test files of a row that name none of its functions, and functions that none of the files names."""
    words = {path: set(re.findall(r"\w+", (ROOT / path).read_text(encoding="utf-8"))) for path in row.tests}
    names = {name.rpartition(".")[2] for name in row.functions}
    yield from (f"{path} is no test" for path in words if not path.startswith("tests/"))
    yield from (f"{path} names none of {names}" for path, found in words.items() if names and not names & found)
    yield from (f"no test names {name}" for name in names - set().union(*words.values()))


def test_statement_has_a_function_or_a_reason() -> None:
    """A row says what the statement is and what it is worth; without a function it says why."""
    assert [f"{row.paper}, {row.name}: {fault}" for row in ROWS for fault in faults(row)] == []


def test_tests_name_the_functions() -> None:
    """Every test file of a row is there and names a function of the row; every function is named by one of them."""
    assert [f"{row.paper}, {row.name}: {fault}" for row in ROWS for fault in faults_of_tests(row)] == []


def test_figures_are_those_of_the_command() -> None:
    """Every name is known to `hockeystick figures`, and every figure that has a number in its paper is in its row."""
    named = {name for row in ROWS for name in row.figures}
    known = {entry.name for entry in figures.catalogue()}
    assert named <= known
    assert {name for name in known if re.fullmatch(r"\d+/(table-)?\d+(-network)?", name)} <= named


def test_every_paper_has_its_rows_and_its_page() -> None:
    """A paper has as many rows as were counted, and a page that shows them; names are different."""
    assert Counter(row.paper for row in ROWS) == COUNTS
    names = [(row.paper, row.name, row.says) for row in ROWS]
    assert len(set(names)) == len(names)
    for page, _ in PAPERS.values():
        text = (DOCS / "papers" / f"{page}.md").read_text(encoding="utf-8")
        assert f"```{{include}} ../{papers.FOLDER}/{page}.md\n```" in text
    pages = {page.stem for page in (DOCS / "papers").glob("*.md")} - {"index"}
    assert pages == {page for page, _ in PAPERS.values()}


def test_tables_have_all_rows(tmp_path: Path) -> None:
    """What the site includes has a line for every statement; a bar in a text makes no cell."""
    papers.write_tables(type("App", (), {"srcdir": tmp_path}))
    for name, count in (("fdp_fedavg", COUNTS["004"]), ("index", len(ROWS))):
        lines = (tmp_path / papers.FOLDER / f"{name}.md").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 2 + count
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {6}


@pytest.mark.parametrize("row", [row for row in ROWS if row.counterexample], ids=lambda row: f"{row.paper} {row.name}")
@pytest.mark.filterwarnings("ignore::hockeystick.published.UnsoundBoundWarning")
def test_counterexamples_hold(row: Row) -> None:
    """What a row says against a statement is true."""
    found = eval(row.counterexample, {"hs": hs})
    assert isinstance(found, (bool, np.bool_))
    assert found


def test_a_statement_is_found_by_its_name() -> None:
    """By the paper's number or page, and whole words: a theorem has its parts, F.1 is not F.10, a lemma is no theorem."""
    found = published.statement("003", "Theorem F.1")
    assert found == published.statement("isrl", "theorems F.1")
    assert [row.name for row in found.rows] == [
        "Theorem 4.1, F.1.1: R",
        "Theorem F.1.2: R",
        "Theorems 4.1, F.1 for M < N",
    ]
    assert [row.name for row in published.statement("003", "Lemma F.1").rows] == ["Lemma F.1"]
    for row in ROWS:
        assert row in published.statement(row.paper, row.name).rows


def test_values_of_a_statement() -> None:
    """At the reader's numbers: the printed value, and the one that holds, which linear losses attain: 2 lr K V sqrt(T/m)/sigma."""
    settings = {
        "rounds": 100,
        "local_steps": 5,
        "num_clients": 10,
        "clip_norm": 1.0,
        "noise_std": 1.0,
        "learning_rate": 0.1,
    }
    found = published.statement("004", "Table 1, constant", **settings, smoothness=1.0)
    assert found.values["federated.fedavg_gdp"] == pytest.approx(10**0.5, rel=1e-9)
    assert found.values["published.fedavg_gdp"] < 1
    assert f"as printed: published.fedavg_gdp = {found.values['published.fedavg_gdp']}" in str(found)
    assert "verdict: false" in str(found)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: published.statement("005", "Theorem 1"), ValueError, "paper must be one of 000 .*, not '005'"),
        (
            lambda: published.statement("003", "Theorem Z.9"),
            ValueError,
            "name must be a statement of paper 003, not 'Theorem Z.9'; it has ",
        ),
        (lambda: published.statement("003", ""), ValueError, "name must be a statement"),
        (lambda: published.statement(3, "Theorem 1"), TypeError, "paper must be a string, not 3"),
        (lambda: published.statement("003", 1), TypeError, "name must be a string, not 1"),
        (lambda: published.statement("004", "Theorem 12", sigma=1), ValueError, "sigma is no argument of "),
        (lambda: published.statement("004", "Table 1, constant", rounds=1), ValueError, "lacks local_steps, "),
    ],
)
def test_what_is_no_statement(call: Any, error: type[Exception], message: str) -> None:
    """A wrong paper, name or setting is named, with what there is."""
    with pytest.raises(error, match=message):
        call()
