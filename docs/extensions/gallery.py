"""Runs the scripts of docs/figures and shows their pictures: ``<!-- figures NAME -->`` in a page.

``sphinx-build -D draw_gallery=0`` leaves the pictures out, for a quick look at the text.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pictures

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = re.compile(r"<!-- figures (\w+) -->")


def show(app: Sphinx, page: str, text: list[str]) -> None:
    """Replace each mark by what the script says of itself, its pictures, and the script."""
    del page
    text[0] = MARK.sub(lambda mark: _entry(app, mark.group(1)), text[0])


def _entry(app: Sphinx, name: str) -> str:
    script = importlib.import_module(name)
    app.env.note_dependency(str(script.__file__))
    drawn = ""
    if app.config.draw_gallery:
        with mpl.rc_context(pictures.LOOK):
            drawn = "\n\n".join(pictures.embed(figure, key, Path(app.srcdir)) for key, figure in script.draw().items())
    return f"{script.__doc__}\n{drawn}\n\n{{download}}`docs/figures/{name}.py </figures/{name}.py>`\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.add_config_value("draw_gallery", default=True, rebuild="env", types=[bool])
    app.connect("source-read", show)
    return {"parallel_read_safe": True}
