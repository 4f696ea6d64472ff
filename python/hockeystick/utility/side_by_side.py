"""One training, all analyses of it: what each certifies after how many rounds, and what papers print."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from hockeystick import federated, last_iterate, published
from hockeystick._checks import Array, at_most, choice, count_scalar, setting_warnings
from hockeystick._checks.arguments import Check
from hockeystick._checks.shown import listed, shown
from hockeystick._numeric.printing import format_upper
from hockeystick._numeric.search import SMALLEST, smallest_feasible
from hockeystick.accounting import Accountant
from hockeystick.isrl import shuffle_amplification, subsampling_amplification
from hockeystick.kernels import gaussian_epsilon
from hockeystick.mechanisms import ApproximateDP, FixedSizeSampled, Gaussian, Mechanism
from hockeystick.published.warning import quietly
from hockeystick.utility.settings import Arguments, checked_inputs

__all__ = ["Analyses", "Analysis", "analyses"]

Order: TypeAlias = Literal["random", "cyclic"]
MAX_POINTS = 10  # numbers of rounds, where only the largest is given


@dataclass(frozen=True)
class Training(Arguments):
    """The checked inputs, and what follows from them."""

    num_clients: int
    num_records: int
    clients_per_round: int
    batch_size: int
    local_steps: int
    noise_std: float
    lipschitz: float
    smoothness: float
    strong_convexity: float
    learning_rate: float
    diameter: float
    delta: float
    order: Order
    index: int

    @property
    def everybody(self) -> bool:
        """Whether all clients take part in every round."""
        return self.clients_per_round == self.num_clients

    @property
    def protects(self) -> Literal["record", "client"]:
        """What is replaced, if the server is seen: where clients are drawn, one of them with all its records."""
        return "record" if self.everybody or self.order == "cyclic" else "client"

    @property
    def period(self) -> int:
        """In how many rounds every record is used once, in a fixed order."""
        return self.num_clients * self.num_records // (self.clients_per_round * self.batch_size)

    @property
    def rate(self) -> float:
        """With which probability a round uses what is protected."""
        if self.everybody:
            return self.batch_size / self.num_records
        return self.clients_per_round / self.num_clients

    @property
    def full(self) -> bool:
        """Whether every round uses what is protected."""
        return self.period == 1 if self.order == "cyclic" else self.rate == 1.0

    @property
    def share(self) -> float:
        """The largest norm of what is protected within a client's message, of K gradients: a record's is shared by its batch."""
        alone = self.local_steps == 1 and self.protects == "record"
        return self.lipschitz * self.local_steps / (self.batch_size if alone else 1)

    @property
    def multiplier(self) -> float:
        """Noise of the mean of all messages, over what is protected."""
        return self.noise_std * math.sqrt(self.clients_per_round) / self.share

    def uses(self, rounds: Array) -> Array:
        """Return in how many of the first rounds a record of a fixed order is used."""
        return np.where(rounds < self.index, 0, (rounds - self.index) // self.period + 1)


Curve: TypeAlias = Callable[[Training, Array], Array]  # epsilon after so many rounds

DOMAINS: dict[str, Check] = {
    "noise_std": "positive",
    "smoothness": "non_negative",
    "diameter": (lambda x: x > 0, "be positive, or infinite where nothing is projected"),
    "order": partial(choice, choices=get_args(Order)),
}


def checked_training(arguments: Mapping[str, Any]) -> Training:
    """Check the arguments in their order."""
    training = checked_inputs(Training, arguments, **DOMAINS)
    if training.order == "random":
        if training.index != 1:
            raise ValueError(
                f"index must be 1 for order='random', in which a record has no round of its own, not {training.index}"
            )
        return training
    together = training.clients_per_round * training.batch_size
    if training.num_clients * training.num_records % together:
        raise ValueError(
            f"clients_per_round batch_size must divide num_clients num_records ({training.num_clients * training.num_records}) "
            f"for order='cyclic', not {together}"
        )
    at_most("index", training.index, "the rounds of a pass", training.period)
    return training


def checked_rounds(rounds: int | Sequence[int]) -> Array:
    """Return increasing numbers of rounds; those up to a single one spaced by ratios."""
    if np.ndim(rounds) == 0:
        last = count_scalar("rounds", rounds)  # type: ignore[arg-type]
        return np.unique(np.geomspace(1, last, MAX_POINTS).round()).astype(np.int64)
    given = [count_scalar(f"rounds[{k}]", value) for k, value in enumerate(rounds)]  # type: ignore[arg-type]
    if not given or any(b <= a for a, b in itertools.pairwise(given)):
        raise ValueError(f"rounds must be one number, or increasing ones, not {shown(rounds)}")
    return np.array(given)


TOLERANCE = 1e-3  # relative, of an epsilon that is found by bisection: the feasible end
MAX_EPSILON = 1e4
ABOVE = f"its epsilon is above {MAX_EPSILON:.0f}"
AT_RANDOM = "{} drawn at random; here the order is fixed"
EVERYBODY = "every client in every round"


class NotCoveredError(ValueError):
    """An analysis has nothing to say of a training in any round; the message says why."""


def needs(holds: bool, what: str) -> None:
    """Check what an analysis needs of a training."""
    if not holds:
        raise NotCoveredError(f"needs {what}")


def needs_one_step(training: Training) -> None:
    """Check what projected noisy SGD needs: one local step."""
    needs(training.local_steps == 1, f"one local step a round, not {training.local_steps}")


def applied(curve: Curve, training: Training, rounds: Array) -> tuple[Array, str]:
    """Return epsilon by rounds, NaN where there is none, and if there is none at all the reason."""
    try:
        epsilon = curve(training, rounds)
    except NotCoveredError as error:
        return np.full(rounds.shape, np.nan), str(error)
    return epsilon, "" if np.isfinite(epsilon).any() else ABOVE


def composition(training: Training, rounds: Array) -> Array:
    """Compose the rounds, all of whose models are seen."""
    if training.order == "cyclic":
        return _composed(Gaussian(training.multiplier), training.uses(rounds), training.delta)
    size, drawn = training.num_clients, training.clients_per_round
    if training.everybody:
        size, drawn = training.num_records, training.batch_size
        if training.local_steps > 1:  # a batch is drawn for each of them
            size = drawn
    return _composed(_sampled(training.multiplier, size, drawn), rounds, training.delta)


def inter_silo(training: Training, rounds: Array) -> Array:
    """Compose a client's own messages, every round charged to it, for one of its records."""
    alone = training.local_steps == 1
    share = training.batch_size if alone else 1.0 / training.local_steps
    multiplier = training.noise_std / training.lipschitz * share
    if training.order == "cyclic":
        return _composed(Gaussian(multiplier), training.uses(rounds), training.delta)
    size = training.num_records if alone else training.batch_size
    return _composed(_sampled(multiplier, size, training.batch_size), rounds, training.delta)


def _sampled(multiplier: float, size: int, drawn: int) -> Mechanism:
    step = Gaussian(multiplier)
    return step if size == drawn else FixedSizeSampled(step, size, drawn, replacement=False)


def _composed(step: Mechanism, uses: Array, delta: float) -> Array:
    return np.array([Accountant("replace").compose(step, int(k)).epsilon(delta) if k else 0.0 for k in uses])


def last_models(training: Training, rounds: Array) -> dict[str, Array]:
    """Return epsilon by every bound of the last model, from the curves of delta of `last_iterate`."""
    mean: dict[str, Any] = {
        "noise_std": training.noise_std / math.sqrt(training.clients_per_round),
        "lipschitz": training.share / training.clients_per_round,
    }

    def bounds(count: int, eps: float) -> dict[str, float]:
        if training.full or training.order == "cyclic":
            period = training.period if training.order == "cyclic" else 1
            best = training.of(last_iterate.best_cyclic, epsilon=eps, period=period, rounds=count, **mean)
        else:
            best = training.of(
                last_iterate.best_sampled, epsilon=eps, sampling_rate=training.rate, rounds=count, **mean
            )
        return {name: float(delta) for name, delta in best.bounds.items() if name in NAMES}

    columns = [
        inverses(partial(bounds, count), training.delta) if count >= training.index else None
        for count in rounds.tolist()
    ]
    return {
        name: np.array([0.0 if column is None else column.get(name, np.nan) for column in columns]) for name in NAMES
    }


def inverses(bounds: Callable[[float], dict[str, float]], delta: float) -> dict[str, float]:
    """Return for each bound an epsilon at which it is at most delta, within the tolerance of the smallest; infinity if none is found.

    Each evaluation has all bounds, so that what was evaluated for one is where the next begins.
    """
    seen: dict[float, dict[str, float]] = {}

    def excess(name: str, eps: float) -> float:
        if eps not in seen:
            seen[eps] = bounds(eps)
        value = seen[eps][name]
        return math.inf if math.isnan(value) else math.log(max(value, SMALLEST) / delta)

    def inverse(name: str) -> float:
        return smallest_feasible(partial(excess, name), most=MAX_EPSILON, tolerance=TOLERANCE, known=seen)

    seen[0.0] = bounds(0.0)
    return {name: math.nan if math.isnan(value) else inverse(name) for name, value in seen[0.0].items()}


def inverse(bound: Callable[[float], float], delta: float) -> float:
    """Return `inverses` of a single bound."""
    return inverses(lambda eps: {"": bound(eps)}, delta)[""]


def fedavg(training: Training, rounds: Array) -> Array:
    """Return the shifted interpolation of Noisy-FedAvg, which needs no convexity."""
    needs(training.everybody, EVERYBODY)
    diameter = None if math.isinf(training.diameter) else training.diameter
    return np.asarray(federation(training, federated.fedavg_epsilon, rounds=rounds, diameter=diameter))


def federation(training: Training, function: Callable[..., Any], **others: Any) -> Any:
    """Call a function on Noisy-FedAvg, whose noise is on models."""
    noise_std = training.noise_std * training.learning_rate
    return training.of(function, clip_norm=training.lipschitz, noise_std=noise_std, **others)


def needs_aggregator(training: Training) -> None:
    """Check what the theorems on a trusted aggregator need."""
    needs_one_step(training)
    needs(math.isfinite(training.diameter), "a finite diameter")
    needs(training.learning_rate * training.smoothness <= 2.0, "a learning_rate of at most 2/smoothness")
    needs(training.order == "random", AT_RANDOM.format("clients"))


def aggregation(training: Training, function: Callable[..., Any], **others: Any) -> Any:
    """Call a function on a trusted aggregator."""
    batch, radius = training.clients_per_round, training.diameter / 2.0
    return training.of(function, batch_size=batch, radius=radius, loss="convex", **others)


def trusted_aggregator(training: Training, rounds: Array) -> Array:
    """Return the smallest bound for a client, drawn afresh in every round, of a trusted aggregator's last model."""
    needs_aggregator(training)

    def delta(count: int, eps: float) -> float:
        best = aggregation(training, federated.best_sampled, epsilon=eps, num_users=training.num_clients, rounds=count)
        return float(best.delta)

    return np.array([inverse(partial(delta, count), training.delta) for count in rounds.tolist()])


def shuffled(training: Training, rounds: Array) -> Array:
    """Shuffle the clients' messages: each round by Theorem 3.8 of Feldman, McMillan and Talwar, the rounds composed."""
    needs(training.order == "random", AT_RANDOM.format("clients"))
    epsilon = np.array([_shuffled(training, count) for count in rounds.tolist()])
    needs(not np.isnan(epsilon).all(), "more messages, or more noise on each, for the shuffler to help")
    return epsilon


def _shuffled(training: Training, rounds: int) -> float:
    """Spend half of delta on the rounds' own deltas, one half of that for the clones and one for the messages, the rest on composition."""
    clients, rate = training.clients_per_round, training.clients_per_round / training.num_clients
    slack = min(training.delta / (4.0 * rounds * rate), 0.5)
    distance = 2.0 * training.lipschitz * training.local_steps / training.noise_std
    message = slack / (2.0 * (math.e + 1.0) * clients)  # enough for an epsilon of a round of 1 at most, checked below
    local = float(Accountant("replace").compose(Gaussian(2.0 / distance)).epsilon(message))
    try:
        one = shuffle_amplification(local, message, num_silos=clients, slack=slack)
        one = subsampling_amplification(*one, rate)
    except ValueError:  # too few clones
        return math.nan
    if one.epsilon > 1.0 or rounds * float(one.delta) > training.delta / 2.0 * (1.0 + 1e-9):
        return math.nan
    step = ApproximateDP(float(one.epsilon), float(one.delta))
    return float(Accountant("replace").compose(step, rounds).epsilon(training.delta))


def printed_fedavg(training: Training, rounds: Array) -> Array:
    """Return what Theorem 12(a) of Sun, Shen and Tao prints."""
    needs(training.everybody, EVERYBODY)
    needs(training.smoothness > 0.0, "a positive smoothness: the formula divides by it")
    mu = quietly(federation, training, published.fedavg_gdp, rounds=rounds, diameter=None)
    return np.asarray(gaussian_epsilon(mu, training.delta))


def printed_aggregator(training: Training, rounds: Array) -> Array:
    """Return Theorem 2 of Asoodeh, Chen, Calmon and Ozgur, up to the rounds in which no client takes part twice."""
    needs_aggregator(training)
    most = training.num_clients // training.clients_per_round
    if rounds[0] > most:
        raise NotCoveredError(f"holds up to round {most}, in which each client has taken part once")

    def delta(count: int, eps: float) -> float:
        users = count * training.clients_per_round
        # The theorem has m/users before its sum, and here m/num_clients is meant.
        total = aggregation(training, federated.trusted_aggregator, epsilon=eps, num_users=users)
        return float(total) * users / training.num_clients

    return np.array(
        [inverse(partial(delta, count), training.delta) if count <= most else np.nan for count in rounds.tolist()]
    )


def printed_inter_silo(training: Training, rounds: Array) -> Array:
    """Invert the noise of Theorem D.1 of Lowy and Razaviyayn, where its conditions on epsilon and the batch hold."""
    needs_one_step(training)
    needs(training.order == "random", AT_RANDOM.format("batches"))
    epsilon = np.array([_printed_inter_silo(training, count) for count in rounds.tolist()])
    if np.isnan(epsilon).all():
        raise NotCoveredError("holds for epsilon up to 2 ln(2/delta) and batches of at least K_min only")
    return epsilon


def _printed_inter_silo(training: Training, rounds: int) -> float:
    budget = {"num_records": training.num_records, "rounds": rounds, "delta": training.delta}
    unit = published.noisy_mb_sgd_sigma(lipschitz=training.lipschitz, epsilon=1.0, **budget)
    epsilon = float(unit) / training.noise_std
    try:
        within = published.min_batch_size(epsilon=epsilon, **budget) <= training.batch_size
    except ValueError:
        return math.nan
    return epsilon if within else math.nan


CERTIFIED, CONVEX = "certified", "certified for convex and smooth losses"
LAST, EVERY = "the last model", "every round's model"
NAMES = {  # bound of last_iterate -> our name and its source
    "contraction": ("contraction", "Asoodeh, Diaz and Calmon 2020, Theorem 4"),
    "nonlinear": ("nonlinear contraction", "last_iterate.best_cyclic"),
    "pattern": ("nonlinear contraction", "last_iterate.best_sampled"),
    "shifted": ("shifted interpolation", "Bok, Su and Altschuler 2024"),
    "joint": ("joint", "docs/core/hidden_state.md"),
}
ROUNDS = "a record whose rounds are known: here they are drawn"
NARROW = "a domain of at most ten noise deviations"


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
        raise KeyError(f"name must be one of {listed(repr(one.name) for one in self.found)}, not {shown(name)}")

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
    training = checked_training(locals())
    times = checked_rounds(rounds)
    setting_warnings.warn(setting_warnings.large_delta(training.delta, training.num_records * training.num_clients))
    composed = "composition", "Accountant", training.protects, EVERY, CERTIFIED, False
    found = [
        Analysis(*composed, *applied(composition, training, times)),
        *last_models_of(training, times),
        *(Analysis(*words, *applied(curve, training, times)) for curve, words in OTHERS.items()),
    ]
    return Analyses(training, times, tuple(found))


def last_models_of(training: Training, rounds: Array) -> list[Analysis]:
    """Return the analyses of the last model of projected noisy SGD."""
    bounds = last_models(training, rounds) if training.local_steps == 1 else {}
    drawn = training.order == "random" and not training.full

    def known(bound: str, *_: object) -> Array:
        needs_one_step(training)
        reason = ROUNDS if drawn and bound == "contraction" else NARROW
        needs(not np.isnan(bounds[bound]).all(), reason)
        return bounds[bound]

    return [
        Analysis(
            name, source, training.protects, LAST, CONVEX, False, *applied(partial(known, bound), training, rounds)
        )
        for bound, (name, source) in NAMES.items()
        if bound != ("nonlinear" if drawn else "pattern")  # the other has this name
    ]


OWN = "the messages of the record's client"
OTHERS: dict[Curve, tuple[str, str, str, str, str, bool]] = {
    fedavg: ("shifted (FedAvg)", "federated.fedavg_epsilon", "record", LAST, CERTIFIED, False),
    trusted_aggregator: ("trusted aggregator", "federated.best_sampled", "client", LAST, CONVEX, False),
    inter_silo: ("inter-silo", "isrl.noisy_mb_sgd_accountant", "record", OWN, CERTIFIED, False),
    shuffled: ("shuffle", "isrl.shuffle_amplification", "client", "the shuffled messages", CERTIFIED, False),
    printed_fedavg: (
        "printed FedAvg", "Sun, Shen and Tao 2024, Theorem 12(a)", "record", LAST,
        "false: linear losses violate it from two rounds on", True,
    ),
    printed_aggregator: (
        "printed aggregator", "Asoodeh, Chen, Calmon and Ozgur 2021, Theorem 2", "client", LAST,
        "no guarantee here: it holds where no client takes part twice", True,
    ),
    printed_inter_silo: (
        "printed inter-silo", "Lowy and Razaviyayn 2023, Theorem D.1", "record", OWN,
        "loose: 4 to 31 times the noise that is needed", True,
    ),
}  # fmt: skip
