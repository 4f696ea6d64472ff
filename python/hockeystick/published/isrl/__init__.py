"""Formulas of inter-silo record-level privacy exactly as printed."""

from __future__ import annotations
