"""The data of Lowy and Razaviyayn 2023, Appendix I, as far as scikit-learn ships them: fresh splits into silos and test records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hockeystick import simulate
from hockeystick.simulate.problem.data import standardised

if TYPE_CHECKING:
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
        images, digit = _load("digits")
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
        images, digit = _load("digits")
        rng = np.random.default_rng(seed)
        silos = [rng.permutation(np.flatnonzero(digit == d)) for d in range(7)]
        return _problems("softmax", images, digit, silos)

    title = "digits 0 to 6 (for obesity levels), N = 7, a class a silo"
    return Study(title, split, False, "test error", (1.0,), (0.5, 1.0, 3.0, 6.0, 9.0), 50, (-3.0, 2.0), (-5.0, 1.0))


def diabetes(num_silos: int) -> Study:
    """Return a regression in silos that are sorted by the target."""

    def split(seed: int) -> Split:
        features, target = _load("diabetes")
        rng = np.random.default_rng(seed)
        size = -(-len(target) // num_silos)
        order = np.argsort(target, kind="stable")
        silos = [rng.permutation(order[start : start + size]) for start in range(0, len(order), size)]
        return _problems("least_squares", features, (target - target.mean()) / target.std(), silos)

    title = f"diabetes (for insurance), N = {num_silos}"
    budgets = (0.125, 0.25, 0.5, 1.0, 2.0, 3.0)
    label = "relative root mean square error"
    return Study(title, split, True, label, (0.3, 1.0, 3.0), budgets, 35, (-4.0, 2.0), (-6.0, 1.0))


def _load(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return features and labels of a data set that scikit-learn ships."""
    try:
        from sklearn import datasets  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = 'data sets need scikit-learn: pip install ".[data]" in a clone'
        raise ImportError(message) from error
    features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    return features, labels


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
