"""Runs of different plans that begin at one place at the same moment: one gets it, and no table is mixed."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import random
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import effort
import processes
from hockeystick.sweep import OutputError, run

pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")

from fsspec.implementations.memory import MemoryFileSystem

from hockeystick.sweep.plan.plan import parse
from hockeystick.sweep.store import claims, remote, store
from hockeystick.sweep.store.folder import Folder, open_folder

PLANS = [
    {"shard_rows": 2, "outputs": {"delta": "theta"}, "fixed": {"r": r}, "axes": {"eps": {"range": [0, 9]}}}
    for r in (1.0, 2.0)
]


class MeetingFileSystem(MemoryFileSystem):
    """An object store in memory that replaces what is there, and where two writers of a manifest wait for each other."""

    protocol = "meeting"
    store: dict[str, Any] = {}  # noqa: RUF012 - as in the class above, of which this is not to be a view
    pseudo_dirs = [""]  # noqa: RUF012
    meet = threading.Barrier(2)

    def pipe_file(self, path: str, value: bytes) -> None:
        """Write a file, whether there is one or not."""
        if path.endswith("_manifest.json"):
            with contextlib.suppress(threading.BrokenBarrierError):
                self.meet.wait(1.0)  # in vain, where only one is about to write it
        super().pipe_file(path, value)


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Register that file system and give a place on it."""
    monkeypatch.setattr(remote, "OBJECT_STORES", frozenset({"meeting"}))
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


def claim_of(plan: dict[str, Any], folder: Folder) -> str:
    """Leave the claim of a run that was killed, and return its name."""
    name = f"_claim-{store.digest_of(store.manifest(parse(plan)))[:32]}-{'0' * 32}.tmp"
    folder.write(name, b"left behind")
    return name


def test_claim_of_a_killed_run(monkeypatch: pytest.MonkeyPatch, whole: list[dict[str, bytes]]) -> None:
    """A claim that was left behind keeps other plans out, with its name; its own plan goes on and removes it."""
    monkeypatch.setattr(claims, "PATIENCE_SECONDS", 0.1)
    for ours, theirs in ((0, 1), (1, 0)):
        url = f"memory://{uuid.uuid4()}/out"
        left = claim_of(PLANS[theirs], open_folder(url))
        with pytest.raises(
            OutputError, match=rf"one plan at a time, not {url}: a run of another plan .* remove {left}"
        ):
            run(PLANS[ours], url)
        assert {*stored(url)} == {left}
        run(PLANS[theirs], url)
        assert stored(url) == whole[theirs]


class Turns:
    """Two threads that take turns, in an order that a random generator chooses."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.moved = threading.Condition()
        self.waiting: set[int] = set()
        self.alive = 2
        self.chosen: int | None = None

    def take(self, who: int) -> None:
        """Wait until it is this thread's turn, which lasts until it asks for the next."""
        with self.moved:
            self.waiting.add(who)
            self._choose()
            self.moved.wait_for(lambda: self.chosen == who, timeout=processes.seconds(60))
            self.waiting.discard(who)
            self.chosen = None

    def leave(self) -> None:
        """Leave the turns to the other."""
        with self.moved:
            self.alive -= 1
            self._choose()

    def _choose(self) -> None:
        if self.chosen is None and self.waiting and len(self.waiting) == self.alive:
            self.chosen = self.random.choice(sorted(self.waiting))
            self.moved.notify_all()


class SharedFolder:
    """The folder of one of two runs: the files are common, and each request to them waits for its turn."""

    def __init__(self, files: dict[str, bytes], turns: Turns, who: int) -> None:
        self.files, self.turns, self.who = files, turns, who

    def entries(self, below: str = "") -> dict[str, int]:
        """Return the files in the folder, of which none has folders here."""
        self.turns.take(self.who)
        return {} if below else {name: len(content) for name, content in self.files.items()}

    def read(self, name: str) -> bytes | None:
        """Return a file."""
        self.turns.take(self.who)
        return self.files.get(name)

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        self.turns.take(self.who)
        self.files[name] = content

    write_new = write  # a store that replaces what is there

    def remove(self, name: str) -> None:
        """Remove a file."""
        self.turns.take(self.who)
        self.files.pop(name, None)


@pytest.mark.parametrize("seed", range(effort.at_night(200, by_day=20)))
def test_one_plan_in_any_order_of_requests(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the requests of two plans to a store are interleaved, one plan gets the place, and the other is refused."""
    monkeypatch.setattr(claims, "POLL_SECONDS", 0.0)
    files: dict[str, bytes] = {}
    turns = Turns(seed)

    def prepared(who: int) -> bool:
        plan = parse(PLANS[who])
        try:
            store._prepare(store.Store(SharedFolder(files, turns, who), plan, store.manifest(plan)), locked=False)
        except OutputError:
            return False
        finally:
            turns.leave()
        return True

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        through = [*pool.map(prepared, range(2))]
    assert sorted(through) == [False, True]
    assert json.loads(files["_manifest.json"]) == json.loads(
        json.dumps(store.manifest(parse(PLANS[through.index(True)])))
    )
