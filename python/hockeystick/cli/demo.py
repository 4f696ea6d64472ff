"""The command ``hockeystick demo``: what a published theorem claims, what is certified, what is true, and how fast."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from hockeystick._config import show_config
from hockeystick._numeric.printing import format_upper
from hockeystick.accounting.dpsgd import dpsgd_epsilon
from hockeystick.cli.demo_comparison import (
    DELTA,
    EPS,
    LATER,
    Array,
    Comparison,
    compare_fedavg,
    compare_last_iterate,
    million_cells,
)

SHOWN = 4  # rows of each table


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

    from hockeystick.cli.demo_picture import draw  # noqa: PLC0415 - matplotlib is asked for when first needed

    out.parent.mkdir(parents=True, exist_ok=True)
    draw(fedavg, hidden, grid).savefig(out, dpi=150)
    write(f"The same as a picture: {out}\n")
