"""Audits against bounds, and of every simulated algorithm: none exceeds a certified one, and printed bounds that are false are refuted; docs/audit/audit.md."""

import dataclasses
import re
import runpy
from decimal import Decimal
from pathlib import Path

import pytest

from hockeystick import audit, simulate

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "audit" / "audit.md").read_text(encoding="utf-8")
REFUTED = (
    "Noisy-FedAvg, constant steps, last model",
    "Noisy-FedAvg, cyclic steps, last model",
    "Noisy-FedProx, last model",
)


@pytest.fixture(scope="module")
def table() -> list:
    """Give the rows of the table with their audits."""
    return list(runpy.run_path(str(ROOT / "docs" / "tables" / "audit.py"))["audited"](400_000))


@pytest.mark.slow
def test_audits_stay_below_what_is_certified(table: list) -> None:
    """With a joint confidence of 0.99: 0 < audit lower <= exact or certified lower <= certified upper, in every row."""
    assert all(evidence.confidence == pytest.approx(1 - 0.01 / len(table)) for _, evidence in table)
    for row, evidence in table:
        ends = [evidence.epsilon, *([] if row.lower is None else [row.lower]), row.upper * (1 + 1e-9)]
        assert ends[0] > 0
        assert ends == sorted(ends), row.algorithm


@pytest.mark.slow
def test_audits_refute_what_is_printed(table: list) -> None:
    """The audit exceeds the published epsilon in the rows of the false theorems, and in no other."""
    refuted = [row.algorithm for row, evidence in table if row.published and evidence.epsilon > row.published]
    assert tuple(refuted) == REFUTED


@pytest.mark.slow
def test_document_has_the_table(table: list) -> None:
    """The document's rows are the script's."""
    after = TEXT[TEXT.index("| algorithm |") :].splitlines()[2 : 2 + len(table)]
    written = [[cell.strip() for cell in line.split("|")[1:-1]] for line in after]
    for cells, (row, evidence) in zip(written, table, strict=True):
        assert cells[0] == row.algorithm
        assert float(cells[1]) == row.delta
        outward = ((evidence.epsilon, False), (row.lower, False), (row.upper, True), (row.published, True))
        for cell, (value, upper) in zip(cells[2:], outward, strict=True):
            assert cell == "" if value is None else float(cell) == pytest.approx(value, abs=1e-3)
            assert value is None or (Decimal(cell) >= value if upper else Decimal(cell) <= value)


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
def test_document_runs(block: str, capsys: pytest.CaptureFixture) -> None:
    """Each Python block runs, and prints what stands behind it."""
    exec(compile(block, "audit.md", "exec"), {})  # noqa: S102, the text is ours
    printed = capsys.readouterr().out.split()
    expected = " ".join(re.findall(r"# prints (.*)", block)).split()
    assert printed == expected


SCRIPT = runpy.run_path(str(ROOT / "docs" / "tables" / "simulated_audits.py"))


@pytest.fixture(scope="module")
def simulated() -> list:
    """Give the cases with their certified epsilons and audits."""
    pytest.importorskip("numba")
    return list(SCRIPT["audited"](20_000))


@pytest.mark.slow
def test_simulated_audits_stay_below_the_guarantees(simulated: list) -> None:
    """With a joint confidence of 0.99: 0 < audit lower <= certified upper, for every algorithm."""
    for case, upper, evidence in simulated:
        assert evidence.confidence == pytest.approx(1 - 0.01 / len(simulated))
        assert 0 < evidence.epsilon <= upper, case.name


@pytest.mark.slow
def test_every_simulated_algorithm_is_audited(simulated: list) -> None:
    """Each algorithm of the simulator is in the table, but for the shuffled sums, of which isrl/test_vector_sums enumerates all outcomes."""
    kinds = {
        kind
        for kind in vars(simulate).values()
        if isinstance(kind, type) and issubclass(kind, simulate.Algorithm) and kind is not simulate.Algorithm
    }
    assert kinds - {type(case.algorithm) for case, _, _ in simulated} == {simulate.ShuffledMinibatchSGD}


@pytest.mark.slow
def test_half_of_the_simulated_noise_would_be_found(simulated: list) -> None:
    """A simulator that drew half of the noise that it accounts for would be caught: the comparison above can fail."""
    case, upper, _ = simulated[0]
    halved = case._replace(algorithm=dataclasses.replace(case.algorithm, noise_std=case.algorithm.noise_std / 2))
    runs = (SCRIPT["simulated"](halved, gradient, 20_000, seed) for seed, gradient in enumerate((1.0, -1.0)))
    models = [run.last_iterates[:, 0] for run in runs]
    assert audit.epsilon_lower_bound(*models, delta=SCRIPT["DELTA"], confidence=0.999) > upper


@pytest.mark.slow
def test_document_has_the_simulated_algorithms(simulated: list) -> None:
    """The document names the same algorithms with the same certified epsilons."""
    after = TEXT[TEXT.index("| simulated algorithm |") :].splitlines()[2 : 2 + len(simulated)]
    for line, (case, upper, _) in zip(after, simulated, strict=True):
        name, shown, certified = (cell.strip() for cell in line.strip("|").split("|"))
        assert name == case.name
        assert upper <= float(certified) < upper + 1e-3
        assert float(shown) <= float(certified)
