"""What is learned: the records of all silos, and the loss of a record."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import Array, choice, count_scalar, pmf, positive_scalar, real, vector
from hockeystick._checks.checked import Checked
from hockeystick._checks.shown import shown
from hockeystick.simulate.problem.loss import Loss, answers, check_loss, remade
from hockeystick.simulate.running.rule import Data

__all__ = ["Problem"]

LossName: TypeAlias = Literal[
    "linear", "least_squares", "logistic", "quadratic", "softmax", "network", "hinge", "absolute"
]
LOSSES: tuple[LossName, ...] = get_args(LossName)  # in the order of running/rule.py, where own losses follow
CONVEX = ("linear", "least_squares", "logistic", "quadratic", "softmax", "hinge", "absolute")
CLASSIFIERS = ("logistic", "softmax", "network", "hinge")
TWO_CLASSES = ("logistic", "hinge")
SMOOTHED = ("hinge", "absolute")


@dataclass(frozen=True, eq=False)
class Problem(Checked):
    r"""The records of one or more silos, and the loss of a record.

    Parameters
    ----------
    loss : {"linear", "least_squares", "logistic", "quadratic", "softmax", "network", "hinge", "absolute"} or Loss
        With features x, label y and model w: :math:`\langle x, w\rangle`; :math:`\frac12(\langle x, w\rangle - y)^2`; logistic
        regression, y in {0, 1}; :math:`\frac\beta2\|w - x\|^2`; multinomial logistic regression; a network with one layer of
        tanh units and softmax outputs; :math:`\max(0, 1 - (2y - 1)\langle x, w\rangle)`, y in {0, 1}; :math:`|\langle x, w\rangle - y|`. The last two
        are not smooth: gradients are those of a Moreau envelope, losses their own.
        A `Loss` is one of your own, and is tried at a few models and records.
    features : array_like
        Shape (records, features), finite: the records of the first silo, then those of the second, ...
    labels : array_like, optional
        Shape (records,), finite; classes are integers 0, 1, ..., and False and True are 0 and 1. Not used by "linear" and "quadratic".
    sizes : sequence of int, optional
        Records in each silo, positive, their sum the number of records; one silo by default.
    num_classes : int, optional
        For "softmax" and "network", at least 2; by default one more than the largest label.
    hidden : int
        Units of the hidden layer of "network".
    curvature : float
        The beta of "quadratic", and the smoothness of the envelope of "hinge" and "absolute"; positive.
    feature_bound : float, optional
        A public bound of the norm of every record's features, checked. Smoothness and Lipschitz constant come from it, and so
        do the guarantees that need them: what is read off the data protects nobody. "hinge" and "absolute" need it.
    weights : sequence of float, optional
        Weight p_i of each silo, positive, summing to 1; equal by default. The losses of silo i are N p_i times as large, before they are clipped, as in
        Appendix H of Lowy and Razaviyayn 2023, and so are their constants. `Result.loss` weighs every record alike.

    Raises
    ------
    ValueError
        If a silo is empty, a number is not finite, a label is not a class, shapes do not match, or a `Loss` is refuted.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    With B = `feature_bound`, the envelope is taken of the loss as a function of the score, with the parameter b = curvature/B^2. As a function
    of the model it is convex, `curvature`-smooth, B-Lipschitz, and at most 1/(2b) = B^2/(2 curvature) below the loss: what Lemma D.7 of Lowy and Razaviyayn 2023
    gives for L = B. `isrl.smoothing_parameter` chooses `curvature`.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> problem = simulate.Problem("logistic", [[1.0, 0.5], [-0.5, 1.0], [1.0, 0.0]], [1, 0, 1], sizes=[2, 1], feature_bound=1.2)
    >>> print(problem.num_silos, problem.dimension, round(problem.smoothness, 2))
    2 2 0.36
    """

    loss: LossName | Loss
    features: ArrayLike = field(repr=False)
    labels: ArrayLike | None = field(default=None, repr=False)
    sizes: Sequence[int] | None = None
    num_classes: int | None = None
    hidden: int = 0
    curvature: float = 1.0
    feature_bound: float | None = None
    weights: Sequence[float] | None = None
    data: Data = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not isinstance(self.loss, Loss):
            choice("loss", self.loss, LOSSES)
        features = finite("features", self.features, 2)
        labels = labels_of(self.labels, len(features))
        if self.labels is None and self.loss in ("least_squares", "absolute", *CLASSIFIERS):
            raise ValueError(f"labels must be given for loss={shown(self.loss)}")
        offsets = offsets_of(self.sizes, len(features))
        outputs = self._outputs(labels)
        hidden = count_scalar("hidden", self.hidden, 1) if self.loss == "network" else 0
        curvature = positive_scalar("curvature", self.curvature)
        norms = row_norms(features)
        if self.feature_bound is not None:
            bound = positive_scalar("feature_bound", self.feature_bound)
            if norms.max() > bound * (1 + 1e-12):
                raise ValueError(
                    f"feature_bound must be at least the norm of every record's features, {norms.max()}, not {bound}"
                )
        elif self.loss in SMOOTHED:
            raise ValueError(f"feature_bound must be given for loss={shown(self.loss)}, whose smoothing depends on it")
        if self.loss in SMOOTHED:
            curvature /= bound**2
        self._set(features=features, labels=labels, sizes=tuple(np.diff(offsets).tolist()))
        factors = self._factors(offsets.size - 1)
        kind = self.loss.kind if isinstance(self.loss, Loss) else LOSSES.index(self.loss)
        addresses = self.loss.addresses if isinstance(self.loss, Loss) else (0, 0, 0)
        data = Data(kind, outputs, hidden, curvature, features, labels, norms, offsets, factors, *addresses)
        self._set(data=data)
        if isinstance(self.loss, Loss):
            check_loss(self.loss, data, self.initial(), self.loss.constants(self.feature_bound))

    def content(self) -> dict[str, Any]:
        """Return what decides the bits of a run; of a `Loss` its code, and what it answers at a few models and records, in place of addresses."""
        own = answers(self.loss, self.data, self.initial()) if isinstance(self.loss, Loss) else {}
        return self.data._asdict() | own

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings; another process makes the rest, in which a `Loss` has other addresses."""
        return remade(self)

    def _factors(self, silos: int) -> Array:
        """Return by what the losses of each silo are multiplied."""
        if self.weights is None:
            return np.ones(silos)
        shares = vector("weights", pmf("weights", self.weights))
        if shares.size != silos or shares.min() == 0.0:
            raise ValueError(f"weights must be positive, one for each of {silos} silos, not {shown(self.weights)}")
        return shares * silos

    def _outputs(self, labels: Array) -> int:
        if self.loss not in CLASSIFIERS:
            return 1
        if self.loss in TWO_CLASSES:
            return count_classes(labels, 2) - 1
        return count_classes(labels, self.num_classes)

    @property
    def num_silos(self) -> int:
        """How many silos (clients, users) there are."""
        return int(self.data.offsets.size) - 1

    @property
    def num_records(self) -> int:
        """How many records all silos have together."""
        return int(self.data.labels.size)

    @property
    def dimension(self) -> int:
        """How many numbers a model is."""
        width, outputs, hidden = int(self.data.features.shape[1]), self.data.outputs, self.data.hidden
        if isinstance(self.loss, Loss):
            return width if self.loss.dimension is None else self.loss.dimension
        if self.loss == "network":
            return hidden * (width + 1) + outputs * (hidden + 1)
        return width * outputs

    @property
    def convex(self) -> bool:
        """Whether the loss of every record is convex."""
        return self.loss.convex if isinstance(self.loss, Loss) else self.loss in CONVEX

    @property
    def classifies(self) -> bool:
        """Whether models predict classes, so that there is an accuracy."""
        return self.loss.predict is not None if isinstance(self.loss, Loss) else self.loss in CLASSIFIERS

    @property
    def smoothness(self) -> float | None:
        """Lipschitz constant of every record's gradient by `feature_bound`, or as a `Loss` states it; None where none is known."""
        largest = float(self.data.factors.max())
        if isinstance(self.loss, Loss):
            return self.loss.constants(self.feature_bound, largest)["smoothness"]
        if self.loss in ("quadratic", *SMOOTHED):
            return largest * float(self.curvature)
        if self.loss == "linear":
            return 0.0
        if self.feature_bound is None or self.loss == "network":
            return None
        factor = {"least_squares": 1.0, "logistic": 0.25, "softmax": 0.5}[self.loss]
        return largest * factor * self.feature_bound**2

    @property
    def strong_convexity(self) -> float:
        """Strong convexity of every record's loss."""
        if isinstance(self.loss, Loss):
            return float(self.data.factors.min()) * self.loss.strong_convexity
        return float(self.data.factors.min()) * self.data.curvature if self.loss == "quadratic" else 0.0

    @property
    def lipschitz(self) -> float | None:
        """Bound of every record's gradient everywhere by `feature_bound`, or as a `Loss` states it; None where none is known."""
        if isinstance(self.loss, Loss):
            return self.loss.constants(self.feature_bound, float(self.data.factors.max()))["lipschitz"]
        factor = {"softmax": math.sqrt(2.0)} | dict.fromkeys(("linear", "logistic", *SMOOTHED), 1.0)
        if self.feature_bound is None or self.loss not in factor:
            return None
        return float(self.data.factors.max()) * factor[self.loss] * self.feature_bound

    def initial(self) -> Array:
        """Return the model that runs start from: zeros; for a network, fixed random weights that do not depend on the data.

        Returns
        -------
        ndarray
            Shape (dimension,).
        """
        if isinstance(self.loss, Loss):
            return np.zeros(self.dimension) if self.loss.initial is None else np.array(self.loss.initial)
        model = np.zeros(self.dimension)
        if self.loss == "network":
            width, outputs, hidden = self.data.features.shape[1], self.data.outputs, self.data.hidden
            rng = np.random.default_rng(0)
            first, second = hidden * width, hidden * (width + 1)
            model[:first] = rng.normal(0.0, 1.0 / math.sqrt(width), first)
            model[second : second + outputs * hidden] = rng.normal(0.0, 1.0 / math.sqrt(hidden), outputs * hidden)
        return model

    def replace_record(self, index: int, features: ArrayLike, label: float = 0.0) -> Problem:
        """Return the adjacent problem in which one record is another.

        Parameters
        ----------
        index : int
            Of the record, counted over all silos, from 0.
        features : array_like
            Shape (features,).
        label : float
            Its label.

        Returns
        -------
        Problem
            With the same silos and constants.

        Raises
        ------
        ValueError
            If there is no such record, or the new one is not legal.
        """
        index = count_scalar("index", index, 0)
        if index >= self.num_records:
            raise ValueError(f"index must be below the number of records, {self.num_records}, not {index}")
        every, labels = self.data.features.copy(), self.data.labels.copy()
        every[index], labels[index] = finite("features", features, 1), label
        return self._with(features=every, labels=labels)

    def pooled(self) -> Problem:
        """Return the same records in one silo.

        Returns
        -------
        Problem
            With the same loss and constants.

        Raises
        ------
        ValueError
            If silos have weights.
        """
        if self.weights is not None:
            raise ValueError(
                f"weights must not be given for records that are pooled in one silo, not {shown(self.weights)}"
            )
        return self._with(sizes=None)

    def _with(self, **records: Any) -> Problem:
        """Return a problem of other records, or other silos, with as many classes."""
        classes = self.data.outputs if self.loss in ("softmax", "network") else None
        return dataclasses.replace(self, num_classes=classes, **records)


# Records as they are given, checked


def labels_of(value: ArrayLike | None, records: int) -> Array:
    """Return one label for each record, zeros if there are none; True and False are 1 and 0."""
    if value is None:
        return finite("labels", np.zeros(records), 1)
    plain = np.asarray(value) if not np.ma.isMaskedArray(value) else value
    labels = finite("labels", plain.astype(np.float64) if plain.dtype == np.bool_ else value, 1)
    if len(labels) != records:
        raise ValueError(f"Length of labels ({len(labels)}) must match number of records ({records})")
    return labels


def count_classes(labels: Array, num_classes: int | None) -> int:
    """Return the number of classes, by default one more than the largest label; labels must be below it."""
    largest = max(2, int(labels.max()) + 1) if num_classes is None else num_classes
    largest = count_scalar("num_classes", largest, 2)
    good = (labels >= 0) & (labels < largest) & (labels == np.floor(labels))
    if not good.all():
        index = int(np.argmin(good))
        raise ValueError(f"labels[{index}] must be an integer in [0, {largest - 1}], not {labels[index]}")
    return largest


def finite(name: str, value: ArrayLike, dimensions: int) -> Array:
    """Return a contiguous array without infinities and NaN, as a copy that nobody else can change."""
    array = np.array(real(name, value), order="C", copy=True)
    if array.ndim != dimensions or array.size == 0:
        raise ValueError(f"{name} must have {dimensions} axes and not be empty, not the shape {array.shape}")
    if not np.isfinite(array).all():
        index = np.unravel_index(int(np.argmin(np.isfinite(array))), array.shape)
        raise ValueError(f"{name}[{', '.join(map(str, index))}] must be finite, not {array[index]}")
    array.flags.writeable = False
    return array


def offsets_of(sizes: Sequence[int] | None, records: int) -> NDArray[np.int64]:
    """Return where each silo's records start, and where the last one's end."""
    if sizes is None:
        return np.array([0, records])
    counts = [count_scalar(f"sizes[{i}]", size) for i, size in enumerate(sizes)]
    if sum(counts) != records:
        raise ValueError(f"sizes must sum to the number of records, {records}, not {sum(counts)}")
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def row_norms(features: Array) -> Array:
    """Return the norm of every record, as that of numbers up to 1: squares that underflow would hide its length."""
    largest = np.abs(features).max(axis=1, keepdims=True, initial=0.0)
    with np.errstate(over="ignore"):  # infinite then, and clipped to 0
        norms: Array = largest[:, 0] * np.linalg.norm(features / np.where(largest > 0.0, largest, 1.0), axis=1)
    return norms
