"""Which noise, rounds, batch and participation keep a federated training within a budget, and which of them is best.

Every setting is certified for the budget. Settings are compared by an explicit bound on the excess risk, which assumes convex,
Lipschitz and smooth losses and independent records; the privacy guarantee does not need them, except with "last-iterate".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick._checks import Array, choice, count_scalar, setting_warnings
from hockeystick._checks.shown import shown
from hockeystick._numeric.printing import format_upper
from hockeystick.utility.settings import TRUST, Problem, Report, Setting, Trust, candidates_of, checked_inputs, smallest

if TYPE_CHECKING:
    from hockeystick.simulate import Algorithm
    from hockeystick.simulate import Problem as Data


PROMISES: dict[Trust, str] = {
    "central": "one record replaced, against who sees every round's model; the server is trusted with records",
    "inter-silo": "one record replaced, against everybody but its silo, the server included; each round is charged to every silo",
    "shuffle": "one record replaced, against who sees the shuffled messages; every participating silo sends one record's gradient",
    "last-iterate": "one silo (user) replaced, against who sees the last model only; the aggregator is trusted, losses are convex and smooth",
}


@dataclass(frozen=True)
class Plan:
    """Feasible settings of a training, the smallest risk bound first; prints as a table.

    Parameters
    ----------
    trust : str
        The trust model.
    problem : Problem
        The inputs, with what was left out filled in.
    settings : tuple of Setting
        At least one.
    """

    trust: Trust
    problem: Problem
    settings: tuple[Setting, ...]

    @property
    def best(self) -> Setting:
        """The setting with the smallest risk bound."""
        return self.settings[0]

    @property
    def promise(self) -> str:
        """What the certified epsilon is about."""
        return PROMISES[self.trust]

    def __str__(self) -> str:
        """Return the table."""
        return self.table()

    def table(self, losses: Array | None = None) -> str:
        """Return the settings as lines of text.

        Parameters
        ----------
        losses : array_like, optional
            What `simulated_loss` returned: its means are the last column.
        """
        means = [""] * len(self.settings) if losses is None else [f" {row.mean():>14.4g}" for row in losses]
        column = "" if losses is None else f" {'simulated loss':>14}"
        head = (
            f"{self.trust}: epsilon <= {self.problem.epsilon:g} at delta = {self.problem.delta:g}\n({self.promise})\n\n"
            f"{'noise std':>10} {'rounds':>8} {'batch':>8} {'silos':>8} {'step':>10} {'epsilon':>9} {'risk bound':>11}{column}\n"
        )
        return head + "\n".join(
            f"{s.noise_std:>10.4g} {s.rounds:>8} {s.batch_size:>8} {s.silos_per_round:>8} {s.learning_rate:>10.3g} "
            f"{format_upper(s.epsilon, '9.5g')} {format_upper(s.risk_bound, '11.4g')}{mean}"
            for s, mean in zip(self.settings, means, strict=True)
        )

    def simulated_loss(self, data: Data | None = None, *, seed: int = 0, num_runs: int = 20) -> Array:
        """Return the loss that every setting reaches in simulated trainings.

        Parameters
        ----------
        data : simulate.Problem, optional
            What is learned, with the plan's silos, records and parameters; by default synthetic logistic regression, whose
            features have norm 1 at most.
        seed : int
            Of the runs, and of synthetic data.
        num_runs : int
            Runs of each setting, with independent noise and batches.

        Returns
        -------
        ndarray
            Loss of the released model on the training records, shape (settings, num_runs).

        Raises
        ------
        ValueError
            For "shuffle" and "last-iterate", whose step sizes and protocols are not simulated here, or if the data do not fit.
        ImportError
            If numba is not installed.

        Examples
        --------
        >>> from hockeystick import utility
        >>> found = utility.plan(
        ...     trust="inter-silo",
        ...     num_silos=4,
        ...     num_records=200,
        ...     dimension=5,
        ...     lipschitz=1.0,
        ...     diameter=4.0,
        ...     smoothness=0.25,
        ...     epsilon=4.0,
        ...     delta=1e-5,
        ...     max_rounds=2,
        ...     num_settings=2,
        ... )
        >>> found.simulated_loss(num_runs=3).shape
        (2, 3)
        """
        return simulated_losses(self.trust, self.problem, self.settings, data, seed=seed, num_runs=num_runs)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain numbers and words, for JSON."""
        return {
            "trust": self.trust,
            "promise": self.promise,
            "inputs": dict(vars(self.problem)),
            "settings": [setting._asdict() for setting in self.settings],
        }

    def sweep(self) -> dict[str, Any]:
        """Return a sweep plan around the settings: certified privacy and risk bound over noise, rounds and batches.

        Returns
        -------
        dict
            For `hockeystick.sweep.run`.

        Raises
        ------
        ValueError
            For "shuffle", whose noise no array function accounts for.
        """
        return sweep_plan(self.trust, self.problem, self.settings)

    def sweep_toml(self) -> str:
        """Return `sweep` as a TOML file's text."""
        return toml(self.sweep())


def plan(
    *,
    trust: Trust,
    num_silos: int,
    num_records: int,
    dimension: int,
    lipschitz: float,
    diameter: float,
    smoothness: float,
    strong_convexity: float = 0.0,
    epsilon: float,
    delta: float,
    max_rounds: int,
    silos_per_round: int | None = None,
    max_batch_size: int | None = None,
    num_settings: int = 10,
    report: Report | None = None,
) -> Plan:
    """Return the settings of a federated training that a budget allows, the smallest bound on the excess risk first.

    Parameters
    ----------
    trust : {"central", "inter-silo", "shuffle", "last-iterate"}
        Whom the budget protects against: see `Plan.promise`.
    num_silos : int
        Silos, or users, N.
    num_records : int
        Records of each silo, n. "last-iterate" protects the whole silo.
    dimension : int
        Number of parameters d.
    lipschitz : float
        Lipschitz constant L of each record's loss, to which its gradient is clipped; in [1e-60, 1e60].
    diameter : float
        Diameter D of the ball of models, in [1e-60, 1e60].
    smoothness : float
        Lipschitz constant beta of the gradient, in [1e-60, 1e60].
    strong_convexity : float
        mu, in [0, smoothness]; positive for "last-iterate".
    epsilon : float
        Target, positive and finite.
    delta : float
        Target, in (0, 1).
    max_rounds : int
        Largest number of rounds.
    silos_per_round : int, optional
        Silos that take part in each round; all if not given. "last-iterate" tries all numbers up to it.
    max_batch_size : int, optional
        Largest number of records that a silo processes in a round; all if not given.
    num_settings : int
        How many settings to return at most. Fewer take less time: what cannot be among them is not calibrated.
    report : callable, optional
        Called with the number of settings that are done, and that of all, after each.

    Returns
    -------
    Plan
        Settings, sorted; numbers of rounds are the limit and halves of it, batches quarters. Where some bounds tell
        something, those that do not are left out.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or no setting is feasible.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    Noise comes from `isrl.noisy_mb_sgd_sigma` ("central": the pooled records as one silo), `isrl.shuffled_mb_sgd_sigma`, or
    the inverse of `trusted_aggregator_delta`; risk from `isrl.mb_sgd_risk_bound`, or `trusted_aggregator_excess_risk` with
    D^2 + G^2/m <= L^2. The bounds are worst cases: they rank settings, and do not foretell a loss.

    Examples
    --------
    >>> from hockeystick import utility
    >>> found = utility.plan(
    ...     trust="inter-silo",
    ...     num_silos=10,
    ...     num_records=2000,
    ...     dimension=20,
    ...     lipschitz=1.0,
    ...     diameter=2.0,
    ...     smoothness=1.0,
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     max_rounds=100,
    ... )
    >>> found.best.rounds, found.best.batch_size, found.best.epsilon <= 1.0
    (100, 2000, True)
    """
    trust = choice("trust", trust, TRUST)
    problem = checked_inputs(Problem, locals())
    num_settings = count_scalar("num_settings", num_settings)
    population = num_protected(trust, problem.num_silos, problem.num_records)
    setting_warnings.warn(setting_warnings.large_delta(problem.delta, population))
    candidates = [[candidate] for candidate in candidates_of(trust, problem)]
    settings = [setting for _, setting in smallest(candidates, num_settings, report).found]
    telling = [setting for setting in settings if setting.risk_bound < problem.lipschitz * problem.diameter]
    return Plan(trust, problem, tuple(telling or settings))


def num_protected(trust: Trust, num_silos: int, num_records: int) -> int:
    """Return among how many lies the one that may be replaced, where there are so many silos: silos, or the records of one silo or of all."""
    if trust == "last-iterate":
        return num_silos
    return num_records * (1 if trust == "inter-silo" else num_silos)


MAX_NUMBERS = 50_000_000  # of synthetic data: 400 MB
SIMULATED = ("central", "inter-silo")


def simulated_losses(
    trust: Trust, problem: Problem, settings: Sequence[Setting], data: Data | None, *, seed: int, num_runs: int
) -> Array:
    """Return the loss that every setting reaches in every run, shape (settings, num_runs)."""
    from hockeystick.simulate import run  # noqa: PLC0415 - numba is asked for when needed

    if trust not in SIMULATED:
        msg = f"trust must be {' or '.join(map(repr, SIMULATED))} for a simulated loss, not {shown(trust)}"
        raise ValueError(msg)
    num_runs = count_scalar("num_runs", num_runs)
    learned = synthetic_data(problem, seed) if data is None else data
    _check(problem, learned)
    if trust == "central":
        learned = learned.pooled()
    rows: list[Any] = []
    for setting in settings:
        algorithm = _algorithm(trust, problem, setting, learned.num_silos)
        result = run(algorithm, learned, rounds=setting.rounds, seed=seed, num_runs=num_runs)
        rows.append(result.loss()[-1])
    return np.array(rows)


def synthetic_data(problem: Problem, seed: int) -> Data:
    """Return logistic regression with as many silos, records and parameters as a plan has; features of norm 1 at most."""
    from hockeystick.simulate import synthetic  # noqa: PLC0415

    size = problem.num_silos * problem.num_records * problem.dimension
    if size > MAX_NUMBERS:
        msg = f"num_silos num_records dimension must be at most {MAX_NUMBERS} for synthetic data, not {size}; give data"
        raise ValueError(msg)
    sizes = [problem.num_records] * problem.num_silos
    return synthetic("logistic", sizes=sizes, num_features=problem.dimension, seed=seed)


def _check(problem: Problem, data: Data) -> None:
    expected = (problem.num_silos, problem.num_records, problem.dimension)
    given = (data.num_silos, min(data.sizes or (0,)), data.dimension)
    if given != expected or max(data.sizes or (0,)) != problem.num_records:
        msg = f"data must have num_silos, num_records and dimension of the plan, {expected}, not {given}"
        raise ValueError(msg)


def _algorithm(trust: Trust, problem: Problem, setting: Setting, num_silos: int) -> Algorithm:
    from hockeystick.simulate import EveryRound, FixedSize, NoisyMinibatchSGD  # noqa: PLC0415

    everybody = trust == "central" or setting.silos_per_round == num_silos
    return NoisyMinibatchSGD(
        learning_rate=setting.learning_rate,
        clip_norm=problem.lipschitz,
        noise_std=setting.noise_std,
        records=FixedSize(setting.batch_size),
        clients=EveryRound() if everybody else FixedSize(setting.silos_per_round),
        radius=problem.diameter / 2,
    )


def sweep_plan(trust: Trust, problem: Problem, settings: Sequence[Setting]) -> dict[str, Any]:
    """Return a sweep plan of the array functions behind the settings of a plan."""
    if trust == "shuffle":
        msg = "trust must not be 'shuffle' for a sweep: no array function accounts for given noise there"
        raise ValueError(msg)
    noises = [setting.noise_std for setting in settings]
    spread = {"logspace": [min(noises) / 2.0, max(noises) * 2.0], "num": 25}
    fixed: dict[str, Any] = {
        "dimension": problem.dimension,
        "lipschitz": problem.lipschitz,
        "smoothness": problem.smoothness,
        "strong_convexity": problem.strong_convexity,
    }
    axes: dict[str, Any] = {"noise_std": spread}
    sizes = sorted({setting.batch_size for setting in settings})
    if trust == "last-iterate":
        outputs: dict[str, Any] = {
            "delta": "utility.trusted_aggregator_delta",
            "risk": {
                "function": "utility.trusted_aggregator_excess_risk",
                "arguments": {"gradient_bound": problem.lipschitz, "gradient_std": 0.0},
            },
        }
        fixed |= {"eps": problem.epsilon, "num_users": problem.num_silos, "radius": problem.diameter / 2.0}
        axes["batch_size"] = sorted({setting.silos_per_round for setting in settings})
    else:
        central = trust == "central"
        outputs = {"epsilon": "isrl.noisy_mb_sgd_epsilon", "risk": "isrl.mb_sgd_risk_bound"}
        fixed |= {
            "delta": problem.delta,
            "diameter": problem.diameter,
            "num_records": problem.num_records * (problem.num_silos if central else 1),
            "num_silos": 1 if central else problem.num_silos,
            "silos_per_round": 1 if central else problem.silos_per_round,
        }
        axes |= {"rounds": sorted({setting.rounds for setting in settings}), "batch_size": sizes}
    return {"title": f"Around a plan for {trust}", "outputs": outputs, "fixed": fixed, "axes": axes}


def toml(source: dict[str, Any]) -> str:
    """Return a sweep plan's mapping as TOML."""
    lines = [f"title = {json.dumps(source['title'])}"]
    for section in ("outputs", "fixed", "axes"):
        lines += ["", f"[{section}]"]
        lines += [f"{name} = {_value(value)}" for name, value in source[section].items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(item)}" for name, item in value.items()) + " }"
    return json.dumps(value)
