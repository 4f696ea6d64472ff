"""What a simulated training does in a round."""

from __future__ import annotations
