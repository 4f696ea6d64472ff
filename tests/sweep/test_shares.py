"""Shares of a plan for job arrays: computed apart, they merge to the bytes of one run, or the merge says what is wrong."""

import json
import os
import re
import shutil
import signal

import pytest

import processes
from hockeystick.sweep import OutputError, PlanError, merge, run
from hockeystick.sweep.plan import Share
from sweep_plans import content, stored

pytest.importorskip("pyarrow")

PLAN = {
    "title": "é",
    "shard_rows": 3,
    "outputs": {"delta": "theta", "log_delta": "log_theta"},
    "axes": {"epsilon": {"linspace": [0.0, 4.0], "num": 7}, "r": {"logspace": [0.1, 10.0], "num": 4}},
}  # ten parts


def shares(folder, jobs):
    """Run every share of the plan in a directory of its own."""
    outs = [folder / f"share-{number}" for number in range(1, jobs + 1)]
    for number, out in enumerate(outs, 1):
        run(PLAN, out, shards=(number, jobs))
    return outs


@pytest.fixture(scope="module")
def alone(done):
    """Return the files of one run."""
    return content(done(PLAN))


def test_shares_are_a_partition():
    """Every shard is in one share; sizes differ by one at most; an axis of n parts does not meet a share in step."""
    for num_shards in (1, 2, 7, 10, 64, 1000):
        for jobs in {1, 2, 3, 7, num_shards} & set(range(1, num_shards + 1)):
            parts = [Share(number, jobs).shards(num_shards) for number in range(1, jobs + 1)]
            assert sorted(index for part in parts for index in part) == list(range(num_shards))
            assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert {index % 10 for index in Share(1, 10).shards(100)} == set(range(10))


@pytest.mark.parametrize("jobs", [1, 2, 3, 10])
def test_merged_shares_are_one_run(tmp_path, alone, jobs):
    """The merged directory has the bytes of one run, its manifest too, and can be resumed as one."""
    outs = shares(tmp_path, jobs)
    merge(outs[::-1], tmp_path / "out")
    assert content(tmp_path / "out") == alone
    assert run(PLAN, tmp_path / "out").computed_rows == 0


def test_share_resumes_and_says_so(tmp_path):
    """A share is resumed in its directory, which takes no other share and not the whole plan."""
    summary = run(PLAN, tmp_path, shards=(2, 4))
    assert str(summary).startswith("share 2 of 4: 6 cells\n")
    assert summary.rows == summary.computed_rows == 6
    (tmp_path / "cells/part-000004.parquet").unlink()
    assert run(PLAN, tmp_path, shards=(2, 4)).computed_rows == 3
    for other, message in (((3, 4), "for share '2 of 4', not for share '3 of 4'"), (None, "not for the whole plan")):
        with pytest.raises(OutputError, match=re.escape(message)):
            run(PLAN, tmp_path, shards=other)
    mine, others = (tmp_path / f"cells/part-00000{number}.parquet" for number in (1, 0))
    shutil.copy(mine, others)
    with pytest.raises(OutputError, match=r"out must hold this sweep alone, not .*part-000000\.parquet"):
        run(PLAN, tmp_path, shards=(2, 4))


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"shards": (0, 4)}, ValueError, "shards must be (number, jobs) with 1 <= number <= jobs, not (0, 4)"),
        ({"shards": (5, 4)}, ValueError, "1 <= number <= jobs, not (5, 4)"),
        ({"shards": (1, 11)}, PlanError, "shards must be for at most 10 jobs, the parts of this plan, not 11"),
        ({"shards": (1.0, 4)}, TypeError, "shards must be two integers, (number, jobs), not (1.0, 4)"),
        ({"shards": "1/4"}, TypeError, "two integers, (number, jobs), not '1/4'"),
        ({"shards": (True, 4)}, TypeError, "two integers"),
        ({"num_threads": 0}, ValueError, "num_threads must be"),
        ({"num_threads": 1.5}, TypeError, "num_threads must be"),
    ],
)
def test_bad_options(tmp_path, given, kind, message):
    """A share that does not exist, or a number of threads that is none, is refused before anything is written."""
    with pytest.raises(kind, match=re.escape(message)):
        run(PLAN, tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_missing_shares_are_named(tmp_path):
    """A merge without a share, or with one that is not finished, writes nothing and says which."""
    outs = shares(tmp_path, 3)
    with pytest.raises(OutputError, match=r"all 10 parts .*; 3 are missing: share 2 of 3 is not among them"):
        merge([outs[0], outs[2]], tmp_path / "out")
    (outs[1] / "cells/part-000001.parquet").unlink()
    with pytest.raises(OutputError, match=r"1 are missing: share 2 of 3 in .*share-2 lacks 1 of its 3 parts; run it"):
        merge(outs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_not_merged(tmp_path, alone):
    """Damaged parts, parts of another sweep, other bytes under one name, and other manifests are refused by name."""
    outs = shares(tmp_path, 2)
    part = outs[1] / "cells/part-000001.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    with pytest.raises(OutputError, match=r"whole parts, not .*share-2/cells/part-000001\.parquet: its digest is not"):
        merge(outs, tmp_path / "out")
    part.write_bytes((outs[0] / "cells/part-000000.parquet").read_bytes())
    with pytest.raises(OutputError, match=r"part-000001\.parquet: it holds other cells than 3 to 5"):
        merge(outs, tmp_path / "out")
    part.write_bytes(whole)
    run({**PLAN, "title": "other"}, tmp_path / "other", shards=(2, 2))
    with pytest.raises(OutputError, match=r"of one sweep, not .*: plan.title changed from 'é' to 'other'"):
        merge([outs[0], tmp_path / "other"], tmp_path / "out")
    shutil.copytree(outs[1], tmp_path / "copy")
    (tmp_path / "copy/cells/part-000001.parquet").write_bytes(whole + b"!")
    with pytest.raises(OutputError, match=r"the same bytes, not .*share-2/cells/part-000001\.parquet and another in"):
        merge([*outs, tmp_path / "copy"], tmp_path / "out")
    merge(outs, tmp_path / "out")  # on top of what the refused merges had copied
    assert content(tmp_path / "out") == alone


@pytest.mark.parametrize(
    "changed", [{"cells": 3}, {"plan_sha256": "0"}, {"share": "3 of 2"}, {"share": [1, 2]}, {"version": 7}]
)
def test_manifests_that_contradict_themselves(tmp_path, changed):
    """A manifest that is not what its plan makes is refused, whoever wrote it."""
    (out,) = shares(tmp_path, 1)
    manifest = json.loads((out / "_manifest.json").read_text())
    (out / "_manifest.json").write_text(json.dumps({**manifest, **changed}))
    with pytest.raises(
        OutputError, match=r"^out must (have a manifest that agrees with its plan|hold a run of a plan or)"
    ):
        merge([out], tmp_path / "out")


def test_bad_lists(tmp_path):
    """One path is no list, an empty list merges nothing, and what is no sweep is named."""
    with pytest.raises(TypeError, match="outs must be a list of directories or URLs, not 'share'"):
        merge("share", tmp_path / "out")
    with pytest.raises(ValueError, match="outs must name at least one directory"):
        merge([], tmp_path / "out")
    with pytest.raises(OutputError, match=r"it has no _manifest\.json"):
        merge([tmp_path], tmp_path / "out")


def test_unfinished_runs_and_urls_merge(tmp_path, alone):
    """Runs without shares merge, too, from and to URLs; what a part of the target holds already is kept."""
    pytest.importorskip("fsspec")
    run(PLAN, tmp_path / "one")
    url = f"memory://{tmp_path.name}"
    run(PLAN, f"{url}/two")
    (tmp_path / "one/cells/part-000003.parquet").unlink()
    merge([tmp_path / "one", f"{url}/two"], f"{url}/out")
    assert stored(f"{url}/out") == alone


KILLED = """
import os, signal, sys
from hockeystick.sweep import merge
real, left = os.replace, int(sys.argv[1])
import pathlib
rename = pathlib.Path.replace
def replace(self, target):
    global left
    left -= 1
    if left == 0 and sys.argv[2] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    rename(self, target)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
pathlib.Path.replace = replace
merge(sys.argv[4:], sys.argv[3])
"""


@pytest.mark.share(5)
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize(("at", "when"), [(1, "before"), (1, "after"), (2, "before"), (6, "after"), (11, "before")])
def test_killed_merge(tmp_path, alone, at, when):
    """A merge that is killed at the renaming of a file and repeated ends with the same bytes."""
    outs = [str(out) for out in shares(tmp_path, 2)]
    done = processes.python(KILLED, at, when, tmp_path / "out", *outs, limit=60, check=False)
    assert done.returncode == -signal.SIGKILL
    merge(outs, tmp_path / "out")
    assert content(tmp_path / "out") == alone
