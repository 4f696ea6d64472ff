r"""A menu of steps, from which what was released may choose each next one: no strategy leaks more than what is computed here.

Let step i of a menu have a pair (A_i, B_i) that dominates it, whatever was released before, and a cost c_i >= 1, an integer. Somebody runs steps
whose costs sum to at most u; which one comes next, its query, and whether any comes, depends on what was released before. With H_t(P||Q), the
integral of (p - t q)_+, let W_0(t) = max(1 - t, 0) and

    W_u(t) = max(W_{u-1}(t), max over i with c_i <= u of E_{A_i} W_{u-c_i}(t/r_i)),    r_i = dA_i/dB_i.

Then H_t(P||Q) <= W_u(t) for the laws P and Q of all releases and every t >= 0. If the A_i and B_i are laws that steps can have, some strategy attains it.

Proof, by induction on u. Who stops releases what does not depend on the data: H_t = W_0(t) <= W_u(t). Else let i be the first step, y its release, of the laws
P_i and Q_i, and r = dP_i/dQ_i. Given y, what follows costs at most u - c_i, so that

    H_t(P||Q) = E_{y ~ P_i} H_{t/r(y)}(P | y || Q | y) <= E_{P_i} W_{u-c_i}(t/r) = E_{Q_i} g(r),    g(x) = x W_{u-c_i}(t/x).

W_0 is convex, means and maxima of convex functions are, and so is the perspective g of one: E g(r) is an f-divergence, which is no smaller for a pair that
dominates (P_i, Q_i). (Regehr, Hu, Leeman, Manurangsi, Tholoniat and Lecuyer 2026, arXiv 2602.15815, ask the same of any menu, and show that no filter can charge for
the worst composition alone unless the menu is totally ordered; for Gaussian noise it is, and W_u is the composition.)

The grid. Each pair is raised to one whose losses are multiples of h (`on_grid`), so that W at the points e^{nh} follows from W at such points: a convolution. Left of
the grid W is at most 1, right of it at most its last value, as it falls. It is computed as e^{theta nh} W, for which transforms err relatively; their error is
added in every level. epsilon is a multiple of h.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import OPEN_PROBABILITY, Array, positive_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick._core import Pair
from hockeystick._numeric.rounding import UP
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.state import dump_steps, load_runs
from hockeystick.budgets.spending import Filter
from hockeystick.mechanisms.base import (
    Adjacency,
    Mechanism,
    highest_loss,
    require_mechanism,
    require_pairs,
    upper_delta,
)

__all__ = ["MenuFilter"]

MOST_STEPS = 20_000  # that fit alone, and grid points of a step
MOST_UNEQUAL = 2_000  # times as many of one step as of another
WASTE = 0.004  # of the budget, to rounding costs to integers
FINENESS, OF_STEPS = 0.15, 1000  # the grid's step, in standard deviations of a loss, if so many fit; finer if fewer do
KEPT = 32  # epsilons up to the budget's that are kept with their deltas
NOTHING = 1e-12  # a loss that any grid has
REACH = 4.0  # of the grid, beyond losses of 0 and epsilon
EXPONENTS = 250.0  # of e^{theta nh}, at most, but for the reach
LOWEST = 15.0  # losses below -LOWEST/theta count as that; nor does the grid reach further
ROUNDING = 1e-11  # of sums of MOST_STEPS positive terms, relative
LEVEL_ROUNDING = 2e-13  # of exponentials of EXPONENTS, twice
MOST_WORK, MOST_KEPT = 2e9, 3e7  # points of transforms: a minute or two, and half a gigabyte
TRANSFORM_ROUNDING = 1e-14  # of a convolution of n doubles by transforms, for each factor 2 of n; of the norms' product


class GridStep(NamedTuple):
    """One direction of a step: masses of P at the losses (first + k) h, and at an infinite one."""

    first: int
    masses: Array
    infinite: float

    @property
    def losses(self) -> NDArray[np.int64]:
        """The finite losses, in units of h."""
        return np.arange(self.first, self.first + self.masses.size)


def on_grid(pair: Pair, *, forward: bool, h: float) -> GridStep:
    """Return masses at multiples of h whose curve is at least the pair's at every multiple.

    Between two of them the curve of the masses is linear in e^epsilon, and the pair's is convex (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). Below
    the lowest loss, the masses' is linear up to its value at 0, which is at least 1. The masses are second differences; whatever they lack is added as a factor.
    """
    first, last = math.floor(-highest_loss(pair, not forward) / h), math.ceil(highest_loss(pair, forward) / h)
    if last - first > MOST_STEPS:
        raise ValueError(
            f"menu must have steps whose losses are more alike: {last - first} points of a grid are needed for one, more than {MOST_STEPS}"
        )
    points = (math.nextafter(h * n, -math.inf) for n in range(first, last + 1))
    curve = np.array([upper_delta(pair, forward, point) for point in points])
    decay, fall = math.exp(-h), -math.expm1(-h)
    slopes = np.append(np.maximum(-np.diff(curve), 0.0) / fall, 0.0)
    above = np.maximum(slopes[:-1] - decay * slopes[1:], 0.0)
    masses = np.append(max(1.0 - curve[-1] - above.sum(), 0.0), above)
    own_slopes = np.array([*accumulate(masses[:0:-1], lambda slope, mass: mass + decay * slope)])  # from the top down
    own = curve[-1] + np.append(fall * np.cumsum(own_slopes)[::-1], 0.0)
    lack = 1.0 + ROUNDING + max(0.0, float(np.max(np.where(curve > 0.0, curve / np.maximum(own, 1e-300), 1.0))) - 1.0)
    return GridStep(first, masses * lack, float(curve[-1]) * lack)


def _step_of_grid(pair: Pair, fineness: float) -> float:
    """Return the step of a grid, in this many standard deviations of the loss."""
    h = (highest_loss(pair, forward=True) + highest_loss(pair, forward=False)) / 500.0
    while h > NOTHING:
        step = on_grid(pair, forward=True, h=h)
        finer = fineness * h * math.sqrt(float(step.masses @ np.square(step.losses, dtype=float)))
        if finer > 0.8 * h:
            return finer
        h = finer
    return math.inf


class Strategies:
    """The largest divergence of all strategies, level by level of what they may spend."""

    def __init__(self, steps: Sequence[GridStep], counts: Sequence[int], h: float, aim: int) -> None:
        from scipy import fft  # noqa: PLC0415 - SciPy is imported when first needed

        tilt = _tilt(steps, counts, h, aim)
        self.fft, self.h = fft, h
        self.steps = [_shortened(step, -math.ceil(LOWEST / (tilt * h))) for step in steps]
        left, right = (math.ceil(min(REACH, reach / tilt) / h) for reach in (2.0 * LOWEST, LOWEST))
        self.points, self.zero = np.arange(-left, aim + right + 1), left
        self.before = max(0, *(step.losses[-1] for step in self.steps))  # left and right of the points
        self.behind = max(0, *(-step.first for step in self.steps))
        wide = np.arange(-left - self.before, aim + right + self.behind + 1)
        self.size = fft.next_fast_len(wide.size + self.before + self.behind, real=True)
        self.raised, self.lowered = (
            np.exp(sign * tilt * h * (at - aim)) for sign, at in ((1, wide), (-1, self.points))
        )
        self.kernels, self.errors = [], []
        for step in self.steps:
            kernel, tilted = np.zeros(self.size), step.masses * np.exp(tilt * h * step.losses)
            kernel[step.losses % self.size] = tilted
            self.kernels.append(fft.rfft(kernel))
            self.errors.append(TRANSFORM_ROUNDING * math.log2(self.size) * float(tilted.sum()))

    def run(self, costs: Sequence[int], aim: int, delta: float, most: int) -> tuple[int, Array]:
        """Return the last level at which W is at most delta at the point `aim`, up to the most, and W there from 0 on."""
        work, memory = most * (1 + len(costs)) * self.size, max(costs) * self.size
        if work > MOST_WORK or memory > MOST_KEPT:
            raise ValueError(
                f"menu must have steps that are larger or more alike: {most} levels of {self.size} points are too many"
            )
        level, reached = 0, -np.expm1(np.minimum(self.h * self.points, 0.0))
        kept = {0: self._transformed(reached)}
        while level < most:
            new = reached
            for number, cost in enumerate(costs):
                if cost <= level + 1:
                    new = np.maximum(new, self._after(number, *kept[level + 1 - cost]))
            new = np.minimum.accumulate(np.minimum(new, 1.0))
            if not new[self.zero + aim] <= delta:
                break
            level, reached = level + 1, new
            kept[level] = self._transformed(reached)
            kept.pop(level - max(costs), None)
        return level, reached[self.zero :]

    def _transformed(self, values: Array) -> tuple[Array, float]:
        wide = np.concatenate([np.ones(self.before), values, np.full(self.behind, values[-1])]) * self.raised
        return self.fft.rfft(wide, self.size), float(np.linalg.norm(wide))

    def _after(self, number: int, transform: Array, norm: float) -> Array:
        """Return what one step and then the strategies of a level leak."""
        error, infinite = self.errors[number] * norm, self.steps[number].infinite
        sums: Array = self.fft.irfft(self.kernels[number] * transform, self.size)[self.before :][: self.points.size]
        return ((sums + error) * self.lowered + infinite) * (1.0 + LEVEL_ROUNDING)


def _tilt(steps: Sequence[GridStep], counts: Sequence[int], h: float, aim: int) -> float:
    """Return the theta at which Chernoff's bound of the whole budget, spent on the worst step, is smallest; any is sound."""
    largest = EXPONENTS / (h * (aim + max(step.masses.size for step in steps)))
    tilts = np.geomspace(1e-4 * largest, largest, 300)[:, np.newaxis]
    moments = [np.log(np.exp(tilts * h * step.losses) @ step.masses) for step in steps]
    bounds = np.max([count * moment for count, moment in zip(counts, moments, strict=True)], axis=0)
    return float(tilts[np.argmin(bounds - tilts[:, 0] * h * aim), 0])


def _shortened(step: GridStep, lowest: int) -> GridStep:
    """Return a step whose smallest losses are raised: W is not known far to the right."""
    if (cut := lowest - step.first) <= 0:
        return step
    return GridStep(
        lowest, np.append(step.masses[: cut + 1].sum() * (1.0 + ROUNDING), step.masses[cut + 1 :]), step.infinite
    )


def _costs(counts: Sequence[int]) -> tuple[int, list[int]]:
    """Return a budget, and integer costs by which each step fits about as often as alone."""
    most = max(counts)
    budgets = range(most, max(4 * most, 1000) + 1)
    wastes = {budget: max(-(-budget // count) * count / budget for count in counts) - 1.0 for budget in budgets}
    budget = next((budget for budget, waste in wastes.items() if waste <= WASTE), min(wastes, key=wastes.__getitem__))
    return budget, [-(-budget // count) for count in counts]


class Prices(NamedTuple):
    """What each step of a menu costs, of how many units, and some epsilons with the deltas of all that these pay for."""

    costs: dict[Mechanism, int]
    units: int
    curve: list[tuple[float, float]]


@lru_cache(maxsize=16)
def _prices(menu: tuple[Mechanism, ...], epsilon: float, delta: float, adjacency: Adjacency) -> Prices:
    counts = [_alone(mechanism, epsilon, delta, adjacency) for mechanism in menu]
    if max(counts) > MOST_UNEQUAL * min(counts):
        raise ValueError(
            f"menu must have no step that costs more than {MOST_UNEQUAL} times another, not steps that fit {shown(counts)} times"
        )
    units, costs = _costs(counts)
    pairs = [mechanism._pair(adjacency) for mechanism in menu]
    fineness = FINENESS * math.sqrt(min(1.0, max(counts) / OF_STEPS))
    aim = max(1, math.ceil(epsilon / min(_step_of_grid(pair, fineness) for pair in pairs)))
    h, curves = math.nextafter(epsilon / aim, 0.0), []  # so that the aim's multiple of h is at most epsilon
    most = 2 * units  # strategies may leak less than the worst step alone
    for forward in (True,) if all(pair.symmetric for pair in pairs) else (True, False):
        steps = [on_grid(pair, forward=forward, h=h) for pair in pairs]
        most, curve = Strategies(steps, counts, h, aim).run(costs, aim, delta, most)
        curves.append(curve)
    if most < min(costs):
        raise ValueError(f"epsilon and delta must leave more than rounding takes, not be {epsilon:g} and {delta:g}")
    every, deltas = max(1, aim // KEPT), np.max([curve[: min(map(len, curves))] for curve in curves], axis=0)
    kept = range(aim % every, min(2 * aim, deltas.size), every)  # the aim is one of them
    known = [(epsilon if point == aim else point * h * UP, float(deltas[point])) for point in kept]
    return Prices(dict(zip(menu, costs, strict=True)), most, known)


def _alone(mechanism: Mechanism, epsilon: float, delta: float, adjacency: Adjacency) -> int:
    """Return how often a step fits alone."""
    require_pairs(mechanism)
    if mechanism.status != "certified" or mechanism._added_failure() > 0.0:
        raise ValueError(f"menu must have certified steps that do not fail, not {shown(mechanism)}")
    count = Accountant(adjacency).remaining(mechanism, epsilon=epsilon, delta=delta)
    if not 1 <= count <= MOST_STEPS:
        raise ValueError(
            f"menu must have steps of which 1 to {MOST_STEPS} fit, not {shown(mechanism)}, of which {count} do"
        )
    return count


class MenuFilter(Filter):
    """An (epsilon, delta) budget for steps that are chosen from a menu by what was released before.

    Parameters
    ----------
    menu : sequence of Mechanism
        What may be run, any number of times: mechanisms with a dominating pair, certified.
    epsilon : float
        Positive and finite.
    delta : float
        In (0, 1).
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.

    Raises
    ------
    TypeError
        If `menu` is no sequence of mechanisms.
    ValueError
        If an argument is outside its domain, a step of the menu does not fit once or fits more than 20,000 times alone, one costs 2000 times another, or it has no
        certified pair.

    Notes
    -----
    The largest divergence of all strategies, by dynamic programming over what is left to spend; the theorem, and its proof, are in budgets/menu_filter.py, with
    their source. A menu of one step loses nothing against `Accountant` but the grid's width, nor does one of Gaussian noise; samples of several kinds lose 5 to 15 %
    of the steps, where `RenyiFilter` loses 15 to 65 %. It takes seconds to make, more for small steps.

    It assumes that `spend` comes before the release; and that which step comes next, and whether one does, depends on the data only through earlier releases (and
    coins of its own). A release that leaks less than a step of the menu may stand in its place: spend the one of the menu.

    Examples
    --------
    >>> import hockeystick as hs
    >>> coarse, fine = hs.PoissonSampled(hs.Gaussian(1.0), 0.02), hs.PoissonSampled(hs.Gaussian(1.0), 0.05)
    >>> budget = hs.budgets.MenuFilter([coarse, fine], epsilon=2.0, delta=1e-5)
    >>> _ = budget.spend(fine, 10)  # release, and choose the next one
    >>> budget.remaining(coarse) > 80
    True
    >>> budget.epsilon(1e-5)
    2.0
    """

    _SETTINGS = ("menu", "epsilon", "delta")

    def __init__(
        self, menu: Sequence[Mechanism], *, epsilon: float, delta: float, adjacency: Adjacency = "add_or_remove"
    ) -> None:
        self._target = positive_scalar("epsilon", epsilon)
        self._delta = scalar("delta", delta, *OPEN_PROBABILITY)
        if isinstance(menu, str) or not isinstance(menu, Sequence) or not menu:
            raise TypeError(f"menu must be a sequence of mechanisms, not {shown(menu)}")
        for mechanism in menu:
            require_mechanism(mechanism)
        one = Accountant(adjacency)
        self._prices = _prices(tuple(dict.fromkeys(menu)), self._target, self._delta, one.adjacency)
        super().__init__(one.adjacency, float(self._prices.units))

    def _settings(self) -> dict[str, Any]:
        return {
            "menu": dump_steps((mechanism, 1) for mechanism in self._prices.costs),
            "epsilon": self._target,
            "delta": self._delta,
        }

    @classmethod
    def _of_settings(cls, state: Mapping[str, Any]) -> Self:
        if not isinstance(state["menu"], list):
            raise ValueError(f"menu of state must be a list of mechanisms, not {shown(state['menu'])}")
        menu = [mechanism for mechanism, _ in load_runs(state["menu"])]
        return cls(menu, epsilon=state["epsilon"], delta=state["delta"], adjacency=state["adjacency"])

    def _used(self, spent: tuple[Fraction, ...]) -> str:
        return f"{int(spent[0])} of {self._prices.units} units of ({self._target:g}, {self._delta:g})-DP"

    def _epsilon(self, delta: float) -> float:
        return next((epsilon for epsilon, bound in self._prices.curve if bound <= delta), math.inf)

    def _find_cost(self, mechanism: Mechanism) -> tuple[float, ...]:
        if mechanism not in self._prices.costs:
            raise ValueError(f"mechanism must be one of the menu, not {shown(mechanism)}")
        return (float(self._prices.costs[mechanism]),)
