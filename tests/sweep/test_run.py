"""Sweeps: what a table holds, and what becomes of bad cells."""

import itertools
import math
import re
import shutil
import threading
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
from hockeystick import federated, published
from hockeystick.cli import main
from hockeystick.sweep import CellError, functions, run, running
from hockeystick.sweep.evaluate import CELL_ERRORS, captured_warnings, evaluate, subgrids
from hockeystick.sweep.plan import load, parse
from hockeystick.sweep.running import Schedule
from racing import race
from sweep_plans import GOOD, THETA, changed, content, required_of, written

pytest.importorskip("pyarrow")


pq = pytest.importorskip("pyarrow.parquet")

EXAMPLES = Path(__file__).parents[2] / "examples"


def table(out):
    """Return the dataset of a sweep as any reader would."""
    return pq.read_table(out / "cells")


def column(out, name):
    """Return one column as an array."""
    return table(out)[name].to_numpy()


def root(x, *, factor=1.0, schedule="constant", num_threads=None, on_error="raise"):
    """Stand in for a function of the library: a square root that is picky the way those are."""
    assert num_threads >= 1
    x, factor = np.broadcast_arrays(np.asarray(x, float), factor)
    bad = x < 0
    if schedule == "cyclic" and np.ptp(x) > 0:
        message = "x must be the same in all cells"  # refuses the whole array, whatever on_error says
        raise ValueError(message)
    if bad.any() and on_error == "raise":
        raise ValueError(f"x must be >= 0, not {x[bad].flat[0]}")
    shift = {"constant": 0, "cyclic": 1, "continuous": 3}[schedule]
    return shift + factor * np.sqrt(np.where(bad, np.nan, x))


@pytest.fixture
def stand_in(register):
    """Register the stand-in as `testing.root`."""
    register(root)


def test_ends_are_included_exactly(tmp_path):
    """Linspace, logspace and range end on the numbers written in the plan."""
    axes = {"epsilon": {"linspace": [0.1, 0.7], "num": 4}, "r": {"logspace": [1e-3, 0.3], "num": 6}}
    run(changed(THETA, axes=axes), tmp_path / "out")
    assert {0.1, 0.7} <= {*column(tmp_path / "out", "epsilon")}
    assert {1e-3, 0.3} <= {*column(tmp_path / "out", "r")}
    plan = parse(changed(THETA, axes={"epsilon": {"range": [1, 10], "step": 3}, "r": [1.0]}))
    assert plan.columns["epsilon"].tolist() == [1, 4, 7, 10]


@pytest.mark.usefixtures("stand_in")
def test_zipped_axes_move_together(tmp_path):
    """Each table of a zip is one axis, in its place of the file."""
    plan = {"outputs": {"y": "testing.root"}, "zip": [{"x": [1.0, 4.0, 9.0], "factor": [1, 2, 2]}]}
    run(plan, tmp_path / "out")
    assert table(tmp_path / "out").select(["x", "factor", "y"]).to_pylist() == [
        {"x": 1.0, "factor": 1, "y": 1.0},
        {"x": 4.0, "factor": 2, "y": 4.0},
        {"x": 9.0, "factor": 2, "y": 6.0},
    ]
    base = {"outputs": {"delta": "theta"}}
    first = load({**base, "zip": [{"epsilon": [0, 1]}], "axes": {"r": [1.0, 2.0]}})
    last = load({**base, "axes": {"r": [1.0, 2.0]}, "zip": [{"epsilon": [0, 1]}]})
    assert [*first.columns] == ["epsilon", "r"]
    assert [*last.columns] == ["r", "epsilon"]


@pytest.mark.usefixtures("stand_in")
def test_fixed_and_own_arguments(tmp_path):
    """Fixed arguments go to every output that takes them, own ones to one output; whole numbers stay whole."""
    outputs = {"plain": "testing.root", "twice": {"function": "testing.root", "arguments": {"factor": 2}}}
    run({"outputs": outputs, "fixed": {"schedule": "continuous"}, "axes": {"x": [1, 4]}}, tmp_path / "out")
    cells = table(tmp_path / "out")
    assert cells["plain"].to_pylist() == [4.0, 5.0]
    assert cells["twice"].to_pylist() == [5.0, 7.0]
    assert [str(cells.schema.field(name).type) for name in ("x", "schedule")] == ["int64", "string"]
    assert cells.schema.field("twice").metadata[b"function"] == b"testing.root"


def test_callers_settings_change_nothing(tmp_path):
    """What NumPy does about underflow in the caller's thread, which computes such a plan, does not reach the table."""
    fixed = {
        "index": 10,
        "num_records": 100,
        "learning_rate": 0.1,
        "lipschitz": 1.0,
        "smoothness": 1.0,
        "diameter": 2.0,
    }
    axes = {"noise_std": [0.5, 1e-200], "epsilon": [0.5, 1e200]}
    plan = {"outputs": {"delta": "last_iterate.best"}, "fixed": fixed, "axes": axes}
    run(plan, tmp_path / "plain")
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        run(plan, tmp_path / "picky")
    assert content(tmp_path / "picky") == content(tmp_path / "plain")


def test_progress_is_told(tmp_path):
    """The callback hears of the start, each of the shards of 7, 7 and 6 cells, and the end; of the time left once something is known."""
    for threads in (1, 2):
        told = []
        run(THETA, tmp_path / str(threads), num_threads=threads, progress=lambda *given, told=told: told.append(given))
        done, total, left = zip(*told, strict=True)
        assert {*total} == {20}
        assert (done[0], sorted(np.diff(done))) == (0, [6, 7, 7])
        assert (left[0], left[-1]) == (None, 0.0)
        assert all(seconds is not None and seconds > 0 for seconds in left[1:-1])


@pytest.mark.usefixtures("stand_in")
def test_refused_arrays_are_asked_cell_by_cell(tmp_path):
    """Where a function refuses a whole array, the good cells are computed all the same."""
    plan = {"outputs": {"y": "testing.root"}, "fixed": {"schedule": "cyclic"}, "axes": {"x": [4.0, -1.0, 9.0]}}
    run(plan, tmp_path / "out")
    np.testing.assert_array_equal(column(tmp_path / "out", "y"), [3.0, np.nan, 4.0])


def test_ufunc_outside_its_domain(tmp_path):
    """A ufunc gives NaN without a text; the table says which function it was."""
    run(changed(THETA, outputs={"delta": "theta"}, axes={"epsilon": [1.0], "r": [-1.0, 1.0]}), tmp_path / "out")
    assert table(tmp_path / "out")["error"].to_pylist() == ["delta: outside the domain of theta", None]


# With the functions of the library

FEDERATION = {"clip_norm": 10.0, "learning_rate": 0.01, "smoothness": 1.0, "num_clients": 50, "rounds": 30}


AGGREGATOR = {"num_users": 100, "lipschitz": 1.0, "radius": 1.0, "loss": "convex"}
GRIDS = {
    "fedavg_gdp": (
        FEDERATION,
        {"local_steps": [1, 5, 20], "schedule": ["continuous", "constant", "cyclic"], "noise_std": [0.5, 2.0]},
    ),
    **dict.fromkeys(
        ("trusted_aggregator", "trusted_aggregator_random_stop"),
        (
            AGGREGATOR,
            {
                "noise_std": [1.0, 1.5, 2.0],
                "batch_size": [10, 20, 30],
                "learning_rate": [0.1, 0.5],
                "epsilon": [0.0, 0.5],
            },
        ),
    ),
}


@pytest.mark.parametrize("name", GRIDS)
def test_values_are_those_of_a_call_with_the_cell(tmp_path, name):
    """Words beside numbers, and what might vary by round: a grid of constants, each with what the function gives for its cell."""
    fixed, axes = GRIDS[name]
    run({"outputs": {"y": f"federated.{name}"}, "fixed": fixed, "axes": axes}, tmp_path / "out")
    for cell in table(tmp_path / "out").to_pylist():
        arguments = {argument: cell[argument] for argument in (*fixed, *axes)}
        assert cell["y"] == pytest.approx(getattr(federated, name)(**arguments), rel=1e-14)


def test_unsound_formula_says_so(tmp_path):
    """A published formula that is no bound carries its warning into the table and the summary, once, and again where all was done."""
    axes = {"local_steps": [1], "noise_std": [1.0, 2.0]}
    plan = {"shard_rows": 1, "outputs": {"mu": "published.fedavg_gdp"}, "fixed": FEDERATION, "axes": axes}
    for _ in range(2):
        summary = run(plan, tmp_path / "out")
        (warned,) = summary.warnings
        assert "no privacy guarantee" in warned
        assert warned in str(summary)
    schema = pq.read_schema(tmp_path / "out/cells/part-000000.parquet")
    assert b"no privacy guarantee" in schema.metadata[b"hockeystick.warnings"]
    with pytest.warns(published.UnsoundBoundWarning):
        direct = published.fedavg_gdp(**FEDERATION, local_steps=1, noise_std=1.0)
    assert column(tmp_path / "out", "mu")[0] == direct


@pytest.mark.parametrize("name", ["fedavg_table6", "trusted_aggregator_figure2", "dpsgd_grid"])
def test_examples(tmp_path, name):
    """The plans that ship with the source run without a bad cell."""
    summary = run(EXAMPLES / f"{name}.toml", tmp_path / "out")
    assert (summary.errors, {*summary.non_finite.values()}) == (0, {0})
    if name == "fedavg_table6":  # every certified parameter is far above the printed one, which is no bound
        certified, printed = (column(tmp_path / "out", name) for name in ("certified", "published"))
        assert (certified > 5 * printed).all()
        assert column(tmp_path / "out", "epsilon").min() > 403


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
def test_million_dpsgd_cells(tmp_path):
    """The plans of a million cells have that many; a corner of one, in its own axes, holds what direct calls give."""
    assert load(EXAMPLES / "million_cells.toml").num_cells == 10**6
    plan = load(EXAMPLES / "dpsgd_million.toml")
    assert plan.num_cells == 10**6
    corner = {name: [values[0].item(), values[-1].item()] for name, values in plan.columns.items()}
    summary = run({**plan.source, "axes": corner}, tmp_path / "out")
    cells = table(tmp_path / "out").to_pydict()
    assert (summary.rows, summary.errors) == (8, 0)
    direct = hs.dpsgd_epsilon(cells["noise_multiplier"], cells["sampling_rate"], cells["steps"], 1e-5)
    np.testing.assert_array_equal(cells["epsilon"], direct)


# The order of the shards and the time left: all over the table at any moment, and nothing twice.


@given(st.lists(st.integers(0, 10**5), max_size=300, unique=True).map(sorted))
def test_every_shard_once(missing):
    """Every missing shard comes once."""
    waiting = running.Schedule(missing)
    assert len(waiting) == len(missing)
    assert sorted(waiting.next() for _ in missing) == missing
    assert waiting.next() is None


def test_every_beginning_is_spread_over_the_table():
    """Of the first n shards of a thousand every stretch of the table has its share, up to four."""
    waiting = running.Schedule(range(1000))
    order = [waiting.next() for _ in range(1000)]
    for first in (4, 20, 100, 500):
        done = np.sort(order[:first])
        assert np.abs(np.arange(1, first + 1) - done * first / 1000).max() < 4


@pytest.mark.parametrize("noise", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("shape", ["equal", "halves", "geometric"])
def test_time_left(monkeypatch, noise, shape):
    """Where times differ along the axes and by chance, the time left is right in the median, 15, 30 and 60 % of the way."""
    clock = [0.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: clock[0])
    cost = {
        "equal": np.ones(600),
        "halves": np.where(np.arange(600) < 300, 1.0, 10.0),
        "geometric": 10 ** np.linspace(0.0, 2.0, 600),
    }[shape]
    ratios = []
    for seed in range(25):
        times = cost * np.random.default_rng(seed).lognormal(0.0, noise, 600)
        clock[0] = 0.0
        waiting, marks, found = running.Schedule(range(600)), [0.15, 0.3, 0.6], []
        assert waiting.seconds_left() is None
        while (index := waiting.next()) is not None:
            clock[0] += times[index]
            waiting.finished()
            if marks and clock[0] >= marks[0] * times.sum():
                marks.pop(0)
                found.append(waiting.seconds_left() / (times.sum() - clock[0]))
        assert waiting.seconds_left() == 0.0
        ratios.append(found)
    middle = np.median(ratios, axis=0)
    assert np.all((middle > 0.8) & (middle < 1.25)), middle


# The columns of a table: those of the grid, as readers of Parquet see them.


PLAN = {
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


def expected(plan):
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
def out(done):
    """Return the directory of a finished sweep with bad cells."""
    return done(PLAN)


@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4), ends=st.tuples(st.integers(0, 400), st.integers(1, 90))
)
def test_subgrids_are_the_cells(lengths, ends):
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
def test_same_bytes_for_any_number_of_threads(tmp_path, out, threads):
    """One thread and several leave the same files, also of a run that was resumed."""
    run(PLAN, tmp_path, num_threads=threads)
    assert content(tmp_path) == content(out)
    for part in sorted((tmp_path / "cells").iterdir())[::2]:
        part.unlink()
    run(PLAN, tmp_path, num_threads=threads)
    assert content(tmp_path) == content(out)


def test_statistics_are_those_of_the_values(out):
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


def read_by(reader, out):
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
def crowded(out, tmp_path_factory):
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
def test_the_directory_is_a_table(crowded, reader):
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


def test_pages_are_out_of_the_way_of_a_run(tmp_path, crowded):
    """A run goes on in a directory with pages and pictures."""
    assert run(PLAN, shutil.copytree(crowded, tmp_path / "out")).computed_rows == 0


def test_types_of_the_columns(out):
    """Words are strings for readers, not numbered categories, and only `error` may be null."""
    schema = pq.read_schema(out / "cells/part-000000.parquet")
    assert " ".join(f"{field.name}:{field.type}" for field in schema) == (
        "cell:int64 rounds:int64 schedule:string noise_std:double local_steps:int64 clip_norm:double"
        " learning_rate:double smoothness:int64 num_clients:int64 mu:double spent:double error:string"
    )
    assert [field.name for field in schema if field.nullable] == ["error"]


def test_memory_does_not_grow_with_the_cells():
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


# Cells that a function refuses: their texts are those of a call with the cell alone, and how a run says so.


BAD = (-1, 0, 3, 1e100)  # outside some domains, and together with others outside others


def told(function, arguments):
    """Return the value and the text of a call with one cell; the place in its array is no matter of the cell's."""
    try:
        value = function.call(**arguments, num_threads=1, on_error="raise")
    except CELL_ERRORS as error:
        return np.nan, re.sub(r" in cell \(0,\)$", "", str(error))
    return float(getattr(value, "delta", value)), ""


def text_of(shard, row):
    """Return the error text of a cell."""
    code = shard.errors.codes[row]
    return "" if code < 0 else shard.errors.texts[code].removeprefix("y: ")


@pytest.mark.share(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*functions.REGISTERED} - {*functions.PARAMETERS}))
def test_texts_are_those_of_the_cell_alone(name):
    """Of every function: a bad cell of a grid has NaN and the very text of a call with this cell, a good one its value."""
    function = functions.lookup(name)
    optional = {"smoothness", "strong_convexity", "diameter"} & {*function.parameters}
    if name.startswith("published."):  # which refuse any diameter, whatever the cell
        optional -= {"diameter"}
    names = [*dict.fromkeys([*function.required, *sorted(optional), *required_of(function)])]
    numbers = [one for one in dict.fromkeys(names) if not isinstance(GOOD[one], str)]
    fixed = {one: GOOD[one] for one in names if isinstance(GOOD[one], str)}
    bad = BAD[:3] if functions.registered(name).cost != "cheap" else BAD
    random = np.random.default_rng(20)
    for pair in itertools.pairwise(numbers) if len(numbers) > 1 else [(numbers[0],)]:
        axes = {one: [GOOD[one], *(value for value in bad if value != GOOD[one])] for one in pair}
        rest = {**fixed, **{one: GOOD[one] for one in numbers if one not in pair}}
        plan = parse({"outputs": {"y": name}, "fixed": rest, "axes": axes})
        shard = evaluate(plan, range(plan.num_cells), 1)
        columns = plan.axis_columns(np.arange(plan.num_cells))
        for row in random.choice(plan.num_cells, min(4, plan.num_cells), replace=False):
            cell = {one: column[row].item() for one, column in columns.items()}
            value, text = told(function, {**rest, **cell})
            assert text_of(shard, row) == text, cell
            np.testing.assert_allclose(shard.outputs["y"][row], value, rtol=1e-13, err_msg=str(cell))


def test_numbers_in_texts():
    """A number in a text has the digits that NumPy gives it, as where a single call raises."""
    values = [-1e-300, -1e16, -1e15, -0.1, -1.5e-5, -123456789.125, -(2.0**53), -1e22]
    shard = evaluate(
        parse({"outputs": {"y": "gdp_delta"}, "fixed": {"epsilon": 1.0}, "axes": {"mu": values}}), range(8), 1
    )
    for row, value in enumerate(values):
        with pytest.raises(ValueError, match="mu must") as raised:
            hs.gdp_delta(value, 1.0)
        assert text_of(shard, row) == str(raised.value)


@pytest.fixture
def calls(register):
    """Register `testing.gdp`, which is `gdp_delta`, and return a list that grows by the cells of each call."""
    made = []

    def gdp(mu, epsilon, *, num_threads=None, on_error="raise"):
        made.append(np.broadcast(mu, epsilon).size)
        if np.ndim(epsilon) == 0 and epsilon == 7.0:
            raise ValueError("epsilon must not be 7")
        return hs.gdp_delta(mu, epsilon, num_threads=num_threads, on_error=on_error)

    register(gdp)
    return made


def test_one_call_for_all_bad_cells(calls):
    """Bad cells, each with a value of its own, cost no call of their own."""
    axes = {"mu": {"linspace": [-1.0, 1.0], "num": 2001}, "epsilon": {"linspace": [0.0, 1.0], "num": 5}}
    shard = evaluate(parse({"outputs": {"y": "testing.gdp"}, "axes": axes}), range(10_005), 1)
    assert len(calls) == 1
    assert (len(shard.errors.texts), int((shard.errors.codes >= 0).sum())) == (1000, 5000)  # mu = 0 is good


def test_what_no_cell_can_mend_is_asked_once(calls):
    """Where constants alone are refused, all cells get the text by two calls: with all cells, and with none."""
    plan = parse({"outputs": {"y": "testing.gdp"}, "fixed": {"epsilon": 7.0}, "axes": {"mu": {"range": [1, 1000]}}})
    shard = evaluate(plan, range(1000), 1)
    assert calls == [1000, 0]
    assert shard.errors.texts == ["y: epsilon must not be 7"]
    assert np.isnan(shard.outputs["y"]).all()


def test_warnings_of_each_thread():
    """Each thread hears its own warnings while others come and go, and afterwards warnings are as before."""
    before = (warnings.showwarning, [*warnings.filters])

    def work():
        own = f"of {threading.get_ident()}"
        with captured_warnings() as texts:
            warnings.warn(own, UserWarning, stacklevel=1)
        assert texts == [own]

    assert race(work, 200) == 8 * 200
    assert (warnings.showwarning, [*warnings.filters]) == before


FAILING = {
    "shard_rows": 4,
    "outputs": {"spent": "gdp_delta"},
    "axes": {"mu": [3.0, 2.0, 1.0, -1.0, -2.0], "epsilon": [0.0, 1.0, 2.0]},  # cells 9 to 14 are refused
}


def test_summary_names_the_first_error(tmp_path):
    """The summary has the first cell with an error and its text, also of parts that were there."""
    for computed in (15, 0):
        summary = run(FAILING, tmp_path / "out")
        assert (summary.computed_rows, summary.errors, summary.non_finite) == (computed, 6, {"spent": 6})
        assert summary.first_error.startswith("cell 9: spent: mu must ")
        assert f"6 cells have an error; see the column error. The first is {summary.first_error}" in str(summary)


def test_exit_code_of_failed_cells(tmp_path, capsys):
    """A table with failed cells ends with exit code 3 and the first error, with `--quiet` too, and when resumed."""
    for out, *options in (["a"], ["a"], ["b", "--quiet"], ["b", "--quiet"]):
        assert main(["sweep", "run", str(written(FAILING, tmp_path)), "-o", str(tmp_path / out), *options]) == 3
        errors = capsys.readouterr().err
        assert "hockeystick sweep: 6 cells have an error; the first is cell 9: spent: mu must " in errors


def test_strict(tmp_path, capsys):
    """A strict run ends at a part with a failed cell, also of an earlier run, and names the cell, its inputs and the reason."""
    message = r"cell 9 \(mu = -1.0, epsilon = 0.0\): spent: mu must .*, not -1.0; {} cells are kept"
    with pytest.raises(CellError, match=message.format("[048]")):
        run({**FAILING, "axes": {**FAILING["axes"], "mu": [3.0, 2.0, 1.0, -1.0]}}, tmp_path / "out", strict=True)
    assert main(["sweep", "run", str(written(FAILING, tmp_path)), "-o", str(tmp_path / "cli"), "--strict"]) == 3
    assert "hockeystick sweep: cell " in capsys.readouterr().err
    assert not (tmp_path / "cli/cells/part-000002.parquet").exists()
    run(FAILING, tmp_path / "earlier")
    with pytest.raises(CellError, match=message.format("15")):
        run(FAILING, tmp_path / "earlier", strict=True)
    assert run({**FAILING, "axes": {**FAILING["axes"], "mu": [1.0]}}, tmp_path / "good", strict=True).rows == 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*functions.REGISTERED} - {*functions.PARAMETERS}))
def test_which_arguments_are_integers(name):
    """The table of integers has what the functions themselves refuse with "must be an integer", and nothing else."""
    function = functions.lookup(name)
    given = {argument: GOOD[argument] for argument in required_of(function)}
    for argument in function.parameters:
        if isinstance(GOOD[argument], str | bool):
            continue
        try:
            function.call(**{**given, argument: 2.5}, num_threads=1, on_error="raise")
        except (ValueError, TypeError) as error:
            refused = f"{argument} must be an integer" in str(error)
        else:
            refused = False
        assert refused == (argument in functions.INTEGERS)
