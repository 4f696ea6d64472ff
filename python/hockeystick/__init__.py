"""A compiled privacy accountant: hockey-stick divergences, exact or certified, at any depth."""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any

try:
    from hockeystick._core import __version__
except ModuleNotFoundError as error:  # e.g. run from the source tree
    if error.name == "hockeystick._core":
        error.msg += ". Did you forget to compile hockeystick? Run `pip install .` in its source tree."
    raise

if TYPE_CHECKING:  # what `__getattr__` finds, for those that read and do not run
    from hockeystick import (
        accounting,
        audit,
        budgets,
        correlated_noise,
        distortion,
        federated,
        isrl,
        kernels,
        last_iterate,
        mechanisms,
        published,
        risk,
        selection,
        training,
        utility,
    )
    from hockeystick import cli as cli
    from hockeystick import figures as figures
    from hockeystick import interop as interop
    from hockeystick import plot as plot
    from hockeystick import report as report
    from hockeystick import simulate as simulate
    from hockeystick import sweep as sweep
    from hockeystick._checks.setting_warnings import ImplausibleSettingWarning
    from hockeystick._config import *
    from hockeystick._hidden_states import *
    from hockeystick._numeric import *
    from hockeystick.accounting import *
    from hockeystick.budgets import *
    from hockeystick.kernels import *
    from hockeystick.mechanisms import *
    from hockeystick.training import *

# What most people look for; all else is listed by its room, and found here too if that is one of `_ROOMS`.
__all__ = [
    "Accountant",
    "ApproximateDP",
    "Bracket",
    "DiscreteGaussian",
    "FixedSizeSampled",
    "Gaussian",
    "ImplausibleSettingWarning",
    "Laplace",
    "PoissonSampled",
    "RandomizedResponse",
    "__version__",
    "accounting",
    "audit",
    "budgets",
    "calibrate",
    "correlated_noise",
    "distortion",
    "dpsgd_certificate",
    "dpsgd_delta",
    "dpsgd_epsilon",
    "dpsgd_noise_multiplier",
    "dpsgd_parameters",
    "dpsgd_sampling_rate",
    "dpsgd_steps",
    "federated",
    "format_lower",
    "format_upper",
    "gaussian_epsilon",
    "gdp_advantage",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_rdp",
    "gdp_trade_off",
    "get_cmake_dir",
    "get_include",
    "isrl",
    "kernels",
    "last_iterate",
    "mechanisms",
    "privacy_statement",
    "published",
    "risk",
    "selection",
    "show_config",
    "theta",
    "theta_inverse",
    "training",
    "utility",
]

# Rooms beside those above: `from hockeystick import *` does not load them.
_SUBMODULES = frozenset({"cli", "figures", "interop", "plot", "report", "simulate", "sweep"})

# Whose names are found here, the lowest first: a room imports those below it anyway.
_ROOMS = (
    "_config",
    "kernels",
    "_checks.setting_warnings",
    "_numeric",
    "mechanisms",
    "accounting",
    "training",
    "_hidden_states",
    "budgets",
)


# Two threads that import modules of one package can wait for each other. Python ends that by giving one of them a module that is
# not complete. So one thread loads at a time, and the rooms in one order.
_LOADING = threading.RLock()

if not TYPE_CHECKING:  # a type checker would take every name for one that there is

    def __getattr__(name: str) -> Any:
        """Load what a name needs when it is first asked for: all at once takes longer than NumPy."""
        if name in _ROOMS or not name.startswith("_"):
            with _LOADING:
                return _load(name)
        raise AttributeError(_unknown(name))


def _load(name: str) -> Any:
    rooms = []
    for room in _ROOMS:
        rooms.append(importlib.import_module(f"hockeystick.{room}"))
        if name in rooms[-1].__all__:
            globals()[name] = getattr(rooms[-1], name)
            return globals()[name]
        if name == room:
            return rooms[-1]
    if name in _SUBMODULES or name in __all__:
        return importlib.import_module(f"hockeystick.{name}")
    raise AttributeError(_unknown(name, *(found for room in rooms for found in room.__all__)))


def _unknown(name: str, *more: str) -> str:
    hints = importlib.import_module("hockeystick._checks.hints")
    return str(hints.unknown_name("module 'hockeystick'", name, {*__dir__(), *more}))


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
