"""Which lines show the analyses of a training, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hockeystick.plot.scales import Line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hockeystick.utility import Analyses, Analysis

MAX_LINES = 8  # more cannot be told apart without colour
SAME = 0.01  # lines closer than that lie on each other: one is drawn, with both names


def analyses(found: Analyses, *, names: Sequence[str] | None = None) -> Figure:
    """Draw epsilon over the rounds by all analyses of a training, those only printed dashed.

    Lines that lie on each other are drawn once, with all their names. Each line has a marker of its own, so that lines can be told
    apart without colour; at most eight are drawn, and the title names those that are left out.

    Parameters
    ----------
    found : hockeystick.utility.Analyses
        What `hockeystick.utility.analyses` returned.
    names : sequence of str, optional
        The analyses to draw; by default all that apply in two rounds or more, the certified ones first.

    Returns
    -------
    matplotlib.figure.Figure
        Not bound to a window; use its ``savefig``.

    Raises
    ------
    ValueError
        If nothing applies, there is no analysis of a name, or more than eight lines are asked for.

    Examples
    --------
    >>> from hockeystick import plot, utility
    >>> found = utility.analyses(
    ...     num_clients=10, num_records=100, rounds=20, noise_std=0.5, lipschitz=1.0, smoothness=1.0, learning_rate=0.5,
    ...     diameter=0.1, delta=1e-6,
    ... )
    >>> figure = plot.analyses(found, names=["composition", "inter-silo"])
    >>> len(figure.axes[0].lines)
    2
    """  # fmt: skip
    from hockeystick.plot.matplotlib_figures import epsilon_lines  # noqa: PLC0415 - matplotlib is asked for when first needed

    lines = _lines(_chosen(found, names))
    left = [line.label for line in lines[MAX_LINES:]]
    if left and names is not None:
        raise ValueError(f"names must give at most {MAX_LINES} lines, not {len(lines)}: {', '.join(names)}")
    training = found.training
    title = f"One training, by every analysis (δ = {training.delta:g})"
    if left:
        title += f"\nnot drawn: {', '.join(left)}"
    return epsilon_lines(found.rounds, lines[:MAX_LINES], title=title)


def _chosen(found: Analyses, names: Sequence[str] | None) -> list[Analysis]:
    known = {one.name: one for one in found.found}
    if names is None:
        chosen = [one for one in found.found if np.isfinite(one.epsilon).sum() >= min(2, len(found.rounds))]
    else:
        for name in names:
            if name not in known:
                raise ValueError(f"names must be among {', '.join(known)}, not {name!r}")
            if not known[name].applies:
                raise ValueError(f"names must be of analyses that apply; {name!r} does not: {known[name].reason}")
        chosen = [known[name] for name in names]
    if not chosen:
        raise ValueError("found must have an analysis that applies in two rounds")
    return chosen


def _lines(chosen: Sequence[Analysis]) -> list[Line]:
    """Return one line for each group of analyses that cannot be told apart."""
    lines: list[Line] = []
    for one in chosen:
        label = f"{one.name} ({one.protects})"
        for place, line in enumerate(lines):
            same = np.allclose(line.values, one.epsilon, rtol=SAME, atol=0.0, equal_nan=True)
            if same and line.printed == one.printed:
                lines[place] = line._replace(label=f"{line.label} = {label}")
                break
        else:
            lines.append(Line(label, one.epsilon, one.printed))
    return lines
