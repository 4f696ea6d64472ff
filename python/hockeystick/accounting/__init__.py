"""From what is released to what it leaks: the accountant, and functions that answer for one kind of training."""

from __future__ import annotations

import hockeystick.accounting.private_selection  # noqa: F401, teaches `renyi_divergence` the divergences of a selection
from hockeystick._checks.doors import open_room
from hockeystick.accounting.accountant import *
from hockeystick.accounting.brackets import *
from hockeystick.accounting.calibration import *
from hockeystick.accounting.dpsgd import *
from hockeystick.accounting.gaussian_dp import *
from hockeystick.accounting.group_accountant import *
from hockeystick.accounting.pld import *
from hockeystick.accounting.shuffled_batches import *
from hockeystick.accounting.zcdp import *

open_room(__name__)
