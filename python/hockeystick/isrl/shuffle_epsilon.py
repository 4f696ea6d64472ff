"""What shuffled mini-batch SGD with Gaussian noise leaks to who sees the shuffled messages."""

from __future__ import annotations

import math

from hockeystick._checks import at_most, count_scalar, positive_scalar, scalar, setting_warnings
from hockeystick._numeric.search import halve
from hockeystick.isrl.noise import noisy_mb_sgd_accountant
from hockeystick.isrl.shuffle_noise import shuffled_mb_sgd_sigma

__all__ = ["shuffled_mb_sgd_epsilon"]

SMALLEST = 1e-9  # share of the guarantee without a shuffler, below which none is sought
TOLERANCE = 1e-4  # of the search, which ends on the certified side


def shuffled_mb_sgd_epsilon(
    *,
    noise_std: float,
    lipschitz: float,
    num_records: int,
    num_silos: int,
    silos_per_round: int,
    rounds: int,
    delta: float,
) -> float:
    """Return the certified epsilon of shuffled mini-batch SGD in which each participating silo sends one record's noisy gradient.

    Parameters
    ----------
    noise_std : float
        Standard deviation per coordinate of the noise that each silo adds to its clipped gradient, positive.
    lipschitz : float
        Largest norm L of a record's gradient, positive.
    num_records, num_silos, silos_per_round, rounds : int
        Records a silo n, silos N, silos in each round M (drawn uniformly), rounds R; positive, M at most N.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Upper bound of epsilon for one record replaced, against who sees the shuffled messages of all rounds.

    Raises
    ------
    ValueError
        If an argument is outside its domain.

    Notes
    -----
    The smaller of two bounds. Shuffling is post-processing: what every silo promises by itself (`noisy_mb_sgd_accountant`) holds. And every epsilon for
    which `shuffled_mb_sgd_sigma` asks for no more than this noise holds (Theorem G.1 of Lowy and Razaviyayn 2023, computable), more noise being
    post-processing too. The second is smaller for very many silos only.

    Examples
    --------
    >>> from hockeystick import format_upper, isrl
    >>> epsilon = isrl.shuffled_mb_sgd_epsilon(
    ...     noise_std=60.0,
    ...     lipschitz=1.0,
    ...     num_records=1,
    ...     num_silos=10**6,
    ...     silos_per_round=10**6,
    ...     rounds=100,
    ...     delta=1e-7,
    ... )
    >>> print(format_upper(epsilon, ".3f"))
    0.323
    """
    setting = {
        "num_records": count_scalar("num_records", num_records),
        "num_silos": count_scalar("num_silos", num_silos),
        "silos_per_round": count_scalar("silos_per_round", silos_per_round),
        "rounds": count_scalar("rounds", rounds),
    }
    at_most("silos_per_round", setting["silos_per_round"], "num_silos", setting["num_silos"])
    noise, clip = positive_scalar("noise_std", noise_std), positive_scalar("lipschitz", lipschitz)
    delta = scalar("delta", delta, lambda x: 0 < x < 1, "lie in (0, 1)")
    setting_warnings.warn(setting_warnings.large_delta(delta, setting["num_records"] * setting["num_silos"]))
    alone = noisy_mb_sgd_accountant(
        noise_std=noise, lipschitz=clip, num_records=setting["num_records"], batch_size=1, rounds=setting["rounds"]
    ).epsilon(delta)

    def too_small(epsilon: float) -> bool:
        try:
            needed = shuffled_mb_sgd_sigma(lipschitz=clip, **setting, epsilon=epsilon, delta=delta)
        except ValueError:  # too few silos for the shuffler to help
            return True
        return not needed.noise_std <= noise

    if not math.isfinite(alone) or alone == 0.0 or too_small(alone):
        return float(alone)
    return halve(too_small, SMALLEST * alone, alone, tolerance=TOLERANCE)[1]
