"""Audits: what is outside its domain is refused with its name and a reason."""

import math

import pytest

import refused_calls
from hockeystick import audit

NAMES = {
    **vars(audit),
    "math": math,
    "RUNS": {"scores_in": [1.0, 2.0], "scores_out": [0.0, 1.0], "delta": 1e-5, "confidence": 0.95},
    "PAIR": {"direction": [1.0, 0.0], "clip_norm": 1.0, "loss": "logistic", "reach": 0.1},
    "RUN": {"scores": [1.0, 0.0], "included": [True, False], "num_guesses": 2, "delta": 1e-5, "confidence": 0.95},
}
REFUSED = r"""
evaluate(**RUNS | {"scores_in": []}) -> scores_in must be a sequence of at least 2 scores
evaluate(**RUNS | {"scores_in": [], "threshold": 0.0}) -> scores_in .* at least 1
evaluate(**RUNS | {"scores_out": [[1.0, 2.0]]}) -> scores_out .* not of shape \(1, 2\)
evaluate(**RUNS | {"scores_out": [0.0, math.nan]}) -> scores_out\[1\] must be a number, not nan
evaluate(**RUNS | {"scores_in": [True, False]}) -> TypeError: scores_in must be a real number
evaluate(**RUNS | {"delta": 1.0}) -> delta must lie in \[0, 1\)
evaluate(**RUNS | {"delta": 0.0, "method": "gdp"}) -> delta must be positive for method='gdp'
evaluate(**RUNS | {"method": "dkw"}) -> method must be one of 'clopper_pearson', 'simultaneous', 'bayesian', 'gdp'
evaluate(**RUNS | {"method": "simultaneous", "threshold": 0.5}) -> threshold must be left out
evaluate(**RUNS | {"threshold": math.nan}) -> threshold must be a number, not nan
individual_confidence(1 - 1e-16, 10) -> num_audits must be smaller
canary_pair(**PAIR | {"direction": [0.0, 0.0]}) -> direction must be a finite vector of positive length
canary_pair(**PAIR | {"direction": 1.0}) -> direction
canary_pair(**PAIR | {"loss": "hinge"}) -> loss must be one of 'linear', 'logistic'
canary_pair(**PAIR | {"reach": None}) -> TypeError: reach must be given for loss='logistic'
canary_pair(**PAIR | {"loss": "linear"}) -> TypeError: reach must be given for loss='logistic' and only there
canary_pair(**PAIR | {"reach": 0.279}) -> clip_norm \* reach must be at most 0.27846
canary_direction([[]]) -> features must be finite and of shape
canary_direction([[1.0, math.nan]]) -> features must be finite and of shape
one_run(**RUN | {"scores": [], "included": []}) -> scores must be a sequence of at least 1
one_run(**RUN | {"included": [1, 0]}) -> TypeError: included must be an array of booleans
one_run(**RUN | {"included": [True]}) -> included must have the shape of scores, \(2,\), not \(1,\)
one_run(**RUN | {"num_guesses": 3}) -> num_guesses must be at most the number of canaries, 2, not 3
one_run(**RUN | {"num_guesses": True}) -> TypeError: num_guesses must be an integer
one_run(**RUN | {"delta": 1.0}) -> delta must lie in \[0, 1\)
one_run(**RUN | {"delta": 0.0, "method": "gdp"}) -> delta must be positive for method='gdp'
one_run(**RUN | {"method": "bayesian"}) -> method must be one of 'f_dp', 'binomial', 'gdp'
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused(call: str, reason: str) -> None:
    """What is outside its domain is named with its value, and wrong types are told from wrong values."""
    refused_calls.check(call, reason, NAMES)
