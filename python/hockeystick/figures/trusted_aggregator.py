"""Figure 2 of "Differentially Private Federated Learning: An Information-Theoretic Perspective" (Asoodeh et al. 2021).

delta against eps of Theorem 2, federated learning with a trusted aggregator, for the sub-sampling rates q = m/n.

What may differ from the printed figure:

- The caption does not give the axes; the range of eps here is our choice, and delta is on a logarithmic axis.
- For q = 0.3 the batch of 30 does not divide the 100 users. Rounds are whole here: T = 3, the last 10 users are left
  out. The paper's closed form with T = n/m = 10/3, the grey line, lies higher, by at most 10/9; it is no bound of a training that takes all users.

The black curves are new: the exact divergences of one process that the theorem covers, linear losses on an interval, averaged over
the user's round as in the theorem's proof, where they are at least 1e-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import federated, last_iterate, published
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked
from hockeystick.published.warning import quietly

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

NUM_USERS = 100
BATCH_SIZES = np.array([10, 20, 30])
EPS = np.linspace(0.0, 2.0, 401)
LEARNING_RATE, NOISE_STD = 0.5, 1.5
SMALLEST_EXACT = 1e-11  # less is not resolved
PRINTED = "closed form with 10/3 rounds"


def exact(batch_size: int) -> NDArray[np.float64]:
    """Return the mean over the user's round of the exact deltas of scalar chains whose other users pull to one side."""
    rounds = NUM_USERS // batch_size
    own = 1.0 / batch_size  # of the batch's mean gradient
    total = np.zeros_like(EPS)
    for later in range(rounds):
        total += last_iterate.chain_delta(
            EPS,
            gradient_map="linear",
            record=np.ones(1 + later),
            neighbour=np.concatenate([[1.0 - 2 * own], np.ones(later)]),
            learning_rate=LEARNING_RATE,
            noise_std=NOISE_STD / np.sqrt(batch_size),
            diameter=2.0,
        ).lower
    mean = total * batch_size / NUM_USERS
    return np.where(mean >= SMALLEST_EXACT, mean, np.nan)


def compute() -> Table:
    """Return Theorem 2 and the exact chain for every rate and eps."""
    deltas = federated.trusted_aggregator(
        EPS,
        num_users=NUM_USERS,
        batch_size=BATCH_SIZES[:, np.newaxis],
        learning_rate=LEARNING_RATE,
        noise_std=NOISE_STD,
        lipschitz=1.0,
        radius=1.0,
        loss="convex",
    )
    parts: list[dict[str, Any]] = []
    for batch_size, delta in zip(BATCH_SIZES.tolist(), deltas, strict=True):
        cell = {"batch_size": batch_size, "rounds": NUM_USERS // batch_size, "epsilon": EPS}
        parts.append({"curve": "Theorem 2", **cell, "delta": delta})
        parts.append({"curve": "exact chain", **cell, "delta": exact(batch_size)})
    setting: dict[str, Any] = {
        "num_users": NUM_USERS,
        "batch_size": int(BATCH_SIZES[-1]),
        "learning_rate": LEARNING_RATE,
    }
    setting |= {"noise_std": NOISE_STD, "lipschitz": 1.0, "radius": 1.0}
    broken = [quietly(published.trusted_aggregator, eps, **setting) for eps in EPS.tolist()]
    parts.append({"curve": PRINTED, "batch_size": BATCH_SIZES[-1], "rounds": np.nan, "epsilon": EPS, "delta": broken})
    title = "Trusted aggregator (Asoodeh, Chen, Calmon, Özgür 2021), Figure 2"
    settings = f"n = {NUM_USERS}, eta = {LEARNING_RATE}, sigma = {NOISE_STD}, L = 1, rho = 1"
    return stacked(title, {"batch_size": "users", "epsilon": "nats", "delta": "probability"}, parts, settings)


def draw(table: Table) -> Figure:
    """Draw a coloured curve for each rate, and the exact one in black."""
    figure, (axes,) = style.new_figure(table)
    looks = zip(style.COLOURS, style.LINES, strict=True)
    for (batch_size, rows), (colour, line) in zip(table.groups("batch_size"), looks, strict=False):
        bound, chain = rows.where(curve="Theorem 2"), rows.where(curve="exact chain")
        label = rf"$q = {batch_size / NUM_USERS:g}$ ($m = {batch_size}$, $T = {bound['rounds'][0]:g}$)"
        axes.plot(bound["epsilon"], style.visible(bound["delta"]), line, color=colour, label=label)
        axes.plot(chain["epsilon"], chain["delta"], "k" + line, label=rf"exact chain, $m = {batch_size}$")
    broken = table.where(curve=PRINTED)
    axes.plot(broken["epsilon"], broken["delta"], color="0.6", linewidth=1.2, label=f"printed for q = .3: {PRINTED}")
    style.privacy_axes(axes, smallest_delta=1e-18)
    note = r"exact chains end at $10^{-11}$, where they are no longer resolved"
    figure.legend(loc="outside lower center", ncols=2, title=note)
    return figure
