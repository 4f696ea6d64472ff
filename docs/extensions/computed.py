"""Writes the tables that pages include from generated/tables: scripts of docs/tables print them when the site is built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SCRIPTS = ("isrl_slack", "published_values")  # those that take seconds
FOLDER = "generated/tables"


def write_tables(app: Sphinx) -> None:
    """Write what each script prints."""
    source = Path(app.srcdir)
    (source / FOLDER).mkdir(parents=True, exist_ok=True)
    utf8 = os.environ | {"PYTHONIOENCODING": "utf-8"}
    for name in SCRIPTS:
        command = [sys.executable, source / "tables" / f"{name}.py"]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=utf8).stdout
        (source / FOLDER / f"{name}.md").write_bytes(printed)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write_tables)
    return {"parallel_read_safe": True}
