"""The papers' pages: every statement has a function that is public and a test that names it, or the reason why it has none."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from hockeystick import figures

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "extensions"))
papers = importlib.import_module("papers")

PAPERS = papers.statements(DOCS)
LEAST_ROWS = {  # statements, algorithms, tables and figures of each paper
    "distortion": 43,
    "fdp_fedavg": 40,
    "isrl": 113,
    "projected_sgd": 27,
    "trusted_aggregator": 32,
}
ROWS = [(paper, row) for paper, rows in PAPERS.items() for row in rows]


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


def faults(row: papers.Statement) -> Iterator[str]:
    """Yield what is wrong with a row and its functions."""
    if not (row.name and row.says and row.verdict):
        yield "no name, no words or no verdict"
    if not (row.functions or row.figures or row.reason):
        yield "neither a function nor a reason"
    if row.functions and not row.tests:
        yield "a function without a test"
    yield from (f"not public below hockeystick: {name}" for name in row.functions if not is_public(name))


def faults_of_tests(row: papers.Statement) -> Iterator[str]:
    """Yield test files of a row that name none of its functions, and functions that none of the files names."""
    words = {path: set(re.findall(r"\w+", (ROOT / path).read_text(encoding="utf-8"))) for path in row.tests}
    names = {name.rpartition(".")[2] for name in row.functions}
    yield from (f"{path} is no test" for path in words if not path.startswith("tests/"))
    yield from (f"{path} names none of {names}" for path, found in words.items() if names and not names & found)
    yield from (f"no test names {name}" for name in names - set().union(*words.values()))


def test_statement_has_a_function_or_a_reason() -> None:
    """A row says what the statement is and what it is worth; without a function it says why."""
    assert [f"{paper}, {row.name}: {fault}" for paper, row in ROWS for fault in faults(row)] == []


def test_tests_name_the_functions() -> None:
    """Every test file of a row is there and names a function of the row; every function is named by one of them."""
    assert [f"{paper}, {row.name}: {fault}" for paper, row in ROWS for fault in faults_of_tests(row)] == []


def test_figures_are_those_of_the_command() -> None:
    """Every name is known to `hockeystick figures`, and every figure that has a number in its paper is in its row."""
    named = {name for rows in PAPERS.values() for row in rows for name in row.figures}
    known = {entry.name for entry in figures.catalogue()}
    assert named <= known
    assert {name for name in known if re.fullmatch(r"\d+/(table-)?\d+(-network)?", name)} <= named


def test_every_paper_has_its_rows_and_its_page() -> None:
    """A paper has a file of statements, no fewer than it prints, and a page that shows them; names are different."""
    for paper, rows in PAPERS.items():
        assert len(rows) >= LEAST_ROWS[paper], paper
        names = [(row.name, row.says) for row in rows]
        assert len(set(names)) == len(names), paper
        page = (DOCS / "papers" / f"{paper}.md").read_text(encoding="utf-8")
        assert f"```{{include}} ../{papers.FOLDER}/{paper}.md\n```" in page
    pages = {page.stem for page in (DOCS / "papers").glob("*.md")} - {"index"}
    assert pages == set(PAPERS)


def test_tables_have_all_rows(tmp_path: Path) -> None:
    """What the site includes has a line for every statement; a bar in a text makes no cell."""
    (tmp_path / papers.STATEMENTS).mkdir(parents=True)
    text = 'name = "Lemma 1"\nsays = "|x| grows"\nfunctions = ["theta"]\ntests = []\nverdict = "right"\nreason = ""\n'
    (tmp_path / papers.STATEMENTS / "one.toml").write_text(f"[[statement]]\n{text}" * 3, encoding="utf-8")
    papers.write_tables(type("App", (), {"srcdir": tmp_path}))
    for name in ("one", "index"):
        lines = (tmp_path / papers.FOLDER / f"{name}.md").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 2 + 3
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {6}
