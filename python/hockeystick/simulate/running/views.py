"""What an adversary may see of a training, and which guarantees cover it: whatever is computed from what is seen is covered, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias, get_args

from hockeystick._checks.shown import shown
from hockeystick.simulate.running.guarantee import Guarantee, NoGuaranteeError

__all__ = ["VIEWS", "View", "smallest_of", "view_from"]

View: TypeAlias = Literal["messages", "shuffled_messages", "every_model", "last_model", "random_model"]
VIEWS: tuple[View, ...] = get_args(View)

WORDS: dict[View, str] = {
    "messages": "every message of every client, and so all models",
    "shuffled_messages": "the shuffled messages of every round, and so all models",
    "every_model": "the model after every round",
    "last_model": "the last model only",
    "random_model": "the model after a uniformly random round only",
}
# For each view, the views from which it can be computed. A sum does not depend on the order of the messages.
FROM: dict[View, tuple[View, ...]] = {
    "messages": ("messages",),
    "shuffled_messages": ("shuffled_messages", "messages"),
    "every_model": ("every_model", "shuffled_messages", "messages"),
    "last_model": ("last_model", "every_model", "shuffled_messages", "messages"),
    "random_model": ("random_model", "every_model", "shuffled_messages", "messages"),
}


def view_from(view: View, proven: Mapping[View, Callable[[], Guarantee]]) -> Guarantee:
    """Return the smallest of all guarantees that cover a view, from those that are proven for some views.

    Raises
    ------
    NoGuaranteeError
        If none covers it; of those that do not apply to the settings, the first says why.
    """
    found, refusal = [], None
    for source in FROM[view]:
        if source in proven:
            try:
                found.append(proven[source]())
            except NoGuaranteeError as error:
                refusal = refusal or error
    if found:
        return smallest_of(WORDS[view], found)
    if refusal:
        raise refusal
    msg = f"nothing is certified for released={shown(view)}, only for {' and '.join(map(repr, proven))}"
    raise NoGuaranteeError(msg)


def smallest_of(released: str, found: Iterable[Guarantee]) -> Guarantee:
    """Return the guarantee whose epsilon is the smallest of several under one adjacency, the first one's."""
    first, *others = found
    parts = [first, *(part for part in others if part.adjacency == first.adjacency)]
    if len(parts) == 1:
        return parts[0]
    source = "; or, if smaller: ".join(part.source for part in parts)

    def epsilon(rounds: int, delta: float) -> float:
        return min(part.epsilon(rounds, delta) for part in parts)

    return Guarantee(parts[0].adjacency, released, source, epsilon, parts=tuple(parts))
