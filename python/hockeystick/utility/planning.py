"""Which noise, rounds, batch and participation keep a federated training within a budget, and which of them is best.

Every setting is certified for the budget. Settings are compared by an explicit bound on the excess risk, which assumes convex,
Lipschitz and smooth losses and independent records; the privacy guarantee does not need them, except with "last-iterate".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick._checks import Array, choice, count_scalar, setting_warnings
from hockeystick._checks.shown import shown
from hockeystick.utility.algorithms import ALGORITHMS, pool_of
from hockeystick.utility.settings import (
    BOUND,
    HEAD,
    TRUST,
    Problem,
    Report,
    Setting,
    Trust,
    cells,
    checked_inputs,
    smallest,
)

if TYPE_CHECKING:
    from hockeystick.simulate import Algorithm
    from hockeystick.simulate import Problem as Data

__all__ = ["Plan", "plan"]


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
        target = f"{self.trust}: epsilon <= {self.problem.epsilon:g} at delta = {self.problem.delta:g}"
        rows = [f"{cells(s)}{mean}" for s, mean in zip(self.settings, means, strict=True)]
        return "\n".join([target, f"({self.promise})", "", f"{HEAD}{BOUND}{column}", *rows])

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
        from hockeystick.simulate import run, synthetic  # noqa: PLC0415 - numba is asked for when needed

        problem = self.problem
        if self.trust not in SIMULATED:
            raise ValueError(
                f"trust must be {' or '.join(map(repr, SIMULATED))} for a simulated loss, not {shown(self.trust)}"
            )
        num_runs = count_scalar("num_runs", num_runs)
        if data is None:
            size = problem.num_silos * problem.num_records * problem.dimension
            if size > MAX_NUMBERS:
                raise ValueError(
                    f"num_silos num_records dimension must be at most {MAX_NUMBERS} for synthetic data, not {size}; give data"
                )
            sizes = [problem.num_records] * problem.num_silos
            data = synthetic("logistic", sizes=sizes, num_features=problem.dimension, seed=seed)
        _check(problem, data)
        learned = data.pooled() if self.trust == "central" else data
        runs = [
            run(self._algorithm(setting), learned, rounds=setting.rounds, seed=seed, num_runs=num_runs)
            for setting in self.settings
        ]
        return np.array([result.loss()[-1] for result in runs])

    def _algorithm(self, setting: Setting) -> Algorithm:
        """Return what is simulated of a setting."""
        from hockeystick.simulate import EveryRound, FixedSize, NoisyMinibatchSGD  # noqa: PLC0415

        everybody = self.trust == "central" or setting.silos_per_round == self.problem.num_silos
        return NoisyMinibatchSGD(
            learning_rate=setting.learning_rate,
            clip_norm=self.problem.lipschitz,
            noise_std=setting.noise_std,
            records=FixedSize(setting.batch_size),
            clients=EveryRound() if everybody else FixedSize(setting.silos_per_round),
            radius=self.problem.diameter / 2,
        )

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
        if self.trust == "shuffle":
            raise ValueError(
                "trust must not be 'shuffle' for a sweep: no array function accounts for given noise there"
            )
        problem, pool = self.problem, pool_of(self.trust, self.problem)
        noises, rounds, batches, silos, *_ = zip(*self.settings, strict=True)
        axes: dict[str, Any] = {"noise_std": {"logspace": [min(noises) / 2.0, max(noises) * 2.0], "num": 25}}
        same = ("dimension", "lipschitz", "smoothness", "strong_convexity")
        fixed: dict[str, Any] = {name: getattr(problem, name) for name in same}
        if self.trust == "last-iterate":
            bounded = {"gradient_bound": problem.lipschitz, "gradient_std": 0.0}
            outputs: dict[str, Any] = {
                "delta": "utility.trusted_aggregator_delta",
                "risk": {"function": "utility.trusted_aggregator_excess_risk", "arguments": bounded},
            }
            fixed |= {"epsilon": problem.epsilon, "num_users": problem.num_silos, "radius": problem.diameter / 2.0}
            axes["batch_size"] = sorted(set(silos))
        else:
            outputs = {"epsilon": "isrl.noisy_mb_sgd_epsilon", "risk": "isrl.mb_sgd_risk_bound"}
            fixed |= {
                "delta": problem.delta,
                "diameter": problem.diameter,
                "num_records": pool.num_records,
                "num_silos": pool.num_parties,
                "silos_per_round": pool.taking_part,
            }
            axes |= {"rounds": sorted(set(rounds)), "batch_size": sorted(set(batches))}
        return {"title": f"Around a plan for {self.trust}", "outputs": outputs, "fixed": fixed, "axes": axes}

    def sweep_toml(self) -> str:
        """Return `sweep` as a TOML file's text."""
        source = self.sweep()
        lines = [f"title = {json.dumps(source['title'])}"]
        for section in ("outputs", "fixed", "axes"):
            lines += ["", f"[{section}]", *(f"{name} = {_value(value)}" for name, value in source[section].items())]
        return "\n".join(lines) + "\n"


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
    algorithm = next(one for one in ALGORITHMS if one.trust == trust)
    candidates = [[candidate] for candidate in algorithm.settings(problem)]
    settings = [setting for _, setting in smallest(candidates, num_settings, report).found]
    telling = [setting for setting in settings if setting.risk_bound < problem.gap]
    return Plan(trust, problem, tuple(telling or settings))


def num_protected(trust: Trust, num_silos: int, num_records: int) -> int:
    """Return among how many lies the one that may be replaced, where there are so many silos: silos, or the records of one silo or of all."""
    if trust == "last-iterate":
        return num_silos
    return num_records * (1 if trust == "inter-silo" else num_silos)


MAX_NUMBERS = 50_000_000  # of synthetic data: 400 MB
SIMULATED = ("central", "inter-silo")


def _check(problem: Problem, data: Data) -> None:
    expected = (problem.num_silos, problem.num_records, problem.dimension)
    given = (data.num_silos, min(data.sizes or (0,)), data.dimension)
    if given != expected or max(data.sizes or (0,)) != problem.num_records:
        raise ValueError(f"data must have num_silos, num_records and dimension of the plan, {expected}, not {given}")


def _value(value: Any) -> str:
    """Return a value of a sweep plan as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_value(item)}" for name, item in value.items()) + " }"
    return json.dumps(value)
