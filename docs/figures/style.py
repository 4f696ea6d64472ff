"""The look that all figures share, and their command line.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; curves also differ in line style or marker, so
that they can be told apart in print without colour.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D")

EPSILON = r"privacy parameter $\varepsilon$ (nats)"
DELTA = r"privacy parameter $\delta$ (probability)"

LOOK: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "figure.titlesize": 11.0,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.fontsize": 9.0,
    "legend.framealpha": 0.9,
    "legend.handlelength": 3.6,  # long enough to show a dash on both sides of a marker
    "lines.linewidth": 1.8,
    "lines.markersize": 5.0,
    "svg.hashsalt": "hockeystick",  # the same picture is the same file
}

TINY = 1e-300  # below, doubles thin out and end: a curve there would show the number format


def new_figure(title: str, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a titled figure and its axes, side by side."""
    figure = Figure(figsize=(2.4 + 4.8 * panels, 4.8), layout="constrained")
    figure.suptitle(title)
    return figure, list(figure.subplots(1, panels, sharey=True, squeeze=False)[0])


def privacy_axes(axes: Axes, *, smallest_delta: float) -> None:
    """Label and scale the axes of a privacy profile, delta against eps."""
    axes.set_xlabel(EPSILON)
    axes.set_ylabel(DELTA)
    axes.set_yscale("log")
    axes.set_ylim(smallest_delta, 3.0)
    axes.margins(x=0.02)


def visible(delta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return delta without the values that doubles cannot hold accurately."""
    return np.where(delta >= TINY, delta, np.nan)


def run(draw: Callable[[], Mapping[str, Figure]], description: str) -> None:
    """Draw figures and write each under its name to the folder that the command line asks for."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("-o", "--out", type=Path, default=Path(), help="folder for the pictures (default: this one)")
    parser.add_argument("--svg", action="store_true", help="write SVG as well as PNG")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(LOOK):
        for name, figure in draw().items():
            figure.savefig(arguments.out / f"{name}.png", dpi=150)
            if arguments.svg:
                figure.savefig(arguments.out / f"{name}.svg", metadata={"Date": None})
