"""Published numbers of noisy SGD on Poisson samples."""

from __future__ import annotations

from value import Ends, Value

import hockeystick as hs


def epsilon(noise: float, rate: float, steps: int, delta: float) -> Ends:
    """Return the ends of epsilon of DP-SGD."""
    return hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate), steps).epsilon_bracket(delta)[:2]


VALUES = [
    Value(
        "DP-SGD, noise 4, rate .01, 10,000 steps: ε at δ = 1e-5",
        "Abadi et al. 2016 (1607.00133), section 5.1 (Figure 2)",
        "1.26",
        "upper bound",
        lambda: epsilon(4.0, 0.01, 10_000, 1e-5),
    ),
]
