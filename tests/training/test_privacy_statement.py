"""Privacy statements: their numbers are those of the accountants, rounded outward, and every format says the same."""

import json
import math
import re
import shlex
from decimal import Decimal

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hockeystick as hs
import refused_calls
from hockeystick import cli

REVIEWED = {"num_records": 60_000, "batch_size": 256, "epochs": 15, "noise_multiplier": 1.1, "delta": 1e-5}
STEPS = 15 * 235  # the last batch of an epoch is smaller
NUMBER = r"(\d+(?:\.\d+)?)"


def line(text: str, start: str) -> str:
    """Return what follows a heading, its lines joined."""
    return re.sub(r"\s+", " ", text.split(f"\n{start}:")[1].split("\n\n", maxsplit=1)[0]).strip()


@pytest.fixture(scope="module")
def poisson():
    """Return the statement of the reviewed training."""
    return hs.privacy_statement(**REVIEWED)


def test_headline_is_the_upper_end_rounded_up(poisson):
    """The epsilon to quote is at least that of `dpsgd_epsilon`, and its last digit at most one more."""
    truth = hs.dpsgd_epsilon(1.1, 256 / 60_000, STEPS, 1e-5)
    shown = Decimal(re.search(rf"ε = {NUMBER}", poisson)[1])
    assert Decimal(truth) <= shown <= Decimal(truth) + Decimal("0.001")
    low, high = map(Decimal, re.search(rf"between {NUMBER} and {NUMBER}", line(poisson, "ε")).groups())
    bracket = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.1), 256 / 60_000), STEPS).epsilon_bracket(1e-5)
    assert low <= Decimal(bracket.lower) <= Decimal(bracket.upper) <= high


def test_other_samplings_are_told(poisson):
    """Shuffled and fixed-size batches have both ends, of the functions that bound them, rounded outward."""
    others = line(poisson, "If the batches are made otherwise")
    fixed = re.search(rf"between {NUMBER} and {NUMBER}", others).groups()
    ends = re.search(rf"at most {NUMBER} \(at least {NUMBER} if all batches had one size\)", others)
    shuffled = ends[2], ends[1]
    bracket = hs.shuffled_batches_epsilon_bracket(1e-5, noise_multiplier=1.1, num_batches=235, epochs=15)
    assert Decimal(shuffled[0]) <= Decimal(bracket.lower)
    assert Decimal(shuffled[1]) >= Decimal(bracket.upper)
    assert float(shuffled[0]) == pytest.approx(bracket.lower, rel=1e-3)
    assert float(shuffled[1]) == pytest.approx(20.56, abs=0.011)
    sample = hs.FixedSizeSampled(hs.Gaussian(1.1), 60_000, 256, replacement=False)
    bracket = hs.Accountant("replace").compose(sample, STEPS).epsilon_bracket(1e-5)
    assert Decimal(fixed[0]) <= Decimal(bracket.lower) <= Decimal(bracket.upper) <= Decimal(fixed[1])


def test_unknown_is_the_worst():
    """Where it is not known how batches are made, the largest epsilon counts, and the text says so."""
    text = hs.privacy_statement(**REVIEWED, sampling="unknown")
    shuffled = hs.privacy_statement(**REVIEWED, sampling="shuffled")
    assert re.search(rf"ε = {NUMBER}", text)[1] == re.search(rf"ε = {NUMBER}", shuffled)[1] == "20.57"
    flat = " ".join(text.split())
    assert "How batches are made is not known" in flat
    assert "promises next to nothing" in flat


def test_part_of_an_epoch_has_no_lower_end():
    """Of shuffled batches that fill no epoch nothing is claimed from below, and one use is charged."""
    text = hs.privacy_statement(
        num_records=1000, batch_size=10, steps=99, noise_multiplier=1.0, delta=1e-6, sampling="shuffled"
    )
    assert "at least 0;" in line(text, "ε")
    assert float(re.search(rf"ε = {NUMBER}", text)[1]) == pytest.approx(hs.gaussian_epsilon(1.0, 1e-6), rel=1e-3)  # fmt: skip


@pytest.mark.parametrize("size", [2, 10])
def test_group_of_gaussian_steps(size):
    """The epsilon of k records is that of a Gaussian whose sensitivity is k times as large, rounded up."""
    text = hs.Accountant().compose(hs.Gaussian(20.0), 4).statement(1e-6)
    shown = float(re.search(rf"{size} records: ε = {NUMBER}", text)[1])
    exact = hs.gdp_epsilon(size * 2 / 20.0, 1e-6)
    assert exact <= shown <= exact * (1 + 1e-3)
    assert "by the mechanisms of a group" in text


@pytest.mark.parametrize("size", [2, 10])
def test_group_of_any_steps(size):
    """The epsilon of k records satisfies the lemma, where the steps have no mechanism for groups."""
    curve = hs.PrivacyProfile.from_function(lambda eps: hs.gdp_delta(0.1, eps), tail=0.0)
    text = hs.Accountant().compose(curve).statement(1e-6)
    said = re.search(rf"{size} records: ε = {NUMBER}", text)
    with mpmath.workdps(40):
        one, mu = mpmath.mpf(said[1]) / size, mpmath.mpf("0.1")
        delta = mpmath.ncdf(-one / mu + mu / 2) - mpmath.exp(one) * mpmath.ncdf(-one / mu - mu / 2)
        assert delta * mpmath.expm1(size * one) / mpmath.expm1(one) <= mpmath.mpf("1e-6")
    assert "by group privacy" in text


def test_attack_is_the_trade_off(poisson):
    """The true-positive rate and the advantage are upper bounds by delta and epsilon."""
    accountant = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.1), 256 / 60_000), STEPS)
    said = line(poisson, "What an attacker can do")
    rate, advantage = map(float, re.findall(rf"at most {NUMBER}%", said))
    guess, rare = map(float, re.findall(r"with (?:chance )?([\d.e-]+)%? at most", said))
    exact = hs.risk.attribute_inference(accountant, [0.5, 1e-6])
    assert exact[0] <= guess / 100 <= exact[0] + 1e-5
    assert exact[1] <= rare <= exact[1] * 1.01
    assert 1 - accountant.trade_off(0.01) <= rate / 100 <= 1 - accountant.trade_off(0.01) + 1e-5
    assert rate / 100 <= min(0.01 + accountant.advantage(), math.exp(accountant.epsilon(1e-5)) * 0.01 + 1e-5)
    assert advantage / 100 >= accountant.advantage()


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "json"])
def test_formats_say_the_same(form):
    """Every format has the numbers, the assumptions and what is not covered."""
    made = " ".join(hs.privacy_statement(**REVIEWED, clip_norm=0.5, format=form).split())
    numbers = ("1.1353", "20.5", "60000", "0.5")
    for part in (*numbers, "batch normalisation", "tuning", hs.__version__, "statement --num-records"):
        assert part in made, part
    assert ("``` hockeystick statement" in made) == (form == "markdown")  # to copy


def test_json_is_an_entry():
    """The entry reads back, with the very doubles; what only the deployer knows is null, and so is an infinite epsilon."""
    entry = json.loads(hs.privacy_statement(**REVIEWED, format="json"))
    assert entry["dp_flavor"]["epsilon"] == hs.dpsgd_epsilon(1.1, 256 / 60_000, STEPS, 1e-5)
    assert entry["dp_flavor"]["delta"] == 1e-5
    assert entry["deployment"]["data_curator"] is None
    assert set(entry["by_sampling"]) == {"poisson", "fixed", "shuffled"}
    assert entry["by_sampling"]["shuffled"]["epsilon_lower_end"] == 0.0  # the last batch is smaller: nothing is proven
    equal = json.loads(hs.privacy_statement(**(REVIEWED | {"batch_size": 250}), format="json"))
    assert equal["by_sampling"]["shuffled"]["epsilon_lower_end"] > 5.0
    blatant = json.loads(hs.Accountant().compose(hs.ApproximateDP(1.0, 0.1)).statement(1e-6, format="json"))
    assert blatant["dp_flavor"]["epsilon"] is None


def test_latex_has_no_bare_special_character():
    """What LaTeX would read as a command is escaped, but in the verbatim command."""
    text = (
        hs.Accountant()
        .compose(hs.PoissonSampled(hs.Gaussian(1.1), 0.1), 5)
        .statement(1e-6, format="latex", released="100 % of a_b & c#d {e} ~f ^g $h \\i")
    )
    plain = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", text, flags=re.DOTALL)
    plain = re.sub(r"\$\\(varepsilon|delta|le)\$|\\textbackslash\{\}|\\[\^~]\{\}|\\[%&#{}_$]", "", plain)
    plain = re.sub(r"\\(section\*|paragraph|begin|end)\{([^{}]*)\}|\\item", r"\2", plain)
    assert not re.search(r"[%&#{}_$^~\\]", plain), plain


@pytest.mark.parametrize(
    "more", [{}, {"drop_last": True}, {"sampling_rate": 0.1}, {"sampling_rate": 1 / 3, "batch_size": None, "epochs": None, "steps": 7}]
)  # fmt: skip
def test_the_command_gives_it_again(more, capsys):
    """The command at the end prints the same statement, byte for byte."""
    text = hs.privacy_statement(**(REVIEWED | more))
    command = text.split("Again:\n")[1].strip()
    assert cli.main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out == text + "\n"


def test_the_code_gives_it_again(capsys):
    """The code at the end of an accountant's statement prints the same statement."""
    accountant = (
        hs.Accountant("replace").compose(hs.Laplace(3.0), 2).compose(hs.PoissonSampled(hs.Gaussian(2.0), 0.1), 7)
    )
    text = accountant.statement(1e-6)
    exec("\n".join(row.strip() for row in text.split("Again:\n")[1].splitlines()), {})  # noqa: S102
    assert capsys.readouterr().out == text + "\n"


def test_no_group_where_the_number_of_records_is_told():
    """A chain of added records changes the number that a sampler is told: no epsilon of several is claimed."""
    truncated = hs.TruncatedPoissonSampled(hs.Gaussian(1.0), sampling_rate=0.1, num_records=30, max_batch_size=9)
    assert "several records" not in hs.Accountant().compose(truncated).statement(1e-4)


@pytest.mark.parametrize(
    ("records", "batch_size", "steps", "noise", "batches"), [(1000, 300, 30, 1.0, 3), (50_000, 4096, 1200, 3.0, 12)]
)
def test_a_loader_that_drops_the_last_batch(records, batch_size, steps, noise, batches):
    """The rate of its Poisson samples is one over its length, as in Opacus, and its shuffled batches come round after so many steps."""
    known = {"num_records": records, "batch_size": batch_size, "steps": steps, "noise_multiplier": noise, "delta": 1e-5}
    truth = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), 1 / batches), steps).epsilon(1e-5)
    for said in ({"drop_last": True}, {"sampling_rate": 1 / batches}):
        text = hs.privacy_statement(**known, **said)
        shown = float(re.search(rf"ε = {NUMBER}", text)[1])
        assert truth <= shown <= truth * 1.001
        assert f"with probability {1 / batches!r}, independently" in " ".join(text.split())
    uses = hs.Accountant().compose(hs.Gaussian(noise), math.ceil(steps / batches)).epsilon(1e-5)
    text = hs.privacy_statement(**known, drop_last=True, sampling="shuffled")
    assert uses <= float(re.search(rf"ε = {NUMBER}", text)[1]) <= uses * 1.001
    assert "if all batches had one size" not in hs.privacy_statement(**known, drop_last=True)  # records are left out


@given(records=st.integers(1, 2000), share=st.floats(0.01, 1.0), epochs=st.floats(0.05, 5.0), noise=st.floats(0.7, 8.0))
def test_no_loader_is_promised_less_than_opacus_would_count(records, share, epochs, noise):
    """Whatever the loader does with its last batch, the words have at least the epsilon of one over its length, and the steps that it takes."""
    batch_size = max(1, int(share * records))
    for drop_last in (False, True):
        length = len(range(0, records - (batch_size - 1 if drop_last else 0), batch_size))  # as torch counts
        made = hs.dpsgd_parameters(
            num_records=records, batch_size=batch_size, epochs=epochs, noise_multiplier=noise, drop_last=drop_last
        )
        assert made.sampling_rate >= 1 / length * (1 - 1e-15)
        assert made.sampling_rate == pytest.approx(1 / length if drop_last else batch_size / records, rel=1e-15)
        assert made.steps >= epochs * length * (1 - 1e-9) if drop_last else made.steps >= math.floor(epochs) * length


def test_a_rate_stands_for_the_batch_size():
    """With a rate and steps the batch size need not be known; then nothing is said of other ways to make batches."""
    known = {"num_records": 1000, "steps": 30, "noise_multiplier": 1.0, "delta": 1e-5}
    text = hs.privacy_statement(**known, sampling_rate=0.3)
    assert "If the batches are made otherwise" not in text
    assert "Poisson samples of rate 0.3 of 1000 records" in " ".join(text.split())
    assert "If the batches are made otherwise" in hs.privacy_statement(**known, sampling_rate=0.3, batch_size=300)
    rate = {"sampling_rate": 0.3}
    for more in ({}, {"sampling": "shuffled"} | rate, {"drop_last": True} | rate, {"steps": None, "epochs": 2} | rate):
        with pytest.raises(ValueError, match="batch_size must be given, or sampling_rate and steps"):
            hs.privacy_statement(**(known | more))


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "json"])
def test_a_large_delta_stands_before_the_epsilon(form):
    """Where delta is one over the number of records the sentence to quote begins with what that means; below it does not."""
    for made in (
        lambda delta: hs.privacy_statement(**(REVIEWED | {"delta": delta}), format=form),
        lambda delta: (
            hs.Accountant("replace")
            .compose(hs.FixedSizeSampled(hs.Gaussian(2.0), 60_000, 256, replacement=False))
            .statement(delta, format=form)
        ),
    ):
        with pytest.warns(hs.ImplausibleSettingWarning, match="delta is at least 1/60000"):
            large = made(1 / 60_000)
        assert "is not below 1/60000" not in made(math.nextafter(1 / 60_000, 0.0))
        if form == "json":
            assert any("is not below 1/60000" in line for line in json.loads(large)["implementation"]["not_covered"])
            continue
        paragraph = large.split("\n\n" if form != "text" else "=\n\n")[1]
        assert re.match(r"(δ|\$\\delta\$) = \S+ is not below 1/60000", paragraph)


REFUSED = r"""
stated(batch_size=60001) -> batch_size must be at most the number of records \(60000\), not 60001
stated(steps=3) -> exactly one of epochs and steps must be given, not epochs=15 and steps=3
stated(epochs=None) -> exactly one of epochs and steps must be given, not epochs=None and steps=None
stated(sampling_rate=0.0) -> sampling_rate must lie in \(0, 1\], not 0\.0
stated(sampling="bernoulli") -> sampling must be one of
stated(format="html") -> format must be one of
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call, reason):
    """What is outside its domain is named with its value, and wrong types are told from wrong values."""
    refused_calls.check(call, reason, {"stated": lambda **changes: hs.privacy_statement(**REVIEWED | changes)})
