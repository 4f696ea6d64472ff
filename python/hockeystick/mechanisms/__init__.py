"""Mechanisms: what one step of an algorithm releases. Immutable, hashable, picklable; the repr rebuilds them.

`noise_multiplier` is the noise's standard deviation (Laplace: scale) over the sensitivity to adding or removing a
record. Under ``adjacency="replace"`` the sensitivity is twice that: the library shifts by 2/noise_multiplier itself.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.mechanisms.base import Mechanism as Mechanism
from hockeystick.mechanisms.discrete import *
from hockeystick.mechanisms.dominating import *
from hockeystick.mechanisms.gaussian_mixture import *
from hockeystick.mechanisms.integer_noise import *
from hockeystick.mechanisms.noise import *
from hockeystick.mechanisms.privacy_profile import *
from hockeystick.mechanisms.renyi_bounded import *
from hockeystick.mechanisms.sampled import *
from hockeystick.mechanisms.selection import *
from hockeystick.mechanisms.shuffled import *
from hockeystick.mechanisms.trade_off_function import *

open_room(__name__)
