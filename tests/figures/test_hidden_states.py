"""The figures of hidden states: no exact value lies above a certified bound, and regions name the smallest one."""

import numpy as np
import pytest

import drawn_figures
import effort
from hockeystick import figures
from hockeystick.figures import hidden_states


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("name", "panel", "curves"),
    [
        ("002/once", "noise_std", ("Theorem 4, published", "nonlinear", "shifted", "hybrid")),
        ("002/every-round", "epsilon", ("composition", "shifted", "joint")),
    ],
)
def test_bounds_are_above_the_truth(name: str, panel: str, curves: tuple[str, ...]) -> None:
    """Every bound is at least the lower end of the exact delta."""
    for _, rows in figures.find(name).table().groups(panel):
        exact = rows.where(curve="exact chain")["delta"]
        assert len(exact) > 20
        for curve in curves:
            assert np.all(rows.where(curve=curve)["delta"] >= exact * (1 - 1e-12))


def test_regions() -> None:
    """Each cell has one of the bounds, delta falls as epsilon grows, and one round has only what it leaks itself."""
    table = figures.find("002/once-regions").table()
    for _, rows in table.groups("diameter"):
        delta = rows["delta"].reshape(300, 61)
        assert np.all(np.diff(delta, axis=0) <= 0)
        assert set(rows["bound"]) <= {"contraction", "nonlinear", "shifted", "hybrid", "plain"}
        assert len(set(delta[:, 0] / table.where(diameter=3.0)["delta"].reshape(300, 61)[:, 0])) == 1


@pytest.mark.slow
def test_regions_of_every_round() -> None:
    """The same of a record used in every round: composition is the smallest bound for few rounds, the joint one for many."""
    points = effort.at_night(24, by_day=4)
    table = hidden_states.compute_every_round_regions(points)
    for _, rows in table.groups("diameter"):
        assert np.all(np.diff(rows["delta"].reshape(points, -1), axis=0) <= 0)
        bound = rows["bound"].reshape(points, -1)
        assert set(bound[:, 0]) == {"plain"}
        assert set(bound[:, -1]) == {"joint"}
    drawn_figures.check("002/every-round-regions", table)
