"""A few seconds of the storm over workers: killed while they publish, with and without their client; nothing is lost or torn."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("distributed")
pytest.importorskip("s3fs", reason="needs s3fs")
pytest.importorskip("moto.server", reason="needs moto[server]")
if sys.platform == "win32":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

import worker_storm

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["directory", "object store"])
def test_storm(kind: str) -> None:
    """Killed before, within and after a publication, workers leave the bytes of an undisturbed run, each part once."""
    counts = worker_storm.storm(kind, 1.0)
    assert counts.rounds >= 1
    assert counts.bad() == {}
