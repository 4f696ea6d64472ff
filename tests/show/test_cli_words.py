"""The command in people's words: records, batches, epochs, samplings, federated averaging, examples, completion."""

from __future__ import annotations

import argparse
import json
import shlex
from decimal import Decimal

import pytest
from scipy import optimize, stats

import hockeystick as hs
from hockeystick import cli
from hockeystick.cli import main
from hockeystick.cli.examples import EXAMPLES

WORDS = ["--records", "60000", "--batch-size", "256", "--epochs", "15", "--noise-multiplier", "1.1", "--delta", "1e-5"]
STEPS = 15 * 235  # 60000/256 is 234.4
FEDERATED = {"clients": 1000, "rounds": 100, "local-steps": 5, "clip-norm": 1, "learning-rate": 0.1, "noise-std": 0.9}


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    """Return the JSON answer."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line that refuses the arguments."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert caught.value.code == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    return told.err


def test_words_are_rate_and_steps(capsys: pytest.CaptureFixture[str]) -> None:
    """Records, batch and epochs give the epsilon of the rate, a fraction, and of the steps, as 3.525e3."""
    words = asked(capsys, "epsilon", *WORDS)
    rate = ["--noise-multiplier", "1.1", "--sampling-rate", "256/60000", "--steps", "3.525e3", "--delta", "1e-5"]
    numbers = asked(capsys, "epsilon", *rate)
    assert words["epsilon"] == numbers["epsilon"] == hs.dpsgd_epsilon(1.1, 256 / 60000, STEPS, 1e-5)
    assert numbers["inputs"]["steps"] == STEPS
    assert (words["sampling"], words["adjacency"]) == ("poisson", "add_or_remove")
    assert words["inputs"]["records"] == 60000
    assert asked(capsys, "epsilon", *WORDS, "--sampling", "poisson")["epsilon"] == words["epsilon"]
    delta = asked(capsys, "delta", *WORDS[:-2], "--epsilon", repr(words["epsilon"]))["delta"]
    assert delta == pytest.approx(1e-5, rel=1e-6)


def test_epsilon_by_sampling(capsys: pytest.CaptureFixture[str]) -> None:
    """Shuffled is 15 Gaussian releases in closed form, fixed is the fixed-size mechanism, unknown the largest of all."""
    shuffled = asked(capsys, "epsilon", *WORDS, "--sampling", "shuffled")
    mu = 15**0.5 / 1.1

    def delta(eps: float) -> float:
        return float(
            stats.norm.cdf(mu / 2 - eps / mu) - float(stats.norm.cdf(-mu / 2 - eps / mu)) * 2.718281828459045**eps
        )

    assert shuffled["epsilon"] == pytest.approx(optimize.brentq(lambda eps: delta(eps) - 1e-5, 5, 40), rel=1e-6)
    assert shuffled["adjacency"] == "zero_out"
    fixed = asked(capsys, "epsilon", *WORDS, "--sampling", "fixed")
    mechanism = hs.FixedSizeSampled(hs.Gaussian(1.1), 60000, 256, replacement=False)
    assert fixed["epsilon"] == hs.Accountant("replace").compose(mechanism, STEPS).epsilon(1e-5)
    assert fixed["adjacency"] == "replace"
    unknown = asked(capsys, "epsilon", *WORDS, "--sampling", "unknown")
    assert unknown["epsilon"] == shuffled["epsilon"] == max(unknown["by_sampling"].values())
    assert unknown["by_sampling"]["fixed"] == fixed["epsilon"]
    assert main(["epsilon", *WORDS, "--sampling", "unknown"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert Decimal(first.split()[2]) >= Decimal(shuffled["epsilon"])
    assert "how batches are made is not known" in second


def test_shuffled_ends(capsys: pytest.CaptureFixture[str]) -> None:
    """With whole batches and passes there is a lower end; with a smaller last batch none is claimed. A begun pass counts whole."""
    training = ["--noise-multiplier", "1.1", "--records", "60000", "--delta", "1e-5", "--sampling", "shuffled"]
    whole = asked(capsys, "epsilon", *training, "--batch-size", "250", "--epochs", "15")["bracket"]
    expected = hs.shuffled_batches_epsilon(1e-5, noise_multiplier=1.1, num_batches=240, epochs=15)
    assert whole == {"lower": expected.lower, "upper": pytest.approx(expected.upper, rel=1e-12)}
    ragged = asked(capsys, "epsilon", *training, "--batch-size", "256", "--epochs", "15")["bracket"]
    assert ragged == {"lower": 0.0, "upper": whole["upper"]}
    begun = asked(capsys, "epsilon", *training, "--batch-size", "250", "--steps", "3601")["bracket"]
    assert begun["lower"] == expected.lower
    assert begun["upper"] == hs.Accountant().compose(hs.Gaussian(1.1), 16).epsilon(1e-5)
    delta = [
        "delta",
        *training[:4],
        "--batch-size",
        "250",
        "--epochs",
        "15",
        "--epsilon",
        "6",
        "--sampling",
        "shuffled",
    ]
    expected = hs.shuffled_batches_delta(6.0, noise_multiplier=1.1, num_batches=240, epochs=15)
    assert asked(capsys, *delta)["bracket"]["lower"] == expected.lower


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--records", "100", "--batch-size", "101", "--epochs", "1"], "--batch-size: must be at most the number of records (100), not 101"),
        (["--records", "100", "--epochs", "1"], "--batch-size: required"),
        (["--batch-size", "10", "--epochs", "1"], "--records: required"),
        (["--records", "100", "--batch-size", "10"], "required: --steps, or --epochs with --records and --batch-size"),
        (["--records", "100", "--batch-size", "10", "--epochs", "1", "--steps", "10"], "--epochs: not allowed with --steps"),
        (["--sampling-rate", "0.1", "--epochs", "1"], "--epochs: needs --records and --batch-size"),
        (["--records", "9", "--batch-size", "3", "--steps", "1", "--sampling-rate", "0.1"], "--sampling-rate: not allowed with --records"),
        (["--steps", "10", "--sampling", "shuffled"], "--sampling: shuffled needs --records and --batch-size"),
        (["--steps", "10", "--sampling", "poisson"], "--sampling: poisson needs --records and --batch-size or --sampling-rate"),
        (["--steps", "10", "--sampling", "possion"], "argument --sampling: invalid choice: 'possion'"),
        (["--st", "10"], "unrecognized arguments: --st 10"),
        (["--steps", "1/0"], "argument --steps: must be an integer in [1, 9007199254740992], not 1/0"),
        (["--steps", "1e17"], "argument --steps: must be an integer in [1, 9007199254740992], not 1e17"),
        (["--steps", "nan"], "not nan"),
        (["--steps", "10", "--sampling-rate", "3/2"], "argument --sampling-rate: must be in [0, 1], not 3/2"),
        (["--steps", "10", "--sampling-rate", "a/b"], "argument --sampling-rate: must be in [0, 1], not a/b"),
    ],
)  # fmt: skip
def test_bad_words(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    """What contradicts itself is named in one line, with what would be right."""
    assert message in refused(capsys, "epsilon", "--noise-multiplier", "1", "--delta", "1e-5", *arguments)


def test_calibrate_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """The noise of 15 epochs keeps the budget, also for shuffled batches, and the text says of what it is the noise."""
    words = [*WORDS[:6], "--delta", "1e-5"]
    for sampling in ("poisson", "shuffled"):
        found = asked(capsys, "calibrate", *words, "--epsilon", "2", "--sampling", sampling)
        noise = ["--noise-multiplier", repr(found["noise_multiplier"]), "--sampling", sampling]
        assert 1.999 < asked(capsys, "epsilon", *words, *noise)["epsilon"] <= 2.0
    assert main(["calibrate", *words, "--epsilon", "2"]) == 0
    assert "for 3525 Gaussian releases with noise multiplier" in capsys.readouterr().out
    assert "--sampling: must be poisson, or shuffled" in refused(
        capsys, "calibrate", *words, "--epsilon", "2", "--sampling", "fixed"
    )


def test_rate_is_of_poisson_samples(capsys: pytest.CaptureFixture[str]) -> None:
    """To name Poisson samples where their rate is asked for changes nothing."""
    target = ["calibrate", "--target", "sampling-rate", "--noise-multiplier", "2", "--steps", "20", "--epsilon", "1"]
    answer = asked(capsys, *target, "--delta", "1e-5")
    assert asked(capsys, *target, "--delta", "1e-5", "--sampling", "poisson") == answer
    assert answer["sampling"] == "poisson"


@pytest.mark.parametrize("target", ["noise-multiplier", "steps"])
def test_budget_that_nothing_meets(capsys: pytest.CaptureFixture[str], target: str) -> None:
    """Delta 0 is beyond Gaussian noise: exit code 4 and the reason, no answer."""
    other = ["--steps", "3"] if target == "noise-multiplier" else ["--noise-multiplier", "3"]
    assert main(["calibrate", "--target", target, "--epsilon", "1", "--delta", "0", *other]) == 4
    told = capsys.readouterr()
    assert told.out == ""
    assert "meets epsilon = 1 at delta = 0 with" in told.err


def options(but: str = "") -> list[str]:
    """Return the federated settings but one."""
    return [text for name, value in FEDERATED.items() if name != but for text in (f"--{name}", str(value))]


@pytest.mark.parametrize("target", ["noise-std", "rounds", "local-steps"])
def test_federated_calibration(capsys: pytest.CaptureFixture[str], target: str) -> None:
    """The answer is that of mu = 2 V K eta sqrt(T/m)/sigma, Gaussian DP: it keeps the budget, and a little more does not."""
    budget = ["--epsilon", "2", "--delta", "1e-5"]
    answer = asked(capsys, "calibrate", "--target", target, *budget, *options(target))
    found = answer[target.replace("-", "_")]
    more = found + 1 if target != "noise-std" else found * (1 - 1e-6)

    def epsilon(value: float) -> float:
        s = FEDERATED | {target: value}
        mu = 2 * s["clip-norm"] * s["local-steps"] * s["learning-rate"] * (s["rounds"] / s["clients"]) ** 0.5
        return float(hs.gdp_epsilon(mu / s["noise-std"], 1e-5))

    assert epsilon(found) <= 2.0 * (1 + 1e-10) < epsilon(more)
    assert answer["epsilon"] <= 2.0
    assert main(["calibrate", "--target", target, *budget, *options(target)]) == 0
    text = capsys.readouterr().out
    shown = Decimal(text.split(":")[0].split()[-1])
    assert shown >= found if target == "noise-std" else shown == found
    assert "one record is replaced, only the last model is seen" in text


def test_federated_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    """What is missing, too much, or met by nothing is said."""
    budget = ["--epsilon", "2", "--delta", "1e-5"]
    calibrate = ["calibrate", "--target", "rounds", *budget]
    assert "are required: --clients, --local-steps" in refused(capsys, *calibrate)
    assert "--rounds: not allowed, since it is the target" in refused(capsys, *calibrate, *options())
    assert "--records: not allowed" in refused(capsys, *calibrate, *options("rounds"), "--records", "9")
    assert "--clients: not allowed" in refused(capsys, "calibrate", *budget, "--steps", "3", "--clients", "9")
    little = [text if text != "0.9" else "0.001" for text in options("rounds")]
    assert main([*calibrate, *little]) == 4
    assert "not one round meets epsilon = 2" in capsys.readouterr().err


def commands(parser: argparse.ArgumentParser, name: str = "") -> dict[str, argparse.ArgumentParser]:
    """Return all commands that do something, by their names."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        return {name: parser}
    inside = [commands(child, f"{name} {word}".strip()) for word, child in below[0].choices.items()]
    return {word: child for found in inside for word, child in found.items()}


@pytest.mark.parametrize("command", commands(cli._parser()))
def test_help_has_examples_that_parse(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command shows at least one example in its help, and they are its own."""
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    text = capsys.readouterr().out
    assert "example" in text
    for example in EXAMPLES.get(command, ()):
        assert f"  hockeystick {example}\n" in text
        assert example.startswith(command)
        cli._parser().parse_args(shlex.split(example.partition(" > ")[0]))


def test_help_uses_its_own_letters(capsys: pytest.CaptureFixture[str]) -> None:
    """The description speaks of S, T and D, as the usage does."""
    with pytest.raises(SystemExit):
        main(["epsilon", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "noise of multiplier S composed T times" in text
    assert "STEPS" not in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    """The script knows the commands and their options."""
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "calibrate" in script
    assert "noise-multiplier" in script


def test_completion_without_its_extra(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named, of a clone."""
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert 'pip install ".[completion]" in a clone' in capsys.readouterr().err
