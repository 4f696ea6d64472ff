"""Whatever the pages, the README and the docstrings print of a bound is rounded outward, and never below its own lower end."""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import pkgutil
import re
from pathlib import Path

import pytest

import hockeystick
import printed_bounds

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```", re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]
SHORT = ("README.md", "docs/guide/start.md", "docs/guide/questions.md", "docs/guide/numbers.md")  # a second or so each


def is_missing(library: str) -> bool:
    """Say whether what a block needs is not installed."""
    return any(
        importlib.util.find_spec(name) is None for name in {"opacus": ("opacus", "torch")}.get(library, (library,))
    )


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=[] if name in SHORT else [pytest.mark.slow])
        for page in WITH_CODE
        for name in [page.relative_to(ROOT).as_posix()]
    ],
)
def test_pages(page, monkeypatch, tmp_path):
    """Every block of a page runs, in order and in one namespace, and prints no bound on its wrong side."""
    monkeypatch.chdir(tmp_path)  # pages write tables
    printed = printed_bounds.watch(monkeypatch)
    space = {"__name__": "__main__"}
    for library, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if not library or not is_missing(library):
            with contextlib.redirect_stdout(io.StringIO()):
                printed_bounds.run(code, space, printed)
    assert printed.faults == []


MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(hockeystick.__path__, "hockeystick.")
    if not re.search(r"_core|__main__|\.cli|\.report|kernels\.", name)
]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name, monkeypatch):
    """The examples of a module's docstrings print no bound on its wrong side."""
    module = pytest.importorskip(name)
    printed = printed_bounds.watch(monkeypatch)
    # From the source: doctest's own finder leaves out what the package shows under another module's name.
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        space = dict(vars(module))
        for example in doctest.DocTestParser().get_examples((documented and ast.get_docstring(node)) or ""):
            with contextlib.redirect_stdout(io.StringIO()):
                printed_bounds.run(example.source, space, printed)
    assert printed.faults == []


def test_the_comparison_finds_what_it_is_for(monkeypatch):
    """A page that rounds an upper end to nearest is found, in each way to print it; rounding outward passes."""
    printed = printed_bounds.watch(monkeypatch)
    code = """
import hockeystick as hs
training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(0.8), 0.01), 5000)
found = training.epsilon(1e-5)
"""
    space: dict[str, object] = {}
    printed_bounds.run(
        code + 'bracket = training.epsilon_bracket(1e-5)\nprint(f"{bracket:.4f} {found!r}")', space, printed
    )
    printed_bounds.run(
        'print(hs.format_upper(found, ".4f"), hs.format_lower(bracket.lower, ".4f"), found)', space, printed
    )
    assert printed.faults == []
    for wrong in ('f"{found:.4f}"', '"{:.4f}".format(found)', "round(found, 4)", "found.round(4)"):
        before = len(printed.faults)
        printed_bounds.run(f"import numpy as np\nfound = np.float64(found)\n{wrong}", space, printed)
        assert len(printed.faults) == before + 1, wrong
