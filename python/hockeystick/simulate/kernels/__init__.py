"""The compiled loops of the simulator: the only modules that import numba.

Machine code is cached on disk beside each file. A cache knows only its own file's age: after a change to a function that
kernels of another file call, delete the caches (``__pycache__/*.nb?``). An installation replaces all files at once.
"""

from __future__ import annotations

from typing import Any

try:
    import numba
    import numba.extending
except ImportError as error:
    message = 'the simulator needs numba: pip install ".[simulate]" in a clone'
    raise ImportError(message) from error

__all__ = ["array_at", "contracted", "inlined", "intrinsic", "kernel", "reassociated"]

# Division by zero is inf, as in NumPy; other threads run meanwhile.
kernel: Any = numba.njit(cache=True, error_model="numpy", nogil=True)
# For functions with one or two callers that are given tuples of many arrays in every step: passing these costs more than the work.
inlined: Any = numba.njit(cache=True, error_model="numpy", forceinline=True)
# For inner products: the compiler may add in another order, which it chooses once; 4 times as fast.
reassociated: Any = numba.njit(
    cache=True, error_model="numpy", forceinline=True, fastmath={"reassoc", "contract", "nsz"}
)
# For arithmetic in which a product and a sum may be one instruction, but nothing changes places.
contracted: Any = numba.njit(cache=True, error_model="numpy", forceinline=True, fastmath={"contract"})
intrinsic: Any = numba.extending.intrinsic
array_at: Any = vars(numba)["carray"]  # the numbers at a pointer
