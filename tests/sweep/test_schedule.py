"""The order of the shards and the time left: what is dear comes first, and nothing comes twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.sweep import running
from hockeystick.sweep.plan import Plan, parse


def plan_of(slow: int, fast: int, shard_rows: int) -> Plan:
    """Return a plan over two axes."""
    axes = {"eps": {"range": [1, slow]}, "r": {"range": [1, fast]}}
    return parse({"shard_rows": shard_rows, "outputs": {"delta": "theta"}, "axes": axes})


@given(
    slow=st.integers(1, 30),
    fast=st.integers(1, 30),
    shard_rows=st.integers(1, 40),
    late=st.integers(0, 9),
    missing=st.randoms(use_true_random=False),
)
def test_every_shard_once(slow: int, fast: int, shard_rows: int, late: int, missing: object) -> None:
    """Every missing shard comes once, however many are under way and whatever they cost."""
    plan = plan_of(slow, fast, shard_rows)
    wanted = [index for index in range(plan.num_shards) if missing.random() < 0.8]  # type: ignore[attr-defined]
    waiting, given_out, in_flight = running.Schedule(plan, wanted), [], []
    while True:
        index = waiting.next()
        if index is not None:
            given_out.append(index)
            in_flight.append(index)
        if index is None and not in_flight:
            break
        if index is None or len(in_flight) > late:
            waiting.finished(in_flight.pop(0), missing.random())  # type: ignore[attr-defined]
    assert sorted(given_out) == wanted
    assert waiting.next() is None


def test_dear_shards_first() -> None:
    """Once some shards over the whole table are timed, those of the dearest values come first, in the table's order."""
    plan = plan_of(8, 80, 10)  # 64 shards, 8 for each value of the first axis
    cost = {value: (7 * value) % 8 + 1.0 for value in range(8)}  # no order of the axis
    waiting = running.Schedule(plan, range(64))
    pilots = [waiting.next() for _ in range(16)]
    assert {index // 8 for index in pilots} == {*range(8)}  # all over the table
    for index in pilots:
        waiting.finished(index, cost[index // 8])
    rest = [waiting.next() for _ in range(48)]
    assert rest == sorted(rest, key=lambda index: (-cost[index // 8], index))


def test_seconds_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time left is in the proportion of the expected cost that is left to the cost that is done, on any number of cores."""
    now = 100.0
    monkeypatch.setattr(running.time, "monotonic", lambda: now)
    plan = plan_of(2, 40, 10)  # 8 shards; those of the second value cost ten times as much
    cost = [1.0] * 4 + [10.0] * 4
    waiting = running.Schedule(plan, range(8))
    assert waiting.seconds_left() is None
    first, second = waiting.next(), waiting.next()
    assert {first // 4, second // 4} == {0, 1}
    waiting.finished(first, cost[first])
    now = 101.0
    assert waiting.seconds_left() == pytest.approx(7.0 * cost[first] / 1.0)  # nothing else is known yet
    waiting.finished(second, cost[second])
    now = 105.5  # 11 of 44 are done, in half the time that one core would take
    assert waiting.seconds_left() == pytest.approx(5.5 * 33 / 11)
    while (index := waiting.next()) is not None:
        waiting.finished(index, cost[index])
    assert waiting.seconds_left() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("noise", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("shape", ["equal", "halves", "geometric"])
def test_time_left_of_noisy_shards(monkeypatch: pytest.MonkeyPatch, noise: float, shape: str) -> None:
    """Where times differ by chance, too, the time left is right in the median, 15, 30 and 60 % of the way."""
    clock = [0.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: clock[0])
    plan = plan_of(600, 10, 10)
    cost = {
        "equal": np.ones(600),
        "halves": np.where(np.arange(600) < 300, 1.0, 10.0),
        "geometric": 10 ** np.linspace(0.0, 2.0, 600),
    }[shape]
    ratios = []
    for seed in range(25):
        times = cost * np.random.default_rng(seed).lognormal(0.0, noise, 600)
        clock[0] = 0.0
        waiting, marks = running.Schedule(plan, range(600)), [0.15, 0.3, 0.6]
        found = []
        while (index := waiting.next()) is not None:
            clock[0] += times[index]
            waiting.finished(index, times[index])
            if marks and clock[0] >= marks[0] * times.sum():
                marks.pop(0)
                found.append(waiting.seconds_left() / (times.sum() - clock[0]))
        ratios.append(found)
    middle = np.median(ratios, axis=0)
    assert np.all((middle > 0.8) & (middle < 1.25)), middle
