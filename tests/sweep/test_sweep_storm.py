"""A storm, of seconds by day: two plans at one place, killed, resumed, damaged; nothing lost, doubled or mixed."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("s3fs", reason="needs s3fs")
pytest.importorskip("moto.server", reason="needs moto[server]")
if sys.platform == "win32":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

import effort
import sweep_storm

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["directory", "object store"])
def test_storm(kind: str) -> None:
    """What was killed and damaged ends with the bytes of an undisturbed run of one plan, and the other is refused."""
    counts = sweep_storm.storm(kind, effort.at_night(40, by_day=4), effort.SEED)
    assert counts.started >= 2
    assert counts.bad() == {}
