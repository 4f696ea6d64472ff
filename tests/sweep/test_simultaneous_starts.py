"""Runs that begin at one place at the same moment: one plan gets it, and no table is mixed."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from hockeystick.sweep import OutputError, run

pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")

from fsspec.implementations.memory import MemoryFileSystem

from hockeystick.sweep import folders

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


def stored(url: str) -> dict[str, bytes]:
    """Return every file below a URL."""
    system, root = fsspec.core.url_to_fs(url)
    system.invalidate_cache()
    root = root.strip("/")
    return {path.strip("/").removeprefix(f"{root}/"): system.cat_file(path) for path in system.find(root)}


@pytest.fixture(scope="module")
def whole() -> list[dict[str, bytes]]:
    """Return what each plan leaves where it is alone."""
    found = []
    for plan in PLANS:
        url = f"memory://{uuid.uuid4()}/out"
        run(plan, url)
        found.append(stored(url))
    return found


def test_two_plans_that_find_no_manifest(meeting: str, whole: list[dict[str, bytes]]) -> None:
    """One run goes through and the other is refused, where each would have written after the other had looked."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        left = [*pool.map(attempt, PLANS, [meeting] * 2)]
    winners = [at for at in range(2) if left[at] is not None]
    assert len(winners) == 1
    assert left[winners[0]] == stored(meeting) == whole[winners[0]]


def test_two_runs_of_one_plan(meeting: str, whole: list[dict[str, bytes]]) -> None:
    """Two runs of one plan do not refuse each other, and leave the files of one."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for task in [pool.submit(attempt, PLANS[0], meeting) for _ in range(2)]:
            with contextlib.suppress(OSError):  # one may have removed what the other was about to rename
                task.result()
    run(PLANS[0], meeting)
    assert stored(meeting) == whole[0]
