"""A compiled privacy accountant: hockey-stick divergences, exact or certified, at any depth."""

from __future__ import annotations

import importlib
from types import FunctionType
from typing import TYPE_CHECKING, Any

try:
    from hockeystick._core import __version__
except ModuleNotFoundError as error:  # e.g. run from the source tree
    if error.name == "hockeystick._core":
        error.msg += ". Did you forget to compile hockeystick? Run `pip install .` in its source tree."
    raise

from hockeystick._checks import peers_words
from hockeystick._checks.implausible import ImplausibleSettingWarning
from hockeystick._config import get_cmake_dir, get_include, show_config
from hockeystick._hidden_states.contraction import ShiftedInterpolation, contraction_sum, shifted_interpolation
from hockeystick._hidden_states.finite_kernels import contraction_coefficient, nonlinear_contraction
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.bracket import Bracket
from hockeystick.accounting.calibration import calibrate
from hockeystick.accounting.dpsgd import (
    dpsgd_delta,
    dpsgd_epsilon,
    dpsgd_noise_multiplier,
    dpsgd_sampling_rate,
    dpsgd_steps,
)
from hockeystick.accounting.explanation import Explanation
from hockeystick.accounting.gaussian_dp import gdp_advantage, gdp_delta, gdp_epsilon, gdp_rdp, gdp_trade_off
from hockeystick.accounting.group_accountant import group_accountant, group_epsilon
from hockeystick.accounting.pld import PrivacyLossDistribution
from hockeystick.accounting.shuffled_batches import shuffled_batches_delta, shuffled_batches_epsilon
from hockeystick.accounting.zcdp import zcdp_delta, zcdp_epsilon, zcdp_rho
from hockeystick.budgets.client_ledgers import ClientLedgers
from hockeystick.budgets.client_queries import ClientCharge
from hockeystick.budgets.concentrated_filter import ZeroConcentratedFilter
from hockeystick.budgets.concentrated_odometer import ZeroConcentratedOdometer
from hockeystick.budgets.filters import BudgetExceededError, GaussianFilter, RenyiFilter
from hockeystick.budgets.individual_filter import IndividualFilter
from hockeystick.budgets.odometer import RenyiOdometer
from hockeystick.budgets.planned_filter import PlannedFilter
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
    Composed,
    Discrete,
    DiscreteGaussian,
    DiscreteGaussianVector,
    DiscreteLaplace,
    DiscretePairs,
    DistributedDiscreteGaussian,
    Dominating,
    ExponentialMechanism,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PermuteAndFlip,
    PoissonSampled,
    PrivacyProfile,
    PrivateSelection,
    RandomAllocation,
    RandomizedResponse,
    RenyiDP,
    Shuffled,
    Skellam,
    Staircase,
    TradeOff,
    TruncatedLaplace,
    TruncatedPoissonSampled,
    ZeroConcentratedDP,
)
from hockeystick.mechanisms.premises import Premises
from hockeystick.training.dpsgd_parameters import DpsgdParameters, dpsgd_parameters
from hockeystick.training.federated_parameters import FederatedParameters, federated_parameters
from hockeystick.training.participation import draw_batches, draw_participants
from hockeystick.training.privacy_statement import privacy_statement

if TYPE_CHECKING:
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
    "shuffled_batches_delta",
    "shuffled_batches_epsilon",
    "theta",
    "theta_inverse",
    "utility",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]

# Pickles, tracebacks and pages name them by this module, wherever they are defined.
for _public in map(globals().get, __all__):
    if isinstance(_public, type):
        peers_words.translate_class(_public, methods=_public is Accountant)
        _public.__module__ = __name__
    elif isinstance(_public, FunctionType):
        globals()[_public.__name__] = _public = peers_words.translated(_public, _public.__name__)
        _public.__module__ = __name__

# Loaded when first asked for: together they take longer than all the rest.
_SUBMODULES = frozenset(
    {
        "audit",
        "cli",
        "correlated_noise",
        "distortion",
        "federated",
        "figures",
        "interop",
        "isrl",
        "last_iterate",
        "plot",
        "published",
        "report",
        "risk",
        "selection",
        "simulate",
        "sweep",
        "utility",
    }
)


if not TYPE_CHECKING:  # a type checker would take every name for one that there is

    def __getattr__(name: str) -> Any:
        if name in _SUBMODULES:
            return importlib.import_module(f"hockeystick.{name}")
        raise AttributeError(peers_words.unknown_name("module 'hockeystick'", name, __dir__()))


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
