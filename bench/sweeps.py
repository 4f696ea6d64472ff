"""Sweeps of cheap cells: processor and wall time, bytes and memory of 10^6, 10^7 and 10^8 rows, on one and two threads.

    python bench/sweeps.py [--rows 1e6 1e7]

Noisy-FedAvg, `mu` and `delta` over noise, rounds and local steps. Each sweep runs in a process of its own, so that the largest
memory is its own; the sum of the processor time of all threads is what counts on a machine with other work. The tables of each
number of rows must have the same bytes. Beside it: the same with half of the cells out of the domain, and the share of fsync.
"""

import argparse
import hashlib
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from turns import table

from hockeystick.sweep import run
from hockeystick.sweep.evaluate import evaluate
from hockeystick.sweep.parquet_part import encode
from hockeystick.sweep.plan import parse
from hockeystick.sweep.store import manifest


def plan_of(rows, *, half_bad=False):
    """Return a plan of so many cells, a multiple of 10^5."""
    least = -1.0 if half_bad else 1e-3
    return {
        "outputs": {
            "mu": "federated.fedavg_gdp",
            "delta": {"function": "federated.fedavg_delta", "arguments": {"epsilon": 1.0}},
        },
        "fixed": {
            "clip_norm": 10.0,
            "learning_rate": 0.01,
            "smoothness": 1.0,
            "num_clients": 50,
            "schedule": "constant",
        },
        "axes": {
            "noise_std": {"linspace": [least, 1.0], "num": rows // 10**5},
            "rounds": {"range": [10, 1009]},
            "local_steps": {"range": [1, 100]},
        },
    }


def one(rows, threads, *, half_bad):
    """Return the figures of one sweep, in this process."""
    synchronised = [0.0]
    fsync = os.fsync

    def timed(file):
        started = time.perf_counter()
        fsync(file)
        synchronised[0] += time.perf_counter() - started

    os.fsync = timed
    out = Path(tempfile.mkdtemp())
    try:
        before, started = os.times(), time.perf_counter()
        summary = run(plan_of(rows, half_bad=half_bad), out / "table", num_threads=threads)
        wall, after = time.perf_counter() - started, os.times()
        digest = hashlib.sha256()
        parts = sorted((out / "table/cells").iterdir())
        for part in parts:
            digest.update(part.read_bytes())
        return {
            "processor": after.user + after.system - before.user - before.system,
            "wall": wall,
            "fsync": synchronised[0],
            "bytes": sum(part.stat().st_size for part in parts) / rows,
            "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "errors": summary.errors,
            "digest": digest.hexdigest(),
        }
    finally:
        shutil.rmtree(out)


def shares(rows):
    """Return the processor time of computing and of encoding a cell, one thread, the best of some shards, in microseconds."""
    plan = parse(plan_of(rows))
    told, least = manifest(plan), [np.inf, np.inf]
    for index in range(min(40, plan.num_shards - 1)):
        started = time.process_time()
        shard = evaluate(plan, plan.shard(index), 1)
        computed = time.process_time()
        encode(plan, told, shard)
        least = [min(least[0], computed - started), min(least[1], time.process_time() - computed)]
    return 1e6 * least[0] / plan.shard_rows, 1e6 * least[1] / plan.shard_rows


def measured(rows, threads, *, half_bad=False):
    """Return the figures of one sweep in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(one, rows, threads, half_bad=half_bad).result()


def row(name, rows, found):
    """Return a line of the table."""
    times = (f"{found['processor']:.2f}", f"{1e6 * found['processor'] / rows:.3f}", f"{found['wall']:.2f}")
    return (name, *times, f"{found['fsync']:.2f}", f"{found['bytes']:.2f}", f"{found['memory']:.0f}")


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    chosen = parser.parse_args()
    lines = []
    for rows in map(int, chosen.rows):
        found = {threads: measured(rows, threads) for threads in (1, 2)}
        lines += [row(f"{rows:.0e}, {threads}", rows, figures) for threads, figures in found.items()]
        if len({figures["digest"] for figures in found.values()}) > 1:
            sys.exit("the tables differ: this is a bug in hockeystick")
    bad = measured(10**6, 1, half_bad=True)
    lines.append(row(f"1e+06, 1, {bad['errors']:,} of them out of the domain", 10**6, bad))
    header = ("rows, threads", "processor s", "µs a cell", "wall s", "fsync s", "bytes a cell", "MB")
    sys.stdout.write(f"{table(header, lines)}\n")
    computing, encoding = shares(10**7)
    sys.stdout.write(
        f"\nof a shard, one thread, the best: computing {computing:.3f}, encoding {encoding:.3f} µs a cell\n"
    )


if __name__ == "__main__":
    main()
