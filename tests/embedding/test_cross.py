"""Other platforms, as far as this one can run them: the downstream programs of tests/embed, cross-compiled and emulated.

Their numbers must be those of the module that runs here: on Arm by qemu, on Windows by wine, and where long double has 64 bits. A
target whose compiler or emulator is missing is skipped with its name; CONTRIBUTING.md says what to install.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import hockeystick as hs
import processes

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "tests" / "embed"
TARGETS = {  # compiler and its options, and what runs its programs
    "aarch64": (["aarch64-linux-gnu-g++", "-Wno-psabi"], ["qemu-aarch64-static"]),
    "windows": (["x86_64-w64-mingw32-g++-posix"], ["wine"]),
    "long double of 64 bits": (["g++", "-mlong-double-64"], []),
}


def compiled(target: str, folder: Path, program: str, *sources: str) -> list[Path | str]:
    """Build a program, and return the command that runs it."""
    compiler, runner = TARGETS[target]
    for tool in (compiler[0], *runner):
        if shutil.which(tool) is None:
            pytest.skip(f"{target}: {tool} is not installed")
    include = Path(hs.get_include())
    made = folder / f"{program.replace(' ', '_')}.exe"
    options = [
        "-std=c++17",
        "-O1",
        "-static",
        "-pthread",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{include}",
        f"-I{include}/hockeystick/pocketfft",
    ]
    processes.run([*compiler, *options, *(PROGRAMS / source for source in sources), "-o", made], limit=600)
    return [*runner, made]


def numbers(command: list[Path | str], folder: Path) -> list[float]:
    """Return what a program prints."""
    environment = os.environ | {"WINEDEBUG": "-all", "WINEPREFIX": str(folder / "wine")}
    return [float(word) for word in processes.run(command, limit=300, env=environment).stdout.split()]


@pytest.mark.parametrize("target", TARGETS)
def test_kernels(target: str, tmp_path: Path) -> None:
    """Exact kernels and hidden-state bounds have the digits of this machine."""
    theta, eps, *cells = numbers(compiled(target, tmp_path, "kernels", "kernels.cpp", "other.cpp"), tmp_path)
    assert theta == pytest.approx(0.1269367375066439458, rel=2e-14)
    assert eps == pytest.approx(1.0, rel=1e-13)
    cell = {"num_records": 100, "learning_rate": 0.8, "lipschitz": 1.0, "smoothness": 1.0, "strong_convexity": 0.3}
    laplace = hs.last_iterate.pnsgd_laplace(0.2, index=95, noise_scale=2.0, diameter=1.0, **cell)
    assert cells[1] == pytest.approx(laplace, rel=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_accountant(target: str, tmp_path: Path) -> None:
    """Certified brackets overlap those of this machine, and are as narrow."""
    found = numbers(compiled(target, tmp_path, "accountant", "accountant.cpp"), tmp_path)
    training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.1), 0.01), 1000).compose(hs.Laplace(20.0))
    for (lower, upper), ours in zip(
        (found[:2], found[2:]), (training.epsilon_bracket(1e-5), training.delta_bracket(2.0)), strict=True
    ):
        assert lower <= ours.upper
        assert ours.lower <= upper
        assert upper - lower <= 1.01 * (ours.upper - ours.lower)
