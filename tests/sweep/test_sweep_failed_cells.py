"""Cells that a function refuses: how a sweep says so, and what is refused before the first cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hockeystick.cli import main
from hockeystick.sweep import CellError, PlanError, functions, run

pytest.importorskip("pyarrow")

PLAN = {
    "shard_rows": 4,
    "outputs": {"spent": "gdp_delta"},
    "axes": {"mu": [3.0, 2.0, 1.0, -1.0, -2.0], "eps": [0.0, 1.0, 2.0]},  # cells 9 to 14 are refused
}
TEXT = """
shard_rows = 4
[outputs]
spent = "gdp_delta"
[axes]
mu = [3.0, 2.0, 1.0, -1.0, -2.0]
eps = [0.0, 1.0, 2.0]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Return the plan in a file."""
    file = tmp_path / "plan.toml"
    file.write_text(TEXT)
    return file


def test_summary_names_the_first_error(tmp_path: Path) -> None:
    """The summary has the first cell with an error and its text, also of parts that were there."""
    for computed in (15, 0):
        summary = run(PLAN, tmp_path / "out")
        assert (summary.computed_rows, summary.errors) == (computed, 6)
        assert summary.first_error.startswith("cell 9: spent: mu must ")
        assert f"6 cells have an error; see the column error. The first is {summary.first_error}" in str(summary)


@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_exit_code_of_failed_cells(
    tmp_path: Path, plan: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """A table with failed cells ends with exit code 3 and the first error, with `--quiet` too, and when resumed."""
    for _ in range(2):
        assert main(["sweep", "run", str(plan), "-o", str(tmp_path / "out"), *options]) == 3
        errors = capsys.readouterr().err
        assert "hockeystick sweep: 6 cells have an error; the first is cell 9: spent: mu must " in errors


def test_strict_stops(tmp_path: Path, plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A strict run ends at the first part with a failed cell, and names the cell, its inputs and the reason."""
    message = r"cell 9 \(mu = -1.0, eps = 0.0\): spent: mu must .*, not -1.0; [048] cells are kept"
    with pytest.raises(CellError, match=message):
        run({**PLAN, "axes": {**PLAN["axes"], "mu": [3.0, 2.0, 1.0, -1.0]}}, tmp_path / "out", strict=True)
    assert main(["sweep", "run", str(plan), "-o", str(tmp_path / "cli"), "--strict"]) == 3
    assert "hockeystick sweep: cell " in capsys.readouterr().err
    assert not (tmp_path / "cli/cells/part-000002.parquet").exists()


def test_strict_with_an_earlier_table(tmp_path: Path) -> None:
    """A strict run does not accept the failed cells of an earlier one."""
    run(PLAN, tmp_path / "out")
    with pytest.raises(CellError, match=r"cell 9 \(mu = -1.0, eps = 0.0\): .*; 15 cells are kept"):
        run(PLAN, tmp_path / "out", strict=True)


def test_strict_without_failed_cells(tmp_path: Path) -> None:
    """A strict run of good cells is a run."""
    assert run({**PLAN, "axes": {**PLAN["axes"], "mu": [1.0]}}, tmp_path / "out", strict=True).rows == 3


DPSGD: dict[str, Any] = {
    "outputs": {"epsilon": "dpsgd_epsilon"},
    "fixed": {"delta": 1e-5, "sampling_rate": 0.01},
    "axes": {"noise_multiplier": [1.0, 2.0], "steps": {"logspace": [1, 100000], "num": 20}},
}


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({}, r"axes\.steps must be an integer, not 1\.83"),
        (
            {"axes": {"noise_multiplier": [1.0]}, "fixed": {**DPSGD["fixed"], "steps": 2.5}},
            r"fixed\.steps must be an integer, not 2\.5",
        ),
        ({"axes": {"noise_multiplier": [1.0], "steps": [1, 2.5]}}, r"axes\.steps must be an integer, not 2\.5"),
        (
            {"axes": {"noise_multiplier": [1.0]}, "zip": [{"steps": [1.5]}]},
            r"zip\[0\]\.steps must be an integer, not 1\.5",
        ),
        (
            {
                "outputs": {"epsilon": {"function": "dpsgd_epsilon", "arguments": {"steps": 0.5}}},
                "axes": {"noise_multiplier": [1.0]},
            },
            r"outputs\.epsilon\.arguments\.steps must be an integer, not 0\.5",
        ),
    ],
)
def test_fractions_are_refused_before_the_first_cell(tmp_path: Path, sections: dict[str, Any], message: str) -> None:
    """A fraction where an argument counts something is refused with its key, and nothing is written."""
    with pytest.raises(PlanError, match=message):
        run({**DPSGD, **sections}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_whole_values_of_any_type(tmp_path: Path) -> None:
    """Values without a fraction pass, whatever their type."""
    axes = {"noise_multiplier": [1.0], "steps": {"linspace": [1, 5], "num": 3}}
    assert run({**DPSGD, "axes": axes}, tmp_path / "out").errors == 0


VALUES = {
    **dict.fromkeys(("eps", "epsilon", "noise_std", "noise_scale", "noise_multiplier", "lipschitz", "radius"), 1.0),
    **dict.fromkeys(("clip_norm", "diameter", "gradient_bound", "gradient_std", "prox", "image_radius", "image_high"), 1.0),
    **dict.fromkeys(("batch_size", "index", "dimension", "local_steps", "silos_per_round", "ball_dimension"), 2),
    **dict.fromkeys(("num_clients", "num_records", "num_silos", "num_users", "rounds", "steps", "period"), 8),
    **dict.fromkeys(("learning_rate", "sampling_rate", "strong_convexity", "fpr", "p", "suffix"), 0.25),
    "delta": 1e-5, "smoothness": 1.0, "mu": 1.0, "order": 2.0, "image_low": 0.0, "loss": "convex", "c": 1.0, "z": 1.0,
    "schedule": "constant", "eta": 0.5, "first": 1.0, "weights": 1.0, "distance": 1.0, "replacement": True, "quick": True,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({*functions.REGISTERED} - {*functions.UFUNC_PARAMETERS}))
def test_which_arguments_are_integers(name: str) -> None:
    """The table of integers has what the functions themselves refuse with "must be an integer", and nothing else."""
    function = functions.lookup(name)
    given = {argument: VALUES[argument] for argument in function.required}
    if {"noise_std", "noise_scale"} <= {*function.parameters}:  # one of the two is needed
        given["noise_std"] = 1.0
    for argument in function.parameters:
        if isinstance(VALUES[argument], str | bool):
            continue
        try:
            function.call(**{**given, argument: 2.5}, num_threads=1, on_error="raise")
        except (ValueError, TypeError) as error:
            refused = f"{argument} must be an integer" in str(error)
        else:
            refused = False
        assert refused == (argument in functions.INTEGERS)
