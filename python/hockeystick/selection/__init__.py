"""Mechanisms that choose: which query is above a threshold, which score is the largest, which groups are shown, what votes decide.

Those that are a mechanism go into `Accountant.compose`. What holds for the data at hand alone is no mechanism, and has a type of its own.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.selection.noisy_maximum import *
from hockeystick.selection.partitions import *
from hockeystick.selection.sparse_vector import *
from hockeystick.selection.votes import *

open_room(__name__)
