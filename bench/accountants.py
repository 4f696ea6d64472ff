"""The accountants that peers.py compares: the same questions put to each, by the shortest way that its users have.

Peers are optional: dp-accounting and prv-accountant come with the extra `peers`, Opacus by `pip install --no-deps
opacus==1.6.0`. Its accountants need no torch once `opacus.optimizers`, of which they use one name in an annotation, is
replaced by an empty module. Every question takes `nudge`, a relative change of the noise of about 1e-9 that is new in each
round: nobody may answer from a cache what is asked for the first time.
"""

import importlib.util
import math
import sys
import types
from functools import cache

import expressions
import numpy as np

import hockeystick as hs

CASES = {
    "A": (1.0, 0.01, 1000, 1e-5),
    "B": (0.8, 256 / 60000, 14040, 1e-5),
    "C": (0.7, 1e-3, 100_000, 1e-5),
}
GRID = [
    (float(sigma), q, steps, 1e-5)
    for sigma in np.linspace(0.5, 4.0, 16)
    for steps in (10, 100, 1000, 10_000)
    for q in (0.001, 0.01, 0.1)
]
PAIRS = 1_000_000  # of noise multiplier and eps
GDP_STEPS, GDP_NOISE = 100, 10.0  # mu = 1
GAUSSIANS, LAPLACES, MIXED_DELTA = np.linspace(20.0, 60.0, 1000), np.linspace(20.0, 60.0, 100), 1e-6
BUDGET, BUDGET_DELTA, BUDGET_RATE, BUDGET_STEPS = 2.0, 1e-6, 0.01, 5000
WARM_CELLS = 10_000


@cache
def pairs():
    """Return noise multipliers from 0.3 to 30 and eps from 1e-3 to 10, logarithmically, at random."""
    rng = np.random.default_rng(0)
    sigma, eps = (np.exp(rng.uniform(np.log(low), np.log(high), PAIRS)) for low, high in ((0.3, 30.0), (1e-3, 10.0)))
    return sigma, eps


class Accountant:
    """What all have: a name, and a package that may not be installed."""

    name: str
    package: str

    @classmethod
    def available(cls):
        return importlib.util.find_spec(cls.package) is not None


class SciPy(Accountant):
    """The expressions that one writes with SciPy, where there is a closed form."""

    name, package = "SciPy", "scipy"

    @staticmethod
    def deltas(nudge):
        sigma, eps = pairs()
        return expressions.theta(eps, (1 + nudge) / sigma)

    @staticmethod
    def gdp_delta(eps):
        return float(expressions.theta(np.asarray(eps), np.asarray(math.sqrt(GDP_STEPS) / GDP_NOISE)))


class HockeyStick(Accountant):
    """Ours, on one thread: certified upper ends, of both directions."""

    name = package = "hockeystick"

    @staticmethod
    def deltas(nudge):
        sigma, eps = pairs()
        return np.asarray(hs.theta(eps, (1 + nudge) / sigma))

    @staticmethod
    def gdp_delta(eps):
        return float(hs.Accountant().compose(hs.Gaussian(GDP_NOISE), GDP_STEPS).delta(eps))

    @staticmethod
    def epsilon(case, nudge):
        sigma, q, steps, delta = case
        return float(hs.dpsgd_epsilon(sigma * (1 + nudge), q, steps, delta, num_threads=1))

    @staticmethod
    def grid(cells, nudge):
        sigma, q, steps, delta = np.array(list(cells)).T
        return np.asarray(hs.dpsgd_epsilon(sigma * (1 + nudge), q, steps, delta, num_threads=1))

    @staticmethod
    def mixed(nudge):
        accountant = hs.Accountant()
        for sigma in GAUSSIANS.tolist():
            accountant.compose(hs.Gaussian(sigma * (1 + nudge)))
        for scale in LAPLACES.tolist():
            accountant.compose(hs.Laplace(scale * (1 + nudge)))
        return float(accountant.epsilon(MIXED_DELTA))

    @staticmethod
    def noise(nudge):
        target = BUDGET * (1 + nudge)
        return float(hs.dpsgd_noise_multiplier(BUDGET_RATE, BUDGET_STEPS, target, BUDGET_DELTA, num_threads=1))

    @staticmethod
    def warm_delta(steps, eps):
        return np.asarray(hs.dpsgd_delta(1.0, 0.01, steps, eps, num_threads=1))

    @staticmethod
    def warm_epsilon(steps, delta):
        return np.asarray(hs.dpsgd_epsilon(1.0, 0.01, steps, delta, num_threads=1))


class DpAccounting(Accountant):
    """dp_accounting's PLD accountant with its default interval of 1e-4: an upper bound in exact arithmetic."""

    name = package = "dp_accounting"

    @staticmethod
    def gdp_delta(eps):
        from dp_accounting.pld import privacy_loss_distribution

        step = privacy_loss_distribution.from_gaussian_mechanism(GDP_NOISE)
        return float(step.self_compose(GDP_STEPS).get_delta_for_epsilon(eps))

    @staticmethod
    def epsilon(case, nudge):
        import dp_accounting as dp

        sigma, q, steps, delta = case
        event = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma * (1 + nudge)))
        return float(dp.pld.PLDAccountant().compose(event, steps).get_epsilon(delta))

    @staticmethod
    def mixed(nudge):
        import dp_accounting as dp

        accountant = dp.pld.PLDAccountant()
        for sigma in GAUSSIANS.tolist():
            accountant.compose(dp.GaussianDpEvent(sigma * (1 + nudge)))
        for scale in LAPLACES.tolist():
            accountant.compose(dp.LaplaceDpEvent(scale * (1 + nudge)))
        return float(accountant.get_epsilon(MIXED_DELTA))

    @staticmethod
    def noise(nudge):
        import dp_accounting as dp

        def event(sigma):
            step = dp.PoissonSampledDpEvent(BUDGET_RATE, dp.GaussianDpEvent(sigma))
            return dp.SelfComposedDpEvent(step, BUDGET_STEPS)

        target = BUDGET * (1 + nudge)
        return float(dp.calibrate_dp_mechanism(dp.pld.PLDAccountant, event, target, BUDGET_DELTA))


class OpacusPRV(Accountant):
    """Opacus' PRV accountant with its default error of 0.01: the upper end, of one direction."""

    name, package = "opacus PRV", "opacus"

    @classmethod
    def available(cls):
        spec = importlib.util.find_spec(cls.package)
        if spec is None or not spec.submodule_search_locations:
            return False
        if importlib.util.find_spec("torch") is None and "opacus" not in sys.modules:
            package, optimizers = types.ModuleType("opacus"), types.ModuleType("opacus.optimizers")
            package.__path__ = list(spec.submodule_search_locations)
            vars(optimizers)["DPOptimizer"] = object
            sys.modules |= {"opacus": package, "opacus.optimizers": optimizers}
        return True

    @staticmethod
    def deltas(nudge):
        from opacus.accountants.analysis import gdp

        sigma, eps = pairs()
        return np.asarray(gdp.delta_eps_mu(eps=eps, mu=(1 + nudge) / sigma))

    @staticmethod
    def epsilon(case, nudge):
        from opacus.accountants import PRVAccountant

        sigma, q, steps, delta = case
        accountant = PRVAccountant()
        accountant.history = [(sigma * (1 + nudge), q, steps)]
        return float(accountant.get_epsilon(delta=delta))

    @staticmethod
    def noise(nudge):
        from opacus.accountants.utils import get_noise_multiplier

        budget = {"target_epsilon": BUDGET * (1 + nudge), "target_delta": BUDGET_DELTA}
        training = {"sample_rate": BUDGET_RATE, "steps": BUDGET_STEPS}
        return float(get_noise_multiplier(**budget, **training, accountant="prv"))


class PRV(Accountant):
    """prv_accountant with an error of 0.1, the default of its own calibration: the estimate, of one direction."""

    name = package = "prv_accountant"

    @staticmethod
    def gdp_delta(eps):
        from prv_accountant import GaussianMechanism, PRVAccountant

        accountant = PRVAccountant([GaussianMechanism(GDP_NOISE)], 0.1, 1e-9, [GDP_STEPS])
        return float(accountant.compute_delta(eps, [GDP_STEPS])[1])

    @staticmethod
    def epsilon(case, nudge):
        from prv_accountant.dpsgd import DPSGDAccountant

        sigma, q, steps, delta = case
        errors = {"eps_error": 0.1, "delta_error": delta / 1000}
        accountant = DPSGDAccountant(
            noise_multiplier=sigma * (1 + nudge), sampling_probability=q, max_steps=steps, **errors
        )
        return float(accountant.compute_epsilon(delta=delta, num_steps=steps)[1])

    @staticmethod
    def mixed(nudge):
        from prv_accountant import GaussianMechanism, LaplaceMechanism, PRVAccountant

        steps = [GaussianMechanism(sigma * (1 + nudge)) for sigma in GAUSSIANS.tolist()]
        steps += [LaplaceMechanism(1 / (scale * (1 + nudge))) for scale in LAPLACES.tolist()]
        accountant = PRVAccountant(steps, eps_error=0.1, delta_error=MIXED_DELTA / 1000)
        return float(accountant.compute_epsilon(MIXED_DELTA, [1] * len(steps))[1])

    @staticmethod
    def noise(nudge):
        from prv_accountant.dpsgd import find_noise_multiplier

        target = BUDGET * (1 + nudge)
        return float(find_noise_multiplier(BUDGET_RATE, BUDGET_STEPS, target, BUDGET_DELTA, eps_error=0.1))


ALL = (HockeyStick, SciPy, DpAccounting, OpacusPRV, PRV)


def warm_cells(seed=0):
    """Return steps from 1 to 1e5, eps from 0.01 to 8 and delta from 1e-12 to 0.3, logarithmically, at random."""
    rng = np.random.default_rng(seed)
    ends = ((1.0, 1e5), (0.01, 8.0), (1e-12, 0.3))
    steps, eps, delta = (np.exp(rng.uniform(np.log(low), np.log(high), WARM_CELLS)) for low, high in ends)
    return np.floor(steps), eps, delta
