"""Print the tables of docs/accounting/published_values.md."""

from __future__ import annotations

from published_numbers import choices, compositions, correlated_noise, integers, risk, shuffling
from published_numbers.value import Value

SUBJECTS: dict[str, list[Value]] = {
    "Compositions": compositions.VALUES,
    "Correlated noise": correlated_noise.VALUES,
    "Random allocation and shuffles": shuffling.VALUES,
    "Choices": choices.VALUES,
    "Integers": integers.VALUES,
    "Attacks": risk.VALUES,
}


def table(values: list[Value]) -> str:
    """Return the table of one subject."""
    head = ["| question | published by | theirs | ours | why they differ |", "|---|---|---|---|---|"]
    return "\n".join(head + [value.row() for value in values])


if __name__ == "__main__":
    for subject, values in SUBJECTS.items():
        print(f"## {subject}\n\n{table(values)}\n")  # noqa: T201
