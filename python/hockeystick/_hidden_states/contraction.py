"""Sums of contractions and shifted interpolation: what hidden-state bounds are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

import hockeystick._core as core
from hockeystick._checks import Array, Checks, OnError, Result, broadcast, positive_scalar
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.certificate import MOST_ROUNDS, SMALLEST, with_table
from hockeystick.mechanisms.noise import Gaussian

TABLE = 1 + 1e-9  # times the optimum is above the sum of a table's squares, whatever was rounded
LARGEST_SEQUENCE = 10**7  # constant rounds whose shifts are written out: up to 150 bytes each


def contraction_sum(
    first: ArrayLike,
    eta: ArrayLike,
    weights: ArrayLike = 1.0,
    *,
    rounds: ArrayLike | None = None,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Result:
    r"""Return the sum over the rounds of first divergences, each damped by the contractions that follow it.

    Parameters
    ----------
    first : array_like
        Divergence that round t adds, >= 0 and finite; shape (..., T), or (...) with `rounds`.
    eta : array_like
        Contraction coefficient of round t, in [0, 1]; shape (..., T), or (...) with `rounds`.
    weights : array_like
        Weight of round t, >= 0 and finite; shape (..., T), or (...) with `rounds`.
    rounds : array_like, optional
        Number of rounds T, a positive integer. Then the other arguments are constant over the rounds, nothing is
        materialised, and the cost does not grow with T.
    num_threads : int, optional
        Threads to use; all cores by default.
    on_error : {"raise", "nan"}
        Raise for the first cell outside the domain, or give NaN there.

    Returns
    -------
    ndarray or float
        The sum, of shape (...): exact up to rounding (relative error about 1e-15, 1e-16 T without `rounds`). Rounds
        whose remaining weight is below 2^-60 of the sum are replaced by an upper bound.

    Raises
    ------
    ValueError
        If an argument is outside its domain or there is no round.

    Notes
    -----
    :math:`\sum_{t=1}^T w_t f_t \prod_{j=t+1}^T \eta_j`, from Lemma 3 with Theorem 2 of Asoodeh, Diaz and Calmon 2020.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.last_iterate.contraction_sum([0.5, 0.25], [0.1, 0.5]))
    0.5
    >>> print(hs.last_iterate.contraction_sum(0.5, 0.5, rounds=10**9))
    1.0
    """
    grid = Checks(num_threads, on_error)
    first = grid.non_negative("first", first)
    eta = grid.probability("eta", eta)
    weights = grid.non_negative("weights", weights)
    if rounds is not None:
        return grid.map(core.constant_contraction_sum, first, eta, weights, grid.count("rounds", rounds))
    arrays = broadcast(first, eta, weights)
    if arrays[0].ndim == 0 or arrays[0].shape[-1] == 0:
        raise ValueError(
            "first, eta and weights must have the rounds as their last axis, at least one, or be constants with rounds=, "
            f"not of shape {arrays[0].shape}"
        )
    return grid.finish(core.contraction_sum(arrays, grid.threads))


@dataclass(frozen=True, eq=False)
class ShiftedInterpolation:
    """The optimum of shifted interpolation and the shifts that attain it.

    Attributes
    ----------
    value : float
        The minimum of the sum of squared shifts; its square root, over the noise's standard deviation, is a
        certified Gaussian-DP parameter.
    start : int
        The round that the optimal sequence starts from, counted from 0; above 0 only with a diameter.
    shifts : ndarray
        The shift a_t of every round, shape (T,); 0 before the start.
    weights : ndarray
        The interpolation weight lambda_{t+1} = a_t/(rho_t z_t + gamma_t) of every round, in [0, 1], shape (T,). They are
        a certificate: the recursion z <- (1 - lambda)(rho z + gamma) with these weights gives `value`.
    """

    value: float
    start: int
    _rho: Array = field(repr=False)  # (T,), or 0-d for constants
    _gamma: Array = field(repr=False)
    _rounds: int = field(repr=False)
    _gap: float = field(repr=False)  # before round `start`

    @cached_property
    def _sequences(self) -> tuple[Array, Array]:
        if self._rounds > LARGEST_SEQUENCE:
            size = self._rounds * 150 / 1e9
            raise ValueError(
                f"the shifts of {self._rounds} rounds would need {size:.0f} GB; ask for at most {LARGEST_SEQUENCE} rounds"
            )
        return core.shift_certificate(*self._from(0), self.start, self._gap)[1:]

    def _from(self, round: int) -> tuple[Array, Array]:
        """Return rho and gamma of the rounds from one on."""
        rho, gamma = (np.broadcast_to(x, (self._rounds,))[round:] for x in (self._rho, self._gamma))
        return rho, gamma

    def certificate(self, noise_std: float, *, epsilon: float | None = None, delta: float | None = None) -> str:
        """Return a certificate of what the last iterate reveals: a claim in JSON that a program proves which shares no code with this library.

        One record is replaced.

        Parameters
        ----------
        noise_std : float
            Standard deviation of the Gaussian noise of every round, in each coordinate, positive.
        epsilon, delta : float, optional
            Exactly one of the two, of which the other is claimed, as by `Accountant.certificate`.

        Returns
        -------
        str
            The text of a file, for ``hockeystick check FILE`` (docs/core/certificates.md). It names rho, gamma and `weights` of every round from
            `start` on; who checks it need not trust that they are the best.

        Raises
        ------
        ValueError
            If an argument is outside its domain, or there are more than 100,000 rounds from `start` on.

        Examples
        --------
        >>> import json
        >>> import hockeystick as hs
        >>> shifts = hs.last_iterate.shifted_interpolation([1.0, 1.0], [1.0, 0.0])
        >>> json.loads(shifts.certificate(2.0, delta=1e-5))["ledger"][0]["mechanism"]["weights"]
        ['0.5', '1.0']
        """
        mu = math.sqrt(max(self.value, 1e-300) * TABLE) / positive_scalar("noise_std", noise_std)
        claim = Accountant("replace").compose(Gaussian(min(2.0 / mu, 1e6))).certificate(epsilon=epsilon, delta=delta)
        rho, gamma = self._from(self.start)
        if rho.size > MOST_ROUNDS:
            raise ValueError(f"a certificate holds the shifts of at most {MOST_ROUNDS} rounds, not of {rho.size}")
        weights = core.shift_certificate(rho, gamma, 0, self._gap)[2]
        weights[weights < SMALLEST] = 0.0  # any are feasible that end with 1
        table = {"rho": rho.tolist(), "gamma": gamma.tolist(), "weights": weights.tolist()}
        return with_table(claim, noise_std=float(noise_std), initial_gap=self._gap, **table)

    @property
    def shifts(self) -> Array:
        return self._sequences[0]

    @property
    def weights(self) -> Array:
        return self._sequences[1]


def shifted_interpolation(
    rho: ArrayLike,
    gamma: ArrayLike,
    *,
    rounds: int | None = None,
    initial_gap: float = 0.0,
    diameter: float | None = None,
) -> ShiftedInterpolation:
    r"""Return the least sum of squared shifts that closes the gap between two runs on adjacent data.

    Parameters
    ----------
    rho : array_like
        Factor by which round t can widen the gap, >= 0 and finite; shape (T,), or a scalar with `rounds`.
    gamma : array_like
        What round t can add to the gap, >= 0 and finite; shape (T,), or a scalar with `rounds`.
    rounds : int, optional
        Number of rounds T, positive; then rho and gamma are constants and the cost does not grow with T (until the shifts
        are asked for, which have T elements).
    initial_gap : float
        Gap before round 0, >= 0 and finite.
    diameter : float, optional
        Diameter of a convex set that iterates are projected onto after every round, positive, at least `initial_gap`: the
        sequence may then also start at any later round, from this gap. Unbounded if None or infinite.

    Returns
    -------
    ShiftedInterpolation
        With `value`, `start`, `shifts` and `weights`.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or rho and gamma differ in length.

    Notes
    -----
    Minimises :math:`\sum_t a_t^2` subject to :math:`z_{t+1} = \rho_t z_t + \gamma_t - a_t \ge 0`, :math:`a_t \ge 0`,
    :math:`z_T = 0` (Bok, Su and Altschuler 2024; Sun, Shen and Tao 2024, Eq. 12), exactly, by pooling adjacent
    violators: O(T), O(T log T) with a diameter. An affine chain attains the optimum, so nothing smaller can be certified
    from rho and gamma alone, and it never falls when a rho or gamma is overestimated. Noise that varies by round:
    divide gamma_t by sigma_t and multiply rho_t by sigma_{t-1}/sigma_t.

    Examples
    --------
    >>> import hockeystick as hs
    >>> print(hs.last_iterate.shifted_interpolation([1.0, 1.0], [1.0, 0.0]).value)
    0.5
    >>> bounded = hs.last_iterate.shifted_interpolation(1.0, 0.1, rounds=10**9, diameter=1.0)
    >>> print(f"{bounded.value:.4f} from round {bounded.start}")
    0.4000 from round 999999990
    """
    grid = Checks(None, "raise")
    rho_array = grid.non_negative("rho", rho)
    gamma_array = grid.non_negative("gamma", gamma)
    count = None if rounds is None else int(_scalar("rounds", grid.count("rounds", rounds)))
    gap = _scalar("initial_gap", grid.non_negative("initial_gap", initial_gap))
    bound = np.inf if diameter is None else _scalar("diameter", grid.positive_or_infinite("diameter", diameter))
    if bound < gap:
        raise ValueError(f"diameter must be at least initial_gap, not {bound} with initial_gap = {gap}")
    if count is not None:
        values = _scalar("rho", rho_array), _scalar("gamma", gamma_array)
        value, start = core.constant_shifted_interpolation(*values, count, gap, bound)
        return ShiftedInterpolation(value, start, rho_array, gamma_array, count, bound if start else gap)
    if rho_array.ndim != 1 or rho_array.shape != gamma_array.shape or rho_array.size == 0:
        raise ValueError(
            "rho and gamma must be one-dimensional, of one length, at least 1 (or scalars, with rounds=), "
            f"not of shapes {rho_array.shape} and {gamma_array.shape}"
        )
    start = core.shift_start(rho_array, gamma_array, gap, bound) if bound < np.inf else 0
    gap = bound if start else gap
    value, shifts, weights = core.shift_certificate(rho_array, gamma_array, start, gap)
    result = ShiftedInterpolation(value, start, rho_array.copy(), gamma_array.copy(), rho_array.size, gap)
    result.__dict__["_sequences"] = shifts, weights  # known already
    return result


def _scalar(name: str, array: Array) -> float:
    if array.ndim:
        raise ValueError(f"{name} must be a scalar, not an array of shape {array.shape}")
    return float(array)
