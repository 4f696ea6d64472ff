"""What a privacy statement is made of, and how it is written: as text, Markdown, LaTeX or JSON, which all say the same.

The sentences are in sentences.json, which the explorer page of the site fills in, too. Braces name what is filled in, as in
``str.format``; numbers arrive as text, rounded outward where they are bounds.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

SENTENCES: dict[str, Any] = json.loads(Path(__file__).with_name("sentences.json").read_text(encoding="utf-8"))
HEADINGS: dict[str, str] = SENTENCES["headings"]


def say(name: str, **values: object) -> str:
    """Return one sentence, filled in."""
    return str(SENTENCES[name]).format(**values)


def say_all(name: str, **values: object) -> tuple[str, ...]:
    """Return a list of sentences, filled in."""
    return tuple(sentence.format(**values) for sentence in SENTENCES[name])


@dataclass(frozen=True)
class Part:
    """A heading, and one sentence or several that are listed."""

    heading: str
    lines: tuple[str, ...]
    code: bool = False  # a command, shown as it is typed


@dataclass(frozen=True)
class Statement:
    """A sentence to quote, the parts that it needs, and the same as an entry of a registry."""

    sentence: str
    parts: tuple[Part, ...]
    entry: Mapping[str, Any]


Format: TypeAlias = Literal["text", "markdown", "latex", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
TITLE: str = SENTENCES["title"]
WIDTH = 88
LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "^": r"\^{}",
    "~": r"\~{}",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
    "≤": r"$\le$",
}  # fmt: skip


def written(statement: Statement, form: Format) -> str:
    """Return the statement in a format, without a newline at its end."""
    writers: dict[Format, Callable[[Statement], str]] = {
        "text": _text,
        "markdown": _markdown,
        "latex": _latex,
        "json": _json,
    }
    return writers[form](statement)


def _text(statement: Statement) -> str:
    blocks = [f"{TITLE}\n{'=' * len(TITLE)}", textwrap.fill(statement.sentence, WIDTH)]
    return "\n\n".join(blocks + [_text_part(part) for part in statement.parts])


def _text_part(part: Part) -> str:
    if part.code:
        return "\n".join([f"{part.heading}:", *(f"    {line}" for line in part.lines)])
    if len(part.lines) == 1:
        return textwrap.fill(f"{part.heading}: {part.lines[0]}", WIDTH, subsequent_indent="  ")
    lines = [textwrap.fill(line, WIDTH, initial_indent="- ", subsequent_indent="  ") for line in part.lines]
    return "\n".join([f"{part.heading}:", *lines])


def _markdown(statement: Statement) -> str:
    blocks = [f"## {TITLE}", statement.sentence]
    for part in statement.parts:
        if part.code:
            blocks.append("\n".join([f"**{part.heading}:**", "", "```", *part.lines, "```"]))
        elif len(part.lines) == 1:
            blocks.append(f"**{part.heading}:** {_plain(part.lines[0])}")
        else:
            blocks.append("\n".join([f"**{part.heading}:**", "", *(f"- {_plain(line)}" for line in part.lines)]))
    return "\n\n".join(blocks)


def _plain(text: str) -> str:
    """Return text in which no character of Markdown has a meaning."""
    return "".join(f"\\{letter}" if letter in "*_`<[#" else letter for letter in text)


def _latex(statement: Statement) -> str:
    blocks = [rf"\section*{{{TITLE}}}", _escaped(statement.sentence)]
    for part in statement.parts:
        head = rf"\paragraph{{{_escaped(part.heading)}.}}"
        if part.code:
            blocks.append("\n".join([head, r"\begin{verbatim}", *part.lines, r"\end{verbatim}"]))
        elif len(part.lines) == 1:
            blocks.append(f"{head} {_escaped(part.lines[0])}")
        else:
            items = [rf"  \item {_escaped(line)}" for line in part.lines]
            blocks.append("\n".join([head, r"\begin{itemize}", *items, r"\end{itemize}"]))
    return "\n\n".join(blocks)


def _escaped(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def _json(statement: Statement) -> str:
    return json.dumps(_finite(statement.entry), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    """Return the value with null in the place of numbers that JSON lacks."""
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
