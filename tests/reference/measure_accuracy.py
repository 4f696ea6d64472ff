"""Measure the kernels of the chosen instruction set (HOCKEYSTICK_ISA) against the reference tables, as JSON.

For each kernel: `worst`, the largest error in units of what is allowed (must not exceed 1), and `error` in `unit`.
With --table, run itself once per instruction set and print the table of docs/guide/numbers.md.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import mpmath as mp
import numpy as np

import high_precision as exact
import hockeystick as hs
import hockeystick._core as core
import tables

INSTRUCTION_SETS = core.instruction_sets().split(", ")
UNITS = {
    "q": "ulp",
    "log_q": "ulp",
    "q_inv": "ulp",
    "theta": "relative/(1 + abs(log θ))",
    "log_theta": "relative/max(1, 2.5/abs(log θ))",
    "laplace_theta": "ulp",
    "theta_inverse": "relative in log δ, δ ≤ ½",
    "theta_inverse above ½": "relative in 1 - δ",
    "gaussian_epsilon": "relative in log δ, δ ≤ ½",
    "gaussian_epsilon above ½": "relative in 1 - δ",
}


def backward_errors(eps: np.ndarray, r: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """How far theta(eps, r) is from delta: relative in log delta up to one half, in 1 - delta above; infinite for NaN."""
    errors = np.full(len(delta), np.inf)
    for i, (e, shift, d) in enumerate(zip(eps.tolist(), r.tolist(), delta.tolist(), strict=True)):
        if np.isfinite(e) and 0 < shift < np.inf:
            with mp.workdps(50):
                if d <= 0.5:
                    errors[i] = abs(exact.log_theta(e, shift) / mp.log(d) - 1)
                else:
                    errors[i] = abs(exact.theta_complement(e, shift) / (1 - mp.mpf(d)) - 1)
    return errors


def tabled(name: str) -> dict[str, float]:
    """Measure a kernel with a table of its values."""
    table = tables.load(name)
    relative = table.relative_error(getattr(hs, name)(*table.arguments))
    size = np.abs(table.high)
    nonzero = size > 0
    with np.errstate(all="ignore"):  # rows without a unit of their own
        in_ulps = relative * size / np.spacing(size)
        normal = size > 1e-300
        unit = {
            "theta": np.where(normal, relative / (1 + np.abs(np.log(size))), 0),
            "log_theta": relative / np.maximum(1, 2.5 / size),
        }.get(name, in_ulps)
    return {"worst": float(np.max(relative / table.tolerance)), "error": float(np.max(unit[nonzero]))}


def inverse(name: str) -> dict[str, dict[str, float]]:
    """Measure an inverse by the exact theta at what it returns."""
    table = tables.load("theta_inverse")
    eps, delta = table.arguments
    if name == "theta_inverse":
        errors = backward_errors(eps, hs.theta_inverse(eps, delta), delta)
    else:
        errors = backward_errors(hs.gaussian_epsilon(table.high, delta), table.high, delta)
    low, high = float(np.max(errors[delta <= 0.5])), float(np.max(errors[delta > 0.5]))
    return {name: {"worst": low / 1e-12, "error": low}, f"{name} above ½": {"worst": high / 1e-10, "error": high}}


def measure() -> dict[str, dict[str, float]]:
    """Measure every kernel in this process."""
    result = {name: tabled(name) for name in ("q", "log_q", "q_inv", "theta", "log_theta", "laplace_theta")}
    return result | inverse("theta_inverse") | inverse("gaussian_epsilon")


def measured_elsewhere(instruction_set: str) -> dict[str, dict[str, float]]:
    """Measure in a process of its own."""
    command = [sys.executable, Path(__file__)]
    environment = os.environ | {"HOCKEYSTICK_ISA": instruction_set}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr)
    measured: dict[str, dict[str, float]] = json.loads(done.stdout)
    return measured


def markdown() -> str:
    """Lay out one row per kernel, one column per instruction set of this machine."""
    columns = {name: measured_elsewhere(name) for name in INSTRUCTION_SETS}
    lines = ["| kernel | unit | " + " | ".join(columns) + " |", "|---|---|" + "---|" * len(columns)]
    for kernel, unit in UNITS.items():
        numbers = [f"{m[kernel]['error']:.3g} ({m[kernel]['worst']:.0%})" for m in columns.values()]
        lines.append(f"| `{kernel}` | {unit} | " + " | ".join(numbers) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print JSON for this process, or the table for all instruction sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="all instruction sets, as Markdown")
    print(markdown() if parser.parse_args().table else json.dumps(measure(), indent=1))


if __name__ == "__main__":
    main()
