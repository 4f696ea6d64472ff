"""What the bounds for a last model share: contractions, random participation, and the smallest of several bounds."""

from __future__ import annotations
