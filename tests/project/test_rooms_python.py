"""The rooms of the Python package: which may import which, and what their files may hold."""

from __future__ import annotations

import ast
import graphlib
import inspect
import pickle
import re
from pathlib import Path

import pytest

import hockeystick as hs

PACKAGE = Path(__file__).parents[2] / "python" / "hockeystick"

# A room, and the rooms that it may import; it stands below those that import it. `_core` is open to all.
LAYERS = {
    "_checks": "",
    "kernels": "",
    "_config": "_checks",
    "_files": "",
    "_numeric": "_checks",
    "_statements": "",
    "mechanisms": "_checks _numeric _statements",
    "selection": "_checks _numeric kernels mechanisms",
    "distortion": "_checks _numeric",
    "accounting": "_checks _numeric _statements kernels mechanisms selection",
    "correlated_noise": "_checks _numeric _statements mechanisms accounting",
    "risk": "_checks _numeric accounting",
    "training": "_checks _numeric _statements mechanisms accounting",
    "_hidden_states": "_checks _numeric mechanisms accounting",
    "audit": "_checks _numeric kernels accounting",
    "isrl": "_checks _numeric kernels mechanisms accounting",
    "budgets": "_checks _numeric kernels mechanisms accounting training",
    "last_iterate": "_checks _numeric accounting _hidden_states",
    "federated": "_checks _numeric _hidden_states",
    "interop": "_checks _numeric _statements kernels mechanisms correlated_noise accounting risk training",
    "published": "_checks kernels distortion _hidden_states isrl last_iterate federated",
    "simulate": "_checks _files _numeric mechanisms correlated_noise accounting training isrl _hidden_states last_iterate federated",
    "utility": "_checks _numeric kernels mechanisms accounting _hidden_states last_iterate isrl federated published simulate",
    "sweep": "_checks _files _numeric accounting _hidden_states last_iterate federated simulate",
    "plot": "_checks _numeric accounting simulate utility sweep",
    "report": "_numeric sweep plot",
    "figures": "_checks isrl last_iterate federated published simulate utility plot",
    "cli": "_config _checks _numeric _statements kernels mechanisms accounting training last_iterate federated published simulate utility sweep plot report figures",
}

# The root: what `import hockeystick` runs, what describes the compiled module, and what C callers name.
DOORS = {"__init__.py", "__main__.py", "_config.py", "_core.pyi", "kernels.py", "kernels.pxd", "py.typed"}


def module_name(path: Path) -> str:
    """Return the name by which a file is imported."""
    return ".".join(("hockeystick", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
INSIDE = {name: path for name, path in FILES.items() if path not in (PACKAGE / "__init__.py", PACKAGE / "__main__.py")}


def imports(path: Path) -> set[str]:
    """Return our modules that a file imports, also inside functions and for type checkers only."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module, "imports are absolute"
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {member if member in FILES else node.module for member in members}
    return {name for name in found if name.split(".")[0] == "hockeystick"} - {module_name(path)}


def room(module: str) -> str:
    """Return the room of a module, the empty string for the door."""
    return module.partition(".")[2].partition(".")[0]


@pytest.mark.parametrize("name", LAYERS)
def test_rooms_import_downwards(name):
    """A room imports what the table allows, and the table allows only what stands above it there."""
    allowed = set(LAYERS[name].split())
    assert allowed <= set(list(LAYERS)[: list(LAYERS).index(name)])
    used = {room(other) for module, path in INSIDE.items() if room(module) == name for other in imports(path)}
    assert used - {name, "_core"} <= allowed


def test_every_room_has_a_floor():
    """The table names the rooms that there are."""
    assert {room(module) for module in INSIDE} == set(LAYERS)


def test_no_circles():
    """No file imports itself through others, be it inside a function or for type checkers only."""
    graphlib.TopologicalSorter({module: imports(path) for module, path in FILES.items()}).prepare()


def test_only_doors_at_the_root():
    """All else is in a room."""
    root = {path.name for path in PACKAGE.iterdir() if path.is_file() and path.suffix not in {".so", ".pyd"}}
    assert root <= DOORS


@pytest.mark.parametrize("module", INSIDE)
def test_no_door_from_inside(module):
    """What is inside does not import the door, which imports it."""
    assert "hockeystick" not in imports(INSIDE[module])


def test_a_room_says_what_it_is():
    """Every folder is a package with a docstring."""
    folders = {path.parent for path in FILES.values()}
    assert all(ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) for folder in folders)


def test_margins_have_names():
    """Powers of two that cover rounding stand in one file, with their reasons; in a random stream one is what a bit is worth."""
    named = {FILES["hockeystick._numeric.rounding"], FILES["hockeystick.simulate.kernels.streams"]}
    bare = re.compile(r"2\.0 ?\*\* ?-[45]\d")
    assert [name for name, path in FILES.items() if path not in named and bare.search(path.read_text("utf-8"))] == []


def public() -> list[str]:
    """Return the classes and functions of the top level."""
    return [name for name in hs.__all__ if inspect.isclass(getattr(hs, name)) or inspect.isfunction(getattr(hs, name))]


@pytest.mark.parametrize("name", public())
def test_public_names_live_at_the_top(name):
    """Tracebacks, pages and pickles name public classes and functions by the module that users import."""
    value = getattr(hs, name)
    assert value.__module__ == "hockeystick"
    assert pickle.loads(pickle.dumps(value)) is value
