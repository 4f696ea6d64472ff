"""The Gaussian tail and the hockey-stick divergence as NumPy ufuncs.

All are exact formulas evaluated to the accuracy stated (measured in docs/guide/numbers.md), with rounding to nearest, not
directed. They broadcast, take ``out=`` and ``where=``, give NaN for NaN, and outside their domain give NaN and raise NumPy's
"invalid" flag (see `numpy.errstate`). Logarithms are natural. Results are float64. As with every ufunc, Ctrl-C waits for the end
of a call: seconds for ten million elements of the two inverses.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import hockeystick._core as core

if TYPE_CHECKING:
    from typing import Protocol, overload

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    class Unary(Protocol):
        """A ufunc of one number."""

        @overload
        def __call__(self, x: float, /) -> float: ...
        @overload
        def __call__(self, x: ArrayLike, /, out: object = None, **options: Any) -> NDArray[np.float64]: ...
        def __getattr__(self, name: str) -> Any: ...

    class Binary(Protocol):
        """A ufunc of two numbers."""

        @overload
        def __call__(self, x: float, y: float, /) -> float: ...
        @overload
        def __call__(
            self, x: ArrayLike, y: ArrayLike, /, out: object = None, **options: Any
        ) -> NDArray[np.float64]: ...
        def __getattr__(self, name: str) -> Any: ...


__all__ = ["gaussian_epsilon", "laplace_theta", "log_q", "log_theta", "q", "q_inv", "theta", "theta_inverse"]

__pyx_capi__ = core.__pyx_capi__  # the C functions, for kernels.pxd, SciPy and numba


PARAMETERS: dict[str, tuple[str, ...]] = {}  # of each: a ufunc has no signature that can be asked for


def _documented(description: Callable[..., Any]) -> Any:
    """Return the core's ufunc of this name, with the docstring of its description."""
    ufunc = getattr(core, description.__name__)
    core.document_ufunc(ufunc, inspect.cleandoc(description.__doc__ or ""))
    PARAMETERS[description.__name__] = tuple(inspect.signature(description).parameters)
    return ufunc


# Type checkers learn from these that numbers give a float; `numpy.ufunc` alone says nothing.
def _unary(description: Callable[[ArrayLike], Any]) -> Unary:
    return cast("Unary", _documented(description))


def _binary(description: Callable[[ArrayLike, ArrayLike], Any]) -> Binary:
    return cast("Binary", _documented(description))


@_unary
def q(x: ArrayLike) -> Any:
    """Upper tail of the standard normal distribution, Q(x) = P(N(0, 1) > x).

    Parameters
    ----------
    x : array_like
        Any real number or infinity.

    Returns
    -------
    ndarray or float
        Q(x), to 8 ulp down to 1e-300.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.kernels.q(0.0), f"{hs.kernels.q(10.0):.6e}")
    0.5 7.619853e-24
    """


@_unary
def log_q(x: ArrayLike) -> Any:
    """Logarithm of the upper tail of the standard normal distribution.

    Parameters
    ----------
    x : array_like
        Any real number or infinity.

    Returns
    -------
    ndarray or float
        log Q(x), to 8 ulp, without underflow.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(f"{hs.kernels.log_q(1000.0):.6f}")
    -500007.826695
    """


@_unary
def q_inv(p: ArrayLike) -> Any:
    """Inverse of the upper tail of the standard normal distribution: x with Q(x) = p.

    Parameters
    ----------
    p : array_like
        Probability in [0, 1].

    Returns
    -------
    ndarray or float
        x, to 8 ulp; infinity at p = 0 and minus infinity at p = 1.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(f"{hs.kernels.q_inv(1e-300):.6f}")
    37.047096
    """


@_binary
def theta(epsilon: ArrayLike, r: ArrayLike) -> Any:
    r"""Hockey-stick divergence of two unit Gaussians at distance r: the delta(epsilon) of the Gaussian mechanism.

    Parameters
    ----------
    epsilon : array_like
        Any real number or infinity.
    r : array_like
        Distance of the means over the standard deviation, >= 0: the inverse of the noise multiplier, or the Gaussian-DP
        parameter mu.

    Returns
    -------
    ndarray or float
        theta(epsilon, r), relative error below 2e-14 (1 + abs(log theta)). 1 at r = infinity; max(0, 1 - e^epsilon) at r = 0.

    Notes
    -----
    :math:`\theta_\epsilon(r) = E_{e^\epsilon}(N(r, 1) \| N(0, 1)) = Q(\epsilon/r - r/2) - e^\epsilon Q(\epsilon/r + r/2)` (Balle and
    Wang 2018, Theorem 8; Asoodeh, Diaz and Calmon 2020, Lemma 2).

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(f"{hs.theta(1.0, 1.0):.10f} {hs.theta(3.0, 0.1):.6e}")
    0.1269367375 7.304806e-200
    """


@_binary
def log_theta(epsilon: ArrayLike, r: ArrayLike) -> Any:
    """Logarithm of `theta`, without underflow.

    Parameters
    ----------
    epsilon : array_like
        Any real number or infinity.
    r : array_like
        Distance of the means over the standard deviation, >= 0.

    Returns
    -------
    ndarray or float
        log theta(epsilon, r); error below 4e-15 relative or 1e-14 absolute, whichever is larger.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(f"{hs.kernels.log_theta(50.0, 0.01):.4f}")
    -12499997.5585
    """


@_binary
def laplace_theta(epsilon: ArrayLike, r: ArrayLike) -> Any:
    """Hockey-stick divergence of two unit-scale Laplace distributions at distance r.

    Parameters
    ----------
    epsilon : array_like
        Any real number or infinity.
    r : array_like
        Distance of the locations over the scale, >= 0.

    Returns
    -------
    ndarray or float
        max(0, 1 - e^{(epsilon - r)/2}, 1 - e^epsilon) to 4 ulp: exactly 0 from epsilon = r on.

    Notes
    -----
    Asoodeh, Diaz and Calmon 2020, Lemma 1.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(f"{hs.kernels.laplace_theta(0.5, 1.0):.6f}", hs.kernels.laplace_theta(1.0, 1.0))
    0.221199 0.0
    """


@_binary
def theta_inverse(epsilon: ArrayLike, delta: ArrayLike) -> Any:
    """Distance r at which `theta` takes the value delta.

    Parameters
    ----------
    epsilon : array_like
        Any real number.
    delta : array_like
        In [0, 1]; at least 1 - e^epsilon where epsilon is negative.

    Returns
    -------
    ndarray or float
        r >= 0; log theta(epsilon, r) equals log delta to 1e-12 relative for delta in [1e-300, 1/2], and 1 - theta equals
        1 - delta to 1e-10 relative above. 0 at delta = 0, infinity only at delta = 1.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(f"{1 / hs.theta_inverse(1.0, 1e-5):.6f}")  # the noise multiplier for (1, 1e-5)-DP
    3.730632
    """


@_binary
def gaussian_epsilon(r: ArrayLike, delta: ArrayLike) -> Any:
    """Return the epsilon at which `theta` takes the value delta.

    Parameters
    ----------
    r : array_like
        Distance of the means over the standard deviation, >= 0.
    delta : array_like
        In [0, 1].

    Returns
    -------
    ndarray or float
        The smallest real epsilon with theta(epsilon, r) <= delta: negative where delta > theta(0, r), infinity at delta = 0, minus infinity
        at delta = 1. `gdp_epsilon` is its positive part.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.format_upper(hs.gaussian_epsilon(1.0, 1e-5), ".6f"))
    4.377179
    """
