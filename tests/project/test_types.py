"""Types: the package passes mypy's strict mode; its users' numbers give a float, arrays give an array, and a float is no text."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hockeystick as hs

ROOT = Path(__file__).parents[2]
SAMPLE = """
import numpy as np
import hockeystick as hs

acc = hs.Accountant().compose(hs.Gaussian(2.0), 4)
grid = np.array([1e-6, 1e-5])
reveal_type(acc.epsilon(1e-5))
reveal_type(acc.delta(1))
reveal_type(acc.log_delta(1.0))
reveal_type(acc.rdp(2.0))
reveal_type(acc.trade_off(0.1))
reveal_type(hs.dpsgd_epsilon(1.0, 0.01, 1000, 1e-5))
reveal_type(hs.dpsgd_steps(1.0, 0.01, epsilon=2.0, delta=1e-5))
reveal_type(hs.theta(1.0, 0.5))
reveal_type(hs.q(1.0))
reveal_type(acc.epsilon(grid))
reveal_type(acc.delta([1.0, 2.0]))
reveal_type(hs.dpsgd_epsilon(1.0, 0.01, [1, 10], 1e-5))
reveal_type(hs.dpsgd_delta(1.0, grid, 10, 1.0))
reveal_type(hs.theta(grid, 0.5))
reveal_type(hs.q(grid))
"""
WRONG = """
import hockeystick as hs

eps: str = hs.Accountant().compose(hs.Gaussian(2.0)).epsilon(1e-5)
steps: str = hs.dpsgd_steps(1.0, 0.01, 2.0, 1e-5)
delta: str = hs.theta(1.0, 0.5)
"""


MISSPELT = """
import hockeystick as hs

hs.nope
hs.simulate.nope
hs.federated.nope
(hs.simulate.run, hs.sweep.run, hs.plot.training, hs.audit, hs.utility.plan, hs.federated.best)
"""


@pytest.mark.slow
def test_what_type_checkers_see(tmp_path):
    """Nothing in the package; of users' calls eight floats and an int, six arrays, three numbers that are no text, and names that are misspelt."""
    pytest.importorskip("mypy")
    assert {"py.typed", "_core.pyi"} <= {path.name for path in Path(hs.__file__).parent.iterdir()}
    for name, text in (("sample", SAMPLE), ("wrong", WRONG), ("misspelt", MISSPELT)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "python/hockeystick", *map(str, tmp_path.iterdir())]  # once: it takes long
    told = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT).stdout
    seen = re.findall(r'sample.py.* Revealed type is "(.*)"', told)
    numbers = [re.findall(r"int|float", text) for text in seen[:9]]
    assert numbers.pop(6) == ["int", "float"]  # of `dpsgd_steps`, which may have no limit
    assert numbers == [["float"]] * 8
    assert len(seen) == 15
    assert all("ndarray" in text and "float64" in text for text in seen[9:])
    assert len(re.findall(r"wrong.py.* Incompatible types in assignment", told)) == 3
    assert len(re.findall(r'misspelt.py.* has no attribute "nope"', told)) == 3
    assert "Found 6 errors" in told, told
