"""Where problems come from: synthetic silos, the data sets that ship with scikit-learn, and files of the user's own."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import (
    STRICT,
    Array,
    choice,
    count_scalar,
    non_negative_scalar,
    positive_scalar,
    real,
    scalar,
    seed_scalar,
    vector,
)
from hockeystick._checks.hints import needs
from hockeystick._checks.shown import listed, shown
from hockeystick.simulate.problem.loss import Loss
from hockeystick.simulate.problem.problem import CLASSIFIERS, TWO_CLASSES, LossName, Problem

DataSet: TypeAlias = Literal["digits", "diabetes", "breast_cancer", "wine"]
DATA_SETS: tuple[DataSet, ...] = get_args(DataSet)


def synthetic(
    loss: LossName,
    *,
    sizes: Sequence[int],
    num_features: int,
    seed: int,
    heterogeneity: float = 0.0,
    num_classes: int = 2,
    hidden: int = 8,
) -> Problem:
    """Return synthetic silos.

    Parameters
    ----------
    loss : str
        One of the losses of `Problem`.
    sizes : sequence of int
        Records in each silo.
    num_features : int
        At least 1.
    seed : int
        Of NumPy's generator.
    heterogeneity : float
        Standard deviation, in every coordinate, of each silo's own true model about the common one, and of the mean of its
        features about 0; non-negative.
    num_classes : int
        For "softmax" and "network".
    hidden : int
        For "network".

    Returns
    -------
    Problem
        Its features are scaled to norm 1 where they are longer, which is its `feature_bound`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> simulate.synthetic("softmax", sizes=[10, 20], num_features=3, seed=1, num_classes=4).dimension
    12
    """
    num_features = count_scalar("num_features", num_features)
    counts = [count_scalar(f"sizes[{i}]", size) for i, size in enumerate(sizes)]
    spread = non_negative_scalar("heterogeneity", heterogeneity)
    classes = 1 if loss not in CLASSIFIERS or loss in TWO_CLASSES else count_scalar("num_classes", num_classes, 2)
    rng = np.random.default_rng(seed_scalar("seed", seed))
    common = rng.normal(size=(num_features, classes)) * 3
    features, labels = [], []
    for count in counts:
        mine = common + spread * rng.normal(size=common.shape)
        x = bounded(
            (rng.normal(size=(count, num_features)) + spread * rng.normal(size=num_features)) / math.sqrt(num_features)
        )
        features.append(x)
        labels.append(_labels(loss, x @ mine, rng))
    return Problem(
        loss,
        np.concatenate(features),
        np.concatenate(labels),
        counts,
        num_classes=classes if classes > 1 else None,
        hidden=hidden if loss == "network" else 0,
        feature_bound=1.0,
    )


def _labels(loss: LossName, scores: Array, rng: np.random.Generator) -> Array:
    """Draw labels from the model; of those that have classes, by Gumbel's trick."""
    if loss in TWO_CLASSES:
        return np.asarray(rng.random(len(scores)) < 1 / (1 + np.exp(-scores[:, 0])), dtype=np.float64)
    if loss in CLASSIFIERS:
        return np.asarray(np.argmax(scores + rng.gumbel(size=scores.shape), axis=1), dtype=np.float64)
    return np.asarray(scores[:, 0] + 0.1 * rng.normal(size=len(scores)))


def bounded(features: Array, bound: float = 1.0) -> Array:
    """Scale rows down to a norm of at most `bound`."""
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    # a hair less, so that rounding does not exceed the bound
    return np.asarray(features * np.minimum(1.0, bound * (1 - 1e-15) / np.maximum(norms, 1e-300)))


def dirichlet_silos(labels: ArrayLike, *, num_silos: int, concentration: float, seed: int) -> list[Any]:
    """Split records into silos whose shares of each class are Dirichlet distributed.

    Parameters
    ----------
    labels : array_like
        Classes of the records, shape (records,), finite, any real numbers.
    num_silos : int
        At least 1, at most the number of records.
    concentration : float
        alpha, positive; small values give each class to few silos.
    seed : int
        Of NumPy's generator.

    Returns
    -------
    list of ndarray
        Indices of each silo's records. A silo that drew none takes one from the largest.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> [len(silo) for silo in simulate.dirichlet_silos([0] * 50 + [1] * 50, num_silos=3, concentration=100.0, seed=1)]
    [31, 35, 34]
    """
    classes = vector("labels", STRICT.finite("labels", labels))
    num_silos = count_scalar("num_silos", num_silos)
    concentration = positive_scalar("concentration", concentration)
    if num_silos > len(classes):
        raise ValueError(f"num_silos must be at most the number of records ({len(classes)}), not {num_silos}")
    rng = np.random.default_rng(seed_scalar("seed", seed))
    silos: list[list[int]] = [[] for _ in range(num_silos)]
    for label in np.unique(classes):
        members = rng.permutation(np.flatnonzero(classes == label))
        cuts = np.cumsum(rng.dirichlet([concentration] * num_silos))[:-1]
        for silo, part in zip(silos, np.split(members, (cuts * len(members)).astype(int)), strict=True):
            silo.extend(part.tolist())
    for silo in silos:
        if not silo:
            silo.append(max(silos, key=len).pop())
    return [np.array(silo) for silo in silos]


def load(
    name: DataSet,
    *,
    num_silos: int,
    concentration: float = math.inf,
    seed: int,
    test_share: float = 0.2,
    hidden: int = 0,
) -> tuple[Problem, Problem]:
    """Return a data set that ships with scikit-learn, split into silos, and its test records.

    Parameters
    ----------
    name : {"digits", "diabetes", "breast_cancer", "wine"}
        Which; "diabetes" is for least squares, "breast_cancer" has two classes, the others more.
    num_silos : int
        At least 1.
    concentration : float
        Of the Dirichlet split by label (by tercile of the target for "diabetes"); infinite for a split at random.
    seed : int
        Of NumPy's generator.
    test_share : float
        Share of the records kept for testing, in (0, 1).
    hidden : int
        If positive, a network with so many hidden units in place of a linear model.

    Returns
    -------
    problem, test : Problem
        Features are standardised by mean and standard deviation of the training records, with a constant 1 appended, divided by
        the square root of their number, and rows longer than 1 are scaled to norm 1, the `feature_bound`. The target of
        "diabetes" is standardised too. Mean and deviation come from the data and are not covered by any guarantee.

    Raises
    ------
    ImportError
        If scikit-learn is not installed.
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import simulate
    >>> train, test = simulate.load("wine", num_silos=3, seed=1)
    >>> print(train.loss, train.num_records, test.num_records, train.dimension)
    softmax 142 36 42
    """
    choice("name", name, DATA_SETS)
    num_silos = count_scalar("num_silos", num_silos)
    share = scalar("test_share", test_share, lambda x: 0 < x < 1, "lie in (0, 1)")
    hidden = count_scalar("hidden", hidden, 0)
    features, labels = shipped(name)
    rng = np.random.default_rng(seed_scalar("seed", seed))
    order = rng.permutation(len(labels))
    cut = round(share * len(labels))
    test, train = order[:cut], order[cut:]
    features = standardised(features, train)
    labels = labels.astype(np.float64)
    groups = labels
    if name == "diabetes":
        labels = (labels - labels[train].mean()) / labels[train].std()
        groups = np.digitize(labels, np.quantile(labels[train], [1 / 3, 2 / 3])).astype(np.float64)
    if math.isinf(concentration):
        silos = np.array_split(train, num_silos)
    else:
        split = dirichlet_silos(groups[train], num_silos=num_silos, concentration=concentration, seed=seed)
        silos = [train[silo] for silo in split]
    settings = _settings(name, labels, hidden)
    order = np.concatenate(silos)
    problem = Problem(features=features[order], labels=labels[order], sizes=[len(s) for s in silos], **settings)
    return problem, Problem(features=features[test], labels=labels[test], **settings)


def shipped(name: DataSet) -> tuple[Array, NDArray[Any]]:
    """Return features and labels of a data set that scikit-learn ships."""
    with needs("data", "data sets need scikit-learn"):
        from sklearn import datasets  # noqa: PLC0415 - asked for when needed
    features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    return features, labels


def _settings(name: str, labels: Array, hidden: int) -> dict[str, Any]:
    loss = {"diabetes": "least_squares", "breast_cancer": "logistic"}.get(name, "softmax")
    if hidden and loss == "least_squares":
        raise ValueError(f"hidden must be 0 for {shown(name)}: the network is for classes, not {hidden}")
    loss = "network" if hidden else loss
    classes = int(labels.max()) + 1 if loss in ("softmax", "network") else None
    return {"loss": loss, "num_classes": classes, "hidden": hidden, "feature_bound": 1.0}


def standardised(features: Array, train: Any) -> Array:
    """Return features with mean 0 and deviation 1 over the training records, a constant, and rows of norm at most 1."""
    deviation = features[train].std(axis=0)
    scaled = (features - features[train].mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    with_constant = np.column_stack([scaled, np.ones(len(scaled))])
    return bounded(with_constant / math.sqrt(with_constant.shape[1]))


# Files


def read(
    path: str | Path,
    loss: LossName | Loss,
    *,
    label: str = "label",
    silo: str | None = "silo",
    num_classes: int | None = None,
    hidden: int = 0,
    feature_bound: float | None = None,
) -> Problem:
    r"""Return the problem of a CSV, Parquet or NPZ file. Nothing is scaled.

    Parameters
    ----------
    path : str or path
        Of a CSV file with a header, a Parquet file, or an NPZ file with the array "features".
    loss : str or Loss
        One of the losses of `Problem`.
    label : str
        Column or array of the labels: numbers, or "true" and "false", which are 1 and 0. All other columns of a table are features.
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
        If something is missing (labels too, for a `Loss`), not a number or not finite; if a column differs from `label` or `silo` by capitals or spaces alone;
        or if two silos are one number written in two ways, such as 1 and 01.

    Examples
    --------
    >>> import io
    >>> from hockeystick import simulate
    >>> text = io.StringIO("silo,x,y,label\nnorth,0.5,1.0,1\nsouth,-0.5,0.3,0\nnorth,0.1,0.2,0\n")
    >>> simulate.read(text, "logistic").sizes
    (2, 1)
    """
    ending = Path(str(path)).suffix
    if ending == ".npz":
        features, table = _arrays(path)
    else:
        features, table = (_parquet if ending == ".parquet" else _columns)(path, {label, silo})
    own = isinstance(loss, Loss)  # which would take missing labels for 0
    for name, used, default in (("label", label, None if own else "label"), ("silo", silo, "silo")):
        if used is not None:
            _require_name(name, used, default, table)
    labels = _numbered(table[label]) if label in table else None
    sizes = None
    if silo in table:
        which = _silos(table[silo])
        if which.shape != features.shape[:1]:
            raise ValueError(f"Length of {shown(silo)} ({which.size}) must match number of records ({len(features)})")
        order = np.argsort(which, kind="stable")
        features, labels = features[order], None if labels is None else labels[order]
        sizes = np.bincount(which).tolist()
    return Problem(loss, features, labels, sizes, num_classes, hidden, feature_bound=feature_bound)


def _arrays(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Return the features of an NPZ file, and its other arrays."""
    with np.load(path, allow_pickle=False) as arrays:
        table = {name: arrays[name] for name in arrays}
    if "features" not in table:
        raise ValueError(f"the arrays of {path} must include 'features', not only {sorted(table)}")
    return real("features", table["features"]), table


def _parquet(path: str | Path, words: set[str | None]) -> tuple[Array, dict[str, Any]]:
    """Return the features of a Parquet file, and all its columns by name: its values if the name is one of these words, else None."""
    with needs("sweep", "reading Parquet needs pyarrow"):
        import pyarrow.parquet as pq  # noqa: PLC0415 - asked for when needed
    read = pq.read_table(path)
    columns = {name: read[name].to_numpy() for name in read.column_names}
    columns = {name: np.array([*x]) if x.dtype == object else x for name, x in columns.items()}
    features = [real(name, column) for name, column in columns.items() if name not in words]
    if not features:
        raise ValueError(f"the columns of {path} must be features and others, not {read.column_names}")
    return np.column_stack(features), {name: columns[name] if name in words else None for name in columns}


def _columns(path: str | Path, words: set[str | None]) -> tuple[Array, dict[str, Any]]:
    """Return the features of a CSV file, and all its columns by name: as text if the name is one of these words, else None."""
    with _opened(path) as file:
        rows = _rows(file)
        _, header = next(rows, (0, []))
        header = [name.strip() for name in header]
        numeric = [place for place, name in enumerate(header) if name not in words]
        if not numeric or len(set(header)) < len(header):
            raise ValueError(f"the columns of {path} must be features and others, each once, not {header}")
        texts: dict[int, list[str]] = {place: [] for place in range(len(header)) if place not in numeric}
        numbers = array("d")
        for line, row in rows:
            if len(row) != len(header):
                raise ValueError(
                    f"line {line} of {path} must have {len(header)} values, as the header has, not {len(row)}"
                )
            for place, column in texts.items():
                column.append(row[place].strip())
            try:
                numbers.extend([float(row[place]) for place in numeric])
            except ValueError as error:
                raise ValueError(
                    f"features must be numbers, in all of the columns {[header[place] for place in numeric]}; label and silo name others: line {line}: {error}"
                ) from error
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
        raise ValueError(f"line {reader.line_num} of the file must be comma-separated values: {error}") from error


def _require_name(argument: str, name: str, default: str | None, table: Mapping[str, Any]) -> None:
    """Raise if a column is missing that was asked for, or is there in another spelling."""
    if name in table:
        return
    alike = [other for other in table if other.strip().casefold() == name.strip().casefold()]
    if alike:
        raise ValueError(
            f"{argument} must be a column as it is spelt, not {shown(name)}, where there is {shown(alike[0])}: say {argument}={shown(alike[0])}"
        )
    if name != default:
        raise ValueError(f"{argument} must be one of {listed(map(repr, table))}, not {shown(name)}")


def _numbered(column: Any) -> Array:
    """Return labels as numbers."""
    if isinstance(column, np.ndarray) and column.dtype.kind != "U":
        return real("labels", column.astype(np.float64) if column.dtype.kind == "b" else column)
    texts = [str(text).casefold() for text in column]
    if set(texts) <= {"true", "false"}:
        return np.array([text == "true" for text in texts], np.float64)
    try:
        return np.array([float(text) for text in texts])
    except ValueError as error:
        raise ValueError(
            f"labels must be numbers, or all true or false; number the classes 0, 1, ...: {error}"
        ) from error


def _silos(column: Any) -> NDArray[np.intp]:
    """Return the number of each record's silo, from 0, in the order of the numbers or names."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        if column.ndim != 1 or np.isnan(column).any():
            raise ValueError("silo must be one number for each record, not NaN or of another shape")
        return np.unique(column, return_inverse=True)[1]
    names = ["" if text is None else str(text).strip() for text in column]
    missing = [record for record, name in enumerate(names) if name.casefold() in ("", "nan")]
    if missing:
        raise ValueError(f"silo[{missing[0]}] must be a number or a name, not {shown(names[missing[0]])}")
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
            raise ValueError(f"silo must be written in one way, not both {one} and {other}: are they one silo or two?")
    return ordered
