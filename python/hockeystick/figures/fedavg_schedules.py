"""Figure 3 of Sun, Shen and Tao 2024: the four schedules of step sizes of Noisy-FedAvg.

The step size in local step k of round t, both from 0, is the first one times 1 (constant), 1/(k + 1) (cyclic), 1/(t + 1) (stage-wise) or
1/(tK + k + 1) (continuous). The printed figure has no scale: K = 10 and 5 rounds are our choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import federated
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hockeystick.federated.arguments import Schedule

TITLES: dict[Schedule, str] = {
    "constant": r"constant: $\mu$",
    "cyclic": r"cyclically decaying: $\mu/(k + 1)$",
    "stagewise": r"stage-wise decaying: $\mu/(t + 1)$",
    "continuous": r"continuously decaying: $\mu/(tK + k + 1)$",
}


def compute(local_steps: int = 10, rounds: int = 5) -> Table:
    """Return the step sizes, in units of the first, of every schedule, round and local step."""
    t, k = np.arange(rounds)[:, np.newaxis], np.arange(local_steps)
    settings: dict[str, Any] = {"rounds": rounds, "local_steps": local_steps, "learning_rate": 1.0}
    parts = [
        {"schedule": name, "round": t, "local_step": k, "step_size": federated.step_sizes(**settings, schedule=name)}
        for name in TITLES
    ]
    title = "Schedules of the step size (Sun, Shen, Tao 2024, Figure 3)"
    return stacked(title, {"step_size": "of the first"}, parts)


def draw(table: Table) -> Figure:
    """Draw the schedules side by side, with a line where a round begins."""
    figure = style.empty_figure(15.0, 3.8, table.title)
    local_steps = int(table["local_step"].max()) + 1
    panels = figure.subplots(1, 4, sharey=True)
    for axes, (name, rows), colour in zip(panels, table.groups("schedule"), style.COLOURS, strict=True):
        steps = rows["round"] * local_steps + rows["local_step"]
        axes.step(steps, rows["step_size"], color=colour, where="mid", marker=".")
        for start in steps[rows["local_step"] == 0]:
            axes.axvline(start - 0.5, color="0.6", linewidth=0.6, linestyle=":")
        axes.set(title=TITLES[name], xlabel=f"local step; dotted: a round of {local_steps}", ylim=(0.0, 1.1))
        axes.grid(visible=False)
    panels[0].set_ylabel(r"step size, in units of $\mu$")
    return figure
