"""Puts the terms of ``<!-- search: audit, attack -->`` into the index of the site: a search for one finds this page first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = re.compile(r"<!-- search: (.+?) -->")


def index_terms(app: Sphinx, document: nodes.document) -> None:
    """Make each term a main entry of the index without an anchor, so that the search lists the page once."""
    del app
    for raw in list(document.findall(nodes.raw)):
        mark = MARK.fullmatch(raw.astext().strip())
        if mark:
            terms = [("single", term.strip(), "", "main", None) for term in mark.group(1).split(",")]
            raw.replace_self(addnodes.index(entries=terms))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("doctree-read", index_terms)
    return {"parallel_read_safe": True}
