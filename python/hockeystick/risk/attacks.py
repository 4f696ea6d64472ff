"""The chance that an attack succeeds, from the chance that it would have without the output."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hockeystick._checks import Grid, Result, count_scalar
from hockeystick._numeric.rounding import UP
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.privacy_curve import true_positive_rates
from hockeystick.risk.curve import curve_of

__all__ = ["attribute_inference", "reconstruction", "singling_out", "true_positive_rate"]


def true_positive_rate(accountant: Accountant, fpr: ArrayLike) -> Result:
    """Return the largest true-positive rate of any membership attack.

    Parameters
    ----------
    accountant : Accountant
        What was composed.
    fpr : array_like
        False-positive rate of the attack, in [0, 1]; any shape.

    Returns
    -------
    ndarray or float
        Certified upper bound: no test that accuses a record wrongly with this probability finds more of the members.

    Raises
    ------
    TypeError
        If `accountant` is not an `Accountant`.
    ValueError
        If fpr is outside its domain.

    Notes
    -----
    One less the trade-off function, which `Accountant.trade_off` bounds from below (Dong, Roth and Su 2022); computed without that subtraction,
    so that small rates keep their digits.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 1000)
    >>> print([hs.format_upper(tpr, ".2e") for tpr in hs.risk.true_positive_rate(training, [0.01, 1e-5])])
    ['2.92e-02', '7.21e-05']
    """
    return _each(accountant, "fpr", fpr)


def attribute_inference(accountant: Accountant, baseline: ArrayLike) -> Result:
    """Return the largest chance of guessing one attribute of a record.

    Parameters
    ----------
    accountant : Accountant
        What was composed.
    baseline : array_like
        Chance of the best guess without the output, in [0, 1]; any shape. The guess may know all else: the record's other attributes and
        all other records.

    Returns
    -------
    ndarray or float
        Certified upper bound on the chance of the best guess with the output.

    Raises
    ------
    TypeError
        If `accountant` is not an `Accountant`.
    ValueError
        If baseline is outside its domain.

    Notes
    -----
    This is `reconstruction` with the loss "the attribute is wrong": Kulynych et al. 2025, "Unifying re-identification, attribute inference, and
    data reconstruction risks in differential privacy" (arXiv:2507.06969).

    Examples
    --------
    A yes-or-no attribute, guessed right in half of the cases without the output:

    >>> import hockeystick as hs
    >>> training = hs.Accountant("replace").compose(hs.Gaussian(4.0))
    >>> print(hs.format_upper(hs.risk.attribute_inference(training, 0.5), ".4f"))
    0.6915
    """
    return _each(accountant, "baseline", baseline)


def reconstruction(accountant: Accountant, baseline: ArrayLike) -> Result:
    r"""Return the largest chance of reconstructing a record well enough.

    Parameters
    ----------
    accountant : Accountant
        What was composed.
    baseline : array_like
        Chance that the best guess without the output is well enough, in [0, 1]; any shape: for a record of law pi and a loss l that
        may be at most eta, the largest :math:`\Pr_{z \sim \pi}[l(z, z_0) \le \eta]` over guesses z_0.

    Returns
    -------
    ndarray or float
        Certified upper bound on the chance that any attack on the output guesses well enough.

    Raises
    ------
    TypeError
        If `accountant` is not an `Accountant`.
    ValueError
        If baseline is outside its domain.

    Notes
    -----
    Reconstruction robustness (Balle, Cherubin and Hayes 2022, Definition 2). Proof of the bound, which Kaissis et al. 2023 and
    Hayes, Mahloujifar and Balle 2023 have for DP-SGD: let P_z be the law of the output with the record z, and Q that without it, or with a
    fixed one in its place. An event of probability q under Q has at most the probability g(q) = 1 - f(q) under P_z, where f is the trade-off
    function. The attack succeeds for z on an event S_z. Its chance is :math:`E_z P_z(S_z) \le E_z\, g(Q(S_z)) \le g(E_z Q(S_z))`,
    since g is concave; an output of law Q does not depend on z, so :math:`E_z Q(S_z)` is at most the baseline, and g rises.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 1000)
    >>> print(hs.format_upper(hs.risk.reconstruction(training, 1e-9), ".2e"))
    2.02e-08
    """
    return _each(accountant, "baseline", baseline)


def singling_out(accountant: Accountant, weight: ArrayLike, num_records: int) -> Result:
    r"""Return the largest chance of singling out a record by a rare description.

    Parameters
    ----------
    accountant : Accountant
        What was composed.
    weight : array_like
        Largest probability that a fresh record fits the description, in [0, 1]; any shape.
    num_records : int
        Number n of records, at least 1, drawn independently of one another from one law.

    Returns
    -------
    ndarray or float
        Certified upper bound on the chance that an attack on the output names a description of at most this weight that exactly
        one record of the data fits.

    Raises
    ------
    TypeError
        If `accountant` is not an `Accountant`.
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    Predicate singling out (Cohen and Nissim 2020, Definition 2.2). Proof: fix i and let the output have the law Q that it has where record i is
    left out or replaced by a fresh one. The description p does not depend on record i then, so record i fits it and
    p has at most the weight w with probability at most w. With record i this probability is at most g(w), one less the trade-off function at w, by
    the average over records that `reconstruction` has. One of the n records is singled out with probability at most n g(w).

    Examples
    --------
    >>> import hockeystick as hs
    >>> release = hs.Accountant("replace").compose(hs.Gaussian(10.0))
    >>> print(hs.format_upper(hs.risk.singling_out(release, 1e-9, 10_000), ".2e"))
    3.36e-05
    """
    n = count_scalar("num_records", num_records)
    return np.minimum(n * np.asarray(_each(accountant, "weight", weight)) * UP, 1.0)[()]


def _each(accountant: Accountant, name: str, probabilities: ArrayLike) -> Result:
    """Return 1 - f at every probability."""
    return true_positive_rates(curve_of(accountant), Grid(None, "raise").probability(name, probabilities))[()]
