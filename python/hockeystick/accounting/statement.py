"""What can be said of an accountant's ledger in a privacy statement."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick._core import __version__
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick._statements import HEADINGS, SENTENCES, Part, Statement, say, say_all
from hockeystick.accounting.group import chained_epsilon, exact_epsilon, has_chains
from hockeystick.accounting.questions import Questions
from hockeystick.accounting.trade_off import true_positive_rates

if TYPE_CHECKING:
    from hockeystick.accounting.bracket import Bracket
    from hockeystick.mechanisms.base import Adjacency

ADJACENCY: dict[Adjacency, str] = SENTENCES["adjacency"]
GROUPS = (2, 10)  # records of one person
CHANCES = np.array([0.01, 0.5, 1e-6])  # of being wrong, or right, without the output
WEAK = 20.0  # epsilons above it promise next to nothing
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
        Part(HEADINGS["epsilon"], (interval(bracket, delta),)),
        Part(HEADINGS["released"], (released,)),
        Part(HEADINGS["unit"], (say("unit", unit=unit, change=change),)),
        Part(HEADINGS["mechanisms"], tuple(steps) or ("none",)),
        Part(HEADINGS["attack"], attack(accountant)),
        *user_level(accountant, delta),
        Part(HEADINGS["check"], accountant.explain(delta=delta).assumptions),
        Part(HEADINGS["not_covered"], say_all("not_covered")),
        Part(HEADINGS["made_by"], (say("made_by", version=__version__, method=bracket.method),)),
        Part(HEADINGS["again"], again(accountant, delta), code=True),
    )
    sentence = headline(say("subject"), bracket.upper, delta, change)
    return Statement(sentence, parts, entry(accountant.adjacency, bracket, delta, unit, parts))


def headline(subject: str, epsilon: float, delta: float, change: str, condition: str = "") -> str:
    """Return the sentence to quote; a condition follows the change before the stop."""
    where = {"subject": subject, "delta": repr(delta), "change": change, "condition": condition}
    if math.isinf(epsilon):
        return say("headline_infinite", **where)
    weak = "" if epsilon <= WEAK else say("headline_weak", weak=f"{WEAK:g}")
    return say("headline", epsilon=format_upper(epsilon, ".4g"), **where) + weak


def interval(bracket: Bracket, delta: float, *, attained: bool = True) -> str:
    """Return both ends in words; `attained` if they are of one algorithm, not of all of a kind."""
    low, high = format_lower(bracket.lower, ".6g"), format_upper(bracket.upper, ".6g")
    return say("interval" if attained else "interval_of_a_kind", delta=repr(delta), low=low, high=high)


def attack(accountant: Questions) -> tuple[str, ...]:
    """Return what delta and epsilon mean for tests of membership, and for guesses at a record's content."""
    hit, guess, rare = true_positive_rates(accountant._curve(), CHANCES)
    wrong, half, few = CHANCES
    return say_all(
        "attack",
        wrong=f"{wrong:.0%}",
        found=format_upper(hit, ".3%"),
        advantage=format_upper(accountant.advantage(), ".3%"),
        half=f"{half:.0%}",
        guess=format_upper(guess, ".3%"),
        few=f"{few:g}",
        rare=format_upper(rare, ".3g"),
    )


def user_level(accountant: Questions, delta: float) -> tuple[Part, ...]:
    """Return the guarantee of several records of one person, where a chain of adjacent data sets has one accountant."""
    if delta == 0.0 or not has_chains(accountant):
        return ()
    lines = []
    for size in GROUPS:
        exact, chained = exact_epsilon(accountant, size, delta), chained_epsilon(accountant, size, delta)
        epsilon, how = (exact, "user_level_exact") if exact <= chained else (chained, "user_level_chained")
        known = "user_level_infinite" if math.isinf(epsilon) else "user_level_finite"
        shown = say(known, epsilon=format_upper(epsilon, ".4g"))
        lines.append(say("user_level", size=size, shown=shown, delta=repr(delta), how=say(how)))
    return (Part(HEADINGS["user_level"], tuple(lines)),)


def again(accountant: Questions, delta: float) -> tuple[str, ...]:
    """Return the code that gives the statement again."""
    steps = "".join(f".compose({mechanism!r}, {count})" for mechanism, count in accountant.ledger.items())
    made = f"Accountant({accountant.adjacency!r})"
    return ("from hockeystick import *", f"print({made}{steps}.statement({delta!r}))")


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
        "model": {"name": "central", "released": said[HEADINGS["released"]][0], "access": None},
        "accounting": {"status": bracket.status, "method": bracket.method, "assumptions": said[HEADINGS["check"]]},
        "implementation": {"mechanisms": said[HEADINGS["mechanisms"]], "not_covered": said[HEADINGS["not_covered"]]},
        "user_level": said.get(HEADINGS["user_level"]),
        "attack": said[HEADINGS["attack"]],
        **more,
        "software": {"name": "hockeystick", "version": __version__, "again": said[HEADINGS["again"]]},
    }
