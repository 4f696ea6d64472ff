"""Pictures of accountants: the lines are what the accountants certify, and legends are rounded outward."""

import re
from decimal import Decimal

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import plot

pytest.importorskip("matplotlib")

TRAINING = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 50)


def texts(figure):
    """Return the legend's texts."""
    legend = figure.axes[0].get_legend() or figure.legends[0]
    return [text.get_text() for text in legend.get_texts()]


def test_epsilon_over_steps():
    """The line is the epsilon curve, and its last epsilon is rounded up."""
    figure = plot.epsilon_over_steps({"a": TRAINING}, delta=1e-5, budget=2.0, title="mine")
    line = figure.axes[0].lines[0]
    assert np.array_equal(line.get_ydata(), TRAINING.epsilon_curve(1e-5))
    shown = re.search(r"a: ([\d.]+) after 50 steps", texts(figure)[0])[1]
    assert Decimal(shown) >= Decimal(TRAINING.epsilon(1e-5))
    assert figure.get_suptitle() == "mine\ncertified ε at δ = 1e-05"


def test_privacy_profile():
    """The line is delta over epsilon, to where delta is the least that is asked for."""
    line = plot.privacy_profile(TRAINING, delta=1e-6).axes[0].lines[0]
    epsilons = line.get_xdata()
    assert epsilons[-1] == TRAINING.epsilon(1e-6)
    assert np.array_equal(line.get_ydata(), TRAINING.delta(epsilons))


def test_trade_off():
    """The line is the trade-off function, and what an attack finds is rounded up."""
    figure = plot.trade_off({"a": TRAINING})
    line = figure.axes[0].lines[0]
    assert np.array_equal(line.get_ydata(), TRAINING.trade_off(line.get_xdata()))
    found, advantage = re.search(
        r"at most ([\d.]+)% at 1% false alarms; advantage at most ([\d.]+)%", texts(figure)[0]
    ).groups()
    assert Decimal(found) / 100 >= 1 - Decimal(TRAINING.trade_off(0.01))
    assert Decimal(advantage) / 100 >= Decimal(TRAINING.advantage())


WORDS = "--num-records 1000 --batch-size 10 --epochs 2 --noise-multiplier 1"


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", ["epsilon", "profile", "trade-off"])
def test_command(kind, written, tmp_path):
    """The command writes the picture and its name."""
    picture = tmp_path / "p.svg"
    assert written(f"plot {kind} {WORDS} -o {picture}") == f"{picture}\n"
    assert picture.stat().st_size > 1000


def test_command_refuses_steps_of_shuffled_batches(refused):
    """Shuffled batches have no epsilon after a step."""
    refused(f"plot epsilon {WORDS} --sampling shuffled", "only after a pass")
