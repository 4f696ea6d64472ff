"""What this installation is and how it runs here."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import hockeystick._core as core
from hockeystick._checks import thread_count
from hockeystick._checks.doors import open_room

__all__ = ["get_cmake_dir", "get_include", "show_config"]


def show_config() -> dict[str, str | int]:
    """Return the version, the instruction set of the kernels and the number of threads used by default.

    The environment variable HOCKEYSTICK_ISA (v3, v4: levels of x86-64; portable) forces an instruction set when it
    is set before the import.

    Returns
    -------
    dict
        With the keys "version", "instruction_set", "instruction_sets" (all that this build has and this machine runs), "threads"
        and "numpy". An installation from source has the best set of the machine that compiled it, v3 and the portable one; with
        ``pip install -C cmake.define.HOCKEYSTICK_LEVELS=all`` it has all, as wheels do.

    Examples
    --------
    >>> import hockeystick as hs
    >>> sorted(hs.show_config())
    ['instruction_set', 'instruction_sets', 'numpy', 'threads', 'version']
    """
    return {
        "version": core.__version__,
        "instruction_set": core.instruction_set,
        "instruction_sets": core.instruction_sets(),
        "threads": thread_count(None),
        "numpy": np.__version__,
    }


def get_include() -> str:
    """Return the folder of the C++ headers and of hockeystick/c_api.h, for a compiler's include path.

    It holds pocketfft too, which ``hockeystick/pld.hpp`` and ``hockeystick/accountant.hpp`` include: no other folder is needed.

    Returns
    -------
    str
        An absolute path.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from pathlib import Path
    >>> (Path(hs.get_include()) / "hockeystick" / "hockeystick.hpp").exists()
    True
    """
    return str(Path(core.__file__).parent / "include")


def get_cmake_dir() -> str:
    """Return the folder that ``find_package(hockeystick CONFIG)`` needs as hockeystick_DIR.

    Returns
    -------
    str
        An absolute path.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from pathlib import Path
    >>> (Path(hs.get_cmake_dir()) / "hockeystickConfig.cmake").exists()
    True
    """
    return str(Path(core.__file__).parent / "lib" / "cmake" / "hockeystick")


open_room(__name__)
