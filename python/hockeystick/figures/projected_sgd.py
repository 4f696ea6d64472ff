"""Figures 2 and 3 of "Privacy Amplification of Iterative Algorithms via Contraction Coefficients".

Asoodeh, Diaz and Calmon 2020. delta against eps of projected noisy SGD's last iterate for several records: Theorem 4
beside the Renyi route of Proposition 1.

What may differ from the printed figures:

- The captions do not give the axes; the ranges here are chosen to show where the curves cross.
- Proposition 1 holds only for eps > kappa. Below, the printed formula is no bound, and its curve here is 1, which is
  trivial but true. In Figure 3 this is the first third of the axis for record 39 (kappa = 1.6).
- Proposition 1 is evaluated as the paper prints it (M to the power n - i + 1).

The black curves are new: the exact delta of one process that the theorems cover, on an interval of that diameter, for linear losses
(Figure 2) or quadratic ones (Figure 3), where it is at least 1e-11; `last_iterate.chain_delta` resolves no less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import last_iterate
from hockeystick.figures import hidden_states, style
from hockeystick.figures.table import Table, stacked
from hockeystick.utility.settings import Arguments

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

NUM_RECORDS = 40
SMALLEST_EXACT = 1e-11


@dataclass(frozen=True)
class Printed(Arguments):
    """One figure of the paper: its caption's parameters, and our axes."""

    number: int
    records: tuple[int, ...]
    learning_rate: float
    noise_std: float
    strong_convexity: float
    largest_eps: float
    lipschitz: float = 1.0
    smoothness: float = 0.5
    diameter: float = 1.0
    smallest_delta: float = 1e-40


FIGURES = {
    2: Printed(2, records=(1, 20, 39), learning_rate=0.5, noise_std=2.0, strong_convexity=0.0, largest_eps=2.0),
    3: Printed(3, records=(20, 30, 39), learning_rate=0.7, noise_std=1.0, strong_convexity=0.2, largest_eps=5.0),
}
THEOREM, RENYI, EXACT = "Theorem 4", "Proposition 1 (Rényi)", "exact chain"


def caption(printed: Printed) -> str:
    """Return the parameters in the paper's letters."""
    return (
        f"n = {NUM_RECORDS}, sigma = {printed.noise_std:g}, eta = {printed.learning_rate:g}, L = {printed.lipschitz:g}, "
        f"beta = {printed.smoothness:g}, rho = {printed.strong_convexity:g}, D_K = {printed.diameter:g}"
    )


def exact(printed: Printed, record: int, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return delta of a scalar chain with the figure's constants, the larger of two directions of the other records."""
    curvature = printed.strong_convexity
    # a quadratic's gradient curvature (w - x) has the size lipschitz at the far end of the interval
    size = printed.lipschitz / curvature - printed.diameter / 2 if curvature else printed.lipschitz
    chain = {name: getattr(printed, name) for name in ("learning_rate", "noise_std", "diameter")}
    chain |= {"gradient_map": "quadratic" if curvature else "linear", "smoothness": curvature or None}
    lower = hidden_states.exact(epsilon, NUM_RECORDS - record, size, (-1.0, 1.0), **chain)[0]
    return np.where(lower >= SMALLEST_EXACT, lower, np.nan)


def compute(number: int) -> Table:
    """Return both bounds and the exact chain of one figure, for its records and every eps."""
    printed = FIGURES[number]
    eps = np.linspace(0.0, printed.largest_eps, 401)
    records = np.array(printed.records)[:, np.newaxis]
    places: dict[str, Any] = {"epsilon": eps, "index": records, "num_records": NUM_RECORDS}
    curves = {
        THEOREM: printed.of(last_iterate.pnsgd_gaussian, **places),
        RENYI: printed.of(last_iterate.pnsgd_rdp, **places),
        EXACT: np.array([exact(printed, record, eps) for record in printed.records]),
    }
    parts = [
        {"figure": number, "curve": name, "record": records, "epsilon": eps, "delta": delta}
        for name, delta in curves.items()
    ]
    title = f"Projected noisy SGD (Asoodeh, Diaz, Calmon 2020), Figure {number}"
    return stacked(title, {"epsilon": "nats", "delta": "probability"}, parts, caption(printed))


def draw(table: Table) -> Figure:
    """Draw both bounds for every record: colour and marker tell the record, the line style tells the bound."""
    printed = FIGURES[int(table["figure"][0])]
    figure, (axes,) = style.new_figure(table)
    for name, line in ((THEOREM, "-"), (RENYI, "--"), (EXACT, "-")):
        looks = zip(style.COLOURS, style.MARKERS, strict=True)
        for (record, rows), (colour, marker) in zip(table.where(curve=name).groups("record"), looks, strict=False):
            delta = rows["delta"] if name == EXACT else style.visible(rows["delta"])
            if np.isfinite(delta).mean() > 0.05:  # more than a point or two
                look: dict[str, Any] = {"marker": marker, "markevery": (25, 50), "label": rf"{name}, $i = {record}$"}
                axes.plot(rows["epsilon"], delta, line, color="k" if name == EXACT else colour, **look)
    style.privacy_axes(axes, smallest_delta=printed.smallest_delta)
    note = r"Proposition 1 says nothing ($\delta = 1$) for $\varepsilon \leq \kappa$"
    figure.legend(loc="outside lower center", ncols=2, title=note)
    return figure
