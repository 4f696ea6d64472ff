"""The curve that a risk is read from."""

from __future__ import annotations

from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.privacy_curve import Curve


def curve_of(accountant: Accountant) -> Curve:
    """Return the deltas of what an accountant has composed by now."""
    if not isinstance(accountant, Accountant):
        msg = f"accountant must be an Accountant, not {shown(accountant)}"
        raise TypeError(msg)
    return accountant._composition().curve()
