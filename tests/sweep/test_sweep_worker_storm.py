"""A storm over workers, one round by day: killed while they publish, with and without their client; nothing is lost or torn."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("distributed")
pytest.importorskip("s3fs", reason="needs s3fs")
pytest.importorskip("moto.server", reason="needs moto[server]")
if sys.platform == "win32":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

import effort
import worker_storm

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["directory", "object store"])
def test_storm(kind: str) -> None:
    """Killed before, within and after a publication, workers leave the bytes of an undisturbed run, each part once."""
    counts = worker_storm.storm(kind, effort.at_night(60, by_day=1), effort.SEED)
    assert counts.rounds >= 1
    assert counts.bad() == {}
