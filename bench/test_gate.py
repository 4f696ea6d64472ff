"""The gate: it catches a kernel that was slowed on purpose, passes one that was not, and its statistics are what they say."""

import json
import math
import re
import shutil
import sys
from pathlib import Path

import gate
import pytest
import workloads

import processes

COMPILER = shutil.which("c++")
needs_tools = pytest.mark.skipif(
    COMPILER is None or shutil.which("valgrind") is None, reason="needs a C++ compiler and valgrind"
)

# The kernels of the core on an array. SLOWED plants 5 % more work in one of them.
KERNEL = """
#include <hockeystick/hockeystick.hpp>
extern "C" double theta_sum(int n) {
    double sum = 0;
    for (int i = 0; i < n; ++i) {
        double const eps = 0.01 * (i % 500);
        sum += hockeystick::theta(eps, 1.0);
    }
#ifdef SLOWED
    for (int i = 0; i < n / 20; ++i) sum += 1e-300 * hockeystick::theta(0.01 * (i % 500), 1.0);
#endif
    return sum;
}
extern "C" double q_sum(int n) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += hockeystick::q(0.01 * (i % 500));
    return sum;
}
"""
WORKLOADS = """
import ctypes, importlib.util
kernels = ctypes.CDLL(importlib.util.find_spec("kernels").submodule_search_locations[0] + "/kernels.so")
kernels.theta_sum.restype = kernels.q_sum.restype = ctypes.c_double
WORKLOADS = {"theta": lambda k: kernels.theta_sum(20000 + k), "q": lambda k: kernels.q_sum(20000 + k)}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a folder with two installations of a small library over the core: base and slowed."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "kernels.cpp").write_text(KERNEL)
    (folder / "workloads.py").write_text(WORKLOADS)
    for name, flags in (("base", ()), ("slowed", ("-DSLOWED",))):
        package = folder / name / "kernels"
        package.mkdir(parents=True)
        include = Path(__file__).parents[1] / "cpp" / "include"
        command = [str(COMPILER), "-std=c++17", "-O2", "-shared", "-fPIC", f"-I{include}", *flags]
        processes.run([*command, folder / "kernels.cpp", "-o", package / "kernels.so"])
    return folder


@pytest.mark.slow
@needs_tools
def test_slowed_kernel_is_caught(built, monkeypatch, capsys):
    """A kernel with 5 % more work fails by its instructions, and is named; its neighbour passes, with counts that agree to 0.1 %."""
    # The Python below a virtual environment starts faster.
    monkeypatch.setattr(sys, "executable", getattr(sys, "_base_executable", sys.executable))
    options = ["--pairs", "0", "--workloads", str(built / "workloads.py"), "--json", str(built / "rows.json")]
    monkeypatch.setattr(sys, "argv", ["gate.py", str(built / "base"), str(built / "slowed"), *options])
    with pytest.raises(SystemExit) as exit_code:
        gate.main()
    assert exit_code.value.code == 1
    printed = capsys.readouterr().out
    assert re.search(r"\| theta \|.*\*\*slower: instructions\*\*", printed)
    assert re.search(r"\| q \|.*\| passes \|", printed)
    assert "1 of 2 workloads slower" in printed
    counts = {row["name"]: row["instructions"] for row in json.loads((built / "rows.json").read_text())}
    assert counts["q"][1] == pytest.approx(counts["q"][0], rel=1e-3)
    assert min(min(pair) for pair in counts.values()) > 20_000  # an instruction for each element at the least


@pytest.mark.slow
@needs_tools
def test_times_are_taken_in_pairs(built):
    """Every workload gets a positive ratio from each pair; what they say is the sign test's business."""
    versions = (gate.Installation(built / "base"), gate.Installation(built / "slowed"))
    rows = [gate.Row("theta"), gate.Row("q")]
    for swap in (False, True):
        gate.time_pair(*versions, built / "workloads.py", rows, swap=swap)
    assert all(len(row.ratios) == 2 and min(row.ratios) > 0 for row in rows)


@pytest.mark.slow
@needs_tools
def test_workloads_of_one_version_are_told(built):
    """A workload that the base does not know is no regression, and is told."""
    file = built / "more.py"
    file.write_text(WORKLOADS + 'WORKLOADS["new"] = lambda k: kernels.slowed_only.missing\n')
    names = gate.common_names(gate.Installation(built / "base"), gate.Installation(built / "slowed"), file)
    assert names == (["theta", "q"], [])
    file.write_text(WORKLOADS + 'import os\nif "slowed" in os.environ["PYTHONPATH"]: WORKLOADS["new"] = abs\n')
    names = gate.common_names(gate.Installation(built / "base"), gate.Installation(built / "slowed"), file)
    assert names == (["theta", "q"], ["new"])
    assert "Not compared, as only one version has it: new." in gate.markdown([], ["new"])


def test_a_version_beside_itself_is_refused(tmp_path):
    """A directory that has no hockeystick, or that this Python's own precedes, is refused: no change could fail."""
    file = tmp_path / "workloads.py"
    file.write_text('import hockeystick._core\nWORKLOADS = {"abs": abs}\n')
    with pytest.raises(ValueError, match=r"BASE and CHANGE must be two installations, not both .*_core"):
        gate.common_names(gate.Installation(Path(sys.executable)), gate.Installation(tmp_path), file)


@pytest.mark.parametrize(
    ("above", "pairs", "expected"),
    [(0, 15, 1.0), (15, 15, 2.0**-15), (14, 15, 16 * 2.0**-15), (8, 15, 0.5), (1, 1, 0.5)],
)
def test_sign_test(above, pairs, expected):
    """The probabilities are those of a fair coin: binomial tails, symmetric about the middle."""
    assert gate.sign_test([1.2] * above + [1.0] * (pairs - above)) == pytest.approx(expected, rel=1e-14)


def test_noise_passes_and_slowness_fails():
    """Ratios that scatter about 1, and a few that are far off, pass; ratios that are nearly all above 1.05 fail."""
    scattered = gate.Row(
        "a", (1000, 1015), [0.8, 1.3, 0.95, 1.02, 1.06, 0.99, 2.0, 1.01, 0.97, 1.04, 1.1, 0.9, 1.0, 1.03, 0.98]
    )
    slow = gate.Row("b", (1000, 1000), [1.1] * 14 + [0.9])
    assert scattered.regressions(17) == []
    assert slow.regressions(17) == ["time"]
    assert gate.Row("c", (1000, 1021)).regressions(17) == ["instructions"]


@pytest.mark.parametrize(
    ("pairs", "count", "allowed"), [(0, True, True), (0, False, False), (10, True, False), (11, False, True)]
)
def test_too_few_pairs_are_refused(pairs, count, allowed):
    """With 17 workloads 2^-n < 0.01/17 needs 11 pairs; fewer could not fail anything, and are refused unless there are none."""
    assert gate.fewest_pairs(17) == 11 == math.ceil(math.log2(1700))
    if allowed:
        gate.check(pairs, 17, count=count)
    else:
        with pytest.raises(ValueError, match="--pairs must be at least 11 for 17 workloads"):
            gate.check(pairs, 17, count=count)


def test_workloads_work():
    """Every workload of the gate runs with this version."""
    for call in workloads.WORKLOADS.values():
        call(0)
