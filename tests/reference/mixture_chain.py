"""A projected scalar chain with Gaussian noise and random maps by plain quadrature: a lower end of the divergence of its last laws.

Independent of the library: composite Gauss-Legendre panels, atoms at the ends, and any set gives a lower end.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy import special

Round = Sequence[tuple[float, Callable[[np.ndarray], np.ndarray]]]  # probabilities and maps


def quadrature(radius: float, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights on [-radius, radius], six panels of ten nodes per noise deviation at least."""
    panels = int(np.ceil(4 * radius / noise)) + 6
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half = radius / panels
    middles = -radius + half * (2 * np.arange(panels) + 1)
    return (middles[:, None] + half * nodes).ravel(), np.tile(half * weights, panels)


def centres(rounds: Sequence[Round], radius: float, noise: float, start: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and centres of the mixture that the last noise is added to."""
    nodes, weights = quadrature(radius, noise)
    points = np.concatenate([nodes, [-radius, radius]])
    mass, at = np.ones(1), np.array([start])
    for t, maps in enumerate(rounds):
        sent = np.concatenate([psi(at) for _, psi in maps])
        shares = np.concatenate([probability * mass for probability, _ in maps])
        if t + 1 == len(rounds):
            return shares, sent
        density = np.exp(-0.5 * ((nodes[:, None] - sent) / noise) ** 2) / (noise * np.sqrt(2 * np.pi)) @ shares
        ends = special.ndtr((-radius - sent) / noise) @ shares, special.ndtr((sent - radius) / noise) @ shares
        mass, at = np.concatenate([weights * density, ends]), points
    raise AssertionError


def lower_end(  # noqa: PLR0917
    eps: np.ndarray, first: Sequence[Round], second: Sequence[Round], radius: float, noise: float, start: float = 0.0
) -> np.ndarray:
    """Return P(A) - e^eps Q(A) for the set A of cells where it is positive, the larger of both directions."""
    cuts = np.concatenate([[-np.inf], np.linspace(-radius, radius, 801), [np.inf]])
    laws = []
    for rounds in (first, second):
        shares, sent = centres(rounds, radius, noise, start)
        above = special.ndtr((sent - cuts[:, None]) / noise) @ shares
        below = special.ndtr((cuts[:, None] - sent) / noise) @ shares
        laws.append(np.where(above[:-1] < 0.5, above[:-1] - above[1:], below[1:] - below[:-1]))
    gamma = np.exp(np.asarray(eps))[..., None]
    p, q = laws
    return np.maximum(np.maximum(p - gamma * q, 0).sum(-1), np.maximum(q - gamma * p, 0).sum(-1))
