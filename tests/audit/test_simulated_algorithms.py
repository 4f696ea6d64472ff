"""Audits of every simulated algorithm that has a guarantee: none exceeds it."""

from __future__ import annotations

import dataclasses
import runpy
from pathlib import Path

import pytest

pytest.importorskip("numba")
simulate = pytest.importorskip("hockeystick.simulate")
audit = pytest.importorskip("hockeystick.audit")

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

SCRIPT = runpy.run_path(str(ROOT / "docs" / "tables" / "simulated_audits.py"))


@pytest.fixture(scope="module")
def table() -> list:
    """Give the cases with their certified epsilons and audits."""
    return list(SCRIPT["audited"](20_000))


def test_audits_stay_below_the_guarantees(table: list) -> None:
    """With a joint confidence of 0.99: 0 < audit lower <= certified upper, for every algorithm."""
    for case, upper, evidence in table:
        assert evidence.confidence == pytest.approx(1 - 0.01 / len(table))
        assert 0 < evidence.epsilon <= upper, case.name


def test_every_algorithm_is_audited(table: list) -> None:
    """Each algorithm of the simulator is in the table, but for the shuffled sums, of which isrl/test_vector_sums enumerates all outcomes."""
    kinds = {
        kind
        for kind in vars(simulate).values()
        if isinstance(kind, type) and issubclass(kind, simulate.Algorithm) and kind is not simulate.Algorithm
    }
    assert kinds - {type(case.algorithm) for case, _, _ in table} == {simulate.ShuffledMinibatchSGD}


def test_half_the_noise_would_be_found(table: list) -> None:
    """A simulator that drew half of the noise that it accounts for would be caught: the comparison above can fail."""
    case, upper, _ = table[0]
    halved = case._replace(algorithm=dataclasses.replace(case.algorithm, noise_std=case.algorithm.noise_std / 2))
    runs = (SCRIPT["simulated"](halved, gradient, 20_000, seed) for seed, gradient in enumerate((1.0, -1.0)))
    models = [run.last_iterates[:, 0] for run in runs]
    assert audit.epsilon_lower_bound(*models, delta=SCRIPT["DELTA"], confidence=0.999) > upper


def test_document_has_the_table(table: list) -> None:
    """The document names the same algorithms with the same certified epsilons."""
    text = (ROOT / "docs" / "audit" / "audit.md").read_text(encoding="utf-8")
    after = text[text.index("| simulated algorithm |") :].splitlines()[2 : 2 + len(table)]
    for line, (case, upper, _) in zip(after, table, strict=True):
        name, shown, certified = (cell.strip() for cell in line.strip("|").split("|"))
        assert name == case.name
        assert upper <= float(certified) < upper + 1e-3
        assert float(shown) <= float(certified)
