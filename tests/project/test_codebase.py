"""Checks of the code base itself: style, stub, version, generated files, headers that compile, and a source distribution that has all."""

import importlib.util
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import mpmath as mp
import pytest

import effort
import hockeystick as hs
import processes
import slow_values

ROOT = Path(__file__).parents[2]
CORE = ROOT / "cpp" / "include" / "hockeystick"
CPP = sorted([*(ROOT / "cpp").rglob("*.[hc]pp"), *CORE.glob("*.h"), *(ROOT / "tests" / "embed").glob("*.c*")])
HEADERS = sorted(CORE.rglob("*.hpp"))
HEADER_IDS = [header.relative_to(CORE).as_posix() for header in HEADERS]
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def run(*command, **options):
    """Run a command in the repository and fail with what it printed."""
    return processes.run(command, cwd=ROOT, limit=300, **options).stdout


def tool(name):
    """Return the path of a tool installed beside this Python, or found on the PATH."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found, f"{name} is not installed; pip install '.[test]'"
    return found


def test_python_style():
    """The linter has nothing to say, and the formatter nothing to change."""
    run(tool("ruff"), "check", ".")
    run(tool("ruff"), "format", "--check", ".")


def test_cpp_style():
    """clang-format has nothing to change."""
    run(tool("clang-format"), "--dry-run", "--Werror", *CPP)


@pytest.mark.slow
def test_stub_is_generated(tmp_path):
    """The committed stub is what the generator makes of the compiled module."""
    environment = os.environ | {"HOCKEYSTICK_ISA": "portable"}  # the stub holds the value
    run(tool("pybind11-stubgen"), "hockeystick._core", "-o", tmp_path, env=environment)
    fresh = (tmp_path / "hockeystick" / "_core.pyi").read_text(encoding="utf-8")
    assert fresh == (ROOT / "python" / "hockeystick" / "_core.pyi").read_text(encoding="utf-8")


@pytest.mark.slow
def test_stub_matches_the_module(tmp_path):
    """The stub test of mypy finds no difference between the stub and the compiled module."""
    allowed = tmp_path / "allowed"
    generated = r"hockeystick\._core\.__all__"
    # pybind11's metaclass, and no constructor
    classes = r"hockeystick\._core\.(Accountant|Answer|FloatingEnvironment|IntegerNoise|\w*Pair)(\.__init__)?"
    allowed.write_text(f"{generated}\n{classes}\n", encoding="utf-8")
    alone = tmp_path / "hockeystick"  # mypy would read the whole package beside it
    alone.mkdir()
    (alone / "__init__.pyi").touch()
    shutil.copy(ROOT / "python" / "hockeystick" / "_core.pyi", alone)
    command = [sys.executable, "-m", "mypy.stubtest", "hockeystick._core", "--allowlist", allowed]
    run(*command, env=os.environ | {"MYPYPATH": str(tmp_path)})


def test_one_version():
    """The header, the compiled module, the package and the citation agree."""
    header = (CORE / "version.hpp").read_text(encoding="utf-8")
    version = re.search(r'HOCKEYSTICK_VERSION "([^"]+)"', header).group(1)
    assert hs.__version__ == version
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.slow
def test_coefficients_are_generated():
    """The polynomial coefficients are what the script computes."""
    run(sys.executable, "tests/reference/generate_coefficients.py", "--check")


def imported(program):
    """Return the modules that a program loads beyond those of NumPy."""
    code = f"import sys, numpy; before = set(sys.modules); {program}; print(*(set(sys.modules) - before))"
    return set(run(sys.executable, "-c", code).split())


def test_import_is_light():
    """`import hockeystick` loads the compiled module: the rooms are loaded with the first name that is asked for.

    Then too NumPy is enough, and what a ledger on disk needs comes with one.
    """
    expected = {"hockeystick", "hockeystick._core", "__future__", "threading"}
    editable = {"importlib.util", "importlib._abc"}  # of the finder of an editable installation
    assert imported("import hockeystick") <= expected | editable
    heavy = {"scipy", "numba", "pyarrow", "matplotlib", "tqdm", "sklearn", "dp_accounting", "opacus", "torch"}
    files = {"sqlite3", "zipfile", "lzma", "secrets", "tempfile", "hashlib", "importlib.resources"}
    loaded = imported("import hockeystick; hockeystick.Accountant, hockeystick.dpsgd_epsilon")
    assert not (heavy | files) & (loaded | {name.split(".")[0] for name in loaded})
    loaded = imported("import hockeystick; hockeystick.ClientLedgers")
    assert not heavy & {name.split(".")[0] for name in loaded}


def test_threads_that_ask_first_at_once():
    """Twelve threads ask a fresh process for names of all rooms at the same moment, and each gets its own."""
    code = (
        "import hockeystick as hs, sys, threading\n"
        "sys.setswitchinterval(1e-6)\n"
        "names, found, together = sys.argv[1:], [], threading.Barrier(12)\n"
        "def ask(name):\n"
        "    together.wait()\n"
        "    found.append(getattr(hs, name))\n"
        "threads = [threading.Thread(target=ask, args=(name,)) for name in names]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join() for thread in threads]\n"
        "print(len(found))\n"
    )
    names = {*dir(hs), *(name for room in hs._ROOMS for name in getattr(hs, room).__all__)}
    for seed in range(2):
        asked = random.Random(seed).sample(sorted(names - {"figures", "plot", "report"}), 12)
        assert run(sys.executable, "-c", code, *asked).strip() == "12"


@pytest.mark.parametrize("module", ["dp_accounting", "numba"])
def test_extras_are_asked_for_by_name(module):
    """An adapter whose library is missing says what to install, dp_accounting's when it is first used."""
    code = (
        f"import sys; sys.modules['{module}'] = None\n"
        f"import hockeystick.interop.{module} as adapter\n"
        "adapter.HockeyStickAccountant()"
    )
    result = processes.python(code, check=False)
    extra = module.replace("_", "-")
    assert f'pip install ".[{extra}]" in a clone' in result.stderr


@pytest.mark.slow
@pytest.mark.share(16, by_day=16)
@needs_compiler
@pytest.mark.parametrize("headers", [HEADERS[::-1], *([header] for header in HEADERS)], ids=["together", *HEADER_IDS])
def test_headers_compile(headers, tmp_path):
    """Each header of the core by itself, and those of all rooms in one unit, the last by the alphabet first, without a warning."""
    source = tmp_path / "unit.cpp"
    source.write_text(
        "".join(f"#include <{header.relative_to(CORE.parent).as_posix()}>\n" for header in headers), encoding="utf-8"
    )
    pythran = importlib.util.find_spec("pythran")
    assert pythran, "pythran, whose pocketfft the build uses, is not installed; pip install '.[test]'"
    pocketfft = Path(pythran.origin).parent / "pythonic" / "numpy" / "fft"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Icpp/include", "-isystem", pocketfft]
    run(COMPILER, *flags, source)


@pytest.mark.slow
@needs_compiler
def test_core_embeds(tmp_path):
    """A downstream program without pocketfft includes the core in two units, links, and gets the same numbers."""
    program = tmp_path / "program"
    units = [ROOT / "tests" / "embed" / name for name in ("kernels.cpp", "other.cpp")]
    run(COMPILER, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Icpp/include", *units, "-pthread", "-o", program)
    theta, eps, *_cells = map(float, run(program).split())
    assert theta == pytest.approx(0.1269367375066439458, rel=1e-14)
    assert eps == pytest.approx(1.0, rel=1e-13)


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("unit", ["batch_kernels", "simulator_loops"])
def test_kernels_leak_no_weak_symbols(unit, tmp_path):
    """A weak symbol of a kernel object lies in its instruction set's namespace, and no code of it runs on every machine at load."""
    flags = ["-std=c++17", "-O1", "-fno-inline", "-Icpp/include", "-Icpp/src"]
    defines = ["-DHOCKEYSTICK_ISA=v3", "-DHOCKEYSTICK_KERNELS=kernels_v3"]
    target = tmp_path / "kernels.o"
    run(COMPILER, *flags, *defines, "-c", f"cpp/src/{unit}.cpp", "-o", target)
    symbols = run("nm", "-C", target).splitlines()
    assert not [line for line in symbols if "_GLOBAL__sub_I" in line]  # what initialises a table
    weak = [line for line in symbols if re.search(r" [WVu] ", line)]
    assert weak
    assert all(re.search(r"hockeystick::\w+::v3::", line) for line in weak), weak


BUILD = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"


# What a source distribution has at its top. What is new there is written down here, or ignored by git, or does not belong there.
TOP = """
.ci .clang-format .github .gitignore CHANGELOG.md CITATION.cff CMakeLists.txt CMakePresets.json CONTRIBUTING.md
LICENSE README.md bench checker cpp docs examples packaging pyproject.toml python tests
"""
SHIPPED = {*TOP.split()}


def listed(*which):
    """Return files of the checkout by git; skip the test where there is none."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    return set(processes.run(["git", "ls-files", *which], cwd=ROOT).stdout.splitlines())


def test_nothing_else_lies_at_the_top():
    """The repository has what the list says: no output of a run, of a page or of an editor is among it."""
    assert {name.partition("/")[0] for name in listed("--cached")} == SHIPPED


@pytest.mark.slow
def test_the_source_distribution_is_complete(tmp_path):
    """It has all that git has, so that its tests, pages and examples run; the metadata; and nothing that the list has not."""
    pytest.importorskip("scikit_build_core")
    files = listed("--cached", "--others", "--exclude-standard")
    name = processes.run([sys.executable, "-c", BUILD, tmp_path], cwd=ROOT).stdout.split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        packed = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}
    assert packed - files == {"PKG-INFO"}
    assert files <= packed
    assert {name.partition("/")[0] for name in packed} == SHIPPED | {"PKG-INFO"}


def test_the_conda_recipe_asks_for_the_same():
    """Its version and its requirements are those of the package."""
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text(encoding="utf-8"))
    header = (ROOT / "cpp" / "include" / "hockeystick" / "version.hpp").read_text(encoding="utf-8")
    assert f'HOCKEYSTICK_VERSION "{recipe["context"]["version"]}"' in header
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.search(r"^dependencies = \[(.*)\]$", project, re.MULTILINE)
    built_with = re.search(r"^requires = \[(.*)\]", project, re.MULTILINE)
    words = {word.replace(" ", "") for word in [*recipe["requirements"]["run"], *recipe["requirements"]["host"]]}
    assert set(re.findall(r'"([^"]+)"', f"{needed[1]},{built_with[1]}")) <= words


# Types: the package passes mypy's strict mode; its users' numbers give a float, arrays give an array, and a float is no text.


SAMPLE = """
import numpy as np
import hockeystick as hs

acc = hs.Accountant().compose(hs.Gaussian(2.0), 4)
grid = np.array([1e-6, 1e-5])
reveal_type(acc.epsilon(1e-5))
reveal_type(acc.delta(1))
reveal_type(acc.log_delta(1.0))
reveal_type(acc.rdp(2.0))
reveal_type(acc.trade_off(0.1))
reveal_type(hs.dpsgd_epsilon(1.0, 0.01, 1000, 1e-5))
reveal_type(hs.dpsgd_steps(1.0, 0.01, epsilon=2.0, delta=1e-5))
reveal_type(hs.theta(1.0, 0.5))
reveal_type(hs.q(1.0))
reveal_type(acc.epsilon(grid))
reveal_type(acc.delta([1.0, 2.0]))
reveal_type(hs.dpsgd_epsilon(1.0, 0.01, [1, 10], 1e-5))
reveal_type(hs.dpsgd_delta(1.0, grid, 10, 1.0))
reveal_type(hs.theta(grid, 0.5))
reveal_type(hs.q(grid))
"""
WRONG = """
import hockeystick as hs

eps: str = hs.Accountant().compose(hs.Gaussian(2.0)).epsilon(1e-5)
steps: str = hs.dpsgd_steps(1.0, 0.01, 2.0, 1e-5)
delta: str = hs.theta(1.0, 0.5)
"""


MISSPELT = """
import hockeystick as hs

hs.nope
hs.simulate.nope
hs.federated.nope
(hs.simulate.run, hs.sweep.run, hs.plot.training, hs.audit, hs.utility.plan, hs.federated.best)
"""


@pytest.mark.slow
def test_what_type_checkers_see(tmp_path):
    """Nothing in the package; of users' calls eight floats and an int, six arrays, three numbers that are no text, and names that are misspelt."""
    pytest.importorskip("mypy")
    assert {"py.typed", "_core.pyi"} <= {path.name for path in Path(hs.__file__).parent.iterdir()}
    for name, text in (("sample", SAMPLE), ("wrong", WRONG), ("misspelt", MISSPELT)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "python/hockeystick", *map(str, tmp_path.iterdir())]  # once: it takes long
    told = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout
    seen = re.findall(r'sample.py.* Revealed type is "(.*)"', told)
    numbers = [re.findall(r"int|float", text) for text in seen[:9]]
    assert numbers.pop(6) == ["int", "float"]  # of `dpsgd_steps`, which may have no limit
    assert numbers == [["float"]] * 8
    assert len(seen) == 15
    assert all("ndarray" in text and "float64" in text for text in seen[9:])
    assert len(re.findall(r"wrong.py.* Incompatible types in assignment", told)) == 3
    assert len(re.findall(r'misspelt.py.* has no attribute "nope"', told)) == 3
    assert "Found 6 errors" in told, told


# The committed values that tests use in place of long computations are what those computations give.


def test_nothing_is_missing():
    """The file has every value that is asked for, and no other."""
    assert set(slow_values.read()) == {(name, repr(arguments)) for name, arguments in slow_values.rows()}


@pytest.mark.slow
def test_values_are_computed_again():
    """One value in a hundred, computed anew, agrees to 25 digits, which is more than any test needs."""
    known = list(slow_values.rows())
    with mp.workdps(slow_values.DIGITS):
        for name, arguments in effort.dice_of_commit().sample(known, len(known) // 100):
            again, known = mp.mpf(slow_values.computed(name, arguments)), slow_values.committed(name, *arguments)
            assert mp.almosteq(again, known, rel_eps=mp.mpf("1e-25")), (name, arguments)
