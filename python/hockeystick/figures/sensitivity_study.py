"""The sensitivity study of "Convergent Differential Privacy Analysis for General Federated Learning: the f-DP Perspective".

Sun, Shen and Tao 2024, Figure 2: how far apart two runs are whose data differ in one record and whose noise is shared, against the
number of clients m, local steps K, the clip norm V, and FedProx's alpha. Table 7 has accuracy beside sensitivity.

What differs from the printed figure:

- Softmax regression, which is convex, or a network with 16 hidden units, which is not, on scikit-learn's digits, split by Dirichlet(0.1),
  in place of ResNet-18 on CIFAR-10; m = 20 and K = 5 as printed, V = 0.1 in place of 10, so that clipping acts.
- m clients are the first m of a hundred, so that the one whose record is replaced keeps its data.
- Root mean square over 4 pairs of runs.
- A thin line is the certified bound of the data sensitivity alone, summed over the rounds: gamma_1 + ... + gamma_t.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import simulate
from hockeystick.figures import style
from hockeystick.figures.fedavg_accuracy import clients
from hockeystick.figures.table import Table, stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS, EVERY, RUNS = 100, 5, 4
HIDDEN = {"softmax": 0, "network": 16}  # units of the models
COMMON: dict[str, Any] = {"learning_rate": 0.5, "noise_std": 0.02, "records": simulate.WithReplacement(8)}
USUAL = {"m": 20.0, "K": 5.0, "V": 0.1, "alpha": 0.0}
PANELS: dict[str, tuple[str, tuple[float, ...]]] = {
    "m": ("clients $m$", (10, 20, 50, 100)),
    "K": ("local steps $K$", (2, 5, 10, 20)),
    "V": ("clip norm $V$", (0.03, 0.1, 0.3, 1.0)),
    "alpha": (r"FedProx $\alpha$", (0.0, 0.1, 1.0, 2.0)),
}
TABLE_7 = (0.0, 0.01, 0.1, 1.0)  # alpha
_LOGGER = logging.getLogger(__name__)


def adjacent_problems(num_clients: int, model: str) -> tuple[simulate.Problem, simulate.Problem, simulate.Problem]:
    """Return digits in heterogeneous silos, the same with one record turned around and given another label, and test records."""
    problem, test = clients(num_clients, HIDDEN[model])
    index = int(problem.data.offsets[np.argmax((problem.sizes or ())[:10])])
    label = (problem.data.labels[index] + 5) % 10
    return problem, problem.replace_record(index, -problem.data.features[index], label), test


def algorithm_of(settings: dict[str, float]) -> simulate.NoisyFedAvg:
    """Return Noisy-FedAvg, or Noisy-FedProx where alpha is positive."""
    shared = COMMON | {"local_steps": int(settings["K"]), "clip_norm": settings["V"]}
    if settings["alpha"] > 0:
        return simulate.NoisyFedProx(**shared, prox=settings["alpha"])
    return simulate.NoisyFedAvg(**shared)


def compute_figure_2(model: str = "softmax", runs: int = RUNS, rounds: int = ROUNDS) -> Table:
    """Return the sensitivity round by round as one setting at a time varies."""
    parts: list[dict[str, Any]] = []
    for name, (_, values) in PANELS.items():
        _LOGGER.info("sensitivity of %s: %s in %s", model, name, values)
        for value in values:
            settings = USUAL | {name: value}
            algorithm = algorithm_of(settings)
            problem, adjacent, _ = adjacent_problems(int(settings["m"]), model)
            gap = simulate.sensitivity(
                algorithm, problem, adjacent, rounds=rounds, seed=1, num_runs=runs, record_every=EVERY
            )
            bound = np.cumsum(algorithm.data_sensitivity(rounds, problem.num_silos))[gap.recorded - 1]
            total = np.sqrt(np.mean(gap.total**2, axis=1))
            cell = {"model": model, "varied": name, "value": float(value), "round": gap.recorded}
            parts.append({**cell, "sensitivity": total, "data_sensitivity_bound": bound})
    title = f"Sensitivity of Noisy-FedAvg and Noisy-FedProx (Sun, Shen, Tao 2024, Figure 2), {model} on digits for CIFAR-10; thin: bounds from data sensitivity"
    units = dict.fromkeys(("sensitivity", "data_sensitivity_bound"), "norm of the model's parameters")
    return stacked(title, units, parts)


def draw_figure_2(table: Table) -> Figure:
    """Draw four panels: in each, one setting varies."""
    figure = style.empty_figure(15.0, 4.6, table)
    everywhere = figure.subplots(1, 4, sharey=True)
    for axes, (name, rows) in zip(everywhere, table.groups("varied"), strict=True):
        for (value, curve), colour, line in zip(rows.groups("value"), style.COLOURS, style.LINES, strict=True):
            axes.plot(curve["round"], curve["sensitivity"], line, color=colour, label=f"{value:g}")
            axes.plot(curve["round"], curve["data_sensitivity_bound"], color=colour, linewidth=0.7, alpha=0.7)
        axes.set(title=PANELS[name][0], xlabel="round $t$", yscale="log")
        axes.legend(title=PANELS[name][0], ncols=2)
    everywhere[0].set_ylabel(r"sensitivity $\Vert w_t - w'_t \Vert$")
    return figure


def compute_table_7(model: str = "softmax", runs: int = RUNS, rounds: int = 600) -> Table:
    """Return mean accuracy on the test records, and root mean square sensitivity, after many rounds."""
    parts: list[dict[str, Any]] = []
    problem, adjacent, test = adjacent_problems(20, model)
    for alpha in TABLE_7:
        _LOGGER.info("accuracy and sensitivity of %s: alpha = %g", model, alpha)
        algorithm = algorithm_of(USUAL | {"alpha": alpha})
        common: dict[str, Any] = {"rounds": rounds, "seed": 1, "num_runs": runs, "record_every": rounds}
        accuracy = simulate.run(algorithm, problem, **common).accuracy(test).mean()
        total = np.sqrt(np.mean(simulate.sensitivity(algorithm, problem, adjacent, **common).total ** 2))
        name = rf"Noisy-FedProx, alpha = {alpha:g}" if alpha else "Noisy-FedAvg"
        cell = {"model": model, "algorithm": name, "alpha": alpha, "rounds": rounds}
        parts.append({**cell, "accuracy": 100 * accuracy, "sensitivity": total})
    title = f"Accuracy and sensitivity (Sun, Shen, Tao 2024, Table 7), {model} on digits for CIFAR-10"
    return stacked(title, {"accuracy": "%", "sensitivity": "norm of the model's parameters"}, parts)


def draw_table_7(table: Table) -> Figure:
    """Draw accuracy against sensitivity, a point for each algorithm."""
    figure, (axes,) = style.new_figure(table)
    looks = zip(style.COLOURS, style.MARKERS, strict=True)
    for (name, row), (colour, marker) in zip(table.groups("algorithm"), looks, strict=True):
        axes.plot(row["sensitivity"], row["accuracy"], marker, color=colour, label=name, markersize=9)
    axes.set(xscale="log", ylabel="test accuracy (%)")
    axes.set_xlabel(rf"sensitivity $\Vert w_t - w'_t \Vert$ after {int(table['rounds'][0])} rounds")
    axes.legend()
    return figure
