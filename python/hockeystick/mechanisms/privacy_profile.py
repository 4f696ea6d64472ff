"""A mechanism by its delta(eps): what a user may give, and the checks; the core makes the pair (release/privacy_profile.hpp)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import hockeystick._core as core
from hockeystick._checks import STRICT, choice, real, vector
from hockeystick._checks.shown import shown
from hockeystick.mechanisms import profile_sampling
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, Status

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_POINTS = 2000
STATUSES = ("certified", "estimate")


@dataclass(frozen=True)
class PrivacyProfile(Mechanism):
    """A mechanism of one's own, by upper bounds of delta at some epsilons.

    Parameters
    ----------
    epsilons : sequence of float
        Increasing from 0 to at most 600.
    remove : sequence of float
        At each epsilon an upper bound in [0, 1] of delta, of a data set with the record against the one without; not rising.
    add : sequence of float, optional
        The same of without against with, if it differs; its first number must be that of `remove`, the total variation
        distance. By default `remove` must bound both directions, as any (epsilon, delta) guarantee does.
    status : {"certified", "estimate"}
        "estimate" if the numbers are not proven upper bounds: then no answer about a composition with it is called certified.

    Notes
    -----
    Between the points delta is bounded by chords in e^epsilon (connecting the dots: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi
    2022), beyond the last by its value there. All that is assumed is that the numbers are upper bounds for the adjacency in use; then the upper
    ends of `Accountant` are certified. A number above the chord of its neighbours is replaced by the chord, which is a bound too.

    The lower ends are those of a mechanism whose delta is the chords: no mechanism of these numbers leaks more, and your own may leak
    less. They are 0 where rounding does not let them be shown: where nearly all outcomes tell the data sets apart, where all
    of one law tells, or where a slope falls below 1e-289.

    Examples
    --------
    >>> import hockeystick as hs
    >>> known = hs.PrivacyProfile([0.0, 0.5, 1.0], [0.3, 0.1, 0.0])
    >>> print(hs.format_upper(hs.Accountant().compose(known, 2).delta(1.0), ".4f"))
    0.1118
    """

    epsilons: Sequence[float]
    remove: Sequence[float]
    add: Sequence[float] | None = None
    status: Status = "certified"

    _for_one_adjacency: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the arguments."""
        epsilons = vector("epsilons", real("epsilons", self.epsilons))
        if not (
            epsilons[0] == 0.0 and (np.diff(epsilons) > 0.0).all() and epsilons[-1] <= profile_sampling.LARGEST_EPSILON
        ):
            msg = f"epsilons must increase from 0 to at most 600, not {shown(self.epsilons)}"
            raise ValueError(msg)
        object.__setattr__(self, "epsilons", tuple(epsilons.tolist()))
        for name in ("remove", "add"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _deltas(name, value, epsilons.tolist()))
        choice("status", self.status, STATUSES)
        if self.add is not None and self.add[0] != self.remove[0]:
            msg = f"add must begin with the total variation distance, as remove ({self.remove[0]}), not with {self.add[0]}"
            raise ValueError(msg)

    @classmethod
    def from_function(
        cls,
        remove: Callable[[float], float],
        add: Callable[[float], float] | None = None,
        *,
        accuracy: float = 1e-12,
        tail: float = 1e-15,
        num_points: int = MOST_POINTS,
    ) -> Self:
        """Return the profile of a function delta(eps), called at chosen points, checked, and not kept.

        Parameters
        ----------
        remove : callable
            delta at an epsilon >= 0: a Python function of one number, a numba cfunc or a scipy.LowLevelCallable of signature
            ``double (double)``.
        add : callable, optional
            The same for the other direction, if it differs.
        accuracy : float
            Relative error of the function, in [0, 0.1]: all numbers are raised by it.
        tail : float
            Its absolute error, in [0, 0.1], which is added to all numbers, infinite epsilon included. Beyond the epsilon at which
            delta falls below it nothing is asked.
        num_points : int
            In [2, 10^5]. Twice as many make the excess of a composition a quarter.

        Returns
        -------
        PrivacyProfile
            Finer where delta is large.

        Raises
        ------
        ValueError
            If the function leaves [0, 1], rises, is not convex in e^epsilon, or differs from `add` at 0; the message says where
            and by how much.

        Examples
        --------
        >>> import hockeystick as hs
        >>> step = hs.PrivacyProfile.from_function(lambda eps: hs.theta(eps, 0.2))  # a Gaussian, say
        >>> steps = hs.Accountant().compose(step, 25)
        >>> print(hs.format_upper(steps.delta(1.0), ".5f"), hs.format_upper(hs.gdp_delta(1.0, 1.0), ".5f"))
        0.12697 0.12694
        """
        return cls(*profile_sampling.of_functions(remove, add, accuracy, tail, num_points))

    @classmethod
    def from_densities(
        cls,
        log_p: Callable[[float], float],
        log_q: Callable[[float], float],
        breakpoints: Sequence[float],
        *,
        tolerance: float = 1e-9,
        num_points: int = MOST_POINTS,
    ) -> Self:
        """Return the profile of two densities on the line, an estimate: no error of the quadrature is proven.

        Parameters
        ----------
        log_p, log_q : callable
            Logarithms of the densities of the outcome with the record and without, kinds of functions as in `from_function`; minus
            infinity is legal. P and Q must be a dominating pair: the densities of the worst adjacent data sets.
        breakpoints : sequence of float
            Increasing: the ends of the support, or where what lies beyond does not count, and where a density jumps or has a kink.
        tolerance : float
            In (0, 0.01]: how close both integrals must be to 1, and by how much all deltas are raised.
        num_points : int
            As in `from_function`.

        Returns
        -------
        PrivacyProfile
            With status "estimate": `Accountant.delta_bracket` and its like answer and say so, `Accountant.delta` refuses.

        Raises
        ------
        ValueError
            If an integral is not 1, or the total variation distance does not settle; the message says by how much.

        Notes
        -----
        16 points of Gauss and Legendre in each panel, and panels halved until both integrals and the total variation distance stay.

        Examples
        --------
        >>> import hockeystick as hs
        >>> ends = [-12.0, 0.0, 1.0, 13.0]
        >>> laplace = hs.PrivacyProfile.from_densities(lambda x: -abs(x - 1) - 0.693147180559945, lambda x: -abs(x) - 0.693147180559945, ends, tolerance=1e-5)
        >>> delta = hs.Accountant().compose(laplace).delta_bracket(0.5).upper
        >>> print(hs.format_upper(delta, ".4f"), hs.format_upper(hs.laplace_theta(0.5, 1.0), ".4f"))
        0.2213 0.2212
        """
        return cls(*profile_sampling.of_densities(log_p, log_q, breakpoints, tolerance, num_points), "estimate")

    def assumptions(self) -> list[str]:
        """Return what must be true of the step, in words."""
        numbers = "the numbers of PrivacyProfile are upper bounds for this adjacency"
        if self.status == "certified":
            return [numbers]
        return [numbers, "a privacy profile is an estimate by quadrature, with no proof of its error"]

    def _pair(self, adjacency: Adjacency) -> core.Pair:
        del adjacency  # the numbers are taken to be for the one in use
        return self._dominating

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        return super()._pairs(adjacency) if upper else self._attained

    def _steps(self, *, upper: bool) -> list[CountedPair]:
        add = self.remove if self.add is None else self.add
        return core.privacy_profile(self.epsilons, self.remove, add, upper)

    @cached_property
    def _dominating(self) -> core.Pair:
        return self._steps(upper=True)[0][0]

    @cached_property
    def _attained(self) -> list[CountedPair]:
        return self._steps(upper=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the numbers alone, without the pair."""
        return {name: self.__dict__[name] for name in ("epsilons", "remove", "add", "status")}


def _deltas(name: str, value: Any, epsilons: list[float]) -> tuple[float, ...]:
    deltas = vector(name, STRICT.probability(name, value))
    if deltas.size != len(epsilons):
        msg = f"{name} must be as long as epsilons ({len(epsilons)}), not of length {deltas.size}"
        raise ValueError(msg)
    rise = np.diff(deltas)
    if rise.size and rise.max() > 0.0:
        at = int(rise.argmax())
        msg = f"{name} must not rise with epsilon, not by {rise[at]:g} from epsilon {epsilons[at]:g} to {epsilons[at + 1]:g}"
        raise ValueError(msg)
    return tuple(deltas.tolist())
