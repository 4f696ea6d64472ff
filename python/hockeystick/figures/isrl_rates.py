"""Figure 3 of Lowy and Razaviyayn 2023, which is a table: rates of the excess risk, upper and lower, and rounds of communication.

The table is evaluated over epsilon for one problem: N = M = 25 silos of 10,000 records, d = 10, Lipschitz constant and smoothness 1, diameter 2,
gradients of standard deviation 1, delta = 1e-5, and strong convexity 0.1 where there is any. A rate has the constant 1 in place of one that is
not known, and logarithms as its theorem has them: **neither curve is a bound**, only their shapes and distances in order of magnitude
are comparable. Lower curves of the heterogeneous setting have the compositionality of the one-pass algorithm, C^2 = R, as the caption says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import isrl
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPS = np.geomspace(0.02, 2.0, 41)
LIPSCHITZ: dict[str, Any] = {"lipschitz": 1.0, "num_records": 10_000, "dimension": 10, "epsilon": EPS}
PRIVATE = LIPSCHITZ | {"delta": 1e-5, "silos_per_round": 25}
DIAMETER: dict[str, Any] = {"diameter": 2.0}
SILOS: dict[str, Any] = {"num_silos": 25}
ONE_PASS = (
    PRIVATE | SILOS | {"gradient_std": 1.0, "smoothness": 1.0, "heterogeneity": 1.0}
)  # the last: no matter at M = N
LOWER = LIPSCHITZ | DIAMETER | SILOS | {"gradient_std": 1.0}
CURVED: dict[str, Any] = {"strong_convexity": 0.1}
CONVEX, STRONG = "convex", "strongly convex"


def _one_pass_rounds(curved: bool) -> Any:
    """Return the rounds of one pass, in batches of the size that the theorem asks for."""
    common = {name: PRIVATE[name] for name in ("num_records", "epsilon", "delta", "dimension", "lipschitz")}
    if curved:
        more = {"gradient_std": 1.0, "smoothness": 1.0, "initial_gap": 2.0, "silos_per_round": 25} | CURVED
        size = isrl.one_pass_batch_size_sc(**common, **more)
    else:
        size = isrl.one_pass_batch_size(**common, **DIAMETER, smoothness=1.0, silos_per_round=25)
    return LIPSCHITZ["num_records"] / np.clip(size, 1.0, LIPSCHITZ["num_records"])


def _independent() -> list[tuple[Any, ...]]:
    """Return theorem, rate and rounds above and below, for records of one law in all silos."""
    found = []
    cases: tuple[tuple[str, dict[str, Any]], ...] = ((CONVEX, {}), (STRONG, CURVED))
    for losses, more in cases:
        shared = PRIVATE | DIAMETER | more
        rounds = isrl.mb_sgd_rounds(
            **{name: value for name, value in shared.items() if name != "delta"}, smoothness=1.0
        )
        found += [
            ("ISRL-DP, one law", losses, "upper", "2.1", isrl.excess_risk_rate_iid(**shared), rounds),
            ("ISRL-DP, one law", losses, "lower", "2.2", isrl.risk_lower_bound(**LOWER, **more), np.nan),
            ("shuffled, one law", losses, "upper", "5.1", isrl.shuffle_rate(**shared, **SILOS), np.nan),
            ("shuffled, one law", losses, "lower", "D.6", _central(more), np.nan),
        ]
    return found


def _central(more: dict[str, Any]) -> Any:
    return isrl.risk_lower_bound(**LOWER, **more, notion="central")


def _heterogeneous() -> list[tuple[Any, ...]]:
    """Return the same for silos of different laws."""
    convex, curved = _one_pass_rounds(curved=False), _one_pass_rounds(curved=True)
    lower = isrl.risk_lower_bound(**LOWER, compositionality=np.sqrt(convex))
    lower_curved = isrl.risk_lower_bound(**LOWER, **CURVED, compositionality=np.sqrt(curved))
    shuffled = isrl.sdp_one_pass_rate(**ONE_PASS, **DIAMETER)
    return [
        ("ISRL-DP, many laws", CONVEX, "upper", "3.1", isrl.one_pass_rate(**ONE_PASS, **DIAMETER), convex),
        ("ISRL-DP, many laws", CONVEX, "lower", "2.2", lower, np.nan),
        ("ISRL-DP, many laws", STRONG, "upper", "3.1", isrl.one_pass_rate_sc(**ONE_PASS, **CURVED), curved),
        ("ISRL-DP, many laws", STRONG, "lower", "2.2", lower_curved, np.nan),
        ("shuffled, many laws", CONVEX, "upper", "5.2", shuffled, np.nan),
        ("shuffled, many laws", CONVEX, "lower", "D.6", _central({}), np.nan),
        ("shuffled, many laws", STRONG, "lower", "D.6", _central(CURVED), np.nan),
    ]


def _empirical() -> list[tuple[Any, ...]]:
    """Return the same for the empirical risk."""
    found = []
    cases: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
        (CONVEX, {}, DIAMETER),
        (STRONG, CURVED, {"initial_gap": 2.0}),
    )
    for losses, more, scale in cases:
        upper = isrl.erm_rate(**PRIVATE, **DIAMETER, **more)
        rounds = isrl.erm_rounds(**PRIVATE, **SILOS, batch_size=10_000, smoothness=1.0, **more, **scale)
        lower = isrl.risk_lower_bound(**LOWER, **more, problem="empirical")
        found += [
            ("ISRL-DP, empirical", losses, "upper", "4.1", upper, rounds),
            ("ISRL-DP, empirical", losses, "lower", "F.3, F.4", lower, np.nan),
        ]
    return found


def compute() -> Table:
    """Return the rates and the rounds of every row, over epsilon."""
    parts = [
        {
            "setting": setting,
            "losses": losses,
            "bound": bound,
            "theorem": theorem,
            "eps": EPS,
            "rate": rate.value,
            "rounds": rounds,
        }
        for setting, losses, bound, theorem, rate, rounds in (*_independent(), *_heterogeneous(), *_empirical())
    ]
    title = "Rates of the excess risk (Lowy, Razaviyayn 2023, Figure 3): orders of magnitude, no bounds"
    return stacked(title, {"eps": "nats", "rate": "of the loss, up to constants"}, parts)


def draw(table: Table) -> Figure:
    """Draw upper and lower rates over epsilon, a panel for each setting, and the rounds."""
    figure = style.empty_figure(16.0, 7.0, table.title)
    settings = list(table.groups("setting"))
    panels = figure.subplots(2, len(settings) + 1, sharex=True)
    for row, losses in zip(panels, (CONVEX, STRONG), strict=True):
        for axes, (setting, rows), colour in zip(row, settings, (*style.COLOURS, "k"), strict=False):
            for bound, curve in rows.where(losses=losses).groups("bound"):
                line = "-" if bound == "upper" else "--"
                label = f"{bound}: Theorem {curve['theorem'][0]}"
                axes.plot(curve["eps"], curve["rate"], line, color=colour, label=label)
                if np.isfinite(curve["rounds"]).any():
                    row[-1].plot(curve["eps"], curve["rounds"], color=colour, label=setting)
            axes.set(title=f"{setting},\n{losses}", xscale="log", yscale="log")
            axes.legend(fontsize=7.5, loc="upper right")
        row[-1].set(title=f"rounds, {losses}", xscale="log", yscale="log")
        row[-1].legend(fontsize=7.5, loc="center right")
        row[0].set_ylabel("rate of the excess risk")
    for axes in panels[-1]:
        axes.set_xlabel(style.EPSILON)
    return figure
