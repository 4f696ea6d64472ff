"""The choice of an engine: the contour is asked first, and a forced engine says that it has no answer."""

from __future__ import annotations

import pytest

from compositions import SAMPLED, composed
from hockeystick.accounting import engines


def test_forced_contour_without_answer(monkeypatch):
    """An engine that has no answer raises at the query; left to choose, another one answers."""
    monkeypatch.setattr(engines, "_contour", lambda *_: None)
    forced = composed((SAMPLED, 2), engine="contour")
    with pytest.raises(ValueError, match="engine='contour' has no answer"):
        forced.epsilon(1e-5)
    assert composed((SAMPLED, 2)).epsilon_bracket(1e-5).method.startswith("pld")


def test_contour_is_asked_first(monkeypatch):
    """A narrow contour bracket is the answer; a wide one is intersected with that of discretised losses."""
    pld = composed((SAMPLED, 2), engine="pld").delta_bracket(0.5)
    narrow = engines.Answer(pld.lower, pld.lower * 1.0001, "contour", {"alias": 1e-5})
    monkeypatch.setattr(engines, "_contour", lambda *_: narrow)
    accountant = composed((SAMPLED, 2))
    assert accountant.delta_bracket(0.5) == (*narrow[:2], "contour", "certified")
    assert accountant.explain(eps=0.5).shares == {"alias": 1e-5}
    with monkeypatch.context() as without:  # a narrow answer is not asked for again
        without.setattr(engines, "_pld", None)
        without.setattr(engines, "_rough_pld", None)
        assert accountant.delta(0.5) == narrow.upper
    monkeypatch.setattr(engines, "_contour", lambda *_: narrow._replace(upper=0.5))
    assert accountant.delta_bracket(0.5).upper == pld.upper
