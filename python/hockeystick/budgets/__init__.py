"""What may still be spent: filters and odometers for adaptive mechanisms, and a ledger for each client."""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.budgets.client_ledgers import ClientCharge, ClientLedgers
from hockeystick.budgets.concentrated import ZeroConcentratedFilter, ZeroConcentratedOdometer
from hockeystick.budgets.filters import GaussianFilter, RenyiFilter
from hockeystick.budgets.individual_filter import IndividualFilter
from hockeystick.budgets.menu_filter import MenuFilter
from hockeystick.budgets.odometer import RenyiOdometer
from hockeystick.budgets.planned_filter import PlannedFilter
from hockeystick.budgets.spending import BudgetExceededError

__all__ = [
    "BudgetExceededError",
    "ClientCharge",
    "ClientLedgers",
    "GaussianFilter",
    "IndividualFilter",
    "MenuFilter",
    "PlannedFilter",
    "RenyiFilter",
    "RenyiOdometer",
    "ZeroConcentratedFilter",
    "ZeroConcentratedOdometer",
]


open_room(__name__)
