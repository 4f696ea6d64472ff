"""Table 6 of Sun, Shen and Tao 2024: accuracy of Noisy-FedAvg over clients, local steps and noise, with the certified epsilon beside it.

What differs from the printed table:

- Softmax regression on scikit-learn's digits, split by Dirichlet(0.1) into a hundred clients, of which the first m take part, in place of
  LeNet-5 on MNIST and ResNet-18 on CIFAR-10.
- TK = 3000 steps in place of 30000; clip norm 1 and step size 0.1 are our choice, since the paper does not say what it uses.
- 3 runs, not 5.
- The column of epsilon, at delta = 1e-5 against whoever sees the last model, is not printed. It is large everywhere: where these models are
  accurate they have no meaningful guarantee by this analysis.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from hockeystick import federated, simulate
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLIENTS, LOCAL_STEPS, NOISES = (50, 100), (50, 100, 200), (1.0, 1e-1, 1e-2, 1e-3)
STEPS, RUNS, DELTA = 3000, 3, 1e-5
SETTINGS: dict[str, Any] = {"clip_norm": 1.0, "learning_rate": 0.1}
_LOGGER = logging.getLogger(__name__)


def clients(count: int, hidden: int = 0) -> tuple[simulate.Problem, simulate.Problem]:
    """Return the first of a hundred heterogeneous clients, and test records; with hidden units for a network."""
    every, test = simulate.load("digits", num_silos=100, concentration=0.1, seed=1, hidden=hidden)
    sizes = (every.sizes or ())[:count]
    used = sum(sizes)
    settings: dict[str, Any] = {"num_classes": 10, "hidden": hidden, "feature_bound": 1.0}
    data = every.data.features[:used], every.data.labels[:used]
    return simulate.Problem(every.loss, *data, sizes, **settings), test


def compute(runs: int = RUNS, steps: int = STEPS) -> Table:
    """Return mean and standard deviation of the accuracy, and the certified epsilon, of every cell."""
    parts: list[dict[str, Any]] = []
    for count in CLIENTS:
        problem, test = clients(count)
        for local in LOCAL_STEPS:
            _LOGGER.info("accuracy: m = %d, K = %d", count, local)
            for noise in NOISES:
                cell = SETTINGS | {"local_steps": local, "noise_std": noise}
                algorithm = simulate.NoisyFedAvg(**cell, records=simulate.WithReplacement(4))
                rounds = steps // local
                result = simulate.run(algorithm, problem, rounds=rounds, seed=1, num_runs=runs, record_every=rounds)
                accuracy = 100 * result.accuracy(test)[-1]
                eps = federated.fedavg_epsilon(DELTA, rounds=rounds, num_clients=count, smoothness=0.0, **cell)
                row = {"m": count, "K": local, "T": rounds, "sigma": noise}
                parts.append({**row, "accuracy": accuracy.mean(), "deviation": accuracy.std(), "epsilon": eps})
    title = "Accuracy of Noisy-FedAvg (Sun, Shen, Tao 2024, Table 6), softmax on digits for MNIST, and its certified privacy"
    return stacked(title, {"accuracy": "%", "deviation": "%", "epsilon": "nats, at delta = 1e-5, upper bound"}, parts)


def draw(table: Table) -> Figure:
    """Draw accuracy over the noise, and below it the epsilon."""
    figure = style.empty_figure(11.0, 7.0, table)
    panels = figure.subplots(2, len(CLIENTS), sharex=True, sharey="row", squeeze=False)
    for column, (count, rows) in zip(panels.T, table.groups("m"), strict=True):
        top, bottom = column
        looks = zip(style.COLOURS, style.LINES, style.MARKERS, strict=True)
        for (local, cells), (colour, line, marker) in zip(rows.groups("K"), looks, strict=False):
            look: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker, "label": f"$K = {local}$"}
            top.errorbar(cells["sigma"], cells["accuracy"], cells["deviation"], capsize=3, **look)
            bottom.plot(cells["sigma"], cells["epsilon"], **look)
        top.set(title=f"$m = {count}$", xscale="log")
        bottom.set(yscale="log", xlabel=r"noise $\sigma$")
    panels[0, 0].set_ylabel("test accuracy (%)")
    panels[1, 0].set_ylabel(r"certified $\varepsilon$ (nats) at $\delta = 10^{-5}$")
    panels[0, 0].legend()
    return figure
