"""A storm over workers that write: they are killed in the middle of a publication, and their client with them.

    python tests/storms/worker_storm.py [seconds]

A scheduler and two workers, which a nanny starts again, serve one sweep after the other, in directories or in a bucket. In every
round clients are killed with SIGKILL after a random time, or left alone, until one gets to the end. A last run without a
cluster computes nothing; what is there then is compared with what an undisturbed run leaves. Prints the counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import processes
from hockeystick.sweep import run
from hockeystick.sweep.folders import Folder
from sweep_storm import bucket
from written_files import lost_and_doubled, rows_of, whole_files, wrong

CELLS, PARTS = 400, 40
PLAN = {
    "shard_rows": CELLS // PARTS,
    "outputs": {"delta": "theta", "log_delta": "log_theta"},
    "fixed": {"r": 1.5},
    "axes": {"eps": {"linspace": [0.0, 8.0], "num": CELLS}},
}
CLIENT = """
import json, os, sys
import distributed, fsspec
from hockeystick.sweep import run
fsspec.config.conf["s3"] = json.loads(os.environ["FSSPEC_S3"])
with distributed.Client(sys.argv[1], set_as_default=False) as client:
    summary = run(json.loads(sys.argv[2]), sys.argv[3], client=client)
print(summary.writers)
"""


@dataclass
class Counts:
    """What happened, and what should not have: the entries from `rows_lost` on are to be 0."""

    rounds: int = 0
    clients: int = 0
    clients_killed: int = 0
    workers_killed: Counter[str] = field(default_factory=Counter)  # where
    hidden_files_left: int = 0  # by killed workers, when a round was over; the last run removed them
    rows_lost: int = 0
    rows_doubled: int = 0
    parts_torn: int = 0  # of other bytes than an undisturbed run's, at any look
    computed_at_last: int = 0  # cells that a run found missing which had been told to be there
    clients_failed: int = 0
    rounds_with_other_bytes: int = 0

    def bad(self) -> dict[str, int]:
        """Return what should not have happened, and did."""
        return wrong(self, "rows_lost")


@contextlib.contextmanager
def cluster(folder: Path, s3: dict[str, str]) -> Iterator[str]:
    """Give the address of a scheduler with two workers that die while they write."""
    environment = {
        **os.environ,
        "FSSPEC_S3": json.dumps(s3),
        "HOCKEYSTICK_STORM_LOG": str(folder / "killed.txt"),
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "100",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    file, log = folder / "scheduler.json", (folder / "log.txt").open("wb")
    preload = Path(__file__).with_name("killed_while_writing.py")
    start = [sys.executable, "-m"]
    commands = [
        [*start, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
         "--scheduler-file", str(file)],
        [*start, "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nworkers", "2", "--nthreads", "1",
         "--no-dashboard", "--preload", str(preload), "--local-directory", str(folder)],
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        stack.enter_context(log)
        for command in commands:
            options = {"stdout": log, "stderr": log, "env": environment, "cwd": folder}
            stack.enter_context(processes.child(command, **options))
            deadline = time.monotonic() + processes.seconds(60)
            while not (file.exists() and file.read_text().endswith("}")):
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield json.loads(file.read_text())["address"]


class Round:
    """One place, and what happens there."""

    def __init__(self, address: str, out: str, s3: dict[str, str], whole: dict[str, bytes], seed: int) -> None:
        self.address, self.out, self.s3, self.whole = address, out, s3, whole
        self.chance = random.Random(seed)
        self.folder: Folder = Folder(out)
        self.counts = Counts(rounds=1)

    def client(self, life: float | None) -> bool:
        """Run a client, kill it after so many seconds with its first part, and say whether it got to the end."""
        command = [sys.executable, "-c", CLIENT, self.address, json.dumps(PLAN), self.out]
        environment = {**os.environ, "FSSPEC_S3": json.dumps(self.s3)}
        self.counts.clients += 1
        with processes.child(command, env=environment) as process:
            if life is not None:
                deadline, before = time.monotonic() + processes.seconds(60), len(self.look())
                while process.poll() is None and len(self.look()) == before and time.monotonic() < deadline:
                    time.sleep(0.05)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(life)
                process.kill()
            _, errors = process.communicate(timeout=processes.seconds(300))
        killed = process.returncode < 0
        self.counts.clients_killed += killed
        if not killed and process.returncode:
            self.counts.clients_failed += 1
            print(errors[-2000:], file=sys.stderr)
        self.look()
        return not killed

    def look(self) -> dict[str, bytes]:
        """Return the parts that are there, and count those that should not be as they are."""
        there = whole_files(self.folder)
        self.counts.parts_torn += sum(self.whole.get(name) != data for name, data in there.items())
        return there

    def play(self) -> Counts:
        """Start clients until one gets to the end, look, resume without a cluster, and compare."""
        lives = [self.chance.uniform(0.0, 1.5) for _ in range(self.chance.randrange(3))]
        for life in [*lives, None]:
            if self.client(life):
                break
        self.counts.hidden_files_left += sum(name.endswith(".tmp") for name in self.folder.entries("cells"))
        self.counts.computed_at_last += run(PLAN, self.out, num_threads=1).computed_rows
        there = whole_files(self.folder)
        left = {*self.folder.entries("cells")} - {name.removeprefix("cells/") for name in there}
        self.counts.rounds_with_other_bytes += there != self.whole or bool(left)
        lost, doubled = lost_and_doubled(rows_of(there)["cell"], CELLS)
        self.counts.rows_lost += lost
        self.counts.rows_doubled += doubled
        return self.counts


def storm(kind: str, seconds: float, seed: int = 0) -> Counts:
    """Return the counts of so many seconds of rounds in directories or in a bucket."""
    total = Counts()
    with tempfile.TemporaryDirectory() as root, bucket() as (url, s3):
        run(PLAN, f"{root}/whole", num_threads=1)
        whole = whole_files(Folder(f"{root}/whole"))
        assert len(whole) == PARTS + 1
        with cluster(Path(root), s3) as address:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                out = f"{url}/{total.rounds}" if kind == "object store" else f"{root}/{total.rounds}"
                counts = Round(address, out, s3, whole, seed + total.rounds).play()
                for name, value in vars(counts).items():
                    setattr(total, name, getattr(total, name) + value)
        killed = Path(root) / "killed.txt"
        total.workers_killed = (
            Counter(line.split()[0] for line in killed.read_text().splitlines()) if killed.exists() else Counter()
        )
    return total


def main() -> None:
    """Print the counts."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120.0
    for kind in ("directory", "object store"):
        print(f"{kind}: {storm(kind, seconds)}", flush=True)


if __name__ == "__main__":
    main()
