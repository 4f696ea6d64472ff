"""The pictures of a sweep: which tables, in which colours, under which title."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hockeystick.plot.matplotlib_figures import Colours, heat_maps, line_plots, side_within
from hockeystick.plot.scales import FEW, Scale, drawn_scale, same_bound
from hockeystick.sweep.functions import registered, with_unit
from hockeystick.sweep.plan import Output
from hockeystick.sweep.view import Choice, Drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hockeystick.sweep.store import Store


def figures_of(view: Choice, store: Store, outputs: list[str], budget: float | None) -> dict[str, Figure]:
    """Return the pictures by the name of their file."""
    across = _drawn_scale(view, view.x)
    titles = view.titles
    tables = {name: view.values(store, name) for name in outputs}
    functions = {name: _output(view, name).function.name for name in outputs}
    if view.y is None:
        series = {_output_label(view, name): values[:, 0, :] for name, values in tables.items()}
        name = outputs[0] if len(outputs) == 1 else "outputs"
        return {name: line_plots(across, series, panel_titles=titles, title=_title(view, outputs), budget=budget)}
    up = _drawn_scale(view, view.y)
    return {
        name: heat_maps(
            across,
            up,
            values,
            label=_output_label(view, name),
            panel_titles=titles,
            title="\n".join((_title(view, [name]), *_border(values, budget))),
            printed=registered(functions[name]).printer,
            colours=Colours.of(same_bound(functions, name, tables)),
            budget=budget,
        )
        for name, values in tables.items()
    }


def _title(view: Choice, outputs: list[str]) -> str:
    """Return the plan's title, what the outputs are with their arguments, and what is held or fixed."""
    named = "; ".join(_named(_output(view, name)) for name in outputs)
    fixed = ", ".join(f"{name} = {_text(value)}" for name, value in view.plan.fixed.items())
    held = ", ".join(text for text in (view.held, fixed) if text)
    return "\n".join(text for text in (view.plan.title, named, held, view.chosen) if text)


def _border(values: Any, budget: float | None) -> list[str]:
    """Return what the border of a budget means, as a line or none."""
    if budget is None:
        return []
    side = side_within(values, budget)
    if not side:
        return [f"budget {budget:.12g}: {'all' if (values <= budget).all() else 'no'} cells keep it"]
    return [f"thick border: at most {budget:.12g} {side}, more elsewhere"]


def _named(output: Output) -> str:
    arguments = "".join(f", {name} = {_text(value)}" for name, value in output.arguments.items())
    function = output.function.name
    remark = " (as printed: no privacy guarantee)" if registered(function).worth == "unsound" else ""
    return f"{output.column} = {function}{arguments}{remark}"


def _text(value: Any) -> str:
    return format(value, "g") if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _drawn_scale(view: Choice, drawn: Drawn) -> Scale:
    """Return the scale of a drawn argument; where it has few values, what moves with it stands beside it at each tick."""
    axis = view.plan.axes[drawn.axis]
    if len(axis.columns) == 1 or len(drawn.values) > FEW:
        return drawn_scale(view.plan, drawn)
    columns = {name: values[drawn.points].tolist() for name, values in axis.columns.items()}
    names = [drawn.name, *(name for name in columns if name != drawn.name)]
    ticks = tuple("/".join(map(_text, values)) for values in zip(*(columns[name] for name in names), strict=True))
    return drawn_scale(view.plan, drawn, " / ".join(names), ticks)


def _output_label(view: Choice, name: str) -> str:
    """Return an output's name with the unit of what its function returns."""
    return with_unit(name, registered(_output(view, name).function.name).unit)


def _output(view: Choice, name: str) -> Output:
    return next(output for output in view.plan.outputs if output.column == name)
