"""Renyi divergences of mechanisms, and what they say about (epsilon, delta)."""

from __future__ import annotations
