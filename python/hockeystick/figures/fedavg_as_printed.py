"""Sun, Shen and Tao 2024: theorems, tables and schedules as printed, beside what is certified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from hockeystick import federated, published
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked
from hockeystick.published.federated_fdp import NoiseWork, RenyiWork
from hockeystick.published.warning import quietly  # that formulas are unsound is the subject

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hockeystick.federated.arguments import Schedule


THEOREM_ROUNDS = np.unique(np.geomspace(1, 1000, 61).round())
RHO = np.array([1.05, 1.2, 2.0, 4.0])
CLIENTS_OF_FOUR: dict[str, Any] = {"rounds": THEOREM_ROUNDS, "num_clients": 4, "clip_norm": 1.0}  # 2V/sqrt(m) = 1
THEOREM_PROX = 2.0

# The noise makes the unit of the vertical axis 1.
FEDAVG = CLIENTS_OF_FOUR | {
    "local_steps": 1,
    "noise_std": 1.0,
    "learning_rate": 1.0,
    "smoothness": (RHO - 1.0)[:, np.newaxis],
}
FEDPROX = CLIENTS_OF_FOUR | {
    "local_steps": 5,
    "noise_std": 1.0 / THEOREM_PROX,
    "learning_rate": 0.2 / THEOREM_PROX,
    "smoothness": THEOREM_PROX * (1 - 1 / RHO)[:, np.newaxis],
    "prox": THEOREM_PROX,
}
THEOREMS = (
    ("12(a)", published.fedavg_gdp, federated.fedavg_gdp, FEDAVG),
    ("15", published.fedprox_gdp, federated.fedprox_gdp, FEDPROX),
)


def compute_theorems() -> Table:
    """Return both theorems, as printed and as certified, for every expansion and number of rounds.

    Theorems 12(a) and 15 of Sun, Shen and Tao (2024) as printed against the certified parameter, over the rounds T.

    Linear losses have exactly the certified parameter, sqrt(T) times that of one round, whatever smoothness L is assumed
    of them. The printed curves level off below it: they are no privacy guarantees.

    The vertical axis is in units that leave little but the expansion rho per round: 2 lr V K/(sqrt(m) sigma) for
    Noisy-FedAvg with rho = (1 + lr L)^K, and 2V/(sqrt(m) prox sigma) for Noisy-FedProx with rho = prox/(prox - L). There
    the certified value is (1 - (1 - lr prox)^K) sqrt(T); with few local steps the printed bound, which does not know K,
    starts above it.
    """
    parts: list[dict[str, Any]] = []
    for theorem, printed, certified, cell in THEOREMS:
        shared = {"theorem": theorem, "rho": RHO[:, np.newaxis], "rounds": THEOREM_ROUNDS}
        parts.append({**shared, "bound": "printed", "mu": quietly(printed, **cell)})
        parts.append({**shared, "bound": "certified", "mu": certified(**cell)})
    title = "Federated learning by f-DP (Sun, Shen, Tao 2024): Theorems 12(a) and 15 as printed, and what is certified"
    settings = "m = 4, V = 1; left: K = 1, eta = 1, sigma = 1; right: K = 5, alpha = 2, eta = 0.1, sigma = 1/2"
    return stacked(
        title, {"mu": "2 lr V K/(sqrt(m) sigma) for 12(a), 2 V/(sqrt(m) prox sigma) for 15"}, parts, settings
    )


def draw_theorems(table: Table) -> Figure:
    """Draw the printed curves, one per expansion, and the certified one, which does not depend on it."""
    figure, panels = style.new_figure(table, 2)
    for axes, (_, rows) in zip(panels, table.groups("theorem"), strict=True):
        exact = [curve["mu"] for _, curve in rows.where(bound="certified").groups("rho")]
        label = r"certified, attained by linear losses (every $\rho$)"
        axes.plot(THEOREM_ROUNDS, np.max(exact, axis=0), "k-", linewidth=2.6, label=label)
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


TABLE_1_ROUNDS = np.unique(np.geomspace(1, 1000, 31).round()).astype(int)
TABLE_1: dict[str, Any] = {
    "rounds": TABLE_1_ROUNDS,
    "local_steps": 100,
    "num_clients": 4,
    "clip_norm": 0.01,
    "noise_std": 1.0,
    "smoothness": 0.01,
    "learning_rate": 1.0,
}
TABLE_1_PROX = 0.5
ROWS_OF_TABLE_1: dict[str, tuple[str, dict[str, Any]]] = {  # schedule and the constants of the printed form
    "C: Theorem 12(a)": ("constant", {}),
    "CD: Theorem 12(b)": ("cyclic", {"c": 1.3}),
    "SD: Theorem 12(c)": ("stagewise", {}),
    "ID: Theorem 12(d)": ("continuous", {"z": 1.5}),
    "FedProx: Theorem 15": ("FedProx", {}),
}


def compute_table_1() -> Table:
    """Return the printed and the certified parameter of every row of the table, over the rounds.

    Table 1 of Sun, Shen and Tao 2024: the five printed parameters, and what is certified in their place.

    The paper leaves c and z open. Printed curves below the certified ones, which linear losses attain where the
    step is constant or cyclic, are no guarantees; the stage-wise one is, and is loose.
    """
    parts: list[dict[str, Any]] = []
    for title, (row, constants) in ROWS_OF_TABLE_1.items():
        if row == "FedProx":
            cell = TABLE_1 | {"prox": TABLE_1_PROX}
            printed, certified = quietly(published.fedprox_gdp, **cell), federated.fedprox_gdp(**cell)
        else:
            cell = TABLE_1 | {"schedule": row}
            printed, certified = quietly(published.fedavg_gdp, **cell, **constants), federated.fedavg_gdp(**cell)
        values = {"rounds": TABLE_1_ROUNDS, "mu_printed": printed, "mu_certified": certified}
        parts.append({"row": row, "theorem": title, **values})
    title = "Gaussian-DP parameters (Sun, Shen, Tao 2024, Table 1), as printed and as certified"
    settings = (
        "m = 4, K = 100, mu = 1, V = 0.01, sigma = 1, L = 0.01; c = 1.3 (CD), z = 1.5 (ID), alpha = 0.5 (FedProx)"
    )
    return stacked(title, {}, parts, settings)


def draw_table_1(table: Table) -> Figure:
    """Draw a panel for each row of the table."""
    figure = style.empty_figure(17.0, 4.0, table)
    panels = figure.subplots(1, len(ROWS_OF_TABLE_1), sharey=True)
    for axes, (theorem, rows) in zip(panels, table.groups("theorem"), strict=True):
        axes.plot(rows["rounds"], rows["mu_certified"], "-", color=style.COLOURS[0], label="certified")
        axes.plot(rows["rounds"], rows["mu_printed"], "--", color=style.COLOURS[1], label="printed")
        axes.set(title=theorem, xscale="log", yscale="log", xlabel="communication rounds $T$")
    panels[0].set_ylabel(r"Gaussian-DP parameter $\mu$")
    panels[0].legend(loc="upper left")
    return figure


TABLE_3_ROUNDS = np.arange(20)
TABLE_3_STEPS: dict[str, Any] = {"local_steps": 5, "learning_rate": 0.1}
TABLE_3_CLIENTS: dict[str, Any] = {"num_clients": 4, "clip_norm": 1.0}
TABLE_3_SMOOTHNESS, TABLE_3_PROX = 1.0, 4.0
TABLE_3_CONSTANTS: dict[Any, float | None] = {  # of the printed entries, by schedule
    "constant": None,
    "cyclic": 1.2,
    "stagewise": None,
    "continuous": 1.5,
    "FedProx": None,
}


def compute_table_3() -> Table:
    """Return rho and gamma, as printed and as they are, of every row of the table and round.

    Table 3 of Sun, Shen and Tao 2024: the sensitivities of a round to the model and to the data, as printed and as they are.

    The paper leaves c and z open. A printed value below the true one makes a privacy bound that is built on it too small: cyclic rho
    here, and the cyclic and continuous gamma for learning rates above 1, since they lack that factor. FedProx's entries are the limits for many
    local steps.
    """
    parts: list[dict[str, Any]] = []
    for row, constant in TABLE_3_CONSTANTS.items():
        prox = TABLE_3_PROX if row == "FedProx" else None
        steps: dict[str, Any] = TABLE_3_STEPS | {"schedule": "constant" if prox else row}
        if prox:
            rho = published.fedprox_model_sensitivity(smoothness=TABLE_3_SMOOTHNESS, prox=prox)
            gamma = published.fedprox_data_sensitivity(**TABLE_3_CLIENTS, prox=prox)
        else:
            own = steps | {"constant": constant}
            rho = quietly(published.fedavg_model_sensitivity, TABLE_3_ROUNDS, smoothness=TABLE_3_SMOOTHNESS, **own)
            gamma = quietly(published.fedavg_data_sensitivity, TABLE_3_ROUNDS, **TABLE_3_CLIENTS, **own)
        sizes = federated.step_sizes(rounds=len(TABLE_3_ROUNDS), **steps)
        models = federated.model_sensitivity(sizes, smoothness=TABLE_3_SMOOTHNESS, prox=prox)
        data = federated.data_sensitivity(sizes, **TABLE_3_CLIENTS, prox=prox)
        cell = {"row": row, "round": TABLE_3_ROUNDS, "rho_printed": rho, "rho": models}
        parts.append({**cell, "gamma_printed": gamma, "gamma": data})
    title = "Sensitivity of a round to the model and to the data (Sun, Shen, Tao 2024, Table 3)"
    units = dict.fromkeys(("gamma_printed", "gamma"), "norm of the model's parameters")
    settings = "m = 4, K = 5, mu = 0.1, V = 1, L = 1; c = 1.2 (cyclic), z = 1.5 (continuous), alpha = 4 (FedProx)"
    return stacked(title, units, parts, settings)


def draw_table_3(table: Table) -> Figure:
    """Draw rho - 1 above and gamma below, a column for each row of the table."""
    figure = style.empty_figure(16.0, 6.5, table)
    panels = figure.subplots(2, len(TABLE_3_CONSTANTS), sharex=True, sharey="row")
    for column, (row, rows) in zip(panels.T, table.groups("row"), strict=True):
        for axes, name, less in zip(column, ("rho", "gamma"), (1.0, 0.0), strict=True):
            axes.plot(rows["round"], rows[name] - less, "-", color=style.COLOURS[0], label="of the steps")
            axes.plot(rows["round"], rows[f"{name}_printed"] - less, "--", color=style.COLOURS[1], label="printed")
            axes.set_yscale("log")
        column[0].set_title(row)
        column[-1].set_xlabel("round $t$")
    panels[0, 0].set_ylabel(r"model sensitivity $\rho_t - 1$")
    panels[1, 0].set_ylabel(r"data sensitivity $\gamma_t$")
    panels[0, 0].legend(loc="lower left")
    return figure


TABLE_4_ROUNDS = np.unique(np.geomspace(10, 10_000, 31).round()).astype(int)
TABLE_4: dict[str, Any] = {"rounds": TABLE_4_ROUNDS, "local_steps": 50, "num_clients": 50, "clip_norm": 1.0}
TABLE_4_BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
TRUE_SLOPE = "linear losses (slope)"


def compute_table_4() -> Table:
    """Return the expressions of all rows over the rounds.

    Table 4 of Sun, Shen and Tao 2024: how the noise of earlier works, and of theirs, grows with the rounds.

    The table has orders only, with every constant left out:
    **no curve is a guarantee**, and only slopes are comparable. The black line has the slope that is true for constant steps: linear losses need noise
    that grows as the square root of the rounds, so that the flat line of the paper's own row cannot hold for them.
    """
    parts: list[dict[str, Any]] = []
    for work in get_args(NoiseWork):
        order = quietly(published.compared_noise_std, work, **TABLE_4, **TABLE_4_BUDGET)
        parts.append({"quantity": "noise", "work": work, "rounds": TABLE_4_ROUNDS, "order": order})
    order = parts[-1]["order"][0] * np.sqrt(TABLE_4_ROUNDS / TABLE_4_ROUNDS[0])
    parts.append({"quantity": "noise", "work": TRUE_SLOPE, "rounds": TABLE_4_ROUNDS, "order": order})
    for renyi in get_args(RenyiWork):
        order = quietly(published.compared_rdp, renyi, 2.0, noise_std=1.0, **TABLE_4)
        parts.append({"quantity": "Renyi divergence", "work": renyi, "rounds": TABLE_4_ROUNDS, "order": order})
    title = "Noise and Rényi divergence of earlier works (Sun, Shen, Tao 2024, Table 4): orders, no guarantees"
    settings = "epsilon = 1, delta = 1e-5, m = 50, K = 50, V = 1; right: order 2, sigma = 1, L = beta = 1"
    return stacked(title, {"order": "up to constants"}, parts, settings)


def draw_table_4(table: Table) -> Figure:
    """Draw both quantities over the rounds."""
    figure = style.empty_figure(13.0, 5.4, table)
    for axes, (quantity, rows) in zip(figure.subplots(1, 2), table.groups("quantity"), strict=True):
        for number, (work, curve) in enumerate(rows.groups("work")):
            own = work == "sun2024"
            look = {"color": "k", "linewidth": 2.6} if work == TRUE_SLOPE else {"color": style.COLOURS[number % 4]}
            line = "-" if own or work == TRUE_SLOPE else style.LINES[1 + number // 4]
            axes.plot(curve["rounds"], curve["order"], line, label=f"{work} (this paper)" if own else work, **look)
        axes.set(xscale="log", yscale="log", xlabel="communication rounds $T$", ylabel=f"{quantity}, up to constants")
        axes.margins(y=0.35)  # room for the legend
        axes.legend(fontsize=8, loc="upper left")
    return figure


SCHEDULES: dict[Schedule, str] = {
    "constant": r"constant: $\mu$",
    "cyclic": r"cyclically decaying: $\mu/(k + 1)$",
    "stagewise": r"stage-wise decaying: $\mu/(t + 1)$",
    "continuous": r"continuously decaying: $\mu/(tK + k + 1)$",
}


def compute_schedules(local_steps: int = 10, rounds: int = 5) -> Table:
    """Return the step sizes, in units of the first, of every schedule, round and local step.

    Figure 3 of Sun, Shen and Tao 2024: the four schedules of step sizes of Noisy-FedAvg.

    The step size in local step k of round t, both from 0, is the first one times 1 (constant), 1/(k + 1) (cyclic), 1/(t + 1) (stage-wise) or
    1/(tK + k + 1) (continuous). The printed figure has no scale: K = 10 and 5 rounds are our choice.
    """
    t, k = np.arange(rounds)[:, np.newaxis], np.arange(local_steps)
    settings: dict[str, Any] = {"rounds": rounds, "local_steps": local_steps, "learning_rate": 1.0}
    parts = [
        {"schedule": name, "round": t, "local_step": k, "step_size": federated.step_sizes(**settings, schedule=name)}
        for name in SCHEDULES
    ]
    title = "Schedules of the step size (Sun, Shen, Tao 2024, Figure 3)"
    return stacked(title, {"step_size": "of the first"}, parts, f"K = {local_steps}, T = {rounds}")


def draw_schedules(table: Table) -> Figure:
    """Draw the schedules side by side, with a line where a round begins."""
    figure = style.empty_figure(15.0, 3.8, table)
    local_steps = int(table["local_step"].max()) + 1
    panels = figure.subplots(1, 4, sharey=True)
    for axes, (name, rows), colour in zip(panels, table.groups("schedule"), style.COLOURS, strict=True):
        steps = rows["round"] * local_steps + rows["local_step"]
        axes.step(steps, rows["step_size"], color=colour, where="mid", marker=".")
        for start in steps[rows["local_step"] == 0]:
            axes.axvline(start - 0.5, color="0.6", linewidth=0.6, linestyle=":")
        axes.set(title=SCHEDULES[name], xlabel=f"local step; dotted: a round of {local_steps}", ylim=(0.0, 1.1))
        axes.grid(visible=False)
    panels[0].set_ylabel(r"step size, in units of $\mu$")
    return figure
