"""Why cells have no value: a text for each distinct reason, and for each cell the number of its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import Refusal

Codes = NDArray[np.int32]


@dataclass(eq=False)
class Reasons:
    """The reasons of cells of any shape."""

    codes: Codes  # of each cell: the number of its text, or -1 for none
    texts: list[str]

    @classmethod
    def none(cls, shape: tuple[int, ...]) -> Reasons:
        """Return the reasons of cells that all have values."""
        return cls(np.full(shape, -1, np.int32), [])

    def put(self, at: Any, some: Reasons) -> None:
        """Set the reasons of some cells, in their shape."""
        if some.texts:
            self.codes[at] = np.where(some.codes < 0, -1, some.codes + len(self.texts))
            self.texts += some.texts

    def say(self, at: Any, text: str) -> None:
        """Give some cells one more text."""
        self.codes[at] = len(self.texts)
        self.texts.append(text)

    def joined(self, column: str, others: Reasons) -> Reasons:
        """Return these reasons with those of an output added to the same cells; no two texts of them are equal."""
        if not others.texts:
            return self
        texts = ["", *(f"{column}: {text}" for text in others.texts)]
        pairs = (self.codes.astype(np.int64) + 1) * len(texts) + (others.codes + 1)
        distinct, member = numbered(pairs, (len(self.texts) + 1) * len(texts))
        numbers: dict[str, int] = {"": -1}
        codes = []
        for pair in distinct.tolist():
            before, after = divmod(pair, len(texts))
            said = filter(None, (self.texts[before - 1] if before else "", texts[after]))
            codes.append(numbers.setdefault("; ".join(said), len(numbers) - 1))
        return Reasons(np.array(codes, np.int32)[member], [text for text in numbers if text])

    def first(self) -> tuple[int, str] | None:
        """Return the first cell without a value, and why."""
        if not self.texts:
            return None
        at = int(np.argmax(self.codes >= 0))
        return at, self.texts[self.codes[at]]


def reasons_of(refusals: Iterable[Refusal], shape: tuple[int, ...]) -> Reasons:
    """Return of each cell the first refusal, as a call with this cell alone would say it.

    A refusal has the shape of its arguments: where that has one dimension more than the cells, the last is that of rounds.
    """
    reasons = Reasons.none(shape)
    for refusal in refusals:
        codes, texts = _texts(refusal)
        if codes.ndim > len(shape):
            codes = codes[..., 0]
        wide = np.broadcast_to(codes, shape)
        new = (reasons.codes < 0) & (wide >= 0)
        reasons.codes[new] = wide[new] + len(reasons.texts)
        reasons.texts += texts
    return reasons


def _texts(refusal: Refusal) -> tuple[Codes, list[str]]:
    """Return a text for each distinct combination of refused values, and which of them each element has."""
    bad = ~refusal.good
    columns = [np.broadcast_to(array, bad.shape)[bad] for array in refusal.arguments.values()]
    member = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        member = np.unique(member * len(values) + place, return_inverse=True)[1]
    first = np.zeros(member.max() + 1, np.intp)  # element of each combination
    first[member[::-1]] = np.arange(len(member))[::-1]
    codes = np.full(bad.shape, -1, np.int32)
    codes[bad] = member
    chosen = zip(*(column[first].tolist() for column in columns), strict=True)
    return codes, [refusal.text(values) for values in chosen]


def numbered(values: NDArray[np.int64], bound: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct values, which are from 0 to below `bound`, and of each value its place among them."""
    if bound > 4 * values.size:
        return np.unique(values, return_inverse=True)
    there = np.bincount(values, minlength=bound) > 0  # without sorting
    return np.flatnonzero(there), (np.cumsum(there) - 1)[values]
