"""Figure 3 of Lowy and Razaviyayn 2023, which is a table: rates of the excess risk, upper and lower, and rounds of communication.

The table is evaluated over epsilon for one problem: N = M = 25 silos of 10,000 records, d = 10, Lipschitz constant and smoothness 1, diameter 2,
gradients of standard deviation 1, delta = 1e-5, and strong convexity 0.1 where there is any. A rate has the constant 1 in place of one that is
not known, and logarithms as its theorem has them: **neither curve is a bound**, only their shapes and distances in order of magnitude
are comparable. The numbers are those of
`utility.risk_rates`. Lower curves of the heterogeneous setting have the compositionality of the one-pass algorithm, C^2 = R, as the caption says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked
from hockeystick.utility import RatePair, risk_rates

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
CONVEX, STRONG = "convex", "strongly convex"
CURVATURE = {CONVEX: 0.0, STRONG: 0.1}
SETTINGS = {
    "MB-SGD": "ISRL-DP, one law",
    "one-pass AC-SA": "ISRL-DP, many laws",
    "accelerated MB-SGD": "ISRL-DP, empirical",
    "shuffled MB-SGD": "shuffled, one law",
    "shuffled one-pass AC-SA": "shuffled, many laws",
}


def compute() -> Table:
    """Return the rates and the rounds of every row, over epsilon."""
    parts = []
    for losses, curvature in CURVATURE.items():
        rates = [risk_rates(**PROBLEM, strong_convexity=curvature, epsilon=eps).pairs for eps in EPS.tolist()]
        for pairs in zip(*rates, strict=True):
            if pairs[0].algorithm in SETTINGS:
                setting = {"setting": SETTINGS[pairs[0].algorithm], "losses": losses, "eps": EPS}
                parts += [setting | _bound("upper", pairs), setting | _bound("lower", pairs)]
    title = "Rates of the excess risk (Lowy, Razaviyayn 2023, Figure 3): orders of magnitude, no bounds"
    return stacked(title, {"eps": "nats", "rate": "of the loss, up to constants"}, parts)


def _bound(bound: Literal["upper", "lower"], pairs: Sequence[RatePair]) -> dict[str, Any]:
    """Return the columns of one curve; rounds are those of the upper rate."""
    upper = bound == "upper"
    return {
        "bound": bound,
        "theorem": pairs[0].upper_source if upper else pairs[0].lower_source,
        "rate": np.array([pair.upper if upper else pair.lower for pair in pairs]),
        "rounds": np.array([pair.rounds if upper else np.nan for pair in pairs]),
    }


def draw(table: Table) -> Figure:
    """Draw upper and lower rates over epsilon, a panel for each setting, and the rounds."""
    figure = style.empty_figure(16.0, 7.0, table.title)
    settings = list(table.groups("setting"))
    panels = figure.subplots(2, len(settings) + 1, sharex=True)
    for row, losses in zip(panels, (CONVEX, STRONG), strict=True):
        for axes, (setting, rows), colour in zip(row, settings, (*style.COLOURS, "k"), strict=False):
            for bound, curve in rows.where(losses=losses).groups("bound"):
                line = "-" if bound == "upper" else "--"
                label = f"{bound}: Theorem {curve['theorem'][0]}"
                axes.plot(curve["eps"], curve["rate"], line, color=colour, label=label)
                if np.isfinite(curve["rounds"]).any():
                    row[-1].plot(curve["eps"], curve["rounds"], color=colour, label=setting)
            axes.set(title=f"{setting},\n{losses}", xscale="log", yscale="log")
            axes.legend(fontsize=7.5, loc="upper right")
        row[-1].set(title=f"rounds, {losses}", xscale="log", yscale="log")
        row[-1].legend(fontsize=7.5, loc="center right")
        row[0].set_ylabel("rate of the excess risk")
    for axes in panels[-1]:
        axes.set_xlabel(style.EPSILON)
    return figure
