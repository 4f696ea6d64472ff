"""Table 1 of Sun, Shen and Tao 2024: the five printed parameters, and what is certified in their place.

Four clients, a hundred local steps of size 1, clip norm 0.01, noise 1, smoothness 0.01; FedProx with alpha = 0.5. The constants that the
paper leaves open are c = 1.3 (cyclic) and z = 1.5 (continuous). Printed curves below the certified ones, which linear losses attain where the
step is constant or cyclic, are no guarantees; the stage-wise one is, and is loose.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import federated, published
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS = np.unique(np.geomspace(1, 1000, 31).round()).astype(int)
COMMON: dict[str, Any] = {
    "local_steps": 100,
    "num_clients": 4,
    "clip_norm": 0.01,
    "noise_std": 1.0,
    "smoothness": 0.01,
    "learning_rate": 1.0,
}
PROX = 0.5
FEDAVG: dict[str, dict[str, Any]] = {  # schedule and the constants of the printed form
    "constant": {},
    "cyclic": {"c": 1.3},
    "stagewise": {},
    "continuous": {"z": 1.5},
}
TITLES = ("C: Theorem 12(a)", "CD: Theorem 12(b)", "SD: Theorem 12(c)", "ID: Theorem 12(d)", "FedProx: Theorem 15")


def compute() -> Table:
    """Return the printed and the certified parameter of every row of the table, over the rounds."""
    rows: dict[str, tuple[Any, Any]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", published.UnsoundBoundWarning)  # that they are unsound is the subject
        for schedule, constants in FEDAVG.items():
            cell = COMMON | {"rounds": ROUNDS, "schedule": schedule}
            rows[schedule] = published.fedavg_gdp(**cell, **constants), federated.fedavg_gdp(**cell)
        cell = COMMON | {"rounds": ROUNDS, "prox": PROX}
        rows["FedProx"] = published.fedprox_gdp(**cell), federated.fedprox_gdp(**cell)
    parts = [
        {"row": row, "theorem": title, "rounds": ROUNDS, "mu_printed": printed, "mu_certified": certified}
        for title, (row, (printed, certified)) in zip(TITLES, rows.items(), strict=True)
    ]
    return stacked("Gaussian-DP parameters (Sun, Shen, Tao 2024, Table 1), as printed and as certified", {}, parts)


def draw(table: Table) -> Figure:
    """Draw a panel for each row of the table."""
    figure = style.empty_figure(17.0, 4.0, table.title)
    panels = figure.subplots(1, len(TITLES), sharey=True)
    for axes, (theorem, rows) in zip(panels, table.groups("theorem"), strict=True):
        axes.plot(rows["rounds"], rows["mu_certified"], "-", color=style.COLOURS[0], label="certified")
        axes.plot(rows["rounds"], rows["mu_printed"], "--", color=style.COLOURS[1], label="printed")
        axes.set(title=theorem, xscale="log", yscale="log", xlabel="communication rounds $T$")
    panels[0].set_ylabel(r"Gaussian-DP parameter $\mu$")
    panels[0].legend(loc="upper left")
    return figure
