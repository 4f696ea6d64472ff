"""What is killed while a sweep runs on a cluster, and what becomes of its table: the scenarios of test_cluster_faults.py.

Run as a script, it prints the table of docs/sweep/internals.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import distributed
import psutil
import pyarrow.parquet as pq

import processes
from hockeystick.sweep import run
from hockeystick.sweep.folders import Folder
from written_files import lost_and_doubled, whole_files

# 40 parts of unlike costs, about 20 ms to 200 ms each: enough for something to be killed between any two of them.
PLAN = """
shard_rows = 6
[outputs]
spent = { function = "dpsgd_delta", arguments = { eps = 1.0 } }
[axes]
noise_multiplier = { logspace = [0.7, 5.0], num = 40 }
sampling_rate = [0.01, 0.05, 0.2]
steps = [100, 1000]
"""
CELLS, PARTS = 240, 40
PATIENCE = processes.seconds(120)


@dataclass
class Fault:
    """What happened, and what was left of it after the run was started again."""

    killed: str
    parts_then: int
    exit_code: int
    message: str
    parts_kept: int
    rows_lost: int
    rows_doubled: int
    same_bytes: bool


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Return once a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            message = f"waited in vain for {what}"
            raise TimeoutError(message)
        time.sleep(0.01)


class Cluster:
    """A scheduler and two workers in processes of their own, started again where they were killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = (folder / "log.txt").open("wb")
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def start(self, command: str, *options: str) -> subprocess.Popen[bytes]:
        """Start one of Dask's commands."""
        full = [sys.executable, "-m", f"distributed.cli.{command}", *options, "--no-dashboard"]
        return subprocess.Popen(full, stdout=self.log, stderr=self.log, cwd=self.folder)

    def ready(self) -> str:
        """Return the address of a scheduler that has two workers."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.stop()
            file = self.folder / "scheduler.json"
            file.unlink(missing_ok=True)
            options = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
            self.scheduler = self.start("dask_scheduler", *options)
            wait_until(lambda: file.exists() and file.read_text().endswith("}"), "the scheduler")
            self.address = json.loads(file.read_text())["address"]
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        while len(self.workers) < 2:
            options = ["--no-nanny", "--nthreads", "1", "--local-directory", str(self.folder)]
            self.workers.append(self.start("dask_worker", self.address, *options))
        with distributed.Client(self.address, set_as_default=False, timeout=PATIENCE) as client:
            client.wait_for_workers(2, timeout=PATIENCE)
        return self.address

    def stop(self) -> None:
        """Kill what still runs."""
        for process in [*self.workers, *([self.scheduler] if self.scheduler else [])]:
            processes.end(process)
        self.workers, self.scheduler = [], None


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Give a cluster that ends with the block."""
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.stop()
        made.log.close()


class Sweep:
    """One run of the command, to be hit in the middle."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.out = folder / "out"
        self.plan = folder / "plan.toml"
        self.plan.write_text(PLAN)
        command = [sys.executable, "-m", "hockeystick", "sweep", "run", str(self.plan), "-o", str(self.out), *options]
        with contextlib.ExitStack() as stack:
            self.process = stack.enter_context(processes.child(command, stdout=subprocess.DEVNULL))
            wait_until(lambda: self.parts() >= 5 or self.process.poll() is not None, "five parts")
            self.parts_then = self.parts()
            self.stack = stack.pop_all()  # it lives until `ended`

    def parts(self) -> int:
        """Return how many parts are there."""
        return len([*(self.out / "cells").glob("part-*")]) if (self.out / "cells").exists() else 0

    def children(self) -> list[psutil.Process]:
        """Return the worker processes that the command itself has started."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        return [child for child in children if "spawn_main" in " ".join(child.cmdline())]

    def ended(self, killed: str, whole: dict[str, bytes], address: str = "") -> Fault:
        """Wait for the end, resume, here or on the cluster at an address, and look at the table."""
        with self.stack:
            _, errors = self.process.communicate(timeout=PATIENCE)
        told = [line for line in errors.splitlines() if line.startswith("hockeystick")]
        assert "Traceback" not in errors or self.process.returncode < 0, errors
        kept = whole_files(Folder(self.out))
        assert kept.items() <= whole.items()  # nothing is there in part
        if address:
            with distributed.Client(address, set_as_default=False, timeout=PATIENCE) as client:
                run(self.plan, self.out, client=client)
        else:
            run(self.plan, self.out)
        lost, doubled = lost_and_doubled(pq.read_table(self.out / "cells", columns=["cell"])["cell"], CELLS)
        return Fault(
            killed,
            self.parts_then,
            self.process.returncode,
            " ".join(told),
            len([name for name in kept if "part-" in name]),
            lost,
            doubled,
            whole_files(Folder(self.out)) == whole,
        )


def worker_killed(made: Cluster, folder: Path, whole: dict[str, bytes]) -> Fault:
    """Kill one of two workers."""
    sweep = Sweep(folder, "--scheduler", made.ready())
    made.workers[0].kill()
    return sweep.ended("one of two workers, SIGKILL", whole)


def scheduler_killed(made: Cluster, folder: Path, whole: dict[str, bytes]) -> Fault:
    """Kill the scheduler."""
    sweep = Sweep(folder, "--scheduler", made.ready())
    assert made.scheduler
    made.scheduler.kill()
    return sweep.ended("the scheduler, SIGKILL", whole)


def client_killed(made: Cluster, folder: Path, whole: dict[str, bytes]) -> Fault:
    """Kill the command, and start it again while its tasks are still in the cluster."""
    sweep = Sweep(folder, "--scheduler", made.ready())
    sweep.process.kill()
    return sweep.ended("the command, SIGKILL", whole, made.address)


def both_killed(made: Cluster, folder: Path, whole: dict[str, bytes]) -> Fault:
    """Kill a worker and the command, and start the command again with the worker that is left."""
    sweep = Sweep(folder, "--scheduler", made.ready())
    made.workers[1].kill()
    sweep.process.kill()
    return sweep.ended("a worker and the command, SIGKILL", whole, made.address)


def workers_cannot_write(made: Cluster, folder: Path, whole: dict[str, bytes]) -> Fault:
    """Let workers write no file of more than 256 bytes any more: the command writes the parts."""
    sweep = Sweep(folder, "--scheduler", made.ready())
    with small_files(made, *made.workers):
        return sweep.ended("nothing, but workers may not write", whole)


def disk_full(made: Cluster, folder: Path, whole: dict[str, bytes]) -> Fault:
    """Let neither workers nor the command write a file of more than 256 bytes any more."""
    sweep = Sweep(folder, "--scheduler", made.ready())
    with small_files(made, *made.workers, sweep.process):
        return sweep.ended("nothing, but files may not exceed 256 bytes any more", whole)


@contextlib.contextmanager
def small_files(made: Cluster, *limited: subprocess.Popen[Any]) -> Iterator[None]:
    """Let processes write small files only; the workers among them end with the block, since a limit stays."""
    for process in limited:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (256, 256))
    try:
        yield
    finally:
        for worker in made.workers:
            processes.end(worker)


def interrupted(_made: Cluster, folder: Path, whole: dict[str, bytes]) -> Fault:
    """Press Ctrl-C, which a terminal sends to the command and to its workers."""
    sweep = Sweep(folder, "--workers", "2")
    os.killpg(sweep.process.pid, signal.SIGINT)
    return sweep.ended("Ctrl-C with `--workers 2`", whole)


def local_worker_killed(_made: Cluster, folder: Path, whole: dict[str, bytes]) -> Fault:
    """Kill a worker that the command has started."""
    sweep = Sweep(folder, "--workers", "2")
    sweep.children()[0].kill()
    return sweep.ended("one of `--workers 2`, SIGKILL", whole)


def local_client_killed(_made: Cluster, folder: Path, whole: dict[str, bytes]) -> Fault:
    """Kill a command that has workers of its own: they end, too."""
    sweep = Sweep(folder, "--workers", "2")
    children = sweep.children()
    sweep.process.kill()
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert not alive
    return sweep.ended("the command with `--workers 2`, SIGKILL", whole)


SCENARIOS = {
    function.__name__: function
    for function in (
        worker_killed,
        scheduler_killed,
        client_killed,
        both_killed,
        workers_cannot_write,
        disk_full,
        local_worker_killed,
        local_client_killed,
        interrupted,
    )
}


def main() -> None:
    """Print the table."""
    print("| killed | parts there | exit code | message | parts kept | rows lost | rows doubled | same bytes |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as root, cluster(Path(root)) as made:
        (Path(root) / "plan.toml").write_text(PLAN)
        run(Path(root) / "plan.toml", Path(root) / "whole")
        for name, scenario in SCENARIOS.items():
            folder = Path(root) / name
            folder.mkdir()
            fault = scenario(made, folder, whole_files(Folder(Path(root) / "whole")))
            message = fault.message.replace(str(folder) + os.sep, "").replace(made.address, "tcp://HOST:PORT")
            print(
                f"| {fault.killed} | {fault.parts_then} of {PARTS} | {fault.exit_code} | {message} | {fault.parts_kept} "
                f"| {fault.rows_lost} | {fault.rows_doubled} | {'yes' if fault.same_bytes else 'NO'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
