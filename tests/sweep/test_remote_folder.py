"""Sweeps to a URL: the same bytes as on a disk, file systems that fail, and runs that begin at the same moment."""

import concurrent.futures
import contextlib
import errno
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hockeystick.sweep import OutputError, folders, run, store
from hockeystick.sweep.folders import Folder
from sweep_plans import THETA, stored

pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")


class Hooked(MemoryFileSystem):
    """A file system in memory that calls a hook before each upload and each rename; of two uploads that must create a file one fails."""

    protocol = "hooked"
    store: dict[str, Any] = {}  # noqa: RUF012 - as in the class above, of which this is not to be a view
    pseudo_dirs = [""]  # noqa: RUF012
    hook: Callable[[str, str, bytes, str], None] = staticmethod(lambda *_given: None)
    creating = threading.Lock()

    def pipe_file(self, path, value, mode="overwrite", **options):
        """Write a file."""
        Hooked.hook("pipe_file", path, value, mode)
        with self.creating:
            if mode == "create" and self.exists(path):
                raise RuntimeError("PreconditionFailed")
            super().pipe_file(path, value, **options)

    def replace_file(self, path, value):
        """Write a file as a server does that knows no condition."""
        super().pipe_file(path, value)

    def mv(self, path1, path2, **options):
        """Rename a file."""
        Hooked.hook("mv", path2, b"", "")
        super().mv(path1, path2, **options)


@pytest.fixture
def hooked(monkeypatch):
    """Register that file system and give a place on it, with the hook as it is."""
    fsspec.register_implementation("hooked", Hooked, clobber=True)
    monkeypatch.setattr(Hooked, "hook", Hooked.hook)
    yield f"hooked://{uuid.uuid4()}/out"
    Hooked.store.clear()


@pytest.fixture
def url():
    """Return a folder in memory that nobody has used."""
    return f"memory://{uuid.uuid4()}/out"


@pytest.fixture(scope="module")
def bucket():
    """Give a bucket of an S3 server on this machine."""
    pytest.importorskip("moto.server", reason="needs moto, flask and flask-cors")
    pytest.importorskip("s3fs", reason="needs s3fs")
    import sweep_storm  # noqa: PLC0415 - it needs both

    with sweep_storm.bucket() as (url, _options):
        yield url


@pytest.mark.parametrize("kind", ["renames", "object store"])
@pytest.mark.parametrize("error", [FileNotFoundError("gone"), OSError(409, "ConditionalRequestConflict")], ids=str)
def test_two_runs_of_one_plan(whole, hooked, monkeypatch, kind, error):
    """A run that another one of its plan overtakes, so that its request fails, looks again, and finds all parts."""
    cat_file = MemoryFileSystem.cat_file
    if kind == "object store":
        monkeypatch.setattr(folders, "OBJECT_STORES", frozenset({"hooked"}))

    def hidden(_system, path):
        """Read a file; the manifest of the other run is not shown at once."""
        monkeypatch.setattr(Hooked, "cat_file", cat_file)
        raise FileNotFoundError(path)

    def overtaking(operation, path, _value, mode):
        if "_manifest" in path and (operation == "mv" or mode == "create"):
            monkeypatch.setattr(Hooked, "hook", lambda *_given: None)
            run(THETA, hooked)
            monkeypatch.setattr(Hooked, "cat_file", hidden)
            raise error

    monkeypatch.setattr(Hooked, "hook", overtaking)
    assert run(THETA, hooked).computed_rows == 0
    assert stored(hooked) == whole


@pytest.mark.parametrize("place", ["url", pytest.param("bucket", marks=pytest.mark.slow)])
def test_bytes_are_those_of_a_disk(request, whole, place):
    """A URL gets the files of a directory; parts that are cut or gone are computed again, what was left unfinished is removed."""
    url = f"{request.getfixturevalue(place)}/{uuid.uuid4()}"
    assert run(THETA, url).computed_rows == 20
    assert stored(url) == whole
    assert run(THETA, url).computed_rows == 0
    system, root = fsspec.core.url_to_fs(url)
    system.pipe_file(f"{root}/cells/part-000000.parquet", whole["cells/part-000000.parquet"][:-20])
    system.rm_file(f"{root}/cells/part-000001.parquet")
    system.pipe_file(f"{root}/cells/.part-000002.parquet.tmp", b"half")
    assert run(THETA, url).computed_rows == 14
    assert stored(url) == whole


def test_refusals(url):
    """Other files, and an unknown kind of URL, are refused; of two plans see below."""
    run(THETA, url)
    system, root = fsspec.core.url_to_fs(url)
    system.pipe_file(f"{root}/cells/thesis.tex", b"mine")
    with pytest.raises(OutputError, match=r"out must hold this sweep alone, not memory://.*/cells/thesis.tex"):
        run(THETA, url)
    system.pipe_file(f"{root}/../used/thesis.tex", b"mine")
    with pytest.raises(OutputError, match=r"it has no _manifest\.json"):
        run(THETA, f"{url}/../used")
    with pytest.raises(OutputError, match=r"out must be a path or a URL that fsspec knows, not gopher://hole"):
        run(THETA, "gopher://hole")


@pytest.mark.parametrize("operation", ["pipe_file", "mv"])
@pytest.mark.parametrize("at", [2, 3, 4])  # the manifest comes first
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (ValueError("connection reset"), "ValueError: connection reset"),  # each file system has its own kind
    ],
)
def test_failing_file_system(
    hooked,
    whole,
    monkeypatch,
    *,
    operation,
    at,
    error,
    message,
):
    """A write that breaks half-way or a rename that fails ends the run with a clear message and no half part, and the same call resumes."""
    left = [at]

    def breaking(done, path, value, _mode):
        left[0] -= done == operation
        if left[0] == 0 and done == operation:
            if done == "pipe_file":
                MemoryFileSystem.pipe_file(fsspec.filesystem("hooked"), path, value[: len(value) // 2])
            raise error

    monkeypatch.setattr(Hooked, "hook", breaking)
    with pytest.raises(OSError, match=rf"{message}; [0-9]+ cells are kept, the same command resumes"):
        run(THETA, hooked, num_threads=1)  # of several threads, the others write what they have begun
    visible = {name: data for name, data in stored(hooked).items() if not name.endswith(".tmp")}
    assert visible.items() <= whole.items()
    assert len(visible) == at - 1
    run(THETA, hooked)
    assert stored(hooked) == whole


def test_manifest_that_cannot_be_written(hooked, monkeypatch):
    """Where not even the manifest can be written, the output is refused."""

    def denied(*_given):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(store, "CONFLICT_SECONDS", 0.1)
    monkeypatch.setattr(Hooked, "hook", denied)
    with pytest.raises(OutputError, match=rf"out must be a writable directory, not {hooked}: Permission denied"):
        run(THETA, hooked)


KINDS = [
    "directory",
    "renames",
    "object store",
    "object store that replaces",
    pytest.param("S3", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("kind", KINDS)
def test_shared_writing(request, tmp_path, hooked, monkeypatch, kind):
    """A part is there after the first writer and the second; without the token it is not written; another one is told."""
    places = {"directory": tmp_path / "out", "renames": f"memory://{uuid.uuid4()}"}
    if kind == "S3":
        places["S3"] = f"{request.getfixturevalue('bucket')}/{uuid.uuid4()}"
    else:
        monkeypatch.setattr(folders, "OBJECT_STORES", frozenset({"hooked"}))
    folder = Folder(places.get(kind, hooked))
    if kind == "object store that replaces":
        monkeypatch.setattr(Hooked, "pipe_file", Hooked.replace_file)
    folder.create()
    folder.create("cells")
    name = "cells/part-000000.parquet"
    assert not folder.write_shared(name, b"part", lambda: False)
    assert folder.read(name) is None
    assert folder.write_shared(name, b"part", lambda: True)
    assert folder.write_shared(name, b"part", lambda: True)
    if not folder.is_local:  # where a rename replaces a damaged part in one step
        assert not folder.write_shared(name, b"other", lambda: True)
    assert folder.read(name) == b"part"
    assert set(folder.entries("cells")) == {"part-000000.parquet"}


@pytest.mark.slow
@pytest.mark.usefixtures("bucket")
def test_object_store_without_the_bucket(monkeypatch):
    """A bucket that is not there is refused with the store's own words."""
    monkeypatch.setattr(store, "CONFLICT_SECONDS", 0.1)
    with pytest.raises(OutputError, match=r"out must be a writable directory, not s3://absent/out: .*bucket"):
        run(THETA, "s3://absent/out")


PLANS = [
    {"shard_rows": 2, "outputs": {"delta": "theta"}, "fixed": {"r": r}, "axes": {"epsilon": {"range": [0, 9]}}}
    for r in (1.0, 2.0)
]


@pytest.fixture
def meeting(hooked, monkeypatch):
    """Give a place in an object store where two writers of a manifest wait for each other."""
    meet = threading.Barrier(2)

    def waiting(_operation, path, *_given):
        if path.endswith("_manifest.json"):
            with contextlib.suppress(threading.BrokenBarrierError):
                meet.wait(1.0)  # in vain, where only one is about to write it

    monkeypatch.setattr(folders, "OBJECT_STORES", frozenset({"hooked"}))
    monkeypatch.setattr(Hooked, "hook", waiting)
    return hooked


def attempt(plan, out):
    """Run a plan, and return what is there then, or None if it was refused."""
    try:
        run(plan, out, num_threads=1)
    except OutputError:
        return None
    return stored(out)


@pytest.fixture(scope="module")
def both():
    """Return what each plan leaves where it is alone."""
    return [attempt(plan, f"memory://{uuid.uuid4()}/out") for plan in PLANS]


def test_two_plans_that_find_no_manifest(meeting, both):
    """One run goes through and the other is refused, where each would have written after the other had looked."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        left = [*pool.map(attempt, PLANS, [meeting] * 2)]
    winners = [at for at in range(2) if left[at] is not None]
    assert len(winners) == 1
    assert left[winners[0]] == stored(meeting) == both[winners[0]]


def test_two_runs_that_find_no_manifest(meeting, both):
    """Two runs of one plan do not refuse each other, and leave the files of one."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for task in [pool.submit(attempt, PLANS[0], meeting) for _ in range(2)]:
            with contextlib.suppress(OSError):  # one may have removed what the other was about to rename
                task.result()
    run(PLANS[0], meeting)
    assert stored(meeting) == both[0]
