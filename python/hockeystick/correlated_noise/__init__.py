"""Noise that is correlated between steps: matrix mechanisms, banded ones with sampling, and tree aggregation.

Each step t adds up clipped updates into x_t; what is released, or could be computed from the releases, is C x + z, with
a strategy matrix C and independent normal entries of z. One record is in some of the steps, and moves x there by vectors
of norm at most the clip norm. C x then moves by at most the sensitivity times the clip norm, and the whole training is one
Gaussian mechanism, however many steps it has.

Assumptions of all functions here:

- A record takes part in steps that are known or do not depend on the data, in a pattern as described. A training must enforce
  that; `check_participants` tells afterwards.
- Adjacency "add_or_remove" means that the record's updates are there or are zero, while the batches of all others stay as they are
  (zero-out), but for `cyclic_truncated_poisson`, which has a parameter for it. Under "replace" its updates become others in the same steps; the accountant takes twice the sensitivity.
- Updates may be chosen by earlier releases, if what belongs to a row of C is not released before the step of the row's last
  non-zero entry, as in a lower triangular matrix or a tree. Proof: given the past, a step's releases are Gaussians at a known
  distance; squared distances add up to at most the squared sensitivity on every path; this is what `GaussianFilter` shows to suffice.
  (Denisov et al. 2022, arXiv 2202.08312, Theorem 2.1.)
"""

from __future__ import annotations

from hockeystick._checks.doors import open_room
from hockeystick.correlated_noise.amplified import AmplifiedGuarantee
from hockeystick.correlated_noise.balls_in_bins import balls_in_bins
from hockeystick.correlated_noise.conditional import conditional_composition
from hockeystick.correlated_noise.cyclic import check_participants, cyclic_poisson, cyclic_truncated_poisson
from hockeystick.correlated_noise.estimates import (
    DeltaEstimate,
    estimate_balls_in_bins_delta,
    estimate_min_separation_delta,
)
from hockeystick.correlated_noise.min_separation import min_separated_poisson
from hockeystick.correlated_noise.sensitivity import Sensitivity, matrix_sensitivity, tree_sensitivity
from hockeystick.correlated_noise.strategies import (
    buffered_coefficients,
    inverse_sensitivity,
    inverse_square_root_coefficients,
    square_root_coefficients,
    strategy_of_inverse,
    tree_strategy,
)

__all__ = [
    "AmplifiedGuarantee",
    "DeltaEstimate",
    "Sensitivity",
    "balls_in_bins",
    "buffered_coefficients",
    "check_participants",
    "conditional_composition",
    "cyclic_poisson",
    "cyclic_truncated_poisson",
    "estimate_balls_in_bins_delta",
    "estimate_min_separation_delta",
    "inverse_sensitivity",
    "inverse_square_root_coefficients",
    "matrix_sensitivity",
    "min_separated_poisson",
    "square_root_coefficients",
    "strategy_of_inverse",
    "tree_sensitivity",
    "tree_strategy",
]

open_room(__name__)
