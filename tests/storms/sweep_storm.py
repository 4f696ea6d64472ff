"""A storm over sweeps: processes of two plans start at one place, are killed and resumed, and parts are damaged.

    python tests/storms/sweep_storm.py [seconds]

Each round takes a new place, a directory or a folder of an S3 server on this machine. What is there in the end is compared
with what an undisturbed run of the plan leaves that got the place. Run as a script, it prints the counts.
"""

import contextlib
import logging
import multiprocessing
import random
import signal
import sys
import tempfile
import time
from collections import Counter

import fsspec
import numpy as np
from moto.server import ThreadedMotoServer

import processes
from hockeystick.sweep import OutputError, run
from hockeystick.sweep.folders import Folder
from hockeystick.sweep.plan import parse
from sweep_plans import lost_and_doubled, rewritten, rows_of, whole_files

CELLS, PARTS = 800, 20
PLANS = [
    {
        "shard_rows": CELLS // PARTS,
        "outputs": {"delta": "theta", "log_delta": "log_theta"},
        "fixed": {"r": r},
        "axes": {"epsilon": {"linspace": [0.0, 8.0], "num": CELLS}},
    }
    for r in (1.0, 2.0)
]
RUNS = multiprocessing.get_context("forkserver")
RUNS.set_forkserver_preload(["hockeystick.sweep", "hockeystick.sweep.running", "s3fs"])
REFUSED = 2
ENDINGS = {0: "finished", REFUSED: "refused", -signal.SIGKILL: "killed"}  # by the exit code


# What should not happen.
WRONG = (
    "other endings",
    "rows lost",
    "rows doubled",
    "rows mixed",  # of the other plan
    "files mixed before resuming",  # that the plan which got the place would not have written
    "damage not named",
    "other plan accepted",
    "rounds with other bytes",
)


def child(plan, out, s3):
    """Run a plan, in a process of its own that ends with the command's exit codes."""
    fsspec.config.conf["s3"] = s3
    try:
        run(plan, out, num_threads=1)
    except OutputError:
        sys.exit(REFUSED)


class Round:
    """One place, and what happens there."""

    def __init__(self, out, s3, whole, chance):
        self.out, self.s3, self.whole, self.chance = out, s3, whole, chance
        self.folder = Folder(out)
        self.counts = Counter({"rounds": 1})

    def start_and_kill(self):
        """Start runs of both plans at the same moment, and kill some of them after a while."""
        plans = self.chance.choice(([0, 1], [1, 0], [0, 0, 1], [0, 1, 1]))
        runs = [RUNS.Process(target=child, args=(PLANS[at], self.out, self.s3)) for at in plans]
        for process in runs:
            process.start()
        for process in runs:
            if self.chance.random() < 0.7:
                process.join(self.chance.uniform(0.0, 0.6))
                process.kill()
        for process in runs:
            process.join(processes.seconds(120))
        for process in runs:
            self.counts[ENDINGS.get(process.exitcode, "other endings")] += 1
        self.counts["started"] += len(runs)

    def owner(self):
        """Return which plan got the place, or None if none has; count what it would not have written."""
        there = whole_files(self.folder)
        if "_manifest.json" not in there:
            self.counts["files mixed before resuming"] += len(there)
            return None
        owner = [whole["_manifest.json"] for whole in self.whole].index(there["_manifest.json"])
        foreign = [name for name, data in there.items() if self.whole[owner].get(name) != data]
        self.counts["files mixed before resuming"] += len(foreign)
        return owner

    def damage(self, owner):
        """Damage some parts, and return how many."""
        parts = [name for name in whole_files(self.folder) if name.startswith("cells/")]
        chosen = self.chance.sample(parts, min(len(parts), self.chance.randrange(4)))
        for name in chosen:
            data = self.folder.read(name) or b""
            at = self.chance.randrange(len(data))
            damaged = (
                data[:at] + bytes([data[at] ^ 1 << self.chance.randrange(8)]) + data[at + 1 :],  # a bit flipped
                data[:at],  # the end cut off
                self.whole[1 - owner][name],  # the part of the other plan
                rewritten(data, "delta"),  # an output set to 0
            )
            self.folder.write(name, self.chance.choice(damaged))
        self.counts["parts damaged"] += len(chosen)
        return len(chosen)

    def finish(self):
        """Resume the plan that got the place, or the first, and compare; the other plan must be refused."""
        owner = self.owner()
        damaged = 0 if owner is None else self.damage(owner)
        if owner is None:
            owner = 0
        summary = run(PLANS[owner], self.out, num_threads=1)
        self.counts["damage not named"] += damaged - len(summary.damaged)
        with contextlib.suppress(OutputError):
            run(PLANS[1 - owner], self.out, num_threads=1)
            self.counts["other plan accepted"] += 1
        there = whole_files(self.folder)
        self.counts["rounds with other bytes"] += there != self.whole[owner]
        rows = rows_of(there)
        self.counts.update(lost_and_doubled(rows["cell"], CELLS))
        self.counts["rows mixed"] += int(np.sum(rows["r"].to_numpy() != PLANS[owner]["fixed"]["r"]))


@contextlib.contextmanager
def bucket():
    """Give a bucket of an S3 server on this machine, and how to reach it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    s3 = {"endpoint_url": f"http://{host}:{port}", "key": "key", "secret": "secret"}
    before = fsspec.config.conf.get("s3")
    fsspec.config.conf["s3"] = s3
    name = f"storm-{port}"
    fsspec.filesystem("s3").mkdir(name)
    try:
        yield f"s3://{name}", s3
    finally:
        fsspec.config.conf.pop("s3")
        if before is not None:
            fsspec.config.conf["s3"] = before
        server.stop()


def storm(kind, seconds, seed=0):
    """Return the counts of so many seconds of rounds in directories or on an object store."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as root, bucket() as (url, s3):
        whole = [undisturbed(plan, f"{root}/whole{at}") for at, plan in enumerate(PLANS)]

        def play(out, _number):
            one = Round(out, s3, whole, chance)
            for _ in range(chance.randrange(1, 4)):
                one.start_and_kill()
            one.finish()
            return one.counts

        return rounds(url if kind == "object store" else root, seconds, play)


def undisturbed(plan, out):
    """Return what an undisturbed run of a plan leaves."""
    run(plan, out, num_threads=1)
    whole = whole_files(Folder(out))
    assert len(whole) == parse(plan).num_shards + 1
    return whole


def rounds(place, seconds, play):
    """Return the counts of so many seconds of rounds, each in a new folder there."""
    total, end = Counter[str](), time.monotonic() + seconds
    while time.monotonic() < end:
        total.update(play(f"{place}/{total['rounds']}", total["rounds"]))
    return total


def main(storm):
    """Print the counts of so many seconds, a minute if the command says nothing, in directories and in a bucket."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    for kind in ("directory", "object store"):
        print(f"{kind}: {dict(storm(kind, seconds))}", flush=True)


if __name__ == "__main__":
    main(storm)
