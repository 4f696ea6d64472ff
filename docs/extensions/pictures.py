"""Writes a picture twice, for light and for dark pages."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from cycler import cycler

from hockeystick.figures import style

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

FOLDER = "generated/pictures"

# What is dark on light paper, and its light counterpart; the colours stay Okabe and Ito's, or lighter shades of them.
DARK = {
    "#000000": "#f0f0f0",
    "#262626": "#d8d8d8",
    "#808080": "#a0a0a0",
    "#666666": "#b0b0b0",
    "#dddddd": "#444444",
    "#cccccc": "#666666",
    "#ffffff": "#131416",
    "#0072b2": "#56b4e9",
    "#d55e00": "#ff8c3b",
    "#009e73": "#2fcf9f",
    "#cc79a7": "#e5a3c9",
}
INK = "#262626"  # of letters and axes; black is left to curves
INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
LOOK = style.LOOK | dict.fromkeys(INKED, INK) | {"axes.prop_cycle": cycler(color=style.COLOURS)}


def embed(figure: Figure, name: str, source: Path) -> str:
    """Write a figure below the source folder and return the MyST text that shows it."""
    folder = source / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    light = written.getvalue()
    dark = re.sub(r"#[0-9a-f]{6}\b", lambda colour: DARK.get(colour.group(), colour.group()), light)
    for shade, text in (("light", light), ("dark", dark.replace("<svg ", '<svg fill="#f0f0f0" ', 1))):
        (folder / f"{name}-{shade}.svg").write_text(text, encoding="utf-8")
    title = " ".join(figure.get_suptitle().split()) or name
    shown = (
        f"```{{image}} /{FOLDER}/{name}-{shade}.svg\n:class: only-{shade}\n:alt: {title}\n```"
        for shade in ("light", "dark")
    )
    return "\n\n".join(shown)
