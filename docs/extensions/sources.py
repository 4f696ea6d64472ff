"""Names files of the source tree that are no pages of the site instead of linking to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

OUTSIDE = re.compile(r"\[`?([^\]`]+)`?\]\(((?:\.\./)+)([^)#:]+)\)")


def name_sources(app: Sphinx, page: str, text: list[str]) -> None:
    """Replace a link that leaves the folder of the documentation by the path that it names."""
    del app
    depth = page.count("/") + 1
    text[0] = OUTSIDE.sub(
        lambda link: f"`{link.group(3)}`" if len(link.group(2)) == 3 * depth else link.group(), text[0]
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", name_sources)
    return {"parallel_read_safe": True}
