"""Measure everything in cases.py beside its peer and print the ratios: python bench/ratios.py.

Ours and the peer take turns in one process, so that a noisy neighbour disturbs both; the best of the rounds counts.
The kernels run once for every instruction set that this machine has, in a process
each. Everything else is compiled for the baseline and runs once.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import cases
import numpy as np
import scipy
from turns import table, take_turns

import hockeystick as hs
from hockeystick import _core

SETS = ("v4", "v3")
KERNELS = (*cases.HOCKEY_STICK, *cases.CLOSED_FORMS)
OTHERS = (*cases.CONTRACTION, *cases.SHIFTED_INTERPOLATION, *cases.HIDDEN_STATES)


def log(text):
    sys.stderr.write(text + "\n")


def timed(case, rounds):
    """Return the best seconds per call of each library."""
    calls = {}
    for library in cases.LIBRARIES:
        function = case.function(library)
        if function is not None:
            calls[library] = partial(function, *case.arguments(case.cells(library)))
    return {
        library: {"best": min(times), "cells": case.cells(library)}
        for library, times in take_turns(calls, rounds, time.perf_counter).items()
    }


def measure(group, rounds):
    """Yield one row per case of a group: kernels or others."""
    for case in KERNELS if group == "kernels" else OTHERS:
        isa = hs.show_config()["instruction_set"] if group == "kernels" else "baseline"
        log(f"{isa:8} {case.name}")
        with np.errstate(under="ignore"):
            yield {
                "case": case.name,
                "instruction_set": isa,
                "goal": case.goals.get(str(isa)),
                "times": timed(case, rounds),
            }


def instruction_sets(some):
    """Return those of some instruction sets that this machine has; where there is no choice, None."""
    return [isa for isa in some if isa in _core.instruction_sets().split(", ")] or [None]


def in_new_process(script, isa, *options, **more):
    """Return the rows that a script prints in a process of its own, which uses an instruction set, or the best one."""
    environment = {name: value for name, value in os.environ.items() if name != "HOCKEYSTICK_ISA"} | more
    forced = {"HOCKEYSTICK_ISA": isa} if isa else {}
    command = [sys.executable, script, *options]
    done = subprocess.run(command, env=environment | forced, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def per_cell(entry):
    return entry["best"] / entry["cells"] if entry else None


def duration(seconds):
    """Return a time with three digits in the unit that suits it."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def ratio(numerator, denominator):
    return f"{numerator / denominator:.2g}" if numerator and denominator else ""


def markdown(rows):
    """Return the table: time per element or cell, or of the whole call where a case is one number."""
    lines = []
    for row in rows:
        one, two, peer = (per_cell(row["times"].get(library)) for library in cases.LIBRARIES)
        times = (duration(one), duration(two), duration(peer))
        lines.append((row["case"], row["instruction_set"], *times, ratio(peer, one), row["goal"], ratio(one, two)))
    header = (
        "case",
        "instruction set",
        "1 thread",
        "2 threads",
        "NumPy, SciPy",
        "ratio",
        "goal",
        "speed-up of 2 threads",
    )
    return table(header, lines)


def cpu_name():
    """Return the processor's name as Linux gives it, else the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def machine():
    return {"cpu": cpu_name(), "python": platform.python_version(), "scipy": scipy.__version__} | hs.show_config()


def main():
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="turns that every library gets (default: 15)")
    parser.add_argument("--group", choices=("kernels", "others"), help="measure one group in this process, print JSON")
    arguments = parser.parse_args()
    if arguments.group:
        json.dump(list(measure(arguments.group, arguments.rounds)), sys.stdout)
        return
    options = ("--rounds", str(arguments.rounds), "--group")
    rows = [row for isa in instruction_sets(SETS) for row in in_new_process(__file__, isa, *options, "kernels")]
    rows += in_new_process(__file__, None, *options, "others")
    sys.stdout.write(markdown(rows) + "\n")


if __name__ == "__main__":
    main()
