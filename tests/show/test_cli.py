"""The command: exit codes, one-line errors, strict JSON."""

from __future__ import annotations

import doctest
import importlib
import json
import math
import re
import sys
from decimal import Decimal
from pathlib import Path

import pytest

import hockeystick as hs
import processes
from hockeystick import federated, isrl
from hockeystick.cli import main

PLAN = '[outputs]\ndelta = "theta"\n[axes]\neps = [0.0, 1.0, 2.0]\nr = [0.5, 1.0]\n'


def no_constant(name: str) -> None:
    """Refuse NaN and Infinity, which Python's JSON reads and others do not."""
    pytest.fail(f"{name} is not JSON")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Return a small plan in a file."""
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path / "plan.toml"


def test_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the closed form of the composed Gaussian mechanism."""
    assert main(["epsilon", "--noise-multiplier", "10", "--steps", "25", "--delta", "1e-5"]) == 0
    text = capsys.readouterr().out
    expected = hs.Accountant().compose(hs.Gaussian(10.0), 25).epsilon(1e-5)
    assert expected == pytest.approx(float(hs.gdp_epsilon(0.5, 1e-5)), rel=1e-11)
    assert text.startswith("epsilon = ")
    assert " at delta = 1e-05 for 25 Gaussian releases with noise multiplier 10: a certified upper bound; " in text
    assert text.endswith("one record is added or removed\n")
    assert expected <= float(text.split()[2]) < expected * (1 + 2e-7)  # eight digits, rounded up


def test_delta_json(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has the numbers in full and says what they are."""
    assert main(["delta", "--noise-multiplier", "2", "--steps", "4", "--epsilon", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out, parse_constant=no_constant)
    bracket = answer.pop("bracket")
    assert bracket["upper"] == answer["delta"]
    assert bracket["lower"] <= hs.gdp_delta(1.0, 1.0) <= bracket["upper"] <= bracket["lower"] * (1 + 1e-11)
    del answer["delta"]
    assert answer == {
        "epsilon": 1.0,
        "method": "gaussian closed form",
        "status": "certified",
        "adjacency": "add_or_remove",
        "sampling": "none",
        "version": hs.__version__,
        "inputs": {"noise_multiplier": 2.0, "steps": 4, "epsilon": 1.0},
    }


def test_sampled_json(capsys: pytest.CaptureFixture[str]) -> None:
    """With a sampling rate the numbers are those of DP-SGD, between both ends, and the JSON says what was sampled."""
    arguments = ["--noise-multiplier", "1", "--sampling-rate", "0.01", "--steps", "1000"]
    assert main(["epsilon", *arguments, "--delta", "1e-5", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out, parse_constant=no_constant)
    assert answer["bracket"]["lower"] <= 1.828237 + 2e-6
    assert 1.828237 - 2e-6 <= answer["bracket"]["upper"] == answer["epsilon"] <= 1.832
    assert (answer["sampling"], answer["adjacency"], answer["status"]) == ("poisson", "add_or_remove", "certified")
    assert answer["inputs"] == {"noise_multiplier": 1.0, "steps": 1000, "delta": 1e-5, "sampling_rate": 0.01}
    assert main(["delta", *arguments, "--epsilon", "1.828237"]) == 0
    text = capsys.readouterr().out
    assert "for 1000 Gaussian releases with noise multiplier 1 on Poisson samples of rate 0.01: a certified" in text
    assert 1e-5 * (1 - 1e-4) <= float(text.split()[2]) <= 1e-5 * (1 + 2e-3)


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("noise-multiplier", ["--steps", "20"]),
        ("steps", ["--noise-multiplier", "20"]),
        ("steps", ["--noise-multiplier", "2", "--sampling-rate", "0.1"]),
        ("sampling-rate", ["--noise-multiplier", "2", "--steps", "20"]),
    ],
)
def test_calibrate(capsys: pytest.CaptureFixture[str], target: str, options: list[str]) -> None:
    """The answer of each target keeps the budget when asked again with all its digits."""
    budget = ["--epsilon", "1", "--delta", "1e-5"]
    assert main(["calibrate", "--target", target, *budget, *options, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out, parse_constant=no_constant)
    assert answer["target"] == target.replace("-", "_")
    assert 0.9 < answer["epsilon"] <= 1.0
    found = answer[target.replace("-", "_")]
    assert main(["epsilon", "--delta", "1e-5", f"--{target}", repr(found), *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == answer["epsilon"]
    assert main(["calibrate", "--target", target, *budget, *options]) == 0
    printed = re.fullmatch(
        rf"{target.replace('-', ' ')} = (\S+): epsilon = (\S+) at delta = 1e-05 for (.*): a certified upper bound; one record .*\n",
        capsys.readouterr().out,
    )
    spends_less = Decimal(printed[1]) >= found if target == "noise-multiplier" else Decimal(printed[1]) <= found
    assert spends_less
    assert float(printed[1]) == pytest.approx(found, rel=1e-7)
    assert Decimal(printed[2]) >= Decimal(answer["epsilon"])


def test_calibrate_without_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is no limit the JSON has null; where nothing will do there is no answer, but exit code 4 and the reason."""
    arguments = ["calibrate", "--target", "steps", "--epsilon", "1", "--noise-multiplier", "1", "--json"]
    assert main([*arguments, "--sampling-rate", "0", "--delta", "0"]) == 0
    assert json.loads(capsys.readouterr().out, parse_constant=no_constant)["steps"] is None
    assert main([*arguments, "--delta", "0"]) == 4
    told = capsys.readouterr()
    assert told.out == ""
    assert "not even one step meets epsilon = 1 at delta = 0 with noise multiplier 1" in told.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --steps"),
        (["--target", "steps"], "the following arguments are required: --noise-multiplier"),
        (
            ["--steps", "3", "--noise-multiplier", "1"],
            "argument --noise-multiplier: not allowed, since it is the target",
        ),
        (["--target", "epochs"], "argument --target: invalid choice: 'epochs'"),
        (["--steps", "3", "--sampling-rate", "2"], "argument --sampling-rate: must be in [0, 1], not 2"),
    ],
)
def test_bad_calibration(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    """What is missing or too much is named in one line, with exit code 2."""
    with pytest.raises(SystemExit) as caught:
        main(["calibrate", "--epsilon", "1", "--delta", "1e-5", *arguments])
    assert caught.value.code == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_infinite_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    """An infinite epsilon is null in JSON, and inf for a reader."""
    arguments = ["epsilon", "--noise-multiplier", "1", "--steps", "1", "--delta", "0"]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out, parse_constant=no_constant)["epsilon"] is None
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("epsilon = inf at delta = 0 for 1 Gaussian release with")


@pytest.mark.parametrize(("steps", "noise_multiplier"), [(10**12, 1e6), (1, 1e-3)])
def test_depth(capsys: pytest.CaptureFixture[str], steps: int, noise_multiplier: float) -> None:
    """Many steps and little noise give the closed form, too."""
    main(["epsilon", f"--noise-multiplier={noise_multiplier}", f"--steps={steps}", "--delta=1e-100", "--json"])
    epsilon = json.loads(capsys.readouterr().out)["epsilon"]
    mu = math.sqrt(steps) / noise_multiplier
    assert epsilon == pytest.approx(float(hs.gdp_epsilon(mu, 1e-100)), rel=1e-12)


BAD_ARGUMENTS = [
    (["--noise-multiplier", "0"], "argument --noise-multiplier: must be positive and finite, not 0"),
    (["--noise-multiplier", "-1"], "--noise-multiplier: must be positive and finite, not -1"),
    (["--noise-multiplier", "inf"], "--noise-multiplier: must be positive and finite, not inf"),
    (["--noise-multiplier", "nan"], "--noise-multiplier: must be positive and finite, not nan"),
    (["--noise-multiplier", "one"], "--noise-multiplier: must be positive and finite, not one"),
    (["--steps", "0"], "argument --steps: must be an integer in [1, 9007199254740992], not 0"),
    (["--steps", "1.5"], "argument --steps: must be an integer in [1, 9007199254740992], not 1.5"),
    (["--delta", "1.5"], "argument --delta: must be in [0, 1], not 1.5"),
    (["--delta", "nan"], "argument --delta: must be in [0, 1], not nan"),
    (["--epsilon", "1"], "unrecognized arguments: --epsilon 1"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_ARGUMENTS)
def test_bad_argument(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    """A wrong argument ends with exit code 2 and one line that names it, its value and its domain."""
    with pytest.raises(SystemExit) as caught:
        main(["epsilon", "--noise-multiplier", "1", "--steps", "1", "--delta", "1e-5", *arguments])
    assert caught.value.code == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is the package's; the help says what JSON does with infinity."""
    for arguments, text in ((["--version"], f"hockeystick {hs.__version__}\n"), (["epsilon", "--help"], "is null")):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        assert text in capsys.readouterr().out


def test_sweep_run_and_plot(tmp_path: Path, plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sweep logs lines where there is no terminal, and tells its summary and its pictures."""
    pytest.importorskip("pyarrow")
    assert main(["sweep", "run", str(plan), "-o", str(tmp_path / "out")]) == 0
    captured = capsys.readouterr()
    assert captured.err == "0 of 6 cells (0.0 %)\n6 of 6 cells (100.0 %)\n"
    assert captured.out.startswith("6 cells\n")
    assert f"written to {tmp_path / 'out'}" in captured.out
    pytest.importorskip("matplotlib")
    assert main(["sweep", "plot", str(tmp_path / "out"), "--slice", "r=1", "--format", "svg"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out' / '_views' / 'delta.svg'}\n"


def test_sweep_to_a_url_or_a_cluster(tmp_path: Path, plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The output may be a URL; a cluster is either local or elsewhere."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("fsspec")
    assert main(["sweep", "run", str(plan), "-o", f"memory://{tmp_path.name}"]) == 0
    assert f"written to memory://{tmp_path.name}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["sweep", "run", str(plan), "-o", "out", "--workers", "2", "--scheduler", "tcp://127.0.0.1:9"])
    assert "not allowed with argument" in capsys.readouterr().err


def test_sweep_quiet(tmp_path: Path, plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A quiet sweep says nothing."""
    pytest.importorskip("pyarrow")
    assert main(["sweep", "run", str(plan), "-o", str(tmp_path / "out"), "--quiet", "--num-threads", "1"]) == 0
    assert capsys.readouterr() == ("", "")


def test_bar_on_a_terminal(
    tmp_path: Path, plan: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal a bar stands in for the lines."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["sweep", "run", str(plan), "-o", str(tmp_path / "out")]) == 0
    errors = capsys.readouterr().err
    assert "100%" in errors
    assert "cells (" not in errors


@pytest.mark.parametrize(
    ("text", "out", "message"),
    [
        ('[outputs]\ny = "os.system"\n[axes]\ncommand = ["id"]\n', "out", "outputs.y must name a registered function"),
        (PLAN, "plan.toml", "out must be a writable directory, not "),  # a file
        (PLAN, "plan.toml/out", "Not a directory"),
        ("[axes", "out", "plan must be a TOML file"),
    ],
)
def test_sweep_errors(plan: Path, capsys: pytest.CaptureFixture[str], text: str, out: str, message: str) -> None:
    """A wrong plan or directory ends with exit code 2 and one line."""
    pytest.importorskip("pyarrow")
    plan.write_text(text)
    assert main(["sweep", "run", str(plan), "-o", str(plan.parent / out)]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1
    assert [path.name for path in plan.parent.iterdir()] == ["plan.toml"]


def test_interrupted_in_process(
    tmp_path: Path, plan: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C gives a hint and the shell's exit code."""
    pytest.importorskip("pyarrow")
    work = importlib.import_module("hockeystick.sweep.running")

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(work.ThreadPool, "submit", interrupt)
    assert main(["sweep", "run", str(plan), "-o", str(tmp_path / "out"), "--quiet"]) == 130
    assert "interrupted; resume with the same command" in capsys.readouterr().err


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("package", "extra"), [("pyarrow", "sweep"), ("matplotlib", "plot"), ("tqdm", "sweep"), ("bokeh", "report")]
)
def test_missing_extra(tmp_path: Path, plan: Path, package: str, extra: str) -> None:
    """Without an extra all modules import, and the command that needs it names it."""
    code = f"""
import re
import sys
sys.modules[{package!r}] = None
import hockeystick.sweep, hockeystick.plot, hockeystick.report, hockeystick.cli
sys.stderr.isatty = lambda: True
codes = [hockeystick.cli.main(["sweep", "run", {str(plan)!r}, "-o", {str(tmp_path / "out")!r}])]
codes += [hockeystick.cli.main(["sweep", action, {str(tmp_path / "out")!r}]) for action in ("plot", "report")]
sys.exit(max(codes))
"""
    done = processes.python(code, check=False)
    assert f'needs {package}: pip install ".[{extra}]" in a clone' in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode > 0


@pytest.mark.parametrize(
    "options", [["-o", "out", "--workers", "2"], ["-o", "out", "--scheduler", "tcp://127.0.0.1:9"]]
)
def test_missing_extra_of_scale(
    plan: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """A cluster without its extra names it, and nothing is written."""
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(plan.parent)
    monkeypatch.delitem(sys.modules, "hockeystick.sweep.cluster", raising=False)
    monkeypatch.delattr("hockeystick.sweep.cluster", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["sweep", "run", str(plan), *options]) == 1
    assert 'pip install ".[dask]" in a clone' in capsys.readouterr().err
    assert [path.name for path in plan.parent.iterdir()] == ["plan.toml"]


@pytest.mark.parametrize("module", ["sweep.running", "cli", "plot", "report"])
def test_examples_of_docstrings(module: str) -> None:
    """The examples of these modules run as printed."""
    pytest.importorskip("pyarrow")
    pytest.importorskip({"plot": "matplotlib", "report": "bokeh"}.get(module, "pyarrow"))
    result = doctest.testmod(importlib.import_module(f"hockeystick.{module}"))
    assert result.attempted > 0
    assert result.failed == 0


BATCHES = {"records": 1000, "batch_size": 60, "steps": 40}
MADE = {
    "poisson": lambda: hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(2.0), 60 / 1000), 40),
    "poisson --drop-last": lambda: hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(2.0), 1 / 16), 40),
    "shuffled": lambda: hs.Accountant().compose(hs.Gaussian(2.0), 3),
    "fixed": lambda: hs.Accountant("replace").compose(
        hs.FixedSizeSampled(hs.Gaussian(2.0), 1000, 60, replacement=False), 40
    ),
}
WORDS = [
    "--records",
    "1000",
    "--batch-size",
    "60",
    "--steps",
    "40",
    "--noise-multiplier",
    "2",
    "--delta",
    "1e-6",
    "--sampling",
]


def printed(capsys, *command):
    """Return what a command writes."""
    assert main(list(command)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("sampling", MADE)
def test_the_epsilon_of_a_training_is_that_of_its_accountant(sampling, capsys):
    """`epsilon` and `statement` print the epsilon of the mechanisms that they name, rounded up; as JSON they have its very double."""
    epsilon = MADE[sampling]().epsilon(1e-6)
    words = [*WORDS, *sampling.split()]
    assert printed(capsys, "epsilon", *words).startswith(
        f"epsilon = {hs.format_upper(epsilon, '.8g')} at delta = 1e-06"
    )
    assert json.loads(printed(capsys, "epsilon", *words, "--json"))["epsilon"] == epsilon
    text = " ".join(printed(capsys, "statement", *words).split())
    assert f"with ε = {hs.format_upper(epsilon, '.4g')} at δ = 1e-06" in text
    assert f"{hs.format_upper(epsilon, '.6g')}" in text.split("Released:")[0].rpartition("ε: ")[2]
    entry = json.loads(printed(capsys, "statement", *words, "--format", "json"))
    assert entry["dp_flavor"]["epsilon"] == epsilon
    for other in set(MADE) - {"poisson --drop-last"} if "drop" not in sampling else ():
        assert entry["by_sampling"][other]["epsilon"] == MADE[other]().epsilon(1e-6)


OBJECTS = {
    **MADE,
    "laplace": lambda: hs.Accountant().compose(hs.Laplace(3.0), 5),
    "unequal": lambda: MADE["poisson"]().compose(hs.Laplace(9.0), 2).compose(hs.DiscreteGaussian(4.0)),
    "group": lambda: hs.Accountant().compose(hs.MixtureOfGaussians.of_group(2.0, 4, 0.01), 100),
    "allocation": lambda: hs.Accountant().compose(hs.RandomAllocation(hs.Gaussian(2.0), 4)),
    "concentrated": lambda: hs.Accountant().compose(hs.ZeroConcentratedDP(0.1), 3),
    "selection": lambda: hs.Accountant().compose(hs.ExponentialMechanism(0.5), 20),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_every_epsilon_of_an_accountant_is_the_same(name, delta):
    """Its bracket, explanation, curve, arrays and statement have the double of `epsilon`, and what is printed is that, rounded up."""
    made = OBJECTS[name]()
    epsilon = made.epsilon(delta)
    if epsilon == math.inf:
        assert "no finite ε" in " ".join(made.statement(delta).split())
        return
    bracket = made.epsilon_bracket(delta)
    assert bracket == made.explain(delta=delta).bracket
    assert bracket.upper == epsilon == made.epsilon([delta, 1e-4])[0] == made.epsilon_curve(delta)[-1]
    assert json.loads(made.statement(delta, format="json"))["dp_flavor"]["epsilon"] == epsilon
    assert f"with ε = {hs.format_upper(epsilon, '.4g')} at δ" in " ".join(made.statement(delta).split())


BUDGET = ["--epsilon", "1.5", "--delta", "1e-6"]
CALIBRATED = {
    "noise-multiplier": ("--sampling-rate", ".05", "--steps", "300"),
    "steps": ("--sampling-rate", ".05", "--noise-multiplier", "2"),
    "sampling-rate": ("--noise-multiplier", "2", "--steps", "300"),
}


@pytest.mark.parametrize("target", CALIBRATED)
def test_the_epsilon_of_a_calibration_is_that_of_its_answer(target, capsys):
    """`calibrate` prints the epsilon that its answer spends; the answer as it is printed, rounded, spends no more."""
    command = ("calibrate", "--target", target, *BUDGET, *CALIBRATED[target])
    answer = json.loads(printed(capsys, *command, "--json"))
    known = {"noise_multiplier": 2.0, "sampling_rate": 0.05, "steps": 300}
    name = target.replace("-", "_")

    def spent(value):
        given = known | {name: value}
        step = hs.PoissonSampled(hs.Gaussian(given["noise_multiplier"]), given["sampling_rate"])
        return hs.Accountant().compose(step, int(given["steps"])).epsilon(1e-6)

    assert answer["epsilon"] == spent(answer[name]) <= 1.5
    text = printed(capsys, *command)
    assert f"epsilon = {hs.format_upper(answer['epsilon'], '.8g')} at" in text
    shown = text.split(": ")[0].rpartition(" = ")[2]
    assert spent(float(shown)) <= float(hs.format_upper(answer["epsilon"], ".8g"))


@pytest.mark.parametrize("target", ["noise-std", "rounds"])
def test_the_epsilon_of_a_federated_calibration_is_that_of_its_answer(target, capsys):
    """The same for federated averaging, by the function for it."""
    known = {"clients": 10, "rounds": 20, "local_steps": 3, "clip_norm": 1.0, "learning_rate": 0.1, "noise_std": 3.0}
    name = target.replace("-", "_")
    words = [word for key, value in known.items() if key != name for word in (f"--{key.replace('_', '-')}", str(value))]
    command = ("calibrate", "--target", target, *BUDGET, *words)
    answer = json.loads(printed(capsys, *command, "--json"))
    given = known | {name: answer[name]}
    epsilon = federated.fedavg_epsilon(1e-6, num_clients=given.pop("clients"), smoothness=0.0, **given)
    assert answer["epsilon"] == float(epsilon) <= 1.5
    assert f"epsilon = {hs.format_upper(float(epsilon), '.8g')} at" in printed(capsys, *command)


@pytest.mark.share(2)
@pytest.mark.parametrize(("trust", "pool"), [("central", 1000), ("inter-silo", 250)])
def test_the_epsilon_of_a_plan_is_that_of_its_row(trust, pool, capsys):
    """A row of `plan`, read as it is printed, has the epsilon that stands in it, rounded up."""
    problem = "--silos 4 --records 250 --dimension 5 --lipschitz 1 --diameter 4 --smoothness .25 --epsilon 4 --rounds 2"
    command = ("plan", "--trust", trust, *problem.split(), "--delta", "1e-6", "--top", "2")
    rows = [line.split() for line in printed(capsys, *command).splitlines()[4:] if line.strip()]
    settings = json.loads(printed(capsys, *command, "--json"))["settings"]
    assert len(rows) == len(settings) == 2
    for row, setting in zip(rows, settings, strict=True):
        noise, rounds, batch = float(row[0]), int(row[1]), int(row[2])
        assert noise == setting["noise_std"]
        spent = isrl.noisy_mb_sgd_accountant(
            noise_std=noise, lipschitz=1.0, num_records=pool, batch_size=batch, rounds=rounds
        ).epsilon(1e-6)
        assert setting["epsilon"] == spent
        assert row[5] == hs.format_upper(spent, ".5g")
