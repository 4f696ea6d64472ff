"""Table 4 of Sun, Shen and Tao 2024: how the noise of earlier works, and of theirs, grows with the rounds.

Budget epsilon = 1, delta = 1e-5; 50 clients, 50 local steps, clip norm 1. The table has orders only, with every constant left out:
**no curve is a guarantee**, and only slopes are comparable. The black line has the slope that is true for constant steps: linear losses need noise
that grows as the square root of the rounds, so that the flat line of the paper's own row cannot hold for them. Right: Renyi divergences of order 2.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from hockeystick import published
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked
from hockeystick.published.federated_fdp import NoiseWork, RenyiWork

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS = np.unique(np.geomspace(10, 10_000, 31).round()).astype(int)
COMMON: dict[str, Any] = {"rounds": ROUNDS, "local_steps": 50, "num_clients": 50, "clip_norm": 1.0}
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
TRUE = "linear losses (slope)"


def compute() -> Table:
    """Return the expressions of all rows over the rounds."""
    parts: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", published.UnsoundBoundWarning)  # orders: the caption says so
        for work in get_args(NoiseWork):
            order = published.compared_noise_std(work, **COMMON, **BUDGET)
            parts.append({"quantity": "noise", "work": work, "rounds": ROUNDS, "order": order})
        own = parts[-1]["order"]
        parts.append(
            {"quantity": "noise", "work": TRUE, "rounds": ROUNDS, "order": own[0] * np.sqrt(ROUNDS / ROUNDS[0])}
        )
        for renyi in get_args(RenyiWork):
            order = published.compared_rdp(renyi, 2.0, noise_std=1.0, **COMMON)
            parts.append({"quantity": "Renyi divergence", "work": renyi, "rounds": ROUNDS, "order": order})
    title = "Noise and Rényi divergence of earlier works (Sun, Shen, Tao 2024, Table 4): orders, no guarantees"
    return stacked(title, {"order": "up to constants"}, parts)


def draw(table: Table) -> Figure:
    """Draw both quantities over the rounds."""
    figure = style.empty_figure(13.0, 5.4, table.title)
    for axes, (quantity, rows) in zip(figure.subplots(1, 2), table.groups("quantity"), strict=True):
        for number, (work, curve) in enumerate(rows.groups("work")):
            own = work == "sun2024"
            look = {"color": "k", "linewidth": 2.6} if work == TRUE else {"color": style.COLOURS[number % 4]}
            line = "-" if own or work == TRUE else style.LINES[1 + number // 4]
            axes.plot(curve["rounds"], curve["order"], line, label=f"{work} (this paper)" if own else work, **look)
        axes.set(xscale="log", yscale="log", xlabel="communication rounds $T$", ylabel=f"{quantity}, up to constants")
        axes.legend(fontsize=8, loc="upper left")
    return figure
