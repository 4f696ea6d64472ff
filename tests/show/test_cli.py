"""The command: single numbers of a training and of a budget, in numbers and in people's words; refusals, help, completion."""

import json
import re
import shlex
import sys
from decimal import Decimal

import numpy as np
import pytest

import hockeystick as hs
import refused_calls
from hockeystick import correlated_noise, federated, isrl
from hockeystick.cli import COMMANDS, demo, parser

RECORDS = "--num-records 60000 --batch-size 256"
WORDS = f"{RECORDS} --epochs 15 --noise-multiplier 1.1"
STEPS = 15 * 235  # 60000/256 is 234.4
FEDERATED = {"num-clients": 1000, "rounds": 100, "local-steps": 5, "clip-norm": 1}
FEDERATED |= {"learning-rate": 0.1, "noise-std": 0.9}


def test_json_says_what_the_numbers_are(ask):
    """The numbers in full, how they were found, of whom they hold, and what was given."""
    answer = ask("delta --noise-multiplier 2 --steps 4 --epsilon 1")
    assert answer.pop("delta") == answer.pop("bracket")["upper"]
    assert answer == {
        "epsilon": 1.0,
        "method": "gaussian closed form",
        "status": "certified",
        "adjacency": "add_or_remove",
        "sampling": "none",
        "version": hs.__version__,
        "inputs": {"noise_multiplier": 2.0, "steps": 4, "epsilon": 1.0},
    }


def test_what_is_infinite(ask, run):
    """Infinity is null in JSON, and inf for a reader."""
    assert ask("epsilon --noise-multiplier 1 --steps 1 --delta 0")["epsilon"] is None
    assert run("epsilon --noise-multiplier 1 --steps 1 --delta 0").out.startswith(
        "epsilon = inf at delta = 0 for 1 Gau"
    )
    text = " ".join(run("epsilon --help").out.split())
    assert "an infinite number is null" in text
    assert "STEPS" not in text  # a letter stands for a value
    endless = "calibrate --target steps --epsilon 1 --noise-multiplier 1 --sampling-rate 0 --delta 0"
    assert ask(endless)["steps"] is None


def test_words_are_rate_and_steps(ask):
    """Records, batch and epochs give the epsilon of the rate, a fraction, and of the steps, as 3.525e3."""
    words = ask(f"epsilon {WORDS} --delta 1e-5")
    numbers = ask("epsilon --noise-multiplier 1.1 --sampling-rate 256/60000 --steps 3.525e3 --delta 1e-5")
    assert words["epsilon"] == numbers["epsilon"] == hs.dpsgd_epsilon(1.1, 256 / 60000, STEPS, 1e-5)
    assert (numbers["inputs"]["steps"], words["inputs"]["num_records"]) == (STEPS, 60000)


TRAINING = "--num-records 1000 --batch-size 60 --steps 40 --noise-multiplier 2"
NOISE = hs.Gaussian(2.0)
MADE = {
    "--noise-multiplier 1e6 --steps 1e12": hs.Accountant().compose(hs.Gaussian(1e6), 10**12),
    "--noise-multiplier 2 --sampling-rate 0.01 --steps 1000": hs.Accountant().compose(
        hs.PoissonSampled(NOISE, 0.01), 1000
    ),
    f"{TRAINING} --sampling poisson": hs.Accountant().compose(hs.PoissonSampled(NOISE, 60 / 1000), 40),
    f"{TRAINING} --sampling poisson --drop-last": hs.Accountant().compose(hs.PoissonSampled(NOISE, 1 / 16), 40),
    f"{TRAINING} --sampling shuffled": hs.Accountant().compose(NOISE, 3),
    f"{TRAINING} --sampling fixed": hs.Accountant("replace").compose(
        hs.FixedSizeSampled(NOISE, 1000, 60, replacement=False), 40
    ),
}
ADJACENT = {"shuffled": "zero_out", "fixed": "replace"}


@pytest.mark.parametrize(("words", "accountant"), MADE.items(), ids=MADE)
def test_numbers_are_those_of_the_accountant(words, accountant, ask, run):
    """`epsilon`, `delta` and `statement` have those of the mechanisms that are named, printed rounded up, and as JSON the very double."""
    epsilon, sampling = accountant.epsilon(1e-6), (re.search(r"--sampling (\w+)|rate|$", words)[1] or "")
    text = run(f"epsilon {words} --delta 1e-6").out
    assert text.startswith(f"epsilon = {hs.format_upper(epsilon, '.8g')} at delta = 1e-06 for ")
    assert ": a certified upper bound; one record is " in text
    answer = ask(f"epsilon {words} --delta 1e-6")
    assert (answer["epsilon"], answer["adjacency"]) == (epsilon, ADJACENT.get(sampling, "add_or_remove"))
    if sampling != "shuffled":  # whose lower end has a test of its own
        assert answer["bracket"]["lower"] == accountant.epsilon_bracket(1e-6).lower
    assert answer["sampling"] == (sampling or ("poisson" if "rate" in words else "none"))
    assert ask(f"delta {words} --epsilon 1")["delta"] == accountant.delta(1.0)
    if TRAINING in words:
        said = " ".join(run(f"statement {words} --delta 1e-6").out.split())
        assert f"with ε = {hs.format_upper(epsilon, '.4g')} at δ = 1e-06" in said
        assert f"{hs.format_upper(epsilon, '.6g')}" in said.split("Released:")[0].rpartition("ε: ")[2]
        entry = json.loads(run(f"statement {words} --delta 1e-6 --format json").out)
        assert entry["dp_flavor"]["epsilon"] == epsilon
        for other in ("poisson", "shuffled", "fixed") if "drop" not in words else ():
            assert entry["by_sampling"][other]["epsilon"] == MADE[f"{TRAINING} --sampling {other}"].epsilon(1e-6)


def test_unknown_batches(ask, run):
    """The largest of all samplings, here of shuffled batches: 15 Gaussian releases."""
    unknown = ask(f"epsilon {WORDS} --delta 1e-5 --sampling unknown")
    assert unknown["epsilon"] == unknown["by_sampling"]["shuffled"] == max(unknown["by_sampling"].values())
    assert len({*unknown["by_sampling"].values()}) == 3
    assert unknown["epsilon"] == hs.Accountant().compose(hs.Gaussian(1.1), 15).epsilon(1e-5)
    first, second = run(f"epsilon {WORDS} --delta 1e-5 --sampling unknown").out.splitlines()
    assert Decimal(first.split()[2]) >= Decimal(unknown["epsilon"])
    assert "how batches are made is not known" in second


def test_shuffled_ends(ask):
    """With whole batches and passes there is a lower end; with a smaller last batch none is claimed. A begun pass counts whole."""
    words = "--noise-multiplier 1.1 --num-records 60000 --sampling shuffled"
    whole = ask(f"epsilon {words} --delta 1e-5 --batch-size 250 --epochs 15")["bracket"]
    training = {"noise_multiplier": 1.1, "num_batches": 240, "epochs": 15}
    expected = hs.shuffled_batches_epsilon_bracket(1e-5, **training)
    assert whole == {"lower": expected.lower, "upper": pytest.approx(expected.upper, rel=1e-12)}
    ragged = ask(f"epsilon {words} --delta 1e-5 --batch-size 256 --epochs 15")["bracket"]
    assert ragged == {"lower": 0.0, "upper": whole["upper"]}
    begun = ask(f"epsilon {words} --delta 1e-5 --batch-size 250 --steps 3601")["bracket"]
    assert begun == {"lower": expected.lower, "upper": hs.Accountant().compose(hs.Gaussian(1.1), 16).epsilon(1e-5)}
    delta = ask(f"delta {words} --epsilon 6 --batch-size 250 --epochs 15")["bracket"]
    assert delta["lower"] == hs.shuffled_batches_delta_bracket(6.0, **training).lower


@pytest.mark.parametrize(
    ("target", "given"),
    [
        ("noise_multiplier", {"steps": 20}),
        ("noise_multiplier", {"sampling_rate": 0.05, "steps": 300}),
        ("steps", {"noise_multiplier": 20.0}),
        ("steps", {"noise_multiplier": 2.0, "sampling_rate": 0.1}),
        ("sampling_rate", {"noise_multiplier": 2.0, "steps": 20}),
    ],
)
def test_calibrate(ask, run, target, given):
    """The answer of each target spends the epsilon that is printed with it; as it is printed, rounded, it spends no more."""
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in given.items())
    command = f"calibrate --target {target.replace('_', '-')} --epsilon 1 --delta 1e-5 {words}"
    answer = ask(command)

    def spent(value):
        setting = {"sampling_rate": 1.0} | given | {target: value}
        step = hs.PoissonSampled(hs.Gaussian(setting["noise_multiplier"]), setting["sampling_rate"])
        return hs.Accountant().compose(step, int(setting["steps"])).epsilon(1e-5)

    assert 0.9 < answer["epsilon"] <= 1.0
    assert answer["epsilon"] == pytest.approx(spent(answer[target]), rel=1e-12)
    assert answer["inputs"] == {"epsilon": 1.0, "delta": 1e-5} | given
    printed = re.fullmatch(
        rf"{target.replace('_', ' ')} = (\S+): epsilon = (\S+) at delta = 1e-05 for (.*): a certified upper bound; one record .*\n",
        run(command).out,
    )
    assert printed[2] == hs.format_upper(answer["epsilon"], ".8g")
    assert float(printed[1]) == pytest.approx(answer[target], rel=1e-7)
    assert spent(float(printed[1])) <= answer["epsilon"] * (1 + 1e-12)
    if target == "sampling_rate":  # to name Poisson samples, which it is the rate of, changes nothing
        assert ask(f"{command} --sampling poisson") == answer


@pytest.mark.parametrize("sampling", ["poisson", "shuffled"])
def test_calibrate_in_words(ask, run, sampling):
    """The noise of 15 epochs keeps the budget, also for shuffled batches, and the text says of what it is the noise."""
    words = f"{RECORDS} --epochs 15 --delta 1e-5 --sampling {sampling}"
    noise = ask(f"calibrate {words} --epsilon 2")["noise_multiplier"]
    assert 1.999 < ask(f"epsilon {words} --noise-multiplier {noise!r}")["epsilon"] <= 2.0
    of = "3525 Gaussian releases" if sampling == "poisson" else "15 passes over shuffled batches"
    assert f"for {of} with noise multiplier" in run(f"calibrate {words} --epsilon 2").out


def options(but=""):
    """Return the federated settings but one."""
    return " ".join(f"--{name} {value}" for name, value in FEDERATED.items() if name != but)


@pytest.mark.parametrize("target", ["noise-std", "rounds", "local-steps"])
def test_federated_calibration(ask, run, target):
    """The answer is that of mu = 2 V K eta sqrt(T/m)/sigma, Gaussian DP: it keeps the budget, and a little more does not."""
    command = f"calibrate --target {target} --epsilon 2 --delta 1e-5 {options(target)}"
    answer = ask(command)
    found = answer[target.replace("-", "_")]
    more = found + 1 if target != "noise-std" else found * (1 - 1e-6)

    def epsilon(value):
        s = FEDERATED | {target: value}
        mu = 2 * s["clip-norm"] * s["local-steps"] * s["learning-rate"] * (s["rounds"] / s["num-clients"]) ** 0.5
        return float(hs.gdp_epsilon(mu / s["noise-std"], 1e-5))

    assert epsilon(found) <= 2.0 * (1 + 1e-10) < epsilon(more)
    settings = {name.replace("-", "_"): value for name, value in (FEDERATED | {target: found}).items()}
    assert answer["epsilon"] == float(federated.fedavg_epsilon(1e-5, smoothness=0.0, **settings)) <= 2.0
    text = run(command).out
    shown = Decimal(text.split(":")[0].split()[-1])
    assert shown >= found if target == "noise-std" else shown == found
    assert f"epsilon = {hs.format_upper(answer['epsilon'], '.8g')} at" in text
    assert "one record is replaced, only the last model is seen" in text


def test_sampled_clients(ask, run):
    """Whole clients that are drawn for rounds are what records are that are drawn for steps; who is protected is said."""
    clients = "--num-clients 100000 --clients-per-round 1000 --delta 1e-6"
    rounds = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 500)
    drawn = hs.FixedSizeSampled(hs.Gaussian(1.0), 100_000, 1000, replacement=False)
    fixed = hs.Accountant("replace").compose(drawn, 500)
    for made, ledger in (("poisson", rounds), ("fixed", fixed)):
        line = f"epsilon {clients} --rounds 500 --noise-multiplier 1 --sampling {made}"
        found = ask(line)
        assert found["epsilon"] == pytest.approx(ledger.epsilon(1e-6), rel=1e-12)
        assert (found["unit"], found["adjacency"]) == ("one client with all its records", ledger.adjacency)
        assert "; one client with all its records is " in run(line).out
        told = run(f"statement {clients} --rounds 500 --noise-multiplier 1 --sampling {made}").out
        assert f"ε = {hs.format_upper(ledger.epsilon(1e-6), '.4g')} at δ = 1e-06" in told
        assert " one client with all its records" in told
    noise = ask(f"calibrate {clients} --rounds 500 --epsilon 2")
    assert noise["noise_multiplier"] == hs.dpsgd_noise_multiplier(0.01, 500, 2.0, 1e-6)
    most = ask(f"calibrate --target rounds {clients} --noise-multiplier 1 --epsilon 2")
    assert (most["target"], most["rounds"]) == ("rounds", hs.dpsgd_steps(1.0, 0.01, 2.0, 1e-6))


CORRELATED = r"""
tree --participation cyclic --separation 8 -> tree_sensitivity(40, participation="cyclic", separation=8).mechanism(noise)
buffers --decays .5 .9 --scales .1 .2 --participation min-separation --separation 8 --max-participations 3
    -> matrix_sensitivity(BUFFERS, steps=40, participation="min_separation", separation=8, max_participations=3).mechanism(noise)
band --coefficients 1 .5 --participation poisson --sampling-rate .1 --failure 1e-7
    -> conditional_composition([1.0, 0.5], steps=40, sampling_rate=0.1, noise_multiplier=noise, failure=1e-7)
square-root --bands 4 --participation cyclic-poisson --separation 8 --sampling-rate .1
    -> cyclic_poisson(ROOT, steps=40, separation=8, sampling_rate=0.1, noise_multiplier=noise)
square-root --bands 4 --participation min-separated-poisson --separation 4 --sampling-rate .1
    -> min_separated_poisson(ROOT, steps=40, separation=4, sampling_rate=0.1, noise_multiplier=noise)
square-root --bands 4 --participation balls-in-bins --separation 8
    -> balls_in_bins(ROOT, steps=40, bins=8, noise_multiplier=noise)
"""


@pytest.mark.share(6)
@pytest.mark.parametrize(("strategy", "known"), refused_calls.rows(CORRELATED))
def test_correlated_noise(strategy, known, ask, run):
    """Numbers and statement are those of the library, and the least noise is one that meets the budget."""

    def made(noise):
        buffers = correlated_noise.buffered_coefficients([0.5, 0.9], [0.1, 0.2], steps=40)
        names = {"noise": noise, "BUFFERS": buffers, "ROOT": correlated_noise.square_root_coefficients(4)}
        found = eval(known, vars(correlated_noise) | names)
        step = found if known.startswith("cyclic") else (found,)
        return found if hasattr(found, "epsilon") else hs.Accountant().compose(*step)

    line, epsilon = f"--strategy {strategy} --steps 40", made(5.0).epsilon(1e-6)
    assert ask(f"epsilon {line} --noise-multiplier 5 --delta 1e-6")["epsilon"] == epsilon
    assert ask(f"delta {line} --noise-multiplier 5 --epsilon .5")["delta"] == made(5.0).delta(0.5)
    entry = json.loads(run(f"statement {line} --noise-multiplier 5 --delta 1e-6 --format json").out)
    assert entry["dp_flavor"]["epsilon"] == epsilon
    noise = ask(f"calibrate {line} --epsilon {epsilon} --delta 1e-6")["noise_multiplier"]
    assert made(noise).epsilon(1e-6) <= epsilon
    assert noise == pytest.approx(5.0, rel=1e-3)


NOTHING_MEETS = f"""
--steps 3 --delta 0 -> no finite noise multiplier meets epsilon = 1 at delta = 0 with steps 3
--target steps --noise-multiplier 3 --delta 0 -> not even one step meets epsilon = 1 at delta = 0 with noise multiplier 3
--target rounds --delta 1e-5 {options("rounds").replace("0.9", "0.001")} -> not one round meets epsilon = 1 at delta = 1e-05 with
"""


@pytest.mark.parametrize(("words", "reason"), refused_calls.rows(NOTHING_MEETS))
def test_budget_that_nothing_meets(refused, words, reason):
    """There is no answer, but exit code 4 and the reason."""
    refused(f"calibrate --epsilon 1 {words}", reason, 4)


@pytest.mark.share(2)
@pytest.mark.parametrize(("trust", "pool"), [("central", 100), ("inter-silo", 25)])
def test_the_epsilon_of_a_plan_is_that_of_its_row(trust, pool, ask, run):
    """A row of `plan`, read as it is printed, has the epsilon that stands in it, rounded up."""
    problem = "--num-silos 4 --num-records 25 --dimension 5 --lipschitz 1 --diameter 4 --smoothness .25 --epsilon 4 --rounds 2"
    command = f"plan --trust {trust} {problem} --delta 1e-6 --top 1"
    rows = [line.split() for line in run(command).out.splitlines()[4:] if line.strip()]
    settings = ask(command)["settings"]
    assert len(rows) == len(settings) == 1
    for row, setting in zip(rows, settings, strict=True):
        noise, rounds, batch = float(row[0]), int(row[1]), int(row[2])
        assert noise == setting["noise_std"]
        spent = isrl.noisy_mb_sgd_accountant(
            noise_std=noise, lipschitz=1.0, num_records=pool, batch_size=batch, rounds=rounds
        ).epsilon(1e-6)
        assert setting["epsilon"] == spent
        assert row[5] == hs.format_upper(spent, ".5g")


EPSILON = "epsilon --noise-multiplier 1 --delta 1e-5"
CALIBRATE = "calibrate --epsilon 1 --delta 1e-5"
REFUSED = f"""
{EPSILON} --steps 1 --noise-multiplier 0 -> argument --noise-multiplier: must be positive and finite, not 0
{EPSILON} --steps 1.5 -> argument --steps: must be an integer in [0, 9007199254740992], not 1.5
{EPSILON} --steps 1 --delta 1.5 -> argument --delta: must lie in [0, 1], not 1.5
{EPSILON} --steps 9 --sampling-rate a/b -> argument --sampling-rate: must lie in [0, 1], not a/b
epsilon --steps 1 --delta 1e-5 -> the following arguments are required: --noise-multiplier; see hockeystick epsilon --help
sweep best out -> one of the arguments --maximise --minimise is required
{EPSILON} --steps 1 --epsilon 1 -> no option --epsilon
{EPSILON} --steps 1 --noise_multiplier 1 -> no option --noise_multiplier; did you mean --noise-multiplier?
epsilon --sigma 1 --steps 1 --delta .1 -> no option --sigma; did you mean --noise-multiplier?
{EPSILON} --st 10 -> no option --st
{EPSILON} --num-records 100 --batch-size 101 --epochs 1 -> --batch-size: must be at most the number of records (100), not 101
{EPSILON} --num-records 100 --epochs 1 -> --batch-size: required
{EPSILON} --num-records 100 --batch-size 10 -> required: --steps, or --epochs with --num-records and --batch-size
{EPSILON} --num-records 100 --batch-size 10 --epochs 1 --steps 10 -> --epochs: not allowed with --steps
{EPSILON} --sampling-rate 0.1 --epochs 1 -> --epochs: needs --num-records and --batch-size
{EPSILON} --num-records 9 --batch-size 3 --steps 1 --sampling-rate 0 -> --sampling-rate: not allowed with --num-records
{EPSILON} --steps 10 --sampling shuffled -> --sampling: shuffled needs --num-records and --batch-size
{EPSILON} --steps 10 --sampling poisson -> --sampling: poisson needs --num-records and --batch-size or --sampling-rate
{EPSILON} --steps 10 --sampling possion -> argument --sampling: invalid choice: 'possion'
statement --num-records 9 --batch-size 3 --noise-multiplier 1 --delta .1 -> exactly one of --epochs and --steps must be given
{CALIBRATE} -> the following arguments are required: --steps
{CALIBRATE} --target steps -> the following arguments are required: --noise-multiplier
{CALIBRATE} --steps 3 --noise-multiplier 1 -> argument --noise-multiplier: not allowed, since it is the target
{CALIBRATE} --target epochs -> argument --target: invalid choice: 'epochs'
{CALIBRATE} --steps 3 --sampling fixed -> --sampling: must be poisson, or shuffled
{CALIBRATE} --steps 3 --num-clients 9 -> --num-clients: not allowed with --target noise-multiplier
{CALIBRATE} --target rounds -> the following arguments are required: --num-clients, --local-steps
{CALIBRATE} --target rounds {options()} -> --rounds: not allowed, since it is the target
{CALIBRATE} --target rounds {options("rounds")} --num-records 9 -> --num-records: not allowed
{CALIBRATE} --target steps --num-clients 9 --clients-per-round 3 -> --target: must be noise-multiplier or rounds with --clients-per-round
{CALIBRATE} --num-clients 9 --clients-per-round 3 -> the following arguments are required: --rounds
{EPSILON} --clients-per-round 3 -> the following arguments are required: --num-clients, --rounds
{EPSILON} --num-clients 9 --clients-per-round 10 --rounds 1 -> --clients-per-round: must be at most the number of clients (9), not 10
{EPSILON} --num-clients 9 --clients-per-round 3 --rounds 1 --epochs 2 -> --epochs: not allowed for clients
{EPSILON} --num-clients 9 --clients-per-round 3 --rounds 1 --certificate a -> --certificate: not allowed for clients
{CALIBRATE} --num-clients 9 --rounds 3 -> --num-clients: not allowed with --target noise-multiplier without --clients-per-round
{EPSILON} --num-clients 9 --clients-per-round 3 --rounds 1 --sampling shuffled -> --sampling: must be poisson or fixed for clients
statement --noise-multiplier 1 --delta .1 --steps 3 -> the following arguments are required: --num-records
{EPSILON} --strategy tree --steps 9 -> the following arguments are required: --participation
{EPSILON} --strategy buffers --participation cyclic --steps 9 -> required: --decays, --scales, --separation
{EPSILON} --strategy tree --participation single --steps 9 --separation 2 -> --separation: not allowed with --strategy tree
{EPSILON} --strategy tree --participation single --steps 9 --epochs 2 -> --epochs: not allowed with --strategy
{EPSILON} --strategy tree --participation cyclic-poisson --separation 2 --sampling-rate 0 --steps 9 -> --strategy: must be of shape (9, 9), not (16, 9)
{EPSILON} --steps 9 --bands 2 -> argument --bands: needs --strategy
{CALIBRATE} --target steps --strategy tree --noise-multiplier 1 -> --strategy: not allowed with --target steps
plot profile {WORDS} --budget 0 -> argument --budget: not allowed with profile, only with epsilon
plot epsilon {WORDS} --sampling shuffled -> only after a pass
figures --runs 3 -> argument --runs: not allowed without names
figures 002/2 --runs 3 -> argument --runs: not allowed, since none of these is an experiment
{CALIBRATE} --target rounds {options("rounds")} --delta 0 -> argument --delta: must be in (0, 1) for rounds, not 0.0
plot epsilon {WORDS} --sampling unknown -> argument --sampling: unknown has no ε after a step
sweep run plan.toml -o out --workers 2 --scheduler tcp://127.0.0.1:9 -> not allowed with argument
sweep run plan.toml -o out --shards=0/4 -> argument --shards: must be I/N with 1 <= I <= N, not 0/4
sweep run plan.toml -o out --shards=a/b -> argument --shards: must be I/N, two integers, not a/b
simulate plan.toml --plot rounds.txt -> must end in .png, .svg or .pdf, not rounds.txt
"""


@pytest.mark.parametrize(("line", "reason"), refused_calls.rows(REFUSED))
def test_refused(refused, line, reason):
    """What is wrong, missing, too much, or contradicts itself ends with exit code 2 and one line that says so."""
    refused(line, reason)


ODD = ("0", "-1", "1.5", "1e-320", "1e300", "nan")
NUMBERS = f"""
{EPSILON} --sampling-rate .1 --steps 40
{EPSILON} --num-records 1000 --batch-size 60 --epochs 3 --sampling fixed
{EPSILON} --num-clients 900 --clients-per-round 30 --rounds 20
delta --noise-multiplier 2 --num-records 1000 --batch-size 60 --steps 34 --epsilon 1 --sampling shuffled
statement --noise-multiplier 2 --num-records 1000 --batch-size 60 --steps 34 --delta 1e-6
{CALIBRATE} --target rounds {options("rounds")}
"""


@pytest.mark.parametrize("line", NUMBERS.strip().splitlines())
def test_a_refused_value_is_named_by_its_option(run, line):
    """Whatever number is refused, by the command or by the library below it, the message has the option that was typed, and no argument of Python's."""
    words = line.split()
    for place in (number for number, word in enumerate(words) if word[0] in ".0123456789"):
        for value in ODD:
            told = run(" ".join([*words[:place], value, *words[place + 1 :]]))
            assert told.code in (0, 2, 4)
            if told.code == 2:
                assert "argument --" in told.err
                assert not re.search("[a-z]_[a-z]", told.err)


OF_A_PLAN = (
    "--num-records 25 --dimension 5 --lipschitz 1 --diameter 4 --smoothness .25 --epsilon 4 --delta 1e-6 --rounds 2"
)
OF_CLIENTS = "--num-clients 900 --clients-per-round 30 --rounds 20"
OF_A_TRAINING = "--noise-multiplier 2 --num-records 1000 --batch-size 60 --steps 34"
PATHS = f"""
epsilon --noise-multiplier 2 --delta 1e-6 --steps 40
epsilon --noise-multiplier 2 --delta 1e-6 --steps 40 --sampling-rate .1
epsilon {OF_A_TRAINING} --delta 1e-6
epsilon {OF_A_TRAINING} --delta 1e-6 --sampling shuffled
epsilon {OF_A_TRAINING} --delta 1e-6 --sampling unknown
delta {OF_A_TRAINING} --epsilon 1
{EPSILON} --num-records 1000 --batch-size 60 --epochs 3 --sampling fixed
statement {OF_A_TRAINING} --delta 1e-6
statement {OF_A_TRAINING} --delta 1e-6 --sampling shuffled
statement --noise-multiplier 2 --num-records 1000 --sampling-rate .1 --steps 40 --delta 1e-6
{CALIBRATE} --steps 40
{CALIBRATE} --steps 34 --num-records 1000 --batch-size 60
{CALIBRATE} --steps 34 --num-records 1000 --batch-size 60 --sampling shuffled
{CALIBRATE} --target steps --noise-multiplier 20
{CALIBRATE} --target steps --noise-multiplier 2 --num-records 1000 --batch-size 60
{CALIBRATE} --target sampling-rate --noise-multiplier 2 --steps 40
epsilon {OF_CLIENTS} --noise-multiplier 2 --delta 1e-6
epsilon {OF_CLIENTS} --noise-multiplier 2 --delta 1e-6 --sampling fixed
statement {OF_CLIENTS} --noise-multiplier 2 --delta 1e-6
{CALIBRATE} {OF_CLIENTS}
{CALIBRATE} --target rounds --num-clients 900 --clients-per-round 30 --noise-multiplier 2
{CALIBRATE} --target noise-std {options("noise-std")}
{CALIBRATE} --target rounds {options("rounds")}
{CALIBRATE} --target local-steps {options("local-steps")}
plot epsilon {OF_A_TRAINING}
plot profile {OF_A_TRAINING}
plot trade-off {OF_A_TRAINING}
plan {OF_A_PLAN} --num-silos 4
plan {OF_A_PLAN} --num-silos 4 --trust central
plan {OF_A_PLAN} --num-silos 40 --trust last-iterate --strong-convexity .1
figures
sweep init
"""
# Another value of every option.
OTHER = """
--noise-multiplier 1.5 --epsilon 3 --delta 1e-4 --steps 17 --sampling-rate .05 --num-records 500 --batch-size 20 --epochs 2
--sampling shuffled --drop-last --clip-norm 2 --budget 1 --num-clients 50 --rounds 3 --local-steps 3 --learning-rate .3
--noise-std 2 --format markdown --out new.png --json --trust inter-silo --num-silos 50 --dimension 9 --lipschitz 3
--clients-per-round 7 --diameter 3 --smoothness .1 --silos-per-round 3 --strong-convexity .2 --top 1 --simulate 2 --sweep new.toml --runs 3
--function theta --target rounds --certificate new.json --slack .5 --strategy tree --participation single --bands 3 --coefficients 1
--decays .5 --scales .5 --separation 7 --max-participations 2 --failure 1e-7 --warm-start
"""
VALUES = dict(re.findall(r"(--[\w-]+) ?([^-\s]\S*)?", OTHER))


@pytest.mark.share(4)
@pytest.mark.parametrize("line", PATHS.strip().splitlines())
def test_no_option_is_ignored(run, line, tmp_path, monkeypatch):
    """Whatever path a command takes, each of its options changes what is told or written there, or is refused."""
    monkeypatch.chdir(tmp_path)

    def outcome(words):
        told = run(words)
        files = {path: path.read_bytes() for path in tmp_path.iterdir()}
        for path in files:
            path.unlink()
        return told, files

    words = line.split()
    command = " ".join(words[: 2 if words[0] == "sweep" else 1])
    offered = re.findall(r"^ {2}(?:-\w\b.*?, )?(--[\w-]+)", run(f"{command} --help").out, re.MULTILINE)
    assert "--help" in offered
    plain = outcome(line)
    assert plain[0].code == 0
    for option in set(offered) - {"--help", *words}:
        other = outcome(f"{line} {option} {VALUES[option]}")
        assert other[0].code == 2 or other != plain, option


def test_version(run):
    """The version is the package's."""
    assert run("--version")[:2] == (0, f"hockeystick {hs.__version__}\n")


@pytest.mark.parametrize("command", [name for name, one in COMMANDS.items() if one.run is not None])
def test_help_has_examples_that_parse(command, run):
    """Every command shows at least one example in its help, and they are its own."""
    text = run(f"{command} --help").out
    assert COMMANDS[command].examples
    for example in COMMANDS[command].examples:
        assert f"  hockeystick {example}\n" in text
        assert example.startswith(command)
        parser().parse_args(shlex.split(example.partition(" > ")[0]))


def test_completion(written, refused, monkeypatch):
    """The scripts know the commands and their options; without its extra, that is named, of a clone."""
    pytest.importorskip("shtab")
    for shell in ("bash", "zsh", "tcsh"):
        script = written(f"completion {shell}")
        assert "calibrate" in script
        assert "noise-multiplier" in script
    monkeypatch.setitem(sys.modules, "shtab", None)
    refused("completion bash", 'pip install ".[completion]" in a clone', 1)


# The demo: what it prints is ordered as it says, and it draws a picture.


def test_certified_is_between_exact_and_nothing_else():
    """The certified values are never below the exact ones; the printed theorem is, from two rounds on."""
    fedavg, hidden = demo.compare_fedavg(), demo.compare_last_iterate()
    for found in (fedavg, hidden):
        assert np.all(found.certified >= found.exact * (1 - 1e-10))
    assert np.all(fedavg.published[1:] < fedavg.exact[1:])
    assert np.all(hidden.published >= hidden.certified)


def test_it_prints_and_draws(tmp_path, written):
    """The command prints its tables and the count of the cells, and leaves a picture that is not blank."""
    image = pytest.importorskip("matplotlib.image")
    printed = written(f"demo -o {tmp_path}/demo.png")
    assert re.search(r"1,000,000 certified epsilons of Noisy-FedAvg in \d+\.\d+ s", printed)
    assert len(re.findall(r"^ +\d+( +[\d.e-]+){3}$", printed, re.MULTILINE)) == 2 * demo.SHOWN
    assert image.imread(tmp_path / "demo.png")[..., :3].std() > 0.05


def test_without_matplotlib_the_tables_remain(monkeypatch, tmp_path, run):
    """Without Matplotlib the numbers are printed, and the picture asks for the extra."""
    for name in [name for name in sys.modules if name.startswith(("matplotlib", "hockeystick.plot"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = run(f"demo -o {tmp_path}/demo.png")
    assert told.code == 1
    assert "certified epsilons" in told.out
    assert 'pip install ".[plot]" in a clone' in told.err
