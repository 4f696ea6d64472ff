"""The process that gate.py starts with the Python of one of the two versions: python bench/gate_worker.py FILE [--count NAMES REPEATS].

FILE has `WORKLOADS`, name -> call with a number. Without --count the worker prints the names that work and where the core is,
then answers each line "name, tab, repeats" with the processor seconds of so many calls. With --count it marks the beginning
and the end of each workload by a system call that nobody else makes, for valgrind to see.
"""

import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Call = Callable[[int], Any]


def load(file):
    """Return the workloads of a file."""
    sys.path.append(str(Path(file).parent))
    return runpy.run_path(file)["WORKLOADS"]


def offered(workloads):
    """Return the workloads that this version knows; a call with wrong arguments is one that it does not know."""
    names = []
    for name, call in workloads.items():
        try:
            call(-1)
        except (AttributeError, TypeError):
            continue
        names.append(name)
    return names


def answer(workloads):
    calls = dict.fromkeys(workloads, 0)
    for line in sys.stdin:
        name, _, repeats = line.rstrip("\n").partition("\t")
        first = calls[name]
        calls[name] += int(repeats)
        call, numbers = workloads[name], range(first, calls[name])
        start = time.process_time()
        for k in numbers:
            call(k)
        print(time.process_time() - start, flush=True)  # noqa: T201


def count(workloads, names, repeats):
    for name in names:
        call = workloads[name]
        call(0)  # warm
        os.getpgid(0)
        for k in range(1, repeats + 1):
            call(k)
        os.getpgid(0)


def main():
    workloads = load(sys.argv[1])
    if len(sys.argv) > 2:
        count(workloads, json.loads(sys.argv[3]), int(sys.argv[4]))
        return
    names = offered(workloads)
    core = getattr(sys.modules.get("hockeystick._core"), "__file__", None)
    print(json.dumps([names, core and os.path.realpath(core)]), flush=True)  # noqa: T201
    answer(workloads)


if __name__ == "__main__":
    main()
