"""Formulas of docs/ are ones that the site can write as MathML: seconds, where building the site takes a minute."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

latex = pytest.importorskip("docutils.utils.math.latex2mathml")

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "extensions"))
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
DISPLAYED = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
INLINE = re.compile(r"(?<!\\)\$([^$]+?)(?<!\\)\$")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_formulas_are_known(page: str) -> None:
    """Every formula of a page becomes MathML."""
    mathml = pytest.importorskip("mathml")
    text = CODE.sub("", (DOCS / page).read_text(encoding="utf-8"))
    formulas = DISPLAYED.findall(text) + INLINE.findall(DISPLAYED.sub("", text))
    for formula in formulas:
        latex.tex2mathml(mathml.BIG.sub("", formula.strip()))
