"""Mechanisms under either adjacency, and their composition."""

import hockeystick as hs

SAMPLED = hs.PoissonSampled(hs.Gaussian(1.0), 0.1)
MIXED = [
    hs.Gaussian(3.0),
    hs.Laplace(5.0),
    SAMPLED,
    hs.PoissonSampled(hs.Laplace(2.0), 0.2),
    hs.ApproximateDP(0.1, 1e-9),
    hs.DiscreteGaussian(4.0),
    hs.DiscreteLaplace(0.3),
    hs.PoissonSampled(hs.DiscreteLaplace(0.5), 0.2),
    hs.MixtureOfGaussians(4.0, [0.0, 1.0, 2.0], [0.5, 0.25, 0.25]),
    hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 200, 0.05, 20),
    hs.RandomAllocation(hs.Gaussian(2.0), 10),
]
REPLACED = [
    hs.Gaussian(4.0),
    hs.Laplace(6.0),
    hs.RandomizedResponse(0.8, 3),
    hs.FixedSizeSampled(hs.Gaussian(2.0), 100, 5, replacement=False),
    hs.PoissonSampled(hs.Gaussian(2.0), 0.05),
    hs.DiscreteGaussian(8.0),
    hs.DiscreteLaplace(0.1),
    hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 200, 0.05, 20),
]


def composed(*steps, **options):
    """Return the accountant of mechanisms and (mechanism, count) pairs, one after the other."""
    accountant = hs.Accountant(**options)
    for step in steps:
        accountant.compose(*(step if isinstance(step, tuple) else (step,)))
    return accountant
