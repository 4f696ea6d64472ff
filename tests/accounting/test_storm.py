"""A few seconds of the storm; by hand, for longer: python tests/storms/accountant_storm.py SECONDS."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import processes

SCRIPT = Path(__file__).parents[1] / "storms" / "accountant_storm.py"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_storm():
    """Random acts of eight threads and of children on one accountant and one filter lose nothing, by plain bookkeeping."""
    said = processes.run([sys.executable, SCRIPT, "4"], limit=120).stdout
    assert "wrong: nothing" in said
