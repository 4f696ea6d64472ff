"""Renyi divergences, rounded up: with g(a) = log E_Q (dP/dQ)^a, the divergence of order a is g(a)/(a - 1).

Gaussian at distance r: a r^2/2; discrete Gaussian: at most that, exactly at integer a r (Canonne, Kamath and Steinke 2020). Laplace: Mironov 2017. Discrete: the sum. Poisson sampling of the first two at
an integer order n (Mironov, Talwar and Zhang 2019): E_Q (dP/dQ)^n = 1 + sum_{k>=2} C(n,k) q^k (1-q)^{n-k}
(e^{g0(k)} - 1), g0 without sampling, in which nothing cancels; the other direction is smaller (shown there, for pairs that
a reflection exchanges). g is convex and g(1) = 0, so chords between integers lie above it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache, singledispatch

import numpy as np

from hockeystick._checks import Array
from hockeystick._numeric.rounding import FUNCTIONS
from hockeystick.mechanisms.base import Adjacency, Mechanism
from hockeystick.mechanisms.renyi_bounded import RenyiMechanism

KINDS = (
    "gaussian",
    "discrete_gaussian",
    "laplace",
    "discrete",
    "bounded_range",
    "renyi",
)  # others until a bound is written for them


@singledispatch
def require_bound(mechanism: Mechanism, adjacency: Adjacency) -> None:
    """Refuse a mechanism whose bound cannot be computed; private_selection.py adds the one that needs an accountant."""
    del mechanism, adjacency


@singledispatch
def known_divergence(mechanism: RenyiMechanism, order: float, adjacency: Adjacency) -> float:
    """Return the bound that a mechanism is known by, in both directions; private_selection.py adds one as above."""
    return mechanism._divergence(order, adjacency)


def first_without_bound(ledger: Mapping[Mechanism, int], adjacency: Adjacency) -> Mechanism | None:
    """Return a mechanism whose divergences are not known, or None."""
    for mechanism in ledger:
        for kind, _, rate, _ in mechanism._entries(adjacency):
            if mechanism.status != "certified" or kind not in KINDS or (kind == "bounded_range" and rate < 1.0):
                return mechanism
    return None


def of_ledger(ledger: Mapping[Mechanism, int], adjacency: Adjacency, order: float) -> float:
    """Return the sum over the ledger, the larger of both directions."""
    unknown = first_without_bound(ledger, adjacency)
    if unknown is not None:
        msg = f"rdp has no bound for {unknown!r}; ask for epsilon or delta, which have one"
        raise ValueError(msg)
    entries = [
        (mechanism, kind, parameters, rate, count * times)
        for mechanism, count in ledger.items()
        for kind, parameters, rate, times in mechanism._entries(adjacency)
    ]
    return max(
        math.fsum(
            count
            * (
                known_divergence(mechanism, order, adjacency)
                if isinstance(mechanism, RenyiMechanism)
                else _divergence(kind, parameters, rate, order, forward=forward)
            )
            for mechanism, kind, parameters, rate, count in entries
        )
        * (1 + FUNCTIONS)
        for forward in (True, False)
    )


def _divergence(kind: str, parameters: list[float], rate: float, order: float, *, forward: bool) -> float:
    if rate == 0.0:
        return 0.0
    if kind == "discrete":
        p, q = np.split(np.array(parameters), 2)
        sampled = (1 - rate) * q + rate * p
        return _discrete(sampled, q, order) if forward else _discrete(q, sampled, order)
    if kind == "bounded_range":
        return _bounded_range(parameters[0], order)
    if kind == "discrete_gaussian":  # no more than the Gaussian
        kind, parameters = "gaussian", [parameters[1] / parameters[0]]
    whole = _gaussian(parameters[0], order) if kind == "gaussian" else _laplace(parameters[0], order)
    return whole if rate == 1.0 else min(whole, _sampled(kind, parameters[0], rate, order))


def _gaussian(shift: float, order: float) -> float:
    return 0.5 * order * shift * shift * (1 + FUNCTIONS)


def _laplace(shift: float, order: float) -> float:
    if order == 1.0:
        return (shift + math.expm1(-shift)) * (1 + FUNCTIONS) + FUNCTIONS * shift
    if (order - 1) * shift > 500.0:
        return (shift + math.log(order / (2 * order - 1)) / (order - 1)) * (1 + FUNCTIONS)  # the rest is below e^-500
    up, down = math.expm1((order - 1) * shift), math.expm1(-order * shift)
    both = (order * up + (order - 1) * down) / (2 * order - 1)
    error = FUNCTIONS * (order * up - (order - 1) * down) / (2 * order - 1)
    return math.log1p(both + error) / (order - 1) * (1 + FUNCTIONS)


def _bounded_range(width: float, order: float) -> float:
    """Return the supremum over t of the two-point pairs of loss/bounded_range.hpp, at most order width^2/8 (Cesar and Rogers 2021).

    With y = e^t and B = (1 - e^{-(a-1) width})/(e^width - 1) the moment of order a is y^{a-1} (1 + B - B y), largest where B y is
    (1 + B)(a - 1)/a.
    """
    order = max(order, 1.0 + 1e-6)  # divergences do not fall
    less = order - 1.0
    log_b = math.log(-math.expm1(-less * width)) - math.log(math.expm1(width))
    terms = [order * math.log1p(math.exp(log_b)), -order * math.log(order), less * math.log(less), -less * log_b]
    moment = math.fsum(terms) + 4 * FUNCTIONS * math.fsum(map(abs, terms))
    return min(moment / less, order * width * width / 8.0, width) * (1 + FUNCTIONS)


def _discrete(p: Array, q: Array, order: float) -> float:
    if np.any((p > 0) & (q == 0)):
        return math.inf
    p, q = p[p > 0], q[p > 0]
    loss = np.log(p) - np.log(q)
    error = FUNCTIONS * p.size * (1 + float(np.max(np.abs(np.log(p)) + np.abs(np.log(q)))))
    if order == 1.0:
        return math.fsum((p * loss).tolist()) + error
    exponents = (order - 1) * loss
    top = float(exponents.max())
    if top > 500.0:
        g = top + math.log(math.fsum((p * np.exp(exponents - top)).tolist()))
    else:
        g = math.log1p(math.fsum((p * np.expm1(exponents)).tolist()))
    return g / (order - 1) * (1 + FUNCTIONS) + error


def _sampled(kind: str, shift: float, rate: float, order: float) -> float:
    if order <= 2.0:
        return _sampled_log_moment(kind, shift, rate, 2)  # the slope of the first chord
    low = math.floor(order)
    left, right = (_sampled_log_moment(kind, shift, rate, n) for n in (low, low + (order > low)))
    part = order - low
    return ((1 - part) * left + part * right) / (order - 1) * (1 + FUNCTIONS)


def _sampled_log_moment(kind: str, shift: float, rate: float, n: int) -> float:
    """Return g(n) of the sampled pair."""
    k = np.arange(2, n + 1)
    if kind == "gaussian":
        base = 0.5 * shift * shift * (k * (k - 1.0))
    else:
        base = np.array([(order - 1) * _laplace(shift, float(order)) for order in k.tolist()])
    with np.errstate(divide="ignore"):  # a shift that underflows leaks nothing
        log_gain = np.where(base > 1.0, base + np.log1p(-np.exp(-base)), np.log(np.expm1(np.minimum(base, 1.0))))
    weight = k * math.log(rate) + (n - k) * math.log1p(-rate)
    terms = _log_binomials(n)[2:] + weight + log_gain
    error = FUNCTIONS * (4 * math.lgamma(n + 2.0) + float(np.max(np.abs(weight) + np.abs(base))) + 64.0)
    return float(np.logaddexp(0.0, np.logaddexp.reduce(terms) + error)) * (1 + FUNCTIONS)


@lru_cache(maxsize=8)
def _log_binomials(n: int) -> Array:
    """Return log C(n, k) for all k."""
    factorials = np.array([math.lgamma(k + 1.0) for k in range(n + 1)])
    logs: Array = factorials[n] - factorials - factorials[::-1]
    return logs
