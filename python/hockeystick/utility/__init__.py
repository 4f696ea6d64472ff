"""What private training costs in utility, and which setting of a training a budget is best spent on.

The trusted aggregator's risk and privacy together (Asoodeh, Chen, Calmon and Ozgur 2021), and `plan`, over all trust models.
The risk bounds and rates of inter-silo privacy are in `hockeystick.isrl`.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.utility.aggregator_risk import *
from hockeystick.utility.comparison import *
from hockeystick.utility.planning import *
from hockeystick.utility.risk_rates import *
from hockeystick.utility.settings import *
from hockeystick.utility.side_by_side import *

open_room(__name__)
