"""Trainings as cells of a plan: what it says of each, what comes of it, and what is refused before the first."""

from __future__ import annotations
