"""Figures 1 and 2 of Lowy and Razaviyayn 2023, which are drawings: from whom a notion of privacy hides a record, and whom it trusts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hockeystick.figures import style
from hockeystick.figures.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTIES = ("own hospital", "shuffler", "server", "other hospitals", "the public")
NOTIONS = {  # what keeps a patient's record from each party
    "local": ("noise",) * 5,
    "inter-silo record-level": ("trusted", *("noise",) * 4),
    "shuffle": ("trusted", '"trusted",\nmessages are noisy', *("noise",) * 3),
    "central": (*("trusted",) * 4, "noise"),
    "user-level": (*("trusted",) * 4, "noise for the\nhospital as a whole"),
}
FIGURE_1 = ("inter-silo record-level", "user-level")
TRUSTED, HIDDEN = "#F3C9A5", "#B5D5E8"


def compute(number: int) -> Table:
    """Return what each party may see under each notion, of all notions (Figure 2) or of the two that Figure 1 compares."""
    rows = [
        (notion, party, seen)
        for notion, found in NOTIONS.items()
        if number == 2 or notion in FIGURE_1
        for party, seen in zip(PARTIES, found, strict=True)
        if number == 2 or party != "shuffler"
    ]
    titles = {1: "From whom a patient's record is hidden", 2: "Whom one trusts, by notion of privacy"}
    columns = dict(zip(("notion", "party", "between"), map(np.array, zip(*rows, strict=True)), strict=True))
    return Table(f"{titles[number]} (Lowy, Razaviyayn 2023, Figure {number})", columns, {})


def draw(table: Table) -> Figure:
    """Draw a row for each notion: the record on the left, then the parties, each in the colour of what is between it and the record."""
    notions = list(table.groups("notion"))
    figure = style.empty_figure(12.0, 2.0 + 0.7 * len(notions), table)
    axes = figure.subplots()
    for height, (notion, rows) in zip(range(len(notions))[::-1], notions, strict=True):
        axes.text(-0.1, height, f"{notion} DP", ha="right", va="center", fontsize=11)
        for place, (party, between) in enumerate(zip(rows["party"], rows["between"], strict=True)):
            box = {
                "boxstyle": "round,pad=0.5",
                "facecolor": TRUSTED if "trusted" in between else HIDDEN,
                "edgecolor": "0.3",
            }
            axes.text(
                1.0 + 1.5 * place,
                height,
                f"{party}\n{between}",
                ha="center",
                va="center",
                fontsize=9,
                color="k",
                bbox=box,
            )
        axes.annotate("", (0.4, height), (0.0, height), arrowprops={"arrowstyle": "->", "color": "0.4"})
    axes.set(xlim=(-1.9, 1.8 + 1.5 * (len(rows["party"]) - 1)), ylim=(-0.6, len(notions) - 0.4))
    axes.axis("off")
    return figure
