"""What can be said of an accountant's ledger in a privacy statement."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick import selection
from hockeystick._core import __version__
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick._statements import Part, Statement
from hockeystick.accounting.group import group_epsilon
from hockeystick.accounting.questions import Questions, num_records
from hockeystick.accounting.trade_off import true_positive_rates

if TYPE_CHECKING:
    from hockeystick.accounting.bracket import Bracket
    from hockeystick.mechanisms.base import Adjacency

ADJACENCY: dict[Adjacency, str] = {"add_or_remove": "adding or removing", "replace": "replacing"}
GROUPS = (2, 10)  # records of one person
CHANCES = np.array([0.01, 0.5, 1e-6])  # of being wrong, or right, without the output
WEAK = 20.0  # epsilons above it promise next to nothing
NOT_COVERED = (
    "settings, models or check points chosen by looking at results on the same data (tuning, early stopping): each look is one more release",
    "other releases from the same data: their ε and δ add up with these",
    "the code that runs: a sampler or a generator that can be predicted, gaps between floating-point numbers, side channels such as time",
    "what clipping and noise do to the result: this is about privacy, not about accuracy",
)
SCHEMA = "groups as in the registry of Nanayakkara, Ghazi and Vadhan 2025 (arXiv:2509.13509); null: to be filled in"


def statement_of(accountant: Questions, delta: float, *, released: str, unit: str) -> Statement:
    """Return the statement of what was composed."""
    bracket = accountant.epsilon_bracket(delta)
    if bracket.status != "certified":
        msg = f"a statement needs certified numbers, and epsilon at delta = {delta} is only an estimate: a mechanism of the ledger is estimated"
        raise ValueError(msg)
    steps = [f"{count} times {mechanism!r}" for mechanism, count in accountant.ledger.items()]
    change = f"{ADJACENCY[accountant.adjacency]} {unit}"
    parts = (
        Part("ε", (interval(bracket, delta),)),
        Part("Released", (released,)),
        Part("Unit of privacy", (f"{unit}; data sets are adjacent if they differ by {change}",)),
        Part("Mechanisms", tuple(steps) or ("none",)),
        Part("What an attacker can do", attack(accountant)),
        *user_level(accountant, delta),
        Part("Check that", accountant.explain(delta=delta).assumptions),
        Part("Not covered", NOT_COVERED),
        Part("Made by", (f"hockeystick {__version__}; method: {bracket.method}; certified",)),
        Part("Again", again(accountant, delta), code=True),
    )
    sentence = headline("What is released", bracket.upper, delta, change)
    return Statement(sentence, parts, entry(accountant.adjacency, bracket, delta, unit, parts))


def headline(subject: str, epsilon: float, delta: float, change: str, condition: str = "") -> str:
    """Return the sentence to quote; a condition follows the change before the stop."""
    if math.isinf(epsilon):
        return f"{subject} has no differential privacy at δ = {delta!r}: no finite ε holds with respect to {change}{condition}."
    weak = (
        ""
        if epsilon <= WEAK
        else f" An ε above {WEAK:g} promises next to nothing: some outputs may be e^ε times as likely with the record as without it."
    )
    return f"{subject} is (ε, δ)-differentially private with ε = {format_upper(epsilon, '.4g')} at δ = {delta!r}, with respect to {change}{condition}.{weak}"


def interval(bracket: Bracket, delta: float, *, attained: bool = True) -> str:
    """Return both ends in words; `attained` if they are of one algorithm, not of all of a kind."""
    low, high = format_lower(bracket.lower, ".6g"), format_upper(bracket.upper, ".6g")
    if attained:
        return (
            f"the smallest ε at δ = {delta!r} lies between {low} and {high}; both ends are certified, rounding included"
        )
    return f"at δ = {delta!r} no training of this kind has an ε above {high}, and one whose batches have one size has at least {low}; both ends are certified, rounding included"


def attack(accountant: Questions) -> tuple[str, ...]:
    """Return what delta and epsilon mean for tests of membership, and for guesses at a record's content."""
    hit, guess, rare = true_positive_rates(accountant._curve(), CHANCES)
    wrong, half, few = CHANCES
    return (
        f"whoever guesses whether a record was used, and is wrong about {wrong:.0%} of those that were not, finds at most {format_upper(hit, '.3%')} of those that were",
        f"the rate of right accusations less that of wrong ones is at most {format_upper(accountant.advantage(), '.3%')} for every test",
        f"a guess at a record's content that would be right with chance {half:.0%} is right with chance {format_upper(guess, '.3%')} at most, and one with chance {few:g} with {format_upper(rare, '.3g')} at most",
    )


def user_level(accountant: Questions, delta: float) -> tuple[Part, ...]:
    """Return the guarantee of several records of one person, where a chain of adjacent data sets has one accountant."""
    if delta == 0.0 or (accountant.adjacency == "add_or_remove" and num_records(accountant.ledger) is not None):
        return ()
    lines = []
    for size in GROUPS:
        epsilon = group_epsilon(partial(_log_delta, accountant), size, delta)
        shown = "no finite ε is known" if math.isinf(epsilon) else f"ε = {format_upper(epsilon, '.4g')}"
        lines.append(f"{size} records: {shown} at δ = {delta!r} (upper bound, by group privacy)")
    return (Part("A person who has several records", tuple(lines)),)


def _log_delta(accountant: Questions, eps: float) -> float:
    return float(accountant.log_delta(eps))


def again(accountant: Questions, delta: float) -> tuple[str, ...]:
    """Return the code that gives the statement again."""
    steps = "".join(f".compose({mechanism!r}, {count})" for mechanism, count in accountant.ledger.items())
    made = f"Accountant({accountant.adjacency!r})"
    chooses = any(hasattr(selection, type(part).__name__) for step in accountant.ledger for part in step._within())
    names = ["from hockeystick.selection import *"] if chooses else []
    return ("from hockeystick import *", *names, f"print({made}{steps}.statement({delta!r}))")


def entry(
    adjacency: Adjacency, bracket: Bracket, delta: float, unit: str, parts: tuple[Part, ...], **more: Any
) -> dict[str, Any]:
    """Return the statement as an entry of a registry of deployments."""
    said = {part.heading: list(part.lines) for part in parts}
    return {
        "schema": SCHEMA,
        "deployment": {"name": None, "data_curator": None, "intended_use": None, "data_product": None, "date": None},
        "dp_flavor": {
            "name": "approximate differential privacy",
            "unit_of_privacy": unit,
            "adjacency": adjacency,
            "epsilon": bracket.upper,
            "epsilon_lower_end": bracket.lower,
            "delta": delta,
        },
        "model": {"name": "central", "released": said["Released"][0], "access": None},
        "accounting": {"status": bracket.status, "method": bracket.method, "assumptions": said["Check that"]},
        "implementation": {"mechanisms": said["Mechanisms"], "not_covered": said["Not covered"]},
        "user_level": said.get("A person who has several records"),
        "attack": said["What an attacker can do"],
        **more,
        "software": {"name": "hockeystick", "version": __version__, "again": said["Again"]},
    }
