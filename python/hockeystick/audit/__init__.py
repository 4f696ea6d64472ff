"""Audits: empirical lower bounds on epsilon and mu from an attack's scores.

An audit runs the algorithm and lets an attack tell two adjacent data sets apart. What the attack achieves, no true bound
can deny: a claimed epsilon below an audit's is refuted with the confidence stated. An audit never shows privacy.

- `evaluate`, `epsilon_lower_bound`, `mu_lower_bound`: many runs, half of them with the record. One score a run.
- `one_run`: one run with many canaries, each included by a fair coin. One score a canary.
- `individual_confidence`: what each of several audits must have for all to hold together.
- `canary_direction`, `canary_pair`: records that show most in linear and logistic models.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.audit.canaries import *
from hockeystick.audit.many_runs import *
from hockeystick.audit.one_run import *

open_room(__name__)
