"""Workers that write their parts: where they do, where they hand them over, and what travels to them."""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hockeystick.sweep import CellError, run
from hockeystick.sweep.plan import parse
from written_files import content

pytest.importorskip("pyarrow")
distributed = pytest.importorskip("distributed")

from hockeystick.sweep import cluster, store
from hockeystick.sweep.folders import LocalFolder, open_folder

pytestmark = pytest.mark.slow

THETA = {
    "shard_rows": 2,
    "outputs": {"delta": "theta", "log_delta": "log_theta"},
    "fixed": {"r": 1.5},
    "axes": {"eps": {"linspace": [0.0, 4.0], "num": 20}},
}
PARTS = 10


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return what a run without a cluster leaves."""
    out = tmp_path_factory.mktemp("whole")
    run(THETA, out, num_threads=1)
    return content(out)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Give a client of two workers with one thread each."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="inproc://"
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


def test_workers_write(tmp_path: Path, client: Any, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers write every part, though the path is relative to where the client works; nothing else is left there."""
    monkeypatch.chdir(tmp_path)
    summary = run(THETA, "out", client=client)
    assert summary.writers == f"workers wrote {PARTS} parts"
    assert summary.writers in str(summary).splitlines()
    assert content(tmp_path / "out") == whole


def test_another_disk_at_the_same_path(
    tmp_path: Path, client: Any, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that see a disk of their own, with an unfinished run of the very plan, leave it alone and hand parts over."""
    run(THETA, tmp_path / "theirs")
    (tmp_path / "theirs/cells/part-000003.parquet").unlink()
    before = content(tmp_path / "theirs")
    monkeypatch.setattr(cluster, "open_folder", lambda _place: LocalFolder(tmp_path / "theirs"))
    summary = run(THETA, tmp_path / "out", client=client)
    assert summary.writers == f"this process wrote {PARTS}, since a worker does not see this run at {tmp_path / 'out'}"
    assert content(tmp_path / "out") == whole
    assert content(tmp_path / "theirs") == before


@pytest.mark.parametrize(
    "error", [PermissionError("Permission denied"), ImportError("Install s3fs to access S3")], ids=["rights", "package"]
)
def test_worker_without_the_means(
    tmp_path: Path, client: Any, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A worker without rights, credentials or the package of the store hands its parts over, and the summary says why."""

    def refused(_place: str) -> None:
        raise error

    monkeypatch.setattr(cluster, "open_folder", refused)
    summary = run(THETA, tmp_path / "out", client=client)
    assert summary.writers == f"this process wrote {PARTS}, since a worker cannot open {tmp_path / 'out'}: {error}"
    assert content(tmp_path / "out") == whole


def test_worker_whose_disk_is_full(
    tmp_path: Path, client: Any, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that a worker cannot write is written by the client, if it can."""

    write_shared = LocalFolder.write_shared

    def full(folder: LocalFolder, name: str, data: bytes, still: Callable[[], bool]) -> bool:
        if name.startswith("cells/"):
            raise OSError(28, "No space left on device")
        return write_shared(folder, name, data, still)

    with monkeypatch.context() as patched:
        patched.setattr(LocalFolder, "write_shared", full)
        summary = run(THETA, tmp_path / "out", client=client)
    assert summary.writers == (
        f"this process wrote {PARTS}, since a worker cannot write to {tmp_path / 'out'}: No space left on device"
    )
    assert content(tmp_path / "out") == whole


def travelled(client: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Return of the tasks that are submitted from now on how large they are, and whether they have the plan."""
    submit, sent = client.submit, []

    def noted(function: Any, spec: Any, index: int, packed: Any, **options: Any) -> Any:
        sent.append((len(pickle.dumps((spec, index, packed))), packed is not None))
        return submit(function, spec, index, packed, **options)

    monkeypatch.setattr(client, "submit", noted)
    return sent


@pytest.mark.parametrize("shared", [True, False])
def test_plan_travels_once(tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    """A plan of 100,000 listed values is read at the output; without that, it is sent to each worker that asks, not more."""
    values = [k / 65536 for k in range(100_000)]
    plan = {"shard_rows": 2000, "outputs": {"delta": "theta"}, "axes": {"eps": values, "r": [1.5]}}
    assert len(json.dumps(store.manifest(parse(plan)))) > 500_000
    sent = travelled(client, monkeypatch)
    if not shared:
        monkeypatch.setattr(cluster, "open_folder", lambda _place: LocalFolder(tmp_path / "nothing"))
    summary = run(plan, tmp_path / "out", client=client)
    assert ("this process wrote 50" in summary.writers) is not shared
    assert max(size for size, with_plan in sent if not with_plan) < 1000
    plans = sum(with_plan for _, with_plan in sent)
    assert plans == 0 if shared else 0 < plans <= 4  # two tasks wait at each worker


def test_strict_run_keeps_no_part_with_an_error(tmp_path: Path, client: Any) -> None:
    """A strict run ends at a part with an error, which no worker has written."""
    plan = {"shard_rows": 1, "outputs": {"delta": "theta"}, "axes": {"r": [1.0, 2.0, -1.0], "eps": [1.0]}}
    with pytest.raises(CellError, match="cell 2 "):
        run(plan, tmp_path / "out", client=client, strict=True)
    parts = {
        name for name in content(tmp_path / "out") if name.startswith("cells/part")
    }  # a worker may be amid another, under a hidden name
    assert parts <= {f"cells/part-{at:06}.parquet" for at in range(2)}


def test_parts_that_are_not_seen(tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that a worker says it wrote and that is not there is no part of the table, and the run says so."""
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 0.1)
    write = LocalFolder.write_shared

    def lost(folder: LocalFolder, name: str, data: bytes, still: Callable[[], bool]) -> bool:
        return True if "000003" in name else write(folder, name, data, still)

    monkeypatch.setattr(LocalFolder, "write_shared", lost)
    message = r"1 parts that workers wrote are not in .*/out/cells: part-000003.parquet; 18 cells are kept, the same"
    with pytest.raises(OSError, match=message):
        run(THETA, tmp_path / "out", client=client)
    monkeypatch.undo()
    assert run(THETA, tmp_path / "out", client=client).computed_rows == 2


FOLDERS = ["directory", "memory", "object store", "object store without conditions"]


@pytest.fixture(params=FOLDERS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Give a folder of each kind."""
    if request.param == "directory":
        return open_folder(tmp_path)
    made = open_folder(f"memory://{uuid.uuid4()}/out")
    made.uploads_whole = request.param.startswith("object store")  # type: ignore[attr-defined]
    if request.param == "object store":
        made.system = Conditional()  # type: ignore[attr-defined]
    made.create()
    return made


class Conditional:
    """An object store that creates and does not replace, where it is asked for that."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite") -> None:
        """Upload an object."""
        if mode == "create" and path in self.objects:
            message = "PreconditionFailed"
            raise RuntimeError(message)
        self.objects[path] = value

    def cat_file(self, path: str) -> bytes:
        """Return an object."""
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path]


def test_shared_writing(folder: Any) -> None:
    """A part is there after the first writer and the second; without the token it is not written; another one is told."""
    name = "cells/part-000000.parquet"
    assert not folder.write_shared(name, b"part", lambda: False)
    assert folder.read(name) is None
    assert folder.write_shared(name, b"part", lambda: True)
    assert folder.write_shared(name, b"part", lambda: True)
    assert folder.read(name) == b"part"
    if not isinstance(folder, LocalFolder):  # where a rename replaces a damaged part in one step
        assert not folder.write_shared(name, b"other", lambda: True)
        assert folder.read(name) == b"part"
    if not isinstance(getattr(folder, "system", None), Conditional):
        assert set(folder.entries("cells")) == {"part-000000.parquet"}


def test_two_writers_have_two_hidden_files(tmp_path: Path) -> None:
    """While one worker writes a part, another publishes it, and the first changes nothing afterwards."""
    folder = LocalFolder(tmp_path)
    name, seen = "cells/part-000000.parquet", []

    def meanwhile() -> bool:
        assert folder.write_shared(name, b"part", lambda: True)
        seen.append(sorted(folder.entries("cells")))
        return True

    assert folder.write_shared(name, b"part", meanwhile)
    assert [name.endswith(".tmp") for name in seen[0]] == [True, False]
    assert content(tmp_path) == {name: b"part"}


def test_next_run_tidies_before_a_worker_renames(tmp_path: Path) -> None:
    """A worker whose hidden file and token the next run has removed publishes nothing."""
    folder, name = LocalFolder(tmp_path), "cells/part-000000.parquet"
    with cluster.run_token(folder, "digest") as token:
        spec = cluster.TaskSpec(folder.place, token, "digest", None, strict=False)

        def tidied() -> bool:
            for unfinished in folder.entries("cells"):
                folder.remove(f"cells/{unfinished}")
            folder.remove(token)
            return spec.is_at(folder)

        assert not folder.write_shared(name, b"part", tidied)
    assert content(tmp_path) == {}
