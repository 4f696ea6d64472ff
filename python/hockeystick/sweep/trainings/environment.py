"""What the bytes of a plan with trainings depend on besides the plan."""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError, version

from hockeystick.sweep.plan.plan import Plan

LIBRARIES = ("numba", "numpy", "scipy", "scikit-learn")


def environment(plan: Plan) -> dict[str, dict[str, str]]:
    """Return for the manifest what the last digits of trainings depend on: libraries, and the processor; nothing for other plans.

    The core's set of instructions is not enough, since numba and the linear algebra behind NumPy choose their own.
    """
    if not plan.has_trainings:
        return {}
    from llvmlite import binding  # noqa: PLC0415 - comes with numba, which is for such plans only

    features = binding.get_host_cpu_features().flatten()
    processor = f"{binding.get_host_cpu_name()} {hashlib.sha256(features.encode()).hexdigest()[:12]}"
    return {"simulator": {"processor": processor, **{name: _version(name) for name in LIBRARIES}}}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
