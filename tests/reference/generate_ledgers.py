"""Write ledgers.json: log delta(eps) of compositions of different mechanisms, one direction a row (needs python-flint).

Each row has `steps`, a list of [mechanism, its parameters, count] with "sampled_gaussian" [noise multiplier, sampling rate],
"gaussian" [noise multiplier] and "laplace" [scale over sensitivity]; `remove`, true where the sampled Gaussians' P is the
mixture; `eps`; and `log_delta` to 34 digits, of which 17 at least are right.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import mpmath as mp
from flint import ctx

import contour_integral as contour
import high_precision as exact
from slow_values import gaussian_beside_laplace_delta

FILE = Path(__file__).parent / "values" / "ledgers.json"
Steps = tuple[tuple[str, tuple[float, ...], int], ...]

SAMPLED: Steps = (
    ("sampled_gaussian", (1.0, 0.01), 500),
    ("sampled_gaussian", (0.8, 0.004), 1000),
    ("sampled_gaussian", (2.0, 0.1), 100),
)
EVERYTHING: Steps = (*SAMPLED, ("gaussian", (10.0,), 10), ("laplace", (20.0,), 50))
NOISES: Steps = (("gaussian", (20.0,), 100), ("laplace", (10.0,), 30), ("laplace", (40.0,), 300))
SMALL_RATES: Steps = (
    ("sampled_gaussian", (0.6, 1e-3), 1000),
    ("sampled_gaussian", (5.0, 0.3), 10),
    ("laplace", (5.0,), 10),
)
ROWS: tuple[tuple[Steps, bool, float], ...] = (
    (SAMPLED, True, 3.0),
    (SAMPLED, False, 3.0),
    (EVERYTHING, True, 2.0),
    (EVERYTHING, False, 2.0),
    (EVERYTHING, True, 9.0),
    (EVERYTHING, True, 0.0),
    (NOISES, True, 1.5),
    (NOISES, True, 6.0),
    (SMALL_RATES, True, 2.5),
    (SMALL_RATES, False, 2.5),
)


def ledger(steps: Steps, *, remove: bool) -> contour.Ledger:
    """Return the composition for the contour integral."""
    make = {
        "sampled_gaussian": lambda sigma, q: contour.SampledGaussian(sigma, q, remove=remove),
        "gaussian": contour.Gaussian,
        "laplace": contour.Laplace,
    }
    return [(make[name](*parameters), count) for name, parameters, count in steps]


def log_delta(steps: Steps, eps: float, *, remove: bool) -> mp.mpf:
    """Return log delta(eps), which is at most log(1/2) in all rows."""
    value = contour.evaluate(ledger(steps, remove=remove), eps, upper=True)
    return mp.log(mp.mpf(value.mid().str(50, radius=False)))


def verify() -> None:
    """Hold the moments of Laplace and Gaussian steps against an integral and a closed form."""
    mixed = mp.exp(log_delta((("gaussian", (0.7,), 1), ("laplace", (2.0,), 1)), 1.0, remove=True))
    normal = mp.exp(log_delta((("gaussian", (6.0,), 9), ("gaussian", (8.0,), 16)), 1.0, remove=True))
    integral = gaussian_beside_laplace_delta(0.7, 2.0, 1.0, 1.0)  # all records are sampled
    for found, expected in ((mixed, integral), (normal, exact.theta(1.0, math.sqrt(0.5)))):
        if abs(found / expected - 1) > 1e-15:
            message = f"{mp.nstr(found, 20)} and {mp.nstr(expected, 20)}"
            raise ArithmeticError(message)


def main() -> None:
    """Verify the method, then write the table."""
    mp.mp.dps, ctx.dps = 50, 60
    verify()
    rows = [
        {"steps": steps, "remove": remove, "eps": eps, "log_delta": mp.nstr(log_delta(steps, eps, remove=remove), 34)}
        for steps, remove, eps in ROWS
    ]
    FILE.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{len(rows)} rows written")


if __name__ == "__main__":
    main()
