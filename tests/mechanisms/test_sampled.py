"""Samples of the records: every small algorithm by enumeration, attained pairs, groups, and formulas by their authors."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr

import high_precision as exact
import hockeystick as hs
from hockeystick import _core
from hockeystick._numeric.binomial import group_in_batch

GAUSSIAN = hs.Gaussian(2.0)


def noisy_sums(cells, batches, edges, cdf):
    """Return the law on cells of a noisy sum over a random batch: merging outcomes only lowers delta."""
    law = np.zeros(cells)
    for probability, batch in batches:
        law += probability * np.diff(cdf(edges - sum(batch)))
    return law


def poisson(values, rate):
    """Yield all Poisson samples."""
    for size in range(len(values) + 1):
        for batch in itertools.combinations(values, size):
            yield rate**size * (1 - rate) ** (len(values) - size), batch


def fixed(values, size, *, replacement):
    """Yield all batches of a size."""
    batches = list(itertools.product(values, repeat=size) if replacement else itertools.combinations(values, size))
    for batch in batches:
        yield 1 / len(batches), batch


def laplace_cdf(x):
    """Return P(Laplace <= x)."""
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def discrete_cdf(parameter):
    """Return P(discrete Laplace noise <= x)."""

    def cdf(x):
        whole = np.floor(x + 1e-9)
        below = np.exp(parameter * np.minimum(whole, 0)) / (1 + math.exp(-parameter))
        return np.where(
            whole < 0, below, 1 - np.exp(-parameter * (np.maximum(whole, 0) + 1)) / (1 + math.exp(-parameter))
        )

    return cdf


def attained(p, q, eps):
    """Return the divergence of two laws."""
    return float(np.maximum(p - math.exp(eps) * q, 0.0).sum())


def upper_ends(mechanism, adjacency, eps):
    """Return the upper ends of both directions."""
    pair, _ = mechanism._pairs(adjacency)[0]
    return [pair.one_step(forward, False, eps)[1] for forward in (True, False)]


NOISES = {
    "gaussian": (hs.Gaussian, lambda scale: lambda x: ndtr(x / scale)),
    "laplace": (hs.Laplace, lambda scale: lambda x: laplace_cdf(x / scale)),
}
SIGNS = st.sampled_from([-1.0, -0.4, 0.0, 1.0])


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("replacement", [False, True])
@settings(max_examples=40, deadline=None)
@given(
    scale=st.floats(0.5, 3.0),
    size=st.integers(1, 3),
    others=st.lists(SIGNS, min_size=3, max_size=3),
    changed=st.tuples(SIGNS, SIGNS),
    eps=st.floats(0.0, 3.0),
)
def test_no_batch_of_fixed_size_leaks_more(noise, replacement, scale, size, others, changed, eps):  # noqa: PLR0917
    """Whatever four records' contributions in [-1, 1], both adjacencies' directions stay below their bounds."""
    make, cdf = NOISES[noise]
    step = hs.FixedSizeSampled(make(scale), 4, size, replacement)
    edges = np.linspace(-3 - 20 * scale, 3 + 20 * scale, 1_501)
    mine, instead, without = (
        noisy_sums(1_500, fixed(values, size, replacement=replacement), edges, cdf(scale))
        for values in ([*others, changed[0]], [*others, changed[1]], others)
    )
    remove, add = upper_ends(step, "add_or_remove", eps)
    assert attained(mine, without, eps) <= remove + 1e-12
    assert attained(without, mine, eps) <= add + 1e-12
    assert attained(mine, instead, eps) <= upper_ends(step, "replace", eps)[0] + 1e-12


@pytest.mark.share(3)
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
@pytest.mark.parametrize("eps", [0.05, 0.5, 2.0])
def test_lower_ends_are_attained(replacement, adjacency, eps):
    """A data set of opposite records leaks what the lower end says, and more than nothing."""
    step = hs.FixedSizeSampled(hs.Gaussian(1.5), 4, 3, replacement)
    edges = np.linspace(-40, 40, 160_001)
    with_mine, without = (
        noisy_sums(160_000, fixed(values, 3, replacement=replacement), edges, lambda x: ndtr(x / 1.5))
        for values in ([-1.0, -1.0, -1.0, 1.0], [-1.0] * (4 if adjacency == "replace" else 3))
    )
    truth = max(attained(with_mine, without, eps), attained(without, with_mine, eps))
    found = hs.Accountant(adjacency).compose(step).delta_bracket(eps)
    assert 0 < found.lower <= truth * (1 + 1e-6)
    assert truth * (1 - 1e-6) <= found.upper
    if adjacency == "add_or_remove":
        assert found.upper - found.lower <= 1e-6 * found.upper


@pytest.mark.parametrize("noise", [*NOISES, "discrete laplace"])
@settings(max_examples=40, deadline=None)
@given(
    scale=st.floats(0.5, 3.0),
    rate=st.floats(0.05, 0.95),
    others=st.lists(st.sampled_from([-1, 0, 1]), max_size=3),
    changed=st.tuples(st.sampled_from([-1, 0, 1]), st.sampled_from([-1, 0, 1])),
    eps=st.floats(0.0, 3.0),
)
def test_no_poisson_sample_leaks_more(noise, scale, rate, others, changed, eps):  # noqa: PLR0917
    """A record of a Poisson sample replaced: whatever the records, for noise of three kinds."""
    edges = np.linspace(-4 - 20 * scale, 4 + 20 * scale, 1_501)
    if noise == "discrete laplace":
        base, cdf, edges = hs.DiscreteLaplace(1 / scale), discrete_cdf(1 / scale), np.arange(-60.0, 61.0)
    else:
        base, cdf = NOISES[noise][0](scale), NOISES[noise][1](scale)
    laws = [noisy_sums(len(edges) - 1, poisson([*others, x], rate), edges, cdf) for x in changed]
    bound = upper_ends(hs.PoissonSampled(base, rate), "replace", eps)[0]
    assert attained(laws[0], laws[1], eps) <= bound + 1e-12


@pytest.mark.parametrize("eps", [0.1, 0.7, 2.0])
def test_replaced_records_attain_the_pair(eps):
    """Without other records, opposite contributions leak exactly the pair: on the integers, and Laplace noise within its grid."""
    rate = 0.3
    found = hs.Accountant("replace").compose(hs.PoissonSampled(hs.DiscreteLaplace(0.5), rate)).delta_bracket(eps)
    edges = np.arange(-150.0, 151.0)
    laws = [noisy_sums(300, poisson([x], rate), edges, discrete_cdf(0.5)) for x in (1, -1)]
    assert attained(*laws, eps) == pytest.approx(found.upper, rel=1e-9, abs=1e-14)
    assert found.lower == pytest.approx(found.upper, rel=1e-9, abs=1e-14)
    found = hs.Accountant("replace").compose(hs.PoissonSampled(hs.Laplace(2.0), rate)).delta_bracket(eps)
    edges = np.linspace(-80, 80, 320_001)
    laws = [noisy_sums(320_000, poisson([x], rate), edges, lambda x: laplace_cdf(x / 2.0)) for x in (1, -1)]
    truth = attained(*laws, eps)
    assert found.lower <= truth * (1 + 1e-6) + 1e-12
    assert truth * (1 - 1e-6) - 1e-12 <= found.upper
    assert found.upper - found.lower <= 1e-2 * found.upper + 1e-12


def test_gaussians_by_the_grid():
    """What `replaced_pair` makes of Gaussian noise encloses the closed form of loss/replaced_gaussian.hpp."""
    exact = hs.PoissonSampled(hs.Gaussian(1.0), 0.1)
    tiny = hs.Composed([(hs.Gaussian(1.0), 1), (hs.Discrete([1.0], [1.0]), 1)])  # the same, but for its form
    pair = hs.PoissonSampled(hs.Composed([(hs.Gaussian(1.0), 1), (hs.Laplace(1e9), 1)]), 0.1)
    for eps in (0.1, 1.0, 3.0):
        truth = hs.Accountant("replace").compose(exact, 1).delta(eps)
        found = hs.Accountant("replace").compose(pair, 1).delta_bracket(eps)
        assert found.lower <= truth * (1 + 1e-6)
        assert truth <= found.upper <= 1.01 * truth
    with pytest.raises(ValueError, match="a pair for removing a record"):
        hs.Accountant("replace").compose(hs.PoissonSampled(tiny, 0.1))


def test_published_values():
    """Without replacement, one record replaced: the check values of an independent derivation; batches of one are no different."""
    for rate, noise, steps, delta, upper, lower in (
        (0.05, 2, 100, 1e-5, 1.1983, 1.0972),
        (0.2, 4, 50, 1e-6, 1.7172, 1.6652),
    ):
        step = hs.FixedSizeSampled(hs.Gaussian(2.0 * noise), 1000, round(1000 * rate), replacement=False)
        assert hs.Accountant("replace").compose(step, steps).epsilon(delta) == pytest.approx(upper, abs=2e-3)
        removed = hs.Accountant().compose(step, steps).epsilon(delta)
        assert removed == pytest.approx(lower, abs=2e-3)
    once = [hs.FixedSizeSampled(GAUSSIAN, 50, 1, replacement)._pairs("replace") for replacement in (False, True)]
    assert once[0] == once[1]


@pytest.mark.parametrize("eps", [0.1, 1.0])
def test_balle_barthe_gaboardi(eps):
    """With replacement, one record replaced: Theorem 10 of Balle, Barthe and Gaboardi 2018, term by term."""
    n, size, noise = 50, 20, 3.0
    drawn = 1 - (1 - 1 / n) ** size
    inner = math.log1p(math.expm1(eps) / drawn)
    weights = stats.binom.pmf(np.arange(1, size + 1), size, 1 / n)
    truth = sum(w * float(hs.theta(inner, 2 * m / noise)) for m, w in enumerate(weights, 1))
    step = hs.FixedSizeSampled(hs.Gaussian(noise), n, size, replacement=True)
    assert hs.Accountant("replace").compose(step).delta(eps) == pytest.approx(truth, rel=1e-6)


def of_one_step(n, size, noise, eps, *, replacement):
    """Return delta of a record replaced in one batch by the same theorem, at 50 digits and for any eps >= 0."""
    with mp.workdps(50):
        drawn = 1 - (1 - mp.mpf(1) / n) ** size if replacement else mp.mpf(size) / n
        inner = mp.log1p(mp.expm1(eps) / drawn)
        if not replacement:
            return drawn * exact.theta(inner, 2 / mp.mpf(noise))
        share = lambda m: mp.binomial(size, m) * mp.mpf(n - 1) ** (size - m) / mp.mpf(n) ** size
        return mp.fsum(share(m) * exact.theta(inner, 2 * m / mp.mpf(noise)) for m in range(1, size + 1))


@pytest.mark.share(2)
@pytest.mark.parametrize("replacement", [False, True])
def test_large_losses_of_one_batch(replacement):
    """One step encloses the theorem however large the loss: what errs by a multiple of e^eps are the negative losses."""
    n, size, noise = 1000, 180, 2.0
    account = hs.Accountant("replace").compose(hs.FixedSizeSampled(hs.Gaussian(noise), n, size, replacement))
    deltas = []
    for eps in [0.0, 1e-3, 1.0, 5.0, 20.0, 40.0, 60.0, 150.0]:
        truth = of_one_step(n, size, noise, eps, replacement=replacement)
        bracket = account.delta_bracket(eps)
        assert bracket.lower <= truth
        assert truth <= bracket.upper <= truth * (1 + mp.mpf(1e-6)) + mp.mpf(1e-300)
        deltas.append(bracket.upper)
    assert sorted(deltas, reverse=True) == deltas


@pytest.mark.share(2)
@pytest.mark.parametrize("delta", [1e-9, 1e-12, 1e-30])
def test_one_batch_leaks_no_more_than_two(delta):
    """One step of draws with replacement has an epsilon below that of two, of which it is a part."""
    step = hs.FixedSizeSampled(GAUSSIAN, 1000, 180, replacement=True)
    one, two = (hs.Accountant("replace").compose(step, steps).epsilon(delta) for steps in (1, 2))
    assert one <= two < 1e3


@pytest.mark.parametrize(
    ("draws", "dataset"), [(1, 10), (5, 4), (50, 1000), (10**6, 10**6), (3000, 100), (10**9, 10**10)]
)
def test_copies(draws, dataset):
    """Shares of copies are binomial, raised for upper ends and lowered for lower ones, beyond any doubt of rounding."""
    up, down = (_core.drawn_copies(draws, dataset, upper) for upper in (True, False))
    law = stats.binom(draws, 1 / dataset)
    assert down[2] <= 1 - law.pmf(0) * (1 - 1e-12)
    assert up[2] >= (1 - law.pmf(0)) * (1 - 1e-12)
    for least in (2, 3, 5, 40):
        truth = law.sf(least - 1) / (1 - law.pmf(0))
        tails = [math.fsum(w for m, w in zip(*found[:2], strict=True) if m >= least) for found in (down, up)]
        assert tails[0] <= truth * (1 + 1e-7) + 1e-290
        assert truth * (1 - 1e-7) <= tails[1] + 1e-290
        assert tails[1] - tails[0] <= 1e-6 * truth + 1e-25
    assert math.fsum(up[1]) == pytest.approx(1.0, abs=1e-12)
    assert max(up[0]) <= draws


@pytest.mark.parametrize(
    ("group", "dataset", "batch"), [(1, 10, 3), (4, 100, 20), (10, 1000, 990), (30, 40, 5), (1000, 10**6, 10**4)]
)
def test_groups_in_batches(group, dataset, batch):
    """How many of a group are drawn is hypergeometric."""
    found = group_in_batch(group, dataset, batch)
    assert found == pytest.approx(stats.hypergeom.pmf(np.arange(group + 1), dataset, group, batch), rel=1e-9, abs=1e-14)


@settings(max_examples=40, deadline=None)
@given(
    scale=st.floats(0.5, 3.0),
    others=st.lists(SIGNS, min_size=3, max_size=3),
    mine=st.tuples(SIGNS, SIGNS),
    eps=st.floats(0.0, 3.0),
)
def test_groups_by_enumeration(scale, others, mine, eps):
    """Two records of one user come and go: never above the bound, which opposite records attain."""
    step = hs.MixtureOfGaussians.of_group_in_batch(scale, 2, 5, 3)
    edges = np.linspace(-10 - 9 * scale, 10 + 9 * scale, 4_001)

    def laws(values, own):
        return [
            noisy_sums(4_000, fixed(records, 3, replacement=False), edges, lambda x: ndtr(x / scale))
            for records in ([*values, *own], values)
        ]

    for forward, upper in zip((True, False), upper_ends(step, "add_or_remove", eps), strict=True):
        p, q = laws(others, mine)[:: 1 if forward else -1]
        assert attained(p, q, eps) <= upper + 1e-12
        p, q = laws([-1.0] * 3, [1.0, 1.0])[:: 1 if forward else -1]
        assert attained(p, q, eps) >= upper - 1e-4


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "mechanism",
    [
        hs.FixedSizeSampled(hs.Laplace(3.0), 100, 5, replacement=False),
        hs.FixedSizeSampled(hs.RandomizedResponse(0.5, 4), 100, 5, replacement=False),
        hs.FixedSizeSampled(hs.DiscreteGaussian(3.0), 100, 5, replacement=False),
        hs.FixedSizeSampled(hs.Gaussian(3.0), 100, 5, replacement=True),
        hs.FixedSizeSampled(hs.Laplace(3.0), 100, 5, replacement=True),
    ],
    ids=repr,
)
def test_counts(mechanism):
    """Five at once are five times one, under both adjacencies; more rounds and larger batches leak more."""
    for adjacency in ("add_or_remove", "replace"):
        one_by_one = hs.Accountant(adjacency)
        for _ in range(5):
            one_by_one.compose(mechanism)
        at_once = hs.Accountant(adjacency).compose(mechanism, 5)
        state = hs.Accountant.from_state_dict(at_once.state_dict())
        assert one_by_one.delta(0.5) == at_once.delta(0.5) == state.delta(0.5)
        assert at_once.delta(0.5) >= hs.Accountant(adjacency).compose(mechanism, 4).delta(0.5)
        larger = hs.FixedSizeSampled(mechanism.mechanism, 100, 8, mechanism.replacement)
        assert hs.Accountant(adjacency).compose(larger, 5).delta(0.5) >= at_once.delta(0.5)


@pytest.mark.parametrize("eps", [0.0, 0.2, 1.0])
def test_fixed_size_of_budgets(eps):
    """A batch of an (epsilon, delta) mechanism: log(1 + q (e^epsilon - 1)) and q delta, one record replaced."""
    step = hs.FixedSizeSampled(hs.ApproximateDP(1.0, 1e-4), 100, 5, replacement=False)
    epsilon, delta = hs.isrl.subsampling_amplification(1.0, 1e-4, 0.05)
    accountant = hs.Accountant("replace").compose(step)
    assert accountant.delta(float(epsilon) * (1 + 1e-12)) == pytest.approx(float(delta), rel=1e-6)
    inner = math.log1p(math.expm1(eps) / 0.05)
    whole = hs.Accountant("replace").compose(hs.ApproximateDP(1.0, 1e-4))
    assert accountant.delta(eps) == pytest.approx(0.05 * whole.delta(inner), rel=1e-9)


REFUSED = [
    ("add_or_remove", hs.FixedSizeSampled(GAUSSIAN, 10, 10, replacement=False), "a batch of all records"),
    ("add_or_remove", hs.FixedSizeSampled(GAUSSIAN, 1, 2, replacement=True), "nothing to draw from"),
    ("replace", hs.FixedSizeSampled(hs.Discrete([0.9, 0.1], [0.5, 0.5]), 10, 2, replacement=False), "in either order"),
    ("replace", hs.FixedSizeSampled(hs.DiscreteGaussian(3.0), 10, 2, replacement=True), "with replacement only noise"),
    (
        "add_or_remove",
        hs.FixedSizeSampled(hs.ApproximateDP(1.0, 0.0), 10, 2, replacement=False),
        "a pair for replacing",
    ),
    ("replace", hs.PoissonSampled(hs.ApproximateDP(1.0, 0.0), 0.1), "a pair for removing a record"),
    ("replace", hs.PoissonSampled(hs.RandomizedResponse(0.5, 3), 0.1), "replaced, not added or removed"),
    ("add_or_remove", hs.PoissonSampled(hs.RandomizedResponse(0.5, 3), 0.1), "replaced, not added or removed"),
]


@pytest.mark.parametrize(("adjacency", "mechanism", "reason"), REFUSED)
def test_refused(adjacency, mechanism, reason):
    """What has no proven pair is refused when composed, with the reason."""
    with pytest.raises(ValueError, match=reason):
        hs.Accountant(adjacency).compose(mechanism)


BAD = [
    (ValueError, "at most 100 times dataset_size", lambda: hs.FixedSizeSampled(GAUSSIAN, 10, 1001, replacement=True)),
    (ValueError, "must not draw a batch", lambda: hs.FixedSizeSampled(REFUSED[0][1], 10, 2, replacement=False)),
    (ValueError, "fixed number of records", lambda: hs.PoissonSampled(REFUSED[0][1], 0.1)),
    (TypeError, "replacement must be True or False", lambda: hs.FixedSizeSampled(GAUSSIAN, 10, 2, replacement=None)),
    (ValueError, "less group_size", lambda: hs.MixtureOfGaussians.of_group_in_batch(1.0, 3, 10, 8)),
    (ValueError, "group_size must be at most", lambda: hs.MixtureOfGaussians.of_group_in_batch(1.0, 1001, 10**5, 8)),
]


@pytest.mark.parametrize(("error", "message", "make"), BAD)
def test_bad_arguments(error, message, make):
    """A wrong argument raises in words."""
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("at least the num_users", lambda: hs.FixedSizeSampled(hs.Shuffled(1.0, 1000), 100, 10, replacement=False)),
        (
            "at most the dataset_size",
            lambda: hs.FixedSizeSampled(
                hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 10, 0.1, 10), 10_000, 1000, replacement=False
            ),
        ),
        (
            "2/noise_multiplier must lie",
            lambda: hs.Accountant().compose(hs.FixedSizeSampled(hs.Gaussian(1e120), 10, 5, replacement=True)),
        ),
    ],
)
def test_a_batch_is_what_its_mechanism_says(words, make):
    """A mechanism that states another number of records than the batch has, or a shift without digits, is refused."""
    with pytest.raises(ValueError, match=words):
        make()


def test_lower_end_of_batches_is_attained():
    """Two steps on data whose other records are all alike: the lower end is their delta, and no more than the best attack."""
    step = hs.FixedSizeSampled(hs.Gaussian(2.0), 10, 3, replacement=False)
    found = hs.Accountant("replace").compose(step, 2).delta_bracket(0.0)
    alike = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.3), 2)  # N(2/2) with probability 0.3
    assert found.lower == pytest.approx(alike.explain(eps=0.0).directions["remove"].lower, rel=1e-3)
    assert found.lower <= 0.17801 <= found.upper  # attained by steps chosen adaptively
