"""The compiled loops of the simulator: the only modules that import numba.

Machine code is cached on disk beside each file. A cache knows only its own file's age: after a change to a function that
kernels of another file call, delete the caches (``__pycache__/*.nb?``). An installation replaces all files at once.
"""

from __future__ import annotations

from typing import Any

try:
    import numba
    import numba.cpython.unsafe.numbers
    import numba.extending
except ImportError as error:
    message = 'the simulator needs numba: pip install ".[simulate]" in a clone'
    raise ImportError(message) from error

__all__ = ["array_at", "contracted", "inlined", "intrinsic", "kernel", "njit", "reassociated", "same_bits", "spliced"]

njit: Any = vars(numba)["njit"]  # of whose options the stubs know some

# Division by zero is inf, as in NumPy; other threads run meanwhile.
kernel: Any = njit(cache=True, error_model="numpy", nogil=True, no_cfunc_wrapper=True)
inlined: Any = njit(cache=True, error_model="numpy", forceinline=True, no_cfunc_wrapper=True)
# For parts of a loop that are given tuples of many arrays: their text becomes the caller's, and is compiled once, in it. Passing the
# tuples would cost more than the work in every step, and most of the time to compile.
spliced: Any = njit(cache=True, error_model="numpy", inline="always", no_cfunc_wrapper=True)
# For inner products: the compiler may add in another order, which it chooses once; 4 times as fast.
reassociated: Any = njit(cache=True, error_model="numpy", forceinline=True, fastmath={"reassoc", "contract", "nsz"})
# For arithmetic in which a product and a sum may be one instruction, but nothing changes places.
contracted: Any = njit(cache=True, error_model="numpy", forceinline=True, fastmath={"contract"})
intrinsic: Any = numba.extending.intrinsic
array_at: Any = vars(numba)["carray"]  # the numbers at a pointer
same_bits: Any = numba.cpython.unsafe.numbers.viewer  # as another type
