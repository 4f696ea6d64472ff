"""Draws figures of `hockeystick.figures` into a page: ``<!-- figures MODULE -->`` shows all that one module makes, with the name of one that one.

``sphinx-build -D draw_gallery=0`` leaves the pictures out, for a quick look at the text.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pictures

from hockeystick import figures

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = re.compile(r"<!-- figures ([\w/-]+) -->")
DATA = "generated/figures"


def show(app: Sphinx, page: str, text: list[str]) -> None:
    """Replace each mark by what the module or function says of itself, its pictures, their data, and the commands that make them."""
    del page
    text[0] = MARK.sub(lambda mark: _figures(app, mark.group(1)), text[0])


def _figures(app: Sphinx, name: str) -> str:
    entries = [entry for entry in figures.catalogue() if name in (entry.module, entry.name)]
    module = importlib.import_module(f"hockeystick.figures.{entries[0].module}")
    app.env.note_dependency(str(module.__file__))
    if name == entries[0].module:
        text = inspect.getdoc(module) or ""
    else:  # but for the first line, which says what the function returns
        text = (inspect.getdoc(getattr(module, f"compute_{entries[0].suffix}")) or "").partition("\n\n")[2]
    return "\n\n".join([text, *(_entry(app, entry) for entry in entries)]) + "\n"


def _entry(app: Sphinx, entry: figures.Entry) -> str:
    command = f"`hockeystick figures {entry.name}`"
    if not app.config.draw_gallery:
        return command
    table = entry.table()
    folder = Path(app.srcdir) / DATA
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / f"{entry.file}.csv")
    with mpl.rc_context(pictures.LOOK):
        picture = pictures.embed(entry.draw(table), entry.file, Path(app.srcdir))
    return f"{picture}\n\n{command} ({{download}}`data </{DATA}/{entry.file}.csv>`)"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.add_config_value("draw_gallery", default=True, rebuild="env", types=[bool])
    app.connect("source-read", show)
    return {"parallel_read_safe": True}
