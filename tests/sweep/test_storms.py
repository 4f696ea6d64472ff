"""A storm, of seconds by day: two plans at one place, killed, resumed, damaged; nothing lost, doubled or mixed."""

import sys

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("distributed")
pytest.importorskip("s3fs", reason="needs s3fs")
pytest.importorskip("moto.server", reason="needs moto, flask and flask-cors")
if sys.platform == "win32":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

import effort
import sweep_storm
import worker_storm

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["object store", pytest.param("directory", marks=effort.AT_NIGHT)])
def test_two_plans(kind):
    """What was killed and damaged ends with the bytes of an undisturbed run of one plan, and the other is refused."""
    counts = sweep_storm.storm(kind, effort.at_night(40, by_day=1), effort.SEED)
    assert counts["started"] >= 2
    assert {what: counts[what] for what in sweep_storm.WRONG if counts[what]} == {}


@pytest.mark.parametrize("kind", ["directory", pytest.param("object store", marks=effort.AT_NIGHT)])
def test_workers(kind):
    """Killed before, within and after a publication, workers leave the bytes of an undisturbed run, each part once."""
    counts = worker_storm.storm(kind, effort.at_night(60, by_day=1), effort.SEED)
    assert counts["rounds"] >= 1
    assert {what: counts[what] for what in worker_storm.WRONG if counts[what]} == {}
