"""Published numbers of random allocation and of shuffles."""

from __future__ import annotations

import hockeystick as hs
from published_numbers.value import Ends, Value, epsilon

ALLOCATION = "Feldman and Shenfeld 2025 (2502.08202); computed by moshenfeld/random_allocation"
LOSSES = "Feldman and Shenfeld 2026 (2602.17284); computed by PLD_accounting 2.0"
CLONES = "Feldman, McMillan and Talwar 2021 (2012.12803); apple/ml-shuffling-amplification, README.md"


def shuffled_batches() -> Ends:
    """Return the ends of delta of one epoch of 1000 shuffled batches."""
    return hs.shuffled_batches_delta_bracket(4.0, noise_multiplier=0.35, num_batches=1000)[:2]


VALUES = [
    Value(
        "one of 10,000 steps, Gaussian noise 1: ε at δ = 1e-8",
        ALLOCATION + ", decomposition",
        "0.10332446144616078",
        "upper bound",
        epsilon(1e-8, (hs.RandomAllocation(hs.Gaussian(1.0), 10_000), 1)),
    ),
    Value(
        "the same",
        ALLOCATION + ", recursion",
        "0.08468382763022633",
        "upper bound",
        epsilon(1e-8, (hs.RandomAllocation(hs.Gaussian(1.0), 10_000), 1)),
    ),
    Value(
        "the same",
        LOSSES,
        "0.06238058394935577",
        "upper bound",
        epsilon(1e-8, (hs.RandomAllocation(hs.Gaussian(1.0), 10_000), 1)),
    ),
    Value(
        "the same",
        LOSSES,
        "0.058673123507438286",
        "lower bound",
        epsilon(1e-8, (hs.RandomAllocation(hs.Gaussian(1.0), 10_000), 1)),
    ),
    Value(
        "one of 1024 steps, Gaussian noise .6: ε at δ = 1e-6",
        LOSSES,
        "2.054845472130232",
        "upper bound",
        epsilon(1e-6, (hs.RandomAllocation(hs.Gaussian(0.6), 1024), 1)),
    ),
    Value(
        "8 of 1024 steps, Gaussian noise .6: ε at δ = 1e-6",
        ALLOCATION + ", direct",
        "7.844514041220686",
        "upper bound",
        epsilon(1e-6, (hs.RandomAllocation(hs.Gaussian(0.6), 1024, 8), 1)),
    ),
    Value(
        "one of 1000 steps, Laplace noise 1: ε at δ = 1e-5",
        LOSSES,
        "0.1473",
        "upper bound",
        epsilon(1e-5, (hs.RandomAllocation(hs.Laplace(1.0), 1000), 1)),
    ),
    Value(
        "1000 shuffled batches, one epoch, noise .35: δ at ε = 4",
        "Chua et al. 2024 (2403.17673), the formula of ShuffleAccountant in google-research, dpsgd_batch_sampler_accounting",
        "0.3834052688765431",
        "lower bound",
        shuffled_batches,
    ),
    Value(
        "100,000 reports, each 4-locally private, shuffled: ε at δ = 1e-6",
        CLONES + ", closed form",
        "0.5378040242374512",
        "upper bound",
        epsilon(1e-6, (hs.Shuffled(4.0, 100_000), 1), adjacency="replace"),
    ),
    Value(
        "the same",
        CLONES + ", numerical",
        "0.172790550755978",
        "upper bound",
        epsilon(1e-6, (hs.Shuffled(4.0, 100_000), 1), adjacency="replace"),
    ),
]
