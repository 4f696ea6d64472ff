"""Error against epsilon between silos that trust nobody: Lowy and Razaviyayn 2023, Figures 4 to 9, on data that scikit-learn ships.

Noisy minibatch SGD, its accelerated form and local SGD, with and without noise. The noise is what the accountant asks for, so that epsilon on the
axis is certified for every record of every silo at delta = 1/n^2, n the records of a silo.

What is as in Appendix I: 80 % of each silo train and the rest tests, split afresh for every repetition; batches of n sqrt(epsilon)/(2 sqrt(R)), and as
many local steps; all or M of N silos in a round; the step size (and the clip norm of regressions) that has the least mean training error over 2 runs,
chosen without privacy, for each algorithm and epsilon. Bars are the 5th to 95th percentile over the splits.

What differs from the printed figures:

- Odd against even on scikit-learn's digits in place of MNIST: 25 silos, one for each pair of an even and an odd digit. An
  image is in one silo only, so that a silo trains on about 56 records, not 1238, and needs larger epsilons.
- scikit-learn's diabetes data in place of insurance charges, sorted by the target; the digits 0 to 6, each a silo of its own, in place of seven
  levels of obesity. The paper's text does not say which N and M its Figures 5, 8 and 9 have; those here are our choice.
- Noise by the accountant, for batches without replacement, not by the printed heuristic, which is no certificate.
- 5 splits, not 20, with 2 runs for each step size, not 3, and 6 step sizes and 3 clip norms, not 10 and 5, over ranges that contain the best ones here.
- Minibatch SGD ends with the mean of its models, as Algorithm 2 has it; the experiments took the last one. Gradients of classifiers are clipped.
- The accelerated form is not in the printed figures.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hockeystick import isrl, simulate
from hockeystick.figures import style
from hockeystick.figures.table import Table, stacked
from hockeystick.simulate.problem.data import shipped, standardised

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from hockeystick.simulate.problem.problem import LossName


PAIRS = [(even, odd) for even in range(0, 10, 2) for odd in range(1, 10, 2)]
TEST_SHARE = 5  # one in so many records of each silo is kept for testing

Silos = list["NDArray[np.int64]"]
Split = tuple[simulate.Problem, simulate.Problem]


class Study(NamedTuple):
    """What is learnt, from which split, and what is measured."""

    title: str
    split: Callable[[int], Split]  # from a seed
    regression: bool
    label: str
    clip_norms: tuple[float, ...]
    budgets: tuple[float, ...]
    rounds: int
    steps: tuple[float, float]  # logarithms of the least and greatest step size of minibatch SGD
    local_steps: tuple[float, float]  # of local SGD

    def errors(self, result: simulate.Result, problem: simulate.Problem) -> NDArray[np.float64]:
        """Return the error of every run's last model, where 1 is that of the mean label for a regression."""
        if not self.regression:
            return np.asarray(1 - result.accuracy(problem)[-1])
        spread = np.mean((problem.data.labels - result.problem.data.labels.mean()) ** 2)
        return np.asarray(np.sqrt(2 * result.loss(problem)[-1] / spread))


def digit_pairs() -> Study:
    """Return odd against even digits in 25 silos, one for each pair of an even and an odd digit."""

    def split(seed: int) -> Split:
        images, digit = shipped("digits")
        rng = np.random.default_rng(seed)
        parts = {d: np.array_split(rng.permutation(np.flatnonzero(digit == d)), 5) for d in range(10)}
        silos = [rng.permutation(np.concatenate([parts[e][o // 2], parts[o][e // 2]])) for e, o in PAIRS]
        return _problems("logistic", images, digit % 2 == 0, silos)

    budgets = (0.75, 1.5, 3.0, 6.0, 12.0, 18.0)
    title = "odd or even digits (for MNIST), N = 25"
    return Study(title, split, False, "test error", (0.5,), budgets, 35, (-2.0, 2.0), (-4.0, 1.0))


def digit_classes() -> Study:
    """Return the digits 0 to 6, each a silo of its own."""

    def split(seed: int) -> Split:
        images, digit = shipped("digits")
        rng = np.random.default_rng(seed)
        silos = [rng.permutation(np.flatnonzero(digit == d)) for d in range(7)]
        return _problems("softmax", images, digit, silos)

    title = "digits 0 to 6 (for obesity levels), N = 7, a class a silo"
    return Study(title, split, False, "test error", (1.0,), (0.5, 1.0, 3.0, 6.0, 9.0), 50, (-3.0, 2.0), (-5.0, 1.0))


def diabetes(num_silos: int) -> Study:
    """Return a regression in silos that are sorted by the target."""

    def split(seed: int) -> Split:
        features, target = shipped("diabetes")
        rng = np.random.default_rng(seed)
        size = -(-len(target) // num_silos)
        order = np.argsort(target, kind="stable")
        silos = [rng.permutation(order[start : start + size]) for start in range(0, len(order), size)]
        return _problems("least_squares", features, (target - target.mean()) / target.std(), silos)

    title = f"diabetes (for insurance), N = {num_silos}"
    budgets = (0.125, 0.25, 0.5, 1.0, 2.0, 3.0)
    label = "relative root mean square error"
    return Study(title, split, True, label, (0.3, 1.0, 3.0), budgets, 35, (-4.0, 2.0), (-6.0, 1.0))


def _problems(loss: LossName, features: Any, labels: Any, silos: Silos) -> Split:
    """Return training silos, of equal size as the paper's, and pooled test records, with features scaled by the former."""
    kept = min(len(silo) for silo in silos)
    kept -= kept // TEST_SHARE
    train = np.concatenate([silo[:kept] for silo in silos])
    test = np.concatenate([silo[kept : kept + max(1, kept // (TEST_SHARE - 1))] for silo in silos])
    rows, target = standardised(features, train), np.asarray(labels, dtype=np.float64)
    classes = 7 if loss == "softmax" else None
    shared: dict[str, Any] = {"num_classes": classes, "feature_bound": 1.0}
    problem = simulate.Problem(loss, rows[train], target[train], [kept] * len(silos), **shared)
    return problem, simulate.Problem(loss, rows[test], target[test], **shared)


SPLITS, REPEATS, STEPS = 5, 2, 6
PANELS: dict[int, tuple[tuple[Callable[[], Study], int], ...]] = {  # figure: its panels, studies and silos in a round
    4: ((digit_pairs, 25), (digit_pairs, 12)),
    5: ((lambda: diabetes(10), 10), (lambda: diabetes(10), 5)),
    6: ((digit_classes, 7), (digit_classes, 3)),
    7: ((digit_pairs, 18),),
    8: ((lambda: diabetes(3), 3), (lambda: diabetes(3), 2)),
    9: ((lambda: diabetes(5), 3), (lambda: diabetes(15), 8)),
}
LOOKS = {  # colour, line and marker
    "minibatch SGD": (style.COLOURS[0], "-", "o"),
    "accelerated": (style.COLOURS[2], "-", "^"),
    "local SGD": (style.COLOURS[1], "-", "s"),
    "minibatch SGD, no privacy": (style.COLOURS[0], ":", None),
    "local SGD, no privacy": (style.COLOURS[1], ":", None),
}
_LOGGER = logging.getLogger(__name__)


class Cell(NamedTuple):
    """One point of a curve: what is trained, on how many silos, how privately."""

    study: Study
    silos: int
    in_round: int
    records: int  # of a silo
    epsilon: float
    private: bool

    @property
    def batch(self) -> int:
        """The batch size of the paper, at least 1 and at most all records."""
        size = self.records * math.sqrt(self.epsilon) / (2 * math.sqrt(self.study.rounds))
        return max(1, min(self.records, round(size)))

    def noise(self, clip: float, batch: int, releases: int) -> float:
        """Return the least certified noise, for an adversary who sees every message of a silo."""
        if not self.private:
            return 0.0
        return isrl.noisy_mb_sgd_sigma(
            lipschitz=clip,
            num_records=self.records,
            batch_size=batch,
            rounds=releases,
            epsilon=self.epsilon,
            delta=1 / self.records**2,
        )


def algorithm(cell: Cell, name: str, clip: float, step: float) -> simulate.Algorithm:
    """Return noisy minibatch SGD, its accelerated form with steps of that mean, or local SGD with as many single records a round as a batch has."""
    rounds, everyone = cell.study.rounds, cell.in_round == cell.silos
    clients = simulate.EveryRound() if everyone else simulate.FixedSize(cell.in_round)
    settings: dict[str, Any] = {"clip_norm": clip, "clients": clients}
    if name.startswith("local"):
        noise = cell.noise(clip, 1, rounds * cell.batch)
        return simulate.LocalSGD(learning_rate=step, local_steps=cell.batch, noise_std=noise, **settings)
    settings |= {"noise_std": cell.noise(clip, cell.batch, rounds), "records": simulate.FixedSize(cell.batch)}
    if name == "accelerated":
        return simulate.AcceleratedMinibatchSGD(scale=rounds / (4 * step), **settings)
    return simulate.NoisyMinibatchSGD(learning_rate=step, **settings)


def candidates(cell: Cell, name: str) -> Iterator[simulate.Algorithm]:
    """Yield an algorithm with each step size and clip norm of the grid; without privacy also without clipping."""
    study = cell.study
    steps = np.exp(np.linspace(*(study.local_steps if name.startswith("local") else study.steps), STEPS))
    for clip in study.clip_norms if cell.private else (*study.clip_norms, math.inf):
        for step in steps.tolist():
            yield algorithm(cell, name, clip, step)


def best_of(cell: Cell, name: str, split: tuple[simulate.Problem, simulate.Problem], seed: int) -> tuple[float, float]:
    """Return mean training and test error of the candidate with the least mean training error; check what it spends."""
    train, test = split
    study = cell.study
    found: list[tuple[float, int, simulate.Result]] = []
    for algorithm in candidates(cell, name):
        result = simulate.run(
            algorithm, train, rounds=study.rounds, seed=seed, num_runs=REPEATS, record_every=study.rounds
        )
        training = float(np.mean(study.errors(result, train)))
        found.append((training if math.isfinite(training) else math.inf, len(found), result))
    training, _, result = min(found)
    if cell.private:
        spent = float(result.epsilon(1 / cell.records**2)[-1])
        if spent > cell.epsilon * (1 + 1e-9):
            raise ValueError(f"{name} spends epsilon {spent}, more than {cell.epsilon}")
    return training, float(np.mean(study.errors(result, test)))


def compute(number: int, runs: int = SPLITS) -> Table:
    """Return training and test errors of every panel, algorithm, epsilon and split."""
    parts: list[dict[str, Any]] = []
    for make, in_round in PANELS[number]:
        study = make()
        splits = [study.split(seed) for seed in range(1, runs + 1)]
        for epsilon in study.budgets:
            _LOGGER.info("%s, M = %d: epsilon = %g", study.title, in_round, epsilon)
            for name in LOOKS:
                for seed, split in enumerate(splits, start=1):
                    sizes = split[0].sizes or ()
                    cell = Cell(study, len(sizes), in_round, min(sizes), epsilon, "no privacy" not in name)
                    training, test = best_of(cell, name, split, seed)
                    row = {
                        "panel": f"{study.title}, M = {in_round}",
                        "algorithm": name,
                        "epsilon": epsilon,
                        "split": seed,
                    }
                    row |= {"error": study.label, "batch_size": cell.batch}
                    parts.append({**row, "training_error": training, "test_error": test})
    title = f"Error against certified privacy between silos (Lowy, Razaviyayn 2023, Figure {number}), on other data"
    return stacked(title, {"epsilon": "nats, upper bound", "batch_size": "records"}, parts)


def draw(table: Table) -> Figure:
    """Draw the test errors of every panel."""
    panels = list(table.groups("panel"))
    figure = style.empty_figure(2.0 + 6.0 * len(panels), 5.4, table)
    for axes, (title, rows) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        axes.set_title(title)
        _draw_panel(axes, rows)
    return figure


def _draw_panel(axes: Axes, rows: Table) -> None:
    budgets = np.unique(rows["epsilon"])
    for (name, curve), shift in zip(rows.groups("algorithm"), (0.97, 1.0, 1.03, 1.0, 1.0), strict=True):
        colour, line, marker = LOOKS[name]
        errors = [points["test_error"] for _, points in curve.groups("epsilon")]
        low, high = np.quantile(errors, (0.05, 0.95), axis=1)
        mean = np.mean(errors, axis=1)
        bars = np.maximum((mean - low, high - mean), 0.0)
        axes.errorbar(budgets * shift, mean, bars, fmt=line, color=colour, marker=marker, capsize=3, label=name)
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
    axes.minorticks_off()
    axes.set_xlabel(r"certified $\epsilon$ of every record")
    axes.set_ylabel(str(rows["error"][0]))
    axes.set_ylim(bottom=0.0, top=min(axes.get_ylim()[1], 1.5))
    axes.legend()
