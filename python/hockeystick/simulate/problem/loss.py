"""A loss of the user's own: functions that numba compiles, and what their author states about them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Array, boolean_scalar, count_scalar, non_negative_scalar, positive_scalar, real, scalar
from hockeystick._checks.shown import shown

__all__ = ["Loss", "remade"]


@dataclass(frozen=True, eq=False, repr=False)
class Loss:
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
    addresses: tuple[int, int, int] = field(init=False)
    in_c: tuple[Any, ...] = field(init=False)  # owns what is at the addresses

    def __post_init__(self) -> None:
        """Check the constants, and compile the functions."""
        self._check_constants()
        if self.initial is not None:
            start = np.array(real("initial", self.initial))
            dimension = start.size if self.dimension is None else count_scalar("dimension", self.dimension)
            if start.shape != (dimension,) or start.size == 0 or not np.isfinite(start).all():
                msg = f"initial must be a vector of {dimension} finite numbers, not {shown(self.initial)}"
                raise ValueError(msg)
            start.flags.writeable = False
            object.__setattr__(self, "initial", start)
            object.__setattr__(self, "dimension", dimension)
        elif self.dimension is not None:
            count_scalar("dimension", self.dimension)
        self._compile()

    def _check_constants(self) -> None:
        if self.smoothness is not None:
            non_negative_scalar("smoothness", self.smoothness)
        if self.lipschitz is not None:
            positive_scalar("lipschitz", self.lipschitz)
        object.__setattr__(self, "convex", boolean_scalar("convex", self.convex))
        mu = scalar(
            "strong_convexity", self.strong_convexity, lambda x: 0 <= x < math.inf, "be non-negative and finite"
        )
        if mu > 0 and not self.convex:
            msg = f"strong_convexity must be 0 where convex is False, not {mu}"
            raise ValueError(msg)
        if mu > 0 and self.lipschitz is not None:
            msg = f"lipschitz must not be stated of a strongly convex loss, whose gradients have no bound, not {self.lipschitz}"
            raise ValueError(msg)
        if self.smoothness is not None and mu > self.smoothness:
            msg = f"strong_convexity must be at most the smoothness, {self.smoothness}, not {mu}"
            raise ValueError(msg)

    def _compile(self) -> None:
        from hockeystick.simulate.kernels import own  # noqa: PLC0415 - numba is asked for when needed

        value, gradient = own.compiled("value", self.value), own.compiled("gradient", self.gradient)
        predict = None if self.predict is None else own.compiled("predict", self.predict, labelled=False)
        for name, function, good, domain in (
            ("value", value, own.is_number, "a float (float64)"),
            ("gradient", gradient, own.is_vector, "a vector of float64"),
        ):
            kind = own.result_type(function)
            if not good(kind):
                msg = f"{name} must return {domain}, not {kind}"
                raise TypeError(msg)
        if predict is not None and not own.is_whole(own.result_type(predict, labelled=False)):
            msg = f"predict must return an integer, not {own.result_type(predict, labelled=False)}"
            raise TypeError(msg)
        in_c = [own.call_value(value), own.call_gradient(gradient)]
        if predict is not None:
            in_c.append(own.call_predict(predict))
        addresses = tuple(function.address for function in in_c) + (0,) * (3 - len(in_c))
        object.__setattr__(self, "compiled", (value, gradient, predict))
        object.__setattr__(self, "in_c", tuple(in_c))
        object.__setattr__(self, "addresses", addresses)

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
        from hockeystick.simulate.kernels import own  # noqa: PLC0415 - as above

        scalars = own.compiled_scalar("value", value), own.compiled_scalar("slope", slope)
        functions = own.score_functions(*scalars)
        stated: dict[str, Any] = {"smoothness": smoothness, "lipschitz": lipschitz, "convex": convex}
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
        from hockeystick.simulate.kernels import own  # noqa: PLC0415 - as above

        curvature = positive_scalar("curvature", curvature)
        if self.of_scores is None or not self.convex:
            msg = "moreau is for losses that Loss.of_score(..., convex=True) made"
            raise ValueError(msg)
        functions = own.envelope(*self.of_scores, curvature)
        return Loss.of_score(
            *functions, smoothness=curvature, lipschitz=self.lipschitz, convex=True, predict=self.predict
        )

    def constants(self, feature_bound: float | None, factor: float = 1.0) -> dict[str, float | None]:
        """Return what is claimed of a record's loss times a factor, as a function of the model; None where nothing is."""
        found: dict[str, float | None] = {"strong_convexity": factor * self.strong_convexity if self.convex else None}
        for name, power in (("smoothness", 2), ("lipschitz", 1)):
            stated = getattr(self, name)
            unknown = stated is None or (self.of_scores is not None and feature_bound is None)
            scale = 1.0 if self.of_scores is None or feature_bound is None else feature_bound**power
            found[name] = None if unknown else factor * stated * scale
        return found

    @property
    def stated(self) -> str:
        """What guarantees may use, as the caller stated it; empty if nothing is stated."""
        told = [
            f"{name} {getattr(self, name)}" for name in ("smoothness", "lipschitz") if getattr(self, name) is not None
        ]
        told += ["convex"] if self.convex else []
        told += [f"strong_convexity {self.strong_convexity}"] if self.strong_convexity else []
        return ", ".join(told)

    def __repr__(self) -> str:
        """Return the functions' names, and what is stated."""
        functions = self.of_scores or (self.value, self.gradient)
        told = [getattr(function, "__name__", repr(function)) for function in functions]
        for name, default in (
            ("dimension", None),
            ("smoothness", None),
            ("lipschitz", None),
            ("convex", False),
            ("strong_convexity", 0.0),
        ):
            stated = getattr(self, name)
            told += [f"{name}={stated!r}"] if stated != default else []
        return f"{'Loss' if self.of_scores is None else 'Loss.of_score'}({', '.join(told)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the compiled functions, which numba can even of a lambda, and constants: addresses are of one process."""
        value, gradient, predict = self.compiled
        return remade(self, value=value, gradient=gradient, predict=predict)


def remade(made: Any, **changes: Any) -> tuple[Any, ...]:
    """Return what pickle needs to make a dataclass anew from its settings."""
    settings = {item.name: getattr(made, item.name) for item in dataclasses.fields(made) if item.init}
    return _make, (type(made), settings | changes)


def _make(kind: Callable[..., Any], settings: dict[str, Any]) -> Any:
    return kind(**settings)


def starting_model(loss: Loss, dimension: int) -> Array:
    """Return the model that runs start from."""
    return np.zeros(dimension) if loss.initial is None else np.array(loss.initial)
