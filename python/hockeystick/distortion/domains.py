"""The arguments that the formulas of parameter distortion share, as true and as printed: where their domains are others than elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hockeystick._checks import Array, Domain, broadcast
from hockeystick._checks import arguments as by_name

LOG_2 = math.log(2.0)
MAX_LEAKAGE = math.sqrt(LOG_2)
LEAKAGE: Domain = (
    lambda x: (x >= 0) & (x <= MAX_LEAKAGE * (1 + 1e-12)),
    f"lie in [0, sqrt(ln 2)] = [0, {MAX_LEAKAGE:.12g}]",
)

DOMAINS: dict[str, str | Domain] = {
    **dict.fromkeys(("budget", "unprotected"), LEAKAGE),
    **dict.fromkeys(("constant", "radius"), "non_negative"),
    "variance": "positive",
}


def checked(arguments: Mapping[str, Any], **domains: str | Domain) -> list[Array]:
    """Return the arguments, as `hockeystick.isrl.domains.checked` does."""
    return broadcast(*by_name.arrays(arguments, **DOMAINS | domains).values())
