"""The sentences of privacy statements, read from sentences.json: the explorer page of the site fills in the same file.

Braces name what is filled in, as in ``str.format``; numbers arrive as text, rounded outward where they are bounds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SENTENCES: dict[str, Any] = json.loads(Path(__file__).with_name("sentences.json").read_text(encoding="utf-8"))
HEADINGS: dict[str, str] = SENTENCES["headings"]


def say(name: str, **values: object) -> str:
    """Return one sentence, filled in."""
    return str(SENTENCES[name]).format(**values)


def say_all(name: str, **values: object) -> tuple[str, ...]:
    """Return a list of sentences, filled in."""
    return tuple(sentence.format(**values) for sentence in SENTENCES[name])
