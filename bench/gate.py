"""Hold a change against its base: python bench/gate.py BASE CHANGE [--json FILE]. Ends with 1 if the change is slower.

BASE and CHANGE are Python executables with a hockeystick each, or directories to put in front of the path of this Python, which
must have no editable one. Two measurements, either of which fails the change:

Instructions. valgrind counts those of each workload, in one process per version. They repeat to 0.1 %, whatever else the machine
does, so more than 2 % is a regression. valgrind knows no AVX-512: the counts are of the v3 kernels (HOCKEYSTICK_ISA=v3).

Times. A pair is two fresh processes, one of each version, that take turns; its ratio is that of their median processor times.
With a new pair the addresses are drawn anew, so that pairs are independent and nothing is assumed of their distribution. If
the change were slower by at most 5 %, at most half of the ratios would be above 1.05. A sign test rejects that for a workload
with a one-sided probability below 1 % divided by the number of workloads: all of them together raise a false alarm in one run
of a hundred at most.
"""

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from turns import SHORTEST_SAMPLE, table

HERE = Path(__file__).parent
MORE_TIME = 0.05
MORE_INSTRUCTIONS = 0.02
FALSE_ALARMS = 0.01  # probability in a run
TURNS = 5  # of each version in a pair
COUNTED_CALLS = 3
ALONE = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")} | {"PYTHONHASHSEED": "0"}


@dataclass(frozen=True)
class Installation:
    """One of the two versions."""

    path: Path

    @property
    def python(self):
        """Return the executable."""
        return sys.executable if self.path.is_dir() else str(self.path)

    def environment(self, **more):
        """Return the environment of its processes."""
        first = {"PYTHONPATH": str(self.path)} if self.path.is_dir() else {}
        return os.environ | ALONE | first | more


@dataclass
class Row:
    """What was measured of a workload."""

    name: str
    instructions: tuple[int, int] | None = None  # base, change
    ratios: list[float] = field(default_factory=list)  # of times, change over base, one for each pair

    @property
    def more_instructions(self):
        """Return the ratio of the counts."""
        return self.instructions[1] / self.instructions[0] if self.instructions else None

    def regressions(self, workloads):
        """Return what fails the change."""
        found = []
        if self.more_instructions and self.more_instructions > 1 + MORE_INSTRUCTIONS:
            found.append("instructions")
        if self.ratios and sign_test(self.ratios) < FALSE_ALARMS / workloads:
            found.append("time")
        return found


def sign_test(ratios):
    """Return the probability of so many ratios above 1.05, or more, if each were above it with probability 1/2."""
    above = sum(ratio > 1 + MORE_TIME for ratio in ratios)
    return sum(math.comb(len(ratios), k) for k in range(above, len(ratios) + 1)) / 2 ** len(ratios)


class Worker:
    """A process of one version that times what it is told."""

    def __init__(self, installation, file):
        """Start it."""
        command = [installation.python, str(HERE / "gate_worker.py"), str(file)]
        self.process = subprocess.Popen(
            command, env=installation.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.names, self.core = json.loads(self.line())

    def line(self):
        """Return its next line."""
        line = self.process.stdout.readline()
        if not line:
            message = f"{' '.join(map(str, self.process.args))} ended with {self.process.wait()}"
            raise RuntimeError(message)
        return line

    def seconds(self, name, repeats):
        """Return the processor seconds of some calls."""
        self.process.stdin.write(f"{name}\t{repeats}\n")
        self.process.stdin.flush()
        return float(self.line())

    def close(self):
        """End the process."""
        self.process.communicate()


def common_names(base, change, file):
    """Return the workloads that both versions know, and those that only one knows."""
    with closing(Worker(base, file)) as first, closing(Worker(change, file)) as second:
        if first.core and first.core == second.core:  # an editable installation comes before a directory
            raise ValueError(f"BASE and CHANGE must be two installations, not both {first.core}")
        known = set(first.names) & set(second.names)
        names = [name for name in second.names if name in known]
        return names, sorted(set(first.names) ^ set(second.names))


def time_pair(base, change, file, rows, *, swap):
    """Add one ratio to each row; `swap` says who goes first."""
    with closing(Worker(base, file)) as first, closing(Worker(change, file)) as second:
        order = ((second, 1), (first, 0)) if swap else ((first, 0), (second, 1))
        for row in rows:
            once = first.seconds(row.name, 1)
            second.seconds(row.name, 1)
            repeats = max(1, round(SHORTEST_SAMPLE / max(once, 1e-6)))
            times = ([], [])
            for _ in range(TURNS):
                for worker, version in order:
                    times[version].append(worker.seconds(row.name, repeats))
            row.ratios.append(statistics.median(times[1]) / statistics.median(times[0]))


def instructions(installation, file, names):
    """Return how many instructions each workload takes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "counts")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-before=getpgid"]
        command += [installation.python, str(HERE / "gate_worker.py"), str(file)]
        command += ["--count", json.dumps(names), str(COUNTED_CALLS)]
        subprocess.run(
            command, env=installation.environment(HOCKEYSTICK_ISA="v3"), check=True, capture_output=True, text=True
        )
        dumps = [total(Path(f"{out}.{number}")) for number in range(1, 2 * len(names) + 1)]
        return dumps[1::2]  # the others are what leads to a workload


def total(dump):
    found = re.search(r"^totals: (\d+)", dump.read_text(), re.MULTILINE)
    assert found, dump
    return int(found.group(1))


def check(pairs, workloads, *, count):
    """Raise ValueError if so many pairs could not fail anything."""
    least = fewest_pairs(workloads)
    if pairs < least and (pairs or not count):
        message = f"--pairs must be at least {least} for {workloads} workloads, not {pairs}" + count * ", or 0"
        raise ValueError(message)


def measure(base, change, file, pairs, *, count):
    """Return the rows, and the workloads that only one version knows."""
    names, alone = common_names(base, change, file)
    if not names:
        raise ValueError("the two versions must have a workload in common")
    check(pairs, len(names), count=count)
    rows = [Row(name) for name in names]
    if count:
        counts = (instructions(version, file, names) for version in (base, change))
        for row, both in zip(rows, zip(*counts, strict=True), strict=True):
            row.instructions = (both[0], both[1])
    for pair in range(pairs):
        time_pair(base, change, file, rows, swap=pair % 2 == 1)
    return {"rows": rows, "alone": alone}


def markdown(rows, alone):
    """Return the table."""
    lines = []
    for row in rows:
        found = row.regressions(len(rows))
        counted, timed = row.instructions, row.ratios
        counts = (f"{counted[0]:,}", f"{row.more_instructions:.4f}") if counted else (None, None)
        times = (f"{statistics.median(timed):.3f}", f"{sign_test(timed):.2g}") if timed else (None, None)
        lines.append((row.name, *counts, *times, f"**slower: {', '.join(found)}**" if found else "passes"))
    header = ("workload", "instructions", "change / base", "time, change / base", "p", "verdict")
    others = [f"Not compared, as only one version has it: {name}." for name in alone]
    return "\n\n".join([table(header, lines), *others])


def fewest_pairs(workloads):
    """Return the number of pairs below which not even all of them above the threshold are evidence."""
    return math.floor(math.log2(workloads / FALSE_ALARMS)) + 1


def main():
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("base", type=Path, help="Python executable or directory of the version before")
    parser.add_argument("change", type=Path, help="Python executable or directory of the version after")
    parser.add_argument("--pairs", type=int, default=15, help="pairs of processes that are timed; 0 for counts alone")
    parser.add_argument("--no-counts", action="store_true", help="times alone, where there is no valgrind")
    parser.add_argument("--workloads", type=Path, default=HERE / "workloads.py", help="file with other WORKLOADS")
    parser.add_argument("--json", type=Path, help="also write every number measured to this file")
    chosen = parser.parse_args()
    count = not chosen.no_counts
    if count and shutil.which("valgrind") is None:
        parser.error("valgrind is not installed: --no-counts for times alone")
    for path in (chosen.base, chosen.change):
        if not path.exists():
            parser.error(f"{path} is neither a Python executable nor a directory")
    versions = Installation(chosen.base), Installation(chosen.change)
    try:
        found = measure(*versions, chosen.workloads, chosen.pairs, count=count)
    except ValueError as error:
        parser.error(str(error))
    rows = found["rows"]
    sys.stdout.write(markdown(rows, found["alone"]) + "\n")
    if chosen.json:
        chosen.json.write_text(json.dumps([vars(row) for row in rows], indent=1) + "\n")
    slower = [row.name for row in rows if row.regressions(len(rows))]
    sys.stdout.write(f"\n{len(slower)} of {len(rows)} workloads slower\n")
    sys.exit(bool(slower))


if __name__ == "__main__":
    main()
