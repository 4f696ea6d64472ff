"""Data for the simulator: files of the user's own."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from hockeystick._checks import Array, real
from hockeystick._checks.shown import listed, shown
from hockeystick.simulate.problem.problem import LossName, Problem

__all__ = ["read"]


def read(
    path: str | Path,
    loss: LossName,
    *,
    label: str = "label",
    silo: str | None = "silo",
    num_classes: int | None = None,
    hidden: int = 0,
    feature_bound: float | None = None,
) -> Problem:
    r"""Return the problem of a CSV or NPZ file. Nothing is scaled.

    Parameters
    ----------
    path : str or path
        Of a CSV file with a header, or of an NPZ file with the array "features".
    loss : str
        One of the losses of `Problem`.
    label : str
        Column or array of the labels: numbers, or "true" and "false", which are 1 and 0. All other columns of a CSV file are features.
    silo : str, optional
        Column or array that says to which silo a record belongs, in any order, by numbers or by names; one silo if there is no
        column "silo", or `silo` is None.
    num_classes, hidden, feature_bound : optional
        As in `Problem`.

    Returns
    -------
    Problem
        Silos in the order of their numbers, or of their names.

    Raises
    ------
    ValueError
        If something is missing, not a number or not finite; if a column differs from `label` or `silo` by capitals or spaces alone;
        or if two silos are one number written in two ways, such as 1 and 01.

    Examples
    --------
    >>> import io
    >>> from hockeystick import simulate
    >>> text = io.StringIO("silo,x,y,label\nnorth,0.5,1.0,1\nsouth,-0.5,0.3,0\nnorth,0.1,0.2,0\n")
    >>> simulate.read(text, "logistic").sizes
    (2, 1)
    """
    features, table = _arrays(path) if str(path).endswith(".npz") else _columns(path, {label, silo})
    for name, used, default in (("label", label, "label"), ("silo", silo, "silo")):
        if used is not None:
            _require_name(name, used, default, table)
    labels = _labels(table[label]) if label in table else None
    sizes = None
    if silo in table:
        which = _silos(table[silo])
        if which.shape != features.shape[:1]:
            msg = f"Length of {shown(silo)} ({which.size}) must match number of records ({len(features)})"
            raise ValueError(msg)
        order = np.argsort(which, kind="stable")
        features, labels = features[order], None if labels is None else labels[order]
        sizes = np.bincount(which).tolist()
    return Problem(loss, features, labels, sizes, num_classes, hidden, feature_bound=feature_bound)


def _arrays(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Return the features of an NPZ file, and its other arrays."""
    with np.load(path, allow_pickle=False) as arrays:
        table = {name: arrays[name] for name in arrays}
    if "features" not in table:
        msg = f"the arrays of {path} must include 'features', not only {sorted(table)}"
        raise ValueError(msg)
    return real("features", table["features"]), table


def _columns(path: str | Path, words: set[str | None]) -> tuple[Array, dict[str, Any]]:
    """Return the features of a CSV file, and all its columns by name: as text if the name is one of these words, else None."""
    with _opened(path) as file:
        rows = _rows(file)
        _, header = next(rows, (0, []))
        header = [name.strip() for name in header]
        numeric = [place for place, name in enumerate(header) if name not in words]
        if not numeric or len(set(header)) < len(header):
            msg = f"the columns of {path} must be features and others, each once, not {header}"
            raise ValueError(msg)
        texts: dict[int, list[str]] = {place: [] for place in range(len(header)) if place not in numeric}
        numbers = array("d")
        for line, row in rows:
            if len(row) != len(header):
                msg = f"line {line} of {path} must have {len(header)} values, as the header has, not {len(row)}"
                raise ValueError(msg)
            for place, column in texts.items():
                column.append(row[place].strip())
            try:
                numbers.extend([float(row[place]) for place in numeric])
            except ValueError as error:
                msg = f"features must be numbers, in all of the columns {[header[place] for place in numeric]}: line {line}: {error}"
                raise ValueError(msg) from error
    features = np.frombuffer(numbers, np.float64).reshape(-1, len(numeric))
    return features, {name: texts.get(place) for place, name in enumerate(header)}


def _opened(path: Any) -> AbstractContextManager[TextIO]:
    """Return a file that ends with the block, or one that is open already."""
    if isinstance(path, (str, Path)):
        return Path(path).open(newline="", encoding="utf-8-sig")
    return nullcontext(path)


def _rows(file: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with the number of its line."""
    reader = csv.reader(file, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        msg = f"line {reader.line_num} of the file must be comma-separated values: {error}"
        raise ValueError(msg) from error


def _require_name(argument: str, name: str, default: str, table: Mapping[str, Any]) -> None:
    """Raise if a column is missing that was asked for, or is there in another spelling."""
    if name in table:
        return
    alike = [other for other in table if other.strip().casefold() == name.strip().casefold()]
    if alike:
        msg = f"{argument} must be a column as it is spelt, not {shown(name)}, where there is {shown(alike[0])}: say {argument}={shown(alike[0])}"
        raise ValueError(msg)
    if name != default:
        msg = f"{argument} must be one of {listed(map(repr, table))}, not {shown(name)}"
        raise ValueError(msg)


def _labels(column: Any) -> Array:
    """Return labels as numbers."""
    if isinstance(column, np.ndarray) and column.dtype.kind != "U":
        return real("labels", column.astype(np.float64) if column.dtype.kind == "b" else column)
    texts = [str(text).casefold() for text in column]
    if set(texts) <= {"true", "false"}:
        return np.array([text == "true" for text in texts], np.float64)
    try:
        return np.array([float(text) for text in texts])
    except ValueError as error:
        msg = f"labels must be numbers, or all true or false; number the classes 0, 1, ...: {error}"
        raise ValueError(msg) from error


def _silos(column: Any) -> NDArray[np.intp]:
    """Return the number of each record's silo, from 0, in the order of the numbers or names."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        if column.ndim != 1 or np.isnan(column).any():
            msg = "silo must be one number for each record, not NaN or of another shape"
            raise ValueError(msg)
        return np.unique(column, return_inverse=True)[1]
    names = [str(text).strip() for text in column]
    missing = [record for record, name in enumerate(names) if name.casefold() in ("", "nan")]
    if missing:
        msg = f"silo[{missing[0]}] must be a number or a name, not {shown(names[missing[0]])}"
        raise ValueError(msg)
    places = {name: place for place, name in enumerate(_in_order(set(names)))}
    return np.array([places[name] for name in names], np.intp)


def _in_order(names: set[str]) -> Sequence[str]:
    """Return names in the order of their numbers, if all are numbers, else of the alphabet."""
    try:
        numbers = {name: Decimal(name) for name in names}
    except InvalidOperation:
        return sorted(names)
    if not all(number.is_finite() for number in numbers.values()):
        return sorted(names)
    ordered = sorted(names, key=lambda name: (numbers[name], len(name), name))
    for one, other in pairwise(ordered):
        if numbers[one] == numbers[other]:
            msg = f"silo must be written in one way, not both {one} and {other}: are they one silo or two?"
            raise ValueError(msg)
    return ordered
