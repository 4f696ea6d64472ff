"""What a sweep computes: its cells, and the functions that a plan may name."""

from __future__ import annotations
