"""Write the reference tables of the kernels (--check: recompute a subsample of the committed ones instead).

Columns: the arguments as doubles that read back exactly, the exact value to 34 digits, and the relative error that is
allowed there. The rows cover every order of magnitude of every argument, both sides of each internal switch, and the
corners where a naive formula cancels.
"""

import argparse
import math
import random
from collections.abc import Callable, Iterator

import mpmath as mp

import high_precision as exact
import tables

SMALLEST = mp.mpf(2) ** -1074 / 2
Rows = Iterator[tuple[float, ...]]


def ulps(count: float) -> Callable[[mp.mpf], float]:
    """Tolerance: so many units in the last place of the value."""
    return lambda value: count * math.ulp(float(value)) / abs(float(value)) if value else 1.0


def theta_tolerance(value: mp.mpf) -> float:
    """2e-14 (1 + |log theta|), relative; below the normal doubles their spacing."""
    if value < SMALLEST:
        return 1.0  # the value must round to 0
    return max(2e-14 * (1 - float(mp.log(value))), float(SMALLEST * 2 / value))


def log_theta_tolerance(value: mp.mpf) -> float:
    """4e-15 relative or 1e-14 absolute, whichever is larger."""
    return float(max(mp.mpf(4e-15), 1e-14 / abs(value))) if abs(value) > mp.mpf(1e-300) else 1e286


def inverse_tolerance(eps: float, delta: float, r: mp.mpf) -> float:
    """Carry 1e-12 of log delta (1e-10 of 1 - delta above one half) over to r by d theta/d r = phi(a); at most 1/2."""
    allowed = 1e-12 * delta * abs(math.log(delta)) if delta <= 0.5 else 1e-10 * (1 - delta)
    return float(min(allowed / (mp.npdf(eps / r - r / 2) * r), 0.5))


def neighbours(x: float) -> list[float]:
    """X, the doubles beside it, and points 1e-9 and 1e-3 away."""
    return [
        x,
        math.nextafter(x, math.inf),
        math.nextafter(x, -math.inf),
        *(x + s * d for d in (1e-9, 1e-3) for s in (1, -1)),
    ]


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def tail_arguments(rng: random.Random, *, limit: float, far: list[float]) -> Rows:
    """Arguments of q and log q: both signs, near 0, near the switches at 1/4 and 1, out to `limit`, then `far`."""
    for sign in (1.0, -1.0):
        for x in (5e-324, 1e-300, 1e-100, 1e-20, 1e-8, *neighbours(0.25), *neighbours(1.0), *neighbours(limit)[2:3]):
            yield (sign * x,)
        for _ in range(80):
            yield (sign * log_uniform(rng, 1e-12, 1.0),)
        for k in range(300):
            yield (sign * limit * (k + rng.random()) / 300,)
    yield (0.0,)
    yield from ((x,) for x in far)


def probabilities(rng: random.Random) -> Rows:
    """Arguments of q_inv: down to 1e-300 and up to the last double below 1, around 1/4, 1/2, 3/4."""
    for p in (0.25, 0.5, 0.75):
        yield from ((x,) for x in neighbours(p))
    for k in range(1, 54):
        yield (0.5 + 2.0**-k / 2 if k < 53 else 1 - 2.0**-53,)
        yield (0.5 - 2.0**-k / 2 if k < 53 else 2.0**-53,)
        yield (1 - 2.0**-k,)
    for _ in range(400):
        yield (log_uniform(rng, 1e-300, 0.5),)
    for _ in range(300):
        yield (rng.random(),)


def grid() -> Rows:
    """Every order of magnitude of eps, both signs, with every order of magnitude of r."""
    magnitudes = (0.0, 1e-300, 1e-30, 1e-15, 1e-11, 1e-8, 1e-5, 1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 50.0, 200.0, 700.0)
    shifts = [10.0**k for k in range(-12, 5)] + [0.03, 0.5, 2.0, 5.0, 20.0, 37.0]
    for r in shifts:
        for eps in magnitudes:
            yield eps, r
            if eps:
                yield -eps, r


def along(rng: random.Random, r: float, a: float) -> tuple[float, float]:
    """Return (eps, r) with eps/r - r/2 close to a, eps within [-700, 700]."""
    return max(-700.0, min(700.0, r * (a + r / 2))), r * (1 + 1e-3 * rng.random())


def pairs(rng: random.Random, *, deepest: float, count: int) -> Rows:
    """(eps, r) by the value of a = eps/r - r/2: tails, the switch at -1/4, the centre, theta near 1, eps near 0."""
    yield from grid()
    for _ in range(count):
        yield along(rng, log_uniform(rng, 1e-12, 1e4), log_uniform(rng, 1e-3, deepest))  # tails
        yield along(rng, log_uniform(rng, 1e-12, 75.0), -log_uniform(rng, 1e-3, 40.0))  # theta near 1, or eps < 0
        yield along(rng, log_uniform(rng, 1e-3, 40.0), rng.uniform(-1.0, 1.0))
        yield rng.uniform(-700.0, 700.0), log_uniform(rng, 0.1, 1e4)
        yield rng.choice((-1, 1)) * log_uniform(rng, 1e-30, 1e-6), log_uniform(rng, 1e-12, 1e-3)
    for a in (-0.25, 0.0):
        for _ in range(count // 3):
            r = log_uniform(rng, 1e-12, 37.0)
            eps = r * (a + r / 2)
            for e in (eps, math.nextafter(eps, math.inf), math.nextafter(eps, -math.inf), eps * (1 + 1e-9)):
                yield e, r


def within(limit: float, candidates: Rows) -> Rows:
    """Keep the pairs with |log theta| <= limit, judged by a^2/2."""
    for eps, r in candidates:
        a = eps / r - r / 2
        if eps < 0 or a < 0 or a * a / 2 <= limit:
            yield eps, r


def laplace_pairs(rng: random.Random) -> Rows:
    """(eps, r) on both sides of eps = r and eps = -r, and far from them."""
    for r in [10.0**k for k in range(-12, 5)]:
        for eps in (0.0, r, *(r * f for f in (0.5, 0.999, 1 - 1e-15, 1.001, -0.5, -0.999, -1.0, -1.001, -3.0))):
            if abs(eps) <= 700:
                yield eps, r
    for _ in range(200):
        yield rng.uniform(-700.0, 700.0), log_uniform(rng, 1e-2, 1e4)
        yield rng.choice((-1, 1)) * log_uniform(rng, 1e-12, 700.0), log_uniform(rng, 1e-12, 1e4)


def inverse_problems(rng: random.Random, *, count: int) -> Iterator[tuple[float, float, mp.mpf]]:
    """(eps, delta, r): a pair is drawn by (r, a), delta is theta rounded to a double, r solved again from it."""
    while count:
        r = log_uniform(rng, 1e-10, 60.0)
        a = rng.choice((rng.uniform(-8.0, 1.0), rng.uniform(0.0, 37.0)))
        eps, r = along(rng, r, a)
        if a > 37:
            continue
        delta = float(exact.theta(eps, r))
        if not 1e-300 <= delta < 1:
            continue
        if eps < 0 and (delta + math.expm1(eps)) < 1e-12 * delta:
            continue  # delta is hardly above 1 - e^eps, or below it by rounding: r may not exist
        count -= 1
        yield eps, delta, exact.theta_inverse(eps, delta, r)


def table(name: str) -> Iterator[tuple[list[float], mp.mpf, float]]:
    """Rows of one table: arguments, exact value, tolerance."""
    rng = random.Random(name)
    if name == "theta_inverse":
        for eps, delta, r in inverse_problems(rng, count=500):
            yield [eps, delta], r, inverse_tolerance(eps, delta, r)
        return
    for arguments in dict.fromkeys(INPUTS[name](rng)):
        value = getattr(exact, name)(*arguments)
        yield list(arguments), value, TOLERANCES[name](value)


INPUTS: dict[str, Callable[[random.Random], Rows]] = {
    "q": lambda rng: tail_arguments(rng, limit=37.0, far=[]),
    "log_q": lambda rng: tail_arguments(
        rng, limit=36.9, far=[10.0**k for k in (1.7, 2, 2.5, 3, 4, 6, 8, 20, 100, 150)]
    ),
    "q_inv": probabilities,
    "theta": lambda rng: within(705.0, pairs(rng, deepest=37.5, count=150)),
    "log_theta": lambda rng: within(1e8, pairs(rng, deepest=1.4e4, count=150)),
    "laplace_theta": laplace_pairs,
}
TOLERANCES: dict[str, Callable[[mp.mpf], float]] = {
    "q": ulps(8),
    "log_q": ulps(8),
    "q_inv": ulps(8),
    "theta": theta_tolerance,
    "log_theta": log_theta_tolerance,
    "laplace_theta": ulps(8),
}
HEADERS = {"q": ["x"], "log_q": ["x"], "q_inv": ["p"], "theta_inverse": ["eps", "delta"]}
NAMES = [*INPUTS, "theta_inverse"]


def write(name: str) -> int:
    """Write one table and return its number of rows."""
    rows = (
        [*map(repr, arguments), mp.nstr(value, 34, strip_zeros=False) if value else "0", f"{tolerance:.3e}"]
        for arguments, value, tolerance in table(name)
    )
    return tables.write(name, [*HEADERS.get(name, ["eps", "r"]), "value", "tolerance"], rows)


def check(name: str, *, step: int = 17) -> int:
    """Recompute every `step`-th row of the committed table; ValueError at the first that differs in 30 digits."""
    rows = tables.read(name)[::step]
    for row in rows:
        arguments = [float(x) for x in row[:-2]]
        with mp.workdps(50):
            committed = mp.mpf(row[-2])
            more = {"start": float(committed)} if name == "theta_inverse" else {}
            value = getattr(exact, name)(*arguments, **more)
            if abs(value - committed) > abs(committed) * mp.mpf(10) ** -30:
                raise ValueError(f"{name}{tuple(arguments)} is {mp.nstr(value, 34)}, the table has {row[-2]}")
    return len(rows)


def main() -> None:
    """Write or check all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare a subsample of the committed tables")
    work = check if parser.parse_args().check else write
    for name in NAMES:
        print(f"{name}: {work(name)} rows {'agree' if work is check else 'written'}", flush=True)


if __name__ == "__main__":
    main()
