"""The compiled loops of the simulator: the only modules that import numba.

Numba compiles what an algorithm does in a round; the inner loops, of losses, batches and random numbers, are the core's. Machine
code is cached on disk beside each file. A cache knows only its own file's age: after a change to a function that kernels of another
file call, or to the fields of ``running/rule.py``, delete the caches (``__pycache__/*.nb?``). An installation replaces all files at
once.
"""

from __future__ import annotations

from typing import Any

try:
    import numba
    import numba.extending
except ImportError as error:
    raise ImportError('the simulator needs numba: pip install ".[simulate]" in a clone') from error

__all__ = ["OPTIONS", "internal", "intrinsic", "kernel", "njit"]

njit: Any = vars(numba)["njit"]  # of whose options the stubs know some
OPTIONS: dict[str, Any] = {"error_model": "numpy"}  # division by zero is inf, as in NumPy

kernel: Any = njit(cache=True, nogil=True, no_cfunc_wrapper=True, **OPTIONS)  # other threads run meanwhile
# Parts of a round, which only compiled functions call.
internal: Any = njit(cache=True, no_cfunc_wrapper=True, no_cpython_wrapper=True, **OPTIONS)
intrinsic: Any = numba.extending.intrinsic
