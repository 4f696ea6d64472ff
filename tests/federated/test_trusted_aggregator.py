"""The trusted aggregator: Theorem 2 and Corollary 3 by naive sums, schedules, step sizes, batches of different sizes."""

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
import theorems
from federations import AGGREGATOR, linear_losses_delta
from hockeystick import _core, federated
from theorems import log_close

CHANGES = [
    {},
    {"batch_size": 30},  # T = 3, ten users never take part
    {"batch_size": 100},
    {"noise_std": 0.2},
    {"noise_std": 40.0},
    {"radius": 30.0},
    {"radius": 1e-3},
    {"batch_size": 1, "num_users": 37},
    {"num_users": 1, "batch_size": 1},
]


@pytest.mark.parametrize("eps", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("suffix", [None, 1e-6, 0.1, 0.11, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("loss", ["convex", "nonconvex"])
def test_against_the_sums(eps: float, suffix: float | None, loss: str) -> None:
    """Theorem 2 term by term, and Corollary 3's double sum over all rounds or the last ceil(suffix T)."""
    name, stop = (
        ("trusted_aggregator", {}) if suffix is None else ("trusted_aggregator_random_stop", {"suffix": suffix})
    )
    for change in CHANGES:
        arguments = AGGREGATOR | {"loss": loss} | stop | change
        reference = getattr(theorems, name)(eps, **arguments)
        assert log_close(getattr(federated, name)(eps, **arguments), reference), change


PER_ROUND = ("learning_rate", "noise_std", "lipschitz", "radius")


@pytest.mark.share(3)
@pytest.mark.parametrize("eps", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("loss", ["convex", "nonconvex"])
def test_trusted_aggregator_schedules(eps: float, loss: str) -> None:
    """One value a round in any of the four arguments; equal values give the constants' result."""
    rng = np.random.default_rng(0)
    for names in (PER_ROUND[:1], PER_ROUND[1:2], PER_ROUND[2:], PER_ROUND):
        arguments = AGGREGATOR | {"loss": loss} | {name: AGGREGATOR[name] * rng.uniform(0.3, 2, 10) for name in names}
        reference = theorems.trusted_aggregator(eps, **arguments)
        assert log_close(federated.trusted_aggregator(eps, **arguments), reference), names
        for suffix in (0.3, 1.0):
            reference = theorems.trusted_aggregator_random_stop(eps, **arguments, suffix=suffix)
            found = federated.trusted_aggregator_random_stop(eps, **arguments, suffix=suffix)
            assert log_close(found, reference), names
    equal = AGGREGATOR | {name: np.full(10, AGGREGATOR[name]) for name in PER_ROUND}
    for function in (federated.trusted_aggregator, federated.trusted_aggregator_random_stop):
        np.testing.assert_allclose(function(eps, **equal), function(eps, **AGGREGATOR), rtol=1e-13)


@pytest.mark.parametrize("lipschitz", [0.5, 2.0, 10.0])
def test_a_shrinking_ball_hides_no_more_than_a_chain_shows(lipschitz: float) -> None:
    """With radii 10 and 0.1, the sign of the last model of an exact two-round chain gains no more than delta."""
    z, weight = np.polynomial.hermite_e.hermegauss(200)
    weight = weight / weight.sum()
    clipped = np.clip(z[:, None] + lipschitz * np.array([1.0, 0.0]), -10, 10)  # the user's round: the first, the second
    rises = 1 - hs.q(clipped + lipschitz * np.array([0.0, 1.0]))  # the model after the second round is positive
    positive = (weight @ rises).mean()
    attack = positive - math.e * (1 - positive)  # the other data set flips the sign
    arguments = {"num_users": 2, "batch_size": 1, "learning_rate": 1.0, "noise_std": 1.0, "lipschitz": lipschitz}
    delta = federated.trusted_aggregator(1.0, **arguments, radius=[10.0, 0.1], loss="convex", smoothness=0.0)
    assert attack <= delta
    assert lipschitz == 0.5 or attack > 0.7
    # the radius of the last round alone does not matter
    assert delta == federated.trusted_aggregator(1.0, **arguments, radius=10.0, loss="convex") or lipschitz < 10


def test_schedule_shapes() -> None:
    """The last axis of the four arguments is the round; leading axes broadcast with the other arguments."""
    rates = np.linspace(0.1, 0.5, 6)
    grid = AGGREGATOR | {"learning_rate": rates[:, None]}  # (6, 1): constants
    table = federated.trusted_aggregator(np.array([[0.1], [1.0]]), **grid)
    assert table.shape == (2, 6)
    for j, rate in enumerate(rates):
        assert table[1, j] == federated.trusted_aggregator(1.0, **(AGGREGATOR | {"learning_rate": rate}))
    for wrong in (np.full(7, 0.5), np.full((2, 9), 0.5)):
        with pytest.raises(ValueError, match="learning_rate"):
            federated.trusted_aggregator(1.0, **(AGGREGATOR | {"learning_rate": wrong}))


@pytest.mark.parametrize("function", [federated.trusted_aggregator, federated.trusted_aggregator_random_stop])
def test_step_size_is_checked_where_it_can_be(function: Callable[..., np.ndarray]) -> None:
    """A convex loss with known smoothness needs learning_rate <= 2/smoothness, in every round and cell; a non-convex one needs nothing."""
    function(1.0, **AGGREGATOR, smoothness=4.0)
    function(1.0, **(AGGREGATOR | {"loss": "nonconvex"}), smoothness=4.1)
    with pytest.raises(ValueError, match=r"learning_rate.*0\.5.*smoothness.*4\.1"):
        function(1.0, **AGGREGATOR, smoothness=4.1)
    with pytest.raises(ValueError, match="learning_rate"):
        function(1.0, **(AGGREGATOR | {"learning_rate": np.r_[np.full(9, 0.1), 0.6]}), smoothness=4.0)
    grid = AGGREGATOR | {"learning_rate": np.array([[0.5], [0.6], [0.4]])}
    assert np.isnan(function(1.0, **grid, smoothness=4.0, on_error="nan")).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("function", "rows"),
    [(_core.trusted_aggregator, 5), (_core.trusted_aggregator_random_stop, 5), (_core.trusted_aggregator_bounds, 6)],
)
def test_core_refuses_arrays_that_end_before_the_rounds(function: Callable[..., np.ndarray], rows: int) -> None:
    """The compiled functions need a value for each of the ten rounds, or a constant."""
    cells = [np.array([value]) for value in (1.0, 100.0, 10.0, 1.0)]
    for length in (1, 10):
        assert 0 <= function(cells, [np.full((1, length), 0.5)] * rows, True, 1).flat[0] <= 1
    with pytest.raises(ValueError, match="must hold all rounds"):
        function(cells, [np.full((1, 9), 0.5)] * rows, True, 1)
    with pytest.raises(ValueError, match=f"must hold {rows} arrays, not {rows - 1}"):
        function(cells, [np.full((1, 10), 0.5)] * (rows - 1), True, 1)


CELL = {name: AGGREGATOR[name] for name in PER_ROUND}


@pytest.mark.parametrize("loss", ["convex", "nonconvex"])
def test_equal_batches_are_theorem_2(loss: str) -> None:
    """Ten batches of ten users have the delta of the trusted aggregator, also with schedules."""
    steps = np.linspace(0.2, 0.9, 10)
    for changes in ({}, {"learning_rate": steps}, {"noise_std": 1 + steps, "lipschitz": 2 * steps}):
        arguments = CELL | changes | {"loss": loss}
        expected = federated.trusted_aggregator([0.0, 1.0], num_users=100, batch_size=10, **arguments)
        computed = federated.trusted_aggregator_batches([0.0, 1.0], batch_sizes=[10] * 10, **arguments)
        np.testing.assert_allclose(computed, expected, rtol=1e-11)


@pytest.mark.parametrize("eps", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("sizes", [[30, 30, 30, 10], [1], [5, 1, 17]])
def test_term_by_term(eps: float, sizes: list[int]) -> None:
    """The sum over batches to 50 digits."""
    with mp.workdps(50):
        total = mp.mpf(0)
        for t, size in enumerate(sizes):
            term = theorems.theta(mp.mpf(eps), 2 / (mp.sqrt(size) * 1.5)) * size / sum(sizes)
            for later in sizes[t + 1 :]:
                term *= theorems.theta(mp.mpf(eps), 2 * mp.sqrt(later) / (mp.mpf(0.5) * 1.5))
            total += term
        computed = federated.trusted_aggregator_batches(eps, batch_sizes=sizes, loss="convex", **CELL)
        assert theorems.log_close(computed, total)


@pytest.mark.share(3)
@pytest.mark.parametrize("last", [1, 5, 50])
@pytest.mark.parametrize("eps", [0.0, 0.5, 2.0, 4.0])
def test_exact_mixtures_stay_below(last: int, eps: float) -> None:
    """Linear losses in a wide ball: two mixtures of normal laws, whose delta by quadrature is never above the bound."""
    for slope in (0.5, 2.0, 4.0):
        bound = federated.trusted_aggregator_batches(
            eps, batch_sizes=[50, last], learning_rate=1.0, noise_std=1.0, lipschitz=slope, radius=1e3, loss="convex"
        )
        assert linear_losses_delta(eps, (50, last), slope) <= bound * (1 + 1e-9)
