"""Formulas as MathML, which browsers draw by themselves: no script, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

BIG = re.compile(r"\\[bB]igg?[lr]?(?![a-zA-Z])")  # sizes of brackets, which MathML chooses by itself


def draw_inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def draw_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on its own line."""
    writer.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    formula = BIG.sub("", node.astext().strip())
    try:
        return str(tex2mathml(formula, as_block=as_block))
    except MathError as error:
        raise ExtensionError(f"{node.source}: {error} in the formula {node.astext()}") from error


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (draw_inline, None), (draw_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
