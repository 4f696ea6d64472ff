"""What is known of batches that are drawn at random: several upper bounds, of which the least counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hockeystick._checks import DELTA, NON_NEGATIVE_OR_INFINITE, scalar
from hockeystick._numeric.rounding import LONG_SUM
from hockeystick._statements import Format
from hockeystick.accounting import Accountant
from hockeystick.accounting.brackets import Bracket
from hockeystick.accounting.privacy_curve import Curve
from hockeystick.accounting.statement import Guaranteed, stated
from hockeystick.correlated_noise.ratio_moments import BY_MOMENTS, RatioMoments, least_epsilon
from hockeystick.mechanisms import PoissonSampled
from hockeystick.mechanisms.base import Adjacency
from hockeystick.mechanisms.premises import Premises

BY_CANDIDATES = "mean over the number of candidate steps"


class CandidateSteps(NamedTuple):
    """Steps of DP-SGD, of which the number is random: one for each candidate.

    Attributes
    ----------
    release : PoissonSampled
        Noise over the largest column of C, and q, or 0 if the record is never in a batch.
    counts : tuple of int
        Increasing numbers of candidates; there are never more than the last.
    chances : tuple of float
        For each count, an upper bound of the probability that there are more candidates than the count before it says.
    adjacency : {"add_or_remove", "replace"}
        Which data sets are adjacent.
    """

    release: PoissonSampled
    counts: tuple[int, ...]
    chances: tuple[float, ...]
    adjacency: Adjacency

    def delta(self, epsilon: float) -> float:
        """Return the mean of delta over the number of steps, rounded up."""
        found = [float(self._ledger(count).delta(epsilon)) for count in self.counts]
        with np.errstate(under="ignore"):
            total = float(np.dot(self.chances, np.diff(np.maximum.accumulate(found), prepend=0.0)))
        return min(1.0, total * (1.0 + LONG_SUM))

    def epsilon(self, delta: float) -> float:
        """Return the epsilon at which that falls to delta, rounded up."""
        most = float(self._ledger(self.counts[-1]).epsilon(delta))
        return least_epsilon(self.delta, delta, most)

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return it as the upper end of a bracket."""
        return Bracket(0.0, self.epsilon(delta), BY_CANDIDATES, "certified")

    def step(self) -> str:
        """Return what the bound rests on, in words."""
        return f"at most {self.counts[-1]} times {self.release!r}, mostly fewer"

    def _ledger(self, count: int) -> Accountant:
        return Accountant(self.adjacency).compose(self.release, count)


class AmplifiedGuarantee(NamedTuple):
    """A matrix mechanism on batches that are drawn at random, with several bounds of what it leaks.

    Attributes
    ----------
    bounds : tuple of Accountant or CandidateSteps
        The whole training: any of them alone is an upper bound.
    premises : Premises
        What the numbers rest on.
    moments : RatioMoments
        Of the likelihood ratio of the whole training: a bound, too, unless there are none.
    """

    bounds: tuple[Accountant | CandidateSteps, ...]
    premises: Premises
    moments: RatioMoments

    def statement(self, delta: float, *, format: Format = "text", unit: str | None = None) -> str:
        """Return a privacy statement, that of the bound with the least epsilon.

        Parameters
        ----------
        delta : float
            In [0, 1).
        format : {"text", "markdown", "latex", "json"}
            How it is written.
        unit : str, optional
            What is added, removed or replaced, in your words.

        Returns
        -------
        str
            Its epsilon is `epsilon(delta)`.
        """
        bracket = self.epsilon_bracket(delta)
        for bound in self.bounds:
            if isinstance(bound, Accountant) and bound.epsilon(delta) == bracket.upper:
                return bound.statement(delta, format=format, unit=unit)
        used = [self.moments] if bracket.method == BY_MOMENTS else [*self.bounds]
        steps = tuple(bound.step() for bound in used if not isinstance(bound, Accountant))
        known = Guaranteed(bracket, self.premises, steps, Curve(self.delta, self.epsilon))
        return stated(known, delta, format, unit=unit)

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return epsilon between two certified ends, and how the upper one was found.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        Bracket
            Its lower end is 0 where no attack is known.

        Raises
        ------
        ValueError
            If delta is outside its domain.
        """
        delta = scalar("delta", delta, *DELTA)
        best = min((bound.epsilon_bracket(delta) for bound in self.bounds), key=lambda bracket: bracket.upper)
        epsilon = least_epsilon(self.moments.delta, delta, best.upper)
        return best if epsilon == best.upper else Bracket(0.0, epsilon, BY_MOMENTS, "certified")

    def delta_bracket(self, epsilon: float) -> Bracket:
        """Return delta as the upper end of a bracket whose lower one is 0.

        Parameters
        ----------
        epsilon : float
            Non-negative; infinity is legal.

        Returns
        -------
        Bracket
            Its upper end is `delta(epsilon)`.

        Raises
        ------
        ValueError
            If epsilon is outside its domain.
        """
        return Bracket(0.0, self.delta(epsilon), "least of several bounds", "certified")

    def epsilon(self, delta: float) -> float:
        """Return a certified upper bound of epsilon, the least of the bounds and the moments.

        Parameters
        ----------
        delta : float
            In [0, 1).

        Returns
        -------
        float
            Non-negative; infinity if `delta` is 0 and anything is leaked.

        Raises
        ------
        ValueError
            If delta is outside its domain.
        """
        return self.epsilon_bracket(delta).upper

    def delta(self, epsilon: float) -> float:
        """Return a certified upper bound of delta, the least of the bounds and the moments.

        Parameters
        ----------
        epsilon : float
            Non-negative; infinity is legal.

        Returns
        -------
        float
            In [0, 1].

        Raises
        ------
        ValueError
            If epsilon is outside its domain.
        """
        epsilon = scalar("epsilon", epsilon, *NON_NEGATIVE_OR_INFINITE)
        return min(self.moments.delta(epsilon), *(float(bound.delta(epsilon)) for bound in self.bounds))
