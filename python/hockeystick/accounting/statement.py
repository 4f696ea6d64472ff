"""What can be said of an accountant's ledger in a privacy statement."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hockeystick import selection
from hockeystick._checks import DELTA, choice, scalar
from hockeystick._checks.setting_warnings import is_large
from hockeystick._checks.shown import shown
from hockeystick._core import __version__
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick._statements import FORMATS, HEADINGS, SENTENCES, Format, Part, Statement, say, say_all, written
from hockeystick.accounting.composition import Composition, Question
from hockeystick.accounting.group import chained_epsilon, exact_epsilon, has_chains
from hockeystick.accounting.privacy_curve import Curve, true_positive_rates
from hockeystick.mechanisms.premises import ONE_RECORD, Premises

if TYPE_CHECKING:
    from hockeystick.accounting.brackets import Bracket

GROUPS = (2, 10)  # records of one person
CHANCES = np.array([0.01, 0.5, 1e-6])  # of being wrong, or right, without the output
WEAK = 20.0  # epsilons above it promise next to nothing
SCHEMA = "groups as in the registry of Nanayakkara, Ghazi and Vadhan 2025 (arXiv:2509.13509); null: to be filled in"


class Guaranteed(NamedTuple):
    """What a statement says of a guarantee."""

    bracket: Bracket
    premises: Premises
    mechanisms: tuple[str, ...]
    curve: Curve
    user_level: tuple[Part, ...] = ()
    again: tuple[str, ...] = ()
    records: int | None = None  # if it is known how many there are
    subject: str = SENTENCES["subject"]
    condition: str = ""  # of the sentence to quote
    of_a_kind: Bracket | None = None  # the ends of all trainings of a kind, to be shown for those of this one
    otherwise: tuple[str, ...] = ()  # epsilon under other conditions
    certificate: str = ""  # the file that has one
    more: dict[str, Any] = {}  # noqa: RUF012 (nothing changes it) - of the entry of a registry


def guaranteed(of_all: Composition, delta: float, records: int | None = None) -> Guaranteed:
    """Return what can be said of what is composed; the number of records is that of the mechanisms if not given."""
    bracket = of_all.bracket(Question(True, scalar("delta", delta, *DELTA)))
    if bracket.status != "certified":
        raise ValueError(
            f"a statement needs certified numbers, and epsilon at delta = {delta} is only an estimate: a mechanism of the ledger is estimated"
        )
    return Guaranteed(
        bracket,
        of_all.premises(),
        tuple(f"{count} times {mechanism._shown()}" for mechanism, count in of_all.ledger.items()),
        of_all.curve(),
        user_level(of_all, delta),
        again(of_all, delta),
        records or of_all.num_records,
    )


def stated(known: Guaranteed, delta: float, form: Format, released: str | None = None, unit: str | None = None) -> str:
    """Return the statement, in the caller's words for what is released and the unit, or in those of the premises."""
    delta = scalar("delta", delta, *DELTA)
    choice("format", form, FORMATS)
    for name, text in (("released", released), ("unit", unit)):
        if text is not None and (not isinstance(text, str) or not text.strip()):
            msg = f"{name} must be a text that is not empty, not {shown(text)}"
            raise TypeError(msg) if not isinstance(text, str) else ValueError(msg)
    premises = known.premises if unit is None else replace(known.premises, unit=unit)
    unit, change = premises.unit or ONE_RECORD, premises.change()
    released = released or "; ".join(premises.released) or SENTENCES["released_accountant"]
    large = known.records is not None and is_large(delta, known.records)
    cautions = (say("delta_too_large", delta=repr(delta), records=known.records),) if large else ()
    code = (Part(HEADINGS["again"], known.again, code=True),) if known.again else ()
    proof = _certificate(known.certificate)
    proven = (Part(HEADINGS["certificate"], (proof["check"],), code=True),) if known.certificate else ()
    otherwise = (Part(HEADINGS["otherwise"], known.otherwise),) if known.otherwise else ()
    parts = (
        Part(HEADINGS["epsilon"], (_interval(known, delta),)),
        *otherwise,
        Part(HEADINGS["released"], (released,)),
        Part(HEADINGS["unit"], (say("unit", unit=unit, change=change),)),
        Part(HEADINGS["mechanisms"], known.mechanisms or ("none",)),
        Part(HEADINGS["attack"], _attack(known.curve)),
        *known.user_level,
        Part(HEADINGS["check"], premises.to_check()),
        Part(HEADINGS["not_covered"], (*say_all("not_covered"), *cautions)),
        Part(HEADINGS["made_by"], (say("made_by", version=__version__, method=known.bracket.method),)),
        *proven,
        *code,
    )
    sentence = _headline(known, delta, change, cautions)
    return written(Statement(sentence, parts, _entry(known, delta, unit, parts)), form)


def _headline(known: Guaranteed, delta: float, change: str, cautions: tuple[str, ...]) -> str:
    """Return the sentence to quote, after the cautions; its condition follows the change before the stop."""
    before = "".join(say("headline_delta", caution=caution) for caution in cautions)
    epsilon = known.bracket.upper
    where = {"subject": known.subject, "delta": repr(delta), "change": change, "condition": known.condition}
    if math.isinf(epsilon):
        return before + say("headline_infinite", **where)
    weak = "" if epsilon <= WEAK else say("headline_weak", weak=f"{WEAK:g}")
    return before + say("headline", epsilon=format_upper(epsilon, ".4g"), **where) + weak


def _interval(known: Guaranteed, delta: float) -> str:
    """Return both ends in words."""
    bracket = known.of_a_kind or known.bracket
    if known.of_a_kind is None and bracket.lower == 0.0 < bracket.upper:
        return say("interval_only_above", delta=repr(delta), high=format_upper(bracket.upper, ".6g"))
    low, high = format_lower(bracket.lower, ".6g"), format_upper(bracket.upper, ".6g")
    words = "interval" if known.of_a_kind is None else "interval_of_a_kind"
    return say(words, delta=repr(delta), low=low, high=high)


def _attack(curve: Curve) -> tuple[str, ...]:
    """Return what delta and epsilon mean for tests of membership, and for guesses at a record's content."""
    hit, guess, rare = true_positive_rates(curve, CHANCES)
    wrong, half, few = CHANCES
    return say_all(
        "attack",
        wrong=f"{wrong:.0%}",
        found=format_upper(hit, ".3%"),
        advantage=format_upper(curve.delta(0.0), ".3%"),
        half=f"{half:.0%}",
        guess=format_upper(guess, ".3%"),
        few=f"{few:g}",
        rare=format_upper(rare, ".3g"),
    )


def _certificate(file: str) -> dict[str, str]:
    """Return the file of a certificate and the line that checks it."""
    return {"file": file, "check": f"hockeystick-check {shlex.quote(file)}"}


def user_level(of_all: Composition, delta: float) -> tuple[Part, ...]:
    """Return the guarantee of several records of one person, where a chain of adjacent data sets has one accountant."""
    if delta == 0.0 or of_all.premises().unit or not has_chains(of_all):
        return ()
    lines = []
    for size in GROUPS:
        exact, chained = exact_epsilon(of_all, size, delta), chained_epsilon(of_all, size, delta)
        epsilon, how = (exact, "user_level_exact") if exact <= chained else (chained, "user_level_chained")
        known = "user_level_infinite" if math.isinf(epsilon) else "user_level_finite"
        shown = say(known, epsilon=format_upper(epsilon, ".4g"))
        lines.append(say("user_level", size=size, shown=shown, delta=repr(delta), how=say(how)))
    return (Part(HEADINGS["user_level"], tuple(lines)),)


def again(of_all: Composition, delta: float) -> tuple[str, ...]:
    """Return the code that gives the statement again."""
    steps = "".join(f".compose({mechanism!r}, {count})" for mechanism, count in of_all.ledger.items())
    made = f"Accountant({of_all.adjacency!r})"
    chooses = any(hasattr(selection, type(part).__name__) for step in of_all.ledger for part in step._within())
    rooms = ["mechanisms", *["selection"] * chooses]
    names = [f"from hockeystick.{room} import *" for room in rooms]
    return ("from hockeystick import Accountant", *names, f"print({made}{steps}.statement({delta!r}))")


def _entry(known: Guaranteed, delta: float, unit: str, parts: tuple[Part, ...]) -> dict[str, Any]:
    """Return the statement as an entry of a registry of deployments."""
    bracket = known.bracket
    said = {part.heading: list(part.lines) for part in parts}
    return {
        "schema": SCHEMA,
        "deployment": {"name": None, "data_curator": None, "intended_use": None, "data_product": None, "date": None},
        "dp_flavor": {
            "name": "approximate differential privacy",
            "unit_of_privacy": unit,
            "adjacency": known.premises.adjacency,
            "epsilon": bracket.upper,
            "epsilon_lower_end": bracket.lower,
            "delta": delta,
        },
        "model": {"name": "central", "released": said[HEADINGS["released"]][0], "access": None},
        "accounting": {"status": bracket.status, "method": bracket.method, "assumptions": said[HEADINGS["check"]]}
        | ({"certificate": _certificate(known.certificate)} if known.certificate else {}),
        "implementation": {"mechanisms": said[HEADINGS["mechanisms"]], "not_covered": said[HEADINGS["not_covered"]]},
        "user_level": said.get(HEADINGS["user_level"]),
        "attack": said[HEADINGS["attack"]],
        **known.more,
        "software": {"name": "hockeystick", "version": __version__, "again": said.get(HEADINGS["again"])},
    }
