"""Pictures of accountants: epsilon over steps, delta over epsilon, attacks. Of sweeps: heat maps with iso-lines, and lines where one argument varies; of all analyses of a training, and of a simulated one."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import choice, scalar
from hockeystick._checks.doors import open_room
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick.plot.accountants import epsilon_over_steps, privacy_profile, trade_off
from hockeystick.plot.analysis_lines import analyses
from hockeystick.plot.scales import Scale, is_geometric
from hockeystick.plot.training import training
from hockeystick.sweep.folders import VIEWS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = [
    "analyses",
    "epsilon_over_steps",
    "heat_map",
    "line_plot",
    "plot_sweep",
    "privacy_profile",
    "trade_off",
    "training",
]

DOTS_PER_INCH = 150


def heat_map(
    x: ArrayLike,
    y: ArrayLike,
    values: ArrayLike,
    *,
    x_label: str,
    y_label: str,
    label: str,
    title: str = "",
    bound: Literal["upper", "lower"] = "upper",
) -> Figure:
    """Draw values over two arguments in colour, with labelled iso-lines.

    An axis is logarithmic if its values are spaced by ratios, the colour if positive values span more than a factor
    of 100. Cells without a finite value are hatched. A grid of at most 8 by 8 has its values written into the cells
    instead of the iso-lines, with three digits, rounded so that an upper bound stays one.

    Parameters
    ----------
    x : array-like of shape (nx,)
        Increasing values, at least two.
    y : array-like of shape (ny,)
        Increasing values, at least two.
    values : array-like of shape (ny, nx)
        What is drawn.
    x_label, y_label, label, title : str
        Texts at the axes, at the colour bar and on top.
    bound : {"upper", "lower"}
        What the values are: numbers in cells are rounded up, or down.

    Returns
    -------
    matplotlib.figure.Figure
        Not bound to a window; use its ``savefig``.

    Raises
    ------
    ValueError
        If the shapes do not match, an axis does not increase, or `bound` is no such word.

    Examples
    --------
    >>> import numpy as np
    >>> import hockeystick as hs
    >>> from hockeystick.plot import heat_map
    >>> epsilon, r = np.linspace(0, 4, 9), np.geomspace(0.1, 2, 7)
    >>> figure = heat_map(epsilon, r, hs.theta(epsilon, r[:, None]), x_label="epsilon", y_label="r", label="delta")
    >>> len(figure.axes)  # the map and its colour bar
    2
    """
    from hockeystick.plot.matplotlib_figures import heat_maps  # noqa: PLC0415 - matplotlib is asked for when first needed

    across, up = _scale("x", x, x_label), _scale("y", y, y_label)
    table = np.asarray(values, dtype=np.float64)
    if table.shape != (len(up.values), len(across.values)):
        raise ValueError(
            f"values must have shape (len(y), len(x)) = {(len(up.values), len(across.values))}, not {table.shape}"
        )
    printed = format_lower if choice("bound", bound, ("upper", "lower")) == "lower" else format_upper
    return heat_maps(across, up, table[None], label=label, panel_titles=[""], title=title, printed=printed)


def line_plot(x: ArrayLike, series: Mapping[str, ArrayLike], *, x_label: str, title: str = "") -> Figure:
    """Draw several outputs over one argument.

    Parameters
    ----------
    x : array-like of shape (nx,)
        Increasing values, at least two.
    series : mapping of str to array-like of shape (nx,)
        Name and values of each line; at least one.
    x_label, title : str
        Texts at the axis and on top.

    Returns
    -------
    matplotlib.figure.Figure
        Not bound to a window; use its ``savefig``.

    Raises
    ------
    ValueError
        If the shapes do not match, x does not increase, or there is no line.

    Examples
    --------
    >>> import numpy as np
    >>> import hockeystick as hs
    >>> from hockeystick.plot import line_plot
    >>> epsilon = np.linspace(0, 4, 9)
    >>> figure = line_plot(epsilon, {"r = 1": hs.theta(epsilon, 1.0), "r = 2": hs.theta(epsilon, 2.0)}, x_label="epsilon")
    >>> len(figure.axes)
    1
    """
    from hockeystick.plot.matplotlib_figures import line_plots  # noqa: PLC0415

    across = _scale("x", x, x_label)
    lines = {name: np.asarray(values, dtype=np.float64)[None] for name, values in series.items()}
    if not lines or any(values.shape != (1, len(across.values)) for values in lines.values()):
        shapes = {name: values.shape[1:] for name, values in lines.items()}
        raise ValueError(f"series must hold arrays of shape (len(x),) = {(len(across.values),)}, not {shapes}")
    return line_plots(across, lines, panel_titles=[""], title=title)


def plot_sweep(
    out: str | os.PathLike[str],
    *,
    x: str | None = None,
    y: str | None = None,
    value: str | None = None,
    slices: Mapping[str, str] | None = None,
    budget: float | None = None,
    format: str = "png",
    destination: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Draw the table of a sweep: a heat map for each output, or all outputs as lines if one numeric axis is free.

    Other axes become panels, at most six in all; of a long axis these have some values, both ends among them. What is held is at its
    first value. The title tells it, with every fixed argument. Outputs of one bound, certified and as published, have one
    colour scale. A run that is not finished is drawn as far as it is.

    Parameters
    ----------
    out : path
        Directory of a sweep.
    x, y : str, optional
        Arguments to draw; by default the two longest numeric axes.
    value : str, optional
        The output to draw; all if not given.
    slices : mapping of str to str, optional
        Arguments to hold, and at which value.
    budget : float, optional
        The most that an output may be: a line runs along the borders between the cells that keep it and those that do not.
    format : {"png", "svg"}
        Kind of picture.
    destination : path, optional
        Directory of the pictures; ``_views`` in `out` if not given, which readers of Parquet skip.

    Returns
    -------
    list of Path
        The pictures, named after their outputs.

    Raises
    ------
    ValueError
        If the directory holds no sweep, or a name is none of its axes or outputs.

    Examples
    --------
    >>> import tempfile
    >>> from hockeystick.plot import plot_sweep
    >>> from hockeystick.sweep import run
    >>> plan = {"outputs": {"delta": "theta"}, "axes": {"epsilon": [0, 1, 2], "r": [0.5, 1.0]}}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     summary = run(plan, out)
    ...     [picture.name for picture in plot_sweep(out)]
    ['delta.png']
    """
    from hockeystick.plot.sweep_figures import figures_of  # noqa: PLC0415 - matplotlib is asked for when first needed
    from hockeystick.sweep.store import stored_sweep  # noqa: PLC0415
    from hockeystick.sweep.view import choose  # noqa: PLC0415

    folder = Path(out)
    store = stored_sweep(folder)
    outputs = [output.column for output in store.plan.outputs]
    choice("format", format, ("png", "svg"))
    if value is not None:
        choice("value", value, outputs)
    if budget is not None:
        scalar("budget", budget, math.isfinite, "be finite")
    figures = figures_of(choose(store.plan, x, y, slices), store, [value] if value else outputs, budget)
    target = folder / VIEWS if destination is None else Path(destination)
    target.mkdir(parents=True, exist_ok=True)
    pictures = []
    for name, figure in figures.items():
        pictures.append(target / f"{name}.{format}")
        figure.savefig(pictures[-1], dpi=DOTS_PER_INCH, metadata={"Date": None} if format == "svg" else None)
    return pictures


def _scale(argument: str, given: ArrayLike, label: str) -> Scale:
    values = np.asarray(given, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.all(np.isfinite(values)) or not np.all(np.diff(values) > 0):
        raise ValueError(f"{argument} must be at least two increasing finite values, not {given!r}")
    return Scale(values, label, is_geometric(values))


open_room(__name__)
