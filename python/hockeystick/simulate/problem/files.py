"""Data for the simulator: files of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hockeystick.simulate.problem.problem import Loss, Problem

__all__ = ["read"]


def read(
    path: str | Path,
    loss: Loss,
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
        Column or array of the labels. All other columns of a CSV file are features.
    silo : str, optional
        Column or array that says to which silo a record belongs, in any order; one silo if it is missing or None.
    num_classes, hidden, feature_bound : optional
        As in `Problem`.

    Returns
    -------
    Problem
        Silos in the order of their numbers.

    Raises
    ------
    ValueError
        If something is missing, or not finite.

    Examples
    --------
    >>> import io
    >>> from hockeystick import simulate
    >>> text = io.StringIO("silo,x,y,label\n1,0.5,1.0,1\n0,-0.5,0.3,0\n")
    >>> simulate.read(text, "logistic").num_silos
    2
    """
    if str(path).endswith(".npz"):
        with np.load(path, allow_pickle=False) as arrays:
            table = {name: np.asarray(arrays[name], np.float64) for name in arrays}
        if "features" not in table:
            msg = f"the arrays of {path} must include 'features', not only {sorted(table)}"
            raise ValueError(msg)
        features = table.pop("features")
    else:
        rows: Any = np.genfromtxt(path, delimiter=",", names=True, dtype=np.float64, ndmin=1)
        table = {name: rows[name] for name in rows.dtype.names or ()}
        columns = [table[name] for name in table if name not in (label, silo)]
        if not columns:
            msg = f"the columns of {path} must include features, not only {sorted(table)}"
            raise ValueError(msg)
        features = np.column_stack(columns)
    labels, where = table.get(label), table.get(silo) if silo is not None else None
    sizes = None
    if where is not None:
        order = np.argsort(where, kind="stable")
        features, labels = features[order], None if labels is None else labels[order]
        sizes = np.unique(where, return_counts=True)[1].tolist()
    return Problem(loss, features, labels, sizes, num_classes, hidden, feature_bound=feature_bound)
