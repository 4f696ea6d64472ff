"""The guarantee of several records together, from an accountant of one."""

from __future__ import annotations

from hockeystick._checks import DELTA, count_scalar, scalar
from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant, require_accountant
from hockeystick.accounting.group import chained_epsilon, exact_epsilon, has_chains, of_group

__all__ = ["group_accountant", "group_epsilon"]


def group_accountant(accountant: Accountant, group_size: int) -> Accountant:
    """Return an accountant of the same releases whose privacy unit is a group of records.

    Parameters
    ----------
    accountant : Accountant
        Of steps that have a mechanism for groups: Gaussian, Laplace and their discrete noise, exponential mechanisms, permute-and-flip,
        zero-concentrated steps, Gaussian noise on Poisson samples where records are added or removed, and what is composed or
        selected of these.
    group_size : int
        Number of records k of the group, at least 1; at most 1000 where there are samples.

    Returns
    -------
    Accountant
        For which data sets are adjacent if all k records are added, if all are removed, or if all are replaced, as the adjacency says. Noise multipliers
        are rounded down.

    Raises
    ------
    ValueError
        If a step has no such mechanism (then `group_epsilon` may have a bound), or an argument is outside its domain.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    The sensitivity of a sum, of a score or of a loss's range is k times as large. (xi, rho)-zCDP of one record is
    (xi k (1 + 1/2 + ... + 1/k), k^2 rho)-zCDP of k (Bun and Steinke 2016, Proposition 1.9). For samples see `MixtureOfGaussians.of_group`.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(4.0), 0.01), 1000)
    >>> for accountant in (training, hs.accounting.group_accountant(training, 3)):
    ...     print(hs.format_upper(accountant.epsilon(1e-6), ".3f"))
    0.320
    1.038
    """
    require_accountant("accountant", accountant)
    size = count_scalar("group_size", group_size)
    group = Accountant(accountant.adjacency, accountant.engine)
    for step, count in accountant.ledger.items():
        of_all = of_group(step, size, accountant.adjacency)
        if of_all is None:
            raise ValueError(
                f"accountant must hold steps that have a mechanism for groups of {size} records, which is not known of {shown(step)}"
            )
        group.compose(of_all, count)
    return group


def group_epsilon(accountant: Accountant, group_size: int, delta: float) -> float:
    r"""Return a certified epsilon for a group of records at `delta`.

    Parameters
    ----------
    accountant : Accountant
        Of the releases, for one record.
    group_size : int
        Number of records k of the group, at least 1; all are added, or all removed, or all replaced, as the adjacency says.
    delta : float
        In [0, 1).

    Returns
    -------
    float
        The smaller of that of `group_accountant`, if there is one, and of group privacy, which holds for every mechanism. Infinity if neither
        has one.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or if records are added or removed, and a mechanism names their number.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    If one record has (eps, delta), k have :math:`(k\epsilon, \delta (e^{k\epsilon} - 1)/(e^\epsilon - 1))` (Vadhan 2017, Lemma 2.2, with its sum
    kept). The epsilon of one record is chosen, so that the delta of the group is at most `delta`; what is returned satisfies this,
    whether or not the search found the smallest.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.Accountant("replace").compose(hs.FixedSizeSampled(hs.Gaussian(2.0), 10_000, 100, replacement=False), 100)
    >>> for k in (1, 3):
    ...     print(hs.format_upper(hs.accounting.group_epsilon(training, k, 1e-6), ".2f"))
    1.00
    4.08
    """
    require_accountant("accountant", accountant)
    size = count_scalar("group_size", group_size)
    delta = scalar("delta", delta, *DELTA)
    of_one = accountant._composition()
    if not has_chains(of_one):
        raise ValueError(
            f"accountant must not name the number of records where they are added or removed, as {shown(accountant)} does"
        )
    if size == 1:
        return of_one.upper_epsilon(delta)
    return min(exact_epsilon(of_one, size, delta), chained_epsilon(of_one, size, delta))
