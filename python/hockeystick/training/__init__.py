"""Descriptions of a training, of one data set or of many clients, that an accountant can answer for."""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.training.adaptive_clipping import adaptive_clipping_noise
from hockeystick.training.dpsgd_setup import DpsgdParameters, dpsgd_parameters, privacy_statement
from hockeystick.training.federated_setup import (
    FederatedParameters,
    federated_parameters,
    secure_aggregation_parameters,
)
from hockeystick.training.participation import draw_batches, draw_participants
from hockeystick.training.user_level import OwnedSelection, UserLevelParameters, bound_owners, user_level_parameters

__all__ = [
    "DpsgdParameters",
    "FederatedParameters",
    "OwnedSelection",
    "UserLevelParameters",
    "adaptive_clipping_noise",
    "bound_owners",
    "dpsgd_parameters",
    "draw_batches",
    "draw_participants",
    "federated_parameters",
    "privacy_statement",
    "secure_aggregation_parameters",
    "user_level_parameters",
]


open_room(__name__)
