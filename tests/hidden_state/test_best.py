"""The smallest of all bounds: no function named `best` is above another that covers its process, and delta falls in epsilon."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hockeystick import federated, last_iterate

TIE = 1 + 1e-9  # up to which `delta` is the smallest of `bounds`
# A curve is followed on a grid that ends where it is negligible, which is elsewhere for another epsilon.
GRIDS = 1 + 1e-3


def noise_units(
    gap: float, diameter: float, slope: float = 0.0, convexity: float = 0.2, *, rate: float = 1.0
) -> dict[str, Any]:
    """Return the arguments of a process, lengths in units of a step's noise, at a learning rate."""
    curvature = {"smoothness": slope / rate, "strong_convexity": min(slope, convexity) / rate}
    return {"learning_rate": rate, "noise_std": 1.0, "lipschitz": gap / 2, "diameter": diameter * rate} | curvature


NOISE_UNITS = st.builds(noise_units, st.floats(0.1, 3.0), st.floats(0.3, 9.0), st.sampled_from([0.0, 0.3, 1.2, 2.4]))
EPSILONS = st.one_of(st.just(0.0), st.floats(1e-12, 1e-2), st.floats(0.01, 0.2), st.floats(0.2, 6.0))


@given(eps=EPSILONS, process=NOISE_UNITS, rounds=st.integers(1, 12), later=st.integers(0, 11))
def test_one_use_has_one_list(eps: float, process: dict[str, Any], rounds: int, later: int) -> None:
    """A record used once: `best`, and `best_cyclic` with a period that lets it be used no second time, agree bound by bound."""
    later = min(later, rounds - 1)
    index = rounds - later
    one = last_iterate.best(eps, index=index, num_records=rounds, **process)
    for period in (later + 1, 10**6):
        assert last_iterate.best_cyclic(eps, index=index, period=period, rounds=rounds, **process) == one
    sharper = last_iterate.best(eps, index=index, num_records=rounds, ball_dimension=3, **process)
    quick = last_iterate.best(eps, index=index, num_records=rounds, quick=True, **process)
    assert sharper.delta <= one.delta * TIE
    assert one.delta <= quick.delta * TIE


def test_the_bound_that_was_left_out() -> None:
    """Two later rounds, gap 1 and diameter 3: "joint" is 7 % below all others, and `best` has it."""
    process = noise_units(1.0, 3.0, rate=0.5)
    best = last_iterate.best(1.0, index=1, num_records=3, **process)
    cyclic = last_iterate.best_cyclic(1.0, index=1, period=3, rounds=3, **process)
    assert best.delta == cyclic.delta < 0.0145
    assert (best.method, cyclic.method) == ("joint", "joint")
    assert last_iterate.best(1.0, index=1, num_records=3, quick=True, **process).delta > 0.0155


@given(eps=EPSILONS, process=NOISE_UNITS, rounds=st.integers(1, 10))
def test_use_in_every_round_has_one_bound(eps: float, process: dict[str, Any], rounds: int) -> None:
    """A record drawn with probability 1 is that of `best_cyclic` with period 1; fewer uses, or a stop at random, are no more."""
    always = last_iterate.best_cyclic(eps, index=1, period=1, rounds=rounds, **process)
    none, half, every = last_iterate.best_sampled(eps, sampling_rate=[0.0, 0.5, 1.0], rounds=rounds, **process).delta
    assert none == 0
    assert half <= always.delta * GRIDS
    assert every == pytest.approx(always.delta, rel=1e-9, abs=0.0)
    sampled = last_iterate.best_sampled(eps, sampling_rate=1.0, rounds=rounds, **process)
    for name in ("plain", "shifted"):
        assert sampled.bounds[name] == pytest.approx(always.bounds[name], rel=1e-9, abs=0.0), name
    stopped = last_iterate.best_random_stop(eps, num_records=rounds, **process).delta
    assert stopped <= last_iterate.best(eps, index=rounds, num_records=rounds, **process).delta * TIE


def test_divided_use_in_every_round() -> None:
    """The bound that divides the rounds, at a sampling rate of 1, is nearly that of use in every round."""
    process = noise_units(0.6, 2.0, 0.25, convexity=0.0, rate=0.5) | {"rounds": 20}
    eps = np.array([0.0, 0.1, 0.5, 1.0, 2.0])
    always = last_iterate.best_sampled(eps, sampling_rate=1.0, **process)
    every = last_iterate.best_cyclic(eps, index=1, period=1, **process)
    np.testing.assert_allclose(always.bounds["divided"], every.bounds["divided"], rtol=1e-3)


def users(process: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a trusted aggregator's arguments, three users a round, with the same lengths."""
    given = {name: process[name] for name in ("learning_rate", "lipschitz", "smoothness")}
    lengths = {"noise_std": 1.0, "radius": process["diameter"] / 2}
    loss = "convex" if process["smoothness"] <= 2 else "nonconvex"
    return given | lengths | {"loss": loss, "num_users": 12, "batch_size": 3} | more


@pytest.mark.parametrize("num_users", [3, 4])
def test_users_are_drawn_as_records_are(num_users: int) -> None:
    """The mean of three users' gradients has a third of the step and of the variance; all users may be drawn, too."""
    process = noise_units(1.0, 3.0, rate=0.5)
    found = federated.best_sampled(1.0, **users(process, num_users=num_users, rounds=3))
    mean = process | {"noise_std": 1.0 / math.sqrt(3.0), "lipschitz": 0.5 / 3.0}
    expected = last_iterate.best_sampled(1.0, sampling_rate=3 / num_users, rounds=3, **mean)
    assert found.delta == pytest.approx(expected.delta, rel=1e-9)


def once(**more: Any) -> Callable[[float, dict[str, Any], int], float]:
    """Return the bound for the record used first, by epsilon, process and number of records."""
    return lambda eps, p, n: last_iterate.best(eps, index=1, num_records=n, **more, **p).delta


SMOOTH = {"smoothness": 0.5}  # so that no step expands


def without(process: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a process whose steps do not expand, without an argument."""
    return {key: value for key, value in (process | SMOOTH).items() if key != name}


FAMILIES: dict[str, Callable[[float, dict[str, Any], int], float]] = {
    "best": once(),
    "best on a ball": once(ball_dimension=2),
    "best on an interval": once(one_dimensional=True),
    "best, cyclic": lambda eps, p, n: last_iterate.best_cyclic(eps, index=1, period=1 + n % 3, rounds=2 * n, **p).delta,
    "best, sampled": lambda eps, p, n: last_iterate.best_sampled(eps, sampling_rate=0.3, rounds=n, **p).delta,
    "best, random stop": lambda eps, p, n: last_iterate.best_random_stop(eps, num_records=n, **p).delta,
    "federated": lambda eps, p, n: federated.best(eps, **users(p, num_users=3 * n)).delta,
    "federated, sampled": lambda eps, p, n: federated.best_sampled(eps, **users(p, rounds=n)).delta,
    "Theorem 3": lambda eps, p, n: last_iterate.pnsgd_laplace(
        eps, index=1, num_records=n, noise_scale=1.0, **without(p, "noise_std")
    ),
    "Proposition 1": lambda eps, p, n: last_iterate.pnsgd_rdp(eps, index=1, num_records=n, **without(p, "diameter")),
    "Theorem 4": lambda eps, p, n: last_iterate.pnsgd_gaussian(eps, index=1, num_records=n, **p | SMOOTH),
    "Theorem 5": lambda eps, p, n: last_iterate.pnsgd_gaussian_random_stop(eps, num_records=n, **p | SMOOTH),
}


@pytest.mark.share(5)
@pytest.mark.parametrize("family", FAMILIES)
@given(some=EPSILONS, other=EPSILONS, process=NOISE_UNITS, rounds=st.integers(1, 12))
def test_delta_falls_in_epsilon(family: str, some: float, other: float, process: dict[str, Any], rounds: int) -> None:
    """A larger epsilon has no larger delta, but for what grids of losses differ by; at 0 and next to it, too."""
    small, large = sorted((some, other))
    weak, strong = (float(FAMILIES[family](eps, process, rounds)) for eps in (small, large))
    assert strong <= weak * GRIDS


@pytest.mark.parametrize("rate", [None, 0.5, 1.0])
def test_an_epsilon_below_the_first_loss_keeps_the_grid(rate: float | None) -> None:
    """Twenty rounds in a wide domain: around an epsilon of one step of the grid delta falls, and at a tiny one it is that of 0."""
    process = noise_units(0.5, 5.0) | {"rounds": 20}
    epsilons = [0.0, 1e-9, 1e-3, 0.0135, 0.018233480008684414, 0.0246, 0.1]
    if rate is None:
        deltas = [last_iterate.best_cyclic(eps, index=1, period=1, **process).delta for eps in epsilons]
    else:
        deltas = [last_iterate.best_sampled(eps, sampling_rate=rate, **process).delta for eps in epsilons]
    assert all(larger <= smaller * GRIDS for smaller, larger in itertools.pairwise(deltas))
    for eps, between in zip(epsilons, deltas, strict=True):  # convex in e^eps
        share = math.expm1(eps) / math.expm1(epsilons[-1])
        assert between <= ((1.0 - share) * deltas[0] + share * deltas[-1]) * GRIDS
    assert deltas[1] == pytest.approx(deltas[0], rel=1e-8)
