"""Formulas of distortion and leakage exactly as printed."""

from __future__ import annotations
