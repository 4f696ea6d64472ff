"""Contours of losses with atoms, on samples or not, against enumeration, integrals and residues."""

import functools
import math

import mpmath
import numpy as np
import pytest

import hockeystick as hs
import integer_laws
import pairs
from enumeration import encloses, loss_delta, product
from loss_pieces import Law, Strand, one_step, two_steps

pytestmark = pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
SLACK = 1e-11  # of the references in doubles, relatively


KINDS = {"add_or_remove": ["remove", "add"], "replace": ["replace"]}


def moves(kind, shift):
    """Return how far the noise is moved under P and under Q."""
    return {"remove": (shift, 0), "add": (0, shift), "replace": (shift, -shift)}[kind]


def laplace_delta(r, steps, eps):
    """Return delta of T Laplace steps by residues.

    M(s)^T = 2^-T sum_k C(T, k) e^{s k r - (s + 1)(T - k) r} (1 + z)^k (1 - z)^{T - k}, z = 1/(2s + 1). Each term is
    integrated over a circle around its poles 0, -1/2 and -1 by the trapezoid rule.
    """
    total = mpmath.mpf(0)
    for k in range(steps + 1):
        x = eps - (2 * k - steps) * r
        if x >= 0:
            continue
        nodes = 120 + 8 * int(2 * abs(x)) + 2 * steps
        residues = mpmath.mpf(0)
        for j in range(nodes):
            turn = 2 * mpmath.expjpi(mpmath.mpf(2 * j) / nodes)
            s, z = turn - mpmath.mpf(1) / 2, 1 / (2 * turn)
            residues += mpmath.re(mpmath.exp(-s * x) * (1 + z) ** k * (1 - z) ** (steps - k) / (s * (s + 1)) * turn)
        total += mpmath.binomial(steps, k) * mpmath.exp(-(steps - k) * r) * residues / nodes
    return total / mpmath.mpf(2) ** steps


@pytest.mark.share(4)
@pytest.mark.parametrize("scale", [0.4, 1.7, 12.0])
@pytest.mark.parametrize("steps", [2, 7, 14])
def test_laplace_steps_agree_with_residues(scale, steps):
    """Delta and epsilon of T Laplace steps; of two, whose contour is smoothed, the bracket is narrow off the atoms."""
    accountant = hs.Accountant().compose(hs.Laplace(scale), steps)
    with mpmath.workdps(60):
        r = 1 / mpmath.mpf(scale)
        for share in (0.11, 0.45, 0.83)[: 3 if steps < 14 else 2]:
            eps = share * steps / scale
            exact = laplace_delta(r, steps, mpmath.mpf(eps))
            encloses(accountant.delta_bracket(eps), float(exact), SLACK)
            if steps == 2:
                smoothed = pairs.contour_bracket([("laplace", [float(r)], 1.0, 2.0)], True, False, eps)
                assert smoothed["smoothing"] > 0.0
                encloses((smoothed["lower"], smoothed["upper"]), float(exact), SLACK)
                assert smoothed["log_upper"] - smoothed["log_lower"] < 2e-3 * max(1.0, abs(smoothed["log_upper"]))
            delta = float(exact)
            if 1e-250 < delta < 0.5:
                encloses(accountant.epsilon_bracket(delta), eps, SLACK, wide=1e-4)


def discrete_law(sigma, shift, rate, kind):
    """Return losses and masses of a sampled discrete Gaussian, in doubles from 40 digits."""
    masses, reach = integer_laws.discrete_gaussian(sigma), math.ceil(13 * sigma) + 2 * shift
    with mpmath.workdps(40):
        outcomes = range(len(masses) // 2 - reach, len(masses) // 2 + reach + 1)
        p, q = (
            [(1 - mpmath.mpf(rate)) * masses[k] + mpmath.mpf(rate) * masses[k - moved] for k in outcomes]
            for moved in moves(kind, shift)
        )
        losses = [mpmath.log(above / below) for above, below in zip(p, q, strict=True)]
    return np.array(losses, float), np.array(p, float)


@pytest.mark.share(3)
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
@pytest.mark.parametrize(
    ("sigma", "shift", "rate", "steps"),
    [(0.35, 1, 0.2, 3), (0.7, 2, 1e-3, 3), (1.3, 1, 0.04, 3), (3.1, 1, 0.5, 2), (5.0, 2, 1e-4, 2), (0.9, 1, 0.9, 3)],
)
def test_sampled_discrete_gaussians_agree_with_enumeration(adjacency, sigma, shift, rate, steps):
    """Two and three steps on a Poisson sample, under both adjacencies."""
    mechanism = hs.PoissonSampled(hs.DiscreteGaussian(sigma, shift), rate)
    accountant = hs.Accountant(adjacency).compose(mechanism, steps)
    laws = [discrete_law(sigma, shift, rate, kind) for kind in KINDS[adjacency]]
    top = steps * max(float(losses[masses > 1e-9].max()) for losses, masses in laws)
    sums = [
        (functools.reduce(np.add.outer, [losses] * steps).ravel(), product(*[masses] * steps))
        for losses, masses in laws
    ]
    for share in (0.01, 0.1, 0.4):
        eps = share * top
        exact = max(loss_delta(law, losses, eps) for losses, law in sums)
        if exact < 1e-40:
            continue
        encloses(accountant.delta_bracket(eps), exact, SLACK, wide=2e-3)
        if exact < 0.9:
            encloses(accountant.epsilon_bracket(exact), eps, 1e-9)


def laplace_law(r, rate, kind):
    """Return the law of losses of sampled Laplace noise of scale 1: beyond -r and r, where its loss is constant, are atoms."""
    above, below = moves(kind, r)

    def log_ratio(x, moved):
        return np.log1p(rate * np.expm1(np.abs(x) - np.abs(x - moved)))

    def loss(x):
        return log_ratio(x, above) - log_ratio(x, below)

    def log_density(x):
        return log_ratio(x, above) - np.abs(x) - math.log(2)

    # beyond the ends both densities are exponentials: the mass is the density at the end
    atoms = [(loss(x), np.exp(log_density(x))) for x in (-r, r)]
    return Law([Strand(log_density, loss, -r, 0.0), Strand(log_density, loss, 0.0, r)], atoms)


@pytest.mark.share(3)
@pytest.mark.parametrize("adjacency", ["add_or_remove", "replace"])
@pytest.mark.parametrize("engine", ["auto", "contour"])
@pytest.mark.parametrize(("scale", "rate"), [(0.3, 0.01), (1.0, 0.3), (7.0, 1e-4), (20.0, 0.9)])
def test_one_step_of_sampled_laplace_noise_agrees_with_an_integral(adjacency, engine, scale, rate):
    """The closed form and the contour have the integral over the line."""
    accountant = hs.Accountant(adjacency, engine=engine).compose(hs.PoissonSampled(hs.Laplace(scale), rate))
    laws = [laplace_law(1 / scale, rate, kind) for kind in KINDS[adjacency]]
    top = max(loss for law in laws for loss, _ in law.atoms)
    for share in (0.05, 0.37, 0.8):
        eps = float(share * top)
        encloses(accountant.delta_bracket(eps), max(one_step(law, np.array([eps]))[0] for law in laws), SLACK)


@pytest.mark.parametrize(("adjacency", "scale", "rate"), [("add_or_remove", 0.5, 0.2), ("replace", 2.0, 0.01)])
def test_two_steps_of_sampled_laplace_noise_agree_with_an_integral(adjacency, scale, rate):
    """Two steps: the integral of one over the losses of the other."""
    accountant = hs.Accountant(adjacency).compose(hs.PoissonSampled(hs.Laplace(scale), rate), 2)
    laws = [laplace_law(1 / scale, rate, kind) for kind in KINDS[adjacency]]
    top = max(loss for law in laws for loss, _ in law.atoms)
    for share in (1.2, 0.3):
        eps = float(share * top)
        encloses(accountant.delta_bracket(eps), max(two_steps(law, eps) for law in laws), 1e-8)


@pytest.mark.share(2)
@pytest.mark.parametrize(("sigma", "steps"), [(100.0, 2), (85.0, 5), (2.5, 12)])
def test_discrete_gaussians_agree_with_convolutions(sigma, steps):
    """The loss is a function of the sum of the outcomes, whose law is a convolution of positive masses."""
    masses = np.array(integer_laws.discrete_gaussian(sigma), float)
    reach = len(masses) // 2
    law = masses
    for _ in range(steps - 1):
        law = np.convolve(law, masses)
    sums = np.arange(len(law)) - steps * reach + steps  # of the outcomes under P, one moved by 1 each
    losses = (2 * sums - steps) / (2 * sigma**2)
    accountant = hs.Accountant().compose(hs.DiscreteGaussian(sigma), steps)
    for deviations in (0.5, 2.0, 4.0):
        eps = deviations * math.sqrt(steps) / sigma
        exact = loss_delta(law, losses, eps)
        encloses(accountant.delta_bracket(eps), exact, SLACK)
        encloses(accountant.epsilon_bracket(exact), eps, 1e-9)


def test_discrete_noise_of_one_outcome_has_its_loss():
    """With sigma = 1/1000 all steps have the loss 500000, up to e^-500000."""
    found = hs.Accountant().compose(hs.DiscreteGaussian(1e-3), 1000).epsilon_bracket(1e-5)
    exact = 5e8 + math.log1p(-1e-5)
    assert found.lower <= exact <= found.upper <= 1.001 * exact
    assert found.lower >= exact * (1 - 1e-9)


def test_discrete_noise_with_many_outcomes_is_that_of_gaussian_noise():
    """Sigma = 1e5: the losses' lattice is 1e-10 of their spread apart."""
    found = hs.Accountant().compose(hs.DiscreteGaussian(1e5, 10**9), 1000).epsilon_bracket(1e-5)
    gaussian = hs.gdp_epsilon(1e4 * math.sqrt(1000), 1e-5)
    encloses(found, gaussian, 1e-9)
    assert found.upper - found.lower <= 1e-8 * gaussian


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("adjacency", "mechanism", "steps", "delta"),
    [
        ("replace", hs.PoissonSampled(hs.Laplace(9.98), 8.3e-5), 59410, 4.7e-9),
        ("add_or_remove", hs.PoissonSampled(hs.Laplace(2.0), 0.01), 1000, 1e-6),
        ("replace", hs.PoissonSampled(hs.DiscreteGaussian(2.0), 0.01), 1000, 1e-6),
        ("add_or_remove", hs.PoissonSampled(hs.DiscreteGaussian(6.0, 2), 0.05), 5000, 1e-8),
        ("add_or_remove", hs.DiscreteGaussian(16.4, 2), 39970, 1.4e-5),
    ],
)
def test_both_engines_agree_on_many_steps(adjacency, mechanism, steps, delta):
    """The contour's bracket is narrow, and meets that of discretised losses, which shares no code with it."""
    sharp = hs.Accountant(adjacency).compose(mechanism, steps).epsilon_bracket(delta)
    rough = hs.Accountant(adjacency, engine="pld").compose(mechanism, steps).epsilon_bracket(delta)
    assert sharp.upper - sharp.lower <= 2e-6 * sharp.upper
    assert rough.lower <= sharp.upper
    assert sharp.lower <= rough.upper


def test_fixed_size_laplace_is_charged_for_its_pairs_alone():
    """The ends are those of two pairs, each narrow: one that dominates, one that is attained."""
    mechanism = hs.FixedSizeSampled(hs.Laplace(6.0547), 100698, 114, replacement=False)
    found = hs.Accountant("replace").compose(mechanism, 65988).epsilon_bracket(7.4e-4)
    attained = hs.Accountant().compose(hs.PoissonSampled(hs.Laplace(6.0547 / 2), 114 / 100698), 65988)
    lower = attained.epsilon_bracket(7.4e-4)
    assert found.lower == pytest.approx(lower.lower, rel=2e-6)
    assert found.lower <= found.upper <= 1.2 * found.lower
