"""What five papers state, statement by statement: the tables of ``papers``, and their numbers at a reader's settings.

A row has these fields, of which those with a star may be left out:

- `name`, as printed; `says`, what it is about; `verdict`, what it is worth;
- `functions`, public names below `hockeystick`, or the `reason` why there are none; `tests`, the files that hold them; `figures`*,
  names of `hockeystick figures`;
- `instead`*, for what is false: a sentence that says what holds; a row without one is false by the counterexample of another;
- `tried`*, for what is right: the largest relative deviation of a function from its formula, over how many settings, and at which; where the
  statement has no formula, `reason` says so;
- `settings`*, an example of the functions' arguments; `python`*, lines that run with these names and with the functions' values.

What the lines assert is the counterexample to a statement that is false. The table `worth` at the end of a file says what the values of
functions are worth, a key of `WORTH`; those of `hockeystick.published` are "printed", of others that are not there "formula".
"""

from __future__ import annotations

import functools
import inspect
import math
import pkgutil
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hockeystick._checks import choice, hints
from hockeystick._checks.doors import level
from hockeystick._checks.shown import shown
from hockeystick._files import read_toml
from hockeystick._numeric import format_lower, format_upper
from hockeystick.published.warning import UnsoundBoundWarning

__all__ = ["Statement", "statement"]

PAPERS = {  # number: file, authors and year
    "000": ("trusted_aggregator", "Asoodeh, Chen, Calmon, Özgür 2021"),
    "001": ("distortion", "Zhang, Chen, Yang 2023"),
    "002": ("projected_sgd", "Asoodeh, Diaz, Calmon 2020"),
    "003": ("isrl", "Lowy, Razaviyayn 2023"),
    "004": ("fdp_fedavg", "Sun, Shen, Tao 2024"),
}
UNSOUND = "published but unsound"
WORTH = {
    "printed": "published",
    "certified": "certified: never too small, up to the rounding that its docstring states",
    "bound": "an upper bound in exact arithmetic, with all its constants",
    "least": "a lower bound in exact arithmetic, with all its constants",
    "formula": "the formula's value, up to rounding; its docstring says what it is",
    "order": "an estimate: an order of magnitude, whose constant is not known",
    "exact": "exact, of the instance below",
    "attained": "attained by the instance below",
}
SHOWN = dict.fromkeys(("printed", "certified", "bound"), format_upper)  # so that nothing seems smaller than it is
SHOWN |= dict.fromkeys(("least", "exact", "attained"), format_lower)
IMPORTS = "import math\n\nimport numpy as np\n\nimport hockeystick as hs\n"


@dataclass(frozen=True)
class Row:
    """A row of a paper's table; the module says what the fields are."""

    name: str
    says: str
    functions: list[str]
    tests: list[str]
    verdict: str
    reason: str
    instead: str = ""
    tried: dict[str, Any] = field(default_factory=dict)
    figures: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    python: str = ""

    @property
    def false(self) -> bool:
        """Whether something that is printed is false."""
        return re.search(r"\bfalse\b", self.verdict) is not None

    def parameters(self) -> dict[str, dict[str, inspect.Parameter]]:
        """Return the arguments of each function of the row that has named ones and computes numbers."""
        found = {name: pkgutil.resolve_name(f"hockeystick:{name}") for name in self.functions}
        return {
            name: dict(inspect.signature(call).parameters)
            for name, call in found.items()
            if inspect.isfunction(call) and not name.startswith("simulate.")
        }

    def takes(self) -> list[str]:
        """Return the names of the settings that the row can be asked with."""
        return list(dict.fromkeys([*self.settings, *(name for call in self.parameters().values() for name in call)]))


@functools.cache
def rows(paper: str) -> tuple[Row, ...]:
    """Return the rows of a paper, in its order."""
    return tuple(Row(**row) for row in _table(paper)["statement"])


@functools.cache
def _table(paper: str) -> dict[str, Any]:
    return read_toml(Path(__file__).parent / "papers" / f"{PAPERS[paper][0]}.toml")


@functools.cache
def _worth() -> dict[str, str]:
    """Return what the values of functions are worth, all papers together."""
    tables = [_table(paper).get("worth", {}) for paper in PAPERS]
    return {name: worth for table in tables for worth, names in table.items() for name in names}


class Number(NamedTuple):
    """A number of a statement.

    Attributes
    ----------
    label : str
        A key of ``WORTH``, with a count behind it where there are several.
    value : object
        What the function returned, or the lines of the row computed.
    worth : str
        The status: "certified ...", "published but unsound", "an estimate ..." and so on.
    source : str
        The function; empty for the lines of the row.
    """

    label: str
    value: Any
    worth: str
    source: str

    def __str__(self) -> str:
        """Return label, value and status; bounds are rounded outward, and what refutes one inward."""
        return f"{self.label:10} {self.text()}: {self.worth}" + (f" ({self.source})" if self.source else "")

    def text(self) -> str:
        """Return the value alone."""
        return _shown(self.value, self.label.rstrip("0123456789_"))


def _shown(value: Any, kind: str) -> str:
    """Return a value as text, each number in it rounded as its kind is."""
    if hasattr(value, "_asdict"):
        fields = (
            f"{name}={_shown(one, 'least' if name == 'lower' else kind)}" for name, one in value._asdict().items()
        )
        return f"{type(value).__name__}({', '.join(fields)})"
    if isinstance(value, (list, tuple)) or np.ndim(value):
        return f"[{', '.join(_shown(one, kind) for one in value)}]"
    if isinstance(value, (bool, np.bool_, str)):
        return str(value)
    return SHOWN.get(kind, format)(float(value), ".6g")


@dataclass(frozen=True)
class Statement:
    """A statement of a paper, at a reader's settings. Printed, it is what ``hockeystick papers`` writes.

    Attributes
    ----------
    paper, name, says, verdict, reason : str
        As in the paper's table.
    tried : dict
        How far the function was found from the formula: "function", "settings", "deviation" (relative), "at"; empty where there is none.
    settings : dict
        The row's example, in which those that were given take the place of its own.
    numbers : tuple of Number
        The functions' values where the settings suffice, each with its status.
    counterexample : str
        Python that runs as it is; empty if the row has none.
    refuted : bool or None
        Whether the counterexample refutes the printed statement at these settings; None if there is none.
    tests, functions, others : list of str
        Files of tests, public functions, and the names of the other rows that were found.
    """

    paper: str
    name: str
    says: str
    verdict: str
    reason: str
    tried: dict[str, Any]
    settings: dict[str, Any]
    numbers: tuple[Number, ...]
    counterexample: str
    refuted: bool | None
    tests: list[str]
    functions: list[str]
    others: list[str]

    @property
    def printed(self) -> Any:
        """The value of the printed formula, None without one: never a guarantee by itself."""
        return self._first("printed")

    @property
    def certified(self) -> Any:
        """The certified value beside it, None without one."""
        return self._first("certified")

    @property
    def attained(self) -> Any:
        """What the counterexample attains, None without one."""
        return self._first("attained", "exact")

    def _first(self, *labels: str) -> Any:
        return next((number.value for number in self.numbers if number.label in labels), None)

    def __str__(self) -> str:
        """Return what ``hockeystick papers`` writes."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.paper} ({PAPERS[self.paper][1]}), {self.name}: {self.says}"
        yield f"verdict: {self.verdict}" + (f" ({self.reason})" if self.reason else "")
        if self.tried:
            farthest = ", ".join(f"{name}={value!r}" for name, value in self.tried["at"].items())
            yield "tried: {function} is within {deviation} of the formula, relative, in {settings} settings; farthest at".format(
                **self.tried
            )
            yield f"    {farthest}"
        if self.settings:
            yield "settings: " + ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        yield from (f"  {number}" for number in self.numbers)
        if self.refuted is not None:
            yield f"counterexample, which {'refutes' if self.refuted else 'does not refute'} it at these settings:"
            yield from (f"    {line}".rstrip() for line in self.counterexample.splitlines())
        for what in ("functions", "tests"):
            if getattr(self, what):
                yield f"{what}: {', '.join(getattr(self, what))}"
        if self.others:
            yield f"see also: {'; '.join(self.others)}"


def statement(paper: str, name: str, **settings: Any) -> Statement:
    """Return what a paper states, its verdict, and its numbers at settings of yours.

    Parameters
    ----------
    paper : str
        "000" to "004", or the name of its page: "trusted_aggregator", "distortion", "projected_sgd", "isrl", "fdp_fedavg".
    name : str
        The statement as printed, such as "Theorem F.1" or "(18)". Where several rows have it, the first that takes the settings is
        returned, and names the others.
    settings : number, str or list
        Arguments of the row's functions, in place of its example's; one number where the example has one.

    Returns
    -------
    Statement
        With verdict, printed and certified value, counterexample, and the test's name. Each number has its status: what is printed
        is no guarantee unless that says so.

    Raises
    ------
    ValueError
        If there is no such paper or statement, or a setting is outside its domain.
    TypeError
        If the statement has no such setting, or the settings do not suffice for any of its functions.

    Notes
    -----
    The warnings of formulas that are false are not given: the status says it.

    Examples
    --------
    >>> from hockeystick import published
    >>> found = published.statement("004", "Table 1, constant", rounds=20)
    >>> print(found.verdict)
    false: linear losses exceed it from two rounds on
    >>> for number in found.numbers:
    ...     print(number)
    printed    1.73205: published but unsound (published.fedavg_gdp)
    certified  4.47214: certified: never too small, up to the rounding that its docstring states (federated.fedavg_gdp)
    attained   4.47213: attained by the instance below
    >>> found.refuted
    True
    """
    number = number_of(paper)
    found = search(number, name)
    row = next((row for row in found if settings.keys() <= set(row.takes())), found[0])
    others = [other.name for other in found if other is not row]
    given = {**row.settings, **{name: np.asarray(value).tolist() for name, value in settings.items()}}
    numbers, refuted = _evaluated(row, settings)
    return Statement(
        number, row.name, row.says, row.verdict, row.reason, row.tried, given, numbers,
        _program(row, given) if refuted is not None else "", refuted, row.tests, row.functions, others,
    )  # fmt: skip


def number_of(paper: str) -> str:
    """Return the number of a paper, of which the name of its page may be given."""
    numbers = {name: number for number, (page, _) in PAPERS.items() for name in (number, page)}
    return numbers[choice("paper", paper, tuple(numbers))]


def search(paper: str, name: str) -> list[Row]:
    """Return the rows of a statement, best first: of this name, with it in their name, with it in what they say."""
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, not {shown(name)}")
    asked = _words(name)
    tiers: list[Callable[[Row], bool]] = [
        lambda row: row.name.casefold() == name.strip().casefold(),
        lambda row: asked <= _words(row.name),
        lambda row: asked <= _words(f"{row.name} {row.says}"),
    ]
    found = [row for tier in tiers for row in rows(paper) if asked and tier(row)]
    if not found:
        near = hints.meant(name, [row.name for row in rows(paper)])
        hint = f"; did you mean {near!r}?" if near else f"; `hockeystick papers {paper}` lists them"
        raise ValueError(f"name must be a statement of {paper}, not {shown(name)}{hint}")
    return list({id(row): row for row in found}.values())


KINDS = {
    f"{kind}s": kind
    for kind in ("theorem", "lemma", "definition", "algorithm", "assumption", "remark", "figure", "example")
}
KINDS |= {"thm.": "theorem", "thm": "theorem", "corollaries": "corollary"}
KINDS |= dict.fromkeys(("equation", "equations", "eq.", "eq"), "")  # equations stand by their number alone


def _words(text: str) -> set[str]:
    """Return the words of a name, "F.1.1" being also "F.1" and "1-3" also "2"."""
    words = {KINDS.get(word, word) for word in re.findall(r"[^\s,;:/()]+", text.casefold())} - {""}
    for word in [*words]:
        ends = re.fullmatch(r"(\d+)-(\d+)", word)
        if ends:
            words |= {str(n) for n in range(int(ends[1]), int(ends[2]) + 1)}
        if re.fullmatch(r"[a-z]?\.?\d+(\.\d+)+", word):
            words.add(word.rpartition(".")[0])
    return words


def _evaluated(row: Row, settings: Mapping[str, Any]) -> tuple[tuple[Number, ...], bool | None]:
    """Return the numbers of a row, and whether its counterexample refutes it, None if it has none."""
    known, given = row.takes(), {**row.settings, **settings}
    wrong = next((word for word in settings if word not in known), None)
    if wrong is not None:
        near = hints.meant(wrong, known)
        hint = f"; did you mean {near!r}?" if near else f"; it has {', '.join(known)}" if known else "; it has none"
        raise TypeError(f"{row.name} has no setting {wrong!r}{hint}")
    many = next((word for word in settings if np.ndim(settings[word]) > np.ndim(row.settings.get(word, [[[]]]))), None)
    if many is not None:
        raise ValueError(f"{many} must be like the example's {row.settings[many]!r}, not {shown(settings[many])}")
    calls = _calls(row, given)
    if settings and not (calls or row.python):
        name, lacking = min(_lacking(row, given).items(), key=lambda found: len(found[1]))
        raise TypeError(f"{row.name} also needs {', '.join(lacking)} ({name})")
    space: dict[str, Any] = {"math": math, "np": np, "hs": pkgutil.resolve_name("hockeystick"), **given}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnsoundBoundWarning)
        for label, call in calls.items():
            space[label] = eval(call, space)
        said = [warning for warning in caught if issubclass(warning.category, UnsoundBoundWarning)]
        unsound = row.verdict.startswith("false") or bool(said)
        of_calls = {label: space[label] for label in calls}
        refuted = _holds(row, space)
    for warning in caught:
        if not issubclass(warning.category, UnsoundBoundWarning):
            warnings.warn(warning.message, stacklevel=level(4))
    numbers = []
    for label, value in space.items():
        kind = label.rstrip("0123456789_")
        if kind in WORTH:
            source = calls.get(label, "") if value is of_calls.get(label) else ""
            doubted = kind == "printed" and (unsound if source else row.false)
            numbers.append(Number(label, value, UNSOUND if doubted else WORTH[kind], source[3:].partition("(")[0]))
    return tuple(numbers), refuted


def _holds(row: Row, space: dict[str, Any]) -> bool | None:
    """Run the lines of a row, and say whether what they assert holds, None if they assert nothing."""
    try:
        exec(compile(row.python, f"<{row.name}>", "exec", optimize=0), space)  # noqa: S102 - of our own table
    except AssertionError:
        return False
    return True if "assert " in row.python else None


def _lacking(row: Row, given: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the arguments that each function of a row requires and that are not given."""
    required = {
        name: [word for word, one in call.items() if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
        for name, call in row.parameters().items()
    }
    return {name: [word for word in words if word not in given] for name, words in required.items()}


def _calls(row: Row, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the calls for which the settings suffice, by the label of their value."""
    calls: dict[str, str] = {}
    parameters = row.parameters()
    for name, lacking in _lacking(row, given).items():
        if lacking:
            continue
        label = "printed" if name.startswith("published.") else _worth().get(name, "formula")
        count = sum(known.rstrip("0123456789_") == label for known in calls)
        words = [word for word in parameters[name] if word in given]
        first = next(
            (word for word in words if parameters[name][word].kind is not inspect.Parameter.KEYWORD_ONLY), None
        )
        text = ", ".join(word if word == first else f"{word}={word}" for word in words)
        calls[f"{label}_{count + 1}" if count else label] = f"hs.{name}({text})"
    return calls


def _program(row: Row, given: Mapping[str, Any]) -> str:
    """Return what was run, as text that runs by itself."""
    assigned = [f"{name} = {value!r}" for name, value in given.items()]
    calls = [f"{label} = {call}" for label, call in _calls(row, given).items()]
    wrapped = [textwrap.fill(call, 100, subsequent_indent="    ", break_long_words=False) for call in calls]
    return "\n".join([IMPORTS, *assigned, *wrapped, row.python.strip()])
