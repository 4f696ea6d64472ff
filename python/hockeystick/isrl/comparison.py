"""Upper and lower rates side by side: Figure 3 of Lowy and Razaviyayn 2023 as a function."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

from hockeystick._checks import count_scalar, positive_scalar, scalar
from hockeystick.isrl.batches import one_pass_batch_size, sdp_batch_size
from hockeystick.isrl.one_pass_rates import one_pass_rate, sdp_one_pass_rate
from hockeystick.isrl.rates import Rate, erm_rate, excess_risk_rate_iid
from hockeystick.isrl.rates_lower_bound import risk_lower_bound
from hockeystick.isrl.rates_shuffle import shuffle_rate
from hockeystick.isrl.rounds import erm_rounds, mb_sgd_rounds
from hockeystick.isrl.shuffled_rounds import shuffle_rounds

__all__ = ["ComparedRates", "compare_rates"]

Arguments: TypeAlias = "dict[str, Any]"


class ComparedRates(NamedTuple):
    """What an algorithm reaches, and what no algorithm of its kind can go below: order only.

    Attributes
    ----------
    setting : str
        Problem and notion of privacy.
    algorithm : str
        Which algorithm reaches the upper rate.
    upper, lower : Rate
        With the constant 1 where none is stated, so that upper may be below lower.
    rounds : float
        Rounds of communication of the algorithm.
    """

    setting: str
    algorithm: str
    upper: Rate
    lower: Rate
    rounds: float


def compare_rates(
    *,
    lipschitz: float,
    diameter: float,
    smoothness: float,
    gradient_std: float,
    heterogeneity: float,
    num_silos: int,
    num_records: int,
    dimension: int,
    epsilon: float,
    delta: float,
) -> list[ComparedRates]:
    r"""Return upper and lower rates and rounds of the paper's five settings, for convex losses and all silos in every round.

    Parameters
    ----------
    lipschitz, diameter, smoothness : float
        L, D, beta; positive.
    gradient_std, heterogeneity : float
        phi and upsilon, >= 0.
    num_silos, num_records, dimension : int
        N, n, d.
    epsilon, delta : float
        Budget, the same for every notion of privacy; epsilon at most sqrt(N).

    Returns
    -------
    list of ComparedRates
        Population risk with silos alike, with silos that differ, empirical risk, and the first two with a shuffler.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Figure 3 of Lowy and Razaviyayn 2023. The single pass over silos that differ is C-compositional with :math:`C^2 = R = (\epsilon n\sqrt N/\sqrt d)^{2/5}`, which
    weakens its lower bound; that holds for epsilon of order 1/n or few silos only. Empirical risk is with full batches.

    Examples
    --------
    >>> from hockeystick import isrl
    >>> table = isrl.compare_rates(
    ...     lipschitz=1.0,
    ...     diameter=1.0,
    ...     smoothness=1.0,
    ...     gradient_std=1.0,
    ...     heterogeneity=1.0,
    ...     num_silos=100,
    ...     num_records=1000,
    ...     dimension=10,
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ... )
    >>> for row in table:
    ...     print(f"{row.setting:28} {row.upper.value:.6f} {row.lower.value:.6f} {row.rounds:8.0f}")
    alike, inter-silo            0.004235 0.003479   100316
    differ, inter-silo           0.007374 0.003175       15
    empirical, inter-silo        0.001073 0.000316       31
    alike, shuffled              0.003270 0.003194 100000000
    differ, shuffled             0.005215 0.003194       22
    """
    silos, records = count_scalar("num_silos", num_silos), count_scalar("num_records", num_records)
    size = {
        "lipschitz": positive_scalar("lipschitz", lipschitz),
        "diameter": positive_scalar("diameter", diameter),
        "num_records": records,
        "dimension": count_scalar("dimension", dimension),
        "epsilon": positive_scalar("epsilon", epsilon),
    }
    delta = scalar("delta", delta, lambda x: 0 < x < 1, "lie in (0, 1)")
    least = size | {"num_silos": silos, "gradient_std": gradient_std}
    takes = size | {"silos_per_round": silos, "smoothness": smoothness}
    differ = {"gradient_std": gradient_std, "heterogeneity": heterogeneity}
    rows = [*_inter_silo(takes, least, differ, delta), *_shuffled(takes, least, differ, delta)]
    return [ComparedRates(about, name, upper, lower, float(rounds)) for about, name, upper, lower, rounds in rows]


def _without(arguments: Arguments, *names: str) -> Arguments:
    return {name: value for name, value in arguments.items() if name not in names}


def _inter_silo(takes: Arguments, least: Arguments, differ: Arguments, delta: float) -> list[tuple[Any, ...]]:
    """Return the rows without a shuffler; C is the fifth root of epsilon n sqrt(N/d) in a single pass."""
    budget = takes | {"delta": delta}
    plain, everyone = _without(budget, "smoothness"), {"num_silos": least["num_silos"]}
    composed = (takes["epsilon"] * takes["num_records"] * math.sqrt(everyone["num_silos"] / takes["dimension"])) ** 0.2
    return [
        (
            "alike, inter-silo",
            "MB-SGD",
            excess_risk_rate_iid(**plain),
            risk_lower_bound(**least),
            mb_sgd_rounds(**takes),
        ),
        (
            "differ, inter-silo",
            "one-pass accelerated MB-SGD",
            one_pass_rate(**budget, **everyone, **differ),
            risk_lower_bound(**least, compositionality=composed),
            takes["num_records"] // one_pass_batch_size(**budget),
        ),
        (
            "empirical, inter-silo",
            "accelerated MB-SGD",
            erm_rate(**plain),
            risk_lower_bound(**least, problem="empirical"),
            erm_rounds(**budget, **everyone, batch_size=takes["num_records"]),
        ),
    ]


def _shuffled(takes: Arguments, least: Arguments, differ: Arguments, delta: float) -> list[tuple[Any, ...]]:
    """Return the rows with a shuffler, whose lower rates are those of a trusted server."""
    budget = takes | {"delta": delta}
    plain, everyone = _without(budget, "smoothness"), {"num_silos": least["num_silos"]}
    central = risk_lower_bound(**least, notion="central")
    return [
        (
            "alike, shuffled",
            "shuffled MB-SGD",
            shuffle_rate(**plain, **everyone),
            central,
            shuffle_rounds(**takes, **everyone),
        ),
        (
            "differ, shuffled",
            "one-pass accelerated MB-SGD with binomial noise",
            sdp_one_pass_rate(**budget, **everyone, **differ),
            central,
            takes["num_records"] // sdp_batch_size(**budget),
        ),
    ]
