"""Write sampled_gaussian.csv and ledgers.json: log delta(eps) of compositions, one direction a row (--check: recompute some rows).

The first has Poisson-sampled Gaussians. Columns: the arguments as doubles that read back exactly (`remove` is 1 where P is the mixture, 0 where Q is), log delta to
34 digits, of which 17 at least are right (1 - delta = -expm1(log delta) has them too), and the relative error of log delta
that is allowed: 1e-9 max(1, |log delta|) up to delta = 1/2, above it the one that makes 1e-9 of 1 - delta.
One step has a closed form, two are an integral over it, more are contour integrals confirmed by a second contour.
Each row of the second has `steps`, a list of [mechanism, its parameters, count] with "sampled_gaussian" [noise multiplier, sampling rate],
"gaussian" [noise multiplier] and "laplace" [scale over sensitivity]; `remove`, as above; `eps`; and `log_delta` to 34 digits, of
which 17 at least are right. Takes a quarter of an hour; needs python-flint.
"""

import argparse
import json
import math
import random
from collections.abc import Iterator
from typing import NamedTuple

import mpmath as mp
from flint import ctx

import contour_integral as contour
import high_precision as exact
import tables
from sampled_gaussian import BY_FFT, NAMED, Cell, few_steps

HEADER = ["noise_multiplier", "sampling_rate", "steps", "remove", "eps", "value", "tolerance"]
TOLERANCE = 1e-9
TARGETS = (1e-3, 1e-5, 1e-8, 1e-12, 1e-20, 1e-40, 1e-80, 1e-150, 1e-300)
COMPLEMENTS = (0.3, 0.1, 1e-3, 1e-9)

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
LEDGERS: tuple[tuple[Steps, bool, float], ...] = (
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


class Answer(NamedTuple):
    """delta and 1 - delta, the smaller of them to all digits."""

    delta: mp.mpf
    complement: mp.mpf

    @property
    def log(self) -> mp.mpf:
        """Log delta from whichever is the smaller."""
        return mp.log(self.delta) if self.delta <= 0.5 else mp.log1p(-self.complement)

    @property
    def tolerance(self) -> float:
        """The allowed relative error of log delta."""
        size = -self.log
        return float(TOLERANCE * (max(1, size) if self.delta <= 0.5 else self.complement / self.delta) / size)


def ledger(cell: Cell) -> contour.Ledger:
    """Return the composition for the contour integral."""
    return [(contour.SampledGaussian(cell.sigma, cell.q, remove=cell.remove), cell.steps)]


def answer(cell: Cell) -> Answer:
    """Return delta(eps) of one row; ArithmeticError where the contour integral takes too many nodes."""
    if cell.steps <= 2:
        with mp.workdps(120):
            delta = few_steps(cell)
            return Answer(delta, 1 - delta)
    upper = log_delta_near(cell) < -math.log(2)
    digits = 60 + math.ceil(math.log10(cell.steps))
    small = mp.mpf(contour.evaluate(ledger(cell), cell.eps, upper=upper, digits=digits).mid().str(50, radius=False))
    return Answer(small, 1 - small) if upper else Answer(1 - small, small)


def log_delta_near(cell: Cell) -> float:
    """Return Laplace's approximation of log delta, good enough to tell which of delta and 1 - delta is small."""
    terms = ledger(cell)
    tilt = contour.bisect(lambda c: contour.saddle(terms, c).eps >= cell.eps, upper=True)
    return contour.saddle(terms, tilt).log_value


def eps_near(cell: Cell, target: float, *, upper: bool) -> float:
    """Return an eps of six digits at which delta (or 1 - delta) is near the target."""
    terms, wanted, sign = ledger(cell), math.log(target), 1 if upper else -1
    tilt = contour.bisect(lambda c: sign * contour.saddle(terms, c).log_value <= sign * wanted, upper=upper)
    return float(f"{contour.saddle(terms, tilt).eps:.6g}")


def named_cells() -> Iterator[Cell]:
    """Cases A, B, C at the deltas above, and both directions from 1 - delta = 1e-3 down to 1e-300."""
    for name, case in NAMED.items():
        for eps in BY_FFT[name]:
            yield Cell(*case, remove=True, eps=eps)
        for remove, target in ((False, 1e-5), (False, 1e-9), (False, 1e-30), (True, 1e-100), (True, 1e-300)):
            cell = Cell(*case, remove=remove, eps=0.0)
            yield cell._replace(eps=eps_near(cell, target, upper=True))
        yield from (Cell(*case, remove=remove, eps=eps) for remove in (True, False) for eps in (0.0, 0.25))


def few_step_cells(rng: random.Random) -> Iterator[Cell]:
    """One and two steps, small sampling rates and large losses included: what a contour cannot resolve."""
    for sigma, q in ((0.3, 0.9), (0.5, 1e-5), (1.0, 0.01), (4.0, 0.2), (50.0, 1e-3)):
        for steps in (1, 2):
            for remove in (True, False):
                bound = (8 / sigma + 0.5 / sigma**2 + max(0.0, math.log(q) + 1)) if remove else -math.log1p(-q) * steps
                yield Cell(sigma, q, steps, remove, float(f"{bound * rng.uniform(0.05, 0.6):.6g}"))


def large_delta_cells() -> Iterator[Cell]:
    """Delta from 0.7 to 1 - 1e-9, where losses are large enough for that."""
    for case in ((1.0, 0.5, 1000), (0.5, 0.1, 10_000), (3.0, 0.05, 1_000_000), (40.0, 0.9, 1_000_000)):
        for complement in COMPLEMENTS:
            for remove in (True, False):
                cell = Cell(*case, remove=remove, eps=0.0)
                yield cell._replace(eps=eps_near(cell, complement, upper=False))


def random_cells(rng: random.Random) -> Iterator[Cell]:
    """Cells all over the domain whose losses are neither negligible nor enormous."""
    while True:
        sigma = float(f"{math.exp(rng.uniform(math.log(0.3), math.log(50))):.3g}")
        q = float(f"{math.exp(rng.uniform(math.log(1e-5), math.log(0.9))):.3g}")
        steps = rng.choice((3, 10, 100, 1000, 10_000, 100_000, 1_000_000, 1_000_000_000))
        divergence = steps * q * q * math.expm1(min(700, sigma**-2))
        remove, upper = rng.random() < 0.5, rng.random() < 0.75
        target = rng.choice(TARGETS if upper else COMPLEMENTS)
        if not 1e-7 < divergence < 1e3 or steps * sigma**2 < 4:
            continue
        cell = Cell(sigma, q, steps, remove, 0.0)
        try:
            eps = eps_near(cell, target, upper=upper)
        except ArithmeticError:  # beyond the largest loss, nearly
            continue
        if eps > 0:
            yield cell._replace(eps=eps)


def cells(count: int) -> Iterator[tuple[Cell, Answer]]:
    """Yield all rows; random cells too hard for the contour are passed over."""
    rng = random.Random("sampled_gaussian")
    for cell in (*named_cells(), *few_step_cells(rng), *large_delta_cells()):
        yield cell, answer(cell)
    for cell in random_cells(rng):
        try:
            found = answer(cell)
        except ArithmeticError:
            continue
        yield cell, found
        count -= 1
        if not count:
            return


def verify() -> None:
    """Hold the contour against the closed form of a sampling rate of 1, and the integrals over one step and two."""
    for cell in (
        Cell(20.0, 1.0, 1000, remove=False, eps=1.5),
        Cell(6.0, 0.3, 1, remove=True, eps=0.2),
        Cell(4.0, 0.5, 2, remove=False, eps=0.4),
    ):
        found = mp.mpf(contour.evaluate(ledger(cell), cell.eps, upper=True).mid().str(40, radius=False))
        truth = answer(cell).delta if cell.q < 1 else exact.theta(cell.eps, mp.sqrt(cell.steps) / cell.sigma)
        if abs(found / truth - 1) > mp.mpf("1e-17"):
            raise ArithmeticError(f"{cell}: {mp.nstr(found, 25)} and {mp.nstr(truth, 25)}")


def composition(steps: Steps, *, remove: bool) -> contour.Ledger:
    """Return the composition for the contour integral."""
    make = {
        "sampled_gaussian": lambda sigma, q: contour.SampledGaussian(sigma, q, remove=remove),
        "gaussian": contour.Gaussian,
        "laplace": contour.Laplace,
    }
    return [(make[name](*parameters), count) for name, parameters, count in steps]


def log_delta(steps: Steps, eps: float, *, remove: bool) -> mp.mpf:
    """Return log delta(eps), which is at most log(1/2) in all rows."""
    value = contour.evaluate(composition(steps, remove=remove), eps, upper=True)
    return mp.log(mp.mpf(value.mid().str(50, radius=False)))


def ledgers() -> list[dict[str, object]]:
    """Return the rows of ledgers.json."""
    return [
        {"steps": steps, "remove": remove, "eps": eps, "log_delta": mp.nstr(log_delta(steps, eps, remove=remove), 34)}
        for steps, remove, eps in LEDGERS
    ]


def rows(count: int) -> Iterator[list[object]]:
    """Yield the rows of the table."""
    for cell, found in cells(count):
        arguments = (repr(cell.sigma), repr(cell.q), cell.steps, int(cell.remove), repr(cell.eps))
        yield [*arguments, mp.nstr(found.log, 34, strip_zeros=False), f"{found.tolerance:.3e}"]


def check(step: int = 17) -> int:
    """Recompute every `step`-th row of the committed table; ValueError at the first that differs in 17 digits."""
    known = tables.read("sampled_gaussian")[::step]
    for row in known:
        cell = Cell(float(row[0]), float(row[1]), int(row[2]), bool(int(row[3])), float(row[4]))
        found = answer(cell).log
        if abs(found - mp.mpf(row[5])) > max(abs(found), 1) * mp.mpf(10) ** -17:
            raise ValueError(f"{cell}: {mp.nstr(found, 25)}, the table has {row[5]}")
    return len(known)


def main() -> None:
    """Verify the method, then write the tables or check the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare a subsample of the committed table")
    parser.add_argument("--rows", type=int, default=60, help="cells at random, besides the named ones (default: 60)")
    arguments = parser.parse_args()
    mp.mp.dps, ctx.dps = 50, 60
    verify()
    if arguments.check:
        print(f"{check()} rows agree")
    else:
        print(f"{tables.write('sampled_gaussian', HEADER, rows(arguments.rows))} rows written")
        (tables.FOLDER / "ledgers.json").write_text(json.dumps(ledgers(), indent=1) + "\n")


if __name__ == "__main__":
    main()
