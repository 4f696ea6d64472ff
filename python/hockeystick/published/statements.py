"""The table of the papers, statement by statement: what each says, what it is worth, and its functions at a reader's numbers.

`statements.csv` is that table, in the order of each paper. Functions, figures and tests of a row are separated by spaces; a counterexample is
an expression of Python, with `hs` for hockeystick, that is true. The pages of the papers are made from it, and tests/project/test_papers.py
holds each row against the code.
"""

from __future__ import annotations

import csv
import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hockeystick._checks.shown import shown
from hockeystick.published.warning import UnsoundBoundWarning

PAPERS = {  # by the names that figures have, too
    "000": ("trusted_aggregator", "Asoodeh, Chen, Calmon and Özgür 2021"),
    "001": ("distortion", "Zhang, Chen and Yang 2023"),
    "002": ("projected_sgd", "Asoodeh, Diaz and Calmon 2020"),
    "003": ("isrl", "Lowy and Razaviyayn 2023"),
    "004": ("fdp_fedavg", "Sun, Shen and Tao 2024"),
}
NOTHING_GIVEN = ("num_threads", "on_error")  # arguments that are no settings
WORD = re.compile(r"[A-Za-z_]+(?:\.\d+)+|\d+(?:\.\d+)*|[A-Za-z]+|\(\d+\)")


@dataclass(frozen=True)
class Row:
    """A statement of a paper as the table has it."""

    paper: str
    name: str  # as printed
    says: str
    verdict: str
    reason: str  # why there is no function, if there is none
    functions: list[str]  # public names below hockeystick
    figures: list[str]  # names of `hockeystick figures`
    tests: list[str]
    counterexample: str


@dataclass(frozen=True)
class Statement:
    """What a paper states, and what it is worth.

    Attributes
    ----------
    paper : str
        "000" to "004".
    rows : tuple of Row
        The rows of the table: one, or several where the paper has several claims under one name.
    values : Mapping of str to object
        What the functions return at the settings given, by their names. Those of `hockeystick.published` are as printed, and no guarantee.
    """

    paper: str
    rows: tuple[Row, ...]
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The verdicts of all rows."""
        return "; ".join(dict.fromkeys(row.verdict for row in self.rows))

    def __str__(self) -> str:
        """Return the rows, each with what its functions take or return, its counterexample and its tests."""
        blocks = [f"{PAPERS[self.paper][1]} ({self.paper})"]
        for row in self.rows:
            lines = [f"{row.name}: {row.says}", f"  verdict: {row.verdict}"]
            lines += [
                f"  {'as printed' if _is_printed(name) else 'here'}: {self._called(name)}" for name in row.functions
            ]
            lines += [f"  no function: {row.reason}"] * (not row.functions and bool(row.reason))
            lines += [f"  figure: hockeystick figures {name}" for name in row.figures]
            lines += [f"  counterexample: {row.counterexample}"] * bool(row.counterexample)
            lines += [f"  test: {name}" for name in row.tests]
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks)

    def _called(self, name: str) -> str:
        if name in self.values:
            return f"{name} = {self.values[name]}"
        needed = _parameters(name)
        return f"{name}({', '.join(needed)})" if needed else name


@lru_cache(maxsize=1)
def table() -> tuple[Row, ...]:
    """Return all rows, in the order of the papers."""
    with Path(__file__).with_name("statements.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Row(paper, name, says, verdict, reason, functions.split(), figures.split(), tests.split(), counterexample)
            for paper, name, says, verdict, reason, functions, figures, tests, counterexample in [*csv.reader(file)][1:]
        )


def statement(paper: str, name: str, /, **settings: Any) -> Statement:
    """Return what a paper states, whether it is true, and what its functions say at some settings.

    Parameters
    ----------
    paper : str
        "000" to "004", or the name of its page: "trusted_aggregator", "distortion", "projected_sgd", "isrl", "fdp_fedavg".
    name : str
        Of a theorem, a lemma, an algorithm, as the paper prints it: "Theorem F.1" has all of its parts.
    settings : float, int or str
        By keyword: arguments of the functions that the rows name. Every function that has all that it needs is called.

    Returns
    -------
    Statement
        Prints as text: verdicts, values, counterexamples and the tests that hold them.

    Raises
    ------
    ValueError
        If there is no such paper or statement, a setting is none of its functions', or none of them has all that it needs.
    TypeError
        If a name is no string.

    Examples
    --------
    >>> from hockeystick import published
    >>> round_count = published.statement("004", "Table 1, constant")
    >>> print(round_count.verdict)
    false: linear losses exceed it from two rounds on
    """
    number = _paper(paper)
    if not isinstance(name, str):
        msg = f"name must be a string, not {shown(name)}"
        raise TypeError(msg)
    ours = [row for row in table() if row.paper == number]
    rows = [row for row in ours if row.name == name] or [row for row in ours if _names(row.name, name)]
    if not rows:
        listed = ", ".join(dict.fromkeys(row.name for row in ours))
        msg = f"name must be a statement of paper {number}, not {shown(name)}; it has {listed}"
        raise ValueError(msg)
    return Statement(number, tuple(rows), MappingProxyType(_values(rows, settings) if settings else {}))


def _paper(paper: object) -> str:
    if not isinstance(paper, str):
        msg = f"paper must be a string, not {shown(paper)}"
        raise TypeError(msg)
    for number, (page, _) in PAPERS.items():
        if paper in (number, page):
            return number
    msg = f"paper must be one of {', '.join(f'{number} ({page})' for number, (page, _) in PAPERS.items())}, not {shown(paper)}"
    raise ValueError(msg)


def _words(text: str) -> list[str]:
    """Return words and numbers, each word in the singular."""
    return [
        re.sub(r"ies$", "y", word.lower()).rstrip("s") if word.isalpha() and len(word) > 1 else word
        for word in WORD.findall(text)
    ]


def _names(row: str, asked: str) -> bool:
    """Tell whether a row has all words that are asked for, a number also where a part of it stands: F.1 in F.1.2."""
    has, wanted = _words(row), _words(asked)
    return bool(wanted) and all(any(word == one or one.startswith(f"{word}.") for one in has) for word in wanted)


def _is_printed(name: str) -> bool:
    return name.startswith("published.")


def _function(name: str) -> Callable[..., Any]:
    found: Any = import_module("hockeystick")
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def _parameters(name: str) -> dict[str, bool]:
    """Return the arguments of a function, and whether each is required; none of what is no function."""
    function = _function(name)
    if not inspect.isfunction(function):
        return {}
    return {
        key: one.default is one.empty
        for key, one in inspect.signature(function).parameters.items()
        if key not in NOTHING_GIVEN and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    }


def _values(rows: list[Row], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the functions say that have all they need."""
    takes = {name: _parameters(name) for row in rows for name in row.functions}
    known = {key for parameters in takes.values() for key in parameters}
    for key in settings:
        if key not in known:
            msg = f"{key} is no argument of {', '.join(takes) or 'a statement without a function'}, which take {', '.join(sorted(known))}"
            raise ValueError(msg)
    values = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundBoundWarning)  # the verdict stands beside the number
        for name, parameters in takes.items():
            if parameters and all(key in settings or not required for key, required in parameters.items()):
                values[name] = _function(name)(**{key: value for key, value in settings.items() if key in parameters})
    if not values:
        lacks = {
            name: [key for key, required in parameters.items() if required and key not in settings]
            for name, parameters in takes.items()
        }
        msg = "settings must be all that a function needs; " + "; ".join(
            f"{name} lacks {', '.join(keys)}" for name, keys in lacks.items()
        )
        raise ValueError(msg)
    return values
