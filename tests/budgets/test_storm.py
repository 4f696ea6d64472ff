"""A storm on one file of client ledgers, of seconds by day; by hand: python tests/storms/ledger_storm.py SECONDS SEED."""

import os

import pytest

import effort
import ledger_storm


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_storm():
    """Threads, processes, kills, forks and flipped bits lose no charge, exceed no budget and change no answer."""
    counts = ledger_storm.storm(effort.at_night(80, by_day=5), effort.SEED)
    assert {what: counts[what] for what in ledger_storm.FAILURES} == dict.fromkeys(ledger_storm.FAILURES, 0)
    for what in ("promised", "enrolled", "killed", "damaged and refused", "fork refused"):
        assert counts[what] > 0
