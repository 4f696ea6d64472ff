"""The rooms of the core, of the package and of the tests: who may include whom, and what stands at the doors."""

import ast
import graphlib
import importlib
import inspect
import pickle
import re
from pathlib import Path

import hockeystick as hs

ROOT = Path(__file__).parents[2]
CORE, PACKAGE, TESTS = ROOT / "cpp" / "include" / "hockeystick", ROOT / "python" / "hockeystick", ROOT / "tests"

# A room, and the rooms that it may use; it stands below those that use it. In the package, `_core` is open to all.
CORE_LAYERS = {
    "numeric": "",
    "divergence": "numeric",
    "simd": "numeric divergence",
    "loss": "numeric divergence",
    "allocation": "numeric divergence loss",
    "cumulant": "numeric divergence simd",
    "hidden_state": "numeric divergence simd",
    "chain": "numeric divergence",
    "mechanism": "numeric divergence loss cumulant",
    "contour": "numeric divergence simd cumulant mechanism",
    "pld": "numeric divergence loss",
    "release": "numeric divergence loss allocation cumulant mechanism pld",
    "federated": "numeric divergence hidden_state",
    "accounting": "numeric divergence loss simd mechanism contour pld release",
}
PACKAGE_LAYERS = {
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
    "federated": "_checks _numeric mechanisms accounting _hidden_states",
    "interop": "_checks _numeric _statements kernels mechanisms correlated_noise accounting risk training",
    "published": "_checks _files _numeric kernels distortion _hidden_states isrl last_iterate federated",
    "simulate": "_checks _files _numeric mechanisms correlated_noise accounting training isrl _hidden_states last_iterate federated",
    "utility": "_checks _numeric kernels mechanisms accounting _hidden_states last_iterate isrl federated published simulate",
    "sweep": "_checks _files _numeric kernels accounting _hidden_states last_iterate federated simulate",
    "plot": "_checks _numeric accounting simulate utility sweep",
    "report": "_checks _numeric sweep plot",
    "figures": "_checks distortion isrl last_iterate federated published simulate utility plot",
    "cli": "_config _checks _numeric _statements kernels mechanisms accounting correlated_noise training last_iterate federated published simulate utility sweep plot report figures",
}

# What stands outside of the rooms: what embedders include; what `import hockeystick` runs, and what C callers name.
CORE_DOORS = {"hockeystick.hpp", "accountant.hpp", "dpsgd.hpp", "pld.hpp", "c_api.h", "version.hpp"}
PACKAGE_DOORS = {"__init__.py", "__main__.py", "_config.py", "_core.pyi", "kernels.py", "kernels.pxd", "py.typed"}


def module_name(path):
    """Return the name by which a file is imported."""
    return ".".join(("hockeystick", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


HEADERS = {path.relative_to(CORE).with_suffix("").as_posix(): path for path in sorted(CORE.glob("*/*.hpp"))}
MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
INSIDE = {name: path for name, path in MODULES.items() if name not in ("hockeystick", "hockeystick.__main__")}


def includes(header):
    """Return our headers that a header includes."""
    return set(re.findall(r"#include <hockeystick/(\w+/\w+)\.hpp>", header.read_text(encoding="utf-8")))


def imports(path):
    """Return our modules that a file imports, also inside functions and for type checkers only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{path}: imports are absolute"
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {member if member in MODULES else node.module for member in members}
    return {name for name in found if name.split(".")[0] == "hockeystick"} - {module_name(path)}


def room(module):
    """Return the room of a module, the empty string for the door."""
    return module.partition(".")[2].partition(".")[0]


def upward(layers, uses):
    """Return what breaks a table of layers: a room that uses what it may not, or may use what stands below it."""
    order = list(layers)
    unsorted = [
        f"the table lets {name} use {other}"
        for name in order
        for other in layers[name].split()
        if other not in order[: order.index(name)]
    ]
    return unsorted + [
        f"{name} uses {other}" for name, other in sorted(uses) if other not in (name, *layers[name].split())
    ]


def test_headers_include_downwards():
    """A header of the core includes its own room and those that the table allows it; the table has every room."""
    assert {name.split("/")[0] for name in HEADERS} == set(CORE_LAYERS)
    uses = {(name.split("/")[0], other.split("/")[0]) for name, path in HEADERS.items() for other in includes(path)}
    assert upward(CORE_LAYERS, uses) == []


def test_modules_import_downwards():
    """A module imports its own room and those that the table allows it, and never the door; the table has every room."""
    assert {room(name) for name in INSIDE} == set(PACKAGE_LAYERS)
    uses = {
        (room(name), room(other)) for name, path in INSIDE.items() for other in imports(path) if room(other) != "_core"
    }
    assert upward(PACKAGE_LAYERS, uses) == []


def test_no_circles():
    """No header and no module needs itself, however far the way, inside a function or for type checkers only."""
    graphlib.TopologicalSorter({name: includes(path) for name, path in HEADERS.items()}).prepare()
    graphlib.TopologicalSorter({name: imports(path) for name, path in MODULES.items()}).prepare()


def test_only_doors_at_the_root():
    """Whoever embeds the core, or imports the package, finds doors at its root, and nothing else."""
    assert {path.name for path in CORE.iterdir() if path.is_file()} == CORE_DOORS
    root = {path.name for path in PACKAGE.iterdir() if path.is_file() and path.suffix not in {".so", ".pyd"}}
    assert root <= PACKAGE_DOORS


def test_headers_know_no_python():
    """No header of the core includes Python, NumPy, iostream or anything local, or keeps a static variable."""
    banned = re.compile(
        r'#include (<(Python\.h|pybind11|numpy|iostream)|")|\bstatic\b(?! constexpr)(?!.*\()|\bthread_local\b'
    )
    texts = {path: re.sub(r"//.*", "", path.read_text(encoding="utf-8")) for path in CORE.rglob("*.hpp")}
    assert [path for path, text in texts.items() if banned.search(text)] == []


def test_a_namespace_is_a_room():
    """What a header defines lies in the namespace of its room: hockeystick::ROOM."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in HEADERS.items() if not name.endswith("/registry")}
    homeless = [
        name for name, text in texts.items() if f"\nnamespace hockeystick::{name.split('/')[0]} {{\n" not in text
    ]
    assert homeless == []


def test_simd_room_is_bare():
    """What is compiled once per instruction set allocates nothing: its weak symbols could be merged by the linker."""
    allocates = re.compile(r"std::(vector|shared_ptr|unique_ptr|string)|\bnew \w|\bvirtual\b")
    assert [path for path in (CORE / "simd").glob("*.hpp") if allocates.search(path.read_text(encoding="utf-8"))] == []
    users = [path for path in (ROOT / "cpp").rglob("*.?pp") if "define HOCKEYSTICK_ISA" in path.read_text("utf-8")]
    assert [path.name for path in users] == ["version.hpp"]


def test_margins_have_names():
    """Powers of two that cover rounding stand in one file, with their reasons; in a random stream one is what a bit is worth."""
    elsewhere = {"numeric/rounding", "numeric/coefficients"}
    elsewhere |= {"hockeystick._numeric.rounding", "simd/random_streams"}
    bare = re.compile(r"\b0x1p-[45]\d\b|2\.0 ?\*\* ?-[45]\d")
    files = {name: path for name, path in {**HEADERS, **MODULES}.items() if name not in elsewhere}
    texts = {name: re.sub(r"//.*", "", path.read_text(encoding="utf-8")) for name, path in files.items()}
    assert [name for name, text in texts.items() if bare.search(text)] == []


def test_public_names_live_at_the_top():
    """Tracebacks, pages and pickles name public classes and functions by the module that users import."""
    values = {name: getattr(hs, name) for room in hs._ROOMS for name in getattr(hs, room, hs).__all__}
    public = {name: value for name, value in values.items() if inspect.isclass(value) or inspect.isfunction(value)}
    wrong = [
        name
        for name, value in public.items()
        if value.__module__ != "hockeystick" or pickle.loads(pickle.dumps(value)) is not value
    ]
    assert wrong == []


def test_helpers_of_tests_have_names_of_their_own():
    """Helpers are imported by name alone: of two with one name, that in the folder which pytest has first hides the other."""
    helpers = sorted(path.stem for folder in ("reference", "storms") for path in (TESTS / folder).glob("*.py"))
    assert helpers == sorted({*helpers})


def test_rooms_have_tests(monkeypatch):
    """`.ci/check.py` finds a folder of tests for every room, and its table names no room that has one."""
    monkeypatch.syspath_prepend(ROOT / ".ci")
    check = importlib.import_module("check")
    rooms = {*CORE_LAYERS, *(path.parent.name for path in PACKAGE.glob("*/__init__.py"))}
    assert [room for room in rooms if not (TESTS / check.TESTED_IN.get(room, room)).is_dir()] == []
    assert [room for room in check.TESTED_IN if room not in rooms or (TESTS / room).is_dir()] == []
    assert check.tests(["python/hockeystick/plot/lines.py", "cpp/include/hockeystick/pld/tilt.hpp", "docs/x.md"]) == {
        "tests/show",
        "tests/pld",
    }
