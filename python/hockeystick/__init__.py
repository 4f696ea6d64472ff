"""A compiled privacy accountant: hockey-stick divergences, exact or certified, at any depth."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

try:
    from hockeystick._core import __version__
except ModuleNotFoundError as error:  # e.g. run from the source tree
    if error.name == "hockeystick._core":
        error.msg += ". Did you forget to compile hockeystick? Run `pip install .` in its source tree."
    raise

from hockeystick._config import get_cmake_dir, get_include, show_config
from hockeystick._explain import Explanation
from hockeystick.accounting import Accountant
from hockeystick.calibration import calibrate
from hockeystick.clients import ClientCharge, ClientLedgers
from hockeystick.contraction import ShiftedInterpolation, contraction_sum, shifted_interpolation
from hockeystick.deployment import FederatedParameters, federated_parameters
from hockeystick.dpsgd import (
    dpsgd_delta,
    dpsgd_epsilon,
    dpsgd_noise_multiplier,
    dpsgd_sampling_rate,
    dpsgd_steps,
)
from hockeystick.filters import BudgetExceededError, GaussianFilter, RenyiFilter
from hockeystick.gaussian_dp import gdp_advantage, gdp_delta, gdp_epsilon, gdp_rdp, gdp_trade_off
from hockeystick.kernels import (
    gaussian_epsilon,
    laplace_theta,
    log_q,
    log_theta,
    q,
    q_inv,
    theta,
    theta_inverse,
)
from hockeystick.mechanisms import (
    ApproximateDP,
    Discrete,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscretePairs,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PoissonSampled,
    RandomizedResponse,
    TruncatedPoissonSampled,
)
from hockeystick.participation import draw_participants
from hockeystick.pld import Bracket, PrivacyLossDistribution
from hockeystick.training import DpsgdParameters, dpsgd_parameters
from hockeystick.zcdp import zcdp_delta, zcdp_epsilon

if TYPE_CHECKING:
    from hockeystick import audit, distortion, federated, isrl, last_iterate, published, utility

__all__ = [
    "Accountant",
    "ApproximateDP",
    "Bracket",
    "BudgetExceededError",
    "ClientCharge",
    "ClientLedgers",
    "Discrete",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscretePairs",
    "DpsgdParameters",
    "Explanation",
    "FederatedParameters",
    "FixedSizeSampled",
    "Gaussian",
    "GaussianFilter",
    "Laplace",
    "MixtureOfGaussians",
    "PoissonSampled",
    "PrivacyLossDistribution",
    "RandomizedResponse",
    "RenyiFilter",
    "ShiftedInterpolation",
    "TruncatedPoissonSampled",
    "__version__",
    "audit",
    "calibrate",
    "contraction_sum",
    "distortion",
    "dpsgd_delta",
    "dpsgd_epsilon",
    "dpsgd_noise_multiplier",
    "dpsgd_parameters",
    "dpsgd_sampling_rate",
    "dpsgd_steps",
    "draw_participants",
    "federated",
    "federated_parameters",
    "gaussian_epsilon",
    "gdp_advantage",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_rdp",
    "gdp_trade_off",
    "get_cmake_dir",
    "get_include",
    "isrl",
    "laplace_theta",
    "last_iterate",
    "log_q",
    "log_theta",
    "published",
    "q",
    "q_inv",
    "shifted_interpolation",
    "show_config",
    "theta",
    "theta_inverse",
    "utility",
    "zcdp_delta",
    "zcdp_epsilon",
]

# Loaded when first asked for: together they take longer than all the rest.
_SUBMODULES = frozenset(
    {
        "audit",
        "distortion",
        "federated",
        "interop",
        "isrl",
        "last_iterate",
        "plot",
        "published",
        "simulate",
        "sweep",
        "utility",
    }
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"hockeystick.{name}")
    msg = f"module 'hockeystick' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
