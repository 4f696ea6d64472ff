"""What is compiled beside the module: the C library, and programs that a test writes against the headers."""

import ctypes
import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import hockeystick as hs
import processes

FOLDER = Path(hs.get_include()).parent
HEADER = FOLDER / "include" / "hockeystick" / "c_api.h"
LIBRARIES = [*FOLDER.glob("lib/libhockeystick_c.*[0-9]*"), *FOLDER.glob("bin/hockeystick_c.dll")]
needs_library = pytest.mark.skipif(not LIBRARIES, reason="no C library in this installation")
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(
    COMPILER is None or not Path(hs.get_include()).is_dir() or importlib.util.find_spec("pythran") is None,
    reason="no C++ compiler, or an installation without headers for programs",
)
CMAKE = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
needs_cmake = pytest.mark.skipif(
    CMAKE is None or not (shutil.which("c++") or os.environ.get("CXX")), reason="no CMake or no C++ compiler"
)
KERNEL_FLAGS = ("-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")


class Bracket(ctypes.Structure):
    """An hs_bracket."""

    _fields_ = (("lower", ctypes.c_double), ("upper", ctypes.c_double))


class Doubles:
    """An argument that points to doubles: a list, which is copied, an array of them, or what points there; None is NULL."""

    @staticmethod
    def from_param(value):
        """Return what the library is given."""
        if isinstance(value, np.ndarray):
            assert value.dtype == np.float64, value.dtype
            assert value.flags.c_contiguous
            return value.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        return (ctypes.c_double * len(value))(*value) if isinstance(value, (list, tuple)) else value


TYPES = {
    "void": None,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int32_t": ctypes.c_int32,
    "hs_status": ctypes.c_int,
    "const char*": ctypes.c_char_p,
    **dict.fromkeys(("double*", "const double*"), Doubles),
}


def prototypes(header=HEADER):
    """Return what each function of the C header returns, and its arguments, as they are written there."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = re.findall(r"^HS_API ([^;]+?) ?\b(hs_\w+)\(([^;]*)\);", text, re.MULTILINE)
    assert len(found) == len(re.findall(r"^HS_API\b", text, re.MULTILINE)) > 0
    return {name: (result, [" ".join(each.split()) for each in given.split(",")]) for result, name, given in found}


def type_of(argument):
    """Return the type of an argument of a prototype, without its name."""
    return re.sub(r"(?<=[ *])\w+$", "", argument).strip()


def library():
    """Return the library; skip the test where there is none."""
    if not LIBRARIES:
        pytest.skip("no C library in this installation")
    loaded = ctypes.CDLL(str(LIBRARIES[0]))
    for name, (result, arguments) in prototypes().items():
        function = getattr(loaded, name)
        function.restype = TYPES[result]
        types = [type_of(each) for each in arguments if each != "void"]
        function.argtypes = [TYPES.get(each, ctypes.c_void_p if each.endswith("*") else None) for each in types]
    return loaded


def message(loaded):
    """Return what the library says of the last error."""
    return loaded.hs_last_error_message().decode()


def call(loaded, name, *arguments):
    """Call a function, or raise what the library says of its arguments."""
    status = getattr(loaded, f"hs_{name}")(*arguments)
    if status != 0:
        assert status == 1, status
        raise ValueError(message(loaded))


class Accountant:
    """An accountant of the library."""

    def __init__(self, loaded, adjacency="add_or_remove"):
        self.loaded, self.pointer = loaded, ctypes.c_void_p()
        assert loaded.hs_accountant_create(adjacency == "replace", ctypes.byref(self.pointer)) == 0

    def compose(self, kind, *arguments):
        """Compose by the function of this name."""
        call(self.loaded, f"accountant_{kind}", self.pointer, *arguments)
        return self

    def ask(self, kind, *values):
        """Return the brackets of "delta" or "epsilon"."""
        out = (Bracket * len(values))()
        call(self.loaded, f"accountant_{kind}", self.pointer, values, len(values), out)
        return [(bracket.lower, bracket.upper) for bracket in out]

    def __del__(self):
        """Free the handle."""
        self.loaded.hs_accountant_destroy(self.pointer)


def program(folder, text, *flags):
    """Return a program, compiled from C++."""
    source = folder / "program.cpp"
    source.write_text(text, encoding="utf-8")
    made = folder / f"program{len(flags)}"
    paths = [f"-I{hs.get_include()}", "-isystem", f"{hs.get_include()}/hockeystick/pocketfft"]
    processes.run([COMPILER, "-std=c++17", *flags, *paths, source, "-pthread", "-o", made], limit=600)
    return made


def numbers_of(made, lines):
    """Return the hexadecimal numbers that a program prints when it is given lines."""
    given = made.with_suffix(".given")
    given.write_text("\n".join(lines), encoding="utf-8")
    with given.open() as stdin:
        return [float.fromhex(word) for word in processes.run([made], limit=60, stdin=stdin).stdout.split()]


def run(*command, **options):
    """Run what may compile for minutes, and return what it printed."""
    return processes.run(command, limit=900, **options).stdout


def sampled_training():
    """Return the training whose brackets the examples print."""
    return hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.1), 0.01), 1000)


def check_bracket(line, ours, wide=1e-3):
    """Both ends are certified, so each upper end is above each lower end, and the printed upper end is near ours."""
    lower, upper = map(float, line.split())
    assert ours.lower <= upper <= ours.upper * (1 + wide)
    assert lower <= ours.upper
