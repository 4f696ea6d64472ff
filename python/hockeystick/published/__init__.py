"""Formulas exactly as printed in papers, kept for comparison. Never plan or report privacy with these.

Those whose proofs fail emit `UnsoundBoundWarning`; each docstring shows the counterexample. Others are sound and loose, and
say so. What holds, under the same names, is in `hockeystick.last_iterate`, `hockeystick.federated`, `hockeystick.isrl`,
`hockeystick.distortion` and `hockeystick.utility`. Nothing outside this package calls it but `hockeystick.utility.analyses`, to
show it beside what holds, and what asks `statement`, which says of every statement of five papers what it is worth.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.published.contraction import *
from hockeystick.published.federated_fdp import *
from hockeystick.published.inter_silo import *
from hockeystick.published.parameter_distortion import *
from hockeystick.published.shuffled_messages import *
from hockeystick.published.statements import *
from hockeystick.published.warning import *

open_room(__name__)
