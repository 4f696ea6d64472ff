"""numba: the kernels inside ``@njit``, on numbers and on arrays, as in Python.

.. code-block:: python

    @numba.njit(parallel=True)
    def total(eps, r):
        return hs.theta(eps, r).sum()

numba finds `register` by its entry point; nothing needs to be imported. The functions are the compiled ones, called by
address: compiled code may be cached, and takes no GIL.
"""

from __future__ import annotations

from typing import Any

import hockeystick.kernels as ufuncs
from hockeystick._checks.hints import needs

with needs("numba", "hockeystick.interop.numba needs numba"):
    from llvmlite import binding
    from numba import types, vectorize
    from numba.extending import get_cython_function_address, overload

__all__ = ["register"]

UNARY = ("q", "log_q", "q_inv")
BINARY = ("theta", "log_theta", "laplace_theta", "theta_inverse", "gaussian_epsilon")


def register() -> None:
    """Teach numba the kernels; numba calls it before it compiles anything."""
    for name in UNARY:
        _overload_unary(getattr(ufuncs, name), _external(name, 1))
    for name in BINARY:
        _overload_binary(getattr(ufuncs, name), _external(name, 2))


def _external(name: str, arguments: int) -> Any:
    """Return a kernel as a function that numba links by its name."""
    symbol = f"hockeystick_{name}"
    binding.add_symbol(symbol, get_cython_function_address("hockeystick.kernels", name))
    return types.ExternalFunction(symbol, types.float64(*[types.float64] * arguments))


def _overload_unary(ufunc: Any, kernel: Any) -> None:
    @vectorize
    def elementwise(x):  # type: ignore[no-untyped-def]
        return kernel(x)

    @overload(ufunc)
    def compiled(x):  # type: ignore[no-untyped-def]
        del x
        return lambda x: elementwise(x)  # noqa: PLW0108, numba compiles the lambda


def _overload_binary(ufunc: Any, kernel: Any) -> None:
    @vectorize
    def elementwise(x, y):  # type: ignore[no-untyped-def]
        return kernel(x, y)

    @overload(ufunc)
    def compiled(x, y):  # type: ignore[no-untyped-def]
        del x, y
        return lambda x, y: elementwise(x, y)  # noqa: PLW0108
