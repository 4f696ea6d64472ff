"""A compiled privacy accountant: hockey-stick divergences, exact or certified, at any depth."""

from __future__ import annotations

try:
    from hockeystick._core import __version__
except ModuleNotFoundError as error:  # e.g. run from the source tree
    if error.name == "hockeystick._core":
        error.msg += ". Did you forget to compile hockeystick? Run `pip install .` in its source tree."
    raise

from hockeystick import audit, federated, last_iterate, published
from hockeystick._config import show_config
from hockeystick._explain import Explanation
from hockeystick.accounting import Accountant
from hockeystick.calibration import calibrate
from hockeystick.contraction import ShiftedInterpolation, contraction_sum, shifted_interpolation
from hockeystick.dpsgd import (
    dpsgd_delta,
    dpsgd_epsilon,
    dpsgd_noise_multiplier,
    dpsgd_sampling_rate,
    dpsgd_steps,
)
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
    FixedSizeSampled,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PoissonSampled,
    RandomizedResponse,
    TruncatedPoissonSampled,
)
from hockeystick.pld import Bracket, PrivacyLossDistribution
from hockeystick.training import DpsgdParameters, dpsgd_parameters

__all__ = [
    "Accountant",
    "ApproximateDP",
    "Bracket",
    "Discrete",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DpsgdParameters",
    "Explanation",
    "FixedSizeSampled",
    "Gaussian",
    "Laplace",
    "MixtureOfGaussians",
    "PoissonSampled",
    "PrivacyLossDistribution",
    "RandomizedResponse",
    "ShiftedInterpolation",
    "TruncatedPoissonSampled",
    "__version__",
    "audit",
    "calibrate",
    "contraction_sum",
    "dpsgd_delta",
    "dpsgd_epsilon",
    "dpsgd_noise_multiplier",
    "dpsgd_parameters",
    "dpsgd_sampling_rate",
    "dpsgd_steps",
    "federated",
    "gaussian_epsilon",
    "gdp_advantage",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_rdp",
    "gdp_trade_off",
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
]
