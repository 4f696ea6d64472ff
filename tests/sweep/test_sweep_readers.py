"""The directory of a sweep is one Parquet table to readers that know nothing of sweeps, whatever else is written there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.sweep import run

pytest.importorskip("pyarrow")

EPS, R = np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.5, 1.0, 2.0])
PLAN = {"shard_rows": 5, "outputs": {"delta": "theta"}, "axes": {"eps": EPS.tolist(), "r": R.tolist()}}


def by_pandas(out: Path) -> list[float]:
    """Read the directory with pandas."""
    return list(pytest.importorskip("pandas").read_parquet(out).sort_values("cell")["delta"])


def by_pyarrow(out: Path) -> list[float]:
    """Read the directory as a data set of pyarrow."""
    dataset = pytest.importorskip("pyarrow.dataset")
    return dataset.dataset(out).to_table().sort_by("cell")["delta"].to_pylist()  # type: ignore[no-any-return]


def by_polars(out: Path) -> list[float]:
    """Read the directory's parts with polars, whose directories may hold files of one kind only."""
    return list(pytest.importorskip("polars").read_parquet(out / "**/*.parquet").sort("cell")["delta"])


def by_duckdb(out: Path) -> list[float]:
    """Ask DuckDB."""
    found = pytest.importorskip("duckdb").sql(f"select delta from read_parquet('{out}/**/*.parquet') order by cell")
    return [row[0] for row in found.fetchall()]


READERS = (by_pandas, by_pyarrow, by_polars, by_duckdb)


def written(out: Path) -> dict[str, Any]:
    """Write a table, a page, pictures, and what killed runs and file servers leave."""
    run(PLAN, out)
    pytest.importorskip("bokeh")
    pytest.importorskip("matplotlib")
    from hockeystick.plot import plot_sweep  # noqa: PLC0415 - their libraries are asked for above
    from hockeystick.report import report_sweep  # noqa: PLC0415

    report_sweep(out)
    plot_sweep(out)
    for name in ("_claim-0.tmp", "._manifest.json.tmp", "cells/.part-000001.parquet.tmp", ".nfs0", "_SUCCESS"):
        (out / name).write_text("no table")
    return PLAN


@pytest.mark.share(2)
@pytest.mark.parametrize("reader", READERS)
def test_the_directory_is_a_table(tmp_path: Path, reader: Callable[[Path], list[float]]) -> None:
    """All cells, once each, with the values of the formula; pages, pictures and rests of other runs are skipped."""
    written(tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the readers
        assert reader(tmp_path / "out") == hs.theta(EPS[:, None], R).ravel().tolist()


def test_pages_are_out_of_the_way_of_a_run(tmp_path: Path) -> None:
    """A run goes on in a directory with pages and pictures."""
    plan = written(tmp_path / "out")
    assert run(plan, tmp_path / "out").computed_rows == 0
