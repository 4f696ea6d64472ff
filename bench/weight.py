"""Weigh what stands before a user's first number: python bench/weight.py [--check].

The build is counted in processor seconds of all its processes, which do not depend on what else the machine
does as much as a clock does, and divided by those of compiling one file that never changes (`YARDSTICK`), so that figures of
different machines compare. Times of imports and calls are divided by NumPy's import and by the core's own call. `--check`
ends with 1 if a ratio is more than 15 % above its figure in `FIGURES`; a change that lowers one lowers the figure.

Needs a checkout, pip, a C++17 compiler, and an installed hockeystick for imports and calls.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = 1.15
IMPORTS = 20
FIGURES = {
    "build of the wheel": 20.0,
    "wheel": 3.0,
    "installed, with bytecode": 10.8,
    "import beyond NumPy": 0.15,
    "around the core, gdp_delta": 1.4,
    "around the core, dpsgd_epsilon": 0.6,
}
YARDSTICK = """
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>
std::map<std::string, std::vector<double>> table(const std::string& text) {
    const std::regex word("([a-z]+)=([0-9.]+)");
    std::map<std::string, std::vector<double>> found;
    for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) {
        std::istringstream number((*at)[2]);
        double value = 0.0;
        number >> value;
        found[(*at)[1]].push_back(value);
    }
    for (auto& each : found) std::sort(each.second.begin(), each.second.end(), std::greater<>());
    return found;
}
"""
CALLS = {
    "gdp_delta": ("hs.gdp_delta(1.0, 0.5)", "core.gdp_delta([1.0, 0.5], 1)"),
    "dpsgd_epsilon": ("hs.dpsgd_epsilon(1.1, 0.01, 1000, 1e-5)", "core.dpsgd_epsilon([1.1, 0.01, 1000.0, 1e-5], 1)"),
}


def processor_seconds(*command, cwd=None, **more):
    """Run a command and return the processor time of it and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [str(part) for part in command], cwd=cwd, env=os.environ | more, check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def yardstick(folder):
    """Return the processor times of five compilations of the file that never changes."""
    source = folder / "yardstick.cpp"
    source.write_text(YARDSTICK, encoding="utf-8")
    compiler = os.environ.get("CXX") or shutil.which("c++") or "c++"
    command = (compiler, "-std=c++17", "-O2", "-c", source, "-o", folder / "yardstick.o")
    return [processor_seconds(*command) for _ in range(5)]


def build(folder):
    """Return the processor time of building a wheel of what is committed, its megabytes, and those installed with bytecode."""
    clone, wheels, installed = folder / "clone", folder / "wheels", folder / "installed"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    seconds = processor_seconds(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", wheels, clone)
    wheel = next(wheels.glob("*.whl"))
    zipfile.ZipFile(wheel).extractall(installed)
    subprocess.run([sys.executable, "-m", "compileall", "-q", installed], check=True)
    files = (path for path in installed.rglob("*") if path.is_file())
    return seconds, wheel.stat().st_size / 1e6, sum(path.stat().st_size for path in files) / 1e6


def import_seconds(folder, *modules):
    """Return the median processor times of Pythons that import a module and end; modules take turns."""
    turns = [
        [processor_seconds(sys.executable, "-c", f"import {module}", cwd=folder) for module in modules]
        for _ in range(IMPORTS)
    ]
    return [statistics.median(times) for times in zip(*turns, strict=True)]


def call_seconds(facade, core, folder):
    """Return the least times of a warm call through the facade and of the core's own, which take turns."""
    code = (
        "import timeit; import hockeystick as hs; import hockeystick._core as core\n"
        f"timers = [timeit.Timer(call, globals=globals()) for call in ({facade!r}, {core!r})]\n"
        "turns = [[timer.timeit(500) / 500 for timer in timers] for _ in range(40)]\n"
        "print(*map(min, zip(*turns)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True)
    through, inside = map(float, printed.stdout.split())
    return through, inside


def weigh():
    """Return rows: what, how much, of which unit, and its ratio to what it is held against."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        before = yardstick(folder)
        seconds, wheel, installed = build(folder)
        unit = statistics.median(before + yardstick(folder))
        rows = [
            ("yardstick", unit, "s", 1.0),
            ("build of the wheel", seconds, "s", seconds / unit),
            ("wheel", wheel, "MB", wheel),
            ("installed, with bytecode", installed, "MB", installed),
        ]
        python, numpy, ours = import_seconds(folder, "sys", "numpy", "hockeystick")
        rows.append(("import beyond NumPy", 1e3 * (ours - numpy), "ms", (ours - numpy) / (numpy - python)))
        for name, (facade, core) in CALLS.items():
            through, inside = call_seconds(facade, core, folder)
            rows.append((f"around the core, {name}", 1e6 * (through - inside), "us", (through - inside) / inside))
    return rows


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="end with 1 if a ratio is above its figure")
    options = parser.parse_args()
    rows = weigh()
    heavier = []
    for name, amount, unit, ratio in rows:
        figure = FIGURES.get(name)
        held = f"  figure {figure:g}" if figure else ""
        sys.stdout.write(f"{name:32} {amount:10.3g} {unit:3} ratio {ratio:8.3g}{held}\n")
        if figure and ratio > ALLOWED * figure:
            heavier.append(name)
    if heavier:
        sys.stdout.write(f"heavier than their figures: {', '.join(heavier)}\n")
    return int(options.check and bool(heavier))


if __name__ == "__main__":
    sys.exit(main())
