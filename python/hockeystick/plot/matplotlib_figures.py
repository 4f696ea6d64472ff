"""The pictures themselves, on Matplotlib's `Figure`, without the state of pyplot."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from hockeystick._checks.hints import needs
from hockeystick._numeric.printing import format_upper
from hockeystick.plot.scales import FEW, Array, Line, Scale, is_wide, value_ends

with needs("plot", "a plot needs matplotlib"):
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.figure import Figure as Figure  # noqa: PLC0414, for _demo_picture
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator, NullLocator

COLOURS = "cividis"  # its lightness rises steadily, so that a grey print says the same
CATEGORIES = 4  # between so few values along an axis, lines of equal value would be invented
# Okabe and Ito's colours, which colour-blind readers tell apart; dashes tell curves apart without colour.
CURVES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", "--", "-.", ":")
# These do without dashes, too, which say that a formula is only printed.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

Printer: TypeAlias = Callable[[float, str], str]  # how a value is written into its cell


@dataclass(frozen=True)
class Colours:
    """How values become colours."""

    norm: Normalize
    least: float
    log: bool
    floored: bool  # some values lie below the lowest colour

    @classmethod
    def of(cls, values: Array) -> Colours:
        """Return the scale that shows all values."""
        log = is_wide(values)
        least, greatest = value_ends(values, log)
        norm = LogNorm(least, greatest) if log else Normalize(least, greatest)
        return cls(norm, least, log, bool((values[np.isfinite(values)] < least).any()))

    def add_bar(self, figure: Figure, panels: Axes | list[Axes], mesh: QuadMesh, label: str) -> None:
        """Draw the colour bar beside its panels."""
        figure.colorbar(mesh, ax=panels, label=label, extend="min" if self.floored else "neither", aspect=30)


def heat_maps(
    x: Scale,
    y: Scale,
    values: Array,
    *,
    label: str,
    panel_titles: Sequence[str],
    title: str,
    printed: Printer,
    colours: Colours | None = None,
    budget: float | None = None,
) -> Figure:
    """Draw (panels, y, x) values in one colour scale, with iso-lines, or with numbers on a coarse grid."""
    figure, panels = figure_of(len(values), title)
    colours = colours or Colours.of(values)
    for panel, panel_values, panel_title in zip(panels, values, panel_titles, strict=True):
        mesh = heat_map(panel, x, y, panel_values, colours=colours, title=panel_title, printed=printed)
        if budget is not None:
            _budget_line(panel, x, y, panel_values <= budget, budget)
    colours.add_bar(figure, panels, mesh, label)
    return figure


def heat_map(
    panel: Axes, x: Scale, y: Scale, values: Array, *, colours: Colours, title: str, printed: Printer = format_upper
) -> QuadMesh:
    """Draw (y, x) values into a panel."""
    shown = np.ma.masked_invalid(values)
    if colours.log:  # an underflow has the lowest colour, not that of a missing value
        shown = np.ma.maximum(shown, colours.least / 2)
    mesh = panel.pcolormesh(x.edges(), y.edges(), shown, norm=colours.norm, cmap=COLOURS, rasterized=True)
    panel.patch.set(facecolor="0.9", edgecolor="0.6", hatch="xx")  # seen where there is no finite value
    shape = sorted((len(x.values), len(y.values)))
    if shape[1] <= FEW:
        _numbers(panel, (x, y), values, colours.norm, printed)
    elif shape[0] > CATEGORIES:
        _iso_lines(panel, x, y, values, colours.log)
    _dress(panel, x, title)
    _ticks(panel, y, "y")
    panel.set_ylabel(y.label)
    return mesh


def line_plots(
    x: Scale, series: dict[str, Array], *, panel_titles: Sequence[str], title: str, budget: float | None = None
) -> Figure:
    """Draw (panels, x) values of several outputs."""
    figure, panels = figure_of(len(panel_titles), title)
    everything = np.concatenate([values.ravel() for values in series.values()])
    log = is_wide(everything)
    ends = value_ends(everything, log)
    for index, (panel, panel_title) in enumerate(zip(panels, panel_titles, strict=True)):
        for number, (name, values) in enumerate(series.items()):
            marker = "o" if len(x.values) <= FEW else None
            colour, dash = CURVES[number % len(CURVES)], DASHES[number % len(DASHES)]
            panel.plot(x.values, values[index], dash, color=colour, marker=marker, label=name)
        if budget is not None:
            panel.axhline(budget, color="black", linestyle=":", label=f"budget {budget:.12g}")
        if log:
            panel.set_yscale("log")
            panel.set_ylim(ends[0] / 2, 2 * ends[1])
        _dress(panel, x, panel_title)
        panel.grid(alpha=0.3)
        if len(series) == 1:
            panel.set_ylabel(next(iter(series)))
        else:
            panel.legend()
    return figure


def epsilon_lines(rounds: Array, lines: Sequence[Line], *, title: str) -> Figure:
    """Draw epsilon over the rounds, both in logarithms; a line that is only printed is dashed."""
    figure, (panel,) = figure_of(1, title)
    figure.set_size_inches(8.6, 5.0)
    colours = (*CURVES, "#000000", "#808080")
    for number, line in enumerate(lines):
        shown = np.where(np.isfinite(line.values) & (line.values > 0), line.values, np.nan)
        panel.plot(
            rounds,
            shown,
            "--" if line.printed else "-",
            color=colours[number % len(colours)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=6,
            label=textwrap.fill(line.label, 34),
        )
    panel.set(xscale="log", yscale="log", xlabel="rounds", ylabel="privacy parameter ε (nats)")
    panel.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize="small", handlelength=3.4)
    return figure


LETTERS_BELOW = 30  # that fit below a panel side by side, even where ticks are not evenly spaced


def iso_levels(least: float, greatest: float, log: bool) -> Array:
    """Return round numbers strictly between two values."""
    if log:
        decades = np.arange(np.floor(np.log10(least)), np.ceil(np.log10(greatest)) + 1)
        every = 1 + len(decades) // 10
        mantissas = [1.0, 2.0, 5.0] if greatest < 1e3 * least else [1.0]
        levels = np.array([mantissa * 10.0**decade for decade in decades[::every] for mantissa in mantissas])
    else:
        levels = np.asarray(MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(least, greatest))
    return levels[(levels > least) & (levels < greatest)]


def figure_of(count: int, title: str) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels, and these."""
    columns = 2 if count == 4 else min(count, 3)
    rows = -(-count // columns)
    figure = Figure(figsize=(1.6 + 4.4 * columns, 0.9 + 3.7 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for unused in panels[count:]:
        unused.set_axis_off()
    across = int(12 * figure.get_figwidth())  # letters
    figure.suptitle(
        "\n".join(textwrap.fill(line, across) for line in title.split("\n")), fontsize="medium", parse_math=False
    )
    return figure, list(panels[:count])


def _iso_lines(panel: Axes, x: Scale, y: Scale, values: Array, log: bool) -> None:
    """Draw and label lines of equal value, interpolated in logarithms where the colour is logarithmic."""
    least, greatest = value_ends(values, log)
    levels = iso_levels(least, greatest, log)
    if not len(levels) or not np.isfinite(values).any():
        return
    heights: Any = np.ma.masked_invalid(values)
    if log:
        heights = np.ma.log10(np.ma.maximum(heights, least / 10))
        levels = np.log10(levels)
    lines = panel.contour(x.values, y.values, heights, levels=levels, colors="white", linewidths=1.0, linestyles="-")
    lines.set_path_effects([withStroke(linewidth=2.2, foreground="black", alpha=0.6)])
    # A level is a round number, shown whole: 0.5005 as "0.501" would be another.
    for text in panel.clabel(lines, fmt=lambda level: f"{10**level if log else level:.12g}", fontsize="x-small"):
        text.set_path_effects([withStroke(linewidth=2.0, foreground="black")])
        text.set_clip_on(False)  # half a number at the border misleads


def _budget_line(panel: Axes, x: Scale, y: Scale, kept: Any, budget: float) -> None:
    """Draw the border of the cells that keep a budget, along their sides: nothing is claimed between the values."""
    lines = _joined(*_sides(kept))
    if not lines:
        return
    across, up = x.edges(), y.edges()
    corners = [np.array([(across[column], up[row]) for row, column in line]) for line in lines]
    path = Path.make_compound_path(*map(Path, corners))
    style = {"facecolor": "none", "edgecolor": "#D55E00", "linewidth": 2.0, "joinstyle": "miter", "zorder": 3}
    effects = [withStroke(linewidth=3.4, foreground="white")]
    panel.add_patch(PathPatch(path, **style, path_effects=effects))
    if max(kept.shape) > FEW:  # a coarse grid has numbers in its cells
        longest = max(corners, key=len)
        middle, height = longest[len(longest) // 2]
        label = panel.text(middle, height, f"{budget:.12g}", ha="center", va="center", fontsize="small")
        label.set(path_effects=effects, color="#A04000", weight="bold", zorder=4)


def _sides(kept: Any) -> tuple[list[Any], list[Any]]:
    """Return the upright and the level sides between a cell that is kept and one that is not, each by its corners (row, column)."""
    upright = [((row, at + 1), (row + 1, at + 1)) for row, at in np.argwhere(kept[:, 1:] != kept[:, :-1]).tolist()]
    level = [((row + 1, at), (row + 1, at + 1)) for row, at in np.argwhere(kept[1:] != kept[:-1]).tolist()]
    return upright, level


def _joined(*sides: list[Any]) -> list[list[tuple[int, int]]]:
    """Return lines that go along each side once."""
    left = [side for kind in sides for side in kind]
    ends: dict[tuple[int, int], list[Any]] = {}
    for side in left:
        for corner in side:
            ends.setdefault(corner, []).append(side)
    unused, lines = set(left), []
    for first in sorted(left, key=lambda side: min(len(ends[corner]) for corner in side)):  # those at an end of a line
        if first not in unused:
            continue
        unused.remove(first)
        line = list(first) if len(ends[first[0]]) <= len(ends[first[1]]) else list(reversed(first))
        while following := next((side for side in ends[line[-1]] if side in unused), None):
            unused.remove(following)
            line.append(following[1] if following[0] == line[-1] else following[0])
        lines.append(line)
    return lines


def side_within(panels: Any, budget: float) -> str:
    """Return in words on which side of its border a budget is kept, in all panels (panels, y, x)."""
    kept = panels <= budget
    words = []
    for axis, (more, less) in ((1, ("above it", "below it")), (2, ("to its right", "to its left"))):
        steps = np.diff(kept.astype(int), axis=axis)
        if (steps > 0).any() and (steps < 0).any():
            return "where the colour is that of less"
        words += [word for word, found in ((more, steps > 0), (less, steps < 0)) if found.any()]
    return " and ".join(words)


def _numbers(panel: Axes, scales: tuple[Scale, Scale], values: Array, norm: Normalize, printed: Printer) -> None:
    """Write the values of a coarse grid into its cells; lines between so few points would be invented."""
    x, y = scales
    for row, up in enumerate(y.values):
        for column, across in enumerate(x.values):
            value = values[row, column]
            dark = np.isfinite(value) and norm(value) < 0.55
            text = panel.text(across, up, printed(value, ".3g"), ha="center", va="center", fontsize="small")
            text.set_color("white" if dark else "black")


def _dress(panel: Axes, x: Scale, title: str) -> None:
    panel.set_title(title, fontsize="small", parse_math=False)
    panel.set_xlabel(x.label)
    _ticks(panel, x, "x")


def _ticks(panel: Axes, scale: Scale, which: str) -> None:
    axis = panel.xaxis if which == "x" else panel.yaxis
    (panel.set_xscale if which == "x" else panel.set_yscale)("log" if scale.log else "linear")
    if len(scale.values) <= FEW:
        axis.set_ticks(scale.values, labels=scale.ticks or [f"{value:g}" for value in scale.values])
        axis.set_minor_locator(NullLocator())
        if which == "x" and sum(map(len, scale.ticks)) > LETTERS_BELOW:
            for text in panel.get_xticklabels():
                text.set(rotation=30, ha="right", rotation_mode="anchor")
