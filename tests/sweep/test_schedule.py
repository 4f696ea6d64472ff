"""The order of the shards and the time left: all over the table at any moment, and nothing twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick.sweep import running


@given(st.lists(st.integers(0, 10**5), max_size=300, unique=True).map(sorted))
def test_every_shard_once(missing: list[int]) -> None:
    """Every missing shard comes once."""
    waiting = running.Schedule(missing)
    assert len(waiting) == len(missing)
    assert sorted(waiting.next() for _ in missing) == missing
    assert waiting.next() is None


def test_every_beginning_is_spread_over_the_table() -> None:
    """Of the first n shards of a thousand every stretch of the table has its share, up to four."""
    waiting = running.Schedule(range(1000))
    order = [waiting.next() for _ in range(1000)]
    for first in (4, 20, 100, 500):
        done = np.sort(order[:first])
        assert np.abs(np.arange(1, first + 1) - done * first / 1000).max() < 4


@pytest.mark.parametrize("noise", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("shape", ["equal", "halves", "geometric"])
def test_time_left(monkeypatch: pytest.MonkeyPatch, noise: float, shape: str) -> None:
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
