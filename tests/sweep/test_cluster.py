"""Sweeps on a cluster: the same bytes, whoever writes them, and how the loss of its members ends."""

import importlib.util
import json
import pickle
import socket
import threading
import time
from pathlib import Path
from unittest import mock

import pytest

import drawn_plans
import hockeystick as hs
import sweep_plans
from hockeystick.cli import main
from hockeystick.sweep import CellError, ClusterError, cluster, run
from hockeystick.sweep.folders import Folder
from hockeystick.sweep.plan import parse
from hockeystick.sweep.store import digest_of, manifest
from processes import seconds
from sweep_plans import content, workers_here

pytest.importorskip("pyarrow")
distributed = pytest.importorskip("distributed")


pytestmark = pytest.mark.slow

THETA = {
    "shard_rows": 3,
    "outputs": {"delta": "theta", "log_delta": "log_theta"},
    "axes": {
        "epsilon": {"linspace": [0.0, 4.0], "num": 10},
        "r": [-1.0, 0.1, 1.0, 10.0],  # a quarter is out of the domain
    },
}
FEDERATION = {**drawn_plans.FEDERATION, "shard_rows": 5}  # which warns
DPSGD = {
    "shard_rows": 4,
    "outputs": {"epsilon": "dpsgd_epsilon"},
    "fixed": {"delta": 1e-5},
    "axes": {"noise_multiplier": [0.8, 1.0, 4.0], "sampling_rate": [0.01, 0.1], "steps": [1, 100, 1000]},
}


@pytest.fixture(scope="module")
def client():
    """Give a client of two workers."""
    with workers_here(2) as client:
        yield client


@pytest.fixture
def submissions(client, monkeypatch):
    """Return the calls by which the client submits: first the manifest, then the shards."""
    monkeypatch.setattr(client, "submit", mock.Mock(wraps=client.submit))
    return client.submit.call_args_list


needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")
PLANS = [THETA, FEDERATION, DPSGD, pytest.param(sweep_plans.TRAINING, marks=needs_numba)]


@pytest.mark.parametrize("plan", PLANS, ids=["theta", "federation", "dpsgd", "simulated"])
def test_same_table_everywhere(tmp_path, client, plan):
    """One thread, all cores and a cluster leave the same bytes, errors and warnings included."""
    one = run(plan, tmp_path / "one", num_threads=1)
    cores = run(plan, tmp_path / "cores")
    away = run(plan, tmp_path / "away", client=client)
    assert content(tmp_path / "one") == content(tmp_path / "cores") == content(tmp_path / "away")
    for summary in (cores, away):
        assert (summary.rows, summary.computed_rows) == (one.rows, one.rows)
        assert (summary.ranges, summary.non_finite, summary.errors) == (one.ranges, one.non_finite, one.errors)
        assert {*summary.warnings} == {*one.warnings}


def test_few_shards_under_way(tmp_path, client, submissions):
    """Two shards a thread are under way, one is fetched and one is written, however slowly; none stays behind."""
    ahead = []
    plan = {**THETA, "shard_rows": 1}
    run(plan, tmp_path / "out", client=client, progress=lambda done, *_rest: ahead.append(len(submissions) - 1 - done))
    assert sorted(call.args[3] for call in submissions[1:]) == [*range(40)]
    assert len(ahead) == 41
    assert max(ahead) <= 2 * 2 + 2
    deadline = time.monotonic() + seconds(60)
    while client.futures and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not client.futures


@pytest.mark.parametrize("key", ["version", "instruction_set", "pyarrow"])
def test_worker_with_another_library(client, key):
    """A worker whose numbers or bytes might differ is refused, and the message says in what."""
    identity = {**json.loads(json.dumps(manifest(parse(THETA)))), key: "old"}
    spec = cluster.TaskSpec("memory://nowhere", "token", digest_of(identity), None, strict=False)
    remedy = r'.*; in the plan, name the best set .* instruction_set = "v3"$' if key == "instruction_set" else ""
    with pytest.raises(
        ClusterError, match=rf"workers must run what the client runs; on .* {key} changed from 'old' to{remedy}"
    ):
        client.submit(cluster.compute, spec, cluster.pack(identity), 0, pure=False).result()


def test_no_workers(tmp_path, monkeypatch):
    """A cluster without workers ends the run after a while, and does not hang it."""
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 0.1)
    message = r"the cluster has no workers: .*; 0 cells are kept, the same command resumes"
    with workers_here(0) as client, pytest.raises(ClusterError, match=message):
        run(THETA, tmp_path / "out", client=client)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("garbage", "missing port number"),
        ("tcp://127.0.0.1:9", "Connection refused"),
        ("nonsense://here:1", "unknown address scheme"),
        ("tcp://127.0.0.1:99999", ""),
        ("tcp://", "missing port number"),
    ],
)
def test_no_scheduler(tmp_path, capfd, address, reason):
    """An address where nothing listens, or that is none, is refused in one line, and in a moment."""
    plan = sweep_plans.written(THETA, tmp_path)
    began = time.monotonic()
    assert main(["sweep", "run", str(plan), "-o", str(tmp_path / "out"), "--scheduler", address]) == 1
    assert time.monotonic() - began < seconds(5)
    told = capfd.readouterr().err
    assert f"--scheduler: must be the address of a Dask scheduler, not {address}: " in told
    assert reason in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_something_else_answers(monkeypatch):
    """What listens and never answers, and what answers and is no scheduler, is refused in seconds."""
    monkeypatch.setattr(cluster, "GREETING_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(ClusterError, match=rf"not {address}: nothing there has greeted like a scheduler"):
            cluster.connected(address).__enter__()
        assert time.monotonic() - began < seconds(10)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0", protocol="tcp://") as made:
        address = made.workers[0].address
        with pytest.raises(ClusterError, match=rf"not {address}: a Worker answers there"):
            cluster.connected(address).__enter__()


@pytest.mark.parametrize("client", ["tcp://127.0.0.1:8786", object()])
def test_no_client(tmp_path, client):
    """An address, or anything else that is no client, is refused before anything is written."""
    with pytest.raises(TypeError, match=r"client must be a synchronous distributed.Client, not"):
        run(THETA, tmp_path / "out", client=client)
    assert not (tmp_path / "out").exists()


def test_workers_that_join_are_used(tmp_path, monkeypatch):
    """A cluster that grows during a run gets more shards at a time."""
    monkeypatch.setattr(cluster, "SLOTS_SECONDS", 0.0)
    ahead = []
    with workers_here(1) as client:
        monkeypatch.setattr(client, "submit", mock.Mock(wraps=client.submit))

        def grow(done, _total, _left):
            if done == 10:
                client.cluster.scale(4)
                client.wait_for_workers(4, timeout=seconds(60))
            ahead.append(client.submit.call_count - 1 - done)  # the manifest is sent, too

        run({**THETA, "shard_rows": 1}, tmp_path / "out", client=client, progress=grow)
    assert max(ahead[:10]) <= 2 * 1 + 2
    assert max(ahead[10:]) >= 2 * 4 - 1  # one was done, and the next may not have been submitted yet


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (None, ClusterError, "the scheduler is gone: its connection was lost"),
        (TimeoutError("no answer"), ClusterError, "the scheduler is gone: no answer"),
        (distributed.KilledWorker("one", None, 3), ClusterError, r"ended every worker that tried it \(one\).* memory"),
        (RuntimeError("a bug"), RuntimeError, "a bug"),
    ],
)
def test_lost_results(error, kind, message):
    """What Dask says of a lost result is told in words; an error that is no cell's and no cluster's passes as it is."""
    lost = mock.Mock(**{"cancelled.return_value": error is None, "result.side_effect": error})
    with pytest.raises(kind, match=message):
        cluster._result_of(lost)


@pytest.mark.parametrize(
    ("wanted", "tasks", "given"),
    [(None, 1, 8), (None, 3, 2), (None, 9, 1), (1, 1, 1), (6, 1, 6), (6, 2, 4), (99, 1, 8), (2, 8, 1)],
)
def test_threads_within_the_cores(monkeypatch, wanted, tasks, given):
    """Tasks on a machine of eight cores never have more than eight threads together, and one each at least."""
    monkeypatch.setattr(cluster, "CPU_COUNT", 8)
    assert cluster.threads(wanted, tasks) == given


CYCLIC = {"learning_rate": 0.5, "noise_std": 1.5, "lipschitz": 1.0, "smoothness": 0.5, "diameter": 1.0}


@pytest.mark.parametrize(
    "call",
    [
        lambda: hs.dpsgd_noise_multiplier(0.01, range(100, 140), 2.0, 1e-5, num_threads=1),
        lambda: hs.federated.fedavg_epsilon(1e-5, rounds=1000, local_steps=100, noise_std=[1.0] * 10**4, clip_norm=1.0,
            num_clients=9, learning_rate=0.01, smoothness=1.0, schedule="continuous", num_threads=1),
        lambda: hs.last_iterate.best_cyclic(1.0, index=1, period=1, rounds=range(60, 140), **CYCLIC, num_threads=1),
    ],
    ids=["dpsgd", "fedavg", "best_cyclic"],
)  # fmt: skip
def test_workers_keep_their_heartbeat(call):
    """A long compiled call leaves the interpreter to other threads, of which one sends a worker's sign of life."""
    thread = threading.Thread(target=call, daemon=True)
    beats = 0
    thread.start()
    deadline = time.monotonic() + seconds(120)
    while thread.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.001)
        beats += 1
    assert beats >= 10  # holding the interpreter, the call would leave it free before and after, at most


SHARED, PARTS = sweep_plans.THETA, 3


def test_another_disk_at_the_same_path(tmp_path, client, whole, monkeypatch):
    """Workers that see a disk of their own, with an unfinished run of the very plan, leave it alone and hand parts over."""
    run(SHARED, tmp_path / "theirs")
    (tmp_path / "theirs/cells/part-000001.parquet").unlink()
    before = content(tmp_path / "theirs")
    monkeypatch.setattr(cluster, "Folder", lambda _place: Folder(tmp_path / "theirs"))
    summary = run(SHARED, tmp_path / "out", client=client)
    assert summary.writers == f"this process wrote {PARTS}, since a worker does not see this run at {tmp_path / 'out'}"
    assert content(tmp_path / "out") == whole
    assert content(tmp_path / "theirs") == before


@pytest.mark.parametrize(
    ("patched", "error", "reason"),
    [
        ((cluster, "Folder"), None, ""),
        ((cluster, "Folder"), PermissionError("Permission denied"), "open OUT: Permission denied"),
        ((cluster, "Folder"), ImportError("Install s3fs to access S3"), "open OUT: Install s3fs to access S3"),
        ((Folder, "write_shared"), OSError(28, "No space left on device"), "write to OUT: No space left on device"),
    ],
    ids=["nothing", "rights", "package", "disk"],
)
def test_who_writes(
    tmp_path,
    client,
    whole,
    monkeypatch,
    *,
    patched,
    error,
    reason,
):
    """Workers write every part; without rights, the package of the store or room they hand it over, and the summary says why."""

    def refused(*_given):
        raise error

    monkeypatch.chdir(tmp_path)  # in which the client works: the path is relative to it
    run(SHARED, "out")  # the manifest is there
    for part in Path("out/cells").iterdir():
        part.unlink()
    if error:
        monkeypatch.setattr(*patched, refused)
    summary = run(SHARED, "out", client=client)
    handed_over = f"this process wrote {PARTS}, since a worker cannot {reason.replace('OUT', str(tmp_path / 'out'))}"
    assert summary.writers == (handed_over if error else f"workers wrote {PARTS} parts")
    assert summary.writers in str(summary).splitlines()
    assert content(tmp_path / "out") == whole


def test_plan_travels_once(tmp_path, client, submissions):
    """A plan of 2,000 listed values is sent once, and not with every task."""
    values = [k / 65536 for k in range(2000)]
    plan = {"shard_rows": 200, "outputs": {"delta": "theta"}, "axes": {"epsilon": values, "r": [1.5]}}
    run(plan, tmp_path / "out", client=client)
    sent = [[given for given in call.args if not isinstance(given, distributed.Future)] for call in submissions]
    assert [len(pickle.dumps(given)) > 1000 for given in sent] == [True] + [False] * 10


def test_strict_run_keeps_no_part_with_an_error(tmp_path, client):
    """A strict run ends at a part with an error, which no worker has written."""
    plan = {"shard_rows": 1, "outputs": {"delta": "theta"}, "axes": {"r": [1.0, 2.0, -1.0], "epsilon": [1.0]}}
    with pytest.raises(CellError, match="cell 2 "):
        run(plan, tmp_path / "out", client=client, strict=True)
    parts = {
        name for name in content(tmp_path / "out") if name.startswith("cells/part")
    }  # a worker may be amid another, under a hidden name
    assert parts <= {f"cells/part-{at:06}.parquet" for at in range(2)}


def test_parts_that_are_not_seen(tmp_path, client, monkeypatch):
    """A part that a worker says it wrote and that is not there is no part of the table, and the run says so."""
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 0.1)
    write = Folder.write_shared

    def lost(folder, name, data, still):
        return True if "000001" in name else write(folder, name, data, still)

    monkeypatch.setattr(Folder, "write_shared", lost)
    message = r"1 parts that workers wrote are not in .*/out/cells: part-000001.parquet; 13 cells are kept, the same"
    with pytest.raises(OSError, match=message):
        run(SHARED, tmp_path / "out", client=client)
    monkeypatch.undo()
    assert run(SHARED, tmp_path / "out", client=client).computed_rows == 7


def test_two_writers_have_two_hidden_files(tmp_path):
    """While one worker writes a part, another publishes it, and the first changes nothing afterwards."""
    folder = Folder(tmp_path)
    folder.create("cells")
    name, seen = "cells/part-000000.parquet", []

    def meanwhile():
        assert folder.write_shared(name, b"part", lambda: True)
        seen.append(sorted(folder.entries("cells")))
        return True

    assert folder.write_shared(name, b"part", meanwhile)
    assert [name.endswith(".tmp") for name in seen[0]] == [True, False]
    assert content(tmp_path) == {name: b"part"}


def test_next_run_tidies_before_a_worker_renames(tmp_path):
    """A worker whose hidden file and token the next run has removed publishes nothing."""
    folder, name = Folder(tmp_path), "cells/part-000000.parquet"
    folder.create("cells")
    folder.write("_run-1.tmp", b"digest")
    spec = cluster.TaskSpec(folder.place, "_run-1.tmp", "digest", None, strict=False)
    assert spec.is_at(folder)

    def tidied():
        for unfinished in folder.entries("cells"):
            folder.remove(f"cells/{unfinished}")
        folder.remove(spec.token)
        return spec.is_at(folder)

    assert not folder.write_shared(name, b"part", tidied)
    assert content(tmp_path) == {}
