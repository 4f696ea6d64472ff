"""Complete simulated runs, and what is certified about them."""

from __future__ import annotations
