"""Privacy leakage and utility under parameter distortion, after Zhang, Chen and Yang 2023.

Nothing here is a differential-privacy guarantee: leakage is how far an averaged belief moves, for an adversary who ignores
the mechanism. The way from a guarantee to a leakage is `ldp_epsilon_for_leakage`; for privacy itself use
`hockeystick.Accountant`. The theorems of the paper that are false are in `hockeystick.published`, with their counterexamples.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.distortion.divergences import *
from hockeystick.distortion.leakage import *
from hockeystick.distortion.sampled_updates import *
from hockeystick.distortion.utility_gaps import *

open_room(__name__)
