"""Theorems 12(a) and 15 of Sun, Shen and Tao (2024) as printed against the certified parameter, over the rounds T.

Linear losses have exactly the certified parameter, sqrt(T) times that of one round, whatever smoothness L is assumed
of them. The printed curves level off below it: they are no privacy guarantees.

The vertical axis is in units that leave little but the expansion rho per round: 2 lr V K/(sqrt(m) sigma) for
Noisy-FedAvg with rho = (1 + lr L)^K, and 2V/(sqrt(m) prox sigma) for Noisy-FedProx with rho = prox/(prox - L). There
the certified value is (1 - (1 - lr prox)^K) sqrt(T); with few local steps the printed bound, which does not know K,
starts above it.
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

ROUNDS = np.unique(np.geomspace(1, 1000, 61).round())
RHO = np.array([1.05, 1.2, 2.0, 4.0])
COMMON: dict[str, Any] = {"rounds": ROUNDS, "num_clients": 4, "clip_norm": 1.0}  # 2V/sqrt(m) = 1
PROX = 2.0

# The noise makes the unit of the vertical axis 1.
FEDAVG = COMMON | {"local_steps": 1, "noise_std": 1.0, "learning_rate": 1.0}
FEDPROX = COMMON | {"local_steps": 5, "noise_std": 1.0 / PROX, "learning_rate": 0.2 / PROX, "prox": PROX}
THEOREMS = (
    ("12(a)", published.fedavg_gdp, federated.fedavg_gdp, FEDAVG | {"smoothness": (RHO - 1.0)[:, np.newaxis]}),
    ("15", published.fedprox_gdp, federated.fedprox_gdp, FEDPROX | {"smoothness": PROX * (1 - 1 / RHO)[:, np.newaxis]}),
)


def compute() -> Table:
    """Return both theorems, as printed and as certified, for every expansion and number of rounds."""
    parts: list[dict[str, Any]] = []
    for theorem, printed, certified, cell in THEOREMS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", published.UnsoundBoundWarning)  # that they are unsound is the subject
            bounds = {"printed": printed(**cell), "certified": certified(**cell)}
        for bound, mu in bounds.items():
            parts.append({"theorem": theorem, "bound": bound, "rho": RHO[:, np.newaxis], "rounds": ROUNDS, "mu": mu})
    title = "Federated learning by f-DP (Sun, Shen, Tao 2024): Theorems 12(a) and 15 as printed, and what is certified"
    return stacked(title, {"mu": "2 lr V K/(sqrt(m) sigma) for 12(a), 2 V/(sqrt(m) prox sigma) for 15"}, parts)


def draw(table: Table) -> Figure:
    """Draw the printed curves, one per expansion, and the certified one, which does not depend on it."""
    figure, panels = style.new_figure(table.title, 2)
    for axes, (_, rows) in zip(panels, table.groups("theorem"), strict=True):
        exact = [curve["mu"] for _, curve in rows.where(bound="certified").groups("rho")]
        label = r"certified, attained by linear losses (every $\rho$)"
        axes.plot(ROUNDS, np.max(exact, axis=0), "k-", linewidth=2.6, label=label)
        looks = zip(style.COLOURS, style.LINES, style.MARKERS, strict=True)
        for (rho, curve), (colour, line, marker) in zip(rows.where(bound="printed").groups("rho"), looks, strict=True):
            look: dict[str, Any] = {"color": colour, "marker": marker, "markevery": (4, 10)}
            axes.plot(curve["rounds"], curve["mu"], line, label=rf"printed, $\rho = {rho:g}$", **look)
        axes.set(xscale="log", yscale="log", xlabel="communication rounds $T$")
    fedavg, fedprox = panels
    fedavg.set_title(r"Noisy-FedAvg, Theorem 12(a): $\rho = (1 + \eta L)^K$")
    fedprox.set_title(r"Noisy-FedProx, Theorem 15: $\rho = \alpha/(\alpha - L)$, $\eta\alpha = 0.2$, $K = 5$")
    fedavg.set_ylabel(r"Gaussian-DP parameter $\mu$, in units of $2 \eta V K / (\sqrt{m} \, \sigma)$")
    fedprox.set_ylabel(r"Gaussian-DP parameter $\mu$, in units of $2 V / (\sqrt{m} \, \alpha \sigma)$")
    fedavg.legend(loc="upper left")
    return figure
