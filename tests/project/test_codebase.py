"""Checks of the code base itself: style, stub, version, generated files, and headers that compile."""

import importlib.util
import os
import random
import re
import shutil
import sys
from pathlib import Path

import pytest

import hockeystick as hs
import processes

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


def imported(program: str) -> set[str]:
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


def check_syntax(source):
    """Compile a file with every warning an error, and throw the result away."""
    pythran = importlib.util.find_spec("pythran")
    assert pythran, "pythran, whose pocketfft the build uses, is not installed; pip install '.[test]'"
    pocketfft = Path(pythran.origin).parent / "pythonic" / "numpy" / "fft"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-Icpp/include", "-isystem", pocketfft]
    run(COMPILER, *flags, source)


def including(headers):
    """Return a source file that includes some headers of the core."""
    return "".join(f"#include <{header.relative_to(CORE.parent).as_posix()}>\n" for header in headers)


@pytest.mark.slow
@needs_compiler
def test_headers_compile_together(tmp_path):
    """The headers of all rooms compile in one unit, the last by the alphabet first, without a warning."""
    source = tmp_path / "all.cpp"
    source.write_text(including(reversed(HEADERS)), encoding="utf-8")
    check_syntax(source)


@pytest.mark.slow
@pytest.mark.share(16, by_day=16)
@needs_compiler
@pytest.mark.parametrize("header", HEADERS, ids=HEADER_IDS)
def test_each_header_stands_alone(header, tmp_path):
    """Every header compiles by itself, without a warning."""
    source = tmp_path / "header.cpp"
    source.write_text(including([header]), encoding="utf-8")
    check_syntax(source)


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
