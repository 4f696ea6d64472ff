"""The directory of a sweep: what is refused, and what survives an interruption."""

import contextlib
import errno
import importlib.util
import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

import effort
import processes
from hockeystick import sweep
from hockeystick.sweep import OutputError, PlanError, merge, run
from hockeystick.sweep.plan import Share
from sweep_plans import THETA, TRAINING, changed, content, stored, written

pytest.importorskip("pyarrow")


pq = pytest.importorskip("pyarrow.parquet")

# 400 parts: enough for a run to be caught between any two of them.
LONG = {
    "shard_rows": 250,
    "outputs": {"delta": "theta", "spent": {"function": "gaussian_epsilon", "arguments": {"delta": 1e-5}}},
    "axes": {"epsilon": {"linspace": [0.0, 8.0], "num": 250}, "r": {"logspace": [1e-3, 10.0], "num": 400}},
}


@pytest.fixture
def out(tmp_path, finished):
    """Return a copy of a finished run."""
    return Path(shutil.copytree(finished, tmp_path / "out"))


def refused(plan, out, message):
    """Hold that a run is refused with that message and leaves every file as it is."""
    before = content(out.parent)
    with pytest.raises(OutputError, match=message):
        run(plan, out)
    assert content(out.parent) == before


def test_unusable_directories(tmp_path):
    """A file, a path below a file, and a directory with other things are refused and left alone."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.tex").write_text("mine")
    refused(THETA, tmp_path / "file", r"out must be a writable directory, not .*File exists")
    refused(THETA, tmp_path / "file/out", r"out must be a writable directory, not .*Not a directory")
    refused(THETA, tmp_path / "used", r"out must be .*it has no _manifest.json")
    assert [path.name for path in (tmp_path / "used").iterdir()] == ["thesis.tex"]
    (tmp_path / "used/_manifest.json").write_text("[]")
    refused(THETA, tmp_path / "used", r"_manifest.json holds no plan")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_directory_without_permission(tmp_path):
    """A directory that may not be written is refused."""
    (tmp_path / "out").mkdir(mode=0o500)
    refused(THETA, tmp_path / "out", r"out must be a writable directory, not .*Permission denied")


@pytest.mark.parametrize("name", [".nfs0000000000a1", "_SUCCESS", ".DS_Store", ".ipynb_checkpoints/", "_temporary/"])
def test_what_readers_skip_is_left_alone(tmp_path, name):
    """Files and folders that systems leave behind, and readers skip, are no reason to refuse a run, and they stay."""
    for folder in ("out/cells", "out"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        path = tmp_path / folder / name
        path.mkdir() if name.endswith("/") else path.write_bytes(b"theirs")
    assert run(THETA, tmp_path / "out").computed_rows == 20
    assert run(THETA, tmp_path / "out").computed_rows == 0
    assert (tmp_path / "out/cells" / name).exists()
    assert pq.read_table(tmp_path / "out/cells").num_rows == 20


@pytest.mark.parametrize("name", ["part-000001.parquet", "thesis"])
def test_folder_among_the_parts(out, name):
    """A folder where a part goes, or any other that a reader would search, is refused with what to do."""
    (out / "cells" / name).unlink(missing_ok=True)
    (out / "cells" / name).mkdir()
    refused(THETA, out, rf"not .*/cells/{name}/: a folder, .*; move it away$")


def test_foreign_part(out):
    """A stray file among the parts, which a reader would take for one, is refused."""
    shutil.copy(out / "cells/part-000000.parquet", out / "cells/part-000007.parquet")
    refused(THETA, out, r"out must hold this sweep alone, not .*part-000007.parquet")


def test_dangling_link(out, finished):
    """A part that is a link to nothing is missing, and is replaced."""
    (out / "cells/part-000001.parquet").unlink()
    (out / "cells/part-000001.parquet").symlink_to(out / "nowhere")
    assert run(THETA, out).computed_rows == 7
    assert content(out) == content(finished)


def test_leftovers_are_removed(tmp_path, out, finished):
    """The temporary files of a killed run go away, and a reader never sees them; killed with half of a manifest, a run starts afresh."""
    (out / "cells/.part-000003.parquet.tmp").write_bytes(b"half")
    (out / "._manifest.json.tmp").write_bytes(b"half")
    assert pq.read_table(out / "cells").num_rows == 20
    assert run(THETA, out).computed_rows == 0
    (tmp_path / "new").mkdir()
    (tmp_path / "new/._manifest.json.tmp").write_bytes(b"{")
    assert run(THETA, tmp_path / "new").computed_rows == 20
    assert content(out) == content(tmp_path / "new") == content(finished)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_one_run_at_a_time(tmp_path, scheme):
    """A second run in the same directory is refused while the first one goes on, whichever way it is named."""

    def second(*_progress):
        with pytest.raises(OutputError, match="another run is writing to it"):
            run(THETA, f"{scheme}{tmp_path}/out")

    run(THETA, tmp_path / "out", progress=second)


CHANGES = [
    ({"axes": {**THETA["axes"], "r": [1.0]}}, r"axes.r.* changed|axes.r changed from \{'logspace'.* to \[1.0\]"),
    (
        {"axes": {**THETA["axes"], "epsilon": {"linspace": [0.0, 4.0], "num": 6}}},
        r"axes.epsilon.num changed from 5 to 6",
    ),
    (
        {"axes": {**THETA["axes"], "epsilon": {"linspace": [0, 4.0], "num": 5}}},  # an integer for a double
        r"axes.epsilon.linspace changed from",
    ),
    (
        {"axes": {key: THETA["axes"][key] for key in ("r", "epsilon")}},
        r"axes order changed from epsilon, r to r, epsilon",
    ),
    ({"outputs": {"delta": "theta"}}, r"outputs.log_delta was removed"),
    ({"outputs": {**THETA["outputs"], "third": "theta"}}, r"outputs.third was added"),
    ({"shard_rows": 8}, r"shard_rows changed from 7 to 8"),
    ({"title": "new"}, r"title was added"),
]


@pytest.mark.parametrize(("sections", "message"), CHANGES)
def test_changed_plan(finished, sections, message):
    """A changed plan is refused with what changed, and the earlier table stays."""
    refused(changed(THETA, **sections), finished, rf"{message}.*use another output directory")


@pytest.mark.parametrize("key", ["version", "instruction_set", "pyarrow"])
def test_changed_library(out, key):
    """Another version or instruction set might round differently and is not mixed into a table."""
    manifest = json.loads((out / "_manifest.json").read_text())
    (out / "_manifest.json").write_text(json.dumps({**manifest, key: "old"}))
    refused(THETA, out, rf"{key} changed from 'old' to")


def test_full_disk(tmp_path, monkeypatch, finished):
    """A full disk ends the run with a clear error and no half part, and the same call resumes."""
    sync, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 7:  # file and folder of the manifest and of two parts come before
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device; .* the same command resumes") as caught:
        run(THETA, tmp_path / "out", num_threads=1)  # one part at a time
    assert caught.value.errno == errno.ENOSPC
    left = content(tmp_path / "out")
    assert len(left) == 3
    assert left.items() <= content(finished).items()
    assert run(THETA, tmp_path / "out").rows == 20
    assert content(tmp_path / "out") == content(finished)


@contextlib.contextmanager
def started(plan, out, parts):
    """Give a real process of several threads that has written so many parts of a plan; before its first step if none."""
    arguments = [written(plan, out.parent), "-o", out, "--num-threads", "4"]
    command = [sys.executable, "-m", "hockeystick", "sweep", "run", *arguments]
    with processes.child(command) as process:
        deadline = time.monotonic() + processes.seconds(60)
        while process.poll() is None and time.monotonic() < deadline:
            if not parts or len([*(out / "cells").glob("part-*")] if out.exists() else []) >= parts:
                break
            time.sleep(0.001)
        yield process


TRAININGS = {
    **TRAINING,
    "fixed": {**TRAINING["fixed"], "num_runs": effort.at_night(200, by_day=100)},
    "axes": {"noise_std": [0.1, 0.2, 0.4, 0.5], "rounds": [300, 500], "clients_per_round": [2, 3, 6]},
}
needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")


@pytest.mark.slow
@pytest.mark.parametrize("plan", [LONG, pytest.param(TRAININGS, marks=needs_numba)], ids=["cells", "simulated"])
def test_killed_again_and_again(tmp_path, plan):
    """Killed without warning at several moments and started again, a run ends with the bytes of a whole one."""
    run(plan, tmp_path / "whole")
    uninterrupted = content(tmp_path / "whole")
    total = len(uninterrupted) - 1
    killed, moments = 0, (0, 1, 2, total // 10, total // 3, 3 * total // 4)[:: effort.at_night(1, by_day=2)]
    for parts in moments:
        with started(plan, tmp_path / "out", parts) as process:
            process.kill()
            process.communicate(timeout=processes.seconds(60))
        killed += process.returncode == -signal.SIGKILL
        whole = {name: data for name, data in content(tmp_path / "out").items() if not name.endswith(".tmp")}
        assert whole.items() <= uninterrupted.items()  # nothing is there in part
    assert killed >= len(moments) - 2  # that a late one was too late is no fault
    run(plan, tmp_path / "out")
    assert content(tmp_path / "out") == uninterrupted


@pytest.mark.share(2)
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_politely(tmp_path, sent, code):
    """Ctrl-C and SIGTERM, while several threads write, end a run with a hint, the shell's exit code and whole parts alone."""
    with started(LONG, tmp_path / "out", 5) as process:
        process.send_signal(sent)
        _, errors = process.communicate(timeout=processes.seconds(30))
    assert process.returncode == code
    assert "resume with the same command" in errors
    assert "Traceback" not in errors
    left = sweep.open(tmp_path / "out")
    assert 0 < left.missing_cells < left.num_cells
    assert left.verify() == ()  # by the digest of each part
    assert {path.suffix for path in (tmp_path / "out/cells").iterdir()} == {".parquet"}


# Shares of a plan for job arrays: computed apart, they merge to the bytes of one run, or the merge says what is wrong.


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
