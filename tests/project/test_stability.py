"""What later versions are promised: versions/ has the public names of each version and a file of every kind that it wrote, which are read or refused by name.

``PYTHONPATH=tests/reference:tests/storms:tests/mechanisms python tests/project/test_stability.py`` writes the record of this version. A name that comes or
goes needs a line in CHANGELOG.md.
"""

import argparse
import contextlib
import inspect
import itertools
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from packaging.version import Version

import hockeystick as hs
import processes
import refused_calls
from hockeystick import budgets, cli, simulate, sweep

ROOT = Path(__file__).parents[2]
RECORDS = Path(__file__).parent / "versions"
HERE = RECORDS / hs.__version__
STEP, SAMPLE = hs.Gaussian(9.0), hs.PoissonSampled(hs.Gaussian(1.0), 0.1)
LIMITS = {"epsilon": 6.0, "delta": 1e-6}
BUDGETS = (
    budgets.GaussianFilter(**LIMITS),
    budgets.RenyiFilter(order=8.0, **LIMITS),
    budgets.ZeroConcentratedFilter(rho=1.0),
    budgets.PlannedFilter(hs.Accountant().compose(STEP, 99)),
    budgets.MenuFilter([STEP], **LIMITS),
    budgets.RenyiOdometer(delta=1e-6),
    budgets.ZeroConcentratedOdometer(delta=1e-6),
)
PLAN = {
    "outputs": {"epsilon": "dpsgd_epsilon"},
    "fixed": {"sampling_rate": 0.1, "delta": 1e-6},
    "axes": {"noise_multiplier": [1.0, 2.0], "steps": [10, 100]},
}
VERSIONS = sorted(RECORDS.iterdir(), key=lambda record: Version(record.name))  # a candidate comes before its release
each_record = pytest.mark.parametrize("record", VERSIONS, ids=lambda record: record.name)


def names():
    """Return the public names of Python with those of their parameters, and the options of each command."""
    modules = refused_calls.public_modules()
    listed = [(f"{module.__name__}.{name}", getattr(module, name)) for module in modules for name in module.__all__]
    public = [of for _, of in listed if inspect.isclass(of)]  # whose members are not listed again below them
    for name, of in listed:
        yield f"{name}{parameters(of)}"
        ours = [base for base in getattr(of, "__mro__", ()) if base.__module__.startswith("hockeystick")]
        own = [base for base in ours if base is of or base not in public]
        for member in sorted({member for base in own for member in vars(base) if not member.startswith("_")}):
            yield f"{name}.{member}{parameters(getattr(of, member, None))}"
    yield from options(cli.parser())


def parameters(of):
    """Return the parameters in brackets, as they are called; nothing of what is not called, or written in C, of which each version tells another."""
    written = inspect.isfunction(of) or inspect.ismethod(of) or (inspect.isclass(of) and not issubclass(of, Exception))
    if not written:
        return ""
    plain = [one.replace(annotation=one.empty, default=one.empty) for one in inspect.signature(of).parameters.values()]
    return str(inspect.Signature(plain))


def options(parser):
    """Return each command with its options."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from options(below)
        elif action.dest not in ("help", "version"):
            yield f"{parser.prog} {' '.join(action.option_strings) or action.dest}"


def simulated(checkpoint):
    """Return a short run with a checkpoint."""
    problem = simulate.Problem("logistic", [[0.0, 1.0], [1.0, 0.5], [0.5, 0.0], [1.0, 1.0]], [0, 1, 0, 1], sizes=[2, 2])
    algorithm = simulate.NoisyFedAvg(learning_rate=0.1, local_steps=2, clip_norm=1.0, noise_std=0.1)
    return simulate.run(algorithm, problem, rounds=4, seed=1, record_every=2, checkpoint=checkpoint)


def write(record):
    """Write the record of this version."""
    from test_specification import CASES  # noqa: PLC0415 - on the path of the script alone

    shutil.rmtree(record, ignore_errors=True)
    record.mkdir(parents=True)
    (record / "names.txt").write_text("\n".join(names()) + "\n", encoding="utf-8")
    accountants = [hs.Accountant(adjacency).compose(mechanism, 2) for mechanism, adjacency in CASES]
    states = [{"state": one.state_dict(), "delta at epsilon 1": one.delta_bracket(1.0)[:2]} for one in accountants]
    states += [{"state": budget.spend(STEP, 2).state_dict()} for budget in BUDGETS]
    lines = ",\n".join(map(json.dumps, states))
    (record / "states.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    accountant = hs.Accountant().compose(SAMPLE, 100).compose(hs.Laplace(20.0))
    (record / "certificate.json").write_text(accountant.certificate(delta=1e-6), encoding="utf-8")
    with hs.ClientLedgers(record / "ledgers.sqlite", create=True, **LIMITS) as ledgers:
        ledgers.enrol(["Ada", 17])
        ledgers.charge(1, SAMPLE, participants=["Ada"])
        ledgers.charge(2, STEP, 2, clients=[17])
    simulated(record / "run.checkpoint")
    sweep.run(PLAN, record / "sweep")


def test_public_names():
    """They are those on record, so that no name goes unnoticed."""
    assert (HERE / "names.txt").read_text(encoding="utf-8").splitlines() == list(names())


def untold(before, after, changelog):
    """Return the names of lines that came or went and that the changelog does not have in backticks."""
    changed = {re.split(r"[. ]", line.partition("(")[0])[-1] for line in {*before} ^ {*after}}
    return {name for name in changed if f"`{name}`" not in changelog}


def test_changed_names_are_told():
    """What came or went between two versions stands in the changelog, an option or a parameter too."""
    before, after = ["hockeystick.q(x)", "hockeystick delta --old"], ["hockeystick.q(y)", "hockeystick.p(x)"]
    assert untold(before, after, "`q` takes y, and `p` is new.") == {"--old"}
    assert untold(before, before, "") == set()
    told = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    listed = [(record / "names.txt").read_text(encoding="utf-8").splitlines() for record in VERSIONS]
    assert [untold(*pair, told) for pair in itertools.pairwise(listed)] == [set()] * (len(listed) - 1)


@each_record
def test_states(record):
    """Every mechanism, filter and odometer is read back as it was written."""
    read = json.loads((record / "states.json").read_text(encoding="utf-8"))
    for state in (line["state"] for line in read):
        kind = getattr(budgets, state["format"].removeprefix("hockeystick."), hs.Accountant)
        assert kind.from_state_dict(state).state_dict() == state


@pytest.mark.slow
@each_record
def test_states_answer(record):
    """The truth is in the brackets of both versions, so they overlap."""
    for line in json.loads((record / "states.json").read_text(encoding="utf-8")):
        if "delta at epsilon 1" in line:
            lower, upper = line["delta at epsilon 1"]
            found = hs.Accountant.from_state_dict(line["state"]).delta_bracket(1.0)
            assert found.lower <= upper
            assert lower <= found.upper


@each_record
def test_certificates(record):
    """The checker proves the claim."""
    pytest.importorskip("flint")
    checker = ROOT / "checker" / "hockeystick_check.py"
    processes.run([sys.executable, checker, record / "certificate.json"])


@each_record
def test_ledgers(record, tmp_path):
    """The file opens with all that was charged, and goes on."""
    path = shutil.copy(record / "ledgers.sqlite", tmp_path)
    with hs.ClientLedgers(path, **LIMITS) as ledgers:
        assert ledgers.account(17).ledger == hs.Accountant().compose(SAMPLE).compose(STEP, 2).ledger
        ledgers.charge(3, SAMPLE)
        assert ledgers.account("Ada").ledger == {SAMPLE: 2}


@each_record
def test_simulated_runs(record, tmp_path):
    """A checkpoint of this version goes on to the same models; another's is refused by its version, since its bits would differ."""
    pytest.importorskip("numba")
    path = shutil.copy(record / "run.checkpoint", tmp_path)
    if record == HERE:
        np.testing.assert_allclose(simulated(path).models, simulated(tmp_path / "new").models, rtol=1e-12)
    else:
        with pytest.raises(ValueError, match=f"its version is {record.name}, not {hs.__version__}"):
            simulated(path)


@each_record
def test_sweeps(record, tmp_path):
    """A table is opened and searched; it is completed by the versions that wrote it alone, and by others refused by name."""
    pyarrow = pytest.importorskip("pyarrow")
    out = shutil.copytree(record / "sweep", tmp_path / "out")
    table = sweep.open(out)
    assert (table.missing_cells, table.verify()) == (0, ())
    found = hs.dpsgd_epsilon([[1.0], [2.0]], 0.1, [10, 100], 1e-6).ravel()
    np.testing.assert_allclose(table.table().to_table()["epsilon"].to_numpy(), found, rtol=1e-6)
    mine = {
        "version": hs.__version__,
        "instruction_set": hs.show_config()["instruction_set"],
        "pyarrow": pyarrow.__version__,
    }
    changed = [
        f"{key} changed from {table.manifest[key]!r} to {now!r}"
        for key, now in mine.items()
        if table.manifest[key] != now
    ]
    with pytest.raises(sweep.OutputError, match=changed[0]) if changed else contextlib.nullcontext():
        assert sweep.run(PLAN, out).rows == 4


if __name__ == "__main__":
    write(HERE)
