"""The comparison with other accountants: digits, memory and the table, on the questions that take no time."""

import functools
import math
import os

import accountants
import numpy as np
import peers
import pytest
from peers import QUESTIONS, exact_delta

pytest.importorskip("mpmath")

QUICK = [accountants.HockeyStick, accountants.SciPy]


def test_digits():
    """A relative error of 1e-3 is three digits; nobody has more digits than the reference."""
    question = QUESTIONS["A"]
    assert question.digits(question.exact * 1.001) == pytest.approx(3.0, abs=1e-9)
    assert question.digits(question.exact) == pytest.approx(-math.log10(question.known))
    assert QUESTIONS["W3"].digits(1.0) is None


def test_exact_delta():
    """The reference equals the closed form at eps = 0, the total variation 2 Phi(mu/2) - 1, and a value of 50 digits."""
    assert float(exact_delta(0.0, 2.0)) == pytest.approx(math.erf(1 / math.sqrt(2)), rel=1e-15)
    assert float(exact_delta(1.0, 1.0)) == pytest.approx(0.1269367375066439458, rel=1e-15)


def test_table(monkeypatch):
    """Ours and SciPy's answers to some pairs and in depth give rows with a ratio, digits and memory."""
    small = accountants.pairs.__wrapped__  # not cached: the real million stay what they are
    monkeypatch.setattr(accountants, "PAIRS", 1000)
    monkeypatch.setattr(accountants, "pairs", functools.cache(small))
    rows = [peers.ask(key, QUICK, 1) | {"instruction_set": "any"} for key in ("W1", "A")]
    text = peers.markdown([*rows, *peers.depths(QUICK)])
    assert text.count("| W1: a million deltas of one Gaussian | any |") == 2
    assert text.count("| A: eps(1e-5)") == 1  # SciPy has no such call
    assert "| delta(12) = 5.2e-32 |" in text
    digits = {name: answer["digits"] for row in rows for name, answer in row["times"].items()}
    assert min(digits.values()) > 5


def test_wrong_answers_are_refused():
    """Nobody is timed on a wrong answer."""
    with pytest.raises(ValueError, match=r"A: eps\(1e-5\).* hockeystick answers 1.9, not 1.8282367"):
        peers.check(QUESTIONS["A"], {"hockeystick": {"value": 1.9}})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_memory_is_what_a_call_adds():
    """A call that fills 64 MB adds as much, and one that does nothing adds little."""
    assert 60 < peers.added_memory(lambda _: np.ones(8 * 2**20).sum()) < 80
    assert peers.added_memory(lambda _: None) < 8
