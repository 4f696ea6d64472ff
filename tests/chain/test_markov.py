"""The exact scalar chain: against closed forms, independent quadrature, and what must hold between chains."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import hockeystick as hs
from enumeration import either
from hockeystick import _core, last_iterate

CHAIN = {"gradient_map": "logistic", "record": 1.0, "neighbour": -1.0, "rounds": 6}
CHAIN |= {"learning_rate": 0.5, "noise_std": 1.0, "diameter": 2.0}
LAPLACE = {k: v for k, v in CHAIN.items() if k != "noise_std"} | {"noise_scale": 1.0}


def linear_chain(eps: object, rounds: int = 1, learning_rate: float = 1.0, **given: object) -> hs.Bracket:
    """Return the bracket of a chain of linear gradients."""
    return last_iterate.chain_delta(eps, gradient_map="linear", rounds=rounds, learning_rate=learning_rate, **given)


def contains(bracket: hs.Bracket, value: float, slack: float = 0.0) -> bool:
    """Whether a value known to `slack` can lie in the bracket."""
    return bool(bracket.lower - slack <= value <= bracket.upper + slack)


def two_atoms_and_a_density(eps: float, noise: object, means: tuple[float, float], radius: float) -> float:
    """Return the divergence of two projected laws of one step, by finding where the densities cross."""
    p, q = (noise(m) for m in means)
    gamma = math.exp(eps)
    total = max(0.0, p.cdf(-radius) - gamma * q.cdf(-radius)) + max(0.0, p.sf(radius) - gamma * q.sf(radius))
    density = lambda y: max(0.0, p.pdf(y) - gamma * q.pdf(y))
    cuts = np.unique(np.clip([*means, *np.linspace(-radius, radius, 41)], -radius, radius))
    return total + sum(integrate.quad(density, a, b, epsabs=1e-13, limit=400)[0] for a, b in itertools.pairwise(cuts))


@pytest.mark.share(4)
@pytest.mark.parametrize("eps", [0.0, 0.3, 1.5])
@pytest.mark.parametrize("kind", ["noise_std", "noise_scale"])
@pytest.mark.parametrize("gradient_map", ["linear", "quadratic", "logistic"])
def test_one_round(eps: float, kind: str, gradient_map: str) -> None:
    """After one round the law is known: the noise around one mean, with the tails put on the ends."""
    psi = {
        "linear": lambda x: 0.2 - 0.5 * x,
        "quadratic": lambda x: 0.2 - 0.5 * 0.7 * (0.2 - x),
        "logistic": lambda x: 0.2 + 0.5 * x / (1 + math.exp(0.2 * x)),
    }[gradient_map]
    family = stats.norm if kind == "noise_std" else stats.laplace
    noise = lambda mean: family(mean, 0.5 * 0.8)
    there = two_atoms_and_a_density(eps, noise, (psi(0.9), psi(-0.4)), 0.6)
    back = two_atoms_and_a_density(eps, noise, (psi(-0.4), psi(0.9)), 0.6)
    smoothness = 0.7 if gradient_map == "quadratic" else None
    given = {
        "record": 0.9,
        "neighbour": -0.4,
        "rounds": 1,
        "learning_rate": 0.5,
        "diameter": 1.2,
        "start": 0.2,
        kind: 0.8,
    }
    bracket = last_iterate.chain_delta(eps, gradient_map=gradient_map, smoothness=smoothness, **given)
    assert contains(bracket, max(there, back), 1e-9)
    assert bracket.upper - bracket.lower < 1e-12


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", ["noise_std", "noise_scale"])
def test_two_rounds_by_nested_quadrature(kind: str) -> None:
    """After two rounds total variation follows from one integral over the first iterate for each set {y > t}."""
    s, radius, x = 0.5, 1.0, 1.0
    family = stats.norm if kind == "noise_std" else stats.laplace
    psi = lambda w, r: w + 0.5 * r / (1 + np.exp(r * w))

    def above(t: float, record: float) -> float:
        first = family(psi(0.0, record), s)
        tail = lambda w: family(psi(w, x), s).sf(t)
        inner = integrate.quad(
            lambda w: first.pdf(w) * tail(w), -radius, radius, points=[psi(0.0, record)], epsabs=1e-13
        )[0]
        return inner + first.cdf(-radius) * tail(-radius) + first.sf(radius) * tail(radius)

    best = optimize.minimize_scalar(lambda t: above(t, -x) - above(t, x), bounds=(-1, 1), method="bounded")
    chain = (CHAIN if kind == "noise_std" else LAPLACE) | {"rounds": 2, "index": 1}
    assert contains(last_iterate.chain_delta(0.0, **chain), -best.fun, 1e-9)


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", ["noise_std", "noise_scale"])
@pytest.mark.parametrize(("record", "neighbour"), [(-0.3, -0.7), (0.2, -0.5)])
def test_three_rounds_that_leave_the_domain(kind: str, record: float, neighbour: float) -> None:
    """Steps to beyond an end of the domain: the laws on a thousand midpoints and the two ends."""
    radius, cells = 0.25, 1000
    width = 2 * radius / cells
    middles = (np.arange(cells) + 0.5) * width - radius
    places = np.concatenate([[-radius], middles, [radius]])

    def moved(means: np.ndarray) -> np.ndarray:
        noise = (stats.norm if kind == "noise_std" else stats.laplace)(means[:, None], 0.5)
        return np.hstack([noise.cdf(-radius), noise.pdf(middles) * width, noise.sf(radius)])

    p, q = (
        moved(np.array([-0.5 * x])) @ moved(places - 0.5 * x) @ moved(places - 0.5 * x) for x in (record, neighbour)
    )
    exact = either(p, q, 0.1)
    given = {"record": record, "neighbour": neighbour, "diameter": 2 * radius, kind: 1.0}
    assert contains(linear_chain(0.1, 3, 0.5, **given), exact, 1e-6)


@pytest.mark.share(2)
@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0])
def test_wide_interval_is_the_gaussian_chain(factor: float) -> None:
    """Where nothing is projected the last iterate is Gaussian: mean gap and variance by their recursions."""
    rounds, s = 7, 0.4
    gap = variance = 0.0
    for _ in range(rounds):
        gap, variance = factor * gap + 0.3, factor**2 * variance + s**2
    record = 0.15 / (1 - factor if factor < 1 else 1.0)
    map_of = {"gradient_map": "quadratic", "smoothness": 1 - factor} if factor < 1 else {"gradient_map": "linear"}
    given = {"rounds": rounds, "learning_rate": 1.0, "noise_std": s, "diameter": 60.0}
    bracket = last_iterate.chain_delta([0.1, 1.0, 4.0], record=record, neighbour=-record, **map_of, **given)
    exact = hs.theta([0.1, 1.0, 4.0], gap / math.sqrt(variance))
    assert np.all(bracket.lower <= exact * (1 + 1e-12))
    assert np.all(exact <= bracket.upper * (1 + 1e-12))
    assert np.all(bracket.upper - bracket.lower <= np.maximum(1e-9 * exact, 1e-12))


@pytest.mark.parametrize("index", [None, 3])
def test_functions_agree_with_built_in_maps(index: int | None) -> None:
    """A Python function of the logistic gradient brackets the built-in map's value, tighter where its curvature is known."""
    function = lambda w, x: -x / (1 + np.exp(x * w))
    for noise in (CHAIN, LAPLACE):
        exact = last_iterate.chain_delta([0.0, 0.5], **(noise | {"index": index, "rounds": 4}))
        known = noise | {"index": index, "rounds": 4, "gradient_map": function, "smoothness": 0.25}
        rough = last_iterate.chain_delta([0.0, 0.5], **known, tolerance=0.1)
        fine = last_iterate.chain_delta([0.0, 0.5], **known, curvature=0.0963, tolerance=0.001)
        for bracket in (rough, fine):
            assert np.all(bracket.lower <= exact.upper)
            assert np.all(exact.lower <= bracket.upper)
        assert np.all(fine.upper - fine.lower <= 0.002 * fine.upper + 1e-12)
        assert np.all(rough.upper - rough.lower <= 0.1 * rough.upper + 1e-12)


def test_schedules_and_constants_agree() -> None:
    """Sequences of equal numbers are constants; the index marks one place in a sequence."""
    spelled = CHAIN | {"rounds": None, "record": [1.0] * 6, "learning_rate": [0.5] * 6, "noise_std": [1.0] * 6}
    for index in (None, 2):
        constant = last_iterate.chain_delta(0.4, **CHAIN, index=index)
        assert constant == last_iterate.chain_delta(0.4, **spelled, index=index)
    one = last_iterate.chain_delta(0.4, **(CHAIN | {"neighbour": [1.0, -1.0, 1.0, 1.0, 1.0, 1.0]}))
    assert one == last_iterate.chain_delta(0.4, **CHAIN, index=2)


def test_later_rounds_hide() -> None:
    """Further rounds are post-processing: delta falls with every round after the record's, and with eps."""
    for chain in (CHAIN, LAPLACE):
        brackets = [last_iterate.chain_delta([0.0, 0.2], **(chain | {"rounds": n, "index": 1})) for n in range(1, 6)]
        for before, after in itertools.pairwise(brackets):
            assert np.all(after.lower <= before.upper)
            assert after.upper[0] < before.lower[0]
        curve = last_iterate.chain_delta(np.linspace(0, 2, 21), **chain)
        assert np.all(np.diff(curve.upper) <= 1e-12)


@pytest.mark.parametrize("chain", [CHAIN, LAPLACE], ids=["gaussian", "laplace"])
def test_far_eps(chain: dict) -> None:
    """At large eps the ends stay in order and fall; at infinity nothing is left."""
    bracket = last_iterate.chain_delta([5.0, 19.0, 21.0, 60.0, 699.0, 800.0, 1e300, np.inf], **chain)
    assert np.all(bracket.lower <= bracket.upper)
    assert np.all(np.diff(bracket.upper) <= 1e-12)
    assert bracket.upper[-1] == 0
    assert np.all(bracket.upper[1:] < 1e-4)


def test_pure_privacy_of_laplace_noise() -> None:
    """One participation under Laplace noise is exactly (2L/v, 0)-private, and the bracket knows it."""
    chain = LAPLACE | {"gradient_map": "linear", "record": 0.3, "neighbour": -0.3, "index": 4, "diameter": 8.0}
    beyond = last_iterate.chain_delta(0.6 + 1e-9, **chain)
    assert beyond.lower == beyond.upper == 0
    alone = last_iterate.chain_delta(0.5, **(chain | {"index": 1, "rounds": 1}))
    assert contains(alone, float(hs.laplace_theta(0.5, 0.6)), 1e-15)


@pytest.mark.parametrize(
    ("diameter", "start", "record", "neighbour", "eps"),
    [
        (2**20, -248780.0586635078, 1.9212679513298463, 0.3147003514591191, 1.3065736162382737),
        (2**29, 34973019.00718576, 2.8412428893877264, -2.111205707420978, 4.630898113102247),
        (2**31, 622289430.9074296, -0.06507257854120532, 0.10418336507757098, 0.1546724567564029),
    ],
)
def test_laplace_noise_far_from_the_origin(
    diameter: float, start: float, record: float, neighbour: float, eps: float
) -> None:
    """Where a mean has few digits after the point, what is lost of them is charged: laplace_theta stays in the bracket."""
    bracket = linear_chain(eps, record=record, neighbour=neighbour, noise_scale=1.0, diameter=diameter, start=start)
    truth = float(hs.laplace_theta(eps, abs(record - neighbour)))
    assert bracket.lower <= truth * (1 + 1e-13)
    assert bracket.upper >= truth * (1 - 1e-13)


def test_gaussian_noise_at_the_largest_loss_of_one_round() -> None:
    """Just below log P(R)/Q(R) the atom at R is worth 3.183e-21 (mpmath): too little to be seen, too much for an upper end of 0."""
    record, neighbour, diameter = -0.0283599927017048, -0.027256345965742668, 2 * 0.1859538980104731
    bracket = linear_chain(0.001036063843151199, record=record, neighbour=neighbour, noise_std=1.0, diameter=diameter)
    assert bracket.lower <= 3.184e-21
    assert 3.183e-21 <= bracket.upper < 1e-12


@pytest.mark.parametrize("gradient_map", ["linear", "quadratic", "logistic"])
@pytest.mark.parametrize("noise", [{"noise_std": 0.5}, {"noise_std": 2.0}, {"noise_scale": 0.5}])
def test_a_thousand_rounds(gradient_map: str, noise: dict) -> None:
    """T = 1000 with participation in every round: within 1 % (or 1e-12)."""
    smoothness = 0.5 if gradient_map == "quadratic" else None
    chain = {name: value for name, value in CHAIN.items() if name != "noise_std"} | noise | {"rounds": 1000}
    chain |= {"gradient_map": gradient_map, "record": 0.5, "neighbour": -0.5}
    bracket = last_iterate.chain_delta(1.0, smoothness=smoothness, **chain)
    assert 0 <= bracket.lower <= bracket.upper <= 1
    assert bracket.upper - bracket.lower <= max(0.01 * bracket.upper, 1e-12)
    assert bracket.status == "certified"


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize(
    ("low", "high", "diameter"), [(-1, 1, 2), (-1, 1, 1), (-0.2, 1.4, 2), (0.5, 2.5, 1), (-3, -1, 2)]
)
@pytest.mark.parametrize("eps", [0.0, 0.5, 1.9, 4.0])
def test_projected_contraction(laplace: bool, low: float, high: float, diameter: float, eps: float) -> None:
    """The coefficient is the largest divergence over pairs of means, each the best over all thresholds."""
    family = stats.laplace if laplace else stats.norm
    means = np.linspace(low, high, 41)
    thresholds = np.linspace(-diameter / 2, diameter / 2, 401)
    above = family.sf(thresholds[:, None] - means)
    best = 0.0
    for tails in (above, 1 - above):  # {y > t} and {y < t}
        gap = tails[:, :, None] - math.exp(eps) * tails[:, None, :]
        best = max(best, gap.max())
    value = last_iterate.projected_contraction(
        eps, image_low=low, image_high=high, diameter=diameter, **{"noise_scale" if laplace else "noise_std": 1.0}
    )
    assert best * (1 - 1e-12) - 1e-15 <= value <= best + 2e-4


@pytest.mark.parametrize("unit", [1.0, 1e-300, 1e307])
@pytest.mark.parametrize("kind", ["noise_std", "noise_scale"])
@pytest.mark.parametrize(("low", "high"), [(-10.0, 10.0), (10.0, 17.0), (-1e-8, 0.0)])
@pytest.mark.parametrize("eps", [0.0, 0.7])
def test_projected_contraction_does_not_know_its_unit(
    unit: float, kind: str, low: float, high: float, eps: float
) -> None:
    """Lengths near the ends of the range of doubles give what they give in another unit."""
    values = [
        last_iterate.projected_contraction(
            eps, image_low=low * k, image_high=high * k, diameter=10.0 * k, **{kind: 10.0 * k}
        )
        for k in (2.0**-3, unit)
    ]
    np.testing.assert_allclose(*values, rtol=1e-12, atol=1e-15)


def test_projected_contraction_at_the_smallest_numbers() -> None:
    """A width of the smallest double is a distance like any other; before noise of 1 it leaves next to nothing."""
    tiny = 5e-324
    shared = {"image_low": 0.0, "image_high": tiny, "diameter": 1.0}
    assert last_iterate.projected_contraction(0.0, **shared, noise_std=1.0) <= tiny
    same = last_iterate.projected_contraction(0.5, **(shared | {"diameter": tiny}), noise_std=tiny)
    np.testing.assert_allclose(same, hs.theta(0.5, 1.0), rtol=1e-13)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"gradient_map": "cubic"}, ValueError, "gradient_map must be one of"),
        ({"record": np.inf}, ValueError, "record must be finite, not inf"),
        ({"record": [[1.0]]}, ValueError, "record must be a number or a sequence"),
        ({"learning_rate": [0.5, -0.5, 0.5, 0.5, 0.5, 0.5]}, ValueError, r"learning_rate\[1\] must be positive"),
        ({"noise_std": [1.0] * 5}, ValueError, "rounds has 6, noise_std has 5"),
        ({"rounds": None}, ValueError, "rounds must be given"),
        ({"index": 7}, ValueError, "index must be at most the number of rounds"),
        ({"noise_scale": 1.0}, TypeError, "exactly one of noise_std"),
        ({"start": 1.5}, ValueError, "start must lie in"),
        ({"smoothness": 0.5}, TypeError, "smoothness must not be given"),
        ({"gradient_map": "quadratic"}, TypeError, "smoothness must be given"),
        ({"tolerance": 0.0}, ValueError, "tolerance must lie in"),
        ({"diameter": 1e6}, ValueError, "diameter must be at most"),
        ({"gradient_map": lambda w, x: 3 * w * x, "smoothness": 1.0}, ValueError, "smoothness must be at least"),
        ({"gradient_map": lambda w, x: w[:2] * x, "smoothness": 1.0}, ValueError, "gradient_map must return"),
        ({"gradient_map": lambda w, x: w * x + np.nan, "smoothness": 1.0}, ValueError, "gradient_map must return"),
    ],
)
def test_misuse(change: dict, error: type[Exception], match: str) -> None:
    """Bad arguments are named, and a function's values are held against what is said of it."""
    arguments = {"epsilon": 1.0} | CHAIN | change
    with pytest.raises(error, match=match):
        last_iterate.chain_delta(**arguments)


def test_a_function_runs_in_the_error_state_of_its_caller() -> None:
    """What NumPy does where a value of the caller's function overflows is the caller's choice."""
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        last_iterate.chain_delta(1.0, **CHAIN | {"gradient_map": lambda w, _: np.exp(w + 1e3), "smoothness": 1.0})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"first": []}, "must have the same rounds"),
        ({"second": [0]}, "must have the same rounds"),
        ({"second": [0, 2]}, "must name one of the maps"),
        ({"radius": math.nan}, "radius must be positive"),
        ({"start": math.inf}, "start must be finite"),
        ({"points": 0}, "points must be positive"),
        ({"maps": [("linear", 1.0, 0.0, 0.0, 0.5, 0.0, [])] * 2}, "noise must be positive"),
    ],
)
@pytest.mark.parametrize("laplace", [False, True])
def test_core_refuses_what_it_cannot_run(change: dict, match: str, laplace: bool) -> None:
    """The compiled function checks what would make it read beyond its arrays or never end."""
    maps = [("linear", record, 0.0, 0.0, 0.5, 1.0, []) for record in (1.0, -1.0)]
    chain = {"epsilon": [1.0], "maps": maps, "first": [0, 0], "second": [1, 0], "radius": 1.0, "start": 0.0}
    chain |= {"laplace": laplace, "points": 100}
    with pytest.raises(ValueError, match=match):
        _core.scalar_chain(**(chain | change))
