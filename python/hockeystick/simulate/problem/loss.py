"""A loss of the user's own: functions that numba compiles, and what their author states about them.

It is tried at a few models and records: nothing runs with a gradient that is not one, or a claim that is refuted. Difference quotients of the
value are taken forwards and backwards with three steps each. Where the loss has a kink, every subgradient lies between both; where it is smooth
they differ by a step times its curvature. A gradient is refused if it agrees with none of the three.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Array, boolean_scalar, count_scalar, non_negative_scalar, positive_scalar, real
from hockeystick._checks.checked import Checked
from hockeystick._checks.shown import shown
from hockeystick.simulate.running.rule import OF_SCORE, OWN, Data

MAX_RECORDS, MAX_COORDINATES = 4, 40  # that are tried
STEPS = (1e-5, 1e-3, 1e-7)  # near the cube root of a rounding error first, which is best for smooth functions
AGREED = 1e-4  # relative to the gradient
SMALL_SHARE = 1e-2  # of the longest gradient: smaller coordinates are compared with it, since values may cancel
ROUNDING = 256 * np.finfo(float).eps  # of a value, and of a gradient
SPREADS = (0.1, 1.0)  # of the random models about the first one
NEARBY = 1e-3  # distance of another model about each


@dataclass(frozen=True, eq=False, repr=False)
class Loss(Checked):
    r"""A loss of your own, for `Problem` in the place of a name.

    Parameters
    ----------
    value : callable
        ``value(model, features, label) -> float``: the loss of one record. A Python function, which is compiled here, or one compiled by
        ``numba.njit``. Model and features are vectors that it may not write to, the label is a float.
    gradient : callable
        ``gradient(model, features, label)``: a vector of the model's length, the derivative of `value`; a subgradient where there is none.
    dimension : int, optional
        How many numbers a model is; by default as many as there are features, or as `initial` has.
    initial : array_like, optional
        Shape (dimension,): the model that runs start from, which must not depend on the data; zeros by default.
    smoothness : float, optional
        Lipschitz constant of the gradient, for every record that there could be, non-negative. What is not stated is not known.
    lipschitz : float, optional
        Bound of every gradient's norm, for every record that there could be, positive.
    convex : bool
        Whether the loss of every record is convex.
    strong_convexity : float
        Of the loss of every record, non-negative.
    predict : callable, optional
        ``predict(model, features) -> int``, a class, for `Result.accuracy`.
    of_scores : tuple, optional
        Set by `of_score`.

    Raises
    ------
    TypeError
        If numba does not compile a function, which is named with numba's reason, or a result is of another type.
    ValueError
        If a constant is outside its domain, or two contradict each other.

    Notes
    -----
    Constants are claims: no guarantee is better than they are, and guarantees that may use them say that they are "as stated". `Problem`
    compares the gradient with differences of the value, and gradients with the claims, at a few models and records, and
    raises ValueError where it refutes one. That it refutes none is no proof.

    Functions must depend on their arguments alone. What they raise in a run makes a gradient NaN; clipped, it is 0. Indices
    are checked in functions that are compiled here.

    Examples
    --------
    >>> import numpy as np
    >>> from hockeystick import simulate
    >>> def value(model, features, label):
    ...     return 0.5 * (np.sum(model * features) - label) ** 2
    >>> def gradient(model, features, label):
    ...     return (np.sum(model * features) - label) * features
    >>> loss = simulate.Loss(value, gradient, convex=True)
    >>> problem = simulate.Problem(loss, [[1.0, 0.5], [-0.5, 1.0]], [1.0, 0.0])
    >>> algorithm = simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=1.0, noise_std=0.1, records=simulate.EveryRound())
    >>> simulate.run(algorithm, problem, rounds=20, seed=1).models.shape
    (1, 1, 2)
    """

    value: Callable[..., Any]
    gradient: Callable[..., Any]
    _: KW_ONLY
    dimension: int | None = None
    initial: ArrayLike | None = None
    smoothness: float | None = None
    lipschitz: float | None = None
    convex: bool = False
    strong_convexity: float = 0.0
    predict: Callable[..., Any] | None = None
    of_scores: tuple[Any, Any] | None = None  # of `of_score`; its constants are those of a function of the score
    compiled: tuple[Any, Any, Any] = field(init=False)  # as Python calls them
    kept: tuple[Any, Any, Any] = field(init=False)  # as the loops call them
    addresses: tuple[int, int, int] = field(init=False)  # of their machine code

    def __post_init__(self) -> None:
        """Check the constants, and compile the functions."""
        self._check_constants()
        if self.initial is not None:
            start = np.array(real("initial", self.initial))
            dimension = start.size if self.dimension is None else count_scalar("dimension", self.dimension)
            if start.shape != (dimension,) or start.size == 0 or not np.isfinite(start).all():
                raise ValueError(f"initial must be a vector of {dimension} finite numbers, not {shown(self.initial)}")
            start.flags.writeable = False
            self._set(initial=start, dimension=dimension)
        elif self.dimension is not None:
            count_scalar("dimension", self.dimension)
        self._compile()

    def _check_constants(self) -> None:
        if self.smoothness is not None:
            non_negative_scalar("smoothness", self.smoothness)
        if self.lipschitz is not None:
            positive_scalar("lipschitz", self.lipschitz)
        self._check(convex=boolean_scalar)
        mu = non_negative_scalar("strong_convexity", self.strong_convexity)
        if mu > 0 and not self.convex:
            raise ValueError(f"strong_convexity must be 0 where convex is False, not {mu}")
        if mu > 0 and self.lipschitz is not None:
            raise ValueError(
                f"lipschitz must not be stated of a strongly convex loss, whose gradients have no bound, not {self.lipschitz}"
            )
        if self.smoothness is not None and mu > self.smoothness:
            raise ValueError(f"strong_convexity must be at most the smoothness, {self.smoothness}, not {mu}")

    def _compile(self) -> None:
        from hockeystick.simulate.kernels import user_loss  # noqa: PLC0415 - numba is asked for when needed

        predict = None if self.predict is None else user_loss.compiled("predict", self.predict, user_loss.RECORD[:2])
        if self.of_scores is None:
            called = user_loss.compiled("value", self.value), user_loss.compiled("gradient", self.gradient)
            self._set(compiled=(*called, predict))
        else:
            value, slope = self.of_scores
            called = user_loss.compiled_of_score("value", value), user_loss.compiled_of_score("slope", slope)
            self._set(compiled=(self.value, self.gradient, predict))
        kept = (*called, predict)
        self._set(kept=kept, addresses=tuple(user_loss.address(function) for function in kept))

    @property
    def kind(self) -> int:
        """What the loops are told."""
        return OWN if self.of_scores is None else OF_SCORE

    @classmethod
    def of_score(
        cls,
        value: Callable[..., Any],
        slope: Callable[..., Any],
        *,
        smoothness: float | None = None,
        lipschitz: float | None = None,
        convex: bool = False,
        predict: Callable[..., Any] | None = None,
    ) -> Loss:
        """Return a loss of the score alone, the inner product of model and features.

        Parameters
        ----------
        value, slope : callable
            ``value(score, label) -> float``, and its derivative by the score, or a subgradient.
        smoothness, lipschitz : float, optional
            Of `value` as a function of the score, for all labels: bounds of its second and first derivative. With the public
            `feature_bound` B of a problem, those of the loss are B^2 and B times as large; without one they are not known.
        convex : bool
            Whether `value` is convex in the score.
        predict : callable, optional
            As of `Loss`.

        Returns
        -------
        Loss
            For problems whose models have as many numbers as there are features.

        Raises
        ------
        TypeError, ValueError
            As `Loss`.

        Examples
        --------
        >>> from hockeystick import simulate
        >>> simulate.Loss.of_score(lambda s, y: 0.5 * (s - y) ** 2, lambda s, y: s - y, smoothness=1.0, convex=True)
        Loss.of_score(<lambda>, <lambda>, smoothness=1.0, convex=True)
        """
        from hockeystick.simulate.kernels import user_loss  # noqa: PLC0415 - as above

        scalars = user_loss.as_numba("value", value), user_loss.as_numba("slope", slope)
        stated: dict[str, Any] = {"smoothness": smoothness, "lipschitz": lipschitz, "convex": convex}
        functions = OfScore(scalars[0], gradient=False), OfScore(scalars[1], gradient=True)
        return cls(*functions, predict=predict, of_scores=scalars, **stated)

    def moreau(self, curvature: float) -> Loss:
        r"""Return the Moreau envelope of a convex loss of the score, which is smooth.

        Parameters
        ----------
        curvature : float
            b, positive and finite: the envelope of h at score s is :math:`\min_r h(r) + \frac b2 (r - s)^2`, and b-smooth as a function of the score.

        Returns
        -------
        Loss
            Its value is the envelope's, which is below that of the loss by at most lipschitz^2/(2 b).

        Raises
        ------
        ValueError
            If the loss is not made by `of_score`, or not stated to be convex, or curvature is outside its domain.

        Examples
        --------
        >>> from hockeystick import simulate
        >>> absolute = simulate.Loss.of_score(lambda s, y: abs(s - y), lambda s, y: 1.0 if s > y else -1.0, lipschitz=1.0, convex=True)
        >>> problem = simulate.Problem(absolute.moreau(10.0), [[1.0, 0.5]], [0.3], feature_bound=2.0)
        >>> print(problem.smoothness, problem.lipschitz)
        40.0 2.0
        """
        from hockeystick.simulate.kernels import user_loss  # noqa: PLC0415 - as above

        curvature = positive_scalar("curvature", curvature)
        if self.of_scores is None or not self.convex:
            raise ValueError("moreau is for losses that Loss.of_score(..., convex=True) made")
        functions = user_loss.envelope(*self.of_scores, curvature)
        return Loss.of_score(
            *functions, smoothness=curvature, lipschitz=self.lipschitz, convex=True, predict=self.predict
        )

    def constants(self, feature_bound: float | None, factor: float = 1.0) -> dict[str, float | None]:
        """Return what is claimed of a record's loss times a factor, as a function of the model; None where nothing is."""
        found: dict[str, float | None] = {"strong_convexity": factor * self.strong_convexity if self.convex else None}
        bound = 1.0 if self.of_scores is None else feature_bound
        for name, power in (("smoothness", 2), ("lipschitz", 1)):
            stated = getattr(self, name)
            found[name] = None if stated is None or bound is None else factor * stated * bound**power
        return found

    @property
    def stated(self) -> str:
        """What guarantees may use, as the caller stated it; empty if nothing is stated."""
        told = self._told("smoothness", "lipschitz", "convex", "strong_convexity")
        return ", ".join(name if value is True else f"{name} {value}" for name, value in told.items())

    def _told(self, *names: str) -> dict[str, Any]:
        """Return those of some settings that are not the defaults."""
        return {name: value for name in names if (value := getattr(self, name)) != getattr(Loss, name)}

    def __repr__(self) -> str:
        """Return the functions' names, and what is stated."""
        functions = self.of_scores or (self.value, self.gradient)
        told = [getattr(function, "__name__", repr(function)) for function in functions]
        stated = self._told("dimension", "smoothness", "lipschitz", "convex", "strong_convexity")
        told += [f"{name}={value!r}" for name, value in stated.items()]
        return f"{'Loss' if self.of_scores is None else 'Loss.of_score'}({', '.join(told)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the compiled functions, which numba can even of a lambda, and constants: addresses are of one process."""
        value, gradient, predict = self.compiled
        return remade(self, value=value, gradient=gradient, predict=predict)


@dataclass(frozen=True)
class OfScore:
    """Value or gradient of a loss of the score, as functions of model and record; the loops take those of the score."""

    function: Any  # compiled
    gradient: bool

    def __call__(self, model: Array, features: Array, label: float) -> Array | float:
        """Return the function of the score, times the features for a gradient."""
        found: float = self.function(float(features @ model), float(label))
        return found * features if self.gradient else found


def remade(made: Any, **changes: Any) -> tuple[Any, ...]:
    """Return what pickle needs to make a dataclass anew from its settings."""
    settings = {item.name: getattr(made, item.name) for item in dataclasses.fields(made) if item.init}
    kind: Callable[..., Any] = type(made)
    return functools.partial(kind, **settings | changes), ()


# Trials


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
    records = np.unique(np.linspace(0, data.labels.size - 1, MAX_RECORDS).astype(int)).tolist()
    trials = [Tried(loss, data, record) for record in records]
    seen: list[tuple[Tried, str, Array, Array]] = []
    for tried in trials:
        if loss.predict is not None:
            tried.called(2, first)
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
    records = np.unique(np.linspace(0, data.labels.size - 1, MAX_RECORDS).astype(int)).tolist()
    pairs = list(itertools.product(models, [Tried(loss, data, record) for record in records]))
    values, gradients = (np.array([tried.called(place, at) for at, tried in pairs]) for place in (0, 1))
    classes = [] if loss.predict is None else [tried.called(2, at) for at, tried in pairs]
    value, gradient, predict = loss.compiled
    code = np.array([told(function) for function in (*(loss.of_scores or (value, gradient)), predict)])
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
        """Return the value (place 0), gradient (1) or class (2); an error names function and record."""
        name, words = ("value", "gradient", "predict")[place], str(self)
        given: tuple[Any, ...] = self.data.features[self.number], np.float64(self.data.labels[self.number])
        if name == "predict":
            given, words = given[:1], f"(model, features[{self.number}])"
        try:
            return np.array(self.loss.compiled[place](_frozen(model), *given))
        except Exception as error:
            raise ValueError(f"{name}{words} must not raise, as it did: {type(error).__name__}: {error}") from error

    def value(self, model: Array) -> float:
        """Return the loss."""
        return float(self.called(0, model))

    def gradient(self, model: Array, name: str, *, must: bool) -> Array | None:
        """Return a gradient that is finite and of the model's length; None at models where the value overflows."""
        value = self.value(model)
        if not math.isfinite(value):
            if not must:
                return None
            raise ValueError(f"value{self} must be finite at {name}, not {value}")
        found = self.called(1, model)
        if found.shape != model.shape:
            raise ValueError(f"gradient{self} must have the model's shape {model.shape}, not {found.shape}")
        if not np.isfinite(found).all():
            index = int(np.argmin(np.isfinite(found)))
            raise ValueError(f"gradient{self}[{index}] must be finite at {name}, not {found[index]}")
        if self.called(1, model).tobytes() != found.tobytes() or self.value(model) != value:
            raise ValueError(
                f"value and gradient{self} must depend on their arguments alone, but differ between two calls"
            )
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
        for j in np.unique(np.linspace(0, model.size - 1, MAX_COORDINATES).astype(int)).tolist():
            central = []
            for step in STEPS:
                one, other, rounding = self.quotients(model, j, step)
                slack = AGREED * max(abs(gradient[j]), abs(one), abs(other), small) + rounding
                if min(one, other) - slack <= gradient[j] <= max(one, other) + slack:
                    break
                central.append(0.5 * (one + other))
            else:
                raise ValueError(
                    f"gradient{self}[{j}] must be the derivative of value at {name}, "
                    f"where differences give {central[0]:.6g}, not {gradient[j]:.6g}"
                )


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
    raise ValueError(f"{name}={shown(claim)} is refuted: {what} {found:.6g}")


def _every_record(data: Data, first: Array, lipschitz: float | None) -> None:
    """Raise if the loss or gradient of any record is not finite at the first model, or its gradient too long."""
    from hockeystick.simulate.kernels import core, loops  # noqa: PLC0415 - numba is asked for when needed

    most = math.inf if lipschitz is None else lipschitz * (1 + AGREED**2)
    given = core.words(data)
    record = int(loops.first_refused(given.ctypes.data, first, most))
    if record < 0:
        return
    msg = f"value and gradient of record {record}, (features[{record}], labels[{record}]), must be finite at the initial model"
    if lipschitz is not None:
        msg += f", and the gradient's norm at most lipschitz={lipschitz}"
    raise ValueError(msg)


# Two losses that agree wherever they were tried are still two


def told(thing: Any, within: tuple[int, ...] = ()) -> str:  # noqa: PLR0911 - one for each kind
    """Return a text of a function's code and of all that it takes from around it: the same for code that is compiled anew.

    Of two functions with one text the bits may differ still, where they take something that is neither a number, a text, an array
    nor a function. Another version of Python has other code, and so another text.
    """
    if id(thing) in within:
        return "itself"
    within = (*within, id(thing))
    if hasattr(thing, "py_func"):  # compiled by numba, with its options: "fastmath" changes bits
        return f"{sorted(thing.targetoptions.items())!r} {told(thing.py_func, within)}"
    if inspect.isfunction(thing):
        around = inspect.getclosurevars(thing)
        taken = sorted({**around.globals, **around.nonlocals}.items())
        given = told(thing.__defaults__, within)
        return f"{told(thing.__code__, within)} {given} {[(name, told(value, within)) for name, value in taken]}"
    if isinstance(thing, CodeType):
        constants = [told(constant, within) for constant in thing.co_consts]
        return f"{thing.co_code.hex()} {thing.co_names} {thing.co_varnames} {constants}"
    if isinstance(thing, np.ndarray):
        return f"{thing.dtype} {thing.shape} {thing.tobytes().hex()}"
    if isinstance(thing, (tuple, list)):
        return f"{type(thing).__name__} {[told(one, within) for one in thing]}"
    if isinstance(thing, (bool, int, float, complex, str, bytes, np.generic, type(None))):
        return f"{type(thing).__name__} {thing!r}"
    return f"{type(thing).__name__} {getattr(thing, '__name__', '')}"
