"""Which certified bound of projected noisy SGD's last iterate is smallest, over eps and rounds.

For a record that is used once (`last_iterate.best`, over the rounds after its own), and for one that is used in every round
(`last_iterate.best_cyclic`), for three sizes of the domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import last_iterate
from hockeystick.figures import style
from hockeystick.figures.hidden_states import UNITS, unit_process
from hockeystick.figures.table import Table, stacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ONCE = ("contraction", "nonlinear", "shifted", "hybrid", "plain")
EVERY_ROUND = ("plain", "shifted", "joint")


def compute_once() -> Table:
    """Return the smallest bound and its name over eps and later rounds."""
    eps, later = np.geomspace(0.01, 10.0, 300)[:, np.newaxis], np.arange(0, 61)
    parts: list[dict[str, Any]] = []
    for reach in (3.0, 5.0, 8.0):
        best = last_iterate.best(eps, index=1, num_records=later + 1, quick=True, **unit_process(0.5, reach))
        parts.append({"diameter": reach, "eps": eps, "later": later, "delta": best.delta, "bound": best.method})
    return stacked(r"The smallest certified bound ($2L/\sigma = 1$, convex losses)", UNITS, parts)


def compute_every_round() -> Table:
    """Return the smallest bound and its name over eps and rounds, for a record that is used in all of them."""
    eps, rounds = np.geomspace(0.01, 10.0, 24)[:, np.newaxis], np.unique(np.geomspace(1, 200, 24).round())
    parts: list[dict[str, Any]] = []
    for reach in (2.0, 3.0, 5.0):
        best = last_iterate.best_cyclic(eps, index=1, period=1, rounds=rounds, **unit_process(0.25, reach))
        parts.append({"diameter": reach, "eps": eps, "rounds": rounds, "delta": best.delta, "bound": best.method})
    title = r"A record used in every round: the smallest certified bound ($2L/\sigma = 0.5$)"
    return stacked(title, UNITS, parts)


def draw_once(table: Table) -> Figure:
    """Draw who wins, over eps and later rounds."""
    return _draw(table, "later", "rounds after the record's", ONCE, log=False)


def draw_every_round(table: Table) -> Figure:
    """Draw who wins, over eps and rounds."""
    return _draw(table, "rounds", "rounds", EVERY_ROUND, log=True)


def _draw(table: Table, across: str, label: str, regions: tuple[str, ...], *, log: bool) -> Figure:
    figure, panels = style.new_figure(table.title, panels=3)
    for axes, (reach, rows) in zip(panels, table.groups("diameter"), strict=True):
        colour_regions(axes, rows, across, regions)
        if log:
            axes.set_xscale("log")
        axes.set_xlabel(label)
        axes.set_title(rf"diameter/noise $= {reach:g}$")
    panels[0].set_ylabel(style.EPSILON)
    return figure


def colour_regions(axes: Axes, cells: Table, across: str, regions: tuple[str, ...]) -> None:
    """Colour each cell by the bound that is smallest there, with a line and a name for each."""
    from matplotlib.colors import ListedColormap, to_rgb  # noqa: PLC0415 - when first drawn

    eps, rounds = np.unique(cells["eps"]), np.unique(cells[across])
    number = np.vectorize(regions.index)(cells["bound"])
    number = np.where(cells["delta"] < style.TINY, -1, number)  # underflow: nothing to tell them apart
    number = number.reshape(len(eps), len(rounds))
    palette = ("#999999", *style.COLOURS, "#000000")[: len(regions) + 1]
    pale = [(*to_rgb(colour), 0.15) for colour in palette]  # seen on light and on dark paper
    limits: dict[str, Any] = {"vmin": -1.5, "vmax": len(regions) - 0.5}
    axes.pcolormesh(rounds, eps, number, cmap=ListedColormap(pale), shading="nearest", rasterized=True, **limits)
    for value, colour in zip(range(-1, len(regions)), palette, strict=True):
        inside = number == value
        if inside.any():
            axes.contour(rounds, eps, inside.astype(float), levels=[0.5], colors=[colour], linewidths=1.8)
            rows, columns = np.nonzero(inside)
            if inside.mean() > 0.02:
                middle = np.argmin(np.hypot(rows - rows.mean(), 3 * (columns - columns.mean())))
                name = r"$\delta < 10^{-300}$" if value < 0 else regions[value]
                axes.text(rounds[columns[middle]], eps[rows[middle]], name, ha="center", va="center")
    axes.set_yscale("log")
    axes.grid(visible=False)
