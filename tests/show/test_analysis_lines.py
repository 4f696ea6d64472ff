"""The picture of all analyses of a training: which lines there are, and that they can be told apart in grey."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import refused_calls
from hockeystick import plot, utility

image = pytest.importorskip("matplotlib.image")

TRAINING = SimpleNamespace(delta=1e-6)  # all that a picture tells of it
ROUNDS = np.array([1, 10, 100])
ONE, EMPTY = [1.0, 2.0, 3.0], [np.nan] * 3
MANY = {f"line{k}": [k + 1.0, k + 2.0, k + 3.0] for k in range(10)}


def found(**curves: list[float]) -> utility.Analyses:
    """Return analyses with these values; those whose name begins with "printed" are printed."""
    return utility.Analyses(
        TRAINING,
        ROUNDS,
        tuple(
            utility.Analysis(name, "", "record", "", "", name.startswith("printed"), np.array(values), "a reason")
            for name, values in curves.items()
        ),
    )


def test_lines_and_their_dashes() -> None:
    """Each analysis has its line and its name; a printed one is dashed, others are not."""
    figure = plot.analyses(found(one=[1.0, 2.0, 3.0], printed=[2.0, 3.0, np.nan]))
    lines = figure.axes[0].lines
    assert [line.get_linestyle() for line in lines] == ["-", "--"]
    assert [line.get_label() for line in lines] == ["one (record)", "printed (record)"]
    assert list(lines[0].get_ydata()) == [1.0, 2.0, 3.0]
    assert list(lines[0].get_xdata()) == [1, 10, 100]


def test_equal_lines_are_one() -> None:
    """Lines within a percent are drawn once with both names, unless one is certified and the other printed."""
    figure = plot.analyses(
        found(one=[1.0, 2.0, 3.0], two=[1.005, 2.0, 3.0], printed=[1.0, 2.0, 3.0], other=[1.0, 2.1, 3.0])
    )
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert labels == ["one (record) = two (record)", "printed (record)", "other (record)"]


def test_at_most_eight_lines_with_their_own_markers() -> None:
    """What has no place is named in the title; eight lines have eight markers."""
    figure = plot.analyses(found(**MANY))
    lines = figure.axes[0].lines
    assert len({line.get_marker() for line in lines}) == len(lines) == 8
    assert "line8 (record), line9 (record)" in " ".join(figure.get_suptitle().split())


REFUSED = r"""
plot.analyses(found(one=ONE, empty=EMPTY), names=["nobody"]) -> names must be among one, empty, not 'nobody'
plot.analyses(found(one=ONE, empty=EMPTY), names=["empty"]) -> 'empty' does not: a reason
plot.analyses(found(empty=EMPTY)) -> found must have an analysis
plot.analyses(found(**MANY), names=list(MANY)) -> names must give at most 8 lines, not 10
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """A name that does not exist, or has no values, is refused with the reason, and so are too many; without any curve there is no picture."""
    refused_calls.check(call, reason, globals())


@pytest.mark.slow
def test_a_real_one(tmp_path: Path) -> None:
    """A training's picture has ink on it, also in grey."""
    training = utility.analyses(
        num_clients=10, num_records=100, rounds=[1, 5, 20], noise_std=0.5, lipschitz=1.0, smoothness=1.0,
        learning_rate=0.5, diameter=0.1, delta=1e-6,
    )  # fmt: skip
    plot.analyses(training).savefig(tmp_path / "analyses.png")
    pixels = image.imread(tmp_path / "analyses.png")[..., :3]
    assert min(pixels.shape[:2]) >= 400
    assert 0.01 < (pixels.mean(axis=2) < 0.8).mean() < 0.3
