"""Certificates: claims of an accountant that another program proves, checker/hockeystick_check.py, which shares no code with this package.

The program says what a certificate holds, and checker/certificate-1.schema.json does so for machines. What it has no rule for is refused
here. A mechanism is written by its name and its fields, as the program reads them, and a double as the number that it is.
"""

from __future__ import annotations

import dataclasses
import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

from hockeystick._checks import interval, scalar
from hockeystick._checks.shown import shown
from hockeystick._core import __version__
from hockeystick.accounting.composition import Composition, Question
from hockeystick.mechanisms import (
    ApproximateDP,
    Discrete,
    DiscreteGaussian,
    DiscreteLaplace,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    RandomizedResponse,
)
from hockeystick.mechanisms.base import Adjacency, Mechanism

FORMAT = "hockeystick-certificate 1"
NOISE = (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace)
COVERED = (*NOISE, ApproximateDP, Discrete, FixedSizeSampled, PoissonSampled, RandomizedResponse)
ONLY_DOMINATE = (ApproximateDP, FixedSizeSampled)  # by the rules of the program
LONGEST = 100  # mechanisms of a ledger
MOST_OUTCOMES = 1000
MOST_ROUNDS = 100_000  # of a table of shifts
SMALLEST = 2.0**-999  # below it the exponent has more digits than the program reads
# What the program takes, where a mechanism itself allows more.
DOMAINS = {
    "count": interval("[1, 1e9]"),
    "epsilon": interval("[0, 1e5]"),
    "inverse_scale": interval("[1e-5, 300]"),
    "noise_multiplier": interval("[1e-2, 1e6]"),
    "noise_std": interval("[1e-2, 1e4]"),
    "num_buckets": interval("[2, 1e9]"),
    "num_records": interval("[1, 1e15]"),
    "number": interval("[0, 1e300]"),  # of a table of shifts
    "sensitivity": interval("[1, 1e6]"),
}


def certified(composed: Composition, question: Question, *, lower: bool, slack: float = 0.0) -> str:
    """Return the certificate of an end of the bracket that answers a question, with so large a share of delta to spare."""
    spare = 1.0 + scalar("slack", slack, *interval("[0, 1]"))
    ledger = [_entry(step, count, composed.adjacency) for step, count in composed.ledger.items()]
    if not 1 <= len(ledger) <= LONGEST:
        raise ValueError(
            f"a certificate needs 1 to {LONGEST} different mechanisms that are composed, not {len(ledger)}"
        )
    bound = next((step for step in composed.ledger if isinstance(step, ONLY_DOMINATE)), None)
    if lower and bound is not None:
        raise ValueError(f"lower must be False: the rule for {shown(bound)} bounds what it leaks from above alone")
    at = question
    if question.for_epsilon:
        at = question._replace(value=min(question.value * spare, 1.0) if lower else question.value / spare)
    bracket = composed.bracket(at)
    end = bracket.lower if lower else bracket.upper
    if not question.for_epsilon:
        end = end / spare if lower else min(end * spare, 1.0)
    asked, given = ("epsilon", "delta") if question.for_epsilon else ("delta", "epsilon")
    if lower and end == 0.0:
        raise ValueError(
            f"lower must be False: at {given} = {question.value!r} the lower end of {asked} is 0, which claims nothing"
        )
    ends = {asked: end, given: question.value}
    claim = {name: _written(name, ends[name]) for name in ("epsilon", "delta")}
    whole = {
        "format": FORMAT,
        "adjacency": composed.adjacency,
        "claim": {**claim, "delta_is": "at least" if lower else "at most"},
        "ledger": ledger,
        "written_by": {"name": "hockeystick", "version": __version__},
    }
    return json.dumps(whole, indent=2) + "\n"


def with_table(certificate: str, **table: Any) -> str:
    """Return the certificate of Gaussian noise for a table of shifts that has no larger parameter."""
    fields = {key: _written("number", value) for key, value in table.items()}
    ledger = [{"count": "1", "mechanism": {"name": "ShiftedInterpolation", **fields}}]
    return json.dumps(json.loads(certificate) | {"ledger": ledger}, indent=2) + "\n"


def certificate_path(path: object) -> Path:
    """Return the path of a certificate."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"certificate must be a path, not {shown(path)}")
    return Path(path)


def write(path: Path, certificate: str) -> None:
    """Write the file, the same bytes on every platform."""
    path.write_text(certificate, encoding="utf-8", newline="\n")


def _entry(mechanism: Mechanism, count: int, adjacency: Adjacency) -> dict[str, Any]:
    if reason := _uncovered(mechanism, adjacency):
        raise ValueError(f"{shown(mechanism)} cannot be certified under adjacency={adjacency!r}: {reason}")
    return {"count": _written("count", count), "mechanism": _written("mechanism", mechanism)}


def _uncovered(mechanism: Mechanism, adjacency: Adjacency) -> str:
    """Return why no rule of the program covers a mechanism; nothing if one does."""
    replaced = adjacency == "replace"
    if type(mechanism) not in COVERED:
        return f"the checker has no rule for {type(mechanism).__name__}"
    if isinstance(mechanism, FixedSizeSampled):
        if type(mechanism.mechanism) is not Gaussian or mechanism.replacement or replaced:
            return "the checker's rule is for Gaussian noise without replacement, a record added or removed"
    elif isinstance(mechanism, PoissonSampled):
        noise, sampled = type(mechanism.mechanism), 0.0 < mechanism.sampling_rate < 1.0
        if noise not in NOISE or (sampled and (noise is Laplace or (replaced and noise is not Gaussian))):
            return f"the checker has no rule for samples of {noise.__name__}"
    if isinstance(mechanism, Discrete):
        for name, law in (("p", mechanism.p), ("q", mechanism.q)):
            if len(law) > MOST_OUTCOMES or sum(map(Fraction, law)) != 1:
                return f"{name} must be at most {MOST_OUTCOMES} doubles that sum to exactly 1, as 0.75 and 0.25 do, and 0.9 and 0.1 do not"
    return ""


def _written(name: str, value: Any) -> Any:
    """Return a field as the program reads it."""
    if isinstance(value, Mechanism):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}  # type: ignore[arg-type]
        return {"name": type(value).__name__} | {key: _written(key, one) for key, one in fields.items()}
    if isinstance(value, (tuple, list)):
        return [_written(name, one) for one in value]
    if isinstance(value, bool):
        return value
    if name in DOMAINS:
        scalar(f"{name} of a certificate", value, *DOMAINS[name])
    if 0.0 < value < SMALLEST:
        raise ValueError(f"{name} of a certificate must be 0 or at least 2^-999, not {value!r}")
    decimal = str(value)
    return decimal if Fraction(decimal) == value else float(value).hex()
