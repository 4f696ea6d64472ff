"""Sweeps on a cluster of real processes, of which one is killed in the middle: nothing lost, nothing twice.

By day a worker and the command are killed, a disk is full and Ctrl-C is pressed; the other scenarios wait for the night.
"""

import re

import pytest

from hockeystick.sweep import run
from hockeystick.sweep.folders import Folder
from sweep_plans import whole_files

pytest.importorskip("pyarrow")
pytest.importorskip("distributed")
pytest.importorskip("resource", reason="limits and signals are those of POSIX")

import effort
import sweep_faults as faults

pytestmark = pytest.mark.slow

BY_DAY = ("both_killed", "disk_full", "interrupted")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Give a scheduler and two workers."""
    with faults.cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return what an undisturbed run on one thread of this process leaves."""
    folder = tmp_path_factory.mktemp("whole")
    run(faults.PLAN, folder / "out", num_threads=1)
    return whole_files(Folder(folder / "out"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in BY_DAY else [effort.AT_NIGHT]) for name in faults.SCENARIOS]
)
def test_nothing_lost_nothing_twice(tmp_path, cluster, whole, name):
    """Whatever ends in the middle, what was written stays, and the same command ends with the bytes of a quiet run."""
    scenario = faults.SCENARIOS[name]
    fault = faults.play(scenario, cluster, tmp_path, whole)
    assert fault["exit code"] == scenario.exit_code
    assert re.search(scenario.message, fault["message"])
    assert 5 <= fault["parts there"] < faults.PARTS
    assert fault["parts kept"] >= fault["parts there"]
    assert (fault["rows lost"], fault["rows doubled"], fault["same bytes"]) == (0, 0, True)
