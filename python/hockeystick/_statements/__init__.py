"""What a privacy statement is made of, and how it is written: as text, Markdown, LaTeX or JSON."""

from __future__ import annotations

from hockeystick._statements.formats import FORMATS, Format, written
from hockeystick._statements.parts import Part, Statement
from hockeystick._statements.sentences import HEADINGS, SENTENCES, say, say_all

__all__ = ["FORMATS", "HEADINGS", "SENTENCES", "Format", "Part", "Statement", "say", "say_all", "written"]
