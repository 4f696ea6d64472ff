"""What hidden states hide: exact, certified and published deltas, and which certified bound wins where.

The first picture shows projected noisy SGD in one dimension with linear losses, for which the exact delta of the last iterate is
known (`last_iterate.chain_delta`), beside the bounds of `last_iterate.best` and Theorem 4 of Asoodeh, Diaz and Calmon 2020.
The second shows, over eps and the number of later rounds, the bound that is smallest. The other two show the same for a record
that is used in every round (`last_iterate.best_cyclic`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import style
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure

from hockeystick import last_iterate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SMALLEST_DELTA = 1e-11  # below, the exact value is not resolved

CURVES = (
    ("contraction", "Theorem 4, published"),
    ("nonlinear", "nonlinear"),
    ("shifted", "shifted"),
    ("hybrid", "hybrid"),
)
REGIONS = ("contraction", "nonlinear", "shifted", "hybrid", "plain")


def exact(eps: float, later: int, process: dict[str, float]) -> tuple[float, float]:
    """Return both ends of delta for linear losses, the larger of three directions of the other records' gradient."""
    ends = []
    for others in (-1.0, 0.0, 1.0):
        record = np.concatenate([[process["lipschitz"]], np.full(later, others * process["lipschitz"])])
        other = np.concatenate([[-process["lipschitz"]], record[1:]])
        ends.append(
            last_iterate.chain_delta(
                eps,
                gradient_map="linear",
                record=record,
                neighbour=other,
                learning_rate=process["learning_rate"],
                noise_std=process["noise_std"],
                diameter=process["diameter"],
            )[:2]
        )
    return max(low for low, _ in ends), max(high for _, high in ends)


def draw_panel(axes: Axes, eps: float, process: dict[str, float]) -> None:
    """Draw all bounds and the exact value against the number of later rounds."""
    later = np.arange(0, 21)
    best = last_iterate.best(eps, index=1, num_records=later + 1, smoothness=0.0, **process)
    for (name, label), colour, marker in zip(CURVES, style.COLOURS, style.MARKERS, strict=True):
        axes.plot(later, best.bounds[name], "--" if name == "contraction" else "-", color=colour, label=label)
        axes.plot(later[::5], best.bounds[name][::5], marker, color=colour)
    ends = np.array([exact(eps, int(k), process) for k in later])
    axes.fill_between(later, np.maximum(ends[:, 0], 1e-300), ends[:, 1], color="black", alpha=0.3)
    seen = np.where(ends[:, 0] >= SMALLEST_DELTA, ends[:, 0], np.nan)
    axes.plot(later, seen, "k-", marker="x", label="exact chain")
    axes.set_title(rf"$\varepsilon = {eps:g}$, noise {process['noise_std']:g}, Lipschitz {process['lipschitz']:g}")
    axes.set_xlabel("rounds after the record's")
    axes.set_ylabel(style.DELTA)
    axes.set_yscale("log")
    axes.set_ylim(SMALLEST_DELTA, 3.0)
    axes.set_xticks(later[::5])


def draw_bounds() -> Figure:
    """Draw exact and certified curves for much and for little noise."""
    figure, panels = style.new_figure("Projected noisy SGD on [-1, 1], linear losses, one participation", panels=2)
    for axes, noise_std, lipschitz in zip(panels, (1.0, 0.4), (0.5, 0.4), strict=True):
        process: dict[str, Any] = {
            "learning_rate": 1.0,
            "noise_std": noise_std,
            "lipschitz": lipschitz,
            "diameter": 2.0,
        }
        draw_panel(axes, 0.5, process)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return figure


def colour_regions(axes: Axes, rounds: Array, eps: Array, best: last_iterate.Best, regions: tuple[str, ...]) -> None:
    """Colour each cell by the bound that is smallest there, with a line and a name for each."""
    number = np.vectorize(regions.index)(best.method)
    number = np.where(best.delta < style.TINY, -1, number)  # underflow: nothing to tell them apart
    palette = ("#999999", *style.COLOURS, "#000000")[: len(regions) + 1]
    pale = [(*to_rgb(colour), 0.15) for colour in palette]  # seen on light and on dark paper
    limits = {"vmin": -1.5, "vmax": len(regions) - 0.5}
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


def draw_region(axes: Axes, reach: float) -> None:
    """Draw the regions of the winners for one ratio of the domain's diameter to the noise."""
    eps = np.geomspace(0.01, 10.0, 300)
    later = np.arange(0, 61)
    process = unit_process(0.5, reach)
    best = last_iterate.best(eps[:, np.newaxis], index=1, num_records=later + 1, **process)
    colour_regions(axes, later, eps, best, REGIONS)
    axes.set_xlabel("rounds after the record's")
    axes.set_title(rf"diameter/noise $= {reach:g}$")


def draw_regions() -> Figure:
    """Draw who wins, over eps and later rounds, for three sizes of the domain."""
    figure, panels = style.new_figure(r"The smallest certified bound ($2L/\sigma = 1$, convex losses)", panels=3)
    for axes, reach in zip(panels, (3.0, 5.0, 8.0), strict=True):
        draw_region(axes, reach)
    panels[0].set_ylabel(style.EPSILON)
    return figure


def unit_process(lipschitz: float, diameter: float) -> dict[str, float]:
    """Return the arguments of convex losses with steps and noise of 1."""
    return {
        "learning_rate": 1.0,
        "noise_std": 1.0,
        "lipschitz": lipschitz,
        "smoothness": 0.0,
        "diameter": diameter,
    }


def exact_every_round(eps: float, rounds: int, lipschitz: float, diameter: float) -> float:
    """Return the lower end of delta for linear losses whose record is used in every round, from the middle or an end."""
    return max(
        last_iterate.chain_delta(
            eps,
            gradient_map="linear",
            record=lipschitz,
            neighbour=-lipschitz,
            rounds=rounds,
            learning_rate=1.0,
            noise_std=1.0,
            diameter=diameter,
            start=start,
        ).lower
        for start in (0.0, diameter / 2)
    )


def draw_every_round() -> Figure:
    """Draw exact and certified curves against the rounds for a record that is used in all of them."""
    figure, panels = style.new_figure("A record used in every round, linear losses, noise 1", panels=2)
    rounds = np.arange(1, 41)
    for axes, (eps, lipschitz, diameter) in zip(panels, ((0.1, 0.1, 1.0), (0.5, 0.25, 2.0)), strict=True):
        best = last_iterate.best_cyclic(eps, index=1, period=1, rounds=rounds, **unit_process(lipschitz, diameter))
        curves = (("plain", "composition"), ("shifted", "shifted"), ("joint", "joint"))
        for (name, label), colour, marker in zip(curves, style.COLOURS, style.MARKERS, strict=False):
            axes.plot(rounds, best.bounds[name], color=colour, marker=marker, markevery=5, label=label)
        exact = [exact_every_round(eps, int(n), lipschitz, diameter) for n in rounds]
        axes.plot(rounds, exact, "k-", marker="x", markevery=5, label="exact chain")
        axes.set_title(rf"$\varepsilon = {eps:g}$, $2L/\sigma = {2 * lipschitz:g}$, diameter {diameter:g}")
        axes.set_xlabel("rounds")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel(style.DELTA)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def draw_every_round_regions() -> Figure:
    """Draw who wins, over eps and rounds, for a record that is used in all of them."""
    figure, panels = style.new_figure(
        r"A record used in every round: the smallest certified bound ($2L/\sigma = 0.5$)", 3
    )
    eps, rounds = np.geomspace(0.01, 10.0, 24), np.unique(np.geomspace(1, 200, 24).round())
    for axes, reach in zip(panels, (2.0, 3.0, 5.0), strict=True):
        process = unit_process(0.25, reach)
        best = last_iterate.best_cyclic(eps[:, np.newaxis], index=1, period=1, rounds=rounds, **process)
        colour_regions(axes, rounds, eps, best, ("plain", "shifted", "joint"))
        axes.set_xscale("log")
        axes.set_xlabel("rounds")
        axes.set_title(rf"diameter/noise $= {reach:g}$")
    panels[0].set_ylabel(style.EPSILON)
    return figure


def draw() -> dict[str, Figure]:
    """Return the pictures by file name."""
    return {
        "hidden_states_bounds": draw_bounds(),
        "hidden_states_every_round": draw_every_round(),
        "hidden_states_every_round_regions": draw_every_round_regions(),
        "hidden_states_regions": draw_regions(),
    }


if __name__ == "__main__":
    style.run(draw, __doc__)
