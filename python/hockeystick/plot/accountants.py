"""Pictures of what accountants certify: epsilon over the steps, delta over epsilon, and the best attacks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hockeystick._checks import DELTA, NON_NEGATIVE_OR_INFINITE, count_scalar, scalar
from hockeystick._numeric.printing import format_upper
from hockeystick.accounting.accountant import Accountant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FALSE_POSITIVE_RATE = 0.01  # at which the legend tells what an attack finds
POINTS = 200


def epsilon_over_steps(
    accountants: Accountant | Mapping[str, Accountant], *, delta: float, budget: float | None = None, title: str = ""
) -> Figure:
    """Draw the certified epsilon after every step, in the order of composition.

    Parameters
    ----------
    accountants : Accountant or mapping of str to Accountant
        One, or several by their names in the legend; each with a step at least.
    delta : float
        In [0, 1).
    budget : float, optional
        An epsilon, non-negative, at which a line is drawn.
    title : str
        What is drawn, for the first line of the picture.

    Returns
    -------
    matplotlib.figure.Figure
        Not bound to a window; use its ``savefig``. Lines are upper ends.

    Raises
    ------
    ValueError
        If delta or budget is outside its domain, or there is no accountant, or one without steps.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import plot
    >>> training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 1000)
    >>> figure = plot.epsilon_over_steps({"noise 1": training}, delta=1e-5, budget=2.0)
    >>> len(figure.axes[0].lines)
    2
    """
    named = _named(accountants)
    delta = scalar("delta", delta, *DELTA)
    panel, figure = _panel(title, f"certified ε at δ = {delta!r}", "steps", "ε (upper bound)")
    for name, accountant in named.items():
        epsilons = accountant.epsilon_curve(delta)
        last = format_upper(float(epsilons[-1]), ".4g")
        _line(panel, np.arange(1, len(epsilons) + 1), epsilons, f"{name}: {last} after {len(epsilons)} steps")
    if budget is not None:
        budget = scalar("budget", budget, *NON_NEGATIVE_OR_INFINITE)
        panel.axhline(budget, color="black", linestyle=":", label=f"budget ε = {budget!r}")
    panel.legend()
    return figure


def privacy_profile(
    accountants: Accountant | Mapping[str, Accountant],
    *,
    largest: float | None = None,
    delta: float = 1e-9,
    title: str = "",
) -> Figure:
    """Draw the certified delta over epsilon, on a logarithmic scale.

    Parameters
    ----------
    accountants : Accountant or mapping of str to Accountant
        One, or several by their names in the legend; each with a step at least.
    largest : float, optional
        Where epsilon ends, positive and finite; by default at the largest epsilon of all at `delta`.
    delta : float
        In (0, 1): the least delta that is drawn if `largest` is not given.
    title : str
        What is drawn, for the first line of the picture.

    Returns
    -------
    matplotlib.figure.Figure
        Not bound to a window; use its ``savefig``. Lines are upper ends.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or there is no accountant, or one without steps, or no epsilon is finite.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import plot
    >>> figure = plot.privacy_profile(hs.Accountant().compose(hs.Gaussian(2.0), 4))
    >>> figure.axes[0].get_yscale()
    'log'
    """
    named = _named(accountants)
    delta = scalar("delta", delta, lambda x: 0 < x < 1, "lie in (0, 1)")
    if largest is None:
        largest = max(float(accountant.epsilon(delta)) for accountant in named.values())
    end = scalar("largest", largest, lambda x: 0 < x < math.inf, "be positive and finite")
    panel, figure = _panel(title, "certified privacy profile", "ε", "δ (upper bound)")
    epsilons = np.linspace(0.0, end, POINTS)
    for name, accountant in named.items():
        deltas = np.asarray(accountant.delta(epsilons))
        _line(panel, epsilons, np.where(deltas > 0.0, deltas, np.nan), name)
    panel.set_yscale("log")
    panel.legend()
    return figure


def trade_off(accountants: Accountant | Mapping[str, Accountant], *, title: str = "") -> Figure:
    """Draw what the best attack can reach: the false-negative rate below which none falls, over the false-positive rate.

    The legend tells which share of the records that were used an attack finds at most, if it is wrong about 1 % of the others, and
    its advantage, the true-positive rate less the false-positive one.

    Parameters
    ----------
    accountants : Accountant or mapping of str to Accountant
        One, or several by their names in the legend; each with a step at least.
    title : str
        What is drawn, for the first line of the picture.

    Returns
    -------
    matplotlib.figure.Figure
        Not bound to a window; use its ``savefig``. Lines are lower bounds of the false-negative rate.

    Raises
    ------
    ValueError
        If there is no accountant, or one without steps.

    Examples
    --------
    >>> import hockeystick as hs
    >>> from hockeystick import plot
    >>> figure = plot.trade_off({"noise 2": hs.Accountant().compose(hs.Gaussian(2.0))})
    >>> figure.axes[0].get_xlabel()
    'false-positive rate'
    """
    named = _named(accountants)
    panel, figure = _panel(title, "what no attack can beat", "false-positive rate", "false-negative rate (lower bound)")
    rates = np.concatenate([[0.0], np.geomspace(1e-4, 1e-2, 40), np.linspace(0.01, 1.0, POINTS)[1:]])
    for name, accountant in named.items():
        missed = np.asarray(accountant.trade_off(rates))
        found = format_upper(1.0 - float(accountant.trade_off(FALSE_POSITIVE_RATE)), ".2%")
        advantage = format_upper(accountant.advantage(), ".2%")
        _line(panel, rates, missed, f"{name}: finds at most {found} at 1% false alarms; advantage at most {advantage}")
    panel.plot([0.0, 1.0], [1.0, 0.0], color="0.6", linestyle=":", label="guessing")
    figure.set_size_inches(7.2, 6.4)
    figure.legend(loc="outside lower center", fontsize="small")
    return figure


def _named(accountants: Accountant | Mapping[str, Accountant]) -> dict[str, Accountant]:
    """Return the accountants by name, each with a step."""
    named = {"training": accountants} if isinstance(accountants, Accountant) else dict(accountants)
    if not named:
        raise ValueError("accountants must hold one at least")
    for name, accountant in named.items():
        if not isinstance(accountant, Accountant):
            raise TypeError(f"accountants[{name!r}] must be an Accountant, not {accountant!r}")
        count_scalar(f"the number of steps of accountants[{name!r}]", len(accountant))
    return named


def _panel(title: str, subject: str, x_label: str, y_label: str) -> tuple[Axes, Figure]:
    from hockeystick.plot.matplotlib_figures import figure_of  # noqa: PLC0415 - matplotlib is asked for when first needed

    figure, (panel,) = figure_of(1, f"{title}\n{subject}" if title else subject)
    figure.set_size_inches(7.2, 4.8)
    panel.set(xlabel=x_label, ylabel=y_label)
    panel.grid(alpha=0.3)
    return panel, figure


def _line(panel: Axes, x: np.ndarray, y: np.ndarray, label: str) -> None:
    from hockeystick.plot.matplotlib_figures import CURVES, DASHES  # noqa: PLC0415 - as above

    number = len(panel.lines)
    panel.plot(x, y, DASHES[number % len(DASHES)], color=CURVES[number % len(CURVES)], label=label)
