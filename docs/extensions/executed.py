"""Runs the Python of every page, in order and in one namespace, and shows what it prints and draws.

A block that fails is a warning, so that `sphinx-build -W` fails. A block after ``<!-- needs LIBRARY -->`` is skipped without that
library. A Matplotlib figure that a block leaves in the variable `figure` is shown below it. Pages run in a folder that is
empty at first and removed at last: they leave no file behind, and find none of an earlier build.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import pictures
from matplotlib.figure import Figure
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx

logger = logging.getLogger(__name__)

BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```", re.DOTALL)
NEEDS_TOO = {"opacus": "torch"}


def run_page(app: Sphinx, page: str, text: list[str]) -> None:
    """Replace the text of a page by that with its results."""
    if not str(app.env.doc2path(page)).endswith(".md"):
        return
    space: dict[str, Any] = {"__name__": "__main__"}
    count = 0

    def run(block: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return block.group() + _results(app, page, f"{page.replace('/', '-')}-{count}", block, space)

    with _folder_of_its_own():
        text[0] = BLOCK.sub(run, text[0])


@contextlib.contextmanager
def _folder_of_its_own() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _results(app: Sphinx, page: str, name: str, block: re.Match[str], space: dict[str, Any]) -> str:
    needed, code = block.groups()
    missing = [
        library for library in (needed, NEEDS_TOO.get(needed)) if library and not importlib.util.find_spec(library)
    ]
    if missing:
        return f"\n\n*Not run for this page: it needs {missing[0]}.*\n"
    space.pop("figure", None)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), mpl.rc_context(pictures.LOOK):
            run_block(code, f"{page}, block {name}", space)
            shown = pictures.embed(space["figure"], name, Path(app.srcdir)) if _is_drawn(space) else ""
    except Exception:  # noqa: BLE001, whatever it is, it is the page's
        logger.warning("a block fails:\n%s\n%s", code, traceback.format_exc(), location=page)
        return ""
    output = f"```{{code-block}} text\n:class: output\n\n{printed.getvalue()}```" if printed.getvalue() else ""
    return f"\n\n{output}\n\n{shown}\n"


def run_block(code: str, name: str, space: dict[str, Any]) -> None:
    """Run the code of a block in the page's namespace."""
    exec(compile(code, name, "exec"), space)  # noqa: S102, the text is ours


def _is_drawn(space: dict[str, Any]) -> bool:
    return isinstance(space.get("figure"), Figure)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", run_page)
    return {"parallel_read_safe": True}
