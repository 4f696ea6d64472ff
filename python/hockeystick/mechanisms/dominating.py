"""A step of a training that a mechanism dominates, with what the guarantee rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import hockeystick._core as core
from hockeystick._checks import DELTA, boolean_scalar, choice
from hockeystick._checks.shown import shown
from hockeystick.mechanisms.base import ADJACENCIES, ALSO_CALLED, Adjacency, CountedPair, Mechanism, require_mechanism
from hockeystick.mechanisms.premises import Premises, joined

__all__ = ["Dominating"]

SAME = 1e-9  # of a parameter, relative: what lies between is rounding


@dataclass(frozen=True, repr=False)
class Dominating(Mechanism):
    """A step of a training that leaks at most what a mechanism does, with the premises of that.

    What it runs doubles, or not, where a record is replaced.

    Parameters
    ----------
    mechanism : Mechanism
        At every epsilon its delta is at least that of the step, in any composition: upper ends are its own.
    attained : Mechanism, optional
        One whose delta the step attains on some adjacent data sets, in any composition: lower ends are its own. By default none is known, and lower
        ends are 0.
    assumes : sequence of str
        What must be true of the training, in words.
    special : sequence of str
        What adjacency means here, if it is special, such as zeroing out.
    unit : str
        What is added, removed or replaced: "one client with all its records". By default nothing is said, which means one record.
    released : str
        What an adversary may see, if that is not all outputs.
    failure : float
        In [0, 1): the probability, on either data set, of outputs where the mechanism may not stand for the step. It adds to every delta: on all other
        outputs S, P(S) <= e^eps Q(S) + delta. Only an `Accountant` takes such a step.
    adjacency : {"add_or_remove", "replace"}, optional
        The only adjacency for which all this is known. By default both.
    grouped : bool
        Whether a group of units moves the step by at most what one does times its size. By default it may be in other places, and a group's
        guarantee is by group privacy.

    Examples
    --------
    >>> import hockeystick as hs
    >>> step = hs.mechanisms.Dominating(hs.Gaussian(2.0), assumes=["each update is clipped"])
    >>> found = hs.Accountant().compose(step, 10).epsilon_bracket(1e-5)
    >>> print(found.lower, hs.format_upper(found.upper, ".3f"))
    0.0 7.512
    """

    mechanism: Mechanism
    attained: Mechanism | None = None
    assumes: Sequence[str] = ()
    special: Sequence[str] = ()
    unit: str = ""
    released: str = ""
    failure: float = 0.0
    adjacency: Adjacency | None = None
    grouped: bool = False

    def __post_init__(self) -> None:
        """Check the arguments."""
        require_mechanism(self.mechanism)
        if self.attained is not None:
            require_mechanism(self.attained)
        for name in ("assumes", "special"):
            texts = getattr(self, name)
            if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
                raise TypeError(f"{name} must be a sequence of texts, not {shown(texts)}")
            self._set(**{name: tuple(texts)})
        for name in ("unit", "released"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a text, not {shown(getattr(self, name))}")
        self._check(failure=DELTA)
        if self.adjacency is not None:
            self._set(adjacency=choice("adjacency", self.adjacency, ADJACENCIES, ALSO_CALLED))
        self._check(grouped=boolean_scalar)

    def __repr__(self) -> str:
        """Return what rebuilds it, without the defaults."""
        given = (
            f"{field.name}={value!r}" for field in fields(self) if (value := getattr(self, field.name)) != field.default
        )
        return f"Dominating({', '.join(given)})"

    @property
    def _has_pair(self) -> bool:  # type: ignore[override]
        return self.mechanism._has_pair

    @property
    def _for_one_adjacency(self) -> bool:  # type: ignore[override]
        return self.adjacency is not None

    def _parts(self) -> tuple[Mechanism, ...]:
        return (self.mechanism,)

    def premises(self, adjacency: Adjacency = "add_or_remove") -> Premises:
        """Return what the numbers of one step rest on: its own words alone, since the mechanism's are about another algorithm.

        Parameters
        ----------
        adjacency : {"add_or_remove", "replace"}
            Which data sets are adjacent.

        Returns
        -------
        Premises
            With the failure.
        """
        return replace(self._words(adjacency), attained=self._holding()._attains(adjacency))

    def _words(self, adjacency: Adjacency) -> Premises:
        own = Premises(
            adjacency,
            unit=self.unit,
            special=tuple(self.special),
            released=(self.released,) if self.released else (),
            failure=self.failure,
            assumptions=tuple(self.assumes),
            status=self.status,
        )
        inner = (self.mechanism._words(adjacency),) if isinstance(self.mechanism, Dominating) else ()
        return joined(adjacency, (own, *inner))

    def _shown(self) -> str:
        return repr(self.mechanism) if _alike(self.attained, self.mechanism) else f"at most {self.mechanism!r}"

    def _added_failure(self) -> float:
        return self.failure

    def _holding(self) -> Mechanism:
        return replace(self, failure=0.0) if self.failure > 0.0 else self

    def _plain(self) -> tuple[tuple[Mechanism, int], ...]:
        return self.mechanism._plain()

    def _pairs(self, adjacency: Adjacency, *, upper: bool = True) -> list[CountedPair]:
        if self.adjacency not in {None, adjacency}:
            raise self._refusal(adjacency, f"what dominates it is known under {self.adjacency!r} alone")
        if self.failure > 0.0:
            raise self._refusal(
                adjacency, "its failure adds to every delta, which only an Accountant that it is composed into counts"
            )
        if upper:
            return self.mechanism._pairs(adjacency)
        return [(core.nothing(), 1.0)] if self.attained is None else self.attained._pairs(adjacency, upper=False)


def _alike(one: object, other: object) -> bool:
    """Say whether two mechanisms, or parameters of them, are the same to rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SAME)
    if isinstance(one, Mechanism) and type(one) is type(other):
        names = [field.name for field in fields(one)]  # type: ignore[arg-type]
        return all(_alike(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    return one == other
