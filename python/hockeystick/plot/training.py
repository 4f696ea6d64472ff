"""One picture of a simulated training: loss, accuracy, epsilon and sensitivity over the rounds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick.plot.scales import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hockeystick.simulate import Problem, Result, Sensitivity

BAND = (5.0, 95.0)  # percentiles of the runs
MAX_MARKED = 25  # rounds that get a marker each


def training(
    result: Result, *, delta: float | None = None, test: Problem | None = None, sensitivity: Sensitivity | None = None
) -> Figure:
    """Draw loss, accuracy, certified epsilon, a learnt clip norm and sensitivity after every recorded round.

    Of several runs, the line is their mean, and the band reaches from the 5th to the 95th percentile; runs that have diverged
    are left out.

    Parameters
    ----------
    result : hockeystick.simulate.Result
        What `hockeystick.simulate.run` returned, with one recorded round at least: see its `record_every`.
    delta : float, optional
        In [0, 1). If given, epsilon is drawn, an upper bound after each round.
    test : hockeystick.simulate.Problem, optional
        If given, loss and accuracy are those on its records.
    sensitivity : hockeystick.simulate.Sensitivity, optional
        If given, the distance of two adjacent trainings is drawn, and what of it comes from data and from models.

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

    if not len(result.recorded):
        raise ValueError(f"result must have a recorded round, not none of {result.completed}: see record_every")
    records = "of the test records" if test is not None else "of the training records"
    panels: list[tuple[str, dict[str, Array]]] = [(f"mean loss {records}", {"": result.loss(test)})]
    if result.problem.classifies:
        panels.append((f"accuracy {records}", {"": result.accuracy(test)}))
    if delta is not None:
        panels.append((f"certified ε at δ = {delta!r}", {"": result.epsilon(delta)[:, np.newaxis]}))
    if result.clip_norm is not None:
        panels.append(("clip norm left by the round", {"": result.clip_norm[:, result.recorded - 1].T}))
    if sensitivity is not None:
        parts = {"in all": sensitivity.total, "of data": sensitivity.data, "of models": sensitivity.model}
        panels.append(("distance of adjacent trainings", parts))
    figure, axes = figure_of(len(panels), title(result))
    for panel, (label, series) in zip(axes, panels, strict=True):
        rounds = sensitivity.recorded if sensitivity is not None and len(series) > 1 else result.recorded
        for number, (name, values) in enumerate(series.items()):
            _line(panel, rounds, values, name, number)
        panel.set(xlabel="round", ylabel=label)
        panel.grid(alpha=0.3)
        if len(series) > 1:
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


def _line(panel: Axes, rounds: Any, values: Array, name: str, number: int) -> None:
    """Draw the mean over the runs, the second axis, and the band of several."""
    from hockeystick.plot.matplotlib_figures import CURVES, MARKERS  # noqa: PLC0415 - as above

    alive = np.isfinite(values).any(axis=1)  # all have diverged elsewhere
    rounds, values = rounds[alive], values[alive]
    marker = MARKERS[number] if len(rounds) <= MAX_MARKED else None
    panel.plot(rounds, np.nanmean(values, axis=1), color=CURVES[number], marker=marker, label=name)
    if values.shape[1] > 1:
        low, high = np.nanpercentile(values, BAND, axis=1)
        panel.fill_between(rounds, low, high, color=CURVES[number], alpha=0.2, linewidth=0)
