"""Measure the simulator beside NumPy, and print the ratios with the goals: python bench/simulate.py.

All take turns in one process, on one thread: set OPENBLAS_NUM_THREADS=1. Logistic regression with 50 features, 20 clients, batches of 32
drawn without replacement, gradients clipped record by record, 10 local steps a round: seconds of a client's local step. Batched NumPy takes
the products of all clients, and of all runs, at once, by matmul or by einsum, whichever is quicker. With full batches, clients have 20
records each and there are 100, so that nothing is drawn. The share of the peak
is that of two ports for products with sums, of four doubles each, as Zen 2 to 4 have them.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial

import numba
import numpy as np
from turns import take_turns

from hockeystick import simulate
from hockeystick.simulate.kernels.core import words
from hockeystick.simulate.running.rule import function

CLIENTS, SIZE, FEATURES, BATCH, LOCAL, RATE, NOISE = 20, 500, 50, 32, 10, 0.1, 0.1
PROBLEM = simulate.synthetic("logistic", sizes=[SIZE] * CLIENTS, num_features=FEATURES, seed=1)
ALGORITHM = simulate.NoisyFedAvg(
    learning_rate=RATE,
    local_steps=LOCAL,
    clip_norm=1.0,
    noise_std=NOISE,
    records=simulate.FixedSize(BATCH),
    clipping="record",
)
FULL_CLIENTS, FULL_SIZE, RUNS = 100, 20, 20
FLOPS_PER_CYCLE = 16  # 32 where each port takes eight doubles
FULL_PROBLEM = simulate.synthetic("logistic", sizes=[FULL_SIZE] * FULL_CLIENTS, num_features=FEATURES, seed=1)
FULL_ALGORITHM = simulate.NoisyFedAvg(
    learning_rate=RATE, local_steps=LOCAL, clip_norm=1.0, noise_std=NOISE, clipping="record"
)
OWN_CLIENTS, OWN_SIZE, OWN_FEATURES = 100, 10, 1000  # losses of one's own
START = """
from hockeystick import simulate
problem = simulate.synthetic("logistic", sizes=[40, 60], num_features=20, seed=1)
algorithm = simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=1.0, noise_std=0.2, records=simulate.FixedSize(10))
result = simulate.run(algorithm, problem, rounds=30, seed=7, record_every=10)
result.loss(), result.accuracy()
"""


def ours(rounds, threads=1):
    simulate.run(ALGORITHM, PROBLEM, rounds=rounds, seed=1, num_threads=threads)


def numpy_loop(rounds):
    """Run the same algorithm, client by client, as one would write it."""
    features, labels, rng = PROBLEM.data.features, PROBLEM.data.labels, np.random.default_rng(1)
    w = np.zeros(FEATURES)
    for _ in range(rounds):
        models = []
        for client in range(CLIENTS):
            v = w.copy()
            for _ in range(LOCAL):
                batch = client * SIZE + rng.choice(SIZE, BATCH, replace=False)
                x = features[batch]
                gradients = (1 / (1 + np.exp(-x @ v)) - labels[batch])[:, np.newaxis] * x
                norms = np.linalg.norm(gradients, axis=1)
                v -= RATE * np.mean(gradients * np.minimum(1.0, 1.0 / norms)[:, np.newaxis], axis=0)
            models.append(v + NOISE * rng.normal(size=FEATURES))
        w = np.mean(models, axis=0)


def full(rounds, runs=1):
    simulate.run(FULL_ALGORITHM, FULL_PROBLEM, rounds=rounds, seed=1, num_runs=runs, num_threads=1)


def by_matmul(x, v):
    """Return the scores of records (clients, records, features) in the models (clients, features, runs)."""
    return x @ v


def by_einsum(x, v):
    """Return the same by einsum."""
    return np.einsum("cnd,cdr->cnr", x, v)


def batched_step(x, y, norms, v, products):
    """Move the models of all clients and runs; a gradient's norm is |slope| |x|, as in ours."""
    slopes = 1 / (1 + np.exp(-products(x, v))) - y[..., np.newaxis]
    slopes *= np.minimum(1.0, 1.0 / np.maximum(np.abs(slopes) * norms[..., np.newaxis], 1e-300))
    v -= RATE / x.shape[1] * products(x.swapaxes(1, 2), slopes)


def numpy_batched(rounds, products):
    """Run the drawn batches of all clients at once."""
    data, rng = PROBLEM.data, np.random.default_rng(1)
    w, first = np.zeros(FEATURES), np.arange(CLIENTS)[:, np.newaxis] * SIZE
    for _ in range(rounds):
        v = np.repeat(w[np.newaxis, :, np.newaxis], CLIENTS, axis=0)
        for _ in range(LOCAL):
            batch = first + np.argpartition(rng.random((CLIENTS, SIZE)), BATCH, axis=1)[:, :BATCH]
            batched_step(data.features[batch], data.labels[batch], data.norms[batch], v, products)
        w = np.mean(v[..., 0] + NOISE * rng.normal(size=(CLIENTS, FEATURES)), axis=0)


def numpy_full(rounds, runs, products):
    """Run the full batches of all clients and runs at once."""
    data, rng = FULL_PROBLEM.data, np.random.default_rng(1)
    x = data.features.reshape(FULL_CLIENTS, FULL_SIZE, FEATURES)
    y, norms = (each.reshape(FULL_CLIENTS, FULL_SIZE) for each in (data.labels, data.norms))
    w = np.zeros((FEATURES, runs))
    for _ in range(rounds):
        v = np.repeat(w[np.newaxis], FULL_CLIENTS, axis=0)
        for _ in range(LOCAL):
            batched_step(x, y, norms, v, products)
        w = np.mean(v + NOISE * rng.normal(size=v.shape), axis=0)


def best(calls, repeats):
    """Return the least seconds of processor time per local step of each: all run on one thread; the machine may be shared."""
    times = take_turns({name: partial(call, rounds) for name, (call, rounds, _) in calls.items()}, repeats)
    return {name: min(times[name]) / (rounds * steps) for name, (_, rounds, steps) in calls.items()}


def contenders():
    """Return what is timed: a call, its rounds, and the local steps of a round."""
    drawn, whole = CLIENTS * LOCAL, FULL_CLIENTS * LOCAL
    calls = {
        "ours": (ours, 50, drawn),
        "numpy": (numpy_loop, 5, drawn),
        "full": (full, 10, whole),
        "full, runs": (partial(full, runs=RUNS), 2, whole * RUNS),
    }
    for name, products in (("matmul", by_matmul), ("einsum", by_einsum)):
        calls[f"{name}"] = (partial(numpy_batched, products=products), 5, drawn)
        calls[f"{name}, full"] = (partial(numpy_full, runs=1, products=products), 5, whole)
        calls[f"{name}, full, runs"] = (partial(numpy_full, runs=RUNS, products=products), 1, whole * RUNS)
    return calls


def runs_in_parallel(repeats):
    """Return the speed-up of two threads over one for 2000 independent runs."""
    calls = {
        threads: partial(simulate.run, ALGORITHM, PROBLEM, rounds=1, seed=1, num_runs=2000, num_threads=threads)
        for threads in (1, 2)
    }
    times = take_turns(calls, repeats, time.perf_counter)
    return min(times[1]) / min(times[2])


@numba.njit(fastmath={"contract"}, error_model="numpy")
def chain(count, x):
    """Multiply and add, each after the one before: four cycles each in processors since Skylake and Zen."""
    for _ in range(count):
        x = x * 0.999 + 1e-3
    return x


def peak():
    """Return the operations a second that the clock allows."""
    count = 10**7
    return FLOPS_PER_CYCLE * 4 * count / best({"": (lambda _: chain(count, 0.5), 1, 1)}, 9)[""]


def share_of_peak(records, features):
    """Return the operations of a batch gradient, products alone counted, over those that the clock allows."""
    data = words((problem := simulate.synthetic("logistic", sizes=[records], num_features=features, seed=1)).data)
    rows, room, models, out = np.arange(records), np.empty(4096), np.ones(features), np.zeros(features)
    first, add_batch = (data.ctypes, models.ctypes, 1, 0, rows.ctypes), function("add_batch")
    last = (problem.num_records, 1.0 / records, 1.0, room.ctypes, out.ctypes)

    def gradients(times):
        """Take the clipped gradient of a logistic regression some times."""
        for _ in range(times):
            add_batch(*first, *last)

    times = max(1, 4 * 10**7 // (records * features))
    seconds = best({"": (lambda _: gradients(times), 1, 1)}, 9)[""]
    return 4 * records * features * times / seconds / peak()


def chains():
    """Return the seconds of 10^5 independent runs of a scalar chain of 1000 rounds, on all cores."""
    algorithm = simulate.ProjectedNoisySGD(learning_rate=0.1, clip_norm=1.0, noise_std=1.0, radius=2.0)
    problem = simulate.Problem("linear", [[0.5], [-0.5]])
    start = time.perf_counter()
    simulate.run(algorithm, problem, rounds=1000, seed=1, num_runs=10**5)
    return time.perf_counter() - start


def own_value(model, x, y):
    """Return the logistic loss of a record."""
    return own_score_value(np.dot(model, x), y)


def own_gradient(model, x, y):
    """Return its gradient."""
    return own_slope(np.dot(model, x), y) * x


@numba.njit
def own_score_value(score, y):
    """Return the loss of a score."""
    return max(score, 0.0) + np.log1p(np.exp(-abs(score))) - y * score


@numba.njit
def own_slope(score, y):
    """Return its derivative."""
    return 1.0 / (1.0 + np.exp(-score)) - y


def own_losses(repeats):
    """Return the seconds of a local step, with 10 records of 1000 features, of a named loss and of those that are one's own; and of making one."""
    named = simulate.synthetic("logistic", sizes=[OWN_SIZE] * OWN_CLIENTS, num_features=OWN_FEATURES, seed=1)
    start = time.process_time()
    losses = {"Loss.of_score": simulate.Loss.of_score(own_score_value, own_slope)}
    losses["Loss"] = simulate.Loss(own_value, own_gradient)
    making = (time.process_time() - start) / 2
    records = (named.data.features, named.data.labels, named.sizes)
    problems = {"named": named} | {name: simulate.Problem(loss, *records) for name, loss in losses.items()}
    calls = {
        name: (partial(simulate.run, FULL_ALGORITHM, problem, seed=1, num_threads=1), 5, OWN_CLIENTS * LOCAL)
        for name, problem in problems.items()
    }
    return best(
        {name: (lambda rounds, run=run: run(rounds=rounds), *rest) for name, (run, *rest) in calls.items()}, repeats
    ) | {"making": making}


def starts():
    """Return the processor seconds of a new process that imports the simulator and runs, with nothing compiled and with it on disk."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(4):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", START], check=True, env=os.environ | {"NUMBA_CACHE_DIR": folder})
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return seconds[0], min(seconds[1:])


def main():
    """Print a table of what was asked for and what is."""
    steps = best(contenders(), 20)
    batched, full_batched, runs_batched = (
        min(steps[f"matmul{kind}"], steps[f"einsum{kind}"]) for kind in ("", ", full", ", full, runs")
    )
    (first, second), own = starts(), own_losses(20)
    rows = [
        ("microseconds per client step, one thread", 1e6 * steps["ours"], None),
        ("NumPy loop / ours", steps["numpy"] / steps["ours"], 20),
        ("batched NumPy / ours", batched / steps["ours"], 3),
        ("batched NumPy / ours, full batches of 20", full_batched / steps["full"], 3),
        ("batched NumPy / ours, full batches, 20 runs", runs_batched / steps["full, runs"], 3),
        ("speed-up of two threads, 2000 runs", runs_in_parallel(5), 1.8),
        ("share of the peak, 256 records of 500 features", share_of_peak(256, 500), 0.25),
        ("seconds for 10^5 scalar chains of 1000 rounds (at most)", chains(), 10),
        ("processor seconds of a first run, imports included (at most)", first, 6),
        ("the same with what it compiled on disk (at most)", second, 1),
        ("microseconds per client step, 10 records of 1000 (at most)", 1e6 * own["named"], 4.5),
        ("the same, Loss.of_score (at most)", 1e6 * own["Loss.of_score"], 6),
        ("the same, Loss (at most)", 1e6 * own["Loss"], 10),
        ("processor seconds of making a loss (at most)", own["making"], 1),
    ]
    sys.stdout.write(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    for name, value, goal in rows:
        sys.stdout.write(f"{name:60} {value:14.3g}  goal {goal or '-'}\n")


if __name__ == "__main__":
    main()
