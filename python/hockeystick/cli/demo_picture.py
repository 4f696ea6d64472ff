"""The picture of ``hockeystick demo``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hockeystick.cli.demo_comparison import DELTA, EPS, GRID_NOISE, GRID_ROUNDS, GRID_STEPS, Array, Comparison
from hockeystick.plot.matplotlib_figures import CURVES, Colours, Figure, heat_map
from hockeystick.plot.scales import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOCAL_STEPS = 10  # of the slice drawn


def draw(fedavg: Comparison, hidden: Comparison, grid: Array) -> Figure:
    """Return both comparisons and a slice of the million cells, side by side."""
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
    blue, orange = CURVES[:2]
    axes.plot(found.rounds, found.published, "--s", color=orange, label=f"published ({verdict})")
    axes.plot(found.rounds, found.certified, "-", color=blue, linewidth=2.5, label="certified")
    axes.plot(found.rounds, found.exact, "x", color=axes.xaxis.label.get_color(), label="exact, linear losses")
    axes.grid(alpha=0.3)
    axes.legend()
