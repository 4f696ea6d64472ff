"""jax_privacy: its configuration of an accountant; jax_privacy is not imported.

.. code-block:: python

    from jax_privacy.accounting import DpsgdTrainingAccountant
    accountant = DpsgdTrainingAccountant(dp_accountant_config=HockeyStickAccountantConfig())  # was: PldAccountantConfig()

Where it asks for a function that makes an accountant (`calibrate(accountant_fn=...)` of its execution plans), that is
`hockeystick.interop.dp_accounting.HockeyStickAccountant` itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hockeystick.interop.dp_accounting import HockeyStickAccountant

__all__ = ["HockeyStickAccountantConfig"]


@dataclass(frozen=True)
class HockeyStickAccountantConfig:
    """What jax_privacy 2.0 makes its accountants from.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation, optional
        ADD_OR_REMOVE_ONE by default, as in its own configurations.

    Notes
    -----
    For truncated batches and for user-level training jax_privacy 2.0 asks for its own `PldAccountantConfig`, and refuses every other;
    `hockeystick.mechanisms.TruncatedPoissonSampled` and `hockeystick.mechanisms.MixtureOfGaussians` answer there.

    Examples
    --------
    >>> accountant = HockeyStickAccountantConfig().create_accountant()
    >>> print(accountant.get_epsilon(1e-5))
    0.0
    """

    neighboring_relation: Any = None

    def create_accountant(self) -> HockeyStickAccountant:
        """Return an accountant with nothing composed.

        Returns
        -------
        HockeyStickAccountant
            Of `hockeystick.interop.dp_accounting`.
        """
        return HockeyStickAccountant(self.neighboring_relation)
