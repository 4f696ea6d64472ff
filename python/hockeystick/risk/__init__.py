"""What an attacker can do: the chances of membership, attribute, reconstruction and singling-out attacks, certified.

Every function takes an `Accountant` and bounds what any attack on all that was composed can reach, however strong its
computer and whatever else it knows. The bounds follow from delta(eps) at all eps, that is from the trade-off function:
the argument is in `hockeystick.accounting.privacy_curve`, and each function names its theorem.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.risk.attacks import *

open_room(__name__)
