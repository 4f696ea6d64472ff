"""What a problem is given about its records, checked: features, labels, sizes of silos."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hockeystick._checks import Array, count_scalar, real

__all__ = ["count_classes", "finite", "labels_of", "offsets_of"]


def labels_of(value: ArrayLike | None, records: int) -> Array:
    """Return one label for each record, zeros if there are none; True and False are 1 and 0."""
    if value is None:
        return finite("labels", np.zeros(records), 1)
    plain = np.asarray(value) if not np.ma.isMaskedArray(value) else value
    labels = finite("labels", plain.astype(np.float64) if plain.dtype == np.bool_ else value, 1)
    if len(labels) != records:
        msg = f"Length of labels ({len(labels)}) must match number of records ({records})"
        raise ValueError(msg)
    return labels


def count_classes(labels: Array, num_classes: int | None) -> int:
    """Return the number of classes, by default one more than the largest label; labels must be below it."""
    largest = max(2, int(labels.max()) + 1) if num_classes is None else num_classes
    largest = count_scalar("num_classes", largest, 2)
    good = (labels >= 0) & (labels < largest) & (labels == np.floor(labels))
    if not good.all():
        index = int(np.argmin(good))
        msg = f"labels[{index}] must be an integer in [0, {largest - 1}], not {labels[index]}"
        raise ValueError(msg)
    return largest


def finite(name: str, value: ArrayLike, dimensions: int) -> Array:
    """Return a contiguous array without infinities and NaN, as a copy that nobody else can change."""
    array = np.array(real(name, value), order="C", copy=True)
    if array.ndim != dimensions or array.size == 0:
        msg = f"{name} must have {dimensions} axes and not be empty, not the shape {array.shape}"
        raise ValueError(msg)
    if not np.isfinite(array).all():
        index = np.unravel_index(int(np.argmin(np.isfinite(array))), array.shape)
        msg = f"{name}[{', '.join(map(str, index))}] must be finite, not {array[index]}"
        raise ValueError(msg)
    array.flags.writeable = False
    return array


def offsets_of(sizes: Sequence[int] | None, records: int) -> NDArray[np.int64]:
    """Return where each silo's records start, and where the last one's end."""
    if sizes is None:
        return np.array([0, records])
    counts = [count_scalar(f"sizes[{i}]", size) for i, size in enumerate(sizes)]
    if sum(counts) != records:
        msg = f"sizes must sum to the number of records, {records}, not {sum(counts)}"
        raise ValueError(msg)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def row_norms(features: Array) -> Array:
    """Return the norm of every record, as that of numbers up to 1: squares that underflow would hide its length."""
    largest = np.abs(features).max(axis=1, keepdims=True, initial=0.0)
    with np.errstate(over="ignore"):  # infinite then, and clipped to 0
        norms: Array = largest[:, 0] * np.linalg.norm(features / np.where(largest > 0.0, largest, 1.0), axis=1)
    return norms
