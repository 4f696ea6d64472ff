"""Reports of sweeps: one page with pictures, tables and the plan, which needs no network and no server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hockeystick._checks.doors import open_room
from hockeystick.sweep.folders import VIEWS

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
    >>> plan = {"outputs": {"delta": "theta"}, "axes": {"epsilon": [0, 1, 2], "r": [0.5, 1.0]}}
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
    sample = read_sample(store, choose_cells(store.plan, x, y, slices))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(sample, store.described()), encoding="utf-8")
    return target


def _target(out: str | os.PathLike[str], destination: str | os.PathLike[str] | None) -> Path:
    """Return the file to write."""
    if destination is not None:
        return Path(destination)
    if "://" in os.fspath(out):
        raise ValueError(f"destination must be given for a table at a URL, not None for {out}")
    return Path(out) / VIEWS / "report.html"


open_room(__name__)
