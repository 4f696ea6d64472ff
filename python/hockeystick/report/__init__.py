"""Reports of sweeps: one page with pictures, tables and the plan, which needs no network and no server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hockeystick._numeric.printing import format_lower
from hockeystick.sweep.folders import VIEWS

if TYPE_CHECKING:
    from hockeystick.sweep.plan import Output
    from hockeystick.sweep.view import Choice, Sample

__all__ = ["report_sweep"]


def report_sweep(
    out: str | os.PathLike[str],
    destination: str | os.PathLike[str] | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
    slices: Mapping[str, str] | None = None,
) -> Path:
    """Write the table of a sweep as a page of HTML, with a heat map for each output, or lines if one numeric axis is free.

    The page is one file and needs no network. Arguments that are not drawn are chosen on it. It holds at most 64 cells
    along each side of a heat map (1000 along a line) and 300,000 numbers; of longer axes it has evenly chosen values,
    both ends among them, and says so. Counts and ranges are of the whole table, which is read once, part by part. A run
    that is not finished is shown as far as it is, and the page says what is missing.

    Parameters
    ----------
    out : path
        Directory of a sweep, or its URL.
    destination : path, optional
        The file to write; ``_views/report.html`` in `out` if not given, which must be for a URL. Readers of Parquet skip
        ``_views``, so that the directory stays one table.
    x, y : str, optional
        Arguments to draw; by default the two longest numeric axes.
    slices : mapping of str to str, optional
        Arguments to hold, and at which value; the page then has this value alone.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ValueError
        If the directory holds no sweep, a name is none of its axes, or there is no file to write for a URL.
    ImportError
        If the extra `report` is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from hockeystick.report import report_sweep
    >>> from hockeystick.sweep import run
    >>> plan = {"outputs": {"delta": "theta"}, "axes": {"eps": [0, 1, 2], "r": [0.5, 1.0]}}
    >>> with tempfile.TemporaryDirectory() as out:
    ...     summary = run(plan, out)
    ...     report_sweep(out).name
    'report.html'
    """
    from hockeystick.report.bokeh_page import page  # noqa: PLC0415 - bokeh is asked for when first needed
    from hockeystick.sweep.store import stored_sweep  # noqa: PLC0415
    from hockeystick.sweep.view import choose_cells, read_sample  # noqa: PLC0415

    target = _target(out, destination)
    store = stored_sweep(out)
    sample = read_sample(out, choose_cells(store.plan, x, y, slices))
    content = page(sample, _resource("page.html"), _variables(sample, store.described()))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content, encoding="utf-8")
    return target


def _target(out: str | os.PathLike[str], destination: str | os.PathLike[str] | None) -> Path:
    """Return the file to write."""
    if destination is not None:
        return Path(destination)
    if "://" in os.fspath(out):
        message = f"destination must be given for a table at a URL, not None for {out}"
        raise ValueError(message)
    return Path(out) / VIEWS / "report.html"


def _resource(name: str) -> str:
    return (files("hockeystick.report") / name).read_text(encoding="utf-8")


def _variables(sample: Sample, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page says."""
    from hockeystick.report.bokeh_page import heading  # noqa: PLC0415
    from hockeystick.sweep.functions import MEANING, status  # noqa: PLC0415
    from hockeystick.sweep.view import MAX_TEXTS  # noqa: PLC0415

    choice, plan = sample.choice, sample.choice.plan
    labels = {status(output.function.name) for output in plan.outputs}
    return {
        "style": _resource("style.css"),
        "heading": heading(plan),
        "num_cells": plan.num_cells,
        "missing": sample.missing,
        "num_missing": sum(map(len, sample.missing)),
        "outputs": [_output_row(sample, output) for output in plan.outputs],
        "meanings": {label: meaning for label, meaning in MEANING.items() if label in labels},
        "warnings": list(sample.counts.warnings),
        "shown": _shown(choice),
        "controls": choice.num_slices > 1 or choice.y is not None,
        "budgets": choice.y is not None,
        "pictures": _pictures(sample),
        "axes": _axis_rows(choice),
        "fixed": plan.fixed,
        "num_errors": sample.counts.errors,
        "errors": sample.errors,
        "max_texts": MAX_TEXTS,
        "versions": _versions(manifest),
        "plan": json.dumps(manifest["plan"], indent=2, ensure_ascii=False),
    }


def _output_row(sample: Sample, output: Output) -> dict[str, Any]:
    from hockeystick.sweep.functions import status  # noqa: PLC0415

    ends = sample.counts.ranges.get(output.column, (np.nan, np.nan))
    least, greatest = ("" if np.isnan(end) else repr(end) for end in ends)
    return {
        "column": output.column,
        "function": output.function.name,
        "arguments": "".join(f", {name} = {value}" for name, value in output.arguments.items()),
        "status": status(output.function.name),
        "least": least,
        "greatest": greatest,
        "non_finite": sample.counts.non_finite.get(output.column, 0),
    }


def _pictures(sample: Sample) -> list[dict[str, str]]:
    """Return the roots of the pictures in the document, with what is to be said below each."""
    from hockeystick.report.bokeh_page import floor  # noqa: PLC0415
    from hockeystick.sweep.functions import status  # noqa: PLC0415

    labels = {output.column: status(output.function.name) for output in sample.choice.plan.outputs}
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
    from hockeystick.sweep.view import point  # noqa: PLC0415

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
    from hockeystick._core import __version__  # noqa: PLC0415

    return {
        "computed by hockeystick": manifest.get("version", "unknown"),
        "instruction set": manifest.get("instruction_set", "unknown"),
        "written with pyarrow": manifest.get("pyarrow", "unknown"),
        "SHA-256 of the plan": manifest.get("plan_sha256", "unknown"),
        "page by hockeystick": __version__,
        "pictures by bokeh": version("bokeh"),
    }


def __dir__() -> list[str]:
    return sorted(__all__)
