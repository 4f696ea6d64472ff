"""Floating-point environments that a caller may have, set by ctypes: rounding modes, and subnormal numbers taken for zero."""

import contextlib
import ctypes
import itertools
import platform
import sys

MACHINE = platform.machine()
AVAILABLE = sys.platform == "linux" and platform.libc_ver()[0] == "glibc" and MACHINE in {"x86_64", "aarch64"}

# Where glibc's fenv_t keeps the control word of doubles, its bits that say how to round, and those that flush.
OFFSET, ROUNDING, FLUSH = {
    "x86_64": (28, {"nearest": 0, "down": 0x2000, "up": 0x4000, "zero": 0x6000}, 0x8040),
    "aarch64": (0, {"nearest": 0, "up": 1 << 22, "down": 2 << 22, "zero": 3 << 22}, 1 << 24),
}.get(MACHINE, (0, {}, 0))
X87 = {"nearest": 0, "down": 0x400, "up": 0x800, "zero": 0xC00}

ALL = list(itertools.product(ROUNDING, (False, True)))
WRONG = [pair for pair in ALL if pair != ("nearest", False)]


class _Fenv(ctypes.Structure):
    _fields_ = (("words", ctypes.c_uint32 * 8),)


@contextlib.contextmanager
def environment(rounding, flush):
    """Let this thread round, and flush subnormal numbers, as told. What is left of the environment is checked at the end."""
    libm = ctypes.CDLL("libm.so.6")
    before, wanted, after = _Fenv(), _Fenv(), _Fenv()
    libm.fegetenv(ctypes.byref(before))
    libm.fegetenv(ctypes.byref(wanted))
    wanted.words[OFFSET // 4] |= ROUNDING[rounding] | (FLUSH if flush else 0)
    if MACHINE == "x86_64":
        wanted.words[0] |= X87[rounding]
    libm.fesetenv(ctypes.byref(wanted))
    try:
        yield
        libm.fegetenv(ctypes.byref(after))
    finally:
        libm.fesetenv(ctypes.byref(before))
    mask = ROUNDING["zero"] | FLUSH
    assert after.words[OFFSET // 4] & mask == wanted.words[OFFSET // 4] & mask, (
        "the caller's environment was not restored"
    )
