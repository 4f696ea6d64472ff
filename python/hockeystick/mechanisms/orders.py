"""Renyi orders: which are asked, of everything that is known by its divergences."""

from __future__ import annotations

LARGEST_ORDER = 1e5  # the binomial sum of accounting/renyi/divergence.py has as many terms
# Integers, where sampled mechanisms have the best bounds, and a grid of a - 1 so fine that the best order is never far.
ORDERS: tuple[float, ...] = tuple(
    sorted({*map(float, range(2, 65)), *(1.0 + 2.0 ** (k / 16.0) for k in range(-256, 209))})
)
