"""The last averaged model of random clients: exact chains of one-dimensional linear losses lie below the bound."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

pytest.importorskip("numba")

import hockeystick as hs
from hockeystick import simulate
from hockeystick.federated.released_models import FixedMean, SampledRounds


def last_law(moves, rate, radius, rounds, start, expansion):  # noqa: PLR0917
    """Return the law of a chain on [-radius, radius], by transitions between 401 points: projected noise of deviation 1."""
    points = np.linspace(-radius, radius, 401)
    edges = np.concatenate([[-np.inf], 0.5 * (points[1:] + points[:-1]), [np.inf]])
    law = np.zeros(points.size)
    law[np.searchsorted(points, start)] = 1.0
    unused, used = moves
    kernel = sum(
        chance * np.diff(ndtr(edges - (expansion * points + move)[:, np.newaxis]), axis=1)
        for move, chance in ((unused, 1 - rate), (used, rate))
    )
    for _ in range(rounds):
        law = law @ kernel
    return law


@pytest.mark.parametrize("expansion", [1.0, 1.1])
@pytest.mark.parametrize(
    ("shift", "rate", "radius", "rounds"), [(1.0, 0.3, 1.0, 12), (2.0, 0.5, 0.5, 20), (0.5, 0.2, 2.0, 30)]
)
def test_no_chain_leaks_more(shift, rate, radius, rounds, expansion):
    """All starts and moves of either data set, and of rounds that do not use the record, within a shift of each other."""
    alike = SampledRounds(shift, rate, expansion, 2 * radius)
    splits = [(last, share) for last in (1, 3, rounds - 1) for share in (0.2, 0.5, 0.9)]
    bounds = dict.fromkeys((0.1, 0.5, 1.5), math.inf)
    for last, share in splits:
        spent = hs.Accountant("replace").compose(FixedMean(shift / math.sqrt(share), rate), last)
        spent = spent.compose(hs.Gaussian(2 * math.sqrt(1 - share) / alike.closing(last)))
        bounds = {eps: min(bound, spent.delta(eps)) for eps, bound in bounds.items()}
    half = shift / 2
    for start, unused in itertools.product((0.0, radius), (-half, 0.0, half)):
        p, q = (last_law((unused, used), rate, radius, rounds, start, expansion) for used in (half, -half))
        for eps, bound in bounds.items():
            attained = max(np.maximum(a - math.exp(eps) * b, 0.0).sum() for a, b in ((p, q), (q, p)))
            assert attained <= bound * (1 + 1e-6) + 1e-13


def test_closing_is_the_least_sum_of_squares():
    """Shifts that close a gap which grows by a factor in every round, against the normal equations solved by NumPy."""
    for c, rounds in itertools.product((1.0, 1.05, 2.0), (1, 2, 7)):
        weights = c ** np.arange(rounds - 1, -1, -1.0)  # of each shift in the last gap
        least = np.linalg.lstsq(weights[np.newaxis, :], np.array([3.0 * c**rounds]), rcond=None)[0]
        assert SampledRounds(1.0, 0.1, c, 3.0).closing(rounds) == pytest.approx(float(np.linalg.norm(least)), rel=1e-12)
    assert SampledRounds(1.0, 0.1, 1e200, 3.0).closing(2) == math.inf


def test_many_rounds_cost_no_more_than_some():
    """With a ball, epsilon of the last model stops growing; without one, or after few rounds, every model may be released."""
    problem = simulate.Problem("linear", np.zeros((100, 2)), None, [1] * 100)
    settings = {"learning_rate": 0.1, "local_steps": 5, "clip_norm": 1.0, "noise_std": 1.0}
    within = simulate.NoisyFedAvg(**settings, clients=simulate.FixedSize(5), radius=1.0)
    anywhere = simulate.NoisyFedAvg(**settings, clients=simulate.FixedSize(5))
    assert within.guarantee(problem, rounds=200).released == "the averaged model of every round"
    hidden, shown = (algorithm.guarantee(problem, rounds=4000) for algorithm in (within, anywhere))
    assert hidden.released == "the last model only"
    assert hidden.epsilon(4000, 1e-5) == pytest.approx(hidden.epsilon(2000, 1e-5), rel=1e-2)
    assert hidden.epsilon(4000, 1e-5) < 0.5 * shown.epsilon(4000, 1e-5)
    assert hidden.epsilon(100, 1e-5) == shown.epsilon(100, 1e-5)


@pytest.mark.parametrize(
    ("algorithm", "loss", "noise_std"),
    [
        (simulate.NoisyFedProx, "linear", 1.0),  # learning_rate times prox is 1: the pull forgets where a step began
        (simulate.NoisyFedAvg, "least_squares", 1.0),  # the map's Lipschitz constant is beyond the doubles
        (simulate.NoisyFedAvg, "linear", 1e-200),  # the shift's square is
    ],
)
def test_extreme_settings_have_an_answer(algorithm, loss, noise_std):
    """Settings at the ends of their domains are answered by the guarantee of every model, not by an overflow."""
    more = {"learning_rate": 0.5, "prox": 2.0} if algorithm is simulate.NoisyFedProx else {"learning_rate": 0.1}
    labels = np.zeros(10) if loss == "least_squares" else None
    problem = simulate.Problem(loss, np.zeros((10, 2)), labels, sizes=[1] * 10, feature_bound=10.0)
    made = algorithm(
        **more, local_steps=300, clip_norm=1.0, noise_std=noise_std, clients=simulate.FixedSize(2), radius=1.0
    )
    epsilon = made.guarantee(problem, rounds=9).epsilon(9, 1e-5)
    assert epsilon > 0
    assert not math.isnan(epsilon)
