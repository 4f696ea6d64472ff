"""The questions that peers.py asks, what is known about their answers, and the goals.

The references of DP-SGD were computed by connecting the dots and an exponentially tilted Fourier transform, extrapolated in the
interval, and agree with two of the peers; W4 and W5 are what the finest settings of the peers agree on. An answer cannot be
called more accurate than its reference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import accountants
import numpy as np

MEGABYTES = 100.0
RATES = {"(steps, eps) → delta": 3e5, "(steps, delta) → eps": 5e4}  # least warm cells per second


@dataclass(frozen=True)
class Question:
    """One question that several accountants can answer."""

    title: str
    way: str  # the accountants' method
    exact: float | None = None
    known: float = 0.0  # relative error of `exact`
    allowed: float = 0.0  # how far the ends of the peers may be off
    goals: dict[tuple[str, str], float] = field(default_factory=dict)  # (peer, instruction set) -> least ratio
    slow: bool = False  # takes the peers seconds

    def digits(self, value: float) -> float | None:
        """Return the correct decimal digits of an answer, at most those of the reference."""
        if self.exact is None:
            return None
        return -math.log10(max(abs(value / self.exact - 1), self.known))


QUESTIONS = {
    "W1": Question("W1: a million deltas of one Gaussian", "deltas"),
    "A": Question(
        "A: eps(1e-5), sigma = 1, q = 0.01, T = 1000",
        "epsilon",
        *(1.8282367, 5e-7, 0.011),
        goals={
            ("dp_accounting", "v4"): 1000,
            ("dp_accounting", "v3"): 500,
            ("opacus PRV", "v4"): 150,
            ("opacus PRV", "v3"): 75,
        },
    ),
    "B": Question("B: eps(1e-5), sigma = 0.8, q = 256/60000, T = 14040", "epsilon", 4.5460088, 3e-7, 0.011),
    "C": Question("C: eps(1e-5), sigma = 0.7, q = 0.001, T = 1e5", "epsilon", 3.6484285, 3e-7, 0.011),
    "W3": Question("W3: eps(1e-5), sigma (16), T (4), q (3)", "grid", goals={("dp_accounting", "v4"): 2500}, slow=True),
    "W4": Question(
        "W4: eps(1e-6), 1000 Gaussians and 100 Laplace",
        "mixed",
        *(4.6502, 5e-5, 1e-3),
        goals={("dp_accounting", "v4"): 500},
        slow=True,
    ),
    "W5": Question(
        "W5: least sigma for eps = 2, delta = 1e-6, q = 0.01, T = 5000",
        "noise",
        *(1.7477, 3e-5, 0.05),
        goals={("dp_accounting", "v4"): 200},
        slow=True,
    ),
}
DEPTHS = (3.0, 5.0, 7.0, 9.0, 12.0)  # eps at which delta of a Gaussian with mu = 1 is asked for


def exact_delta(eps: float, mu: float) -> Any:
    """Return the delta of a Gaussian with 50 digits (Balle and Wang 2018)."""
    import mpmath  # noqa: PLC0415 - dp_accounting brings it

    with mpmath.workdps(50):
        e, m = mpmath.mpf(eps), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def worst_digits(deltas: Any, sample: int = 100) -> float:
    """Return the least correct digits among the first deltas of W1 that are no underflow."""
    sigma, eps = accountants.pairs()
    errors = [
        abs(float(delta / exact - 1))
        for delta, exact in zip(deltas[:sample], map(exact_delta, eps[:sample], 1 / sigma[:sample]), strict=True)
        if exact > np.finfo(float).tiny
    ]
    return -math.log10(max(*errors, 1e-16))
