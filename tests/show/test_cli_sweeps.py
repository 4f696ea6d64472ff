"""The commands around a sweep: what may be computed, a first plan, runs, pictures, the best cell, shares and their merge."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import hockeystick as hs
import processes
import refused_calls
from hockeystick.cli import main
from hockeystick.sweep.functions import REGISTERED, TRAININGS, registered
from sweep_plans import content

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("folder")

FAILING = """
shard_rows = 2
outputs = { epsilon = "dpsgd_epsilon", published = { function = "published.fedavg_gdp" } }
[fixed]
delta = 1e-5
sampling_rate = 0.01
rounds = 10
local_steps = 2
num_clients = 5
clip_norm = 1.0
noise_std = 1.0
smoothness = 1.0
learning_rate = 0.1
schedule = "constant"
[axes]
noise_multiplier = [-1.0, 0.8, 1.2]
steps = [500, 1000, 2000]
"""


PLAN = '[outputs]\ndelta = "theta"\n[axes]\nepsilon = [0.0, 1.0, 2.0]\nr = [0.5, 1.0]\n'


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Return a finished table, a third of whose cells failed."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "plan.toml").write_text(FAILING)
    assert main(["sweep", "run", str(folder / "plan.toml"), "-o", str(folder / "out"), "--quiet"]) == 3
    return folder / "out"


def test_run_and_plot(run):
    """A sweep logs lines where there is no terminal, and tells its summary and its pictures; a quiet one says nothing."""
    code, out, err = run("sweep run plan.toml -o out")
    assert (code, err) == (0, "0 of 6 cells (0.0 %)\n6 of 6 cells (100.0 %)\n")
    assert out.startswith("6 cells\n")
    assert "written to out" in out
    assert run("sweep run plan.toml -o quiet --quiet --num-threads 1") == (0, "", "")
    pytest.importorskip("matplotlib")
    assert run("sweep plot out --slice r=1 --format svg")[:2] == (0, "out/_views/delta.svg\n")


def test_run_to_a_url(written, folder):
    """The output may be a URL."""
    pytest.importorskip("fsspec")
    told = written(f"sweep run plan.toml -o memory://{folder.name}")
    assert f"written to memory://{folder.name}" in told


def test_bar_on_a_terminal(run, monkeypatch):
    """On a terminal a bar stands in for the lines."""
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, _, err = run("sweep run plan.toml -o out")
    assert code == 0
    assert "100%" in err
    assert "cells (" not in err


WRONG = """
out --workers 1 --tls-cert plan.toml -> --tls-ca-file, --tls-cert and --tls-key must be given together
out --tls-ca-file plan.toml --tls-cert plan.toml --tls-key plan.toml -> must go with --scheduler or --workers
out --dashboard 8787 -> --dashboard: must go with --workers
out --tls-key absent.pem -> --tls-key: must be a file, not absent.pem
out --dashboard 99999 -> --dashboard: must be an integer in [1, 65535], not 99999
plan.toml -> --out: must be a writable directory, not
plan.toml/out -> Not a directory
"""
NO_PLANS = {
    '[outputs]\ny = "os.system"\n[axes]\ncommand = ["id"]\n': "outputs.y must name",
    "[axes": "plan must be a TOML file",
}


@pytest.mark.parametrize(("out", "message"), refused_calls.rows(WRONG))
def test_wrong_place(refused, folder, out, message):
    """A wrong directory or option ends with exit code 2 and one line, and nothing is written; so does a wrong plan."""
    refused(f"sweep run plan.toml -o {out}", message)
    for text, wrong in NO_PLANS.items():
        Path("plan.toml").write_text(text)
        refused("sweep run plan.toml -o out", wrong)
    assert [path.name for path in folder.iterdir()] == ["plan.toml"]


def test_interrupted(run, monkeypatch):
    """Ctrl-C gives a hint and the shell's exit code."""

    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib.import_module("hockeystick.sweep.running").ThreadPool, "submit", interrupt)
    code, _, err = run("sweep run plan.toml -o out --quiet")
    assert code == 130
    assert "interrupted; resume with the same command" in err


def test_missing_extra(folder):
    """Without any extra all modules import, and the command that needs one names it: the others are there then."""
    code = """
import sys
needed = {"pyarrow": "run plan.toml -o out", "tqdm": "run plan.toml -o out", "matplotlib": "plot out", "bokeh": "report out"}
sys.modules.update(dict.fromkeys(needed))
import hockeystick.sweep, hockeystick.plot, hockeystick.report, hockeystick.cli
sys.stderr.isatty = lambda: True
for package, command in needed.items():
    print(hockeystick.cli.main(["sweep", *command.split()]))
    del sys.modules[package]
    hockeystick.cli.main(["sweep", "run", "plan.toml", "-o", "out", "--quiet"])
"""
    done = processes.python(code, cwd=folder)
    assert done.stdout == "1\n" * 4
    for package, extra in (("pyarrow", "sweep"), ("tqdm", "sweep"), ("matplotlib", "plot"), ("bokeh", "report")):
        assert f'needs {package}: pip install ".[{extra}]" in a clone' in done.stderr


@pytest.mark.parametrize("place", ["--workers 2", "--scheduler tcp://127.0.0.1:9"])
def test_missing_extra_of_scale(refused, folder, monkeypatch, place):
    """A cluster without its extra names it, and nothing is written."""
    monkeypatch.delitem(sys.modules, "hockeystick.sweep.cluster", raising=False)
    monkeypatch.delattr("hockeystick.sweep.cluster", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused(f"sweep run plan.toml -o out {place}", 'pip install ".[dask]" in a clone', 1)
    assert [path.name for path in folder.iterdir()] == ["plan.toml"]


def test_functions(written):
    """Every registered function has a line that begins with its name and tells what it is worth."""
    lines = written("sweep functions").splitlines()
    assert [line.split()[0] for line in lines] == sorted(REGISTERED | TRAININGS)
    assert all(f"  {registered(line.split()[0]).worth}  " in line + "  " for line in lines)
    assert all(re.search(r"  (cheap   |costly  |training)  ", line) for line in lines)


def test_describe(written, refused):
    """Arguments with units, domains and defaults, what the value is worth, and a plan; an unknown name is one line."""
    text = written("sweep describe federated.fedavg_gdp")
    for part in (
        "worth: certified, a bound with a proof",
        "  rounds (whole number): Communication rounds T, a positive integer",
        "\nclip_norm = 1.0\n",
        "  schedule (one of constant, cyclic, stagewise, continuous, 'constant' if not given): ",
        "  diameter (number, may be left out): ",
        'fedavg_gdp = "federated.fedavg_gdp"',
    ):
        assert part in text
    refused("sweep describe os.system", "hockeystick sweep: function must be a registered one, not 'os.system'; ")


def test_first_plan(run):
    """`init` writes a plan that `run` takes, and replaces nothing."""
    Path("plan.toml").unlink()
    assert run("sweep init").out == "written to plan.toml; run it: hockeystick sweep run plan.toml -o out\n"
    assert run("sweep run plan.toml -o out --quiet").code == 0
    assert run("sweep init two.toml --function gdp_delta --function theta").code == 0
    assert run("sweep run two.toml -o two --quiet").code == 0
    before = Path("plan.toml").read_bytes()
    told = "hockeystick sweep: file must be a new one, not plan.toml: it is there, and would be replaced\n"
    assert run("sweep init --function theta") == (2, "", told)
    assert Path("plan.toml").read_bytes() == before
    assert run("sweep init new.toml --function thetta").code == 2
    assert not Path("new.toml").exists()


def test_best(out, run):
    """The row has its inputs in full and its bounds rounded up, with what they are worth."""
    code, text, err = run(f"sweep best {out} --where 'epsilon <= 2' --maximise steps")
    value = float(hs.dpsgd_epsilon(1.2, 0.01, 2000, 1e-5))
    assert value <= 2
    lines = text.splitlines()
    assert (code, err, lines[:3]) == (0, "", ["cell = 8", "noise_multiplier = 1.2", "steps = 2000"])
    assert f"epsilon = {hs.format_upper(value, '.6g')} (nats, certified)" in lines
    assert any(line.startswith("published = ") and line.endswith("(μ, Gaussian DP, unsound)") for line in lines)
    warned = run(f"sweep best {out} --where 'published < 1e9' --minimise epsilon").err
    assert "warning: published = published.fedavg_gdp: " in warned


NO_BEST = f"""
epsilon < -> --where: must be
epsilom < 1 -> did you mean epsilon
{"x" * 9999} -> at most
"""


@pytest.mark.parametrize(("where", "reason"), refused_calls.rows(NO_BEST))
def test_wrong_conditions(out, refused, where, reason):
    """A wrong condition is one line."""
    refused(f"sweep best {out} --where '{where}' --maximise steps", reason)


def test_no_best(out, run, refused):
    """No cell is exit code 4; an unfinished table is refused, or taken where that is asked for."""
    said = "hockeystick sweep: no cell satisfies epsilon < 0\n"
    assert run(f"sweep best {out} --where 'epsilon < 0' --maximise steps") == (4, "", said)
    Path("plan.toml").write_text(FAILING)
    assert run("sweep run plan.toml -o share --shards 1/2 --quiet").code == 3
    refused("sweep best share --maximise steps", "without 4 of 9")
    code, _, err = run("sweep best share --maximise steps --partial")
    assert code == 0
    assert "warning: 4 of 9 cells are missing" in err


def test_shares(out, run, refused):
    """Two shares, a merge too early, and a merge that has the bytes of one run."""
    Path("plan.toml").write_text(FAILING)
    code, text, _ = run("sweep run plan.toml -o share-1 --shards 1/2")
    assert code == 3
    assert text.startswith("share 1 of 2: 5 cells\n")
    refused("sweep merge out share-1", "share 2 of 2 is not among them")
    assert run("sweep run plan.toml -o share-2 --shards 2/2 --quiet").code == 3
    assert run("sweep merge out share-1 share-2")[:2] == (0, "9 cells of 2 directories\nwritten to out\n")
    assert content(Path("out")) == content(out)
