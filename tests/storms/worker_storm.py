"""A storm over workers that write: they are killed in the middle of a publication, and their client with them.

    python tests/storms/worker_storm.py [seconds]

A scheduler and two workers, which a nanny starts again, serve one sweep after the other, in directories or in a bucket. In every
round clients are killed with SIGKILL after a random time, or left alone, until one gets to the end. A last run without a
cluster computes nothing; what is there then is compared with what an undisturbed run leaves. Prints the counts.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import processes
from hockeystick.sweep import run
from hockeystick.sweep.folders import Folder
from sweep_faults import cluster
from sweep_plans import lost_and_doubled, rows_of, whole_files
from sweep_storm import bucket, main, rounds, undisturbed

CELLS, PARTS = 400, 40
PLAN = {
    "shard_rows": CELLS // PARTS,
    "outputs": {"delta": "theta", "log_delta": "log_theta"},
    "fixed": {"r": 1.5},
    "axes": {"epsilon": {"linspace": [0.0, 8.0], "num": CELLS}},
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


# What should not happen.
WRONG = (
    "rows lost",
    "rows doubled",
    "parts torn",  # of other bytes than an undisturbed run's, at any look
    "computed at last",  # cells that a run found missing which had been told to be there
    "clients failed",
    "rounds with other bytes",
)
PRELOAD = str(Path(__file__).with_name("killed_while_writing.py"))
WORKERS = ("--nworkers", "2", "--nthreads", "1", "--preload", PRELOAD)  # die while they write, and are started again


class Round:
    """One place, and what happens there."""

    def __init__(self, address, out, s3, whole, seed):
        self.address, self.out, self.s3, self.whole = address, out, s3, whole
        self.chance = random.Random(seed)
        self.folder = Folder(out)
        self.counts = Counter({"rounds": 1})

    def client(self, life):
        """Run a client, kill it after so many seconds with its first part, and say whether it got to the end."""
        command = [sys.executable, "-c", CLIENT, self.address, json.dumps(PLAN), self.out]
        environment = {**os.environ, "FSSPEC_S3": json.dumps(self.s3)}
        self.counts["clients"] += 1
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
        self.counts["clients killed"] += killed
        if not killed and process.returncode:
            self.counts["clients failed"] += 1
            print(errors[-2000:], file=sys.stderr)
        self.look()
        return not killed

    def look(self):
        """Return the parts that are there, and count those that should not be as they are."""
        there = whole_files(self.folder)
        self.counts["parts torn"] += sum(self.whole.get(name) != data for name, data in there.items())
        return there

    def play(self):
        """Start clients until one gets to the end, look, resume without a cluster, and compare."""
        lives = [self.chance.uniform(0.0, 1.5) for _ in range(self.chance.randrange(3))]
        for life in [*lives, None]:
            if self.client(life):
                break
        self.counts["hidden files left"] += sum(name.endswith(".tmp") for name in self.folder.entries("cells"))
        self.counts["computed at last"] += run(PLAN, self.out, num_threads=1).computed_rows
        there = whole_files(self.folder)
        left = {*self.folder.entries("cells")} - {name.removeprefix("cells/") for name in there}
        self.counts["rounds with other bytes"] += there != self.whole or bool(left)
        self.counts.update(lost_and_doubled(rows_of(there)["cell"], CELLS))
        return self.counts


def storm(kind, seconds, seed=0):
    """Return the counts of so many seconds of rounds in directories or in a bucket."""
    with tempfile.TemporaryDirectory() as root, bucket() as (url, s3):
        whole = undisturbed(PLAN, f"{root}/whole")
        log = Path(root) / "killed.txt"
        environment = {
            **os.environ,
            "FSSPEC_S3": json.dumps(s3),
            "HOCKEYSTICK_STORM_LOG": str(log),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "100",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        with cluster(Path(root), environment, WORKERS, 1) as made:
            address, place = made.ready(), url if kind == "object store" else root
            total = rounds(place, seconds, lambda out, number: Round(address, out, s3, whole, seed + number).play())
        if log.exists():
            total.update(f"workers killed: {line.split()[0]}" for line in log.read_text().splitlines())
    return total


if __name__ == "__main__":
    main(storm)
