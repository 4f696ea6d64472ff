"""A storm on one accountant, of seconds by day; by hand: python tests/storms/accountant_storm.py SECONDS SEED."""

import os
import sys
from pathlib import Path

import pytest

import effort
import processes

SCRIPT = Path(__file__).parents[1] / "storms" / "accountant_storm.py"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_storm():
    """Random acts of eight threads and of children on one accountant and one filter lose nothing, by plain bookkeeping."""
    said = processes.run(
        [sys.executable, SCRIPT, str(effort.at_night(40, by_day=4)), str(effort.SEED)], limit=240
    ).stdout
    assert "wrong: nothing" in said
