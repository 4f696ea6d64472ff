"""Sweeps: what a table holds, and what becomes of bad cells."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import federated, published
from hockeystick.sweep import run
from hockeystick.sweep.plan import load, parse
from sweep_plans import THETA, changed
from written_files import content

pq = pytest.importorskip("pyarrow.parquet")

EXAMPLES = Path(__file__).parents[2] / "examples"


def table(out: Path) -> Any:
    """Return the dataset of a sweep as any reader would."""
    return pq.read_table(out / "cells")


def column(out: Path, name: str) -> Any:
    """Return one column as an array."""
    return table(out)[name].to_numpy()


def root(
    x: Any, *, factor: Any = 1.0, schedule: str = "constant", num_threads: Any = None, on_error: str = "raise"
) -> Any:
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
def stand_in(register: Callable[[Callable[..., Any]], None]) -> None:
    """Register the stand-in as `testing.root`."""
    register(root)


def test_ends_are_included_exactly(tmp_path: Path) -> None:
    """Linspace, logspace and range end on the numbers written in the plan."""
    axes = {"epsilon": {"linspace": [0.1, 0.7], "num": 4}, "r": {"logspace": [1e-3, 0.3], "num": 6}}
    run(changed(THETA, axes=axes), tmp_path / "out")
    assert {0.1, 0.7} <= {*column(tmp_path / "out", "epsilon")}
    assert {1e-3, 0.3} <= {*column(tmp_path / "out", "r")}
    plan = parse(changed(THETA, axes={"epsilon": {"range": [1, 10], "step": 3}, "r": [1.0]}))
    assert plan.columns["epsilon"].tolist() == [1, 4, 7, 10]


@pytest.mark.usefixtures("stand_in")
def test_zipped_axes_move_together(tmp_path: Path) -> None:
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
def test_fixed_and_own_arguments(tmp_path: Path) -> None:
    """Fixed arguments go to every output that takes them, own ones to one output; whole numbers stay whole."""
    outputs = {"plain": "testing.root", "twice": {"function": "testing.root", "arguments": {"factor": 2}}}
    run({"outputs": outputs, "fixed": {"schedule": "continuous"}, "axes": {"x": [1, 4]}}, tmp_path / "out")
    cells = table(tmp_path / "out")
    assert cells["plain"].to_pylist() == [4.0, 5.0]
    assert cells["twice"].to_pylist() == [5.0, 7.0]
    assert [str(cells.schema.field(name).type) for name in ("x", "schedule")] == ["int64", "string"]
    assert cells.schema.field("twice").metadata[b"function"] == b"testing.root"


def test_mapping_and_file_agree(tmp_path: Path) -> None:
    """A mapping is a plan as good as a file, and both leave the same bytes, whatever the number of threads."""
    text = '[outputs]\ndelta = "theta"\n[axes]\nepsilon = [0, 1]\nr = [1.5, 2.5]\n'
    (tmp_path / "plan.toml").write_text(text)
    run(tmp_path / "plan.toml", tmp_path / "file", num_threads=2)
    run(
        {"outputs": {"delta": "theta"}, "axes": {"epsilon": [0, 1], "r": [1.5, 2.5]}},
        tmp_path / "mapping",
        num_threads=1,
    )
    assert content(tmp_path / "file") == content(tmp_path / "mapping")


def test_callers_settings_change_nothing(tmp_path: Path) -> None:
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


def test_progress_is_told(tmp_path: Path) -> None:
    """The callback hears of the start, each of the shards of 7, 7 and 6 cells, and the end; of the time left once something is known."""
    for threads in (1, 2):
        told: list[tuple[int, int, float | None]] = []
        run(THETA, tmp_path / str(threads), num_threads=threads, progress=lambda *given, told=told: told.append(given))
        done, total, left = zip(*told, strict=True)
        assert {*total} == {20}
        assert (done[0], sorted(np.diff(done))) == (0, [6, 7, 7])
        assert (left[0], left[-1]) == (None, 0.0)
        assert all(seconds is not None and seconds > 0 for seconds in left[1:-1])


@pytest.mark.usefixtures("stand_in")
def test_refused_arrays_are_asked_cell_by_cell(tmp_path: Path) -> None:
    """Where a function refuses a whole array, the good cells are computed all the same."""
    plan = {"outputs": {"y": "testing.root"}, "fixed": {"schedule": "cyclic"}, "axes": {"x": [4.0, -1.0, 9.0]}}
    run(plan, tmp_path / "out")
    np.testing.assert_array_equal(column(tmp_path / "out", "y"), [3.0, np.nan, 4.0])


def test_ufunc_outside_its_domain(tmp_path: Path) -> None:
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
def test_values_are_those_of_a_call_with_the_cell(tmp_path: Path, name: str) -> None:
    """Words beside numbers, and what might vary by round: a grid of constants, each with what the function gives for its cell."""
    fixed, axes = GRIDS[name]
    run({"outputs": {"y": f"federated.{name}"}, "fixed": fixed, "axes": axes}, tmp_path / "out")
    for cell in table(tmp_path / "out").to_pylist():
        arguments = {argument: cell[argument] for argument in (*fixed, *axes)}
        assert cell["y"] == pytest.approx(getattr(federated, name)(**arguments), rel=1e-14)


def test_unsound_formula_says_so(tmp_path: Path) -> None:
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
def test_examples(tmp_path: Path, name: str) -> None:
    """The plans that ship with the source run without a bad cell."""
    summary = run(EXAMPLES / f"{name}.toml", tmp_path / "out")
    assert (summary.errors, {*summary.non_finite.values()}) == (0, {0})


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
def test_million_dpsgd_cells(tmp_path: Path) -> None:
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


def test_table6_refutes_the_published_formula(tmp_path: Path) -> None:
    """On the grid of Table 6 every certified parameter is far above the printed one, which is no bound."""
    run(EXAMPLES / "fedavg_table6.toml", tmp_path / "out")
    certified, printed = (column(tmp_path / "out", name) for name in ("certified", "published"))
    assert np.all(certified > 5 * printed)
