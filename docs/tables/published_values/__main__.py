"""Print the table of docs/accounting/published_values.md."""

from __future__ import annotations

from collections.abc import Iterator

import dpsgd
from value import Value

SUBJECTS: dict[str, list[Value]] = {"DP-SGD": dpsgd.VALUES}


def lines() -> Iterator[str]:
    """Yield the lines of the table, a subject after the other."""
    for subject, values in SUBJECTS.items():
        yield f"## {subject}\n"
        yield "| question | published in | theirs | ours | why they differ |"
        yield "|---|---|---|---|---|"
        for value in values:
            if not value.agrees() and not value.note:
                msg = f"{value.question}: {value.theirs} of {value.source} disagrees with {value.ours()}, and no note says why"
                raise ValueError(msg)
            yield value.row()
        yield ""


if __name__ == "__main__":
    for line in lines():
        print(line)  # noqa: T201
