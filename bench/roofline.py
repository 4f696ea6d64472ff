"""What a core can do at most, and what batch gradients of several shapes do: python bench/roofline.py.

A gradient of n records with d features is 4 n d operations on 8 n d bytes, read once from where they lie: half an operation a byte. The roof of a
shape is the smaller of the peak of operations and half the bandwidth of the cache that holds its records.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from hockeystick import simulate
from hockeystick.simulate.kernels import kernel, losses, reassociated

FLOPS_PER_CYCLE = 16  # two ports for products with sums, of four doubles: Zen 2 to 4; 32 where each takes eight
INTENSITY = 0.5  # operations a byte
LEVELS = {"L1": 16 << 10, "L2": 512 << 10, "L3": 8 << 20, "DRAM": 256 << 20}
FULL = (100, 20, 50)  # clients, records and features of the full batches of simulate.py
SHAPES = ((20, 50), (32, 50), (32, 500), (256, 500), (4096, 500))


@numba.njit(error_model="numpy")
def chain(count, x):
    """Multiply and add, each after the one before: four cycles each in processors since Skylake and Zen, counted as a product and a sum in one."""
    for _ in range(count):
        x = fused(x)
    return x


@numba.njit(fastmath={"contract"}, error_model="numpy", forceinline=True)
def fused(x):
    """Return one step of the chain."""
    return x * 0.999 + 1e-3


@reassociated
def total(x):
    """Add numbers as fast as they come."""
    result = 0.0
    for j in range(x.size):
        result += x[j]
    return result


@kernel
def read(x, times):
    """Read an array some times; what is added depends on all of them."""
    result = 0.0
    for i in range(times):
        x[0] = float(i)
        result += total(x)
    return result


@kernel
def gradients(  # noqa: PLR0917 - compiled
    data, w, rows, scores, out, times
):
    """Take the clipped gradient of a logistic regression some times."""
    for _ in range(times):
        losses.fill(0.0, out[0])
        losses.add_linear(data, w, 1, 0, rows, data.labels.size, 1.0 / data.labels.size, 1.0, scores, out)


def seconds(call: Callable[[], Any], repeats: int = 9) -> float:
    """Return the least processor time of a call, after one to warm up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def peak() -> tuple[float, float]:
    """Return the peak by the clock, and what NumPy's product of matrices reaches on one thread, in operations a second."""
    count = 10**7
    clock = 4 * count / seconds(lambda: chain(count, 0.5))
    a = np.random.default_rng(1).normal(size=(800, 800))
    return FLOPS_PER_CYCLE * clock, 2 * 800**3 / seconds(lambda: a @ a)


def bandwidth(size: int) -> float:
    """Return the bytes a second that one core reads from so many bytes."""
    x = np.zeros(size // 8)
    times = max(1, (256 << 20) // size)
    return size * times / seconds(lambda: read(x, times))


def gradient_rate(records: int, features: int) -> float:
    """Return the operations a second of a batch gradient, products alone counted."""
    problem = simulate.synthetic("logistic", sizes=[records], num_features=features, seed=1)
    rows, scores = np.arange(records + 8), np.zeros((1, records + 8))
    w, out = np.ones((1, features)), np.zeros((1, features))
    times = max(1, 4 * 10**7 // (records * features))
    return 4 * records * features * times / seconds(lambda: gradients(problem.data, w, rows, scores, out, times))


def products_rate(runs: int) -> float:
    """Return the operations a second of NumPy's two products of full batches, of all clients and runs at once; nothing else is counted."""
    clients, records, features = FULL
    rng = np.random.default_rng(1)
    x, v = rng.normal(size=(clients, records, features)), rng.normal(size=(clients, features, runs))
    slopes = x @ v
    return 4 * x.size * runs / seconds(lambda: (x @ v, x.swapaxes(1, 2) @ slopes))


def level(size: int) -> str:
    """Return which cache holds so many bytes."""
    return next(name for name, limit in LEVELS.items() if size <= 2 * limit or name == "DRAM")


def main() -> None:
    """Print the roof and what is reached."""
    by_clock, by_matrices = peak()
    rates = {name: bandwidth(size) for name, size in LEVELS.items()}
    sys.stdout.write(
        f"peak {by_clock / 1e9:.0f} Gflop/s by the clock, {by_matrices / 1e9:.0f} by NumPy's product of matrices\n"
    )
    sys.stdout.write("".join(f"{name} {rate / 1e9:.0f} GB/s\n" for name, rate in rates.items()))
    for records, features in SHAPES:
        name = level(8 * records * features)
        roof, rate = min(by_clock, INTENSITY * rates[name]), gradient_rate(records, features)
        sys.stdout.write(
            f"{records:5} records, {features:4} features, in {name:4}: {rate / 1e9:5.1f} Gflop/s, {rate / by_clock:4.0%} of the peak, roof {roof / 1e9:.0f}\n"
        )
    for runs in (1, 20):
        rate = products_rate(runs)
        sys.stdout.write(
            f"NumPy's two products of full batches, {runs:2} runs: {rate / 1e9:5.1f} Gflop/s, {rate / by_clock:4.0%} of the peak\n"
        )


if __name__ == "__main__":
    main()
