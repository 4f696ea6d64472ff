"""What private training costs in utility, and which setting of a training a budget is best spent on.

The trusted aggregator's risk and privacy together (Asoodeh, Chen, Calmon and Ozgur 2021), and `plan`, over all trust models.
The risk bounds and rates of inter-silo privacy are in `hockeystick.isrl`.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.utility.aggregator_risk import (
    random_stop_excess_risk_convex,
    random_stop_excess_risk_rate,
    trusted_aggregator_delta,
    trusted_aggregator_excess_risk,
)
from hockeystick.utility.comparison import Comparison, Row, compare
from hockeystick.utility.planning import Plan, plan
from hockeystick.utility.risk_rates import RatePair, RiskRates, risk_rates
from hockeystick.utility.settings import Setting
from hockeystick.utility.side_by_side import Analyses, Analysis, analyses

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

open_room(__name__)
