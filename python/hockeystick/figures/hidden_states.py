"""What hidden states hide: exact, certified and published deltas of projected noisy SGD's last iterate.

Projected noisy SGD in one dimension with linear losses, for which the exact delta of the last iterate is known
(`last_iterate.chain_delta`), beside the bounds of `last_iterate.best` and Theorem 4 of Asoodeh, Diaz and Calmon 2020; for a record that
is used once, and for one that is used in every round (`last_iterate.best_cyclic`).

Regions: which certified bound is smallest, over eps and rounds (for a record that is used once, those after its own), for three sizes of
the domain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import last_iterate
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


SMALLEST_DELTA = 1e-11  # below, the exact value is not resolved
LATER, ROUNDS = np.arange(0, 21), np.arange(1, 41)
UNITS = {"epsilon": "nats", "delta": "probability", "delta_upper": "probability"}

ONCE = (
    ("contraction", "Theorem 4, published"),
    ("nonlinear", "nonlinear"),
    ("shifted", "shifted"),
    ("hybrid", "hybrid"),
)
EVERY_ROUND = (("plain", "composition"), ("shifted", "shifted"), ("joint", "joint"))
EXACT = "exact chain"


UNIT = {"learning_rate": 1.0, "noise_std": 1.0}


def unit_process(lipschitz: float, diameter: float) -> dict[str, Any]:
    """Return the arguments of convex losses with steps and noise of 1."""
    return UNIT | {"lipschitz": lipschitz, "smoothness": 0.0, "diameter": diameter}


def exact(epsilon: Any, later: int, size: float, directions: Iterable[float], **chain: Any) -> NDArray[np.float64]:
    """Return both ends of delta of a record that is used once, the largest over directions of the later gradients; all gradients have this size."""
    ends = []
    for others in directions:
        record = np.concatenate([[size], np.full(later, others * size)])
        other = np.concatenate([[-size], record[1:]])
        ends.append(last_iterate.chain_delta(epsilon, record=record, neighbour=other, **chain)[:2])
    return np.asarray(np.max(ends, axis=0))


def compute_once() -> Table:
    """Return the bounds and both ends of the exact delta against the later rounds, for much and for little noise."""
    parts: list[dict[str, Any]] = []
    eps = 0.5
    for noise_std, lipschitz in ((1.0, 0.5), (0.4, 0.4)):
        process = unit_process(lipschitz, 2.0) | {"noise_std": noise_std}
        cell = {"epsilon": eps, "noise_std": noise_std, "lipschitz": lipschitz, "later": LATER}
        chain = {name: process[name] for name in (*UNIT, "diameter")} | {"gradient_map": "linear"}
        best = last_iterate.best(eps, index=1, num_records=LATER + 1, **process)
        for name, label in ONCE:
            parts.append({"curve": label, **cell, "delta": best.bounds[name], "delta_upper": best.bounds[name]})
        low, high = np.array([exact(eps, int(later), lipschitz, (-1.0, 0.0, 1.0), **chain) for later in LATER]).T
        parts.append({"curve": EXACT, **cell, "delta": low, "delta_upper": high})
    return stacked("Projected noisy SGD on [-1, 1], linear losses, one participation", UNITS, parts, "eta = 1")


def draw_once(table: Table) -> Figure:
    """Draw all bounds and the exact value against the number of later rounds."""
    figure, panels = style.new_figure(table, panels=2)
    for axes, (noise_std, rows) in zip(panels, table.groups("noise_std"), strict=True):
        for (_, label), colour, marker in zip(ONCE, style.COLOURS, style.MARKERS, strict=True):
            delta, line = rows.where(curve=label)["delta"], "--" if "published" in label else "-"
            axes.plot(LATER, delta, line, color=colour, marker=marker, markevery=5, label=label)
        chain = rows.where(curve=EXACT)
        low, high = chain["delta"], chain["delta_upper"]
        axes.fill_between(LATER, np.maximum(low, 1e-300), high, color="black", alpha=0.3, label="exact, not resolved")
        axes.plot(LATER, np.where(low >= SMALLEST_DELTA, low, np.nan), "k-", marker="x", label=EXACT)
        eps, lipschitz = rows["epsilon"][0], rows["lipschitz"][0]
        axes.set_title(rf"$\varepsilon = {eps:g}$, noise {noise_std:g}, Lipschitz {lipschitz:g}")
        axes.set(xlabel="rounds after the record's", ylabel=style.DELTA, yscale="log", ylim=(SMALLEST_DELTA, 3.0))
        axes.set_xticks(LATER[::5])
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def exact_every_round(epsilon: float, rounds: int, lipschitz: float, diameter: float) -> float:
    """Return the lower end of delta for linear losses whose record is used in every round, from the middle or an end."""
    chain: dict[str, Any] = UNIT | {"gradient_map": "linear", "rounds": rounds, "diameter": diameter}
    chain |= {"record": lipschitz, "neighbour": -lipschitz}
    return max(last_iterate.chain_delta(epsilon, **chain, start=start).lower for start in (0.0, diameter / 2))


def compute_every_round() -> Table:
    """Return the bounds and the exact delta of a record that is used in all rounds."""
    parts: list[dict[str, Any]] = []
    for eps, lipschitz, diameter in ((0.1, 0.1, 1.0), (0.5, 0.25, 2.0)):
        cell = {"epsilon": eps, "lipschitz": lipschitz, "diameter": diameter, "rounds": ROUNDS}
        process = unit_process(lipschitz, diameter)
        best = last_iterate.best_cyclic(eps, index=1, period=1, rounds=ROUNDS, **process)
        for name, label in EVERY_ROUND:
            parts.append({"curve": label, **cell, "delta": best.bounds[name]})
        chain = [exact_every_round(eps, int(rounds), lipschitz, diameter) for rounds in ROUNDS]
        parts.append({"curve": EXACT, **cell, "delta": chain})
    return stacked("A record used in every round, linear losses, noise 1", UNITS, parts, "eta = 1, sigma = 1")


def draw_every_round(table: Table) -> Figure:
    """Draw exact and certified curves against the rounds."""
    figure, panels = style.new_figure(table, panels=2)
    for axes, (eps, rows) in zip(panels, table.groups("epsilon"), strict=True):
        for (_, label), colour, marker in zip(EVERY_ROUND, style.COLOURS, style.MARKERS, strict=False):
            delta = rows.where(curve=label)["delta"]
            axes.plot(ROUNDS, delta, color=colour, marker=marker, markevery=5, label=label)
        axes.plot(ROUNDS, rows.where(curve=EXACT)["delta"], "k-", marker="x", markevery=5, label=EXACT)
        lipschitz, diameter = rows["lipschitz"][0], rows["diameter"][0]
        axes.set_title(rf"$\varepsilon = {eps:g}$, $2L/\sigma = {2 * lipschitz:g}$, diameter {diameter:g}")
        axes.set_xlabel("rounds")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel(style.DELTA)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


ONCE_REGIONS = ("contraction", "nonlinear", "shifted", "hybrid", "plain")
EVERY_ROUND_REGIONS = ("plain", "shifted", "joint")


def compute_once_regions() -> Table:
    """Return the smallest bound and its name over eps and later rounds."""
    eps, later = np.geomspace(0.01, 10.0, 300)[:, np.newaxis], np.arange(0, 61)
    parts: list[dict[str, Any]] = []
    for reach in (3.0, 5.0, 8.0):
        best = last_iterate.best(eps, index=1, num_records=later + 1, quick=True, **unit_process(0.5, reach))
        parts.append({"diameter": reach, "epsilon": eps, "later": later, "delta": best.delta, "bound": best.method})
    return stacked(
        r"The smallest certified bound ($2L/\sigma = 1$, convex losses)",
        UNITS,
        parts,
        "eta = 1, sigma = 1, L = 1/2, no strong convexity",
    )


def compute_every_round_regions(points: int = 24) -> Table:
    """Return the smallest bound and its name over eps and rounds, for a record that is used in all of them."""
    eps, rounds = np.geomspace(0.01, 10.0, points)[:, np.newaxis], np.unique(np.geomspace(1, 200, points).round())
    parts: list[dict[str, Any]] = []
    for reach in (2.0, 3.0, 5.0):
        best = last_iterate.best_cyclic(eps, index=1, period=1, rounds=rounds, **unit_process(0.25, reach))
        parts.append({"diameter": reach, "epsilon": eps, "rounds": rounds, "delta": best.delta, "bound": best.method})
    title = r"A record used in every round: the smallest certified bound ($2L/\sigma = 0.5$)"
    return stacked(title, UNITS, parts, "eta = 1, sigma = 1, L = 1/4, no strong convexity")


def draw_once_regions(table: Table) -> Figure:
    """Draw who wins, over eps and later rounds."""
    return _draw_regions(table, "later", "rounds after the record's", ONCE_REGIONS, log=False)


def draw_every_round_regions(table: Table) -> Figure:
    """Draw who wins, over eps and rounds."""
    return _draw_regions(table, "rounds", "rounds", EVERY_ROUND_REGIONS, log=True)


def _draw_regions(table: Table, across: str, label: str, regions: tuple[str, ...], *, log: bool) -> Figure:
    figure, panels = style.new_figure(table, panels=3)
    for axes, (reach, rows) in zip(panels, table.groups("diameter"), strict=True):
        colour_regions(axes, rows, across, regions)
        if log:
            axes.set_xscale("log")
        axes.set_xlabel(label)
        axes.set_title(rf"diameter/noise $= {reach:g}$")
    panels[0].set_ylabel(style.EPSILON)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure


def colour_regions(axes: Axes, cells: Table, across: str, regions: tuple[str, ...]) -> None:
    """Colour each cell by the bound that is smallest there, with a line and an entry of the legend for each."""
    from matplotlib.colors import ListedColormap, to_rgb  # noqa: PLC0415 - when first drawn

    eps, rounds = np.unique(cells["epsilon"]), np.unique(cells[across])
    number = np.vectorize(regions.index)(cells["bound"])
    number = np.where(cells["delta"] < style.TINY, -1, number)  # underflow: nothing to tell them apart
    number = number.reshape(len(eps), len(rounds))
    palette = ("#999999", *style.COLOURS, "#000000")[: len(regions) + 1]
    pale = [(*to_rgb(colour), 0.15) for colour in palette]  # seen on light and on dark paper
    limits: dict[str, Any] = {"vmin": -1.5, "vmax": len(regions) - 0.5}
    axes.pcolormesh(rounds, eps, number, cmap=ListedColormap(pale), shading="nearest", rasterized=True, **limits)
    for value, name, shade in zip(range(-1, len(regions)), (r"$\delta < 10^{-300}$", *regions), pale, strict=True):
        inside = number == value
        axes.fill_between([], [], color=shade, edgecolor=shade[:3], linewidth=1.8, label=name)
        if inside.any():
            axes.contour(rounds, eps, inside.astype(float), levels=[0.5], colors=[shade[:3]], linewidths=1.8)
    axes.set_yscale("log")
    axes.grid(visible=False)
