"""The domains of the arguments that the formulas of parameter distortion share, as true and as printed: one place for all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hockeystick._checks import Array, Domain, broadcast, in_domains

LOG_2 = math.log(2.0)
MAX_LEAKAGE = math.sqrt(LOG_2)
LEAKAGE: Domain = (
    lambda x: (x >= 0) & (x <= MAX_LEAKAGE * (1 + 1e-12)),
    f"lie in [0, sqrt(ln 2)] = [0, {MAX_LEAKAGE:.12g}]",
)

DOMAINS: dict[str, str | Domain] = {
    **dict.fromkeys(("budget", "unprotected"), LEAKAGE),
    **dict.fromkeys(("conditional_variance", "constant", "noise_variance", "radius", "width"), "non_negative"),
    **dict.fromkeys(("grad_sq_norm_sum", "near_optimal_gap", "ratio", "utility_constant", "variance"), "positive"),
    "dimension": "count",
    "log_ratio": "non_negative_or_infinite",
    "total_variation": "probability",
}


def checked(arguments: Mapping[str, Any], **domains: str | Domain) -> list[Array]:
    """Return the arguments that have a domain, as `hockeystick.isrl.domains.checked` does."""
    return broadcast(*in_domains(arguments, DOMAINS | domains).values())
