"""What is certified about a run: for whom, of what, and by which function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hockeystick._checks import count_scalar, scalar
from hockeystick._numeric.search import last_whole
from hockeystick.accounting.accountant import Accountant
from hockeystick.mechanisms import Dominating
from hockeystick.mechanisms.base import Adjacency
from hockeystick.mechanisms.premises import Premises
from hockeystick.simulate.running.participation import Account

__all__ = ["Guarantee", "NoGuaranteeError"]


class NoGuaranteeError(ValueError):
    """No certified bound covers an algorithm with these settings; the message says why."""


@dataclass(frozen=True)
class Guarantee:
    """A certified upper bound of epsilon after any number of rounds.

    Attributes
    ----------
    adjacency : {"add_or_remove", "replace"}
        Which problems are adjacent.
    released : str
        What an adversary may see.
    source : str
        The function that certifies, with what it assumes here.
    parts : tuple of Guarantee
        If several guarantees apply, each of them; epsilon is the smallest of theirs.
    """

    adjacency: Adjacency
    released: str
    source: str
    _epsilon: Callable[[int, float], float] = field(repr=False)
    _accounts: Sequence[Account] = field(default=(), repr=False)
    parts: tuple[Guarantee, ...] = field(default=(), repr=False)

    @property
    def premises(self) -> Premises:
        """What the bound rests on; that a training attains it is not claimed."""
        return Premises(self.adjacency, released=(self.released,), attained=False, sources=(self.source,))

    def epsilon(self, rounds: int, delta: float) -> float:
        """Return the certified upper end of epsilon at `delta` after some rounds; 0 after none.

        Parameters
        ----------
        rounds : int
            At least 0.
        delta : float
            In [0, 1).

        Returns
        -------
        float
            An upper bound, perhaps infinite.
        """
        rounds = count_scalar("rounds", rounds, 0)
        delta = scalar("delta", delta, lambda x: 0 <= x < 1, "lie in [0, 1)")
        return self._epsilon(rounds, delta) if rounds else 0.0

    def bounds(self, rounds: int, delta: float) -> dict[str, float]:
        """Return the epsilon of every guarantee that applies, the smallest first.

        Parameters
        ----------
        rounds : int
            At least 0.
        delta : float
            In [0, 1).

        Returns
        -------
        dict of str to float
            Upper bounds by the function that certifies; of several by one function, each says what it covers.
        """
        parts = self.parts or (self,)
        found: dict[str, float] = {}
        for part in parts:
            alone = sum(other.source == part.source for other in parts) == 1
            name = part.source if alone else f"{part.source}, which covers {part.released}"
            value = part.epsilon(rounds, delta)
            found[name] = min(value, found.get(name, value))
        return dict(sorted(found.items(), key=lambda item: item[1]))

    def accountant(self, rounds: int, delta: float) -> Accountant | None:
        """Return what the silo that loses most has spent after some rounds, or None for a bound of hidden states.

        Parameters
        ----------
        rounds : int
            At least 0.
        delta : float
            Decides which silo loses most; in [0, 1).

        Returns
        -------
        Accountant or None
            With its ledger, which knows the premises.
        """
        ledgers = _ledgers(self._accounts, count_scalar("rounds", rounds, 0))
        worst = max(ledgers, key=lambda ledger: float(ledger.epsilon(delta)), default=None)
        if worst is None:
            return None
        known = Accountant(worst.adjacency)
        for step, count in worst.ledger.items():
            assumes = (f"the bound is that of {self.source}", *step.premises(worst.adjacency).assumptions)
            known.compose(Dominating(step, assumes=assumes, released=self.released, adjacency=worst.adjacency), count)
        return known

    def affordable(self, rounds: int, epsilon: float, delta: float) -> int:
        """Return after how many rounds, of at most `rounds`, a budget stops a run: before the first that would exceed it.

        Parameters
        ----------
        rounds : int
            At least 1.
        epsilon, delta : float
            The budget.

        Returns
        -------
        int
            0 if not even one round fits.
        """
        return last_whole(lambda count: self.epsilon(int(count), delta) - epsilon, rounds)


def by_composition(accounts: Sequence[Account], released: str, source: str) -> Guarantee:
    """Return the guarantee of the worst of several silos."""

    def epsilon(rounds: int, delta: float) -> float:
        return max(float(ledger.epsilon(delta)) for ledger in _ledgers(accounts, rounds))

    return Guarantee(accounts[0][0], released, source, epsilon, accounts)


def _ledgers(accounts: Sequence[Account], rounds: int) -> list[Accountant]:
    """Return what silos have spent, once for those that have spent the same: silos may agree after some rounds and not after others."""
    spent = dict.fromkeys((adjacency, mechanism, uses(rounds)) for adjacency, mechanism, uses in accounts)
    return [Accountant(adjacency).compose(mechanism, count) for adjacency, mechanism, count in spent]
