"""Settings that are legal and that nearly nobody means: one check for each, and the warning that they come with."""

from __future__ import annotations


class ImplausibleSettingWarning(UserWarning):
    """A setting is in its domain and is probably a mistake; the text names the likely one."""
