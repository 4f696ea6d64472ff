"""Tree aggregation as a strategy matrix."""

from __future__ import annotations

from typing import Literal

import numpy as np

from hockeystick._checks import Array, at_most, choice, count_scalar

__all__ = ["tree_strategy"]


def tree_strategy(num_steps: int, *, nodes: Literal["all", "prefix"] = "all") -> Array:
    """Return the matrix of a binary tree over the steps: a row of zeros and ones for each node, in the order of release.

    Parameters
    ----------
    num_steps : int
        Steps of the tree, at most 4096.
    nodes : {"all", "prefix"}
        Every complete node, or those alone that make up prefix sums: see `tree_sensitivity`.

    Returns
    -------
    ndarray
        Of shape (nodes, num_steps), for `conditional_composition`. The sensitivity is known without it: `tree_sensitivity`.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Examples
    --------
    >>> from hockeystick import correlated_noise
    >>> print(correlated_noise.tree_strategy(3))
    [[1. 0. 0.]
     [0. 1. 0.]
     [1. 1. 0.]
     [0. 0. 1.]]
    """
    num_steps = count_scalar("num_steps", num_steps)
    at_most("num_steps", num_steps, "the largest supported", 4096)
    nodes = choice("nodes", nodes, ("all", "prefix"))
    steps, rows = np.arange(num_steps), []
    for end in range(1, num_steps + 1):
        size = 1
        while end % size == 0:  # the nodes that this step completes
            if nodes == "all" or end // size % 2:
                rows.append((steps >= end - size) & (steps < end))
            size *= 2
    return np.array(rows, dtype=np.float64)
