"""A table of one observation a row, as every figure is drawn from and as its CSV file holds."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Table:
    """Columns of equal length, with their units.

    Parameters
    ----------
    title : str
        What the table is of; where data stand in for those of the paper, their name.
    columns : mapping of str to ndarray
        One-dimensional, by name.
    units : mapping of str to str
        Of the columns that have one.
    settings : str
        What holds for all rows, in the paper's letters: the second line of the picture's title.

    Examples
    --------
    >>> import numpy as np
    >>> from hockeystick.figures import Table
    >>> table = Table("two curves", {"curve": np.array(["a", "b"]), "epsilon": np.array([0.5, 1.0])}, {"epsilon": "nats"})
    >>> print(*table.header, table.where(curve="b")["epsilon"])
    curve epsilon [nats] [1.]
    """

    title: str
    columns: Mapping[str, NDArray[Any]]
    units: Mapping[str, str]
    settings: str = ""

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column."""
        return self.columns[name]

    @property
    def header(self) -> list[str]:
        """The names of the columns with their units, as the first line of the CSV file."""
        return [f"{name} [{self.units[name]}]" if name in self.units else name for name in self.columns]

    def where(self, **values: Any) -> Table:
        """Return the rows in which columns have the given values.

        Parameters
        ----------
        **values
            A value for each of some columns.

        Returns
        -------
        Table
            Perhaps without rows.
        """
        chosen = np.logical_and.reduce([self[name] == value for name, value in values.items()])
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return Table(self.title, columns, self.units, self.settings)

    def groups(self, name: str) -> Iterator[tuple[Any, Table]]:
        """Yield each value of a column, in the order in which they first appear, with its rows.

        Parameters
        ----------
        name : str
            A column.

        Yields
        ------
        tuple
            The value, and a `Table`.
        """
        for value in dict.fromkeys(self[name].tolist()):
            yield value, self.where(**{name: value})

    def to_csv(self, path: str | Path) -> None:
        """Write title and settings behind a "#", the header, and all rows; numbers have all their digits, what is no number is an empty cell.

        Parameters
        ----------
        path : str or path
            The file, which is replaced.
        """
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            file.write(f"# {'; '.join(filter(None, (self.title, self.settings)))}\n")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.header)
            writer.writerows(map(_cells, zip(*(column.tolist() for column in self.columns.values()), strict=True)))


def _cells(row: tuple[Any, ...]) -> list[Any]:
    return ["" if isinstance(cell, float) and math.isnan(cell) else cell for cell in row]


def stacked(title: str, units: Mapping[str, str], parts: Sequence[Mapping[str, Any]], settings: str = "") -> Table:
    """Return the table of all parts, each of columns that broadcast against each other."""
    rows = [dict(zip(part, np.broadcast_arrays(*part.values()), strict=True)) for part in parts]
    columns = {name: np.concatenate([part[name].ravel() for part in rows]) for name in rows[0]}
    return Table(title, columns, units, settings)
