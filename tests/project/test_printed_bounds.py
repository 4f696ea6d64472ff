"""Whatever README, the first pages and the docstrings print of a bound is rounded outward; `test_site` holds the other pages to it."""

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
SHORT = ("README.md", "docs/guide/start.md", "docs/guide/questions.md", "docs/guide/numbers.md")  # a second or so each


@pytest.fixture(scope="module")
def watched():
    """Note what the package returns while this file's tests run."""
    with pytest.MonkeyPatch.context() as patch:
        yield printed_bounds.watch(patch)


@pytest.fixture
def printed(watched):
    """Begin with nothing noted."""
    for noted in (watched.uppers, watched.lowers, watched.faults):
        noted.clear()
    return watched


@pytest.mark.parametrize("page", SHORT)
def test_pages(page, printed, monkeypatch, tmp_path):
    """Every block of a page runs, in order and in one namespace, and prints no bound on its wrong side."""
    monkeypatch.chdir(tmp_path)  # pages write tables
    space = {"__name__": "__main__"}
    for library, code in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        if not library or importlib.util.find_spec(library):
            with contextlib.redirect_stdout(io.StringIO()):
                printed_bounds.run(code, space, printed)
    assert printed.faults == []


MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(hockeystick.__path__, "hockeystick.")
    if not re.search(r"_core|__main__|\.cli\.|\.report\.|kernels\.", name)
]
SLOW = (  # a second or more
    "interop.dp_accounting",
    "interop.riskcal",
    "figures.catalogue",
    "hockeystick.plot",
    "plot.analysis_lines",
    "plot.training",
    "simulate.algorithms.learnt_clipping",
    "simulate.problem.data",
    "simulate.problem.loss",
    "simulate.running.run",
    "utility.planning",
    "utility.side_by_side",
)


def docstrings(module):
    """Yield those of a module's source, since doctest's own finder leaves out what is shown under another module's name."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield ast.get_docstring(node) or ""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name.endswith(SLOW) else []) for name in MODULES]
)
def test_docstrings(name, printed):
    """The examples of a module's docstrings print what they say, and no bound on its wrong side."""
    module = pytest.importorskip(name)
    for text in docstrings(module):
        space = dict(vars(module))
        for example in doctest.DocTestParser().get_examples(text):
            with contextlib.redirect_stdout(io.StringIO()) as found:
                printed_bounds.run(example.source, space, printed, "single")
            assert doctest.OutputChecker().check_output(example.want, found.getvalue(), 0), example.source
    assert printed.faults == []


def test_the_comparison_finds_what_it_is_for(printed):
    """A page that rounds an upper end to nearest is found, in each way to print it; rounding outward passes."""
    code = """
import hockeystick as hs
training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(0.8), 0.01), 5000)
found = training.epsilon(1e-5)
bracket = training.epsilon_bracket(1e-5)
print(f"{bracket:.4f} {found!r}", hs.format_upper(found, ".4f"), hs.format_lower(bracket.lower, ".4f"), found)
"""
    space = {}
    printed_bounds.run(code, space, printed)
    assert printed.faults == []
    for wrong in ('f"{found:.4f}"', '"{:.4f}".format(found)', "round(found, 4)", "found.round(4)"):
        before = len(printed.faults)
        printed_bounds.run(f"import numpy as np\nfound = np.float64(found)\n{wrong}", space, printed)
        assert len(printed.faults) == before + 1, wrong
    printed.faults.clear()  # next, a function that `hs` has and only its room lists
    printed_bounds.run(
        'f"{hs.zcdp_epsilon(0.1, 1e-5):.4f} {hs.accounting.zcdp_epsilon(0.3, 1e-5):.3f}"', space, printed
    )
    assert len(printed.faults) == 2
