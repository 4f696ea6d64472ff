"""The tables of deep.py come out."""

from __future__ import annotations

import deep
import pytest


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
def test_tables(capsys):
    """Every depth and every inverse has a line of numbers."""
    deep.deltas(list(deep.cells(12, seed=0)))
    deep.inverses(list(deep.cells(3, seed=1)))
    printed = capsys.readouterr().out
    for name in [*(name for _, name in deep.DEPTHS), "noise multiplier", "steps", "sampling rate"]:
        assert name in printed
    assert "nan" not in printed


@pytest.mark.parametrize("delta", [1e-3, 1e-31, 5e-324, 0.0])
def test_every_delta_has_a_depth(delta):
    """A delta of 0 is below all."""
    assert deep.depth(delta) in {name for _, name in deep.DEPTHS}
