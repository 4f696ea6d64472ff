"""Samples of the records: attained pairs, groups, and formulas by their authors."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

import high_precision as exact
import hockeystick as hs
from enumeration import bracket, encloses, hockey_stick, noisy_sum, poisson
from hockeystick import _core
from hockeystick._numeric.binomial import group_in_batch

GAUSSIAN = hs.Gaussian(2.0)


@pytest.mark.parametrize("eps", [0.1, 0.7, 2.0])
@pytest.mark.parametrize(
    ("base", "cdf", "edges", "slack", "wide"),
    [
        (hs.DiscreteLaplace(0.5), lambda x: stats.dlaplace.cdf(x, 0.5), np.arange(-150.5, 151.0), 1e-9, 1e-9),
        (hs.Laplace(2.0), lambda x: stats.laplace.cdf(x / 2.0), np.linspace(-80, 80, 320_001), 1e-6, 1e-2),
    ],
    ids=["integers", "laplace"],
)
def test_replaced_records_attain_the_pair(base, cdf, edges, slack, wide, eps):  # noqa: PLR0917
    """Without other records, opposite contributions leak exactly the pair: on the integers, and Laplace noise within its grid."""
    laws = [noisy_sum(poisson([x], 0.3), edges, cdf) for x in (1, -1)]
    found = bracket(hs.PoissonSampled(base, 0.3), eps, adjacency="replace")
    encloses(found, hockey_stick(*laws, eps), slack, 1e-12, wide)


def test_gaussians_by_the_grid():
    """What `replaced_pair` makes of Gaussian noise encloses the closed form of loss/replaced_gaussian.hpp."""
    pair = hs.PoissonSampled(
        hs.Composed([(hs.Gaussian(1.0), 1), (hs.Laplace(1e9), 1)]), 0.1
    )  # the same, but for its form
    for eps in (0.1, 1.0, 3.0):
        truth = bracket(hs.PoissonSampled(hs.Gaussian(1.0), 0.1), eps, adjacency="replace").upper
        found = bracket(pair, eps, adjacency="replace")
        encloses(found, truth, slack=1e-6)
        assert found.upper <= 1.01 * truth


@pytest.mark.parametrize("engine", ["auto", "pld"])
@pytest.mark.parametrize(
    ("rate", "noise", "steps", "delta", "dominating", "attained"),
    [(0.05, 2.0, 100, 1e-5, 1.1983, 1.0972), (0.2, 4.0, 50, 1e-6, 1.7172, 1.6652)],
)
def test_published_values(rate, noise, steps, delta, dominating, attained, engine):  # noqa: PLR0917
    """Without replacement, one record replaced, or added or removed: epsilon of an independent derivation."""
    batch = hs.FixedSizeSampled(hs.Gaussian(2.0 * noise), 1000, round(1000 * rate), replacement=False)
    for adjacency, epsilon in (("replace", dominating), ("add_or_remove", attained)):
        found = hs.Accountant(adjacency, engine).compose(batch, steps).epsilon_bracket(delta)
        assert epsilon - 6e-5 <= found.upper <= epsilon + 2e-3
        assert adjacency == "replace" or found.lower <= epsilon + 6e-5


def test_batches_of_one():
    """They are the same with replacement and without."""
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
        found = account.delta_bracket(eps)
        encloses(found, truth)
        assert found.upper <= truth * (1 + mp.mpf(1e-6)) + mp.mpf(1e-300)
        deltas.append(found.upper)
    assert sorted(deltas, reverse=True) == deltas


@pytest.mark.share(3)
@pytest.mark.parametrize("delta", [1e-9, 1e-12, 1e-30])
def test_one_batch_leaks_no_more_than_two(delta):
    """One step of draws with replacement has an epsilon below that of two, of which it is a part."""
    step = hs.FixedSizeSampled(GAUSSIAN, 1000, 180, replacement=True)
    one, two = (hs.Accountant("replace").compose(step, steps).epsilon(delta) for steps in (1, 2))
    assert one <= two < 1e3


@pytest.mark.parametrize(
    ("draws", "dataset"), [(1, 10), (2, 10), (5, 4), (50, 1000), (10**6, 10**6), (3000, 100), (10**9, 10**10)]
)
def test_copies(draws, dataset):
    """Shares of copies are binomial, raised for upper ends and lowered for lower ones, beyond any doubt of rounding."""
    noise = [(_core.gaussian(1.0), 1.0)]
    up, down = (_core.fixed_size_steps(noise, dataset, draws, True, False, upper) for upper in (True, False))
    numbers_and_shares = [np.split(np.array(pair.base.parameters), 2) for pair in (down, up)]
    law = stats.binom(draws, 1 / dataset)
    assert down.parameters[0] <= 1 - law.pmf(0) * (1 - 1e-12)
    assert up.parameters[0] >= (1 - law.pmf(0)) * (1 - 1e-12)
    for least in (2, 3, 5, 40):
        truth = law.sf(least - 1) / (1 - law.pmf(0))
        tails = [math.fsum(shares[numbers >= least]) for numbers, shares in numbers_and_shares]
        assert tails[0] <= truth * (1 + 1e-7) + 1e-290
        assert truth * (1 - 1e-7) <= tails[1] + 1e-290
        assert tails[1] - tails[0] <= 1e-6 * truth + 1e-25
    numbers, shares = numbers_and_shares[1]
    assert math.fsum(shares) == pytest.approx(1.0, abs=1e-12)
    assert max(numbers) <= draws


@pytest.mark.parametrize(
    ("group", "dataset", "batch"), [(1, 10, 3), (4, 100, 20), (10, 1000, 990), (30, 40, 5), (1000, 10**6, 10**4)]
)
def test_groups_in_batches(group, dataset, batch):
    """How many of a group are drawn is hypergeometric."""
    found = group_in_batch(group, dataset, batch)
    assert found == pytest.approx(stats.hypergeom.pmf(np.arange(group + 1), dataset, group, batch), rel=1e-9, abs=1e-14)


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


def test_lower_end_of_batches_is_attained():
    """Two steps on data whose other records are all alike: the lower end is their delta, and no more than the best attack."""
    step = hs.FixedSizeSampled(hs.Gaussian(2.0), 10, 3, replacement=False)
    found = hs.Accountant("replace").compose(step, 2).delta_bracket(0.0)
    alike = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.3), 2)  # N(2/2) with probability 0.3
    assert found.lower == pytest.approx(alike.explain(eps=0.0).directions["remove"].lower, rel=1e-3)
    assert found.lower <= 0.17801 <= found.upper  # attained by steps chosen adaptively
