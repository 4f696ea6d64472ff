"""What a call of one kernel costs from where it may be called: `python bench/calls.py` prints nanoseconds for each theta(eps, 1).

The loop runs over N values of eps and adds up, so that nothing is optimised away; best of several. Cython and the C compiler
are used where they are installed.
"""

import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from turns import take_turns

import hockeystick as hs

N, REPEATS = 200_000, 7
EPS = np.linspace(0.1, 5.0, N)

CYTHON = """
from hockeystick.kernels cimport theta
cpdef double total(double[::1] eps):
    cdef double sum = 0
    cdef Py_ssize_t i
    for i in range(eps.shape[0]): sum += theta(eps[i], 1.0)
    return sum
"""
BODY = """
#include <stddef.h>
double total(const double* eps, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += THETA(eps[i], 1.0);
    return sum;
}
"""
CPP = '#include <hockeystick/hockeystick.hpp>\n#define THETA hockeystick::theta\nextern "C"' + BODY.replace(
    "#include <stddef.h>\n", ""
)
C = "#include <hockeystick/c_api.h>\n#define THETA hs_theta" + BODY


def numpy() -> float:
    """Call the ufunc once for all."""
    return float(hs.theta(EPS, 1.0).sum())


def numba() -> Callable[[], float]:
    """Loop inside njit."""
    import numba as nb  # noqa: PLC0415, optional

    @nb.njit
    def total(eps):
        result = 0.0
        for x in eps:
            result += hs.theta(x, 1.0)
        return result

    return lambda: total(EPS)


def cython() -> Callable[[], float]:
    """Loop in Cython, over the function that it cimports."""
    folder = tempfile.mkdtemp()
    Path(folder, "calls_cython.pyx").write_text(CYTHON, encoding="utf-8")
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "-3", "--inplace", "calls_cython.pyx"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    sys.path.insert(0, folder)
    import calls_cython  # noqa: PLC0415, just built

    return lambda: calls_cython.total(EPS)


def compiled(suffix: str, source: str, *options: str) -> Callable[[], float]:
    """Loop in C or C++."""
    folder = Path(tempfile.mkdtemp())
    (folder / f"calls.{suffix}").write_text(source, encoding="utf-8")
    include, library = hs.get_include(), folder / "calls.so"
    command = ["c++" if suffix == "cpp" else "cc", "-O3", "-shared", "-fPIC", f"-I{include}"]
    subprocess.run([*command, str(folder / f"calls.{suffix}"), *options, "-o", str(library)], check=True)
    total = ctypes.CDLL(str(library)).total
    total.restype, total.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_size_t]
    return lambda: total(EPS.ctypes.data, N)


def nanoseconds(call: Callable[[], float]) -> float:
    """Return the best time of a call of `call`, for each number."""
    assert abs(call() / numpy() - 1) < 1e-12
    return min(take_turns({"": call}, REPEATS, time.perf_counter)[""]) / N * 1e9


def cost(make: Callable[[], Callable[[], float]]) -> str:
    """Return the nanoseconds as text, or why there are none."""
    try:
        return f"{nanoseconds(make()):.1f}"
    except (ImportError, OSError, subprocess.CalledProcessError) as error:
        return f"not here: {error}"


def main() -> None:
    """Print a table."""
    library = Path(hs.get_include()).parent / "lib"
    callers = {
        "Python, one number a call": lambda: lambda: float(sum(map(hs.theta, EPS.tolist(), [1.0] * N))),
        "numba": numba,
        "Cython": cython,
        "C": lambda: compiled("c", C, f"-L{library}", "-lhockeystick_c", f"-Wl,-rpath,{library}"),
        "C++": lambda: compiled("cpp", CPP, "-std=c++17"),
        "NumPy, all numbers in one call": lambda: numpy,
    }
    print("| caller | ns |\n|---|---|")  # noqa: T201
    for name, make in callers.items():
        print(f"| {name} | {cost(make)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
