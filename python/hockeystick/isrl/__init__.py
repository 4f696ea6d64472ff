"""Inter-silo record-level differential privacy: budgets, noise, risk bounds and rates.

Lowy and Razaviyayn 2023, "Private Federated Learning Without a Trusted Server: Optimal Algorithms for Convex Losses". Each silo's
transcript is (epsilon, delta)-DP towards everybody else, when one of its records is replaced; other silos' messages may depend on
its earlier ones. Noise comes from `hockeystick.Accountant`, not from the printed constants, which are in
`hockeystick.published`. Arguments have the field's names, with the paper's letters in the docstrings.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.isrl.acceleration import *
from hockeystick.isrl.budgets import *
from hockeystick.isrl.noise import *
from hockeystick.isrl.rates import *
from hockeystick.isrl.recipe import *
from hockeystick.isrl.risk import *
from hockeystick.isrl.rounds_and_steps import *
from hockeystick.isrl.shuffling import *
from hockeystick.isrl.thresholds import *
from hockeystick.isrl.unequal_silos import *
from hockeystick.isrl.vector_sums import *

open_room(__name__)
