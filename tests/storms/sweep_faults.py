"""What is killed while a sweep runs on a cluster, and what becomes of its table: the scenarios of test_cluster_faults.py.

Run as a script, it prints the table of docs/sweep/internals.md.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import distributed
import psutil
import pyarrow.parquet as pq

import processes
from hockeystick.sweep import run
from hockeystick.sweep.folders import Folder
from sweep_plans import lost_and_doubled, whole_files, written

# 40 parts of unlike costs, about 20 ms to 200 ms each: enough for something to be killed between any two of them.
PLAN = {
    "shard_rows": 6,
    "outputs": {"spent": {"function": "dpsgd_delta", "arguments": {"epsilon": 1.0}}},
    "axes": {
        "noise_multiplier": {"logspace": [0.7, 5.0], "num": 40},
        "sampling_rate": [0.01, 0.05, 0.2],
        "steps": [100, 1000],
    },
}
CELLS, PARTS = 240, 40
PATIENCE = processes.seconds(120)
WORKER = ("--no-nanny", "--nthreads", "1")


def wait_until(condition, what):
    """Return once a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited in vain for {what}")
        time.sleep(0.01)


class Cluster:
    """A scheduler and workers in processes of their own, started again where they were killed."""

    def __init__(self, folder, environment=os.environ, worker=WORKER, num=2):
        self.folder, self.environment = folder, environment
        self.worker, self.num = worker, num  # options of a worker's command, and how many there are to be
        self.log = (folder / "log.txt").open("wb")
        self.file = folder / "scheduler.json"
        self.scheduler = None
        self.workers = []
        self.limited = []  # of no use any more
        self.address = ""

    def start(self, command, *options):
        """Start one of Dask's commands."""
        full = [sys.executable, "-m", f"distributed.cli.{command}", *options, "--no-dashboard"]
        pipes = {"stdout": self.log, "stderr": self.log}
        return subprocess.Popen(full, **pipes, cwd=self.folder, env=dict(self.environment), start_new_session=True)

    def ready(self):
        """Return the address of a scheduler that has two workers."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.stop()
            self.file.unlink(missing_ok=True)
            options = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.file)]
            self.scheduler = self.start("dask_scheduler", *options)
            wait_until(lambda: self.file.exists() and self.file.read_text().endswith("}"), "the scheduler")
            self.address = json.loads(self.file.read_text())["address"]
        for worker in self.limited:
            processes.end(worker)
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < self.num:
            options = [self.address, "--local-directory", str(self.folder), *self.worker]
            self.workers.append(self.start("dask_worker", *options))
        with distributed.Client(self.address, set_as_default=False, timeout=PATIENCE) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
        return self.address

    def small_files(self, *others):
        """Let the workers, and other processes, write no file of more than 256 bytes any more; a limit stays, so others are next."""
        for process in (*self.workers, *others):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (256, 256))
        self.limited, self.workers = self.workers, []

    def stop(self):
        """Kill what still runs."""
        for process in [*self.workers, *self.limited, *([self.scheduler] if self.scheduler else [])]:
            processes.end(process)
        self.workers, self.scheduler = [], None


@contextlib.contextmanager
def cluster(folder, *how):
    """Give a cluster that ends with the block."""
    made = Cluster(folder, *how)
    try:
        yield made
    finally:
        made.stop()
        made.log.close()


Command = subprocess.Popen[str]


@dataclass(frozen=True)
class Scenario:
    """What is done to a sweep that has written some parts, and how the command ends."""

    killed: str
    hit: Callable[[Cluster, Command], object]
    exit_code: int = 0
    message: str = ""
    is_local: bool = False  # the command has two workers of its own
    resumed_there: bool = False  # the cluster goes on with what is left of it


def own_workers(command):
    """Return the worker processes that the command itself has started."""
    children = psutil.Process(command.pid).children(recursive=True)
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def kill_with_workers(_made, command):
    """Kill a command that has workers of its own: they end, too."""
    children = own_workers(command)
    command.kill()
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert not alive


RESUMES = r"; \d+ cells are kept, the same command resumes"
SCENARIOS = {
    "worker_killed": Scenario("one of two workers, SIGKILL", lambda made, _: made.workers[0].kill()),
    "scheduler_killed": Scenario(
        "the scheduler, SIGKILL", lambda made, _: made.scheduler.kill(), 1, f"the scheduler is gone: .*{RESUMES}"
    ),
    # Its tasks are still in the cluster where it starts again.
    "client_killed": Scenario(
        "the command, SIGKILL", lambda _, command: command.kill(), -signal.SIGKILL, resumed_there=True
    ),
    "both_killed": Scenario(
        "a worker and the command, SIGKILL",
        lambda made, command: (made.workers[1].kill(), command.kill()),
        -signal.SIGKILL,
        resumed_there=True,
    ),
    "workers_cannot_write": Scenario("nothing, but workers may not write", lambda made, _: made.small_files()),
    "disk_full": Scenario(
        "nothing, but files may not exceed 256 bytes any more",
        lambda made, command: made.small_files(command),
        1,
        f"File too large{RESUMES}",
    ),
    "local_worker_killed": Scenario(
        "one of `--workers 2`, SIGKILL", lambda _, command: own_workers(command)[0].kill(), is_local=True
    ),
    "local_client_killed": Scenario(
        "the command with `--workers 2`, SIGKILL", kill_with_workers, -signal.SIGKILL, is_local=True
    ),
    "interrupted": Scenario(  # a terminal sends Ctrl-C to the command and to its workers
        "Ctrl-C with `--workers 2`",
        lambda _, command: os.killpg(command.pid, signal.SIGINT),
        130,
        "interrupted; resume with the same command",
        is_local=True,
    ),
}


def play(scenario, made, folder, whole):
    """Hit one run of the command in the middle, start it again, here or on the cluster, and return what the table of the faults says."""
    out, plan = folder / "out", written(PLAN, folder)
    where = ["--workers", "2"] if scenario.is_local else ["--scheduler", made.ready()]
    command = [sys.executable, "-m", "hockeystick", "sweep", "run", plan, "-o", out, *where]

    def parts():
        return len([*(out / "cells").glob("part-*")])

    with processes.child(command, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: parts() >= 5 or process.poll() is not None, "five parts")
        parts_then = parts()
        scenario.hit(made, process)
        _, errors = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in errors or process.returncode < 0, errors
    kept = whole_files(Folder(out))
    assert kept.items() <= whole.items()  # nothing is there in part
    there = distributed.Client(made.address, set_as_default=False, timeout=PATIENCE) if scenario.resumed_there else None
    with there or contextlib.nullcontext():
        run(plan, out, client=there)
    return {
        "killed": scenario.killed,
        "parts there": parts_then,
        "exit code": process.returncode,
        "message": " ".join(line for line in errors.splitlines() if line.startswith("hockeystick")),
        "parts kept": len([name for name in kept if "part-" in name]),
        **lost_and_doubled(pq.read_table(out / "cells", columns=["cell"])["cell"], CELLS),
        "same bytes": whole_files(Folder(out)) == whole,
    }


def main():
    """Print the table."""
    with tempfile.TemporaryDirectory() as root, cluster(Path(root)) as made:
        run(PLAN, Path(root) / "whole")
        for name, scenario in SCENARIOS.items():
            folder = Path(root) / name
            folder.mkdir()
            fault = play(scenario, made, folder, whole_files(Folder(Path(root) / "whole")))
            row = f"| {' | '.join(map(str, fault.values()))} |".replace(str(folder) + os.sep, "")
            if name == next(iter(SCENARIOS)):
                print(f"| {' | '.join(fault)} |\n{'|---' * len(fault)}|")
            print(row.replace(made.address, "tcp://HOST:PORT"), flush=True)


if __name__ == "__main__":
    main()
