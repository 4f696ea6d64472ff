"""Mechanisms: what one step of an algorithm releases. Immutable, hashable, picklable; the repr rebuilds them.

`noise_multiplier` is the noise's standard deviation (Laplace: scale) over the sensitivity to adding or removing a
record. Under ``adjacency="replace"`` the sensitivity is twice that: the library shifts by 2/noise_multiplier itself.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.mechanisms.base import Mechanism
from hockeystick.mechanisms.discrete import ApproximateDP, Discrete, DiscretePairs, RandomizedResponse
from hockeystick.mechanisms.dominating import Dominating
from hockeystick.mechanisms.gaussian_mixture import MixtureOfGaussians
from hockeystick.mechanisms.integer_noise import (
    DiscreteGaussian,
    DiscreteGaussianVector,
    DiscreteLaplace,
    DistributedDiscreteGaussian,
    Skellam,
)
from hockeystick.mechanisms.noise import Gaussian, Laplace, Staircase, TruncatedLaplace
from hockeystick.mechanisms.privacy_profile import PrivacyProfile
from hockeystick.mechanisms.renyi_bounded import PrivateSelection, RenyiDP, ZeroConcentratedDP
from hockeystick.mechanisms.sampled import (
    Composed,
    FixedSizeSampled,
    PoissonSampled,
    RandomAllocation,
    TruncatedPoissonSampled,
)
from hockeystick.mechanisms.selection import ExponentialMechanism, PermuteAndFlip
from hockeystick.mechanisms.shuffled import Shuffled
from hockeystick.mechanisms.trade_off_function import TradeOff

__all__ = [
    "ApproximateDP",
    "Composed",
    "Discrete",
    "DiscreteGaussian",
    "DiscreteGaussianVector",
    "DiscreteLaplace",
    "DiscretePairs",
    "DistributedDiscreteGaussian",
    "Dominating",
    "ExponentialMechanism",
    "FixedSizeSampled",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "MixtureOfGaussians",
    "PermuteAndFlip",
    "PoissonSampled",
    "PrivacyProfile",
    "PrivateSelection",
    "RandomAllocation",
    "RandomizedResponse",
    "RenyiDP",
    "Shuffled",
    "Skellam",
    "Staircase",
    "TradeOff",
    "TruncatedLaplace",
    "TruncatedPoissonSampled",
    "ZeroConcentratedDP",
]


open_room(__name__)
