"""A ledger handed to the compiled core."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

import hockeystick._core as core
from hockeystick._numeric.rounding import failure_of
from hockeystick._statements import say
from hockeystick.mechanisms.base import Adjacency, CountedPair, Mechanism, plain, status_of
from hockeystick.mechanisms.premises import Premises, joined
from hockeystick.mechanisms.renyi_bounded import RenyiMechanism


class _Held:
    """What one process keeps between questions. A child of a fork begins anew: a thread of its parent may hold this lock."""

    def __init__(self) -> None:
        self.accountants: dict[bool, core.Accountant] = {}  # by upper_only, since lower ends may cost much more
        self.lock = threading.RLock()  # a signal handler may ask while its thread is in here


class Composition:
    """A ledger with its accountants in the core, which keep what they computed between questions."""

    def __init__(self, ledger: Mapping[Mechanism, int], adjacency: Adjacency) -> None:
        """Take a ledger whose mechanisms support the adjacency."""
        self.ledger = dict(ledger)
        self.holding: dict[Mechanism, int] = {}  # what is accounted for where nothing fails
        for mechanism, count in ledger.items():
            holding = mechanism._holding()
            self.holding[holding] = self.holding.get(holding, 0) + count
        # The probability that something does, on either data set: it adds to every delta.
        self.failure = failure_of((count, mechanism._added_failure()) for mechanism, count in ledger.items())
        self.status = status_of(ledger)
        self.adjacency = adjacency
        self.by_renyi_alone = not all(mechanism._has_pair for mechanism in ledger)
        # Of some mechanisms both are known, and at a small delta the divergences may say more than the pair.
        self.by_renyi_too = self.status == "certified" and any(
            isinstance(step, RenyiMechanism) for step in plain(ledger)
        )
        self._held: dict[int, _Held] = {}  # by process

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a copy or a pickle is made from; its accountants compute anew."""
        return Composition, (self.ledger, self.adjacency)

    def premises(self) -> Premises:
        """Return what the numbers rest on."""
        fixed = Premises(self.adjacency, assumptions=(say("assumed_fixed"),))
        steps = (step.premises(self.adjacency).times(count) for step, count in self.ledger.items())
        return joined(self.adjacency, (fixed, *steps))

    def accountant(self, *, upper_only: bool) -> core.Accountant:
        """Return the core's accountant where nothing fails, which has steps for upper ends and, unless `upper_only`, for lower ends."""
        held = self._held.setdefault(os.getpid(), _Held())
        with held.lock:
            if upper_only not in held.accountants:
                accountant = core.Accountant()
                for upper in (True,) if upper_only else (True, False):
                    for mechanism, count in self.holding.items():
                        for pair, times in mechanism._pairs(self.adjacency, upper=upper):
                            if times > 0.0:
                                accountant.compose(pair, times * count, upper)
                held.accountants[upper_only] = accountant
            return held.accountants[upper_only]

    def steps(self, *, upper: bool) -> list[CountedPair]:
        """Return the steps for the upper or the lower end, with all Gaussian steps merged into one."""
        if self.failure > 0.0:
            msg = "a ledger whose steps may fail has no pairs: the probability adds to every delta"
            raise ValueError(msg)
        return self.accountant(upper_only=upper).steps(upper)

    def name_of(self, answer: core.Answer) -> str:
        """Return the name of the direction that an answer is about."""
        if answer.both_directions:
            return "both"
        names = ("forward", "reverse") if self.adjacency == "replace" else ("remove", "add")
        return names[0 if answer.forward else 1]
