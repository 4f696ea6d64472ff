"""The papers' tables asked from Python and by the command: which row is found, its numbers at a reader's settings, what is refused."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from hockeystick import federated, format_upper, last_iterate, published
from hockeystick.cli import main

FEDERATION = {
    "local_steps": 2,
    "num_clients": 9,
    "clip_norm": 1.0,
    "noise_std": 0.5,
    "smoothness": 1.0,
    "learning_rate": 0.1,
}
ERM = {"lipschitz": 1.0, "silos_per_round": 25, "num_silos": 25, "num_records": 1000, "batch_size": 100, "delta": 1e-5}
ERM |= {"dimension": 10, "diameter": 2.0, "smoothness": 1e4}


@pytest.mark.parametrize(
    ("paper", "name", "found"),
    [
        ("003", "Theorem F.1", "Theorem 4.1, F.1.1: R"),
        ("isrl", "theorem f.1.2", "Theorem F.1.2: R"),
        ("003", "(18)", "(5), (18), (20)"),
        ("003", "Equation 18", "(5), (18), (20)"),
        ("003", "Lemma D.12", "Lemmas D.8, D.11, D.12"),
        ("004", "Theorem 12", "Theorem 12"),
        ("004", "Theorem 12 (a)", "Table 1, constant"),
        ("004", "Definition 2", "Definitions 1-3, (5)-(7)"),
        ("fdp_fedavg", "Corollary 14", "Corollaries 14, 16"),
        ("002", "Theorem 3", "Theorem 3"),
        ("001", "Lemma 5.4", "Lemma 5.4/F.1 (11)"),
        ("000", "Remark 1", "Remark 1"),
    ],
)
def test_name_finds_its_row(paper: str, name: str, found: str) -> None:
    """A statement is found by its name as printed, in any letters, also where a row has several."""
    assert published.statement(paper, name).name == found


@pytest.mark.parametrize("rounds", [2, 30, 500])
def test_numbers_at_the_readers_settings(rounds: int) -> None:
    """Theorem 12 (a): printed by its closed form, certified and attained by plain composition; printed is marked, and refuted."""
    found = published.statement("004", "Theorem 12 (a)", **FEDERATION, rounds=rounds)
    drift, rho = 2 * 0.1 * 2 / (3 * 0.5), 1.1**2
    closed = drift * math.sqrt((rho + 1) / (rho - 1) * (1 - 2 / (rho**rounds + 1)))
    assert found.printed == pytest.approx(closed, rel=1e-12)
    assert found.certified == federated.fedavg_gdp(**FEDERATION, rounds=rounds)
    assert found.attained == pytest.approx(drift * math.sqrt(rounds), rel=1e-12)
    assert found.refuted
    worth = {number.label: number.worth.partition(":")[0] for number in found.numbers}
    assert worth == {
        "printed": "published but unsound",
        "certified": "certified",
        "attained": "attained by the instance below",
    }
    assert f"rounds = {rounds}" in found.counterexample


def test_counterexample_does_not_refute_everywhere() -> None:
    """In one round nothing is claimed that linear losses would not attain: the statement says so."""
    found = published.statement("004", "Theorem 12 (a)", rounds=1)
    assert found.refuted is False
    assert "does not refute" in str(found)


def test_right_rows_have_numbers_too() -> None:
    """A statement without a counterexample is evaluated where the settings suffice; a bound is printed rounded up."""
    cell = {
        "index": 3,
        "num_records": 10,
        "learning_rate": 0.1,
        "noise_std": 1.0,
        "lipschitz": 1.0,
        "smoothness": 1.0,
        "diameter": 1.0,
    }
    found = published.statement("002", "Theorem 4", epsilon=0.5, **cell)
    assert found.certified == last_iterate.pnsgd_gaussian(0.5, **cell)
    assert found.refuted is None
    assert (found.printed, found.counterexample) == (None, "")
    assert f"certified  {format_upper(found.certified)}: certified" in str(found)
    assert found.tests[0] in str(found)


def test_sound_formulas_are_not_called_unsound() -> None:
    """Theorem 12 (c) holds as a bound, whatever the strict sign; the same function with constant steps does not."""
    words = {number.label: number.worth for number in published.statement("004", "Theorem 12 (c)").numbers}
    assert words["printed"] == "published"
    rates = published.statement("003", "Theorem F.1", epsilon=1.0, **ERM)
    assert [number.worth.partition(":")[0] for number in rates.numbers] == ["published but unsound", "an estimate"]
    assert rates.certified is None


@pytest.mark.parametrize("paper", published.statements.PAPERS)
@pytest.mark.parametrize("worth", published.statements.WORTH)
def test_numbers_are_printed_outward(worth: str, paper: str) -> None:
    """What is printed of an upper bound, also in fields and arrays, is not below it, of a lower bound not above; others are nearest."""
    rng = np.random.default_rng(int(paper))
    values = [*10 ** rng.uniform(-12, 6, 50), *-(10 ** rng.uniform(-12, 6, 5))]
    near = published.StepSizeBounds(lower=values[0], upper=values[1])

    def printed(value: object) -> list[Fraction]:
        text = str(published.statements.Number(worth, value, "", "")).removeprefix(f"{worth:10} ")
        return [Fraction(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?", text)]

    above = {"printed": True, "certified": True, "bound": True, "least": False, "exact": False, "attained": False}.get(
        worth
    )
    for exact, told in zip(
        values * 2, [*(one for value in values for one in printed(value)), *printed(np.array(values))], strict=True
    ):
        error = told - Fraction(exact)
        assert abs(error) <= abs(Fraction(exact)) * Fraction(11, 10**6)
        assert above is None or (error >= 0) == above or error == 0
    lower, upper = printed(near)
    assert lower <= near.lower
    assert above is None or (upper >= near.upper) == above


def test_arrays_and_words() -> None:
    """Settings may be arrays where there is no example; without a number for every argument the words are still there."""
    found = published.statement("004", "Theorem 12", **FEDERATION, rounds=np.array([2, 8]))
    np.testing.assert_array_equal(found.certified, federated.fedavg_gdp(**FEDERATION, rounds=[2, 8]))
    assert published.statement("004", "Lemma 5").numbers == ()


@pytest.mark.parametrize(
    ("paper", "name", "settings", "error", "says"),
    [
        ("005", "Lemma 1", {}, ValueError, "paper must be one of '000', 'trusted_aggregator', '001', 'distortion', "),
        ("isr", "Lemma 1", {}, ValueError, "did you mean 'isrl'"),
        (3, "Lemma 1", {}, TypeError, "paper must be a string, one of"),
        ("004", "Lemma 99", {}, ValueError, "name must be a statement of 004, not 'Lemma 99'"),
        ("004", " ", {}, ValueError, "name must be a statement of 004"),
        ("004", 12, {}, TypeError, "name must be a string, not 12"),
        ("004", "Table 1, constant", {"round": 3}, TypeError, "no setting 'round'; did you mean 'rounds'"),
        ("004", "Lemma 5", {"epsilon": 1.0}, TypeError, "no setting 'epsilon'; it has none"),
        ("004", "Theorem 12", {"rounds": 3}, TypeError, "Theorem 12 also needs local_steps, num_clients, clip_norm"),
        (
            "004",
            "Table 1, constant",
            {"noise_std": -1.0},
            ValueError,
            "noise_std must be positive and finite, not -1.0",
        ),
    ],
)
def test_refused(paper: object, name: object, settings: dict[str, float], error: type[Exception], says: str) -> None:
    """What there is not is refused with the argument's name and what was probably meant."""
    with pytest.raises(error, match=f"^.*{says.replace('(', '.').replace(')', '.')}"):
        published.statement(paper, name, **settings)


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The command lists the papers and their statements, and writes a statement as Python prints it; numbers may be divisions."""
    assert main(["papers"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(published.statements.PAPERS)
    assert main(["papers", "isrl"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(published.statements.rows("003"))
    asked = ["papers", "003", "Theorem F.1", "--set", "epsilon=2", "--set", "delta=1/100000"]
    assert main(asked) == 0
    told = capsys.readouterr().out
    assert told == f"{published.statement('003', 'Theorem F.1', epsilon=2, delta=1e-5)}\n"
    for words in ("verdict: false as printed", "published but unsound", "which refutes it", "test_printed_formulas.py"):
        assert words in told


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["papers", "003", "Theorem F.1", "--set", "eps=2"], "no setting 'eps'; did you mean 'epsilon'"),
        (["papers", "007"], "paper must be one of"),
        (["papers", "003", "--set", "epsilon=2"], "not allowed without a statement"),
        (["papers", "003", "Theorem F.1", "--set", "epsilon=many"], "epsilon must be"),
    ],
)
def test_command_refuses(line: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong question ends with exit code 2 and one line."""
    assert main(line) == 2
    assert says in capsys.readouterr().err
