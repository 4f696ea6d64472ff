"""Figure 3 of Lowy and Razaviyayn 2023, which is a table: rates of the excess risk, upper and lower, and rounds of communication.

The table is evaluated over epsilon (`utility.risk_rates`) for one problem. A rate has the constant 1 in place of one that is
not known, and logarithms as its theorem has them: **neither curve is a bound**, only their shapes and distances in order of magnitude
are comparable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import utility
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPS = np.geomspace(0.02, 2.0, 41)
PROBLEM: dict[str, Any] = {
    "num_silos": 25,
    "num_records": 10_000,
    "dimension": 10,
    "lipschitz": 1.0,
    "diameter": 2.0,
    "smoothness": 1.0,
    "delta": 1e-5,
}
CURVATURES = {"convex": 0.0, "strongly convex": 0.1}
COLOURS = (*style.COLOURS, "#E69F00", "#56B4E9")


def compute() -> Table:
    """Return the rates and the rounds of every algorithm, over epsilon."""
    parts: list[dict[str, Any]] = []
    for losses, curvature in CURVATURES.items():
        for eps in EPS:
            found = utility.risk_rates(**PROBLEM, epsilon=float(eps), strong_convexity=curvature)
            for pair in found.pairs:
                cell = {"algorithm": pair.algorithm, "privacy": pair.notion, "risk": pair.objective, "losses": losses}
                upper = {"upper_theorem": pair.upper_source, "upper": pair.upper, "rounds": pair.rounds}
                lower = {"lower_theorem": pair.lower_source, "lower": pair.lower}
                parts.append({**cell, "epsilon": eps, **upper, **lower})
    title = "Rates of the excess risk (Lowy, Razaviyayn 2023, Figure 3): orders of magnitude, no bounds"
    units = {"epsilon": "nats", **dict.fromkeys(("upper", "lower"), "of the loss, up to constants")}
    settings = (
        "N = M = 25, n = 10000, d = 10, L = 1, D = 2, beta = 1, delta = 1e-5; mu = 0.1 where losses are strongly convex"
    )
    return stacked(title, units, parts, settings)


def draw(table: Table) -> Figure:
    """Draw upper and lower rates over epsilon, a panel for each algorithm, and the rounds."""
    algorithms = [name for name, _ in table.groups("algorithm")]
    figure = style.empty_figure(18.0, 7.0, table)
    panels = figure.subplots(2, len(algorithms) + 1, sharex=True)
    for row, (losses, found) in zip(panels, table.groups("losses"), strict=True):
        for axes, name, colour in zip(row, algorithms, COLOURS, strict=False):
            rates = found.where(algorithm=name)
            for bound, line in (("upper", "-"), ("lower", "--")):
                axes.plot(rates["epsilon"], rates[bound], line, color=colour)
            row[-1].plot(rates["epsilon"], rates["rounds"], color=colour, label=name)
            theorems = f"Theorem {rates['upper_theorem'][0]}; lower: {rates['lower_theorem'][0]}"
            axes.set_title(f"{name}, {rates['privacy'][0]},\n{losses}\n{theorems}", fontsize=9)
            axes.set(xscale="log", yscale="log")
        row[-1].set(title=f"rounds, {losses}", xscale="log", yscale="log")
        row[0].set_ylabel("rate of the excess risk\n(dashed: lower)")
    figure.legend(*panels[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=len(algorithms))
    for axes in panels[-1]:
        axes.set_xlabel(style.EPSILON)
    return figure
