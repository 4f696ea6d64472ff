"""Cells that a function refuses: their texts are those of a call with the cell alone, and how a run says so."""

import itertools
import re
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hockeystick as hs
from hockeystick.cli import main
from hockeystick.sweep import CellError, functions, run
from hockeystick.sweep.evaluate import CELL_ERRORS, Shard, captured_warnings, evaluate
from hockeystick.sweep.plan import parse
from racing import race
from sweep_plans import GOOD, required_of, written

pytest.importorskip("pyarrow")

BAD = (-1, 0, 3, 1e100)  # outside some domains, and together with others outside others


def told(function: functions.Function, arguments: dict[str, Any]) -> tuple[float, str]:
    """Return the value and the text of a call with one cell; the place in its array is no matter of the cell's."""
    try:
        value = function.call(**arguments, num_threads=1, on_error="raise")
    except CELL_ERRORS as error:
        return np.nan, re.sub(r" in cell \(0,\)$", "", str(error))
    return float(getattr(value, "delta", value)), ""


def text_of(shard: Shard, row: int) -> str:
    """Return the error text of a cell."""
    code = shard.errors.codes[row]
    return "" if code < 0 else shard.errors.texts[code].removeprefix("y: ")


@pytest.mark.share(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*functions.REGISTERED} - {*functions.PARAMETERS}))
def test_texts_are_those_of_the_cell_alone(name: str) -> None:
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


def test_numbers_in_texts() -> None:
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
def calls(register: Callable[[Callable[..., Any]], None]) -> list[int]:
    """Register `testing.gdp`, which is `gdp_delta`, and return a list that grows by the cells of each call."""
    made: list[int] = []

    def gdp(mu: Any, epsilon: Any, *, num_threads: Any = None, on_error: Any = "raise") -> Any:
        made.append(np.broadcast(mu, epsilon).size)
        if np.ndim(epsilon) == 0 and epsilon == 7.0:
            raise ValueError("epsilon must not be 7")
        return hs.gdp_delta(mu, epsilon, num_threads=num_threads, on_error=on_error)

    register(gdp)
    return made


def test_one_call_for_all_bad_cells(calls: list[int]) -> None:
    """Bad cells, each with a value of its own, cost no call of their own."""
    axes = {"mu": {"linspace": [-1.0, 1.0], "num": 2001}, "epsilon": {"linspace": [0.0, 1.0], "num": 5}}
    shard = evaluate(parse({"outputs": {"y": "testing.gdp"}, "axes": axes}), range(10_005), 1)
    assert len(calls) == 1
    assert (len(shard.errors.texts), int((shard.errors.codes >= 0).sum())) == (1000, 5000)  # mu = 0 is good


def test_what_no_cell_can_mend_is_asked_once(calls: list[int]) -> None:
    """Where constants alone are refused, all cells get the text by two calls: with all cells, and with none."""
    plan = parse({"outputs": {"y": "testing.gdp"}, "fixed": {"epsilon": 7.0}, "axes": {"mu": {"range": [1, 1000]}}})
    shard = evaluate(plan, range(1000), 1)
    assert calls == [1000, 0]
    assert shard.errors.texts == ["y: epsilon must not be 7"]
    assert np.isnan(shard.outputs["y"]).all()


def test_warnings_of_each_thread() -> None:
    """Each thread hears its own warnings while others come and go, and afterwards warnings are as before."""
    before = (warnings.showwarning, [*warnings.filters])

    def work() -> None:
        own = f"of {threading.get_ident()}"
        with captured_warnings() as texts:
            warnings.warn(own, UserWarning, stacklevel=1)
        assert texts == [own]

    assert race(work, 200) == 8 * 200
    assert (warnings.showwarning, [*warnings.filters]) == before


PLAN = {
    "shard_rows": 4,
    "outputs": {"spent": "gdp_delta"},
    "axes": {"mu": [3.0, 2.0, 1.0, -1.0, -2.0], "epsilon": [0.0, 1.0, 2.0]},  # cells 9 to 14 are refused
}


def test_summary_names_the_first_error(tmp_path: Path) -> None:
    """The summary has the first cell with an error and its text, also of parts that were there."""
    for computed in (15, 0):
        summary = run(PLAN, tmp_path / "out")
        assert (summary.computed_rows, summary.errors, summary.non_finite) == (computed, 6, {"spent": 6})
        assert summary.first_error.startswith("cell 9: spent: mu must ")
        assert f"6 cells have an error; see the column error. The first is {summary.first_error}" in str(summary)


def test_exit_code_of_failed_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table with failed cells ends with exit code 3 and the first error, with `--quiet` too, and when resumed."""
    for out, *options in (["a"], ["a"], ["b", "--quiet"], ["b", "--quiet"]):
        assert main(["sweep", "run", str(written(PLAN, tmp_path)), "-o", str(tmp_path / out), *options]) == 3
        errors = capsys.readouterr().err
        assert "hockeystick sweep: 6 cells have an error; the first is cell 9: spent: mu must " in errors


def test_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A strict run ends at a part with a failed cell, also of an earlier run, and names the cell, its inputs and the reason."""
    message = r"cell 9 \(mu = -1.0, epsilon = 0.0\): spent: mu must .*, not -1.0; {} cells are kept"
    with pytest.raises(CellError, match=message.format("[048]")):
        run({**PLAN, "axes": {**PLAN["axes"], "mu": [3.0, 2.0, 1.0, -1.0]}}, tmp_path / "out", strict=True)
    assert main(["sweep", "run", str(written(PLAN, tmp_path)), "-o", str(tmp_path / "cli"), "--strict"]) == 3
    assert "hockeystick sweep: cell " in capsys.readouterr().err
    assert not (tmp_path / "cli/cells/part-000002.parquet").exists()
    run(PLAN, tmp_path / "earlier")
    with pytest.raises(CellError, match=message.format("15")):
        run(PLAN, tmp_path / "earlier", strict=True)
    assert run({**PLAN, "axes": {**PLAN["axes"], "mu": [1.0]}}, tmp_path / "good", strict=True).rows == 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*functions.REGISTERED} - {*functions.PARAMETERS}))
def test_which_arguments_are_integers(name: str) -> None:
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
