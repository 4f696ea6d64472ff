"""Other platforms, as far as this one can run them: the downstream programs of tests/embed, cross-compiled and emulated.

Their numbers must be those of the module that runs here: on Arm by qemu, on Windows by wine, as WebAssembly with the C library musl by Node, and
where long double is double, as with MSVC and on Apple's Arm: there the headers are compiled with the word replaced. A target whose compiler or emulator is missing is skipped with its
name: `apt-get install g++-aarch64-linux-gnu qemu-user-static g++-mingw-w64-x86-64-posix wine emscripten nodejs` has them all.
By day doubles alone are tried, which need no emulator; the other targets wait for the night.
"""

import os
import platform
import re
import shutil
from pathlib import Path

import mpmath
import pytest

import effort
import high_precision as exact
import hockeystick as hs
import processes

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "embed"
TARGETS = {  # compiler and its options, and what runs its programs
    "aarch64": (["aarch64-linux-gnu-g++", "-Wno-psabi"], ["qemu-aarch64-static"]),
    "windows": (["x86_64-w64-mingw32-g++-posix"], ["wine"]),
    "long double is double": (["g++"], []),
    "wasm": (["em++", "-fwasm-exceptions", "-sALLOW_MEMORY_GROWTH"], ["node", "--no-experimental-fetch"]),
}
BY_DAY = "long double is double"
EACH_TARGET = [pytest.param(name, marks=[] if name == BY_DAY else [effort.AT_NIGHT]) for name in TARGETS]
EMSCRIPTEN = {"NODE_PATH": "/usr/share/nodejs"}  # where Debian has what em++ needs


def compiled(target, folder, program, *sources):
    """Build a program, and return the command that runs it."""
    compiler, runner = TARGETS[target]
    for tool in (compiler[0], *runner[:1]):
        if shutil.which(tool) is None:
            pytest.skip(f"{target}: {tool} is not installed")
    include = Path(hs.get_include())
    if target == "long double is double":
        include = shutil.copytree(include, folder / "include")
        ours = [header for header in (include / "hockeystick").rglob("*.hpp") if header.parent.name != "pocketfft"]
        for header in ours:
            text = header.read_text(encoding="utf-8").replace("long double", "double")
            header.write_text(re.sub(r"(?<=[0-9.])L\b", "", text), encoding="utf-8")  # literals, too
    wasm = target == "wasm"
    made = folder / f"{program.replace(' ', '_')}.{'js' if wasm else 'exe'}"
    options = [
        "-std=c++17",
        "-O1" if effort.NIGHT else "-O0",  # which compiles in two thirds of the time
        *([] if wasm else ["-static", "-pthread", "-Wall", "-Wextra", "-Werror"]),
        f"-I{include}",
        f"-I{include}/hockeystick/pocketfft",
    ]
    processes.run(
        [*compiler, *options, *(PROGRAMS / source for source in sources), "-o", made],
        limit=600,
        env=os.environ | EMSCRIPTEN,
    )
    return [*runner, made]


def printed(command, folder):
    """Return the words of each line that a program prints."""
    environment = os.environ | {"WINEDEBUG": "-all", "WINEPREFIX": str(folder / "wine")}
    return [line.split() for line in processes.run(command, limit=300, env=environment).stdout.splitlines()]


def agree(found, ours):
    """Say whether two brackets overlap, and the found one is nearly as narrow: sums in another order may choose another line."""
    lower, upper = found
    room = 2.0 * (ours.upper - ours.lower) + 1e-9 * ours.upper
    return lower <= ours.upper and ours.lower <= upper and (upper - lower <= room or upper == ours.upper)


@pytest.mark.parametrize("target", EACH_TARGET)
def test_cells(target, tmp_path):
    """441 cells of kernels have the digits of this machine, and 144 brackets overlap its own and are as narrow."""
    lines = printed(compiled(target, tmp_path, "cells", "cells.cpp"), tmp_path)
    kernels = [line for line in lines if line[0] != "ledger"]
    assert len(kernels) > 400
    for name, *words in kernels:
        x, y, value = map(float, words)
        function = getattr(hs, name)
        here = float(function(x, y)) if function.nin == 2 else float(function(x))
        assert value == pytest.approx(here, rel=1e-12, abs=0.0), (name, x, y)
    for _, *words in (line for line in lines if line[0] == "ledger"):
        noise, rate, steps, delta, *ends = map(float, words)
        alone = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate), steps)
        both = (
            hs.Accountant().compose(hs.PoissonSampled(hs.Laplace(10 * noise), rate), steps).compose(hs.Gaussian(noise))
        )
        assert agree(ends[:2], alone.epsilon_bracket(delta)), words
        assert agree(ends[2:], both.epsilon_bracket(delta)), words


@pytest.mark.parametrize("target", EACH_TARGET)
def test_mixtures(target, tmp_path):
    """247 brackets that rest on functions of long double, down to 1e-197, hold the exact divergence of two normal laws. Posterior moments are at least mpmath's.

    On 113 bits musl has no such functions and answers with those of double, which brackets must pay for.
    """
    lines = printed(compiled(target, tmp_path, "mixtures", "mixtures.cpp"), tmp_path)
    brackets, moments = ([tuple(map(float, words)) for words in lines if len(words) == count] for count in (4, 8))
    assert len(brackets) > 240
    wide = 0
    for eps, distance, lower, upper in brackets:
        assert lower <= exact.theta(eps, distance) <= upper, (eps, distance)
        wide += upper - lower > 1e-6 * upper + 1e-40
    assert wide <= 5  # here 3
    assert len(moments) > 900
    for where, told in ((words[:3], words[3:]) for words in moments):
        check_posterior(where, told)


def posterior(near, x):
    """Return log A at x, and the posterior probability of each shift of mixtures.cpp."""
    terms = [(r, w * mpmath.exp(r * (x - r / 2))) for r, w in ((0, 0.5), (mpmath.mpf(near), 0.375), (40, 0.125))]
    whole = mpmath.fsum(term for _, term in terms)
    return mpmath.log(whole), [(r, term / whole) for r, term in terms]


def check_posterior(where, told):
    """Check log A within its error and the mean; that both moments hold everywhere within the reach, and that the variance is Lemma 11's.

    Far from a shift its posterior can be below all rounding, and rule the moments within the reach.
    """
    (near, x, reach), (log, error, mean, variance, cube) = where, told
    with mpmath.workdps(60):
        log_exact, shares = posterior(near, mpmath.mpf(x))
        mu = mpmath.fsum(r * p for r, p in shares)
        assert abs(log - log_exact) <= error * 2.0**-53, where
        assert error <= 1e4, where
        assert mean == pytest.approx(float(mu), rel=1e-12)
        lemma = mpmath.fsum(p * (r - mu) ** 2 * mpmath.exp(abs(r - mu) * reach) for r, p in shares)
        assert lemma <= variance <= lemma * (1 + 1e-8) + 1e-20, where  # the mean is rounded
        for part in (-1.0, -0.5, 0.5, 1.0):
            _, there = posterior(near, mpmath.mpf(x) + part * reach)
            centre = mpmath.fsum(r * p for r, p in there)
            second, third = (mpmath.fsum(p * abs(r - centre) ** n for r, p in there) for n in (2, 3))
            assert second <= variance, (*where, part)
            assert third <= cube, (*where, part)


def test_another_long_double_than_the_librarys_is_refused():
    """With -mlong-double-64 on glibc, cosl and its like are given what they do not expect: the headers do not compile."""
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc" or shutil.which("g++") is None:
        pytest.skip("needs g++ and glibc on x86-64")
    flags = ["-std=c++17", "-mlong-double-64", "-fsyntax-only", f"-I{hs.get_include()}"]
    done = processes.run(["g++", *flags, PROGRAMS / "other.cpp"], check=False)
    assert done.returncode != 0
    assert "long double" in done.stderr


@pytest.mark.parametrize("target", EACH_TARGET)
def test_hidden_states(target, tmp_path):
    """The closed forms of the last iterate have the digits of this machine."""
    _, cells = printed(compiled(target, tmp_path, "kernels", "kernels.cpp", "other.cpp"), tmp_path)
    cell = {"num_records": 100, "learning_rate": 0.8, "lipschitz": 1.0, "smoothness": 1.0, "strong_convexity": 0.3}
    laplace = hs.last_iterate.pnsgd_laplace(0.2, index=95, noise_scale=2.0, diameter=1.0, **cell)
    assert float(cells[1]) == pytest.approx(laplace, rel=1e-12)
