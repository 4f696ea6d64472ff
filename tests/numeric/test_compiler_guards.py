"""The headers refuse language standards and flags under which a certified bound would not hold (version.hpp)."""

import os
from pathlib import Path

import pytest

import processes
from compiled import COMPILER

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def compile_one_line(folder, *flags):
    """Compile a unit that only includes the smallest header; return the exit status and what the compiler said."""
    source = folder / "one_line.cpp"
    source.write_text("#include <hockeystick/version.hpp>\n", encoding="utf-8")
    command = [COMPILER, "-std=c++17", *flags, "-fsyntax-only", f"-I{ROOT / 'cpp' / 'include'}", source]
    result = processes.run(command, check=False)
    return result.returncode, result.stderr


def announces(flag):
    """Whether the compiler tells the preprocessor of a flag; Clang keeps quiet about some."""
    command = [COMPILER, flag, "-dM", "-E", "-x", "c++", os.devnull]
    macros = processes.run(command).stdout
    telling = ["__FAST_MATH__ 1", "__FINITE_MATH_ONLY__ 1", "__ASSOCIATIVE_MATH__ 1", "__RECIPROCAL_MATH__ 1"]
    return any(macro in macros for macro in telling)


@pytest.mark.parametrize("flags", [[], ["-O3"], ["-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]])
def test_harmless_flags_are_accepted(tmp_path, flags):
    """Plain builds compile, and so do the flags that the kernels themselves are built with."""
    status, message = compile_one_line(tmp_path, *flags)
    assert status == 0, message


FAST = "hockeystick is unsound under -ffast-math", "certified bounds rely on IEEE 754"
REFUSED = {
    **dict.fromkeys(("-ffast-math", "-Ofast", "-ffinite-math-only", "-funsafe-math-optimizations"), FAST),
    "-mfpmath=387": ("hockeystick needs arithmetic in the precision of its types",),
    "-fsingle-precision-constant": ("hockeystick is unsound under -fsingle-precision-constant",),
    "-std=c++14": ("hockeystick needs C++17 or later: compile with -std=c++17",),
}


@pytest.mark.parametrize("flag", REFUSED)
def test_what_is_unsound_is_refused(tmp_path, flag):
    """Inexact arithmetic, other precisions and old standards end the compilation with the reason, before any other error."""
    known = processes.run([COMPILER, flag, "-x", "c++", "-fsyntax-only", os.devnull], check=False)
    if known.returncode != 0 or "warning" in known.stderr or (REFUSED[flag] == FAST and not announces(flag)):
        pytest.skip(f"{COMPILER} does not know {flag}, or says nothing of it")
    status, message = compile_one_line(tmp_path, flag)
    assert status != 0
    assert all(part in message for part in REFUSED[flag])


COMPENSATED = """
#include <hockeystick/numeric/compensated_sum.hpp>
int main() {
    hockeystick::numeric::CompensatedSum sum;
    sum.add(1.0);
    for (int i = 0; i < 1 << 20; ++i) sum.add(0x1p-60);
    return sum.value() == 1.0 + 0x1p-40 ? 0 : 1;
}
"""


def test_unannounced_flags_are_undone(tmp_path):
    """Where a compiler keeps quiet about a flag, it still does not simplify a compensated sum."""
    flag = "-funsafe-math-optimizations"
    if announces(flag):
        flag = "-O2"
    source, program = tmp_path / "sum.cpp", tmp_path / "sum"
    source.write_text(COMPENSATED, encoding="utf-8")
    processes.run([COMPILER, "-std=c++17", "-O2", flag, f"-I{ROOT / 'cpp' / 'include'}", source, "-o", program])
    processes.run([program])
