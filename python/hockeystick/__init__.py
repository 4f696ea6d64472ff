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
        audit,
        correlated_noise,
        distortion,
        federated,
        isrl,
        last_iterate,
        published,
        risk,
        selection,
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
    from hockeystick.mechanisms.premises import Premises
    from hockeystick.training import *

__all__ = [
    "Accountant",
    "ApproximateDP",
    "Bracket",
    "BudgetExceededError",
    "ClientCharge",
    "ClientLedgers",
    "Composed",
    "Discrete",
    "DiscreteGaussian",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
    "DiscretePairs",
    "DistributedDiscreteGaussian",
    "Dominating",
    "DpsgdParameters",
    "Explanation",
    "ExponentialMechanism",
    "FederatedParameters",
    "FixedSizeSampled",
    "Gaussian",
    "GaussianFilter",
    "ImplausibleSettingWarning",
    "IndividualFilter",
    "Laplace",
    "MixtureOfGaussians",
    "PermuteAndFlip",
    "PlannedFilter",
    "PoissonSampled",
    "Premises",
    "PrivacyLossDistribution",
    "PrivacyProfile",
    "PrivateSelection",
    "RandomAllocation",
    "RandomizedResponse",
    "RenyiDP",
    "RenyiFilter",
    "RenyiOdometer",
    "ShiftedInterpolation",
    "Shuffled",
    "Skellam",
    "Staircase",
    "TradeOff",
    "TruncatedLaplace",
    "TruncatedPoissonSampled",
    "ZeroConcentratedDP",
    "ZeroConcentratedFilter",
    "ZeroConcentratedOdometer",
    "__version__",
    "audit",
    "calibrate",
    "contraction_coefficient",
    "contraction_sum",
    "correlated_noise",
    "distortion",
    "dpsgd_certificate",
    "dpsgd_delta",
    "dpsgd_epsilon",
    "dpsgd_noise_multiplier",
    "dpsgd_parameters",
    "dpsgd_sampling_rate",
    "dpsgd_steps",
    "draw_batches",
    "draw_participants",
    "federated",
    "federated_parameters",
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
    "group_accountant",
    "group_epsilon",
    "isrl",
    "laplace_theta",
    "last_iterate",
    "log_q",
    "log_theta",
    "nonlinear_contraction",
    "privacy_statement",
    "published",
    "q",
    "q_inv",
    "risk",
    "selection",
    "shifted_interpolation",
    "show_config",
    "shuffled_batches_delta_bracket",
    "shuffled_batches_epsilon_bracket",
    "theta",
    "theta_inverse",
    "utility",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]

# Rooms beside those above: `from hockeystick import *` does not load them.
_SUBMODULES = frozenset({"cli", "figures", "interop", "plot", "report", "simulate", "sweep"})

# Where the names above are defined, the lowest first: a room imports those below it anyway.
_ROOMS = (
    "_config",
    "kernels",
    "_checks.setting_warnings",
    "_numeric",
    "mechanisms",
    "mechanisms.premises",
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
        if name in _SUBMODULES or name in _ROOMS or name in __all__:
            with _LOADING:
                return _load(name)
        unknown_name = importlib.import_module("hockeystick._checks.hints").unknown_name
        raise AttributeError(unknown_name("module 'hockeystick'", name, __dir__()))


def _load(name: str) -> Any:
    for room in _ROOMS:
        module = importlib.import_module(f"hockeystick.{room}")
        if name in module.__all__:
            globals()[name] = getattr(module, name)
            return globals()[name]
        if name == room:
            return module
    return importlib.import_module(f"hockeystick.{name}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
