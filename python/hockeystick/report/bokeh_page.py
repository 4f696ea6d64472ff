"""The page of a report: its words, and its pictures on Bokeh, in which a choice of another slice of the table redraws what is seen.

Bokeh rather than Plotly: the page carries its own copy of the library, which is 1.7 MB where Plotly's is 4.8, and colours
come from the page's style sheet, so that one page serves light and dark screens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np

from hockeystick._checks.hints import needs
from hockeystick._core import __version__
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick.plot.scales import FEW, Array, Scale, drawn_scale, is_wide, same_bound, value_ends
from hockeystick.sweep.functions import MEANING, registered, unit_of_argument, with_unit
from hockeystick.sweep.plan import Output, Plan
from hockeystick.sweep.view import MAX_TEXTS, Choice, Drawn, Sample, point

with needs("report", "a report needs bokeh"):
    from bokeh.document import Document
    from bokeh.embed import file_html
    from bokeh.events import DocumentReady
    from bokeh.layouts import row
    from bokeh.models import (
        CategoricalSlider,
        ColorBar,
        ColumnDataSource,
        CustomJS,
        CustomJSHover,
        HoverTool,
        LinearColorMapper,
        LogColorMapper,
        Select,
        Text,
    )
    from bokeh.plotting import figure
    from bokeh.resources import INLINE
    from jinja2 import Environment  # bokeh needs it

COLOURS = "Cividis256"  # its lightness rises steadily, so that a grey print says the same
LINES = ("#1f77b4", "#d95f02", "#7570b3", "#1b9e77", "#a6761d", "#888888")
DASHES = ("solid", "dashed", "dotdash", "dotted")
MAX_LISTED = 12  # values in a drop-down list; more are on a slider
SELECT_STYLE = """
select.bk-input { appearance: auto; background: var(--paper); color: var(--ink); border-color: var(--faint); }
.bk-input-group, .bk-slider-title, label { color: var(--ink); }
"""
HEIGHT = 420
TOOLS = "pan,box_zoom,wheel_zoom,save,reset"

# Copy the chosen slice of all cells into what is drawn. Numbers are shown with all their digits: a rounded bound may be none.
SHOW_SLICE = """
const length = (chosen) => (chosen.categories ?? chosen.options).length
const place = (chosen) => chosen.categories ? chosen.categories.indexOf(chosen.value) : Number(chosen.value)
const words = (chosen) => chosen.categories ? chosen.value : chosen.options[Number(chosen.value)][1]
const at = selects.reduce((at, chosen) => at * length(chosen) + place(chosen), 0)
const [from, to] = [at * plane, (at + 1) * plane]
const present = all.data.present.slice(from, to)
const pick = (value, k, absent, refused, number) => present[k] ? (isNaN(value) ? refused : number) : absent
for (const name of names) {
  const values = all.data[name].slice(from, to)
  const text = (value, k) => pick(value, k, "not computed yet", "refused", String(value))
  shown.data[name] = values
  shown.data[name + " text"] = Array.from(values, text)
  const most = budgets[name] === undefined || budgets[name].value === "any" ? Infinity : Number(budgets[name].value)
  shown.data[name + " hatch"] = Array.from(values, (value, k) => pick(value, k, ".", "x", value > most ? "/" : " "))
  if (all.data[name + " short"]) shown.data[name + " short"] = all.data[name + " short"].slice(from, to)
}
for (const chosen of selects) shown.data[chosen.name] = Array(plane).fill(words(chosen))
shown.change.emit()
"""
# The style sheet does not reach into colour bars and legends.
INK = """
const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink")
for (const bar of bars) bar.setv({title_text_color: ink, major_label_text_color: ink, major_tick_line_color: ink})
for (const legend of legends) legend.setv({label_text_color: ink})
for (const text of texts) text.visible = innerWidth > 640 // on a phone, numbers in cells would cover each other
"""


def page(sample: Sample, manifest: Mapping[str, Any]) -> str:
    """Return the page of a table with this manifest; whatever comes from its plan is escaped."""
    parsed = Environment(autoescape=True).from_string(_resource("page.html"))
    return str(file_html(document(sample), INLINE, template=parsed, template_variables=_variables(sample, manifest)))


def _resource(name: str) -> str:
    return (files("hockeystick.report") / name).read_text(encoding="utf-8")


def _variables(sample: Sample, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page says."""
    choice, plan = sample.choice, sample.choice.plan
    labels = {registered(output.function.name).worth for output in plan.outputs}
    return {
        "sample": sample,
        "choice": choice,
        "plan": plan,
        "style": _resource("style.css"),
        "heading": heading(plan),
        "outputs": [_output_row(sample, output) for output in plan.outputs],
        "meanings": {label: meaning for label, meaning in MEANING.items() if label in labels},
        "shown": _shown(choice),
        "pictures": _pictures(sample),
        "axes": _axis_rows(choice),
        "max_texts": MAX_TEXTS,
        "versions": _versions(manifest),
        "source": json.dumps(manifest["plan"], indent=2, ensure_ascii=False),
    }


def _output_row(sample: Sample, output: Output) -> dict[str, Any]:
    ends = sample.counts.ranges.get(output.column, (np.nan, np.nan))
    rounded = zip((format_lower, format_upper), ends, strict=True)
    least, greatest = ("" if np.isnan(end) else outward(end, ".4g") for outward, end in rounded)
    return {
        "column": output.column,
        "function": output.function.name,
        "arguments": "".join(f", {name} = {value}" for name, value in output.arguments.items()),
        "status": registered(output.function.name).worth,
        "least": least,
        "greatest": greatest,
        "non_finite": sample.counts.non_finite.get(output.column, 0),
    }


def _pictures(sample: Sample) -> list[dict[str, str]]:
    """Return the roots of the pictures in the document, with what is to be said below each."""
    labels = {output.column: registered(output.function.name).worth for output in sample.choice.plan.outputs}
    said = {name: name if name == label else f"{name}: {label}" for name, label in labels.items()}
    if sample.choice.y is None:  # all outputs are lines of one picture
        pictures = [(", ".join(said.values()), np.concatenate([*sample.outputs.values()]))]
        note = " Values below {} are not drawn."
    else:
        pictures = [(said[name], sample.outputs[name]) for name in said]
        note = " All values below {} have the darkest colour."
    rows = []
    for number, (text, values) in enumerate(pictures):
        least = floor(values)
        below = "" if least is None else note.format(format_lower(least, ".3g"))
        rows.append({"name": f"picture-{number}", "caption": f"{text}.{below}"})
    return rows


def _shown(choice: Choice) -> str:
    """Return in words which part of the table the pictures have."""
    plan, count = choice.plan, choice.plane * choice.num_slices
    text = f"The pictures have {'all' if count == plan.num_cells else f'{count:,}'} of the {plan.num_cells:,} cells."
    if any(1 < len(choice.points(axis)) < len(values) for axis, values in enumerate(plan.axes)):
        text += " Of long axes they have evenly chosen values, both ends among them."
    held = [point(plan.axes[axis], at[0]) for axis, at in choice.slices.items() if len(at) == 1]
    return text + (f" Held: {'; '.join(held)}." if held else "")


def _axis_rows(choice: Choice) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "spacing": axis.spacing,
            "first": values[0],
            "last": values[-1],
            "length": len(axis),
            "shown": len(choice.points(index)),
        }
        for index, axis in enumerate(choice.plan.axes)
        for name, values in axis.columns.items()
    ]


def _versions(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what computed the table and what wrote the page."""
    return {
        "computed by hockeystick": manifest.get("version", "unknown"),
        "instruction set": manifest.get("instruction_set", "unknown"),
        "written with pyarrow": manifest.get("pyarrow", "unknown"),
        "SHA-256 of the plan": manifest.get("plan_sha256", "unknown"),
        "page by hockeystick": __version__,
        "pictures by bokeh": version("bokeh"),
    }


def document(sample: Sample) -> Document:
    """Return a document with the roots `controls`, what is seen and which budget is kept, and `picture-0` and so on."""
    choice, names = sample.choice, list(sample.outputs)
    short = _short(sample)
    shown = ColumnDataSource(_grid(choice) | _blank(choice, names) | {name: [""] * choice.plane for name in short})
    everything = ColumnDataSource({**sample.outputs, **short, "present": sample.present})
    selects = [_slice_chooser(choice, axis) for axis, points in choice.slices.items() if len(points) > 1]
    budgets = {} if choice.y is None else {name: _budget_slider(name, sample.outputs[name]) for name in names}
    arguments = {"selects": selects, "all": everything, "shown": shown, "names": names, "plane": choice.plane}
    callback = CustomJS(args=arguments | {"budgets": budgets}, code=SHOW_SLICE)
    chosen = [*selects, *budgets.values()]
    for control in chosen:
        shown.data[control.name] = [""] * choice.plane
        control.js_on_change("value", callback)
    if choice.y is None:
        pictures = [_lines(sample, shown)]
    else:
        pictures = [_heat_map(sample, shown, name, choice.y) for name in names]
    result = Document(title=heading(choice.plan))
    bars = [bar for picture in pictures for bar in picture.select(ColorBar)]
    legends = [legend for picture in pictures for legend in picture.legend]
    texts = [drawn for picture in pictures for drawn in picture.renderers if isinstance(drawn.glyph, Text)]
    drawn = {"bars": bars, "legends": legends, "texts": texts}
    result.js_on_event(DocumentReady, callback, CustomJS(args=drawn, code=INK))
    if chosen:
        result.add_root(row(*chosen, name="controls", sizing_mode="stretch_width", styles={"flex-wrap": "wrap"}))
    for number, picture in enumerate(pictures):
        picture.name = f"picture-{number}"
        result.add_root(picture)
    return result


def heading(plan: Plan) -> str:
    """Return the title of the page."""
    return plan.title or f"Sweep of {', '.join(output.column for output in plan.outputs)}"


def floor(values: Array) -> float | None:
    """Return the value below which all have the darkest colour, None if there are none."""
    least, _ = value_ends(values, is_wide(values))
    return least if (values[np.isfinite(values)] < least).any() else None


def _grid(choice: Choice) -> dict[str, Any]:
    """Return the values and the borders of the cells of a slice."""
    x, height = drawn_scale(choice.plan, choice.x), len(choice.y.points) if choice.y else 1
    columns: dict[str, Any] = {"x": np.tile(x.values, height)}
    columns |= {name: np.tile(values, height) for name, values in _moved(choice, choice.x)}
    if choice.y:
        y = drawn_scale(choice.plan, choice.y)
        columns["y"] = np.repeat(y.values, len(x.values))
        columns |= {name: np.repeat(values, len(x.values)) for name, values in _moved(choice, choice.y)}
        for low, high, edges in (("left", "right", x.edges()), ("bottom", "top", y.edges())):
            for name, ends in ((low, edges[:-1]), (high, edges[1:])):
                columns[name] = np.tile(ends, height) if low == "left" else np.repeat(ends, len(x.values))
    return columns


def _moved(choice: Choice, drawn: Drawn) -> Iterator[tuple[str, Any]]:
    """Yield the columns of the arguments that move with a drawn one."""
    axis = choice.plan.axes[drawn.axis]
    for name, values in axis.columns.items():
        if name != drawn.name:
            yield f"with {name}", np.asarray([str(values[at]) for at in drawn.points])


def _blank(choice: Choice, names: list[str]) -> dict[str, Any]:
    """Return the columns that the browser fills."""
    texts = {f"{name} {kind}": [" "] * choice.plane for name in names for kind in ("text", "hatch")}
    return {**dict.fromkeys(names, np.full(choice.plane, np.nan)), **texts}


def _short(sample: Sample) -> dict[str, list[str]]:
    """Return what is written into the cells of a coarse picture: three digits, rounded so that a bound stays one."""
    choice = sample.choice
    if choice.y is None or max(len(choice.x.points), len(choice.y.points)) > FEW:
        return {}
    texts = {}
    for output in choice.plan.outputs:
        printed = registered(output.function.name).printer
        values = sample.outputs[output.column].tolist()
        texts[f"{output.column} short"] = [printed(value, ".3g") if np.isfinite(value) else "" for value in values]
    return texts


def _figure(choice: Choice, **options: Any) -> Any:
    x = drawn_scale(choice.plan, choice.x)
    picture = figure(
        min_width=280,
        sizing_mode="stretch_width",
        height=HEIGHT,
        tools=TOOLS,
        x_axis_type="log" if x.log else "linear",
        x_axis_label=x.label,
        **options,
    )
    picture.toolbar.logo = None  # it links to a web site
    _mark(picture.xaxis, x)
    return picture


def _mark(axis: Any, values: Scale) -> None:
    """Give an axis with few values a tick at each."""
    if len(values.values) <= FEW:
        axis.ticker = values.values.tolist()
        axis.major_label_overrides = {value: f"{value:g}" for value in values.values.tolist()}


def _hover(rows: list[tuple[str, str, str]], **options: Any) -> HoverTool:
    """Return a tooltip with a row for each name: of the values of a column, or of a text."""
    digits = CustomJSHover(code="return String(value)")
    return HoverTool(
        tooltips=[(name, f"@{{{column}}}{{custom}}" if column else text) for name, column, text in rows],
        formatters={f"@{{{column}}}": digits for _, column, _ in rows if column},
        **options,
    )


def _heat_map(sample: Sample, shown: ColumnDataSource, name: str, drawn: Drawn) -> Any:
    """Draw one output over two arguments; the colours are those of all slices."""
    choice = sample.choice
    functions = {output.column: output.function.name for output in choice.plan.outputs}
    values = same_bound(functions, name, sample.outputs)
    y, log = drawn_scale(choice.plan, drawn), is_wide(values)
    least, greatest = value_ends(values, log)
    if least == greatest:
        least, greatest = least - 0.5, greatest + 0.5
    mapper = (LogColorMapper if log else LinearColorMapper)(COLOURS, nan_color="rgba(0, 0, 0, 0)")
    mapper.update(low=least, high=greatest)
    colour = {"field": name, "transform": mapper}
    picture = _figure(choice, y_axis_type="log" if y.log else "linear", y_axis_label=y.label, title=name)
    _mark(picture.yaxis, y)
    picture.quad(
        *("left", "right", "top", "bottom"),
        source=shown,
        fill_color=colour,
        line_color=colour,
        hatch_pattern=f"{name} hatch",
        hatch_color="#808080",
        hatch_scale=8,
    )
    picture.x_range.range_padding = picture.y_range.range_padding = 0
    title = with_unit(name, registered(functions[name]).unit)
    bar = ColorBar(color_mapper=mapper, title=title, title_text_font_style="normal", background_fill_color=None)
    picture.add_layout(bar, "right")
    if f"{name} short" in shown.data:
        style: dict[str, Any] = {"text_align": "center", "text_baseline": "middle", "text_font_size": "11px"}
        style |= {"text_color": "white", "background_fill_color": "black", "background_fill_alpha": 0.45, "padding": 2}
        picture.text("x", "y", f"{name} short", source=shown, **style)
    picture.add_tools(_hover([*_where(choice), (name, f"{name} text", "")], renderers=[picture.renderers[0]]))
    return picture


def _where(choice: Choice) -> Iterator[tuple[str, str, str]]:
    """Yield a row of the tooltip for every argument of a cell: drawn, moved with it, chosen by a control, held or fixed."""
    plan = choice.plan
    for column, drawn in (("x", choice.x), ("y", choice.y)):
        if drawn is not None:
            yield drawn.name, column, ""
            yield from ((name, f"with {name}", "") for name in plan.axes[drawn.axis].columns if name != drawn.name)
    for axis, points in choice.slices.items():
        columns = plan.axes[axis].columns
        if len(points) > 1:
            yield ", ".join(columns), f"select {plan.axes[axis].name}", ""
        else:
            yield from ((name, "", str(column[points[0]])) for name, column in columns.items())
    yield from ((name, "", str(value)) for name, value in plan.fixed.items())


def _lines(sample: Sample, shown: ColumnDataSource) -> Any:
    """Draw all outputs over one argument."""
    choice, outputs = sample.choice, sample.choice.plan.outputs
    everything = np.concatenate(list(sample.outputs.values()))
    log = is_wide(everything)
    measured = ", ".join(sorted({registered(output.function.name).unit for output in outputs} - {""}))
    label = with_unit(outputs[0].column if len(outputs) == 1 else "value", measured)
    picture = _figure(choice, y_axis_type="log" if log else "linear", y_axis_label=label)
    if log:
        least, greatest = value_ends(everything, log)
        picture.y_range.update(start=least / 2, end=2 * greatest)
    for number, output in enumerate(outputs):
        style = {"source": shown, "color": LINES[number % len(LINES)], "legend_label": output.column}
        picture.line("x", output.column, line_width=2, line_dash=DASHES[number % len(DASHES)], **style)
        if len(choice.x.points) <= FEW:
            picture.scatter("x", output.column, size=6, **style)
    picture.legend.update(background_fill_color=None, orientation="horizontal")
    picture.add_layout(picture.legend[0], "below")
    texts = [(output.column, f"{output.column} text", "") for output in outputs]
    first = [picture.renderers[0]]  # one tooltip for all lines
    picture.add_tools(_hover([*_where(choice), *texts], mode="vline", renderers=first))
    return picture


def _budget_slider(name: str, values: Array) -> CategoricalSlider:
    """Return a slider of what an output may be at most: "any", or a value that leaves one more hundredth of the cells."""
    finite = values[np.isfinite(values)]
    steps = np.quantile(finite, np.linspace(0.0, 1.0, 101)) if finite.size else np.zeros(0)
    texts = list(dict.fromkeys(format_upper(value, ".3g") for value in steps.tolist()))
    return CategoricalSlider(
        title=f"budget: {name} at most",
        categories=[*texts, "any"],
        value="any",
        name=f"budget {name}",
        stylesheets=[SELECT_STYLE],
    )


def _slice_chooser(choice: Choice, axis: int) -> Select | CategoricalSlider:
    """Return a list of the values of an axis, or a slider if they are many."""
    columns = choice.plan.axes[axis].columns
    options = [
        (str(number), ", ".join(str(column[at]) for column in columns.values()))
        for number, at in enumerate(choice.slices[axis])
    ]
    title = ", ".join(with_unit(name, unit_of_argument(name)) for name in columns)
    name = f"select {choice.plan.axes[axis].name}"
    texts = [text for _, text in options]
    if len(set(texts)) == len(texts) > MAX_LISTED:
        return CategoricalSlider(title=title, categories=texts, value=texts[0], name=name, stylesheets=[SELECT_STYLE])
    return Select(title=title, options=options, value="0", name=name, stylesheets=[SELECT_STYLE])
