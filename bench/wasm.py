"""A cold epsilon of DP-SGD in Node beside native code: `python bench/wasm.py PACKAGE` prints microseconds of processor time, and sizes.

PACKAGE is the folder of the npm package (`cmake --preset wasm && cmake --build --preset wasm` makes build/wasm/package). Native code is the C
library of the installed package, at the baseline and at the machine's best instruction set; every noise multiplier is new, and the best of fifteen rounds
counts.
"""

import ctypes
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import hockeystick as hs
from hockeystick import _core

ROUNDS, QUESTIONS = 15, 200


class Bracket(ctypes.Structure):
    """An hs_bracket."""

    _fields_ = (("lower", ctypes.c_double), ("upper", ctypes.c_double))


def native() -> float:
    """Return the best round's microseconds of one question to the C library, under the instruction set of this process."""
    path = next((Path(hs.get_include()).parent / "lib").glob("libhockeystick_c.*[0-9]*"))
    epsilon = ctypes.CDLL(str(path)).hs_dpsgd_epsilon
    epsilon.argtypes = [ctypes.c_double] * 4 + [ctypes.POINTER(Bracket)]
    out, best = Bracket(), float("inf")
    for number in range(ROUNDS):
        start = time.process_time()
        for i in range(QUESTIONS):
            epsilon(0.8 + (QUESTIONS * number + i) * 1e-4, 0.01, 1000.0, 1e-5, ctypes.byref(out))
        best = min(best, (time.process_time() - start) / QUESTIONS)
    return 1e6 * best


def main(package: Path) -> None:
    """Print what Node and native code take."""
    script = Path(__file__).with_suffix(".mjs")
    done = subprocess.run(["node", script, package], capture_output=True, text=True, check=True)
    node = json.loads(done.stdout)
    write = sys.stdout.write
    write(f"load {node['load']:.0f} ms, first answer {node['first']:.0f} ms\n")
    wasm = (package / "hockeystick.wasm").read_bytes()
    write(f"hockeystick.wasm {len(wasm) / 1e3:.0f} kB, compressed {len(gzip.compress(wasm)) / 1e3:.0f} kB\n")
    write(f"{'Node':>10} {node['cold']:6.0f} us\n")
    for name in ("portable", _core.instruction_set):
        run = [sys.executable, __file__, "--native"]
        done = subprocess.run(
            run, env=os.environ | {"HOCKEYSTICK_ISA": name}, capture_output=True, text=True, check=True
        )
        taken = float(done.stdout)
        write(f"{name:>10} {taken:6.0f} us, Node {node['cold'] / taken:.2f} times as long\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--native"]:
        sys.stdout.write(f"{native()}\n")
    else:
        main(Path(sys.argv[1]))
