"""Print the tables of docs/accounting/published_values.md."""

from __future__ import annotations

from published_numbers import choices, compositions, correlated_noise, integers, risk, shuffling
from published_numbers.value import Value


def short(values: list[Value]) -> list[Value]:
    """Return the rows of one subject, a source that stands in the row above as "the same"."""
    above = [None, *(value.source for value in values)]
    return [
        v._replace(source="the same") if v.source == before else v for v, before in zip(values, above, strict=False)
    ]


SUBJECTS: dict[str, list[Value]] = {
    "Compositions": short(compositions.VALUES),
    "Correlated noise": short(correlated_noise.VALUES),
    "Random allocation and shuffles": short(shuffling.VALUES),
    "Choices": short(choices.VALUES),
    "Integers": short(integers.VALUES),
    "Attacks": short(risk.VALUES),
}


def table(values: list[Value]) -> str:
    """Return the table of one subject."""
    head = ["| question | published by | theirs | ours | why they differ |", "|---|---|---|---|---|"]
    return "\n".join(head + [value.row() for value in values])


if __name__ == "__main__":
    for subject, values in SUBJECTS.items():
        print(f"## {subject}\n\n{table(values)}\n")  # noqa: T201
