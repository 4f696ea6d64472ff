"""Sweeps to a URL: the same bytes as on a disk, file systems that fail, and runs that begin at the same moment."""

from __future__ import annotations

import concurrent.futures
import contextlib
import errno
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hockeystick.cli import main
from hockeystick.sweep import OutputError, folders, run
from hockeystick.sweep.folders import open_folder
from sweep_plans import THETA, stored
from written_files import content

pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")


THETA_TOML = """
shard_rows = 7
outputs = { delta = "theta", log_delta = "log_theta" }
[axes]
eps = { linspace = [0.0, 4.0], num = 5 }
r = { logspace = [0.1, 10.0], num = 4 }
"""


class FailingFileSystem(MemoryFileSystem):
    """A file system in memory whose upload or rename number `at` breaks, half-way."""

    protocol = "failing"
    store: dict[str, Any] = {}  # noqa: RUF012 - as in the class above, of which this is not to be a view
    pseudo_dirs = [""]  # noqa: RUF012
    countdown: int | None = None
    error: Exception = OSError(errno.ENOSPC, "No space left on device")
    operation = "pipe_file"

    def _breaks(self, operation: str) -> bool:
        kind = type(self)
        if operation != kind.operation or kind.countdown is None:
            return False
        kind.countdown -= 1
        return kind.countdown == 0

    def pipe_file(self, path: str, value: bytes, **options: Any) -> None:
        """Write a file, or half of it."""
        breaks = self._breaks("pipe_file")
        super().pipe_file(path, value[: len(value) // 2] if breaks else value, **options)
        if breaks:
            raise self.error

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        """Rename a file, or not."""
        if self._breaks("mv"):
            raise self.error
        super().mv(path1, path2, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return what a run leaves on a disk."""
    out = tmp_path_factory.mktemp("whole")
    run(THETA, out)
    return content(out)


@pytest.fixture
def url() -> str:
    """Return a folder in memory that nobody has used."""
    return f"memory://{uuid.uuid4()}/out"


@pytest.fixture
def failing() -> Iterator[type[FailingFileSystem]]:
    """Register the failing file system, and forget what it holds."""
    fsspec.register_implementation("failing", FailingFileSystem, clobber=True)
    yield FailingFileSystem
    FailingFileSystem.countdown = None
    FailingFileSystem.operation = "pipe_file"
    FailingFileSystem.store.clear()


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """Give a bucket of an S3 server on this machine."""
    pytest.importorskip("moto.server", reason="needs moto[server]")
    pytest.importorskip("s3fs", reason="needs s3fs")
    import sweep_storm  # noqa: PLC0415 - it needs both

    with sweep_storm.bucket() as (url, _options):
        yield url


class Overtaken(MemoryFileSystem):
    """A file system in memory on which another run of the same plan is whole just before a request of this one, which then fails."""

    protocol = "overtaken"
    store: dict[str, Any] = {}  # noqa: RUF012 - as in the class above
    pseudo_dirs = [""]  # noqa: RUF012
    other: Callable[[], object] | None = None
    error: Exception = FileNotFoundError("no such file: .tmp")

    def _overtake(self, path: str) -> None:
        if Overtaken.other is not None and "_manifest" in path:
            other, Overtaken.other = Overtaken.other, None
            other()
            raise self.error

    def mv(self, path1: str, path2: str, **options: Any) -> None:
        """Rename a file."""
        self._overtake(path2)
        super().mv(path1, path2, **options)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        """Write a file."""
        if mode == "create":
            self._overtake(path)
        super().pipe_file(path, value, **options)


@pytest.mark.parametrize("whole_uploads", [False, True], ids=["renames", "object store"])
@pytest.mark.parametrize(
    "error", [FileNotFoundError("gone"), OSError(409, "ConditionalRequestConflict " * 100)], ids=["gone", "conflict"]
)
def test_two_runs_of_one_plan(
    whole_uploads: bool,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    tmp_path: Path,
) -> None:
    """The run that is overtaken ends with exit code 1 and a message that names the other run; started again it finds all parts."""
    fsspec.register_implementation("overtaken", Overtaken, clobber=True)
    url, plan = f"overtaken://{uuid.uuid4()}/out", tmp_path / "plan.toml"
    plan.write_text(THETA_TOML)
    monkeypatch.setattr(Overtaken, "error", error)
    if whole_uploads:
        monkeypatch.setattr(folders, "OBJECT_STORES", frozenset({"overtaken"}))
        monkeypatch.setattr(Overtaken, "cat_file", lambda *a, **k: seen(cat_file, *a, **k))
    cat_file, hidden = MemoryFileSystem.cat_file, [2]

    def seen(call: Callable[..., bytes], fs: Any, path: str, *arguments: Any, **options: Any) -> bytes:
        """Read a file; the manifest of the other run is not shown at once."""
        if Overtaken.other is None and "_manifest" in path and hidden[0] and running.is_set():
            hidden[0] -= 1
            raise FileNotFoundError(path)
        return call(fs, path, *arguments, **options)

    running = threading.Event()

    def other() -> None:
        run(THETA, url)
        running.set()

    Overtaken.other = other
    assert main(["sweep", "run", str(plan), "--out", url, "--quiet"]) == 1
    said = capsys.readouterr().err
    assert f"another run of the same plan writes to {url}" in said
    assert len(said) < 500
    assert run(THETA, url).computed_rows == 0


def test_memory_equals_disk(url: str, whole: dict[str, bytes]) -> None:
    """A URL gets the files of a directory, and a second run computes nothing."""
    assert run(THETA, url).computed_rows == 20
    assert stored(url) == whole
    assert run(THETA, url).computed_rows == 0


def test_damaged_and_missing_parts(url: str, whole: dict[str, bytes]) -> None:
    """Parts that are cut or gone are computed again, and what was left unfinished is removed."""
    run(THETA, url)
    system, root = fsspec.core.url_to_fs(url)
    system.pipe_file(f"{root}/cells/part-000000.parquet", whole["cells/part-000000.parquet"][:-20])
    system.rm_file(f"{root}/cells/part-000001.parquet")
    system.pipe_file(f"{root}/cells/.part-000002.parquet.tmp", b"half")
    assert run(THETA, url).computed_rows == 14
    assert stored(url) == whole


def test_refusals(url: str) -> None:
    """Another plan, other files, and an unknown kind of URL are refused."""
    run(THETA, url)
    with pytest.raises(OutputError, match="shard_rows changed from 7 to 8"):
        run({**THETA, "shard_rows": 8}, url)
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
    "failure",
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device; [0-9]+ cells are kept"),
        (
            ValueError("connection reset"),
            r"ValueError: connection reset; [0-9]+ cells are kept",
        ),  # each has its own kind
    ],
)
def test_failing_file_system(
    failing: type[FailingFileSystem], whole: dict[str, bytes], operation: str, at: int, failure: tuple[Exception, str]
) -> None:
    """A write or a rename that fails ends the run with a clear message and no half part, and the same call resumes."""
    error, message = failure
    failing.countdown, failing.error, failing.operation = at, error, operation
    with pytest.raises(OSError, match=rf"{message}, the same command resumes"):
        run(THETA, "failing://out", num_threads=1)  # of several threads, the others write what they have begun
    visible = {name: data for name, data in stored("failing://out").items() if not name.endswith(".tmp")}
    assert visible.items() <= whole.items()
    assert len(visible) == at - 1
    run(THETA, "failing://out")
    assert stored("failing://out") == whole


def test_manifest_that_cannot_be_written(failing: type[FailingFileSystem]) -> None:
    """Where not even the manifest can be written, the output is refused."""
    failing.countdown, failing.error = 1, PermissionError(errno.EACCES, "Permission denied")
    with pytest.raises(OutputError, match=r"out must be a writable directory, not failing://out: Permission denied"):
        run(THETA, "failing://out")


@pytest.mark.slow
def test_object_store(bucket: str, whole: dict[str, bytes]) -> None:
    """An object store gets the files of a directory by one upload each; damaged and missing ones are replaced."""
    url = f"{bucket}/{uuid.uuid4()}"
    assert run(THETA, url).computed_rows == 20
    assert stored(url) == whole
    system, root = fsspec.core.url_to_fs(url)
    system.pipe_file(f"{root}/cells/part-000001.parquet", b"not Parquet")
    system.rm_file(f"{root}/cells/part-000002.parquet")
    assert run(THETA, url).computed_rows == 13
    assert stored(url) == whole
    with pytest.raises(OutputError, match="title was added"):
        run({**THETA, "title": "new"}, url)


@pytest.mark.slow
def test_conditional_put(bucket: str) -> None:
    """An object store is asked to create the manifest and not to replace it, and the file that was there first stays."""
    folder = open_folder(f"{bucket}/{uuid.uuid4()}")
    assert folder.write_shared("_manifest.json", b"first", lambda: True)
    assert not folder.write_shared("_manifest.json", b"second", lambda: True)
    assert folder.read("_manifest.json") == b"first"
    with pytest.raises(OSError, match="bucket"):
        open_folder("s3://absent/out").write_shared("_manifest.json", b"lost", lambda: True)


@pytest.mark.slow
@pytest.mark.usefixtures("bucket")
def test_object_store_without_the_bucket() -> None:
    """A bucket that is not there is refused with the store's own words."""
    with pytest.raises(OutputError, match=r"out must be a writable directory, not s3://absent/out: .*bucket"):
        run(THETA, "s3://absent/out")


PLANS = [
    {"shard_rows": 2, "outputs": {"delta": "theta"}, "fixed": {"r": r}, "axes": {"eps": {"range": [0, 9]}}}
    for r in (1.0, 2.0)
]


class MeetingFileSystem(MemoryFileSystem):
    """An object store in memory, where two writers of a manifest wait for each other."""

    protocol = "meeting"
    store: dict[str, Any] = {}  # noqa: RUF012 - as in the class above, of which this is not to be a view
    pseudo_dirs = [""]  # noqa: RUF012
    meet = threading.Barrier(2)
    creating = threading.Lock()

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite") -> None:
        """Write a file, whether there is one or not, unless it is to be created."""
        if path.endswith("_manifest.json"):
            with contextlib.suppress(threading.BrokenBarrierError):
                self.meet.wait(1.0)  # in vain, where only one is about to write it
        with self.creating:
            if mode == "create" and self.exists(path):
                message = "PreconditionFailed"
                raise RuntimeError(message)
            super().pipe_file(path, value)


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Register that file system and give a place on it."""
    monkeypatch.setattr(folders, "OBJECT_STORES", frozenset({"meeting"}))
    fsspec.register_implementation("meeting", MeetingFileSystem, clobber=True)
    yield f"meeting://{uuid.uuid4()}/out"
    MeetingFileSystem.store.clear()
    MeetingFileSystem.meet.reset()


def attempt(plan: dict[str, Any], out: str) -> dict[str, bytes] | None:
    """Run a plan, and return what is there then, or None if it was refused."""
    try:
        run(plan, out, num_threads=1)
    except OutputError:
        return None
    return stored(out)


@pytest.fixture(scope="module")
def both() -> list[dict[str, bytes]]:
    """Return what each plan leaves where it is alone."""
    found = []
    for plan in PLANS:
        url = f"memory://{uuid.uuid4()}/out"
        run(plan, url)
        found.append(stored(url))
    return found


def test_two_plans_that_find_no_manifest(meeting: str, both: list[dict[str, bytes]]) -> None:
    """One run goes through and the other is refused, where each would have written after the other had looked."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        left = [*pool.map(attempt, PLANS, [meeting] * 2)]
    winners = [at for at in range(2) if left[at] is not None]
    assert len(winners) == 1
    assert left[winners[0]] == stored(meeting) == both[winners[0]]


def test_two_runs_that_find_no_manifest(meeting: str, both: list[dict[str, bytes]]) -> None:
    """Two runs of one plan do not refuse each other, and leave the files of one."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for task in [pool.submit(attempt, PLANS[0], meeting) for _ in range(2)]:
            with contextlib.suppress(OSError):  # one may have removed what the other was about to rename
                task.result()
    run(PLANS[0], meeting)
    assert stored(meeting) == both[0]
