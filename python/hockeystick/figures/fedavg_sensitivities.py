"""Table 3 of Sun, Shen and Tao 2024: the sensitivities of a round to the model and to the data, as printed and as they are.

Five local steps of 0.1, smoothness 1, four clients, clip norm 1; FedProx with alpha = 4; the constants that the paper leaves open are c = 1.2
(cyclic) and z = 1.5 (continuous). A printed value below the true one makes a privacy bound that is built on it too small: cyclic rho
here, and the cyclic and continuous gamma for learning rates above 1, since they lack that factor. FedProx's entries are the limits for many
local steps.
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

    from hockeystick.federated.arguments import Schedule

ROUNDS = np.arange(20)
STEPS: dict[str, Any] = {"local_steps": 5, "learning_rate": 0.1}
CLIENTS: dict[str, Any] = {"num_clients": 4, "clip_norm": 1.0}
SMOOTHNESS, PROX = 1.0, 4.0
CONSTANTS: dict[Schedule, float | None] = {"constant": None, "cyclic": 1.2, "stagewise": None, "continuous": 1.5}


def compute() -> Table:
    """Return rho and gamma, as printed and as they are, of every row of the table and round."""
    parts: list[dict[str, Any]] = []
    for schedule, constant in CONSTANTS.items():
        row: dict[str, Any] = STEPS | {"schedule": schedule, "constant": constant}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", published.UnsoundBoundWarning)  # that they are unsound is the subject
            rho = published.fedavg_model_sensitivity(ROUNDS, smoothness=SMOOTHNESS, **row)
            gamma = published.fedavg_data_sensitivity(ROUNDS, **CLIENTS, **row)
        sizes = federated.step_sizes(rounds=len(ROUNDS), schedule=schedule, **STEPS)
        parts.append({"row": schedule, **_columns(rho, gamma, sizes, None)})
    rho = published.fedprox_model_sensitivity(smoothness=SMOOTHNESS, prox=PROX)
    gamma = published.fedprox_data_sensitivity(**CLIENTS, prox=PROX)
    parts.append({"row": "FedProx", **_columns(rho, gamma, federated.step_sizes(rounds=len(ROUNDS), **STEPS), PROX)})
    title = "Sensitivity of a round to the model and to the data (Sun, Shen, Tao 2024, Table 3)"
    return stacked(title, dict.fromkeys(("gamma_printed", "gamma"), "norm of the model's parameters"), parts)


def _columns(rho: Any, gamma: Any, sizes: Any, prox: float | None) -> dict[str, Any]:
    """Return the columns of a row: the printed values given, and those of the steps."""
    return {
        "round": ROUNDS,
        "rho_printed": rho,
        "rho": federated.model_sensitivity(sizes, smoothness=SMOOTHNESS, prox=prox),
        "gamma_printed": gamma,
        "gamma": federated.data_sensitivity(sizes, **CLIENTS, prox=prox),
    }


def draw(table: Table) -> Figure:
    """Draw rho - 1 above and gamma below, a column for each row of the table."""
    figure = style.empty_figure(16.0, 6.5, table.title)
    panels = figure.subplots(2, len(CONSTANTS) + 1, sharex=True, sharey="row")
    for column, (row, rows) in zip(panels.T, table.groups("row"), strict=True):
        for axes, name, less in zip(column, ("rho", "gamma"), (1.0, 0.0), strict=True):
            axes.plot(rows["round"], rows[name] - less, "-", color=style.COLOURS[0], label="of the steps")
            axes.plot(rows["round"], rows[f"{name}_printed"] - less, "--", color=style.COLOURS[1], label="printed")
            axes.set_yscale("log")
        column[0].set_title(row)
        column[-1].set_xlabel("round $t$")
    panels[0, 0].set_ylabel(r"model sensitivity $\rho_t - 1$")
    panels[1, 0].set_ylabel(r"data sensitivity $\gamma_t$")
    panels[0, 0].legend(loc="lower left")
    return figure
