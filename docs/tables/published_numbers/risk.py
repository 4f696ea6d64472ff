"""Published numbers of the chances of attacks."""

from __future__ import annotations

import hockeystick as hs
from hockeystick import risk
from published_numbers.value import Ends, Value

RISKCAL = "Kulynych et al. 2024 (2407.02191); computed by riskcal 1.5.1, "


def training(noise: float) -> hs.Accountant:
    """Return 1000 steps of DP-SGD at rate .01."""
    return hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), 0.01), 1000)


def advantage() -> Ends:
    """Return the largest advantage of a membership attack."""
    return training(1.0).delta_bracket(0.0)[:2]


def true_positives() -> Ends:
    """Return a bound of the true-positive rate at a false-positive rate of .01."""
    return 0.0, float(risk.true_positive_rate(training(1.0), 0.01))


def noise() -> Ends:
    """Return the noise for an advantage of .1."""
    return 0.0, float(hs.calibrate(training, advantage=0.1, bracket=(0.5, 5.0)))


VALUES = [
    Value(
        "DP-SGD, noise 1, rate .01, 1000 steps: largest advantage of a membership attack",
        RISKCAL + "get_advantage_for_dpsgd",
        "0.16101842080506576",
        "upper bound",
        advantage,
        "a grid of losses of width .0001",
    ),
    Value(
        "the same: share of members found, one in a hundred accused wrongly",
        RISKCAL + "get_beta_for_dpsgd",
        "0.0290997",
        "upper bound",
        true_positives,
        "theirs is too small: the losses that it uses, dp_accounting's, give .029139 if a record is removed",
    ),
    Value(
        "rate .01, 1000 steps: least noise for an advantage of at most .1",
        RISKCAL + "find_noise_multiplier_for_advantage_dpsgd",
        "1.4225753784179687",
        "upper bound",
        noise,
        "theirs stops within .001 of the advantage",
    ),
]
