"""The columns of a table: those of the grid, as readers of Parquet see them."""

import itertools
import math
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.sweep import run
from hockeystick.sweep.evaluate import subgrids
from hockeystick.sweep.plan import parse
from hockeystick.sweep.running import Schedule
from written_files import content

pq = pytest.importorskip("pyarrow.parquet")

PLAN: dict[str, Any] = {
    "shard_rows": 37,
    "outputs": {
        "mu": "federated.fedavg_gdp",
        "spent": {"function": "federated.fedavg_delta", "arguments": {"epsilon": 0.5}},
    },
    "fixed": {"clip_norm": 10.0, "learning_rate": 0.01, "smoothness": 1, "num_clients": 50},
    "axes": {
        "rounds": [10, 20, 30],
        "schedule": ["cyclic", "constant"],
        "noise_std": [0.5, -1.0, 2.0, 4.0],
        "local_steps": {"range": [1, 12]},
    },
}


def expected(plan: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the inputs of every cell, from the definition of a grid: the last axis runs fastest."""
    checked = parse(plan)
    cells = zip(*itertools.product(*(values.tolist() for values in checked.columns.values())), strict=True)
    constants = {name: [value] * checked.num_cells for name, value in checked.fixed.items()}
    return {
        "cell": [*range(checked.num_cells)],
        **dict(zip(checked.columns, map(list, cells), strict=True)),
        **constants,
    }


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a finished sweep with bad cells, which no test changes."""
    place = tmp_path_factory.mktemp("columns")
    run(PLAN, place, num_threads=1)
    return place


@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4), ends=st.tuples(st.integers(0, 400), st.integers(1, 90))
)
def test_subgrids_are_the_cells(lengths: list[int], ends: tuple[int, int]) -> None:
    """The subgrids of any range of cells hold each of them once, with the values of its axes."""
    names = ("epsilon", "r", "x", "p")[: len(lengths)]
    axes = {name: {"range": [1, length]} for name, length in zip(names, lengths, strict=True)}
    functions = {"epsilon": "theta", "r": "theta", "x": "q", "p": "q_inv"}
    axes |= {"r": [1]} if len(lengths) == 1 else {}
    plan = parse({"outputs": {f"y_{name}": functions[name] for name in names}, "axes": axes})
    start = ends[0] % plan.num_cells
    cells = range(start, min(start + ends[1], plan.num_cells))
    wanted = plan.axis_columns(np.arange(cells.start, cells.stop))
    seen = np.zeros(len(cells), int)
    for box in subgrids(plan, cells):
        seen[box.rows] += 1
        for dimension, along in enumerate(box.dimensions):
            for name, column in along.items():
                shape = [1] * len(box.shape)
                shape[dimension] = len(column)
                wide = np.broadcast_to(column.reshape(shape), box.shape)
                np.testing.assert_array_equal(wide.ravel(), wanted[name][box.rows])
    assert (seen == 1).all()


@pytest.mark.parametrize("threads", [2, 8])
def test_same_bytes_for_any_number_of_threads(tmp_path: Path, out: Path, threads: int) -> None:
    """One thread and several leave the same files, also of a run that was resumed."""
    run(PLAN, tmp_path, num_threads=threads)
    assert content(tmp_path) == content(out)
    for part in sorted((tmp_path / "cells").iterdir())[::2]:
        part.unlink()
    run(PLAN, tmp_path, num_threads=threads)
    assert content(tmp_path) == content(out)


def test_statistics_are_those_of_the_values(out: Path) -> None:
    """The least and the greatest of each column and the count of nulls are right: readers skip parts by them."""
    for path in (out / "cells").iterdir():
        file = pq.ParquetFile(path)
        table = file.read()
        assert file.metadata.row_group(0).sorting_columns == (pq.SortingColumn(0),)
        for at, name in enumerate(table.column_names):
            told = file.metadata.row_group(0).column(at)
            values = [
                v for v in table[name].to_pylist() if v is not None and not (isinstance(v, float) and math.isnan(v))
            ]
            assert told.has_column_index
            assert told.statistics.null_count == table[name].null_count
            assert not values or (told.statistics.min, told.statistics.max) == (min(values), max(values))


READERS = ("pyarrow", "pandas", "polars", "duckdb")


def read_by(reader: str, out: Path) -> dict[str, list[Any]]:
    """Return the table as a reader sees it that is given the directory, in the order of the cells."""
    module = pytest.importorskip(reader)
    if reader == "pandas":
        return module.read_parquet(out).sort_values("cell").to_dict("list")
    if reader == "polars":  # whose directories may hold files of one kind only
        return module.read_parquet(out / "**/*.parquet").sort("cell").to_dict(as_series=False)
    if reader == "duckdb":
        rows = module.sql(f"select * from read_parquet('{out}/**/*.parquet') order by cell")
        return dict(zip(rows.columns, map(list, zip(*rows.fetchall(), strict=True)), strict=True))
    return pytest.importorskip("pyarrow.dataset").dataset(out).to_table().sort_by("cell").to_pydict()


@pytest.fixture(scope="module")
def crowded(out: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the table, a page, pictures, and what killed runs and file servers leave."""
    pytest.importorskip("bokeh")
    pytest.importorskip("matplotlib")
    from hockeystick.plot import plot_sweep  # noqa: PLC0415 - their libraries are asked for above
    from hockeystick.report import report_sweep  # noqa: PLC0415

    place = Path(shutil.copytree(out, tmp_path_factory.mktemp("crowded") / "out"))
    report_sweep(place)
    plot_sweep(place)
    for name in ("_run-0.tmp", "._manifest.json.tmp", "cells/.part-000001.parquet.tmp", ".nfs0", "_SUCCESS"):
        (place / name).write_text("no table")
    return place


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("reader", READERS)
def test_the_directory_is_a_table(crowded: Path, reader: str) -> None:
    """Readers give the grid, each cell once, words as words, and the text or nothing in the column of errors; the rest is skipped."""
    found = read_by(reader, crowded)
    for name, values in expected(PLAN).items():
        assert list(found[name]) == values
        assert not isinstance(found[name][0], bytes)
    bad = [noise < 0 for noise in found["noise_std"]]
    text = "mu: noise_std must be positive and finite, not -1.0; spent: noise_std must be positive and finite, not -1.0"
    assert [(error if isinstance(error, str) else None) for error in found["error"]] == [
        text if b else None for b in bad
    ]
    assert [value is None or math.isnan(value) for value in found["mu"]] == bad


def test_pages_are_out_of_the_way_of_a_run(tmp_path: Path, crowded: Path) -> None:
    """A run goes on in a directory with pages and pictures."""
    assert run(PLAN, shutil.copytree(crowded, tmp_path / "out")).computed_rows == 0


def test_types_of_the_columns(out: Path) -> None:
    """Words are strings for readers, not numbered categories, and only `error` may be null."""
    schema = pq.read_schema(out / "cells/part-000000.parquet")
    assert " ".join(f"{field.name}:{field.type}" for field in schema) == (
        "cell:int64 rounds:int64 schedule:string noise_std:double local_steps:int64 clip_norm:double"
        " learning_rate:double smoothness:int64 num_clients:int64 mu:double spent:double error:string"
    )
    assert [field.name for field in schema if field.nullable] == ["error"]


def test_memory_does_not_grow_with_the_cells() -> None:
    """What a run of 10^9 cells keeps is a few numbers a shard: a schedule of 15 259 shards takes less than 8 MB."""
    axes = {"epsilon": {"linspace": [0.0, 8.0], "num": 10_000}, "r": {"linspace": [0.1, 5.0], "num": 100_000}}
    plan = parse({"outputs": {"delta": "theta"}, "axes": axes})
    assert plan.num_cells == 10**9
    tracemalloc.start()
    try:
        waiting = Schedule(range(plan.num_shards))
        while waiting.next() is not None:
            waiting.finished()
        assert tracemalloc.get_traced_memory()[1] < 8e6
    finally:
        tracemalloc.stop()
    assert sum(1 for _ in subgrids(plan, plan.shard(plan.num_shards - 1))) <= 2
