"""Hidden iterates: what the last iterate of projected noisy SGD reveals, adjacency by one record replaced.

`pnsgd_*` are the published theorems of Asoodeh, Diaz and Calmon 2020, "Privacy Amplification of Iterative Algorithms via
Contraction Coefficients". Functions called `best` are the smallest of all certified bounds, by when the record is used: `best` in one
step, `best_cyclic` in every step or every so many, `best_sampled` at random; `best_random_stop` for a random last step.
`chain_delta` is the truth in one dimension, as a certified bracket.
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick._hidden_states import (
    ShiftedInterpolation,
    contraction_coefficient,
    contraction_sum,
    nonlinear_contraction,
    shifted_interpolation,
)
from hockeystick._hidden_states.best import Best
from hockeystick.last_iterate.best import best, best_cyclic, best_random_stop, best_sampled
from hockeystick.last_iterate.chain import chain_delta
from hockeystick.last_iterate.iteration import iteration_rdp, pnsgd_lipschitz
from hockeystick.last_iterate.pnsgd import pnsgd_gaussian, pnsgd_gaussian_random_stop, pnsgd_laplace, pnsgd_rdp
from hockeystick.last_iterate.projection import ball_contraction, projected_contraction

__all__ = [
    "Best",
    "ShiftedInterpolation",
    "ball_contraction",
    "best",
    "best_cyclic",
    "best_random_stop",
    "best_sampled",
    "chain_delta",
    "contraction_coefficient",
    "contraction_sum",
    "iteration_rdp",
    "nonlinear_contraction",
    "pnsgd_gaussian",
    "pnsgd_gaussian_random_stop",
    "pnsgd_laplace",
    "pnsgd_lipschitz",
    "pnsgd_rdp",
    "projected_contraction",
    "shifted_interpolation",
]


open_room(__name__)
