"""Tables of sweeps that are there: opened, asked for their best cell, checked, by axes."""

from __future__ import annotations
