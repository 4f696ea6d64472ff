"""Numerical methods in Python whose errors are known: searches, binomial tails, directed rounding."""

from __future__ import annotations
