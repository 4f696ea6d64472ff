"""The look that all figures share.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; curves also differ in line style or marker, so
that they can be told apart in print without colour. Matplotlib is imported when a figure is drawn, not before.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from hockeystick.figures.table import Table

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

GREEK = r"\b(alpha|beta|delta|epsilon|eta|mu|rho|sigma)\b"

TINY = 1e-300  # below, doubles thin out and end: a curve there would show the number format


def empty_figure(width: float, height: float, table: Table) -> Figure:
    """Return a figure without axes, titled by its table and settings; without Matplotlib, the error says what to install."""
    figure = _figure_class()(figsize=(width, height), layout="constrained")
    settings = re.sub(GREEK, r"$\\\1$", table.settings)
    figure.suptitle("\n".join(filter(None, (table.title, settings))))
    return figure


def new_figure(table: Table, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a titled figure and its axes, side by side."""
    figure = empty_figure(2.4 + 4.8 * panels, 4.8, table)
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


def look() -> AbstractContextManager[None]:
    """Return a context in which Matplotlib draws with this look; without Matplotlib, the error says what to install."""
    _figure_class()
    import matplotlib as mpl  # noqa: PLC0415 - when first drawn

    return mpl.rc_context(LOOK)


def _figure_class() -> type[Figure]:
    from hockeystick.plot.matplotlib_figures import Figure  # noqa: PLC0415 - its error says what to install

    return Figure
