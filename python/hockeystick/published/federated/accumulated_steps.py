"""Sun, Shen and Tao 2024: the bounds of eta(K, t) that Table 3 rests on."""

from __future__ import annotations

from typing import Literal, NamedTuple

from numpy.typing import ArrayLike

from hockeystick._checks import STRICT, Result, broadcast, choice
from hockeystick.published.federated.rows import PAPER, table_row
from hockeystick.published.warning import warn_unsound

__all__ = ["StepSizeBounds", "accumulated_step_size_bounds"]


class StepSizeBounds(NamedTuple):
    """The printed bounds of eta(K, t), which are false.

    Attributes
    ----------
    lower, upper : ndarray or float
        As printed.
    """

    lower: Result
    upper: Result


def accumulated_step_size_bounds(
    round_index: ArrayLike,
    *,
    local_steps: ArrayLike,
    smoothness: ArrayLike,
    learning_rate: ArrayLike,
    schedule: Literal["cyclic", "continuous"],
    constant: ArrayLike,
    b: ArrayLike,
) -> StepSizeBounds:
    r"""Return the bounds of eta(K, t) = (rho_t - 1)/L that the paper prints on the way to Table 3.

    Parameters
    ----------
    round_index : array_like
        The round t, from 0.
    local_steps, smoothness, learning_rate : array_like
        K, L and mu; L positive, mu L at most 1.
    schedule : {"cyclic", "continuous"}
        The two cases that have bounds.
    constant : array_like
        c, printed as 1 <= c < 1.543, or z > 1; positive.
    b : array_like
        Printed as .693 < b < 1; positive.

    Returns
    -------
    StepSizeBounds
        With lower and upper: neither is a bound.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Warns
    -----
    UnsoundBoundWarning
        Always.

    Notes
    -----
    Cyclic: :math:`\frac{1}{cbL}K^{c\mu bL} \le \eta \le \frac{1}{cL}((1 + K)^{c\mu L} - 1)`. A sum is compared with an integral as if
    the powers grew; for exponents below 1 they fall, and both inequalities turn round. For c = 1 the upper bound is a *lower* one,
    since :math:`(1 + 1/j)^x \le 1 + x/j` for x <= 1. Counterexample for all printed constants: K = 1, mu L = .5, where L eta is
    .5, less than the lower bound 1/(cb) > .648; the upper one is at most .459. The printed range of c is right and not
    sharp: :math:`H_K/\ln(K + 1)` is at most 1/ln 2 = 1.4427, at K = 1. What holds: `hockeystick.federated.accumulated_step_size`.

    Examples
    --------
    >>> import warnings
    >>> from hockeystick import federated, published
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", published.UnsoundBoundWarning)
    ...     lower, upper = published.accumulated_step_size_bounds(
    ...         0, local_steps=1, smoothness=1.0, learning_rate=0.5, schedule="cyclic", constant=1.4427, b=0.7
    ...     )
    >>> print(f"{lower:.3f} <= {federated.accumulated_step_size([0.5], smoothness=1.0):.3f} <= {upper:.3f}: twice false")
    0.990 <= 0.500 <= 0.450: twice false
    """
    choice("schedule", schedule, ("cyclic", "continuous"))
    t, steps, open_constant = table_row(round_index, local_steps, schedule, constant)
    t, steps, bound, rate, open_constant, scale = broadcast(
        t,
        steps,
        STRICT.positive("smoothness", smoothness),
        STRICT.positive("learning_rate", learning_rate),
        open_constant,
        STRICT.positive("b", b),
    )
    STRICT.require(
        lambda e, a: e * a <= 1, "learning_rate must be at most 1/smoothness", learning_rate=rate, smoothness=bound
    )
    warn_unsound(f"the bounds of eta(K, t) {PAPER} are false", "hockeystick.federated.accumulated_step_size", "bound")
    growth, done = open_constant * rate * bound, t * steps
    if schedule == "cyclic":
        low, high = steps ** (growth * scale), (1.0 + steps) ** growth - 1.0
    else:
        low = ((done + steps) / (done + 1.0)) ** (growth * scale) - 1.0
        high = ((done + steps + 1.0) / (done + 1.0)) ** growth - 1.0
    unit = open_constant * bound
    return StepSizeBounds((low / (unit * scale))[()], (high / unit)[()])
