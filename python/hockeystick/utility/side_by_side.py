"""One training, all analyses of it: what each certifies after how many rounds, and what papers print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hockeystick._checks import Array, setting_warnings
from hockeystick._checks.shown import listed, shown
from hockeystick._numeric.printing import format_upper
from hockeystick.utility import analysis_curves as curves
from hockeystick.utility import printed_curves as printed
from hockeystick.utility.training import Order, Training, checked_rounds, checked_training

__all__ = ["Analyses", "Analysis", "analyses"]

CERTIFIED, CONVEX = "certified", "certified for convex and smooth losses"
LAST, EVERY = "the last model", "every round's model"
NAMES = {  # bound of last_iterate -> our name and its source
    "contraction": ("contraction", "Asoodeh, Diaz and Calmon 2020, Theorem 4"),
    "nonlinear": ("nonlinear contraction", "last_iterate.best_cyclic"),
    "pattern": ("nonlinear contraction", "last_iterate.best_sampled"),
    "shifted": ("shifted interpolation", "Bok, Su and Altschuler 2024"),
    "joint": ("joint", "docs/core/hidden_state.md"),
}
DRAWN = "needs a record whose rounds are known: here they are drawn"
DOMAIN = "needs a domain of at most ten noise deviations"


class Analysis(NamedTuple):
    """What one analysis says of a training.

    Attributes
    ----------
    name, source : str
        Which analysis, and where it stands.
    protects : {"record", "client"}
        What is replaced.
    seen : str
        What the adversary sees.
    status : str
        "certified", and for what; or what is wrong with a printed formula.
    printed : bool
        Whether it is a printed formula, to be compared with and not to be relied on.
    epsilon : ndarray
        By rounds; NaN where the analysis does not apply. Upper bounds, where certified.
    reason : str
        Why it does not apply anywhere; else empty.
    """

    name: str
    source: str
    protects: str
    seen: str
    status: str
    printed: bool
    epsilon: Array
    reason: str

    @property
    def applies(self) -> bool:
        """Whether there is any value."""
        return bool(np.isfinite(self.epsilon).any())


@dataclass(frozen=True)
class Analyses:
    """All analyses of one training; prints as a table, and `hockeystick.plot.analyses` draws it.

    Parameters
    ----------
    training : Training
        The checked inputs.
    rounds : ndarray
        Numbers of rounds.
    found : tuple of Analysis
        Certified ones first.
    """

    training: Training
    rounds: Array
    found: tuple[Analysis, ...]

    def __getitem__(self, name: str) -> Analysis:
        """Return an analysis by its name."""
        for analysis in self.found:
            if analysis.name == name:
                return analysis
        message = f"name must be one of {listed(repr(one.name) for one in self.found)}, not {shown(name)}"
        raise KeyError(message)

    def __str__(self) -> str:
        """Return the table: epsilon by rounds, rounded up, and what each is worth."""
        shown = [one for one in self.found if one.applies]
        head = f"{'analysis':<26}{'protects':<9}" + "".join(f"{count:>11}" for count in self.rounds)
        lines = [f"epsilon at delta = {self.training.delta:g} after so many rounds", "", head]
        lines += [f"{one.name:<26}{one.protects:<9}{''.join(map(_cell, one.epsilon))}" for one in shown]
        lines += ["", *(f"{one.name}: {one.status}; against who sees {one.seen} ({one.source})" for one in shown)]
        lines += [f"{one.name}: does not apply: {one.reason}" for one in self.found if not one.applies]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the analyses as plain numbers and words, for JSON; None where there is no number."""
        rows = [
            {**one._asdict(), "epsilon": [float(x) if np.isfinite(x) else None for x in one.epsilon]}
            for one in self.found
        ]
        return {"training": dict(vars(self.training)), "rounds": self.rounds.tolist(), "analyses": rows}


def _cell(epsilon: float) -> str:
    return f"{'-':>11}" if np.isnan(epsilon) else format_upper(epsilon, "11.4g")


def analyses(
    *,
    num_clients: int,
    num_records: int,
    clients_per_round: int | None = None,
    batch_size: int | None = None,
    local_steps: int = 1,
    rounds: int | Sequence[int],
    noise_std: float,
    lipschitz: float,
    smoothness: float,
    strong_convexity: float = 0.0,
    learning_rate: float,
    diameter: float,
    delta: float,
    order: Order = "random",
    index: int = 1,
) -> Analyses:
    r"""Return epsilon by rounds of one federated training, by every analysis that there is.

    In each round clients compute the mean gradient of a batch of their records, each clipped, in so many local steps, add noise, and send
    it; the server takes a step along the mean and projects the model onto a ball.

    Parameters
    ----------
    num_clients, num_records : int
        Clients N, records of each n.
    clients_per_round, batch_size : int, optional
        Clients m and records b of each that a round uses; all if not given. If clients are drawn at random, what is protected is a
        client, not a record.
    local_steps : int
        Local steps K; the analyses of projected noisy SGD need K = 1.
    rounds : int or sequence of int
        Numbers of rounds, increasing; of a single number those up to it, spaced by ratios.
    noise_std : float
        Standard deviation sigma per coordinate of the noise that a client adds to its gradient (for K > 1, to their sum), positive.
    lipschitz, smoothness, strong_convexity : float
        L, to which gradients are clipped; beta; mu.
    learning_rate, diameter : float
        Step eta; diameter D of the ball, infinite if there is none.
    delta : float
        At which epsilon is asked for, in (0, 1).
    order : {"random", "cyclic"}
        Clients and records drawn afresh in every round, unseen; or in a fixed order, each record once in N n/(m b) rounds.
    index : int
        For "cyclic" the first round that uses the protected record.

    Returns
    -------
    Analyses
        Every analysis, those that do not apply with the reason. They protect against different adversaries: see `Analysis.seen`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    Certified are: "composition" (`Accountant`); the bounds of `last_iterate.best_cyclic` or `best_sampled`; "trusted aggregator"
    (`federated.best_sampled`, a client); "shifted (FedAvg)" (`federated.fedavg_epsilon`); "inter-silo" (`Accountant`, a client's own messages); "shuffle"
    (`isrl.shuffle_amplification`, a client). An epsilon from a curve of delta is the feasible end of a search, within 0.1 %. Printed formulas
    are there to be compared, whatever their status.

    Examples
    --------
    >>> from hockeystick import format_upper, utility
    >>> found = utility.analyses(
    ...     num_clients=10, num_records=1000, rounds=[1, 10, 100], noise_std=0.02, lipschitz=1.0, smoothness=1.0, learning_rate=0.5,
    ...     diameter=0.002, delta=1e-6,
    ... )
    >>> for name in ("composition", "joint"):
    ...     print(name, *(format_upper(epsilon, ".3g") for epsilon in found[name].epsilon))
    composition 0.116 0.397 1.37
    joint 0.116 0.15 0.15
    """  # fmt: skip
    training = checked_training(
        num_clients=num_clients,
        num_records=num_records,
        clients_per_round=clients_per_round,
        batch_size=batch_size,
        local_steps=local_steps,
        noise_std=noise_std,
        lipschitz=lipschitz,
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        learning_rate=learning_rate,
        diameter=diameter,
        delta=delta,
        order=order,
        index=index,
    )
    times = checked_rounds(rounds)
    setting_warnings.warn(setting_warnings.large_delta(training.delta, training.num_records * training.num_clients))
    return Analyses(training, times, (*_certified(training, times), *_printed(training, times)))


def _certified(training: Training, rounds: Array) -> list[Analysis]:
    unit = training.protects

    def of(name: str, source: str, protects: str, seen: str, status: str, curve: curves.Curve) -> Analysis:  # noqa: PLR0917
        return Analysis(name, source, protects, seen, status, False, *curve)

    return [
        of("composition", "Accountant", unit, EVERY, CERTIFIED, curves.composition(training, rounds)),
        *_hidden(training, rounds),
        of("shifted (FedAvg)", "federated.fedavg_epsilon", "record", LAST, CERTIFIED, curves.fedavg(training, rounds)),
        of(
            "trusted aggregator", "federated.best_sampled", "client", LAST, CONVEX,
            curves.trusted_aggregator(training, rounds),
        ),
        of(
            "inter-silo", "isrl.noisy_mb_sgd_accountant", "record", "the messages of the record's client", CERTIFIED,
            curves.inter_silo(training, rounds),
        ),
        of(
            "shuffle", "isrl.shuffle_amplification", "client", "the shuffled messages", CERTIFIED,
            curves.shuffled(training, rounds),
        ),
    ]  # fmt: skip


def _hidden(training: Training, rounds: Array) -> list[Analysis]:
    """Return the analyses of the last model of projected noisy SGD."""
    covered = training.local_steps == 1
    bounds = curves.last_models(training, rounds) if covered else {}
    drawn = training.order == "random" and not training.full
    found = []
    for bound, (name, source) in NAMES.items():
        if bound == ("nonlinear" if drawn else "pattern"):  # the other has this name
            continue
        epsilon = bounds.get(bound, np.full(rounds.shape, np.nan))
        reason = ""
        if not np.isfinite(epsilon).any():
            reason = _missing(epsilon, DRAWN if drawn and bound == "contraction" else DOMAIN)
            reason = reason if covered else curves.ONE_STEP.format(training.local_steps)
        found.append(Analysis(name, source, training.protects, LAST, CONVEX, False, epsilon, reason))
    return found


def _missing(epsilon: Array, unless: str) -> str:
    """Say why no value of a curve is finite: one that is infinite was looked for in vain."""
    return curves.ABOVE if np.isinf(epsilon).any() else unless


def _printed(training: Training, rounds: Array) -> list[Analysis]:
    table: tuple[tuple[str, str, str, str, str, Callable[[Training, Array], curves.Curve]], ...] = (
        (
            "printed FedAvg", "Sun, Shen and Tao 2024, Theorem 12(a)", "record", LAST,
            "false: linear losses violate it from two rounds on", printed.printed_fedavg,
        ),
        (
            "printed aggregator", "Asoodeh, Chen, Calmon and Ozgur 2021, Theorem 2", "client", LAST,
            "no guarantee here: it holds where no client takes part twice", printed.printed_aggregator,
        ),
        (
            "printed inter-silo", "Lowy and Razaviyayn 2023, Theorem D.1", "record", "the messages of the record's client",
            "loose: 4 to 31 times the noise that is needed", printed.printed_inter_silo,
        ),
    )  # fmt: skip
    return [
        Analysis(name, source, protects, seen, status, True, *curve(training, rounds))
        for name, source, protects, seen, status, curve in table
    ]
