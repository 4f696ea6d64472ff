"""Laws of outputs written down: their divergences by definition, samples and choices by enumeration, and what a bracket must hold."""

import functools
import itertools
import math

import numpy as np
from scipy.special import logsumexp

import hockeystick as hs


def hockey_stick(p, q, eps):
    """Return sum max(p - e^eps q, 0)."""
    return float(np.maximum(np.asarray(p) - math.exp(eps) * np.asarray(q), 0.0).sum())


def two_candidates(epsilon):
    """Return laws of an exponential mechanism's choice of two candidates, before and after all it allows, by the logarithm of their ratio."""
    odds = (np.exp(x) for x in np.linspace(-12.0, epsilon + 12.0, 4001))
    pairs = ((r / (1.0 + r), r * math.exp(-epsilon) / (1.0 + r * math.exp(-epsilon))) for r in odds)
    return [(np.array([p, 1.0 - p]), np.array([q, 1.0 - q])) for p, q in pairs]


def either(p, q, eps):
    """Return the larger divergence of both orders."""
    return max(hockey_stick(p, q, eps), hockey_stick(q, p, eps))


def renyi(p, q, orders):
    """Return the Renyi divergences of P from Q at orders other than 1."""
    a = np.asarray(orders)[:, None]
    return logsumexp(a * np.log(p) + (1 - a) * np.log(q), axis=1) / (a[:, 0] - 1)


def exponential(exponents):
    """Return the law of a choice with probabilities in proportion to exponentials."""
    return np.exp(exponents - logsumexp(exponents))


def permute_and_flip(exponents):
    """Return the law of permute-and-flip, by all orders and coins."""
    chances, law = np.exp(exponents - exponents.max()), np.zeros(exponents.size)
    orders = list(itertools.permutations(range(exponents.size)))
    for order in orders:
        left = 1.0
        for candidate in order:
            law[candidate] += left * chances[candidate] / len(orders)
            left *= 1 - chances[candidate]
    return law


def loss_delta(law, losses, eps):
    """Return E (1 - e^(eps - L))_+ of a law of losses."""
    return float(np.sum(law * np.maximum(-np.expm1(np.minimum(eps - losses, 0.0)), 0.0)))


def product(*laws):
    """Return the law of independent outcomes."""
    return functools.reduce(np.multiply.outer, map(np.asarray, laws)).ravel()


def bracket(mechanism, eps, count=1, adjacency="add_or_remove"):
    """Return the certified ends of delta."""
    return hs.Accountant(adjacency).compose(mechanism, count).delta_bracket(eps)


def directions(mechanism, eps, count=1):
    """Return the brackets of delta when a record is removed and when it is added."""
    found = hs.Accountant().compose(mechanism, count).explain(epsilon=eps).directions
    return found.get("remove", found.get("both")), found.get("add", found.get("both"))


def ends(mechanism, eps, adjacency="add_or_remove", *, forward=True):
    """Return both ends of one step in one direction, of the pair for upper ends and of that for lower ones."""
    (above, _), *_ = mechanism._pairs(adjacency)
    below = mechanism._pairs(adjacency, upper=False)
    return below[0][0].one_step(forward, False, eps)[0] if below else 0.0, above.one_step(forward, False, eps)[1]


def encloses(found, truth, slack=0, off=0, wide=None):
    """Check that both ends hold a number that is known to `slack` of itself and to `off`, and are no further apart than `wide` of the upper one."""
    lower, upper, *_ = found
    error = slack * truth + off
    assert lower <= upper
    assert lower <= truth + error, f"the lower end {lower!r} is above {truth!r}"
    assert truth - error <= upper, f"the upper end {upper!r} is below {truth!r}"
    if wide is not None:
        assert upper - lower <= wide * upper + off, f"{lower!r} and {upper!r} are far apart, around {truth!r}"


def normal_law(low, high, points):
    """Return points and masses of a standard normal variable on a grid."""
    x = np.linspace(low, high, points)
    return x, np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)


def allocated_delta(law, ratio, other, num_steps, num_selected, eps):  # noqa: PLR0917
    """Return delta of k of t steps of these likelihood ratios to noise of this law, from others: a sum over all outputs and sets of steps."""

    def mean(single):
        axes = [single.reshape([-1 if j == i else 1 for j in range(num_steps)]) for i in range(num_steps)]
        sets = itertools.combinations(axes, num_selected)
        return sum(math.prod(chosen) for chosen in sets) / math.comb(num_steps, num_selected)

    weight = functools.reduce(np.multiply.outer, [law] * num_steps)
    return float(np.sum(weight * np.maximum(mean(ratio) - math.exp(eps) * mean(other), 0)))


def poisson(values, rate):
    """Yield all Poisson samples, each with its probability."""
    for chosen in itertools.product((False, True), repeat=len(values)):
        taken = tuple(itertools.compress(values, chosen))
        yield rate ** len(taken) * (1.0 - rate) ** (len(values) - len(taken)), taken


def fixed(values, size, *, replacement=False):
    """Yield all batches of a size."""
    batches = list(itertools.product(values, repeat=size) if replacement else itertools.combinations(values, size))
    yield from ((1.0 / len(batches), batch) for batch in batches)


def truncated(values, rate, most):
    """Yield all Poisson samples, of which at most so many records are kept."""
    return nested(poisson(values, rate), lambda sample: fixed(sample, min(len(sample), most)))


def nested(samples, inner):
    """Yield the samples that `inner` draws from samples."""
    for share, sample in samples:
        for part, batch in inner(sample):
            yield share * part, batch


def noisy_sum(batches, edges, cdf):
    """Return the law of a noisy sum over a random batch on the cells between edges: merging outcomes only lowers a divergence."""
    sums: dict[float, float] = {}
    for share, batch in batches:
        total = round(math.fsum(batch), 12)
        sums[total] = sums.get(total, 0.0) + share
    return sum(share * np.diff(cdf(edges - total)) for total, share in sums.items())
