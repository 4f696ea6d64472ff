"""How often a record is in a batch of fixed size that is drawn with replacement."""

from __future__ import annotations

import math

from hockeystick._numeric.binomial import LEAST_PROBABILITY, binomial_shares
from hockeystick._numeric.rounding import MASSES

GATHERED = 1e-30  # shares below this are gathered


def drawn_copies(draws: int, dataset_size: int, *, upper: bool) -> tuple[list[int], list[float], float]:
    """Return numbers of copies of a record among independent draws, their shares of what has any, and the probability of any.

    More copies leak more: shares are rounded towards more of them for an upper end, towards fewer for a lower one, and so are
    numbers whose shares are tiny. Binomial tails are log-concave: beyond twice a number of share 1e-300 is nothing to tell.
    """
    safe = MASSES if upper else -MASSES
    any_drawn = min(-math.expm1(draws * math.log1p(-1.0 / dataset_size)) * (1.0 + safe), 1.0)
    shares = binomial_shares(draws, dataset_size)
    total = math.fsum(shares)
    copies, weights, m = [1], [0.0], 1
    while m < len(shares):
        more = m + 1 if shares[m] > GATHERED * total else min(2 * m, len(shares))
        copies.append(more if upper else m + 1)
        weights.append(math.fsum(shares[m:more]) / total * (1.0 + safe))
        m = more
    if upper and len(shares) < draws:
        copies.append(min(2 * len(shares), draws))
        weights.append(LEAST_PROBABILITY)
    weights[0] = max(1.0 - math.fsum(weights), LEAST_PROBABILITY)
    return copies, weights, any_drawn
