"""opake-dpftrl: the guarantee of its accounting objects, certified; neither opake nor torch is imported.

.. code-block:: python

    training = accounting.balls_in_bins(accounting.mf_gaussian(1.0, blt_strategy()), num_bins=100, n_steps=1000)
    print(guarantee_of(training).epsilon(1e-6))  # was: training.epsilon_at(1e-6), from samples

Objects are matched by class name and the whole set of their fields, those of release 0.16. Their noise multiplier is the standard deviation of z
over the clip norm, before any scaling of C, as here. Coefficients of C are asked of the strategy, for the steps and participations of the object. DP-λCGD and BISR are
given by the inverse of C, which is inverted here with its rounding paid for; column-normalised C is no Toeplitz matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hockeystick import correlated_noise
from hockeystick._checks import Array, count_scalar
from hockeystick._numeric.rounding import UNIT
from hockeystick.accounting.accountant import Accountant
from hockeystick.correlated_noise.sensitivity import limit_work

__all__ = ["guarantee_of"]

FIELDS = {
    "MfGaussian": "noise_multiplier strategy n_steps min_sep max_participations",
    "CyclicPoisson": "inner sample_rate n_steps truncated_batch_size dataset_size",
    "BMinSep": "inner n_steps p0",
    "BallsInBins": "inner num_bins n_steps",
    "BandMfStrategy": "bands momentum lr_schedule",
    "IdentityStrategy": "",
    "BltStrategy": "max_buffers momentum lr_schedule",
    "BsrStrategy": "bandwidth alpha beta",
    "BisrStrategy": "bandwidth normalized momentum lr_schedule inv_coefficients",
    "LambdaCgdStrategy": "lambda_ normalized lr_schedule",
}
PROCESSES, STRATEGIES = tuple(FIELDS)[:4], tuple(FIELDS)[4:]
SAMPLED = {"BMinSep": STRATEGIES[:1], "CyclicPoisson": STRATEGIES[:2]}  # others are not known to it
SAME = 1e-9  # relative: more than rounding makes of coefficients and of the norms of columns that the library runs with


def guarantee_of(process: Any) -> Accountant | correlated_noise.AmplifiedGuarantee:
    """Return the certified guarantee of a training that opake-dpftrl describes.

    Parameters
    ----------
    process : MfGaussian, CyclicPoisson, BMinSep or BallsInBins
        What ``opake.dpftrl.accounting`` makes: `mf_gaussian` with its `n_steps`, `poisson`, `b_min_sep` or `balls_in_bins`.

    Returns
    -------
    Accountant or AmplifiedGuarantee
        Of all steps; its `epsilon` and `delta` are certified upper bounds, for a record that is there or zeroed out; of truncated samples, for
        one that is added or removed, and those it displaced come back.

    Raises
    ------
    TypeError
        If it, its mechanism or its strategy is none of those known, or has other fields.
    ValueError
        If a number is outside its domain.

    Notes
    -----
    Where a record is added or removed, the parts of cyclic sampling must not depend on how many records there are: `PartitionType.INDEPENDENT`.
    Noise must be made for the steps and participations of the object, and for one stream: a `second_moment_strategy` releases more.

    Unlike the library, a record may be in several steps of the identity's, unamplified, as often as `min_sep` and `max_participations` allow.

    Examples
    --------
    >>> from dataclasses import make_dataclass  # in place of the library's classes
    >>> import hockeystick as hs
    >>> from hockeystick.interop import opake
    >>> roots = {"coefficients": lambda self, **_: hs.correlated_noise.square_root_coefficients(self.bandwidth)}
    >>> strategy = make_dataclass("BsrStrategy", ["bandwidth", "alpha", "beta"], namespace=roots)
    >>> training = make_dataclass("MfGaussian", opake.FIELDS["MfGaussian"].split())
    >>> found = opake.guarantee_of(training(10.0, strategy(8, 1.0, 0.0), 100, 10, None))
    >>> print(hs.format_upper(found.epsilon(1e-6), ".3f"))
    1.836
    """
    name = _known("process", process, PROCESSES)
    inner = process if name == "MfGaussian" else process.inner
    _known("inner", inner, PROCESSES[:1])
    _known("strategy", inner.strategy, SAMPLED.get(name, STRATEGIES))
    steps, known = count_scalar("n_steps", process.n_steps), {"noise_multiplier": inner.noise_multiplier}
    array, exact = _strategy(inner.strategy, process, steps, getattr(process, "num_bins", steps))
    form = steps if array.ndim == 1 else None
    if name == "BallsInBins":
        return correlated_noise.balls_in_bins(array, steps=form, bins=process.num_bins, **known)
    if name == "MfGaussian":
        among = {"separation": process.min_sep, "max_participations": process.max_participations}
        moved = correlated_noise.matrix_sensitivity(array, steps=form, participation="min_separation", **among)
        return Accountant().compose((moved if exact else moved._replace(lower=0.0)).mechanism(**known))
    known |= {"steps": steps, "separation": getattr(inner.strategy, "bands", 1)}
    if name == "BMinSep":
        rate = process.sampling_prob  # of the coin; p0 is the share of all steps
        return correlated_noise.min_separated_poisson(array, sampling_rate=rate, warm_start=True, **known)
    known["sampling_rate"] = process.sample_rate
    if process.truncated_batch_size is None:
        return Accountant().compose(*correlated_noise.cyclic_poisson(array, **known))
    known |= {"part_size": process.dataset_size, "max_batch_size": process.truncated_batch_size}
    return Accountant().compose(*correlated_noise.cyclic_truncated_poisson(array, **known))


def _known(argument: str, value: Any, names: tuple[str, ...]) -> str:
    """Return the name of an object's class; refuse it if it is none of these, or has not their fields."""
    name, fields = type(value).__name__, getattr(type(value), "__dataclass_fields__", ())
    if name not in names or set(FIELDS[name].split()) != set(fields):
        allowed = ", ".join(f"{each}({FIELDS[each]})" for each in names)
        raise TypeError(f"{argument} must be one of {allowed}, not {name}({' '.join(fields)})")
    return name


def _strategy(strategy: Any, process: Any, steps: int, bins: int) -> tuple[Array, bool]:
    """Return C or its coefficients, and whether it is exactly that, not the sizes of its entries rounded up; of a C with normalised columns their sums by bins."""
    when = {"n_steps": steps, "min_sep": process.min_sep, "max_participations": process.max_participations}
    coefficients = np.asarray(strategy.coefficients(**when), np.float64)[:steps]
    if not hasattr(strategy, "normalized"):
        return coefficients, True
    if hasattr(strategy, "lambda_"):
        inverse = np.array([1.0, -strategy.lambda_])
    elif (inverse := strategy.inv_coefficients) is None:
        roots = correlated_noise.inverse_square_root_coefficients(strategy.bandwidth)
        inverse = np.convolve(roots, roots * strategy.momentum ** np.arange(len(roots)))[: len(roots)]
    sizes = correlated_noise.strategy_of_inverse(inverse, steps=steps) * (1.0 + SAME)
    if not strategy.normalized:
        return sizes, False
    slack = SAME + 4.0 * UNIT / (
        1.0 - getattr(strategy, "lambda_", 0.0)
    )  # of (1 - x^r)/(1 - x), x the square of lambda
    norms = np.sqrt(np.cumsum(np.square(coefficients)))[::-1] * (1.0 - slack)
    limit_work(steps * steps * bins / 10)
    sums = np.zeros((steps, bins))
    for step in range(steps):
        sums[step:, step % bins] += sizes[: steps - step] / norms[step]
    return sums, False
