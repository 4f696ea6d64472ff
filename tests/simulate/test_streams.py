"""The simulator's random streams, numbers and samplers, against NumPy's Philox, mpmath and their laws."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import effort
from participation import batch_law
from small_runs import SAMPLERS, core

pytest.importorskip("numba")

from hockeystick import simulate
from hockeystick.correlated_noise.thinning import first_steps
from hockeystick.simulate.running.rule import NOISE, STREAM_WORDS


def new_stream(seed, **counter):
    """Return a stream at its beginning."""
    words = np.zeros(STREAM_WORDS, np.uint64)
    where = [counter.get(name, 0) for name in ("run", "rnd", "client", "step")]
    core("start_stream", words, seed, NOISE, *where)
    return words


def numpy_words(size, seed, *, run, rnd, client, step):
    """Return the first words of a stream of noise from NumPy's Philox, which adds 1 to the counter before the first block."""
    counter = (run << 192) + (rnd << 128) + (((client << 32) | step) << 64) - 1
    return np.random.Philox(key=seed + (NOISE << 64), counter=counter % 2**256).random_raw(size)


@pytest.mark.parametrize(
    ("seed", "run", "rnd", "client", "step"),
    [(0, 0, 0, 0, 0), (1, 2, 3, 4, 5), (2**64 - 1, 10**6, 10**10, 2**32 - 1, 10**4)],
)
def test_words_are_numpys(seed, run, rnd, client, step):
    """The words are those of numpy.random.Philox with the same key and counter, bit for bit, across blocks."""
    words = new_stream(seed, run=run, rnd=rnd, client=client, step=step)
    ours = np.array([core("next_word", words) for _ in range(12)], np.uint64)
    assert np.array_equal(ours, numpy_words(12, seed, run=run, rnd=rnd, client=client, step=step))


def test_units_reach_one_and_not_zero():
    """The smallest word gives 2^-53, the largest 1: logarithms are finite."""
    assert core("unit", 0) == 2.0**-53
    assert core("unit", 2**64 - 1) == 1.0


@pytest.mark.parametrize(
    ("draw", "law", "even"),
    [
        ("add_normals", stats.norm, lambda n: math.prod(range(1, n, 2))),  # (n - 1)!!
        ("add_laplace", stats.laplace, math.factorial),
    ],
)
def test_noise_has_its_law(draw, law, even):
    """20000 numbers pass a Kolmogorov-Smirnov test, and their moments are within 4 standard errors."""
    out = np.full(20000, 3.0)
    core(draw, new_stream(5), 2.0, out, out.size)  # adds
    standard = (out - 3.0) / 2.0
    assert stats.kstest(standard, law.cdf).pvalue > 1e-3
    for power in (1, 2, 3, 4):
        mean, second = (0 if n % 2 else even(n) for n in (power, 2 * power))
        assert abs(np.mean(standard**power) - mean) < 4 * np.sqrt((second - mean**2) / standard.size)
    assert abs(np.corrcoef(standard[:-1], standard[1:])[0, 1]) < 4 / np.sqrt(standard.size)


@pytest.mark.parametrize("bound", [1, 3, 10, 3 * 2**61])
def test_integers_are_uniform(bound):
    """Bounded integers pass a chi-square test; for 3/4 of the word's range, modulo would count the first third twice."""
    words = new_stream(11)
    drawn = np.array([core("below", words, bound) for _ in range(6000)])
    assert drawn.min() >= 0
    assert drawn.max() < bound
    cells = min(bound, 6)
    counts = np.bincount((drawn.astype(object) * cells // bound).astype(int), minlength=cells)
    assert counts.size == cells
    if cells > 1:
        assert stats.chisquare(counts, expected(bound, cells) * drawn.size).pvalue > 1e-3


def expected(bound, cells):
    """Return the share of [0, bound) that falls into each of equal cells."""
    edges = [-(-i * bound // cells) for i in range(cells + 1)]
    return np.diff(np.array(edges, object)).astype(float) / float(bound)


@pytest.mark.parametrize("sampler", [*SAMPLERS, simulate.Poisson(1.0), simulate.FixedSize(7)], ids=repr)
def test_everyone_is_drawn_as_often_as_said(sampler):
    """Each of 7 takes part in a share of the rounds that is the sampler's, by a chi-square test; draws repeat for a seed."""
    rounds = 3000
    drawn = sampler.draw(7, rounds=rounds, seed=3)
    again = sampler.draw(7, rounds=rounds, seed=3)
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))
    counts = np.bincount(np.concatenate(drawn), minlength=7)
    share = sampler._expected(7) / 7
    variance = rounds * share * (1 - (1 / 7 if isinstance(sampler, simulate.WithReplacement) else share))
    if variance == 0 or isinstance(sampler, simulate.Cyclic):
        assert np.ptp(counts) <= 1
        return
    # sizes are fixed for some, which only makes the counts' spread smaller: the statistic is compared from above
    assert np.sum((counts - rounds * share) ** 2) / variance < stats.chi2.isf(1e-3, 7)


def test_subsets_are_uniform():
    """All 35 subsets of 3 of 7 are equally frequent by a chi-square test, and hold nobody twice."""
    drawn = simulate.FixedSize(3).draw(7, rounds=7000, seed=4)
    assert all(len(set(subset.tolist())) == 3 for subset in drawn)
    codes = np.array([sum(1 << int(i) for i in subset) for subset in drawn])
    counts = np.unique(codes, return_counts=True)[1]
    assert counts.size == 35
    assert stats.chisquare(counts).pvalue > 1e-3


LAWS = {  # of the rounds, among the first so many, that members 0 and 5 are in
    simulate.Poisson(0.4): (4, [batch_law(4, 1, 0.4)] * 2),
    simulate.MinSeparatedPoisson(1, 0.4): (4, [batch_law(4, 1, 0.4)] * 2),
    simulate.MinSeparatedPoisson(3, 0.6): (6, [batch_law(6, 3, 0.6)] * 2),
    simulate.MinSeparatedPoisson(3, 0.4, warm_start=True): (6, [batch_law(6, 3, 0.4, first_steps(0.4, 3))] * 2),
    simulate.MinSeparatedPoisson(9, 0.4, warm_start=True): (5, [batch_law(5, 9, 0.4, first_steps(0.4, 9))] * 2),
    simulate.CyclicPoisson(2, 0.4): (
        5,
        [
            {tuple(2 * k + turn for k in taken): p for taken, p in batch_law(n, 1, 0.4).items()}
            for turn, n in ((0, 3), (1, 2))
        ],
    ),
    simulate.BallsInBins(3): (5, [{tuple(range(bin, 5, 3)): 1 / 3 for bin in range(3)}] * 2),
}


@pytest.mark.parametrize("sampler", LAWS, ids=repr)
def test_rounds_of_two_members_have_the_certified_law(sampler):
    """All rounds that two members are in together have the law for which `correlated_noise` certifies, by a chi-square test of every outcome."""
    rounds, (one, other) = LAWS[sampler]
    runs = effort.at_night(8000, by_day=2000)
    law = {(a, b): p * q for (a, p), (b, q) in itertools.product(one.items(), other.items())}
    counts = dict.fromkeys(law, 0)
    for run in range(runs):
        batches = sampler.draw(6, rounds=rounds, seed=5, run=run)
        counts[tuple(tuple(t for t, batch in enumerate(batches) if i in batch) for i in (0, 5))] += 1
    likely = {both: runs * p for both, p in law.items() if runs * p >= 5}
    found, expected = [*(counts[both] for both in likely)], [*likely.values()]
    rest = runs - math.fsum(expected)
    if rest > 1e-6:
        found, expected = [*found, runs - sum(found)], [*expected, rest]
    assert stats.chisquare(found, expected).pvalue > 1e-3


def test_an_epoch_is_a_partition():
    """Shuffled parts of an epoch are disjoint, orders differ between epochs and runs, and the first element is uniform."""
    sampler = simulate.Shuffled(2)
    drawn = sampler.draw(7, rounds=3000, seed=6)
    epochs = [np.concatenate(drawn[i : i + 3]) for i in range(0, 3000, 3)]
    assert all(len(set(epoch.tolist())) == 6 for epoch in epochs)
    assert stats.chisquare(np.bincount([epoch[0] for epoch in epochs], minlength=7)).pvalue > 1e-3
    assert not np.array_equal(drawn[0], sampler.draw(7, rounds=1, seed=6, run=1)[0])
    assert np.array_equal(simulate.Cyclic(2).draw(3, rounds=3, seed=1), [[0, 1], [2, 0], [1, 2]])


# Normal numbers of the simulator, against NumPy's words, mpmath and the formula of Box and Muller


def drawn(size):
    """Return the first numbers of a stream."""
    out = np.zeros(size)
    core("add_normals", new_stream(7, run=1, rnd=2, client=3, step=4), 1.0, out, out.size)
    return out


def test_numbers_are_those_of_box_and_muller():
    """Each pair of numbers is the transform of a pair of uniform ones, in 40 digits, to 1e-15."""
    found, words = drawn(1000), numpy_words(1000, 7, run=1, rnd=2, client=3, step=4)
    uniform = ((words >> np.uint64(11)).astype(float) + 1.0) * 2.0**-53
    with mpmath.workdps(40):
        for i in range(0, 1000, 2):
            radius, angle = mpmath.sqrt(-2 * mpmath.log(uniform[i])), 2 * mpmath.pi * mpmath.mpf(uniform[i + 1])
            assert abs(found[i] - radius * mpmath.cos(angle)) <= 1e-15 * radius
            assert abs(found[i + 1] - radius * mpmath.sin(angle)) <= 1e-15 * radius


@pytest.mark.parametrize("eighths", range(1, 9))
def test_quarter_turns(eighths):
    """Beside multiples of an eighth of a turn, where the polynomials change, and at them; cosines of 1/4 and 3/4 are 0 exactly."""
    near = [eighths / 8 + step for step in (-(2.0**-50), -(2.0**-53), 0.0, 2.0**-53, 2.0**-50)]
    angles = np.array([angle for angle in near if angle <= 1.0])
    cosines, sines = np.full(angles.size, math.exp(-0.5)), angles.copy()
    core("to_normals", cosines, sines, angles.size)
    with mpmath.workdps(40):
        for angle, cosine, sine in zip(angles, cosines, sines, strict=True):
            assert abs(cosine - mpmath.cos(2 * mpmath.pi * mpmath.mpf(angle))) <= 1e-15
            assert abs(sine - mpmath.sin(2 * mpmath.pi * mpmath.mpf(angle))) <= 1e-15
    if eighths in (2, 6):
        assert cosines[near.index(eighths / 8)] == 0.0


def test_ends_of_the_uniform_numbers():
    """The least uniform number gives the largest radius, sqrt(2 log 2^53), and 1 gives 0."""
    cosines, sines = np.array([2.0**-53, 1.0]), np.array([1.0, 0.3])
    core("to_normals", cosines, sines, 2)
    assert cosines[0] == pytest.approx(math.sqrt(2 * 53 * math.log(2.0)), rel=1e-15)
    assert cosines[1] == sines[1] == 0.0


def test_radii():
    """Logarithms of powers of two, their neighbours, numbers beside sqrt(1/2) and at random are right within 2 units in the last place.

    A full turn leaves the radius sqrt(-2 log u), whose root and the product below it err by half a unit each.
    """
    rng = np.random.default_rng(1)
    powers = 2.0 ** np.arange(-53.0, 1.0)
    x = np.concatenate(
        [powers, np.nextafter(powers, 0), np.nextafter(powers[:-1], 2), np.nextafter(math.sqrt(0.5), [0, 1])]
    )
    x = np.concatenate([x, rng.random(2000), 2.0 ** rng.uniform(-53, 0, 2000), 1 - 2.0 ** rng.uniform(-53, -1, 2000)])
    found, angles = x.copy(), np.ones(x.size)
    core("to_normals", found, angles, x.size)
    with mpmath.workdps(40):
        for number, ours in zip(x, found, strict=True):
            truth = -mpmath.log(mpmath.mpf(number))
            rounding = 2 * np.spacing(float(truth)) + 2.0**-52 * float(truth)
            assert abs(mpmath.mpf(ours) ** 2 / 2 - truth) <= rounding


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 15, 16, 17, 63, 64, 65, 100, 127, 129])
def test_a_prefix_is_a_prefix(size):
    """The first numbers do not depend on how many are drawn, whether vectors or single numbers made them."""
    assert np.array_equal(drawn(size), drawn(200)[:size])
