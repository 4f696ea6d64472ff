"""Renyi divergences by integrals of the curve, against quadrature of the densities, which no line of the library shares."""

import itertools
import math

import numpy as np
import pytest

import hockeystick as hs
from compositions import composed
from hockeystick import _core
from pairs import pair

ORDERS = [1.0, 1.02, 1.5, 2.0, 3.7, 8.0, 19.0]
SLACK = 1e-8  # of the quadratures below, relative to (order - 1) times the divergence
SHARP = 1e-5  # what the integrals promise where the pair is exact


def convex(loss, order):
    """Return w^a - 1 - a (w - 1) over a (a - 1), or w log w - w + 1 at order 1, of w = e^loss, without cancellation near 1."""
    if order == 1.0:
        exact = np.exp(loss) * loss - np.expm1(loss)
    else:
        exact = (np.expm1(order * loss) - order * np.expm1(loss)) / (order * (order - 1.0))
    series = loss**2 / 2 * (1 + (order + 1) * loss / 3 + (order**2 + order + 1) * loss**2 / 12)
    return np.where(np.abs(loss) * (1 + order) < 1e-3, series, exact)


def mean(log_weight, loss, order):
    """Return the sum of e^log_weight times `convex`, which may overflow where the weight is small."""
    log_weight, loss = np.broadcast_arrays(log_weight, loss)
    large = np.abs(loss) * order > 200.0
    a, w, x = order, log_weight[large], loss[large]
    if a == 1.0:
        tail = np.exp(w + x) * (x - 1.0) + np.exp(w)
    else:
        tail = (np.exp(w + a * x) - a * np.exp(w + x) + (a - 1.0) * np.exp(w)) / (a * (a - 1.0))
    return float(np.sum(np.exp(log_weight[~large]) * convex(loss[~large], order)) + np.sum(tail))


def from_mean(mean, order):
    """Return the divergence of a mean of `convex`."""
    return mean if order == 1.0 else math.log1p(order * (order - 1.0) * mean) / (order - 1.0)


def normal(x, mean=0.0):
    """Return the log density of a normal variable of variance 1."""
    return -0.5 * (x - mean) ** 2 - 0.5 * math.log(2 * math.pi)


def mixture(x, parts):
    """Return the log density of a mixture of (weight, mean)."""
    return np.logaddexp.reduce([math.log(weight) + normal(x, mean) for weight, mean in parts if weight > 0.0], axis=0)


def by_density(log_p, log_q, order, step):
    """Return the divergence of densities on a grid; the trapezoidal rule is exact to rounding for smooth ones."""
    return from_mean(mean(log_q, log_p - log_q, order) * step, order)


def both_halves(log_w, log_q, order, step):
    """Return the divergence of the pair whose curve, in both directions, is E(w - e^eps)_+ at eps >= 0."""
    inside = log_w > 0.0
    loss, weight = log_w[inside], log_q[inside]
    return from_mean((mean(weight, loss, order) + mean(weight + loss, -loss, order)) * step, order)


def grid(reach, count=25_001):
    """Return points on [-reach, reach] and their distance."""
    x = np.linspace(-reach, reach, count)
    return x, x[1] - x[0]


def cases(seed, count, largest_shift):
    """Return random (shift, rate, order) whose tilted laws lie on a grid of doubles."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        shift = math.exp(rng.uniform(math.log(0.02), math.log(largest_shift)))
        rate = math.exp(rng.uniform(math.log(1e-5), math.log(0.95)))
        for order in ORDERS:
            if order * shift < 15.0:
                yield shift, rate, order


def holds(found, truth, slack=SLACK):
    """Say whether an upper bound is one, and close."""
    return truth * (1 - slack) <= found <= truth * (1 + SHARP) + 1e-15


def test_of_replaced_gaussian():
    """Poisson samples of Gaussian noise, a record replaced: exact."""
    x, step = grid(50.0)
    for r, q, order in cases(1, 16, 2.0):
        truth = by_density(mixture(x, [(1 - q, 0), (q, r)]), mixture(x, [(1 - q, 0), (q, -r)]), order, step)
        assert holds(pair("replaced_gaussian", [r, q]).renyi(order, True), truth), (r, q, order)


def test_of_fixed_size_gaussian():
    """Batches of a fixed size: the pair is exact, and no less than the Poisson pairs that data sets of equal records attain."""
    x, step = grid(50.0)
    for r, q, order in cases(2, 16, 4.0):
        log_w = np.logaddexp(math.log1p(-q), math.log(q) + r * x - r * r / 2)
        found = pair("fixed_size_gaussian", [r, q]).renyi(order, True)
        assert holds(found, both_halves(log_w, normal(x), order, step)), (r, q, order)
        for attained in ((log_w + normal(x), normal(x)), (normal(x), log_w + normal(x))):
            assert found >= by_density(*attained, order, step) * (1 - SLACK)


def test_of_mixtures_and_labels():
    """Several shifts, kept secret or shown, sampled or not, in both directions."""
    x, step = grid(50.0)
    for seed, (r, q, order) in enumerate(cases(3, 14, 1.0)):
        if 3.1 * r * order > 15.0:
            continue
        shifts, weights = [r, 1.7 * r, 3.1 * r], [0.6, 0.3, 0.1]
        added = [(weight, shift) for weight, shift in zip(weights, shifts, strict=True)]
        secret = mixture(x, [(1 - q, 0.0)] + [(q * weight, shift) for weight, shift in added])
        sampled = pair("gaussian_mixture", shifts + weights, q)
        assert holds(sampled.renyi(order, True), by_density(secret, normal(x), order, step)), (r, q, order)
        assert holds(sampled.renyi(order, False), by_density(normal(x), secret, order, step)), (r, q, order)
        if seed % 3 == 0:
            whole = pair("gaussian_mixture", shifts + weights)
            assert holds(whole.renyi(order, True), by_density(mixture(x, added), normal(x), order, step))
        parts = [weight * mean(normal(x), shift * x - shift**2 / 2, order) for weight, shift in added]
        shown = from_mean(math.fsum(parts) * step, order)
        assert holds(pair("labelled_gaussian", shifts + weights).renyi(order, True), shown), (r, order)


@pytest.mark.slow
def test_of_truncated_samples():
    """A truncated Poisson sample shows its label, whose probabilities under both laws need not be equal."""
    x, step = grid(50.0)
    last, excess, swapped = 0.02, 0.5, 0.03
    for r, q, order in cases(4, 12, 1.0):
        if 2 * r * order > 15.0:
            continue
        rows = [
            (1 - last * (1 + excess) - swapped, q, r),
            (last, q * (1 + excess), r),
            (last * excess, 0.0, r),
            (swapped, q, 2 * r),
        ]
        for forward in (True, False):
            total = 0.0
            for weight, moved, shift in rows:
                added = [(moved, shift)] if moved > 0 else []
                with_it, without = mixture(x, [(1 - q, 0.0), *added]), normal(x)
                log_p, log_q = (with_it, without) if forward else (without, with_it)
                total += weight * mean(log_q, log_p - log_q, order) * step
            found = _core.truncated_poisson(r, q, last, excess, swapped, False).renyi(order, forward)
            assert holds(found, from_mean(total, order)), (r, q, order, forward)


@pytest.mark.parametrize("kind", ["laplace", "bounded_range"])
def test_of_bounded_losses_in_samples(kind):
    """Batches of Laplace noise and of exponential mechanisms: exact. Poisson samples of the latter: between every interval and the pair."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        width, q = math.exp(rng.uniform(-3, 1.5)), math.exp(rng.uniform(-9, -0.05))
        loss = np.linspace(-width, width, 40_001)
        step = loss[1] - loss[0]
        if kind == "laplace":  # atoms at both ends, and e^{(l - r)/2}/4 under P between them
            log_p, atoms = np.log(0.25) + (loss - width) / 2, [(width, 0.5), (-width, 0.5 * math.exp(-width))]
        else:
            log_p, atoms = loss / 2 - math.log(4 * math.sinh(width / 2)), []
        log_q = log_p - loss
        weights = np.full(loss.size, step)
        weights[0] = weights[-1] = step / 2
        for order in (1.0, 1.5, 2.0, 5.5, 30.0):
            log_w = np.logaddexp(math.log1p(-q), math.log(q) + loss)
            ends = [(math.log1p(q * math.expm1(l)), p * math.exp(-l)) for l, p in atoms]
            term = lambda w, a=order: convex(np.asarray(w), a)
            remove = np.sum(weights * np.exp(log_q) * term(log_w)) + sum(m * term(w) for w, m in ends)
            add = np.sum(weights * np.exp(log_q + log_w) * term(-log_w)) + sum(
                m * math.exp(w) * term(-w) for w, m in ends
            )
            if kind == "bounded_range":
                sampled = pair(kind, [width], q)
                for forward, terms in ((True, remove), (False, add)):
                    found = sampled.renyi(order, forward)
                    assert found <= from_mean(float(terms), order) * (1 + SHARP)
                    for t in np.linspace(0.02, 0.98, 25) * width:
                        high = math.expm1(t - width) / math.expm1(-width)
                        losses = np.array([t, t - width])
                        p = np.array([high, 1 - high])
                        w = np.log1p(q * np.expm1(losses))
                        weight, sign = (p * np.exp(-losses), 1) if forward else (p * np.exp(w - losses), -1)
                        assert from_mean(float(np.sum(weight * term(sign * w))), order) <= found * (1 + 1e-9)
            up = log_w > 0
            both = np.sum((weights * np.exp(log_q) * (term(log_w) + np.exp(log_w) * term(-log_w)))[up])
            both += sum(m * (term(w) + math.exp(w) * term(-w)) for w, m in ends if w > 0)
            found, truth = pair(f"fixed_size_{kind}", [width, q]).renyi(order, True), from_mean(float(both), order)
            if kind == "laplace":
                assert holds(found, truth, 1e-7)  # as its quadrature errs
            else:  # a single interval at each order: at most its bound, and that of the pair
                assert found <= min(truth * (1 + SHARP), order * width**2 / 8 * (1 + 1e-12) if order > 1 else math.inf)


def test_of_discrete_pairs():
    """Random pairs of one's own for each direction, and samples of them, against sums over the outcomes."""
    rng = np.random.default_rng(6)
    for _ in range(60):
        p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
        rate = rng.choice([1.0, 0.3, 1e-3])
        mixed = (1 - rate) * q + rate * p
        made = _core.poisson_sampled(_core.discrete_pairs(p.tolist(), q.tolist(), q.tolist(), p.tolist()), rate)
        batch = _core.fixed_size_sampled(_core.discrete(p.tolist(), q.tolist()), rate)
        for order in ORDERS:
            for forward, (x, y) in ((True, (mixed, q)), (False, (q, mixed))):
                truth = from_mean(float(np.sum(y * convex(np.log(x / y), order))), order)
                assert truth * (1 - 1e-12) <= made.renyi(order, forward) <= truth * (1 + 1e-11) + 1e-15
            up = mixed > q
            loss = np.log(mixed / q)[up]
            terms = q[up] * convex(loss, order) + mixed[up] * convex(-loss, order)
            truth = from_mean(float(terms.sum()), order)
            assert truth * (1 - 1e-12) <= batch.renyi(order, True) <= truth * (1 + 1e-11) + 1e-15


def test_of_several_releases_in_one_sample():
    """Gaussian noise and Laplace noise on one sample: the moments of the product, expanded, at integer orders."""
    step = hs.Composed([(hs.Gaussian(2.0), 2), (hs.Laplace(4.0), 1)])
    rate = 0.05
    found = composed((hs.PoissonSampled(step, rate), 1))
    parts = composed((step, 1))
    r, s = 0.25, math.sqrt(0.5)

    def whole(k):
        laplace = (k * math.exp((k - 1) * r) + (k - 1) * math.exp(-k * r)) / (2 * k - 1) if k else 1.0
        return math.exp(k * (k - 1) * s * s / 2) * laplace

    for n in (2, 3, 5, 9):
        moment = sum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) * whole(k) for k in range(n + 1))
        truth = math.log(moment) / (n - 1)
        assert truth <= found.rdp(float(n)) <= truth * 1.01
        assert parts.rdp(float(n)) == pytest.approx(math.log(whole(n)) / (n - 1), rel=1e-9)
    for replaced in (False, True):
        batch = hs.FixedSizeSampled(step, 100, 5, replacement=False)
        assert 0.0 < composed((batch, 1), adjacency="replace" if replaced else "add_or_remove").rdp(4.0) < 10.0


def allocation_moment(r, t, n):
    """Return E W^n of the mean of t log-normals, by the multinomial expansion."""
    total = 0.0
    for counts in itertools.product(range(n + 1), repeat=t):
        if sum(counts) == n:
            ways = math.factorial(n) / math.prod(map(math.factorial, counts))
            total += ways * math.exp(sum(k * (k - 1) for k in counts) * r * r / 2)
    return total / t**n


@pytest.mark.parametrize("noise", [0.7, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("steps", [2, 3, 4])
def test_of_random_allocation(noise, steps):
    """At integer orders exact where the record is removed; quadrature in the other direction and between integers."""
    accountant = composed((hs.RandomAllocation(hs.Gaussian(noise), steps), 1))
    ((made, count),) = hs.RandomAllocation(hs.Gaussian(noise), steps)._pairs("add_or_remove")
    assert count == 1.0
    r = 1 / noise
    for n in (2, 3, 6):
        truth = math.log(allocation_moment(r, steps, n)) / (n - 1)
        assert truth * (1 - 1e-12) <= made.renyi(float(n), True) <= truth * (1 + 1e-8)
    if steps == 2:
        x = np.linspace(-12, 12 + 6 * r, 601)
        step = x[1] - x[0]
        log_x = r * x - r * r / 2
        log_w = np.logaddexp(log_x[:, None], log_x[None, :]) - math.log(2)
        weight = normal(x)[:, None] + normal(x)[None, :]
        for order in (1.0, 1.5, 2.5, 5.0):
            for forward in (True, False):
                terms = mean(weight, log_w, order) if forward else mean(weight + log_w, -log_w, order)
                truth = from_mean(terms * step**2, order)
                assert truth * (1 - 1e-9) <= made.renyi(order, forward) <= truth * 1.02
    assert accountant.rdp(3.0) == pytest.approx(max(made.renyi(3.0, True), made.renyi(3.0, False)), rel=1e-12)


def test_deep_orders_fall_back_on_the_noise_alone():
    """Beyond what doubles reach the bound is that of the noise without sampling, never less than the truth."""
    for order in (50.0, 400.0, 1e5):
        found = pair("fixed_size_gaussian", [2.0, 0.01]).renyi(order, True)
        floor = order * 2.0 + order / (order - 1) * math.log(0.01)  # E W^a >= q^a E W_0^a
        assert floor * (1 - 1e-12) <= found <= order * 2.0 * (1 + 1e-12)


@pytest.mark.share(2)
@pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-8, 1e-20, 1e-100])
def test_losses_beyond_the_doubles_are_no_small_divergence(noise):
    """A batch with almost no noise: where the integral leaves the doubles, epsilon is that of certain disclosure, not small."""
    for mechanism in (
        hs.PoissonSampled(hs.Gaussian(noise), 0.2),
        hs.FixedSizeSampled(hs.Gaussian(noise), 10, 2, replacement=False),
    ):
        accountant = hs.Accountant("replace").compose(mechanism, 9)
        # with probability 1 - 0.8^9 a batch has the record, and its loss is about 2/noise^2 then
        assert accountant.epsilon(1e-5) > 0.4 / noise**2
        assert accountant.rdp(2.0) > 0.4 / noise**2
