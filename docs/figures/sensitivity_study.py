"""The sensitivity study of "Convergent Differential Privacy Analysis for General Federated Learning: the f-DP Perspective".

Sun, Shen and Tao 2024, Figure 2: how far apart two runs are whose data differ in one record and whose noise is shared, against the
number of clients m, local steps K, the clip norm V, and FedProx's alpha. Table 7, accuracy beside sensitivity, is printed.

What differs from the printed figure:

- Softmax regression on scikit-learn's digits, split by Dirichlet(0.1), in place of ResNet-18 on CIFAR-10; m = 20 and K = 5 as
  printed, V = 0.1 in place of 10, so that clipping acts.
- m clients are the first m of a hundred, so that the one whose record is replaced keeps its data.
- Root mean square over 4 pairs of runs.
- A thin line is the certified bound of the data sensitivity alone, summed over the rounds: gamma_1 + ... + gamma_t.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import style
from matplotlib.figure import Figure

from hockeystick import simulate

ROUNDS, EVERY, RUNS = 100, 5, 4
COMMON: dict[str, Any] = {"learning_rate": 0.5, "noise_std": 0.02, "records": simulate.WithReplacement(8)}
PANELS: dict[str, tuple[str, tuple[float, ...]]] = {
    "m": ("clients $m$", (10, 20, 50, 100)),
    "K": ("local steps $K$", (2, 5, 10, 20)),
    "V": ("clip norm $V$", (0.03, 0.1, 0.3, 1.0)),
    "alpha": (r"FedProx $\alpha$", (0.0, 0.1, 1.0, 2.0)),
}


def adjacent_problems(num_clients: int) -> tuple[simulate.Problem, simulate.Problem, simulate.Problem]:
    """Return digits in heterogeneous silos, the same with one record turned around and given another label, and test records."""
    every, test = simulate.load("digits", num_silos=100, concentration=0.1, seed=1)
    sizes = (every.sizes or ())[:num_clients]
    count = sum(sizes)
    problem = simulate.Problem(
        "softmax", every.data.features[:count], every.data.labels[:count], sizes, num_classes=10, feature_bound=1.0
    )
    index = int(problem.data.offsets[np.argmax(sizes[:10])])
    label = (problem.data.labels[index] + 5) % 10
    return problem, problem.replace_record(index, -problem.data.features[index], label), test


def algorithm_of(settings: dict[str, float]) -> simulate.NoisyFedAvg:
    """Return Noisy-FedAvg, or Noisy-FedProx where alpha is positive."""
    shared = COMMON | {"local_steps": int(settings["K"]), "clip_norm": settings["V"]}
    if settings["alpha"] > 0:
        return simulate.NoisyFedProx(**shared, prox=settings["alpha"])
    return simulate.NoisyFedAvg(**shared)


def draw() -> dict[str, Figure]:
    """Return the four panels: in each, one setting varies."""
    figure = Figure(figsize=(15.0, 4.6), layout="constrained")
    figure.suptitle("Sensitivity of Noisy-FedAvg and Noisy-FedProx (Sun, Shen, Tao 2024, Figure 2), on digits")
    everywhere = figure.subplots(1, 4, sharey=True)
    for axes, (name, (title, values)) in zip(everywhere, PANELS.items(), strict=True):
        for value, colour, line in zip(values, style.COLOURS, style.LINES, strict=True):
            settings = {"m": 20.0, "K": 5.0, "V": 0.1, "alpha": 0.0} | {name: value}
            algorithm = algorithm_of(settings)
            problem, adjacent, _ = adjacent_problems(int(settings["m"]))
            gap = simulate.sensitivity(
                algorithm, problem, adjacent, rounds=ROUNDS, seed=1, num_runs=RUNS, record_every=EVERY
            )
            total = np.sqrt(np.mean(gap.total**2, axis=1))
            axes.plot(gap.recorded, total, line, color=colour, label=f"{value:g}")
            bound = np.cumsum(algorithm.data_sensitivity(ROUNDS, problem.num_silos))[gap.recorded - 1]
            axes.plot(gap.recorded, bound, color=colour, linewidth=0.7, alpha=0.7)
        axes.set_title(title)
        axes.set_xlabel("round $t$")
        axes.set_yscale("log")
        axes.legend(title=title, ncols=2)
    everywhere[0].set_ylabel(r"sensitivity $\Vert w_t - w'_t \Vert$")
    return {"sensitivity_study": figure}


def table_7(rounds: int = 600) -> str:
    """Return mean accuracy on the test records, and root mean square sensitivity, after many rounds."""
    problem, adjacent, test = adjacent_problems(20)
    rows = [f"after {rounds} rounds          accuracy  sensitivity"]
    for alpha in (0.0, 0.01, 0.1, 1.0):
        algorithm = algorithm_of({"K": 5.0, "V": 0.1, "alpha": alpha})
        common: dict[str, Any] = {"rounds": rounds, "seed": 1, "num_runs": RUNS, "record_every": rounds}
        accuracy = simulate.run(algorithm, problem, **common).accuracy(test).mean()
        total = np.sqrt(np.mean(simulate.sensitivity(algorithm, problem, adjacent, **common).total ** 2))
        name = f"Noisy-FedProx {alpha:g}" if alpha else "Noisy-FedAvg"
        rows.append(f"{name:24}{100 * accuracy:8.1f} %{total:12.3g}")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table_7())
    style.run(draw, __doc__)
