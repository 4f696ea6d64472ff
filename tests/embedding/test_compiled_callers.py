"""The kernels from compiled code: capsules, SciPy, numba and Cython."""

import ctypes
import importlib.util
import math
import os
import sys

import numpy as np
import pytest

import hockeystick as hs
import processes
from hockeystick import kernels

UNARY, BINARY = ("q", "log_q", "q_inv"), ("theta", "log_theta", "laplace_theta", "theta_inverse", "gaussian_epsilon")
POINTS = {"q_inv": [0.3], "theta_inverse": [1.0, 0.01], "gaussian_epsilon": [0.7, 1e-6]}


def points(name):
    """Return arguments inside the domain."""
    return POINTS.get(name, [0.7] if name in UNARY else [1.0, 0.8])


def capsule(name, signature, *types):
    """Return the function of a capsule, which is named by its C signature."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(*types)(pointer(kernels.__pyx_capi__[name], signature))


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_capsules(name):
    """A capsule holds the function that the ufunc is."""
    signature = b"double (double)" if name in UNARY else b"double (double, double)"
    function = capsule(name, signature, ctypes.c_double, *[ctypes.c_double] * len(points(name)))
    assert function(*points(name)) == pytest.approx(float(getattr(hs, name)(*points(name))), rel=1e-14)
    assert math.isnan(function(*[math.nan] * len(points(name))))


def test_scipy():
    """SciPy integrates the tail by the capsule: the integral of Q from 0 is one over the root of 2 pi."""
    scipy = pytest.importorskip("scipy")
    integrate = pytest.importorskip("scipy.integrate")
    call = scipy.LowLevelCallable.from_cython(kernels, "q")
    assert integrate.quad(call, 0.0, 40.0)[0] == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-10)


@pytest.mark.slow
def test_numba():
    """Inside njit, on numbers and on arrays, in parallel too, each kernel gives what it gives outside."""
    numba = pytest.importorskip("numba")

    def kernels_of(x, y):
        return hs.theta(x, y), hs.log_theta(x, y), hs.laplace_theta(x, y), hs.theta_inverse(x, 0.01), hs.q(x)

    scalars = numba.njit(kernels_of)
    assert scalars(1.0, 0.8) == pytest.approx(kernels_of(1.0, 0.8), rel=1e-14)
    assert scalars(1, 2)[0] == pytest.approx(float(hs.theta(1.0, 2.0)), rel=1e-14)  # integers are converted

    @numba.njit(parallel=True)
    def loop(eps, r):
        total = 0.0
        for i in numba.prange(eps.size):
            total += hs.theta(eps[i], r)
        return total

    def arrays(eps, r, p):
        return hs.theta(eps, r), hs.q_inv(p), hs.gaussian_epsilon(r, p), hs.log_q(p)

    eps, r, p = np.linspace(0, 5, 50), np.linspace(0.1, 2, 3)[:, None], np.array([1e-6, 0.1, 0.4])
    for ours, outside in zip(numba.njit(arrays)(eps, r, p), arrays(eps, r, p), strict=True):
        assert ours.shape == outside.shape
        assert ours == pytest.approx(outside, rel=1e-13)
    assert loop(eps, 1.0) == pytest.approx(hs.theta(eps, 1.0).sum(), rel=1e-13)


@pytest.mark.parametrize("name", ["q", "log_q", "q_inv", "theta", "log_theta", "laplace_theta"])
def test_batch_capsules(name):
    """The batch form writes what the ufunc gives, bit for bit."""
    inputs = [np.linspace(0.05, 0.95, 37) for _ in points(name)]
    signature = b"void (" + b"double const *, " * len(inputs) + b"double *, size_t)"
    function = capsule(f"{name}_batch", signature, None, *[ctypes.c_void_p] * (len(inputs) + 1), ctypes.c_size_t)
    out = np.empty(37)
    function(*(x.ctypes.data for x in inputs), out.ctypes.data, 37)
    assert out.tolist() == getattr(hs, name)(*inputs).tolist()


SOURCE = """
from hockeystick.kernels cimport theta, q, theta_batch

cpdef void fill(double[::1] eps, double[::1] r, double[::1] out) noexcept nogil:
    theta_batch(&eps[0], &r[0], &out[0], out.shape[0])

cpdef double total(double[::1] eps, double r) noexcept nogil:
    cdef double sum = 0
    cdef Py_ssize_t i
    for i in range(eps.shape[0]):
        sum += theta(eps[i], r)
    return sum + q(0.0)
"""


@pytest.mark.slow
def test_cython(tmp_path):
    """A Cython module cimports the kernels from the shipped declarations."""
    if importlib.util.find_spec("Cython") is None or importlib.util.find_spec("setuptools") is None:
        pytest.skip("Cython or setuptools is not installed")
    (tmp_path / "caller.pyx").write_text(SOURCE, encoding="utf-8")
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "-3", "--inplace", "caller.pyx"]
    processes.run(command, cwd=tmp_path, limit=300, env=os.environ | {"CFLAGS": "-O0"})
    code = """if True:
        import caller, numpy
        eps, out = numpy.linspace(0.0, 5.0, 50), numpy.empty(50)
        caller.fill(eps, numpy.ones(50), out)
        assert abs(caller.total(eps, 1.0) - 0.5 - out.sum()) < 1e-13
        print(repr(caller.total(eps, 1.0)))"""
    assert float(processes.python(code, cwd=tmp_path).stdout) == pytest.approx(
        hs.theta(np.linspace(0.0, 5.0, 50), 1.0).sum() + 0.5, rel=1e-13
    )
