"""What may still be spent: filters and odometers for adaptive mechanisms, and a ledger for each client."""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.budgets.client_ledgers import *
from hockeystick.budgets.concentrated import *
from hockeystick.budgets.filters import *
from hockeystick.budgets.individual_filter import *
from hockeystick.budgets.menu_filter import *
from hockeystick.budgets.odometer import *
from hockeystick.budgets.planned_filter import *
from hockeystick.budgets.spending import *

open_room(__name__)
