"""Settings that are legal and probably mistakes: the warning, its text, and when it stays away."""

import enum
import itertools
import math
import warnings

import numpy as np
import pytest

import hockeystick as hs
from hockeystick import isrl, utility
from hockeystick.cli import main

BATCH, RECORDS = 256, 60_000
TRAINING = {"num_records": RECORDS, "batch_size": BATCH, "epochs": 15, "clip_norm": 1.0, "noise_std": 1.1}
FEDERATION = {"num_clients": 10_000, "clients_per_round": 100, "rounds": 500, "clip_norm": 1.0, "sampling": "poisson"}
PROBLEM = {"num_silos": 4, "num_records": 200, "dimension": 5, "lipschitz": 1.0, "diameter": 4.0, "smoothness": 0.25}
PROBLEM |= {"epsilon": 4.0, "max_rounds": 2, "num_settings": 1, "trust": "inter-silo"}


def fixed_size() -> hs.Accountant:
    """Return steps on fixed-size batches of a thousand records."""
    step = hs.FixedSizeSampled(hs.Gaussian(4.0), 1000, 10, replacement=False)
    return hs.Accountant("replace").compose(step, 100)


ONE_STEP = hs.Accountant().compose(hs.Gaussian(2.0))
MISTAKES = {
    "integer division": (lambda: hs.dpsgd_epsilon(1.1, BATCH // RECORDS, 3516, 1e-5), "integer 0: nobody .* divided"),
    "integer division, delta": (lambda: hs.dpsgd_delta(1.1, BATCH // RECORDS, 3516, 1.0), "integer 0"),
    "integer division, noise": (lambda: hs.dpsgd_noise_multiplier(BATCH // RECORDS, 3516, 1.0, 1e-5), "integer 0"),
    "integer division, steps": (lambda: hs.dpsgd_steps(1.1, BATCH // RECORDS, 1.0, 1e-5), "integer 0"),
    "integer division, certificate": (lambda: hs.dpsgd_certificate(1.1, BATCH // RECORDS, 9, delta=0.1), "integer 0"),
    "integer division, step": (lambda: hs.PoissonSampled(hs.Gaussian(1.1), BATCH // RECORDS), "integer 0"),
    "integer division, cells": (
        lambda: hs.dpsgd_epsilon(1.1, np.array([256, 512, 70_000]) // RECORDS, 3516, 1e-5),
        "integer 0 in 2 of 3 cells",
    ),
    "swapped": (lambda: hs.dpsgd_epsilon(0.01, 1.0, 1000, 1e-5), "noise_multiplier comes first; .* swapped"),
    "swapped, steps": (lambda: hs.dpsgd_steps(0.01, 1.0, 1000.0, 1e-5), "swapped"),
    "no privacy": (lambda: hs.dpsgd_epsilon(1.0, 1.0, 1000, 1e-5), "above 100: that is no privacy"),
    "no privacy, cells": (lambda: hs.dpsgd_epsilon([0.5, 1.0, 20.0], 1.0, 1000, 1e-5), "above 100 in 2 of 3 cells"),
    "epochs as steps": (
        lambda: hs.dpsgd_epsilon(1.0, BATCH / RECORDS, 15, 1e-5),
        r"steps = 15 .* 234\.375; were epochs",
    ),
    "epochs as steps, noise": (lambda: hs.dpsgd_noise_multiplier(BATCH / RECORDS, 15, 1.0, 1e-5), "were epochs"),
    "delta as eps": (lambda: ONE_STEP.delta(1e-5), "epsilon = 1e-05 is asked for its delta"),
    "delta as eps, bracket": (lambda: ONE_STEP.delta_bracket(1e-5), "ask epsilon, not delta"),
    "delta as eps, function": (lambda: hs.dpsgd_delta(1.0, 0.01, 1000, 1e-5), "ask epsilon, not delta"),
    "noise of the sum": (lambda: hs.dpsgd_parameters(**TRAINING, noise_on="mean"), r"multiplier of 281\.6, above 50"),
    "noise of the sum, clients": (
        lambda: hs.federated_parameters(**FEDERATION, noise_std=1.0, noise_on="mean"),
        "clients_per_round = 100 is a noise multiplier of 100",
    ),
    "large delta, cells": (lambda: fixed_size().epsilon([0.01, 1e-6]), "at least 1/1000, .* in 1 of 2 cells"),
    "large delta, grid": (
        lambda: isrl.noisy_mb_sgd_epsilon(**SILO | {"num_records": [200, 1000]}, noise_std=1.0, delta=0.004),
        "at least 1/1000, .* in 1 of 2 cells",
    ),
}
SILO = {"lipschitz": 1.0, "num_records": 200, "batch_size": 100, "rounds": 2}
SHUFFLE = {"lipschitz": 1.0, "num_records": 1, "num_silos": 10**5, "silos_per_round": 10**5, "rounds": 2}
STATED = {"num_records": 60_000, "batch_size": 256, "epochs": 1, "noise_multiplier": 1.1}
SEEN = {"num_clients": 10, "num_records": 20, "rounds": [1], "noise_std": 1.0, "lipschitz": 1.0, "smoothness": 1.0}
SEEN |= {"learning_rate": 0.5, "local_steps": 2, "diameter": 1.0}
WIDER = hs.FixedSizeSampled(hs.Gaussian(1.0), 5000, 10, replacement=False)
# All that are told a delta and among how many records it is: the number of records, and a call.
KNOW_RECORDS = {
    "accountant": (1000, lambda delta: fixed_size().epsilon(delta)),
    "accountant of two data sets": (5000, lambda delta: fixed_size().compose(WIDER).epsilon(delta)),
    "bracket": (1000, lambda delta: fixed_size().epsilon_bracket(delta)),
    "curve": (1000, lambda delta: fixed_size().epsilon_curve(delta)),
    "statement of an accountant": (1000, lambda delta: fixed_size().statement(delta)),
    "statement": (60_000, lambda delta: hs.privacy_statement(**STATED, delta=delta)),
    "plan": (200, lambda delta: utility.plan(**PROBLEM, delta=delta)),
    "compare": (
        800,
        lambda delta: utility.compare(**{k: v for k, v in PROBLEM.items() if k not in ("trust", "num_settings")}, delta=delta, num_rows=1),
    ),
    "side by side": (200, lambda delta: utility.analyses(**SEEN, delta=delta)),
    "epsilon of a silo": (200, lambda delta: isrl.noisy_mb_sgd_epsilon(**SILO, noise_std=1.0, delta=delta)),
    "noise of a silo": (200, lambda delta: isrl.noisy_mb_sgd_sigma(**SILO, epsilon=1.0, delta=delta)),
    "epsilon of a shuffler": (10**5, lambda delta: isrl.shuffled_mb_sgd_epsilon(**SHUFFLE, noise_std=30.0, delta=delta)),
    "noise of a shuffler": (10**5, lambda delta: isrl.shuffled_mb_sgd_sigma(**SHUFFLE, epsilon=1.0, delta=delta)),
}  # fmt: skip


@pytest.mark.share(4, by_day=2)
@pytest.mark.parametrize("name", KNOW_RECORDS)
def test_whoever_knows_the_records_doubts_a_large_delta(name):
    """A delta of one over the number of records is doubted, once, at the line that gave it; the next double below is not."""
    records, call = KNOW_RECORDS[name]
    with pytest.warns(hs.ImplausibleSettingWarning, match=f"delta is at least 1/{records}, one over") as caught:
        call(1.0 / records)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(math.nextafter(1.0 / records, 0.0))


@pytest.mark.parametrize("name", MISTAKES)
def test_a_likely_mistake_is_named_once(name):
    """The call answers, and warns once, at the line that made it, of the likely mistake."""
    call, text = MISTAKES[name]
    with pytest.warns(hs.ImplausibleSettingWarning, match=text) as caught:
        call()
    assert len(caught) == 1
    assert caught[0].filename == __file__


PLAUSIBLE = {
    "one pass": lambda: hs.dpsgd_epsilon(1.0, 0.01, 100, 1e-5),
    "a curve over steps": lambda: hs.dpsgd_epsilon(1.0, 0.01, [1, 10, 100], 1e-5),
    "a rate of 0.0": lambda: hs.dpsgd_epsilon(1.0, 0.0, 100, 1e-5),
    "the integer rate 1": lambda: hs.dpsgd_epsilon(20.0, 1, 10, 1e-5),
    "no steps": lambda: hs.dpsgd_epsilon(1.0, 0.01, 0, 1e-5),
    "delta 0": lambda: hs.dpsgd_epsilon(1.0, 0.01, 100, 0.0),  # infinite, as it must be
    "total variation": lambda: ONE_STEP.delta(0.0),
    "small epsilon": lambda: ONE_STEP.delta(0.001),
    "a grid from 0": lambda: ONE_STEP.delta([0.0, 1e-5, 1.0]),
    "noise of the mean": lambda: hs.dpsgd_parameters(**TRAINING | {"noise_std": 1.1 / BATCH}, noise_on="mean"),
    "full batches": lambda: hs.dpsgd_parameters(**TRAINING | {"batch_size": RECORDS}, noise_on="mean"),
    "much noise on a sum": lambda: hs.dpsgd_parameters(**TRAINING | {"noise_std": 500.0}),
    "a grid with few cells without privacy": lambda: hs.dpsgd_epsilon([0.5, 10.0, 20.0], 1.0, 1000, 1e-5),
    "a corner of low noise and high rates": lambda: hs.dpsgd_epsilon([[0.1], [1.0]], [0.01, 0.5], 100, 1e-5),
    "half of the rates the integer 0": lambda: hs.dpsgd_epsilon(1.0, np.array([0, 1]), 1, 1e-5),
    "half of the cells without privacy": lambda: hs.dpsgd_epsilon([0.5, 20.0], 1.0, 1000, 1e-5),
    "delta below one over the records": lambda: fixed_size().epsilon(9.99e-4),
    "delta without known records": lambda: ONE_STEP.epsilon(0.1),
}


@pytest.mark.parametrize("name", PLAUSIBLE)
def test_plausible_settings_are_not_doubted(name):
    """What legitimate users ask raises no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PLAUSIBLE[name]()


def test_ordinary_trainings_are_not_doubted():
    """Nor does any training among those that are run: multipliers from 0.3 to 10, rates from 1e-4 to 0.5, 1 to 200 epochs."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for noise, rate, epochs in itertools.product((0.5, 1.0, 2.0, 10.0), (1e-4, 0.01, 0.1), (1, 10, 50)):
            hs.dpsgd_epsilon(noise, rate, math.ceil(epochs / rate), 1e-6)


def test_answers_from_inside_are_not_doubted():
    """A function of this package that asks another does not warn of what the user did not write."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hs.calibrate(
            lambda sigma: hs.Accountant().compose(hs.Gaussian(sigma)), epsilon=200.0, delta=1e-5, bracket=(0.01, 1.0)
        )


def test_the_command_line_says_it_in_one_line(capsys):
    """A doubt is a line on standard error; the answer and the exit code stay."""
    training = ["--noise-multiplier", "1.1", "--sampling-rate", "0", "--steps", "3516", "--delta", "1e-5"]
    assert main(["epsilon", *training]) == 0
    found = capsys.readouterr()
    assert found.out.startswith("epsilon = 0 at")
    assert found.err.startswith("hockeystick epsilon: warning: sampling_rate is the integer 0")
    assert found.err.count("\n") == 1
    assert main(["delta", "--noise-multiplier", "2", "--steps", "1", "--epsilon", "1e-5"]) == 0
    assert "ask epsilon" in capsys.readouterr().err


TRAINING_WORDS = "--num-records 1000 --batch-size 50 --steps 20"
PROBLEM_WORDS = "--num-silos 4 --num-records 250 --dimension 5 --lipschitz 1 --diameter 4 --smoothness .25 --epsilon 4 --rounds 2 --top 1"
COMMANDS = {
    "epsilon": f"{TRAINING_WORDS} --noise-multiplier 2 --delta DELTA",
    "delta": f"{TRAINING_WORDS} --noise-multiplier 2 --epsilon 0.1",
    "calibrate": f"{TRAINING_WORDS} --epsilon 1 --delta DELTA",
    "statement": f"{TRAINING_WORDS} --noise-multiplier 2 --delta DELTA",
    "plan --trust central": f"{PROBLEM_WORDS} --delta DELTA",
}


@pytest.mark.share(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_know_the_records_doubt_a_large_delta(command, capsys):
    """Every command that is told the number of records says so in a line on standard error."""
    assert main([*command.split(), *COMMANDS[command].replace("DELTA", "1/1000").split()]) == 0
    found = capsys.readouterr().err
    assert f"hockeystick {command.split()[0]}: warning: delta is at least 1/1000, one over" in found
    assert main([*command.split(), *COMMANDS[command].replace("DELTA", "1e-6").replace("0.1", "8").split()]) == 0
    assert "delta is" not in capsys.readouterr().err


class Neighbouring(enum.Enum):
    """As another library names them."""

    REPLACE_ONE = 2


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        *[(word, "replace") for word in ("replace_one", "REPLACE_ONE", "substitution", "Replace", "swap", "replac")],
        *[
            (word, "add_or_remove")
            for word in ("add_or_remove_one", "ADD_OR_REMOVE_ONE", "add-or-remove", "zero_out", "add_remove")
        ],
    ],
)
def test_other_words_for_an_adjacency(given, meant):
    """The words of other programs are refused with the word that is meant."""
    for make in (hs.Accountant, lambda word: hs.RenyiOdometer(delta=1e-6, adjacency=word)):
        with pytest.raises(ValueError, match=f"adjacency must be one of .*, not '{given}'; did you mean '{meant}'\\?$"):
            make(given)


def test_an_enumeration_is_refused_with_the_word():
    """A member of an enumeration is no string; its name is understood."""
    with pytest.raises(TypeError, match=r"did you mean 'replace'\?"):
        hs.Accountant(Neighbouring.REPLACE_ONE)
    with pytest.raises(ValueError, match=r"not 'nothing like it'$"):
        hs.Accountant("nothing like it")


@pytest.mark.parametrize(
    ("epochs", "steps"), [(10, 2350), (1, 235), (2.5, 2 * 235 + 118), (0.001, 1), (1 / 234.375, 1), (0.5, 118)]
)
def test_steps_are_those_of_a_loader(epochs, steps):
    """A pass of 60,000 records in batches of 256 is 235 batches, the last one smaller; part of a pass is rounded up."""
    assert hs.dpsgd_parameters(**TRAINING | {"epochs": epochs}).steps == steps
