"""Reading the reference tables: decimal strings of thirty digits and more, compared without losing them."""

import csv
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "values"


class Table(NamedTuple):
    """Arguments as doubles, the exact value as an unevaluated sum high + low, the relative error that is allowed."""

    arguments: tuple[np.ndarray, ...]
    high: np.ndarray
    low: np.ndarray
    tolerance: np.ndarray

    def relative_error(self, computed: np.ndarray) -> np.ndarray:
        """Return |computed - exact| / |exact|; zero where the exact value rounds to zero and so does the computed one."""
        difference = np.abs((computed - self.high) - self.low)
        return np.divide(
            difference, np.abs(self.high), out=np.where(difference == 0, 0.0, np.inf), where=self.high != 0
        )

    def assert_holds(self, computed: np.ndarray) -> None:
        """Raise AssertionError with the worst row if any is beyond its own tolerance."""
        excess = self.relative_error(computed) / self.tolerance
        worst = int(np.argmax(np.where(np.isnan(excess), np.inf, excess)))
        row = [float(a[worst]).hex() for a in self.arguments]
        assert excess[worst] <= 1, (
            f"row {worst} {row}: {computed[worst]!r} for {self.high[worst]!r}, {excess[worst]:.3g} times its tolerance; "
            f"{np.count_nonzero(~(excess <= 1))} of {len(excess)} rows fail"
        )


def read(name: str) -> list[list[str]]:
    """Return the rows of tests/reference/values/<name>.csv."""
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


def write(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Write a table row by row, and return the number of rows."""
    written = 0
    with (FOLDER / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow(row)
            file.flush()
            written += 1
    return written


def load(name: str) -> Table:
    """Return a table whose last columns are value and tolerance, behind the arguments."""
    rows = read(name)
    arguments = tuple(np.array([float(x) for x in column]) for column in list(zip(*rows, strict=True))[:-2])
    with localcontext() as context:
        context.prec = 60
        exact = [Decimal(row[-2]) for row in rows]
        high = np.array([float(x) for x in exact])
        low = np.array([float(x - Decimal(float(x))) for x in exact])
    return Table(arguments, high, low, np.array([float(row[-1]) for row in rows]))
