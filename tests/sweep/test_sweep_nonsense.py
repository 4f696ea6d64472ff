"""Plans and manifests that nobody means: one line each, at once, and neither a traceback nor a warning."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import processes
from hockeystick.sweep import OutputError, PlanError
from hockeystick.sweep.plan import load, parse

THETA = {"outputs": {"delta": "theta"}, "axes": {"eps": [0.0, 1.0], "r": [0.5]}}
INT64 = np.iinfo(np.int64)


def nested(depth: int) -> list[Any]:
    """Return lists in lists."""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize("text", ["title = " + "[" * 20_000, "a = " + "{a=" * 5000, "a = " + "[" * 400 + "]" * 400])
def test_deep_files(tmp_path: Path, text: str) -> None:
    """A file nested deeper than Python follows is refused by name."""
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(
        PlanError, match=r"^(plan must be a TOML file.*plan.toml: it is nested too deeply|a is unknown;.*)"
    ):
        load(tmp_path / "plan.toml")


@pytest.mark.parametrize("key", ["title", "outputs", "fixed", "axes", "zip", "shard_rows"])
def test_deep_mappings(key: str) -> None:
    """So is a mapping, wherever the nest is."""
    for deep in (nested(100_000), {"eps": nested(100_000)}, [nested(100_000)], {"eps": {"linspace": nested(100_000)}}):
        with pytest.raises(PlanError):
            parse({**THETA, key: deep})


def test_deep_manifests(tmp_path: Path) -> None:
    """A manifest of a hundred thousand brackets holds no plan; the command says so in one line."""
    (tmp_path / "_manifest.json").write_text("[" * 100_000)
    command = [sys.executable, "-m", "hockeystick", "sweep"]
    (tmp_path / "plan.toml").write_text('outputs = { delta = "theta" }\naxes = { eps = [0.0], r = [1.0] }\n')
    for rest in (["report", str(tmp_path)], ["run", str(tmp_path / "plan.toml"), "-o", str(tmp_path)]):
        done = subprocess.run(
            [*command, *rest], capture_output=True, text=True, check=False, timeout=processes.seconds(60)
        )
        assert done.returncode == 2
        assert done.stderr == (
            f"hockeystick sweep: out must be the directory of a sweep, not {tmp_path}: _manifest.json holds no plan\n"
        )


def test_deep_plans_in_manifests(tmp_path: Path) -> None:
    """A manifest whose plan is nested deeply is refused, too."""
    from hockeystick.sweep.store import read_manifest  # noqa: PLC0415 - it needs pyarrow

    (tmp_path / "_manifest.json").write_text('{"format": 3, "plan": ' + '{"a":' * 50_000 + "0" + "}" * 50_001)
    with pytest.raises(OutputError, match="holds no plan"):
        read_manifest(tmp_path)


def test_widest_range() -> None:
    """A range over all integers of 64 bits has its two ends, and one of a third of them its four values."""
    for step, expected in (
        (2**64 - 1, [INT64.min, INT64.max]),
        ((2**64 - 1) // 3, [INT64.min + k * ((2**64 - 1) // 3) for k in range(4)]),
        ((2**64 - 1) // 255, [INT64.min + k * ((2**64 - 1) // 255) for k in range(256)]),
    ):
        axis = {"range": [INT64.min, INT64.max], "step": step}
        (parsed,) = parse({"outputs": {"delta": "theta"}, "fixed": {"r": 1.0}, "axes": {"eps": axis}}).axes
        assert parsed.values[0].tolist() == expected
    (parsed,) = parse({**THETA, "axes": {"eps": {"range": [3, 3], "step": 10**30}}, "fixed": {"r": 1.0}}).axes
    assert parsed.values[0].tolist() == [3]


@pytest.mark.parametrize("ends", [[-1e308, 1e308], [1.7e308, -1.7e308]])
def test_ends_too_far_apart(ends: list[float]) -> None:
    """Values between ends whose distance is no double are refused with their key, and NumPy warns of nothing."""
    given = {**THETA, "axes": {"eps": {"linspace": ends, "num": 3}}, "fixed": {"r": 1.0}}
    with (
        np.errstate(all="raise"),
        pytest.raises(PlanError, match=r"^axes\.eps\.linspace must have finite values between its ends, not \["),
    ):
        parse(given)


def test_ratios_up_to_the_largest_double() -> None:
    """A logspace may end at the largest double."""
    axis = {"logspace": [1.0, sys.float_info.max], "num": 7}
    with np.errstate(all="raise"):
        (parsed,) = parse({**THETA, "axes": {"eps": axis}, "fixed": {"r": 1.0}}).axes
    np.testing.assert_allclose(np.log10(parsed.values[0]), np.arange(7) / 6 * np.log10(sys.float_info.max), rtol=1e-12)


def test_many_names() -> None:
    """Thirty thousand names take less than three seconds of the processor."""
    plan = {**THETA, "fixed": {f"name_{index}": 1.0 for index in range(30_000)}}
    started = time.process_time()
    with pytest.raises(PlanError, match=r"fixed\.name_0 is not an argument of any output"):
        parse(plan)
    assert time.process_time() - started < processes.seconds(3)
