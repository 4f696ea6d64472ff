"""What private training costs in utility, and which setting of a training a budget is best spent on.

The trusted aggregator's risk and privacy together (Asoodeh, Chen, Calmon and Ozgur 2021), and `plan`, over all trust models.
The risk bounds and rates of inter-silo privacy are in `hockeystick.isrl`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockeystick._checks.doors import keep_module
from hockeystick._checks.hints import missing
from hockeystick.utility.comparison import compare
from hockeystick.utility.comparison_rows import Comparison, Row
from hockeystick.utility.planning import Plan, Setting, plan
from hockeystick.utility.random_stop import random_stop_excess_risk_rate
from hockeystick.utility.random_stop_convex import random_stop_excess_risk_convex
from hockeystick.utility.rates import RatePair, RiskRates, risk_rates
from hockeystick.utility.side_by_side import Analyses, Analysis, analyses
from hockeystick.utility.trusted_aggregator import trusted_aggregator_delta, trusted_aggregator_excess_risk

__all__ = [
    "Analyses",
    "Analysis",
    "Comparison",
    "Plan",
    "RatePair",
    "RiskRates",
    "Row",
    "Setting",
    "analyses",
    "compare",
    "plan",
    "random_stop_excess_risk_convex",
    "random_stop_excess_risk_rate",
    "risk_rates",
    "trusted_aggregator_delta",
    "trusted_aggregator_excess_risk",
]


def __dir__() -> list[str]:
    return sorted(__all__)


keep_module(__name__)
if not TYPE_CHECKING:
    __getattr__ = missing(__name__, __dir__)
