"""What a plan says of a training, numbers and words by name, and the data and the algorithm that they make.

The fields of the algorithms are settings under their own names, where they are numbers, words or switches (``"yes"``, ``"no"``).
A sampler is named by a word, and its size or rate is a setting of its own, so that it may be an axis.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hockeystick import simulate
from hockeystick._checks import choice, count_scalar, seed_scalar
from hockeystick.federated.released_models import VIEWS
from hockeystick.simulate.problem.data import DATA_SETS
from hockeystick.simulate.problem.problem import LOSSES, Problem
from hockeystick.simulate.running.rule import MAX_BYTES, SLOTS
from hockeystick.sweep.errors import require

Value = int | float | str
Kind = type | tuple[str, ...]  # int, float, or the words

SWITCH = ("no", "yes")
DATA = ("synthetic", *DATA_SETS)
_OF_DATA: dict[str, Kind] = {
    "data": DATA,
    "num_silos": int,
    "data_seed": int,
    "concentration": float,
    "test_share": float,
    "hidden": int,
    "record_loss": LOSSES,
    "records_per_silo": int,
    "num_features": int,
    "heterogeneity": float,
    "num_classes": int,
}
# Of each sampler that an algorithm has: the settings that are its fields.
_SAMPLED = {
    "records": {"size": "batch_size", "sampling_rate": "batch_rate", "expected_batch_size": "expected_batch_size"},
    "clients": {"size": "clients_per_round", "sampling_rate": "client_rate"},
}
_OF_RUNS: dict[str, Kind] = {"rounds": int, "seed": int, "num_runs": int}
OF_EPSILON: dict[str, Kind] = {"delta": float, "released": VIEWS}  # what is asked about a training: no setting of it
REQUIRED = ("algorithm", "data", "num_silos", "rounds", "seed")


@dataclass(frozen=True, eq=False)
class Training:
    """One training, checked: nothing of it has run."""

    algorithm: simulate.Algorithm
    problem: Problem
    test: Problem  # what accuracy and test loss are of
    rounds: int
    seed: int
    num_runs: int
    used: frozenset[str]  # the settings that this algorithm and these data have


def training(settings: Mapping[str, Value]) -> Training:
    """Return the training that settings make.

    Parameters
    ----------
    algorithm : str
        The class of `hockeystick.simulate` that is run.
    data : str
        A data set of `simulate.load`, or "synthetic", which has no test records: accuracy and test loss are then those on the
        records trained on.
    num_silos : int
        Clients that the records are split among, at least 1.
    data_seed : int
        Of the split or of the synthetic records, 1 if not given.
    concentration : float
        Of the Dirichlet split by label, positive; a split at random if not given.
    test_share : float
        Share of the records kept for testing, in (0, 1); 0.2 if not given.
    hidden : int
        Hidden units of a network, positive; a linear model if not given.
    record_loss : str
        The loss of a synthetic record, as in `simulate.Problem`.
    records_per_silo : int
        Synthetic records of each client, at least 1.
    num_features : int
        Of a synthetic record, at least 1.
    heterogeneity : float
        By how much synthetic clients differ, non-negative; 0 if not given.
    num_classes : int
        Classes of synthetic records, at least 2; 2 if not given.
    records : str
        The sampler of a batch; "FixedSize" if there is a batch_size, "Poisson" if there is a batch_rate, else the algorithm's own.
    batch_size : int
        Records in a batch, at least 1.
    batch_rate : float
        Probability of a record to be in a Poisson batch, in (0, 1].
    expected_batch_size : float
        What the sum over a Poisson batch is divided by, positive; batch_rate times the records that there are if not given. With it a
        record is added or removed, without it one is replaced.
    clients : str
        The sampler of the clients of a round, named likewise.
    clients_per_round : int
        Clients that take part in a round, from 1 to num_silos.
    client_rate : float
        Probability of a client to take part in a round, in (0, 1].
    rounds : int
        At least 1.
    seed : int
        Of all random streams of the training, non-negative.
    num_runs : int
        Independent runs, at least 1; 1 if not given.

    Returns
    -------
    Training
        Checked as far as it can be without running it.

    Raises
    ------
    ValueError, TypeError
        If a setting is missing or outside its domain, or the training would need more memory than the simulator's cap.
    """
    given = {name: _value(name, value) for name, value in settings.items() if value is not None}
    for name in REQUIRED:
        _needed("a training", name, given)
    rounds, seed = count_scalar("rounds", given["rounds"]), seed_scalar("seed", given["seed"])
    num_runs = count_scalar("num_runs", given.get("num_runs", 1))
    algorithm, of_algorithm = _algorithm(given)
    problem, test, of_data = _problems(given)
    rule = algorithm._rule(problem, rounds)  # more clients or records drawn than there are
    needed = 8 * num_runs * (SLOTS * problem.dimension + (rounds if rule.clip_rate > 0 else 0))
    _check_memory("num_runs", num_runs, needed)
    return Training(algorithm, problem, test, rounds, seed, num_runs, of_algorithm | of_data | {*_OF_RUNS})


def _needed(what: str, name: str, given: Mapping[str, Any]) -> Any:
    require(name in given, f"{what} needs {name}", ValueError)
    return given[name]


def _value(name: str, value: Any) -> Any:
    """Return a setting as its kind; a whole number may come as a float."""
    kind = kinds()[name]
    if isinstance(kind, tuple):
        return choice(name, value, kind)
    require(not isinstance(value, str), f"{name} must be a number, not {value!r}", TypeError)
    if kind is float:
        return float(value)
    require(value == value // 1, f"{name} must be an integer, not {value}", ValueError)
    return int(value)


def _check_memory(name: str, value: int, needed: float) -> None:
    told = f"{name} must be small enough for {MAX_BYTES >> 30} GiB, not {value}: {needed / 2**30:.3g} GiB are needed"
    require(needed <= MAX_BYTES, told, ValueError)


def _problems(given: Mapping[str, Any]) -> tuple[Problem, Problem, frozenset[str]]:
    """Return the records to train on, those to test on, and the settings that they have."""
    settings = {"num_silos": given["num_silos"], "seed": given.get("data_seed", 1)}
    if given["data"] == "synthetic":
        own = ["record_loss", "records_per_silo", "num_features", "heterogeneity"]
        for name in own[:3]:
            _needed("data = 'synthetic'", name, given)
        loss = given["record_loss"]
        own += ["num_classes"] * (loss in ("softmax", "network")) + ["hidden"] * (loss == "network")
    else:
        own = ["concentration", "test_share", "hidden"]
    settings |= {name: given[name] for name in own if name in given}
    made = _made(given["data"], tuple(sorted(settings.items())))
    return *made, frozenset({"data", "num_silos", "data_seed", *own})


@functools.lru_cache(maxsize=16)  # neighbouring cells have the same data
def _made(data: str, settings: tuple[tuple[str, Any], ...]) -> tuple[Problem, Problem]:
    values = dict(settings)
    if data != "synthetic":
        return simulate.load(data, **values)  # type: ignore[arg-type]
    silos = count_scalar("num_silos", values.pop("num_silos"))
    each = count_scalar("records_per_silo", values.pop("records_per_silo"))
    needed = 8.0 * silos * each * (count_scalar("num_features", values["num_features"]) + 2)
    _check_memory("records_per_silo", each, needed)
    problem = simulate.synthetic(values.pop("record_loss"), sizes=[each] * silos, **values)
    return problem, problem


def _algorithm(given: Mapping[str, Any]) -> tuple[simulate.Algorithm, frozenset[str]]:
    """Return the algorithm, and the settings that it has."""
    name = given["algorithm"]
    fields = _fields(algorithms()[name])
    arguments, used = {}, {"algorithm"}
    for field, (kind, required) in fields.items():
        if field in _SAMPLED:
            value, keys = _sampler(field, given, f"algorithm = {name!r}", required=required)
            used |= {field, *keys}
        else:
            used.add(field)
            value = _needed(f"algorithm = {name!r}", field, given) if required else given.get(field)
            value = value == "yes" if kind == SWITCH and value is not None else value
        if value is not None:
            arguments[field] = value
    return algorithms()[name](**arguments), frozenset(used)


def _sampler(
    field: str, given: Mapping[str, Any], what: str, *, required: bool
) -> tuple[simulate.Participation | None, list[str]]:
    """Return a sampler, or None for the algorithm's own, and the settings that are its fields."""
    keys = _SAMPLED[field]
    size, rate = keys["size"], keys["sampling_rate"]
    word = given.get(field, "FixedSize" if size in given else "Poisson" if rate in given else None)
    if word is None:
        return (_needed(what, size, given) if required else None), []
    own = [argument for argument in dataclasses.fields(samplers()[word]) if argument.name in keys]
    for argument in own:
        if _is_required(argument):
            _needed(f"{field} = {word!r}", keys[argument.name], given)
    arguments = {argument.name: given[keys[argument.name]] for argument in own if keys[argument.name] in given}
    return samplers()[word](**arguments), [keys[argument.name] for argument in own]


def _classes(base: type[Any], can_be_made: Callable[[type[Any]], bool]) -> dict[str, type[Any]]:
    """Return what `hockeystick.simulate` offers of a kind, if a plan can make it."""
    offered = (getattr(simulate, name) for name in simulate.__all__)
    of_kind = [cls for cls in offered if isinstance(cls, type) and issubclass(cls, base) and cls is not base]
    return {cls.__name__: cls for cls in of_kind if can_be_made(cls)}


@functools.cache
def samplers() -> dict[str, type[Any]]:
    """Return the samplers that a plan may name: those whose fields are settings."""
    settings = {*_SAMPLED["records"]}
    return _classes(simulate.Participation, lambda cls: {f.name for f in dataclasses.fields(cls)} <= settings)


@functools.cache
def algorithms() -> dict[str, type[Any]]:
    """Return the algorithms that a plan may name: those whose necessary fields are settings or samplers."""
    return _classes(
        simulate.Algorithm, lambda cls: all(f.name in _fields(cls) for f in dataclasses.fields(cls) if _is_required(f))
    )


def _is_required(field: Any) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _fields(cls: type[Any]) -> dict[str, tuple[Kind, bool]]:
    """Return for each field that a plan can give its kind, and whether it must be given."""
    hints = typing.get_type_hints(cls)
    found = {}
    for field in dataclasses.fields(cls):
        kind = tuple(samplers()) if field.name in _SAMPLED else _kind(hints[field.name])
        if field.init and kind is not None:
            found[field.name] = (kind, _is_required(field))
    return found


def _kind(annotation: Any) -> Kind | None:
    """Return what a plan may give for a field, or None for what is neither a number nor a word."""
    if annotation is bool:
        return SWITCH
    if annotation in (int, float):
        return annotation  # type: ignore[no-any-return]
    members = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal and all(isinstance(member, str) for member in members):
        return members
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return next((kind for kind in map(_kind, members) if kind), None)
    return None


@functools.cache
def kinds() -> dict[str, Kind]:
    """Return all settings of trainings, in the order in which they are told, and the kind of each."""
    fields = {name: kind for cls in algorithms().values() for name, (kind, _) in _fields(cls).items()}
    sizes = {name: kind for cls in samplers().values() for name, (kind, _) in _fields(cls).items()}
    sampled = {setting: sizes[name] for keys in _SAMPLED.values() for name, setting in keys.items()}
    return {"algorithm": tuple(algorithms()), **_OF_DATA, **_OF_RUNS, **fields, **sampled}
