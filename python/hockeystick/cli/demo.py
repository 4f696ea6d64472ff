"""The command ``hockeystick demo``: what a published theorem claims, what is certified, what is true, and how fast.

Published, certified and exact values of two theorems are compared, a million cells are timed, and all of it is drawn.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hockeystick._config import show_config
from hockeystick._numeric.printing import format_upper
from hockeystick.accounting.dpsgd import dpsgd_epsilon
from hockeystick.federated import fedavg_epsilon
from hockeystick.kernels import gaussian_epsilon
from hockeystick.last_iterate import best as last_iterate_best
from hockeystick.last_iterate import chain_delta
from hockeystick.published import fedavg_gdp
from hockeystick.published.warning import quietly

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

DELTA = 1e-5
ROUNDS = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
LATER = np.array([0, 1, 2, 4, 6, 8, 10])

CLIENTS, NOISE_STD = 10, 2.0  # of Noisy-FedAvg with one local step, learning rate, clip norm and smoothness 1
EPS, LIPSCHITZ, DIAMETER = 1.0, 0.5, 2.0  # of projected noisy SGD with learning rate 0.5 and noise 0.5

GRID_NOISE = np.geomspace(0.3, 300.0, 100)
GRID_ROUNDS = np.arange(10, 1001, 10)
GRID_STEPS = np.arange(1, 101)

SHOWN = 4  # rows of each table
LOCAL_STEPS = 10  # of the slice drawn


def _rows(found: Comparison) -> Iterator[str]:
    for index in np.linspace(0, len(found.rounds) - 1, SHOWN).round().astype(int):
        values = (found.published[index], found.certified[index], found.exact[index])
        yield f"{found.rounds[index]:8}" + "".join(format_upper(value, "13.4g") for value in values) + "\n"


def _timed(compute: Callable[[], Array]) -> tuple[Array, float]:
    start = time.perf_counter()
    result = compute()
    return result, time.perf_counter() - start


def run(out: Path) -> None:
    """Compute, print, and draw into a file."""
    write = sys.stdout.write
    fedavg, hidden = compare_fedavg(), compare_last_iterate()
    write(f"Noisy-FedAvg, last model released: epsilon at delta = {DELTA:g} (Sun, Shen and Tao 2024, Theorem 12 (a))\n")
    write("  rounds    published    certified        exact\n")
    sys.stdout.writelines(_rows(fedavg))
    write("The published one is false: it claims less than linear losses leak. The certified one is attained.\n\n")

    write(f"Projected noisy SGD, last iterate: delta at epsilon = {EPS:g} (Asoodeh, Diaz and Calmon 2020, Theorem 4)\n")
    write("   later    published    certified        exact\n")
    sys.stdout.writelines(_rows(hidden))
    ratio = hidden.published[-1] / hidden.certified[-1]
    write(
        f"The published bound holds but is {ratio:.0f} times larger than the certified one after {LATER[-1]} rounds.\n\n"
    )

    grid, seconds = _timed(million_cells)
    steps = np.arange(100, 10_001, 100)
    trained, longer = _timed(lambda: dpsgd_epsilon([0.8, 1.0, 1.5], 0.01, steps[:, np.newaxis], DELTA))
    config = show_config()
    write(f"Speed, {config['threads']} threads, {config['instruction_set']}\n")
    write(f"{grid.size:>9,} certified epsilons of Noisy-FedAvg in {seconds:.2f} s\n")
    write(f"{trained.size:>9,} certified epsilons of DP-SGD, up to 10,000 steps, in {longer:.2f} s\n\n")

    out.parent.mkdir(parents=True, exist_ok=True)
    draw(fedavg, hidden, grid).savefig(out, dpi=150)
    write(f"The same as a picture: {out}\n")


@dataclass(frozen=True)
class Comparison:
    """Certified, published and exact values over rounds."""

    rounds: NDArray[np.int64]
    published: Array
    certified: Array
    exact: Array


def compare_fedavg() -> Comparison:
    """Return epsilons of Noisy-FedAvg; exact for linear losses, whose gradients are +V or -V in every round."""
    setting: dict[str, Any] = {
        "rounds": ROUNDS,
        "local_steps": 1,
        "num_clients": CLIENTS,
        "clip_norm": 1.0,
        "noise_std": NOISE_STD,
        "smoothness": 1.0,
        "learning_rate": 1.0,
    }
    printed = quietly(fedavg_gdp, **setting)  # that it is unsound is the point
    distance = 2.0 * ROUNDS / CLIENTS  # of the last model's means
    deviation = np.sqrt(ROUNDS / CLIENTS) * NOISE_STD
    return Comparison(
        ROUNDS,
        np.asarray(gaussian_epsilon(printed, DELTA)),
        np.asarray(fedavg_epsilon(DELTA, **setting)),
        np.asarray(gaussian_epsilon(distance / deviation, DELTA)),
    )


def compare_last_iterate() -> Comparison:
    """Return deltas of projected noisy SGD by the rounds after a record's; exact for the worst of some linear losses."""
    noise: dict[str, Any] = {"learning_rate": 0.5, "noise_std": 0.5, "diameter": DIAMETER}
    best = last_iterate_best(EPS, index=1, num_records=LATER + 1, lipschitz=LIPSCHITZ, smoothness=0.0, **noise)
    exact = [
        max(
            chain_delta(
                EPS,
                gradient_map="linear",
                record=np.append(LIPSCHITZ, np.full(later, pull)),
                neighbour=np.append(-LIPSCHITZ, np.full(later, pull)),
                start=start,
                **noise,
            ).upper
            for pull in (-LIPSCHITZ, 0.0, LIPSCHITZ)
            for start in (-DIAMETER / 2, 0.0, DIAMETER / 2)
        )
        for later in LATER
    ]
    return Comparison(LATER, best.bounds["contraction"], best.delta, np.array(exact))


def million_cells() -> Array:
    """Return the certified epsilon of Noisy-FedAvg for a hundred each of noise levels, rounds and local steps."""
    return np.asarray(
        fedavg_epsilon(
            DELTA,
            rounds=GRID_ROUNDS[:, np.newaxis],
            local_steps=GRID_STEPS[:, np.newaxis, np.newaxis],
            num_clients=100,
            clip_norm=10.0,
            noise_std=GRID_NOISE,
            smoothness=1.0,
            learning_rate=0.01,
        )
    )


def draw(fedavg: Comparison, hidden: Comparison, grid: Array) -> Figure:
    """Return both comparisons and a slice of the million cells, side by side."""
    from hockeystick.plot.matplotlib_figures import Colours, Figure, heat_map  # noqa: PLC0415 - matplotlib is asked for when first needed
    from hockeystick.plot.scales import Scale  # noqa: PLC0415

    figure = Figure(figsize=(15.6, 4.6), layout="constrained")
    figure.suptitle("hockeystick: what is published, what is certified, what is true")
    left, middle, right = figure.subplots(1, 3)
    _curves(left, fedavg, "false: below the truth")
    left.set(xscale="log", yscale="log", xlabel="communication rounds", ylabel=f"ε at δ = {DELTA:g} (nats)")
    left.set_title("Noisy-FedAvg, last model (Theorem 12 (a))", fontsize="medium")
    _curves(middle, hidden, "true, and loose")
    middle.set(yscale="log", xlabel="rounds after the record's", ylabel=f"δ at ε = {EPS:g} (probability)")
    middle.set_title("Projected noisy SGD, last iterate (Theorem 4)", fontsize="medium")
    values = grid[int(np.flatnonzero(GRID_STEPS == LOCAL_STEPS)[0])]
    colours = Colours.of(values)
    noise = Scale(GRID_NOISE, "noise per client, standard deviation (units of the model)", log=True)
    rounds = Scale(GRID_ROUNDS.astype(float), "communication rounds", log=False)
    title = f"10,000 of {grid.size:,} certified cells ({LOCAL_STEPS} local steps)"
    mesh = heat_map(right, noise, rounds, values, colours=colours, title=title)
    colours.add_bar(figure, right, mesh, f"ε at δ = {DELTA:g} (nats)")
    return figure


def _curves(axes: Axes, found: Comparison, verdict: str) -> None:
    from hockeystick.plot.matplotlib_figures import CURVES  # noqa: PLC0415 - matplotlib is asked for when first needed

    blue, orange = CURVES[:2]
    axes.plot(found.rounds, found.published, "--s", color=orange, label=f"published ({verdict})")
    axes.plot(found.rounds, found.certified, "-", color=blue, linewidth=2.5, label="certified")
    axes.plot(found.rounds, found.exact, "x", color=axes.xaxis.label.get_color(), label="exact, linear losses")
    axes.grid(alpha=0.3)
    axes.legend()
