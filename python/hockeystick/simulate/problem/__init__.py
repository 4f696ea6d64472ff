"""What a simulated training learns: a loss and the clients' data."""

from __future__ import annotations
