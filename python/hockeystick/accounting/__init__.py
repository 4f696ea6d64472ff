"""From what is released to what it leaks: the accountant, and functions that answer for one kind of training."""

from __future__ import annotations

import hockeystick.accounting.private_selection  # noqa: F401, teaches `renyi_divergence` the divergences of a selection
from hockeystick._checks.doors import open_room
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.brackets import Bracket, Explanation
from hockeystick.accounting.calibration import calibrate
from hockeystick.accounting.dpsgd import (
    dpsgd_certificate,
    dpsgd_delta,
    dpsgd_epsilon,
    dpsgd_noise_multiplier,
    dpsgd_sampling_rate,
    dpsgd_steps,
)
from hockeystick.accounting.gaussian_dp import gdp_advantage, gdp_delta, gdp_epsilon, gdp_rdp, gdp_trade_off
from hockeystick.accounting.group_accountant import group_accountant, group_epsilon
from hockeystick.accounting.pld import PrivacyLossDistribution
from hockeystick.accounting.shuffled_batches import shuffled_batches_delta_bracket, shuffled_batches_epsilon_bracket
from hockeystick.accounting.zcdp import zcdp_delta, zcdp_epsilon, zcdp_rho
from hockeystick.mechanisms.premises import Premises

__all__ = [
    "Accountant",
    "Bracket",
    "Explanation",
    "Premises",
    "PrivacyLossDistribution",
    "calibrate",
    "dpsgd_certificate",
    "dpsgd_delta",
    "dpsgd_epsilon",
    "dpsgd_noise_multiplier",
    "dpsgd_sampling_rate",
    "dpsgd_steps",
    "gdp_advantage",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_rdp",
    "gdp_trade_off",
    "group_accountant",
    "group_epsilon",
    "shuffled_batches_delta_bracket",
    "shuffled_batches_epsilon_bracket",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_rho",
]


open_room(__name__)
