"""Descriptions of a training, of one data set or of many clients, that an accountant can answer for."""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.training.adaptive_clipping import *
from hockeystick.training.dpsgd_setup import *
from hockeystick.training.federated_setup import *
from hockeystick.training.participation import *
from hockeystick.training.user_level import *

open_room(__name__)
