"""Exact values that take long to compute, each by its definition in many digits; slow_values.csv keeps them.

    python tests/reference/slow_values.py          # compute all and write the file

A test asks for `committed("NAME", ...)` where it would call the function NAME; tests/project/test_codebase.py computes a few again.
"""

import functools
import itertools
from collections.abc import Callable, Iterator

import mpmath as mp

import tables

DIGITS = 34


def renyi_of_sampled_gaussian(shift: float, rate: float, order: float, forward: bool) -> mp.mpf:
    """Return the Renyi divergence of a Poisson-sampled Gaussian from its definition, by quadrature."""
    with mp.workdps(30):
        mixture = lambda x: (1 - rate) * mp.npdf(x) + rate * mp.npdf(x, shift)
        p, q = (mixture, mp.npdf) if forward else (mp.npdf, mixture)
        # Less 1 + order (p/q - 1), whose mean is 1, so that nothing cancels in the integral.
        gain = lambda x: q(x) * ((p(x) / q(x)) ** order - 1 - order * (p(x) / q(x) - 1))
        points = mp.linspace(-12 - shift, 14 + order * shift, 25)
        return mp.log1p(mp.quad(gain, points)) / (order - 1)


def largest_loss_on_a_ball(a: float, radius: float, dimension: int) -> mp.mpf:
    """Return the largest loss between Gaussians around a and -a on an axis, projected onto a ball.

    It is the loss at the pole of the sphere, or inside where that is more.
    """

    def mass(mean: mp.mpf) -> mp.mpf:
        mode = max(mp.mpf(radius), (mean + mp.sqrt(mean**2 + 4 * (dimension - 1))) / 2)
        cuts = [mp.mpf(radius), *(mode + k for k in (-6, -2, 0, 2, 6, 12) if mode + k > radius), mode + 40]
        return mp.quad(lambda rho: rho ** (dimension - 1) * mp.exp(-((rho - mean) ** 2) / 2), cuts)

    with mp.workdps(30):
        inside = ((mp.mpf(radius) + a) ** 2 - max(mp.mpf(0), mp.mpf(radius) - a) ** 2) / 2
        return max(mp.log(mass(mp.mpf(a)) / mass(-mp.mpf(a))), inside)


def replaced_gaussian_delta(noise: float, rate: float, eps: float) -> mp.mpf:
    """Return P(L > eps) - e^eps Q(L > eps) of Gaussian noise on a Poisson sample with one record replaced.

    The outcome with L = eps is found by bisection.
    """
    with mp.workdps(400):
        r, rate, ratio = 1 / mp.mpf(noise), mp.mpf(rate), mp.exp(mp.mpf(eps))
        low, high = mp.mpf(-200), mp.mpf(200)
        for _ in range(700):
            x = (low + high) / 2
            likelier = 1 - rate + rate * mp.exp(r * x - r * r / 2)
            rarer = 1 - rate + rate * mp.exp(-r * x - r * r / 2)
            low, high = (low, x) if likelier > ratio * rarer else (x, high)
        tail = lambda mean: ((1 - rate) * mp.erfc(high / mp.sqrt(2)) + rate * mp.erfc((high - mean) / mp.sqrt(2))) / 2
        return tail(r) - ratio * tail(-r)


def discrete_noise(kind: str, scale: float, k: int) -> mp.mpf:
    """Return the mass of discrete noise at an integer, up to a factor; `scale` is sigma, or Laplace's parameter."""
    return (
        mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(scale) ** 2)) if kind == "gaussian" else mp.exp(-mp.mpf(scale) * abs(k))
    )


@functools.lru_cache(maxsize=4)
def discrete_pair(kind: str, scale: float, moved: int) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """Return the laws of the moved noise and the noise at all integers of mass above 1e-330."""
    reach = int(scale * 39 if kind == "gaussian" else 760 / scale) + 2
    with mp.workdps(50):
        mass = functools.cache(lambda k: discrete_noise(kind, scale, k))
        total = mp.fsum(mass(k) for k in range(-reach, reach + 1))
        outcomes = range(-reach, reach + moved + 1)
        return [mass(k - moved) / total for k in outcomes], [mass(k) / total for k in outcomes]


def discrete_noise_delta(kind: str, scale: float, moved: int, rate: float, forward: bool, eps: float) -> mp.mpf:  # noqa: PLR0917, as the sum has
    """Return sum max(p - e^eps q, 0) of the Poisson-sampled pair."""
    with mp.workdps(50):
        p, q = discrete_pair(kind, scale, moved)
        ratio, sampled = mp.exp(mp.mpf(eps)), mp.mpf(rate)
        mixed = [(1 - sampled) * b + sampled * a for a, b in zip(p, q, strict=True)]
        high, low = (mixed, q) if forward else (q, mixed)
        return mp.fsum(max(a - ratio * b, 0) for a, b in zip(high, low, strict=True))


def gaussian_beside_laplace_delta(sigma: float, scale: float, rate: float, eps: float) -> mp.mpf:
    """Return delta of Gaussian and Laplace noise released from one Poisson sample, the larger of both directions.

    The Gaussian's divergence is integrated over the Laplace losses, whose masses under P are 1/2 at r, e^-r/2 at -r, and e^{(t - r)/2}/4 between.
    """
    with mp.workdps(40):
        mu, r, q, eps = 1 / mp.mpf(sigma), 1 / mp.mpf(scale), mp.mpf(rate), mp.mpf(eps)

        def theta(x: mp.mpf) -> mp.mpf:
            return mp.ncdf(mu / 2 - x / mu) - mp.exp(x) * mp.ncdf(-mu / 2 - x / mu)

        def whole(x: mp.mpf) -> mp.mpf:
            middle = mp.quad(lambda t: mp.exp((t - r) / 2) / 4 * theta(x - t), mp.linspace(-r, r, 17))
            return theta(x - r) / 2 + mp.exp(-r) / 2 * theta(x + r) + middle

        removed, inside = q * whole(mp.log(1 + mp.expm1(eps) / q)), 1 + mp.expm1(-eps) / q
        added = (1 - mp.exp(eps) * (1 - q)) * whole(-mp.log(inside)) if inside > 0 else mp.mpf(0)
        return max(removed, added)


SAMPLED_GAUSSIANS = [(1.0, 0.01), (0.8, 0.3), (3.0, 1e-4)]  # noise multiplier and rate
BALLS = [(1.0, 1.0), (0.3, 1.0), (2.0, 1.0), (4.0, 3.5), (0.01, 0.02)]  # half the distance of the means, and the radius
DISCRETE = [
    ("gaussian", 0.3, 1),
    ("gaussian", 2.0, 3),
    ("gaussian", 9.7, 1),
    ("laplace", 0.2, 7),
    ("laplace", 1.5, 1),
    ("laplace", 3.0, 4),
]
DISCRETE_EPS = (-0.5, 0.0, 0.0113, 0.2, 0.73, 2.1, 4.9, 11.3)
GAUSSIANS_BESIDE_LAPLACE = [(1.0, 2.0, 0.1), (0.7, 5.0, 0.3), (4.0, 4.0, 0.01), (10.0, 20.0, 0.05)]
EPS_BESIDE_LAPLACE = (0.0, 0.001, 0.1, 0.5, 1.0, 4.0)
CASES: dict[Callable[..., mp.mpf], list[tuple]] = {
    renyi_of_sampled_gaussian: [
        (1 / noise, rate, order, forward)
        for (noise, rate), order, forward in itertools.product(
            SAMPLED_GAUSSIANS, (2.0, 3.0, 7.0, 1.5, 4.4), (True, False)
        )
    ],
    largest_loss_on_a_ball: [(*ball, dimension) for ball, dimension in itertools.product(BALLS, (1, 2, 3, 10, 200))],
    replaced_gaussian_delta: list(itertools.product((0.4, 1.0, 5.0), (1e-4, 0.1, 0.9), (-1.0, 0.0, 1e-3, 0.5, 4.0))),
    discrete_noise_delta: [
        (kind, scale, sensitivity * times, rate, forward, eps)
        for (kind, scale, sensitivity), (times, rate), forward, eps in itertools.product(
            DISCRETE, ((1, 1.0), (2, 1.0), (1, 0.03)), (True, False), DISCRETE_EPS
        )
    ],
    gaussian_beside_laplace_delta: [
        (*noise, eps) for noise, eps in itertools.product(GAUSSIANS_BESIDE_LAPLACE, EPS_BESIDE_LAPLACE)
    ],
}
FUNCTIONS = {function.__name__: function for function in CASES}


def rows() -> Iterator[tuple[str, tuple]]:
    """Yield the name and the arguments of each value."""
    for function, cases in CASES.items():
        for arguments in cases:
            yield function.__name__, arguments


@functools.cache
def read() -> dict[tuple[str, ...], str]:
    """Read the file."""
    return {(name, arguments): value for name, arguments, value in tables.read("slow_values")}


def committed(name: str, *arguments: object) -> mp.mpf:
    """Return the value that the file has, to 34 digits."""
    with mp.workdps(DIGITS):
        return mp.mpf(read()[name, repr(arguments)])


def computed(name: str, arguments: tuple) -> str:
    """Compute a value, as the file has it."""
    return mp.nstr(FUNCTIONS[name](*arguments), DIGITS)


def main() -> None:
    """Write the file."""
    written = ((name, repr(arguments), computed(name, arguments)) for name, arguments in rows())
    tables.write("slow_values", ("function", "arguments", "value"), written)


if __name__ == "__main__":
    main()
