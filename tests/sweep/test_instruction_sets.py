"""A plan that names its instruction set: the same bytes on machines of several kinds, and clear words where one has not the set."""

import json
import os
import sys

import numpy as np
import pytest

import effort
import hockeystick._core as core
import processes
from hockeystick.sweep import ClusterError, functions, run
from hockeystick.sweep.evaluate import computing_with
from hockeystick.sweep.plan import parse
from sweep_plans import content, workers_here

pytest.importorskip("pyarrow")

PLAN = {
    "shard_rows": 8,
    "outputs": {"epsilon": {"function": "dpsgd_epsilon", "arguments": {"delta": 1e-5}}, "mu": "q"},
    "axes": {
        "noise_multiplier": {"logspace": [0.7, 3.0], "num": 5},
        "sampling_rate": [0.01, 0.1],
        "steps": [7, 100],
        "x": [1.5],
    },
}
# What NumPy and OpenBLAS find on a machine without AVX-512.
WITHOUT_AVX512 = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Haswell"}


SETS = core.instruction_sets().split(", ")
needs_v4 = pytest.mark.skipif("v4" not in SETS, reason="needs AVX-512, to do without it")


@pytest.mark.share(4)
@pytest.mark.parametrize("name", SETS)
def test_same_bytes_as_on_a_machine_of_that_kind(tmp_path, name):
    """Every process computes a plan with the set that it names, whatever it would choose by itself."""
    plan = {**PLAN, "instruction_set": name}
    run(plan, tmp_path / "here")
    assert core.use_instruction_set(core.instruction_set) == core.instruction_set  # as before
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    code = "import json, sys; from hockeystick.sweep import run; run(json.load(open(sys.argv[1])), sys.argv[2])"
    forced = {**os.environ, "HOCKEYSTICK_ISA": SETS[0], **WITHOUT_AVX512}
    processes.python(code, tmp_path / "plan.json", tmp_path / "there", env=forced)
    assert content(tmp_path / "there") == content(tmp_path / "here")
    stored = [json.loads(path.read_text()) for path in (tmp_path / "here").glob("*manifest.json")]
    assert [manifest["instruction_set"] for manifest in stored] == [name]


def test_set_of_the_calling_thread(tmp_path):
    """A plan without a set has the best of the machine, as its manifest says, also where the caller's thread uses another one."""
    run(PLAN, tmp_path / "best", num_threads=1)
    with computing_with(SETS[0]):
        run(PLAN, tmp_path / "there", num_threads=1)
        assert core.use_instruction_set(SETS[0]) == SETS[0]  # as before
    assert content(tmp_path / "there") == content(tmp_path / "best")


def without(monkeypatch):
    """Make this machine one that has no AVX-512."""
    use = core.use_instruction_set

    def refused(name):
        if name == "v4":
            raise ValueError("instruction_set must be an instruction set of this machine, not 'v4': it cannot run that")
        return use(name)

    monkeypatch.setattr(core, "use_instruction_set", refused)


def test_machine_without_the_set(tmp_path, monkeypatch):
    """A machine that has not the plan's set refuses the run before anything is written."""
    without(monkeypatch)
    with pytest.raises(ValueError, match="instruction_set must be an instruction set of this machine"):
        run({**PLAN, "instruction_set": "v4"}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_worker_without_the_set(tmp_path, monkeypatch):
    """A worker that has not the plan's set is named, with what to do; the client itself need not have it."""
    pytest.importorskip("distributed")
    without(monkeypatch)
    with (
        workers_here(1) as client,
        pytest.raises(
            ClusterError,
            match=r'on inproc://.* not \'v4\': it cannot run that; in the plan, name the best set .* instruction_set = "v3"; 0 ',
        ),
    ):
        run({**PLAN, "instruction_set": "v4"}, tmp_path / "out", client=client)


def test_logspace_is_that_of_the_c_library():
    """The values of a logspace are within a few units in the last place of the powers, whatever NumPy's own loops give."""
    mpmath = pytest.importorskip("mpmath")
    for first, last, num in (
        (1e-3, 1.0, 4),
        (0.7, 5.0, 40),
        (1e-300, 1e300, 7),
        (3.0, 2.0, 5),
        (1.0, sys.float_info.max, 7),
    ):
        axes = {"epsilon": {"logspace": [first, last], "num": num}, "r": [1.0]}
        values = parse({"outputs": {"delta": "theta"}, "axes": axes}).columns["epsilon"]
        assert (values[0], values[-1]) == (first, last)
        with mpmath.workdps(40):
            ratio = mpmath.mpf(last) / mpmath.mpf(first)
            exact = [mpmath.mpf(first) * ratio ** (mpmath.mpf(k) / (num - 1)) for k in range(num)]
            errors = [float(abs(mpmath.mpf(value) / true - 1)) for value, true in zip(values, exact, strict=True)]
        # An exponent of up to 308 is rounded twice, to 2^-45 in all at worst; times ln 10.
        assert max(errors) <= 2.0**-45 * np.log(10.0)


# Every function on every axis of its own, as hexadecimal digests. Another process runs this text, too.
PROBE = """
import hashlib, json, sys, warnings
import numpy as np
from hockeystick.sweep import functions
from sweep_plans import GOOD, required_of

warnings.simplefilter("ignore")
random = np.random.default_rng(5)
found = {}
for name in sorted(functions.REGISTERED):
    function = functions.lookup(name)
    given = {argument: GOOD[argument] for argument in required_of(function)}
    columns = []
    for argument in function.parameters:
        middle = GOOD[argument]
        if isinstance(middle, str):
            continue
        count = int(sys.argv[1]) if functions.registered(name).cost != "cheap" else 100
        whole = argument in functions.INTEGERS
        column = random.integers(max(1, middle // 2), 4 * middle, count) if whole else middle * random.uniform(0.6, 1.3, count)
        call = {**given, argument: column[:, None] if argument in function.per_round else column}
        if argument == "noise_scale":
            call.pop("noise_std", None)
        try:
            if function.is_ufunc:
                result = function.call(*(np.asarray(call[name], float) for name in function.parameters))
            else:
                result = function.call(**call, num_threads=1, on_error="nan")
        except (ValueError, TypeError):
            continue  # what cannot be an array
        columns.append(np.asarray(getattr(result, "delta", result), float))
    assert any(np.isfinite(column).any() for column in columns), name
    found[name] = hashlib.sha256(b"|".join(column.tobytes() for column in columns)).hexdigest()
print(json.dumps(found))
"""


@needs_v4
@pytest.mark.slow
def test_functions_do_not_depend_on_numpys_instructions():
    """No function of a plan has other bytes where NumPy and OpenBLAS do without AVX-512, if the core's set is the same."""
    same = {**os.environ, "HOCKEYSTICK_ISA": "v3", "PYTHONPATH": os.pathsep.join(sys.path)}
    found = [
        json.loads(processes.python(PROBE, effort.at_night(6, by_day=2), env={**same, **more}).stdout)
        for more in ({}, WITHOUT_AVX512)
    ]
    assert found[0].keys() == functions.REGISTERED.keys()
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []
