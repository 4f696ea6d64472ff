"""The support table, ``<!-- support table -->``: every mechanism is tried, ours by our accountant, the peers' by theirs.

A mechanism is any class in ``hockeystick.mechanisms.__all__`` and ``hockeystick.selection.__all__``; its instance is the one that its docstring's example makes. One that samples
is tried with each of the others, too.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import doctest
import inspect
import io
import math
import re
from typing import TYPE_CHECKING, Any

import dp_accounting as dp
from dp_accounting import pld, rdp

import hockeystick as hs
from hockeystick import mechanisms, selection
from hockeystick.training.participation import SAMPLERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sphinx.application import Sphinx

MARK = "<!-- support table -->"
STEPS, DELTA = 10, 1e-4
WRAPPERS = (mechanisms.PrivateSelection, mechanisms.Dominating)
ADJACENCIES = {"add_or_remove": dp.NeighboringRelation.ADD_OR_REMOVE_ONE, "replace": dp.NeighboringRelation.REPLACE_ONE}

# dp_accounting's event for a mechanism, where it has one.
EVENTS: dict[str, Callable[[Any], dp.DpEvent]] = {
    "Gaussian": lambda m: dp.GaussianDpEvent(m.noise_multiplier),
    "Laplace": lambda m: dp.LaplaceDpEvent(m.noise_multiplier),
    "DiscreteLaplace": lambda m: dp.dp_event.DiscreteLaplaceDpEvent(m.inverse_scale, m.sensitivity),
    "DiscreteGaussian": lambda m: dp.dp_event.DiscreteGaussianDpEvent(m.noise_std, m.sensitivity),
    "DiscreteGaussianVector": lambda m: dp.dp_event.DiscreteGaussianDpEvent(m.noise_std, m.sensitivity, m.dimension),
    "RandomizedResponse": lambda m: dp.dp_event.RandomizedResponseDpEvent(m.noise_probability, m.num_buckets),
    "ApproximateDP": lambda m: dp.dp_event.EpsilonDeltaDpEvent(m.epsilon, m.delta),
    "ExponentialMechanism": lambda m: dp.dp_event.ExponentialMechanismDpEvent(m.epsilon),
    "MixtureOfGaussians": lambda m: dp.dp_event.MixtureOfGaussiansDpEvent(
        m.noise_multiplier, m.sensitivities, m.probabilities
    ),
    "PoissonSampled": lambda m: dp.PoissonSampledDpEvent(m.sampling_rate, event(m.mechanism)),
    "FixedSizeSampled": lambda m: dp.SampledWithoutReplacementDpEvent(m.num_records, m.batch_size, event(m.mechanism)),
    "TruncatedPoissonSampled": lambda m: dp.dp_event.TruncatedSubsampledGaussianDpEvent(
        m.num_records, m.sampling_rate, m.max_batch_size, m.mechanism.noise_multiplier
    ),
    "Composed": lambda m: dp.ComposedDpEvent([dp.SelfComposedDpEvent(event(part), count) for part, count in m.steps]),
    "PermuteAndFlip": lambda m: dp.dp_event.PermuteAndFlipDpEvent(m.epsilon),
    "PrivateSelection": lambda m: dp.RepeatAndSelectDpEvent(
        dp.SelfComposedDpEvent(event(m.mechanism), m.count), m.mean, math.inf if m.shape is None else m.shape
    ),
    "ZeroConcentratedDP": lambda m: dp.dp_event.ZCDpEvent(m.rho, m.xi),
}
# What the others have, read from their sources; neither tells adjacencies apart.
OPACUS = {"Gaussian", "PoissonSampled(Gaussian)"}
PRV_ACCOUNTANT = {"Gaussian", "Laplace", "ApproximateDP", "PoissonSampled(Gaussian)"}


def event(mechanism: mechanisms.Mechanism) -> dp.DpEvent:
    """Return dp_accounting's event; an AttributeError or KeyError if it has none."""
    return EVENTS[type(mechanism).__name__](mechanism)


def examples() -> Iterator[mechanisms.Mechanism]:
    """Yield an instance of every mechanism, and those that sample with each mechanism that they accept."""
    found = [example(kind) for room in (mechanisms, selection) for kind in vars(room).values() if _is_mechanism(kind)]
    plain = [instance for instance in found if not isinstance(instance, (*SAMPLERS, *WRAPPERS))]
    yield from plain
    yield from (instance for instance in found if isinstance(instance, WRAPPERS))
    for instance in found:
        if isinstance(instance, SAMPLERS):
            yield from (accepted for inner in plain if (accepted := _running(instance, inner)))


def _running(outer: mechanisms.Mechanism, inner: mechanisms.Mechanism) -> mechanisms.Mechanism | None:
    """Return `outer` with another mechanism inside, or None if it refuses."""
    try:
        return dataclasses.replace(outer, mechanism=inner)
    except (TypeError, ValueError):
        return None


def _is_mechanism(kind: object) -> bool:
    listed = inspect.isclass(kind) and kind.__name__ in (*mechanisms.__all__, *selection.__all__)
    return listed and issubclass(kind, mechanisms.Mechanism) and kind is not mechanisms.Mechanism


def example(kind: type[mechanisms.Mechanism]) -> mechanisms.Mechanism:
    """Return the instance that the example of a class makes."""
    space: dict[str, Any] = {}
    for part in doctest.DocTestParser().get_examples(kind.__doc__ or ""):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(part.source, space)  # noqa: S102 - first: it may make the arguments of the call
        for call in ast.walk(ast.parse(part.source)):
            if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == kind.__name__:
                return eval(ast.unparse(call), space)
    raise LookupError(f"the docstring of {kind.__name__} has no example that makes one")


def name_of(mechanism: mechanisms.Mechanism) -> str:
    """Return the classes of a mechanism and of the one that it runs."""
    inner = f"({name_of(mechanism.mechanism)})" if isinstance(mechanism, (*SAMPLERS, *WRAPPERS)) else ""
    return type(mechanism).__name__ + inner


def _ours(mechanism: mechanisms.Mechanism, adjacency: str, refusals: dict[str, list[str]]) -> str:
    """Return which engine answers, or a dash, and why, in `refusals`."""
    try:
        accountant = hs.Accountant(adjacency).compose(mechanism, STEPS)
        return re.split(r",| to | of order", accountant.explain(delta=DELTA).method)[0]
    except ValueError as error:
        reason = str(error).removeprefix(repr(mechanism)).strip().partition(": ")[2] or str(error)
        refusals.setdefault(f"{adjacency}: {reason}", []).append(f"`{name_of(mechanism)}`")
        return "-"


def _theirs(mechanism: mechanisms.Mechanism, relation: dp.NeighboringRelation) -> str:
    """Return which of dp_accounting's accountants say that they support it."""
    try:
        asked = event(mechanism)
    except (AttributeError, KeyError):
        return "-"
    kinds = {"PLD": pld.PLDAccountant, "RDP": rdp.RdpAccountant}
    named = {name: kind(neighboring_relation=relation) for name, kind in kinds.items()}
    return ", ".join(name for name, accountant in named.items() if accountant.supports(asked)) or "-"


def table() -> str:
    """Return the table, and why a combination is refused."""
    head = (
        "mechanism",
        *(
            f"{library}, {adjacency}"
            for library in ("hockeystick", "dp_accounting")
            for adjacency in ("add or remove", "replace")
        ),
        "Opacus",
        "prv_accountant",
    )
    rows, refusals = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"], {}
    for mechanism in examples():
        name = name_of(mechanism)
        cells = [f"`{name}`", *(_ours(mechanism, adjacency, refusals) for adjacency in ADJACENCIES)]
        cells += [_theirs(mechanism, relation) for relation in ADJACENCIES.values()]
        cells += ["yes" if name in known else "-" for known in (OPACUS, PRV_ACCOUNTANT)]
        rows.append("| " + " | ".join(cells) + " |")
    why = [f"- {reason}: {', '.join(names)}" for reason, names in refusals.items()]
    return "\n".join([*rows, "", "What hockeystick refuses, and why:", "", *why])


def show(app: Sphinx, page: str, text: list[str]) -> None:
    """Replace the mark by the table."""
    del app, page
    if MARK in text[0]:
        text[0] = text[0].replace(MARK, table())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", show)
    return {"parallel_read_safe": True}
