"""A loss of the user's own, tried at a few models and records: nothing runs with a gradient that is not one, or a claim that is refuted.

Difference quotients of the value are taken forwards and backwards with three steps each. Where the loss has a kink, every subgradient lies between
both; where it is smooth they differ by a step times its curvature. A gradient is refused if it agrees with none of the three.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hockeystick._checks import Array
from hockeystick._checks.shown import shown
from hockeystick.simulate.problem.code import told

if TYPE_CHECKING:
    from hockeystick.simulate.problem.loss import Loss
    from hockeystick.simulate.running.rule import Data

__all__ = ["answers", "check_loss"]

MOST_RECORDS, MOST_COORDINATES = 4, 40  # that are tried
STEPS = (1e-5, 1e-3, 1e-7)  # near the cube root of a rounding error first, which is best for smooth functions
AGREED = 1e-4  # relative to the gradient
SMALL_SHARE = 1e-2  # of the longest gradient: smaller coordinates are compared with it, since values may cancel
ROUNDING = 256 * np.finfo(float).eps  # of a value, and of a gradient
SPREADS = (0.1, 1.0)  # of the random models about the first one
NEARBY = 1e-3  # distance of another model about each


def check_loss(loss: Loss, data: Data, first: Array, constants: dict[str, float | None]) -> None:
    """Raise ValueError or TypeError if a function fails, a gradient is not the value's, or a claim is refuted.

    Parameters
    ----------
    loss : Loss
        Compiled.
    data : Data
        All records.
    first : ndarray
        Shape (dimension,): the model that runs start from.
    constants : dict
        "smoothness", "lipschitz", "strong_convexity" of a record's loss as a function of the model, or None; the last is
        None where the loss is not convex.
    """
    rng = np.random.default_rng(0)
    models = [first] + [first + spread * rng.normal(size=first.size) for spread in SPREADS]
    names = ["the initial model"] + [f"the initial model + {spread} default_rng(0).normal" for spread in SPREADS]
    records = np.unique(np.linspace(0, data.labels.size - 1, MOST_RECORDS).astype(int)).tolist()
    trials = [Tried(loss, data, record) for record in records]
    seen: list[tuple[Tried, str, Array, Array]] = []
    for tried in trials:
        tried.predict(first)
        for model, name in zip(models, names, strict=True):
            near = model + NEARBY * (move := rng.normal(size=first.size)) / np.linalg.norm(move)
            for at, where in ((model, name), (near, f"a model near {name}")):
                found = tried.gradient(at, where, must=at is first)
                if found is not None:
                    seen.append((tried, where, at, found))
    longest = max(float(np.linalg.norm(found)) for *_, found in seen)
    for tried, where, at, found in seen:
        if where in names:
            tried.compare(at, found, where, SMALL_SHARE * longest)
    for tried in trials:
        _refute([(at, found) for other, _, at, found in seen if other is tried], tried.number, constants)
    _every_record(data, first, constants["lipschitz"])


def answers(loss: Loss, data: Data, first: Array) -> dict[str, Array]:
    """Return values, gradients and predictions at a few models and records, and the code: the same in every process, of another loss others."""
    rng = np.random.default_rng(0)
    models = [_frozen(first + spread * rng.normal(size=first.size)) for spread in (0.0, *SPREADS)]
    records = np.unique(np.linspace(0, data.labels.size - 1, MOST_RECORDS).astype(int)).tolist()
    pairs = list(itertools.product(models, [Tried(loss, data, record) for record in records]))
    values, gradients = (np.array([tried.called(place, at) for at, tried in pairs]) for place in (0, 1))
    predict = loss.compiled[2]
    classes = [] if predict is None else [predict(at, data.features[tried.number]) for at, tried in pairs]
    code = np.array([told(function) for function in loss.compiled])
    return {"value": values, "gradient": gradients, "predict": np.array(classes, dtype=np.float64), "code": code}


def _frozen(model: Array) -> Array:
    """Return a copy that compiled functions cannot write to."""
    copy = np.array(model, dtype=np.float64)
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True)
class Tried:
    """One record whose functions are tried."""

    loss: Loss
    data: Data
    number: int

    def __str__(self) -> str:
        """Return the arguments of a call."""
        return f"(model, features[{self.number}], labels[{self.number}])"

    def called(self, place: int, model: Array) -> Array:
        """Return the value (place 0) or gradient (1); an error names function and record."""
        features, label = self.data.features[self.number], np.float64(self.data.labels[self.number])
        try:
            return np.array(self.loss.compiled[place](_frozen(model), features, label))
        except Exception as error:
            msg = f"{('value', 'gradient')[place]}{self} must not raise, as it did: {type(error).__name__}: {error}"
            raise ValueError(msg) from error

    def predict(self, model: Array) -> None:
        """Raise if there is a function that predicts, and it does."""
        predict = self.loss.compiled[2]
        if predict is None:
            return
        try:
            predict(_frozen(model), self.data.features[self.number])
        except Exception as error:
            msg = f"predict(model, features[{self.number}]) must not raise, as it did: {type(error).__name__}: {error}"
            raise ValueError(msg) from error

    def value(self, model: Array) -> float:
        """Return the loss."""
        return float(self.called(0, model))

    def gradient(self, model: Array, name: str, *, must: bool) -> Array | None:
        """Return a gradient that is finite and of the model's length; None at models where the value overflows."""
        value = self.value(model)
        if not math.isfinite(value):
            if not must:
                return None
            msg = f"value{self} must be finite at {name}, not {value}"
            raise ValueError(msg)
        found = self.called(1, model)
        if found.shape != model.shape:
            msg = f"gradient{self} must have the model's shape {model.shape}, not {found.shape}"
            raise ValueError(msg)
        if not np.isfinite(found).all():
            index = int(np.argmin(np.isfinite(found)))
            msg = f"gradient{self}[{index}] must be finite at {name}, not {found[index]}"
            raise ValueError(msg)
        if self.called(1, model).tobytes() != found.tobytes() or self.value(model) != value:
            msg = f"value and gradient{self} must depend on their arguments alone, but differ between two calls"
            raise ValueError(msg)
        return found

    def quotients(self, model: Array, j: int, step: float) -> tuple[float, float, float]:
        """Return the difference quotients forwards and backwards in a coordinate, and what rounding may change in them."""
        value, ends, lengths = self.value(model), [], []
        for sign in (1.0, -1.0):
            moved = model.copy()
            moved[j] += sign * step * max(1.0, abs(model[j]))
            lengths.append(float(moved[j] - model[j]))  # as rounded
            ends.append((self.value(moved) - value) / lengths[-1])
        return ends[0], ends[1], ROUNDING * abs(value) / min(map(abs, lengths))

    def compare(self, model: Array, gradient: Array, name: str, small: float) -> None:
        """Raise if a coordinate of the gradient is not between the quotients of any step; an error that is tiny beside `small` passes."""
        for j in np.unique(np.linspace(0, model.size - 1, MOST_COORDINATES).astype(int)).tolist():
            central = []
            for step in STEPS:
                one, other, rounding = self.quotients(model, j, step)
                slack = AGREED * max(abs(gradient[j]), abs(one), abs(other), small) + rounding
                if min(one, other) - slack <= gradient[j] <= max(one, other) + slack:
                    break
                central.append(0.5 * (one + other))
            else:
                msg = (
                    f"gradient{self}[{j}] must be the derivative of value at {name}, "
                    f"where differences give {central[0]:.6g}, not {gradient[j]:.6g}"
                )
                raise ValueError(msg)


def _refute(seen: list[tuple[Array, Array]], record: int, constants: dict[str, float | None]) -> None:
    """Raise if gradients of a record at some models contradict a constant that is claimed.

    A gradient is rounded, and so is what it computes of the model: it is one at a model nearby, and changes as fast as is seen here.
    """
    lipschitz, smoothness, mu = (constants[name] for name in ("lipschitz", "smoothness", "strong_convexity"))
    for _, found in seen:
        if lipschitz is not None and np.linalg.norm(found) > lipschitz * (1 + AGREED**2):
            _raise("lipschitz", lipschitz, f"a gradient of record {record} has the norm", float(np.linalg.norm(found)))
    pairs = [
        (a, b, at_a, at_b, float(np.linalg.norm(a - b)), float(np.linalg.norm(at_a - at_b)))
        for (a, at_a), (b, at_b) in itertools.combinations(seen, 2)
    ]
    fastest = max((change / apart for *_, apart, change in pairs), default=0.0)
    for a, b, at_a, at_b, apart, change in pairs:
        rounding = ROUNDING * sum(np.linalg.norm(at) + fastest * np.linalg.norm(w) for w, at in ((a, at_a), (b, at_b)))
        if smoothness is not None and change > smoothness * apart * (1 + AGREED**2) + rounding:
            _raise("smoothness", smoothness, f"gradients of record {record} change per distance by", change / apart)
        if mu is not None:
            along = float((at_a - at_b) @ (a - b))
            if along < mu * apart**2 * (1 - AGREED**2) - rounding * apart:
                name = "strong_convexity" if mu else "convex"
                _raise(name, mu or True, f"the loss of record {record} curves between two models by", along / apart**2)


def _raise(name: str, claim: object, what: str, found: float) -> None:
    msg = f"{name}={shown(claim)} is refuted: {what} {found:.6g}"
    raise ValueError(msg)


def _every_record(data: Data, first: Array, lipschitz: float | None) -> None:
    """Raise if the loss or gradient of any record is not finite at the first model, or its gradient too long."""
    from hockeystick.simulate.kernels import loops  # noqa: PLC0415 - numba is asked for when needed

    most = math.inf if lipschitz is None else lipschitz * (1 + AGREED**2)
    record = int(loops.first_refused(data, first, most))
    if record < 0:
        return
    msg = f"value and gradient of record {record}, (features[{record}], labels[{record}]), must be finite at the initial model"
    if lipschitz is not None:
        msg += f", and the gradient's norm at most lipschitz={lipschitz}"
    raise ValueError(msg)
