"""A statement as text, Markdown, LaTeX or JSON. All four say the same."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from hockeystick._statements.parts import Part, Statement
from hockeystick._statements.sentences import SENTENCES

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
