"""prv_accountant: its `PRVAccountant`, answering (lower, estimate, upper), with its mechanisms or ours.

.. code-block:: python

    from hockeystick.interop.prv import PRVAccountant  # was: from prv_accountant import PRVAccountant

Neither needs nor imports prv_accountant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hockeystick._checks.shown import shown
from hockeystick._numeric.rounding import UNIT
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.brackets import Bracket
from hockeystick.accounting.dpsgd import dpsgd_noise_multiplier
from hockeystick.mechanisms import ApproximateDP, Gaussian, Laplace, PoissonSampled
from hockeystick.mechanisms.base import Mechanism

__all__ = ["DPSGDAccountant", "PRVAccountant", "find_noise_multiplier"]

Triple: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True)
class Composed:
    """A composition, in the place of prv_accountant's discrete privacy random variable; it has no grid.

    Attributes
    ----------
    accountant : Accountant
        Hockeystick's accountant of it.
    """

    accountant: Accountant

    def compute_epsilon(
        self, delta: float, delta_error: float | None = None, epsilon_error: float | None = None
    ) -> Triple:
        """Return lower end, estimate and upper end of epsilon.

        Parameters
        ----------
        delta : float
            In [0, 1).
        delta_error, epsilon_error : optional
            Taken, and not needed.
        """
        del delta_error, epsilon_error
        return _triple(self.accountant.epsilon_bracket(delta))

    def compute_delta_estimate(self, epsilon: float) -> float:
        """Return the middle of the certified bracket of delta.

        Parameters
        ----------
        epsilon : float
            Non-negative.
        """
        return _triple(self.accountant.delta_bracket(epsilon))[1]


class PRVAccountant:
    """Certified triples for a composition of given mechanisms, in one direction of call: counts come with the question.

    Parameters
    ----------
    prvs : mechanism or sequence of mechanisms
        Of hockeystick, or of prv_accountant: PoissonSubsampledGaussianMechanism, GaussianMechanism, LaplaceMechanism,
        PureDPMechanism, ApproximateDPMechanism, recognised by name and attributes.
    eps_error, delta_error, max_self_compositions, eps_max : optional
        Taken, because prv_accountant takes them, and not needed: brackets are as narrow as the engines make them,
        counts have no limit.

    Raises
    ------
    TypeError
        If a mechanism is not known.

    Notes
    -----
    Add-or-remove adjacency, both directions; prv_accountant computes one of them. The estimate is the middle of the
    certified bracket.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)
    >>> low, estimate, up = PRVAccountant(step).compute_epsilon(1e-5, 1000)
    >>> print(f"{hs.format_lower(low, '.3f')} {hs.format_upper(estimate, '.3f')} {hs.format_upper(up, '.3f')}")
    1.828 1.829 1.829
    """

    def __init__(
        self,
        prvs: Any,
        eps_error: float | None = None,
        delta_error: float | None = None,
        max_self_compositions: Any = None,
        eps_max: float | None = None,
    ) -> None:
        """Take the mechanisms."""
        del eps_error, delta_error, max_self_compositions, eps_max
        self.mechanisms = [mechanism_of(prv) for prv in (prvs if isinstance(prvs, Sequence) else [prvs])]

    def accountant(self, num_self_compositions: int | Sequence[int] | None = None) -> Accountant:
        """Return hockeystick's accountant of these counts.

        Parameters
        ----------
        num_self_compositions : int or sequence of int, optional
            How often each mechanism is composed, 1 by default.

        Raises
        ------
        ValueError
            If there are not as many counts as mechanisms.
        """
        counts = [1] * len(self.mechanisms) if num_self_compositions is None else num_self_compositions
        counts = list(counts) if isinstance(counts, Sequence) else [counts]
        if len(counts) != len(self.mechanisms):
            raise ValueError(f"num_self_compositions must have {len(self.mechanisms)} counts, not {len(counts)}")
        accountant = Accountant()
        for mechanism, count in zip(self.mechanisms, counts, strict=True):
            accountant.compose(mechanism, count)
        return accountant

    def compute_composition(self, num_self_compositions: int | Sequence[int] | None = None) -> Composed:
        """Return what was composed, to be asked several times.

        Parameters
        ----------
        num_self_compositions : int or sequence of int, optional
            How often each mechanism is composed, 1 by default.

        Raises
        ------
        ValueError
            If there are not as many counts as mechanisms.
        """
        return Composed(self.accountant(num_self_compositions))

    def compute_epsilon(self, delta: float, num_self_compositions: int | Sequence[int] | None = None) -> Triple:
        """Return lower end, estimate and upper end of epsilon.

        Parameters
        ----------
        delta : float
            In [0, 1).
        num_self_compositions : int or sequence of int, optional
            How often each mechanism is composed, 1 by default.

        Raises
        ------
        ValueError
            If an argument is outside its domain.
        """
        return self.compute_composition(num_self_compositions).compute_epsilon(delta)

    def compute_delta(self, epsilon: float, num_self_compositions: int | Sequence[int] | None = None) -> Triple:
        """Return lower end, estimate and upper end of delta.

        Parameters
        ----------
        epsilon : float
            Non-negative.
        num_self_compositions : int or sequence of int, optional
            How often each mechanism is composed, 1 by default.

        Raises
        ------
        ValueError
            If an argument is outside its domain.
        """
        return _triple(self.accountant(num_self_compositions).delta_bracket(epsilon))


class DPSGDAccountant(PRVAccountant):
    """DP-SGD in prv_accountant's words.

    Parameters
    ----------
    noise_multiplier : float
        Noise standard deviation over clip norm.
    sampling_probability : float
        Of each record, in [0, 1].
    max_steps, eps_error, delta_error : optional
        Taken, and not needed.
    """

    def __init__(
        self,
        noise_multiplier: float,
        sampling_probability: float,
        max_steps: int | None = None,
        eps_error: float | None = None,
        delta_error: float | None = None,
    ) -> None:
        """Take the mechanism."""
        step = PoissonSampled(Gaussian(float(noise_multiplier)), float(sampling_probability))
        super().__init__(step, eps_error, delta_error, max_steps)

    def compute_epsilon(self, delta: float, num_steps: Any) -> Triple:  # type: ignore[override]
        """Return lower end, estimate and upper end of epsilon after a number of steps.

        Parameters
        ----------
        delta : float
            In [0, 1).
        num_steps : int
            At least 1.
        """
        return super().compute_epsilon(delta, num_steps)


def find_noise_multiplier(  # noqa: PLR0917, the order is theirs
    sampling_probability: float,
    num_steps: int,
    target_epsilon: float,
    target_delta: float,
    eps_error: float | None = None,
    mu_max: float | None = None,
) -> float:
    """Return the least noise multiplier of DP-SGD whose certified epsilon does not exceed the target.

    Parameters
    ----------
    sampling_probability, num_steps, target_epsilon, target_delta : float
        As sampling_rate, steps, epsilon and delta of `hockeystick.dpsgd_noise_multiplier`.
    eps_error, mu_max : optional
        Taken, and not needed.

    Returns
    -------
    float
        Infinity if no noise will do.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import format_upper
    >>> print(format_upper(find_noise_multiplier(0.01, 1000, 2.0, 1e-5), ".3f"))
    0.960
    """
    del eps_error, mu_max
    return float(dpsgd_noise_multiplier(sampling_probability, num_steps, target_epsilon, target_delta))


# Their random variables by name and attributes; mu holds a rounding.
KNOWN: dict[str, tuple[set[str], Callable[[Any], Mechanism]]] = {
    "PoissonSubsampledGaussianMechanism": (
        {"p", "sigma"},
        lambda prv: PoissonSampled(Gaussian(float(prv.sigma)), float(prv.p)),
    ),
    "GaussianMechanism": ({"mu"}, lambda prv: Gaussian((1.0 - UNIT) / float(prv.mu))),
    "LaplaceMechanism": ({"mu"}, lambda prv: Laplace((1.0 - UNIT) / float(prv.mu))),
    "PureDPMechanism": ({"eps"}, lambda prv: ApproximateDP(float(prv.eps), 0.0)),
    "ApproximateDPMechanism": (
        {"pure_dp", "delta"},
        lambda prv: ApproximateDP(float(prv.pure_dp.eps), float(prv.delta)),
    ),
}


def mechanism_of(prv: Any) -> Mechanism:
    """Return a random variable of prv_accountant as a mechanism; ours as they are."""
    if isinstance(prv, Mechanism):
        return prv
    attributes, read = KNOWN.get(type(prv).__name__, (set(), None))
    if read is None or set(vars(prv)) != attributes:
        raise TypeError(f"prvs must be mechanisms of hockeystick, or known ones of prv_accountant, not {shown(prv)}")
    return read(prv)


def _triple(bracket: Bracket) -> Triple:
    lower, upper = bracket.lower, bracket.upper
    return lower, upper if lower == upper else lower + 0.5 * (upper - lower), upper
