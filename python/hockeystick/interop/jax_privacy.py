"""jax_privacy: its configuration of an accountant, and its batches with correlated noise; jax_privacy is not imported.

.. code-block:: python

    from jax_privacy.accounting import DpsgdTrainingAccountant
    accountant = DpsgdTrainingAccountant(dp_accountant_config=HockeyStickAccountantConfig())  # was: PldAccountantConfig()

Where it asks for a function that makes an accountant (`calibrate(accountant_fn=...)` of its execution plans), that is
`hockeystick.interop.dp_accounting.HockeyStickAccountant` itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from hockeystick import correlated_noise
from hockeystick._checks import count_scalar
from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.interop.dp_accounting import HockeyStickAccountant

__all__ = ["HockeyStickAccountantConfig", "guarantee_of"]

BATCHES = ("CyclicPoissonSampling", "BallsInBinsSampling", "BMinSepSampling")


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


def guarantee_of(
    batches: Any, strategy: ArrayLike, *, noise_multiplier: float, num_records: int | None = None
) -> Accountant | correlated_noise.AmplifiedGuarantee:
    """Return the certified guarantee of a matrix mechanism on batches that jax_privacy draws.

    Parameters
    ----------
    batches : CyclicPoissonSampling, BallsInBinsSampling or BMinSepSampling
        Of ``jax_privacy.batch_selection``; batches of one size have no guarantee here.
    strategy : array_like
        C, or the coefficients of a lower triangular Toeplitz matrix: see `hockeystick.correlated_noise`.
    noise_multiplier : float
        Standard deviation of the entries of z over the clip norm, positive and finite.
    num_records : int, optional
        With truncated cyclic samples, and only there: how many records are divided into parts.

    Returns
    -------
    Accountant or AmplifiedGuarantee
        Of all steps; its `epsilon` and `delta` are certified upper bounds, for a record that is there or zeroed out; of truncated samples that are
        not of parts, for one that is added or removed, and those it displaced come back.

    Raises
    ------
    TypeError
        If the batches are none of these.
    ValueError
        If a number is outside its domain, `num_records` is missing or of no use, or truncated parts are of random sizes.

    Notes
    -----
    Where a record is added or removed, the parts of cyclic samples must not depend on how many records there are: `PartitionType.INDEPENDENT`.

    Examples
    --------
    >>> from dataclasses import make_dataclass  # in place of the library's class
    >>> import hockeystick as hs
    >>> from hockeystick.interop.jax_privacy import guarantee_of
    >>> batches = make_dataclass("BallsInBinsSampling", ["iterations", "cycle_length"])(500, 100)
    >>> found = guarantee_of(batches, hs.correlated_noise.square_root_coefficients(8), noise_multiplier=4.0)
    >>> print(hs.format_upper(found.epsilon(1e-6), ".3f"))
    1.172
    """
    name = type(batches).__name__
    if name not in BATCHES:
        raise TypeError(f"batches must be one of {', '.join(BATCHES)}, not {shown(batches)}")
    known: dict[str, Any] = {"steps": batches.iterations, "noise_multiplier": noise_multiplier}
    most = getattr(batches, "truncated_batch_size", None)
    cut_parts = name == "CyclicPoissonSampling" and most is not None
    if (num_records is not None) != cut_parts:
        raise ValueError(
            f"num_records must be given with truncated cyclic samples, and only there, not {shown(num_records)}"
        )
    if name == "BallsInBinsSampling":
        return correlated_noise.balls_in_bins(strategy, bins=batches.cycle_length, **known)
    known["sampling_rate"] = batches.sampling_prob
    if name == "BMinSepSampling":
        known |= {"separation": batches.min_sep, "warm_start": batches.warm_start, "truncated": most is not None}
        return correlated_noise.min_separated_poisson(strategy, **known)
    known["separation"] = batches.cycle_length
    if not cut_parts:
        return Accountant().compose(*correlated_noise.cyclic_poisson(strategy, **known))
    if batches.cycle_length > 1 and batches.partition_type.name != "EQUAL_SPLIT":
        raise ValueError(
            f"partition_type must be EQUAL_SPLIT with truncated cyclic samples, not {batches.partition_type.name}"
        )
    size = count_scalar("num_records", num_records) // batches.cycle_length  # type: ignore[arg-type]
    limits = {"part_size": size, "max_batch_size": most, "zeroed_out": batches.cycle_length > 1}
    return Accountant().compose(*correlated_noise.cyclic_truncated_poisson(strategy, **known, **limits))
