"""What is compiled beside the module: the C library, and programs that a test writes against the headers."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
from pathlib import Path

import pytest

import hockeystick as hs
import processes

FOLDER = Path(hs.get_include()).parent
LIBRARIES = [*FOLDER.glob("lib/libhockeystick_c.*[0-9]*"), *FOLDER.glob("bin/hockeystick_c.dll")]
needs_library = pytest.mark.skipif(not LIBRARIES, reason="no C library in this installation")
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(
    COMPILER is None or not Path(hs.get_include()).is_dir() or importlib.util.find_spec("pythran") is None,
    reason="no C++ compiler, or an installation without headers for programs",
)
KERNEL_FLAGS = ("-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")


class Bracket(ctypes.Structure):
    """An hs_bracket."""

    _fields_ = (("lower", ctypes.c_double), ("upper", ctypes.c_double))


def library(*, numbers=(), **signatures):
    """Return the library; `numbers` return doubles, and functions that are named take what is said, and return a status."""
    if not LIBRARIES:
        pytest.skip("no C library in this installation")
    loaded = ctypes.CDLL(str(LIBRARIES[0]))
    loaded.hs_last_error_message.restype = loaded.hs_version.restype = ctypes.c_char_p
    loaded.hs_mechanism_free.restype = loaded.hs_accountant_destroy.restype = None
    for name, count in dict(numbers).items():
        function = getattr(loaded, f"hs_{name}")
        function.argtypes, function.restype = [ctypes.c_double] * count, ctypes.c_double
    for name, types in signatures.items():
        getattr(loaded, f"hs_{name}").argtypes = types
    return loaded


def message(loaded):
    """Return what the library says of the last error."""
    return loaded.hs_last_error_message().decode()


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
