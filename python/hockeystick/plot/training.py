"""One picture of simulated trainings: loss, accuracy, epsilon and sensitivity over the rounds, or loss and accuracy over epsilon."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from hockeystick._checks import choice
from hockeystick.plot.scales import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hockeystick.simulate import Problem, Result, Sensitivity

Lines: TypeAlias = "dict[str, tuple[Any, Array]]"  # by name, where they are drawn and the values of every run

BAND = (5.0, 95.0)  # percentiles of the runs
MAX_MARKED = 25  # rounds that get a marker each


def training(
    result: Result | Mapping[str, Result],
    *,
    delta: float | None = None,
    test: Problem | None = None,
    sensitivity: Sensitivity | None = None,
    over: Literal["round", "epsilon"] = "round",
) -> Figure:
    """Draw loss, accuracy, certified epsilon, a learnt clip norm and sensitivity after every recorded round, or loss and accuracy over epsilon.

    Of several runs, the line is their mean, and the band reaches from the 5th to the 95th percentile; runs that have diverged
    are left out.

    Parameters
    ----------
    result : hockeystick.simulate.Result or mapping of str to Result
        What `hockeystick.simulate.run` returned, with one recorded round at least: see its `record_every`. Of several trainings of one kind of
        problem, each by the name of its lines.
    delta : float, optional
        In [0, 1). If given, epsilon is drawn, an upper bound after each round; names say under which adjacency, where it is not the same.
    test : hockeystick.simulate.Problem, optional
        If given, loss and accuracy are those on its records.
    sensitivity : hockeystick.simulate.Sensitivity, optional
        If given, the distance of two adjacent trainings is drawn, and what of it comes from data and from models.
    over : {"round", "epsilon"}
        What is drawn to the right. By "epsilon", which needs `delta`, trainings are compared at equal epsilon.

    Returns
    -------
    matplotlib.figure.Figure
        Not bound to a window; use its ``savefig``.

    Raises
    ------
    ValueError
        If nothing was recorded, or no certified bound covers the settings and `delta` is given.

    Examples
    --------
    >>> from hockeystick import plot, simulate
    >>> problem = simulate.synthetic("logistic", sizes=[40, 60], num_features=5, seed=1)
    >>> algorithm = simulate.NoisyMinibatchSGD(
    ...     learning_rate=0.5, clip_norm=1.0, noise_std=0.2, records=simulate.FixedSize(10)
    ... )
    >>> result = simulate.run(algorithm, problem, rounds=30, seed=7, num_runs=20, record_every=5)
    >>> figure = plot.training(result, delta=1e-5)
    >>> len(figure.axes)  # loss, accuracy, epsilon
    3
    """
    from hockeystick.plot.matplotlib_figures import figure_of  # noqa: PLC0415 - matplotlib is asked for when first needed

    named: Mapping[str, Result] = result if isinstance(result, Mapping) else {"": result}
    for one in named.values():
        if not len(one.recorded):
            raise ValueError(f"result must have a recorded round, not none of {one.completed}: see record_every")
    choice("over", over, ("round", "epsilon"))
    if not named or (over == "epsilon" and delta is None):
        raise ValueError(
            "result must have a training" if not named else "delta must be given for over='epsilon', not None"
        )
    under = {} if delta is None else {name: one.guarantee().adjacency for name, one in named.items()}
    if len(set(under.values())) > 1:
        named = {f"{name}, {under[name]}": one for name, one in named.items()}
    spent = {} if delta is None else {name: one.epsilon(delta) for name, one in named.items()}
    private = f"certified ε at δ = {delta!r}"

    def lines(values: Callable[[Result], Array]) -> Lines:
        return {name: (spent[name] if over == "epsilon" else one.recorded, values(one)) for name, one in named.items()}

    records = "of the test records" if test is not None else "of the training records"
    across = private if over == "epsilon" else "round"
    panels: list[tuple[str, str, Lines]] = [(across, f"mean loss {records}", lines(lambda one: one.loss(test)))]
    if all(one.problem.classifies for one in named.values()):
        panels.append((across, f"accuracy {records}", lines(lambda one: one.accuracy(test))))
    if delta is not None and over == "round":
        at = {name: (one.recorded, spent[name][:, np.newaxis]) for name, one in named.items()}
        panels.append((across, private, at))
    learnt = {name: one for name, one in named.items() if one.clip_norm is not None}
    if learnt:
        norms = {name: (one.recorded, one.clip_norm[:, one.recorded - 1].T) for name, one in learnt.items()}  # type: ignore[index]
        panels.append(("round", "clip norm left by the round", norms))
    if sensitivity is not None:
        parts = {"in all": sensitivity.total, "of data": sensitivity.data, "of models": sensitivity.model}
        distances = {name: (sensitivity.recorded, part) for name, part in parts.items()}
        panels.append(("round", "distance of adjacent trainings", distances))
    figure, axes = figure_of(
        len(panels), "\n".join(f"{name}{': ' if name else ''}{title(one)}" for name, one in named.items())
    )
    for panel, (x, y, drawn) in zip(axes, panels, strict=True):
        for number, (name, (places, values)) in enumerate(drawn.items()):
            _line(panel, places, values, name, number)
        panel.set(xlabel=x, ylabel=y)
        panel.grid(alpha=0.3)
        if len(drawn) > 1:
            panel.legend()
    return figure


def title(result: Result) -> str:
    """Return algorithm and settings, and how many runs there were."""
    algorithm = result.algorithm
    settings = [
        f"{field.name} = {value}"
        for field in dataclasses.fields(algorithm)
        if (value := getattr(algorithm, field.name)) != field.default
    ]
    runs = f"mean of {result.num_runs} runs, band: 5th to 95th percentile" if result.num_runs > 1 else "one run"
    lost = int((result.diverged > 0).sum())
    runs += f"; {lost} of {result.num_runs} diverged, left out" if lost else ""
    problem = f"{result.problem.num_records} records of {result.problem.num_silos} clients"
    return f"{type(algorithm).__name__}: {', '.join(settings)}\n{problem}; seed {result.seed}; {runs}"


def _line(panel: Axes, places: Any, values: Array, name: str, number: int) -> None:
    """Draw the mean over the runs, the second axis, and the band of several."""
    from hockeystick.plot.matplotlib_figures import CURVES, MARKERS  # noqa: PLC0415 - as above

    alive = np.isfinite(values).any(axis=1)  # all have diverged elsewhere
    places, values = places[alive], values[alive]
    marker = MARKERS[number % len(MARKERS)] if len(places) <= MAX_MARKED else None
    colour = CURVES[number % len(CURVES)]
    panel.plot(places, np.nanmean(values, axis=1), color=colour, marker=marker, label=name)
    if values.shape[1] > 1:
        low, high = np.nanpercentile(values, BAND, axis=1)
        panel.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
