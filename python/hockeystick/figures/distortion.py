"""Zhang, Chen and Yang 2023: leakage and utility loss as protection moves more of a parameter's law, as printed and as they are.

The paper has no figure. Here the parameter is -1 or 1, each with probability 1/2, and the optimum is 0; protection moves the mass TV evenly to -2 and 2.
The adversary's prior is even, and its belief (.55, .45) after -1 and 1. After -2 and 2 it is (.6, .4) in one world, where protection leaks more, and
(.4, .6) in another. So the paper's assumptions hold: norms are at most 2, and the mean stays.

Left: Lemma 5.5 (2 C_1 - C_2 TV, said where C_2 TV is at most C_1) and Lemma 5.6 (C_1 - TV, or 0), which fall, beside C_1 + C_2 TV and C_1 - C_2 TV, which hold.
Right: Theorem 5.1, which is negative without distortion and stays too small up to TV = 1/2, beside R^2 TV, which holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import distortion, published
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked
from hockeystick.published.warning import quietly  # that formulas are unsound is the subject

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIOR, BEFORE, WORLDS = [0.5, 0.5], [0.55, 0.45], ([0.6, 0.4], [0.4, 0.6])
RADIUS = 2.0
LEAKAGE, LOSS = "leakage (square root of nats)", "utility loss"


def compute() -> Table:
    """Return both quantities over the total variation, exact, bounded and as printed."""
    before = distortion.unprotected_leakage(BEFORE, PRIOR)
    log_ratio = distortion.max_bayesian_privacy_leakage([BEFORE, *WORLDS], PRIOR)
    moved = np.linspace(0.0, before / distortion.leakage_tv_coefficient(log_ratio), 61)  # as far as Lemma 5.5 says
    leakages = {
        f"exact, towards {world}": np.array(
            [distortion.privacy_leakage((1 - tv) * np.array(BEFORE) + tv * np.array(world), PRIOR) for tv in moved]
        )
        for world in WORLDS
    }
    leakages |= {
        "upper bound": distortion.privacy_leakage_upper_bound(before, log_ratio, moved),
        "lower bound": distortion.privacy_leakage_lower_bound(before, log_ratio, moved),
        "printed, Lemma 5.5": quietly(published.privacy_leakage_upper_bound, before, log_ratio, moved),
        "printed, Lemma 5.6": np.maximum(before - moved, 0.0),
    }
    variance = 1 + (RADIUS**2 - 1) * moved  # of the protected parameter
    losses = {
        "exact": (RADIUS**2 - 1) * moved,
        "upper bound": distortion.utility_loss_tv_bound(RADIUS, moved),
        "printed, Theorem 5.1": quietly(
            published.utility_loss_upper_bound, variance, published.utility_loss_constant(RADIUS, 0.0, 0.0), moved
        ),
    }
    parts: list[dict[str, Any]] = [
        {"quantity": quantity, "curve": name, "total_variation": moved, "value": values}
        for quantity, curves in ((LEAKAGE, leakages), (LOSS, losses))
        for name, values in curves.items()
    ]
    title = "Leakage and utility loss (Zhang, Chen, Yang 2023), as printed and as they are"
    settings = (
        "belief (.55, .45) before, prior (.5, .5); parameters -1 and 1 before, -2 and 2 where they are moved; optimum 0"
    )
    return stacked(title, {"total_variation": "probability"}, parts, settings)


def draw(table: Table) -> Figure:
    """Draw a panel for each quantity: exact values in black, bounds solid, what is printed dashed."""
    figure = style.empty_figure(12.0, 5.0, table)
    for axes, (quantity, rows) in zip(figure.subplots(1, 2), table.groups("quantity"), strict=True):
        for number, (name, curve) in enumerate(rows.groups("curve")):
            printed, exact = name.startswith("printed"), name.startswith("exact")
            colour = "k" if exact else style.COLOURS[1 if printed else 0]
            line = style.LINES[number] if exact else style.LINES[1 + number % 2] if printed else "-"
            axes.plot(curve["total_variation"], curve["value"], line, color=colour, label=name)
        axes.set(xlabel="total variation of the parameter's laws", ylabel=quantity)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3)
    return figure
