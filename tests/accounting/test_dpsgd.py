"""Grids of DP-SGD: exact special cases, published values, inverse problems that never overspend, bounded work on the whole domain."""

import itertools
import math
import random
import re
import warnings
from concurrent.futures import ThreadPoolExecutor

import mpmath as mp
import numpy as np
import pytest

import effort
import high_precision as exact
import hockeystick as hs
from hockeystick import _core, federated, last_iterate

inf = math.inf

# The whole domain is asked, not only what somebody may mean.
pytestmark = pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")


def tiny_noise_delta(epsilon, noise, rate, steps):
    """Return delta, removed, where an output tells which batches had the record, up to e^{-1/8 noise^2}.

    Given their number k the loss is Gaussian: log(rate) + N(1/2, noise^2)/noise^2 of each, and log(1 - rate) of every other step.
    """
    total = mp.mpf(0)
    for k in range(1, steps + 1):
        chance = mp.binomial(steps, k) * rate**k * (1 - rate) ** (steps - k)
        mean = k * (1 / (2 * noise**2) + mp.log(rate)) + (steps - k) * mp.log1p(-rate)
        deviation = mp.sqrt(k) / noise
        beyond = mp.ncdf((mean - epsilon) / deviation)
        tilted = mp.exp(epsilon - mean + deviation**2 / 2) * mp.ncdf((mean - epsilon) / deviation - deviation)
        total += chance * (beyond - tilted)
    return total


@pytest.mark.parametrize("noise", [0.01, 0.017])
@pytest.mark.parametrize(("rate", "steps", "delta"), [(0.01, 1000, 1e-5), (0.3, 10, 1e-8), (0.05, 100, 1e-3)])
def test_tiny_noise(noise, rate, steps, delta):
    """Both ends of epsilon hold against the number of batches that had the record, and are within 1e-3."""
    training = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate), steps)
    found = training.epsilon_bracket(delta)
    with mp.workdps(60):
        at_upper, at_lower = (
            tiny_noise_delta(end, mp.mpf(noise), mp.mpf(rate), steps) for end in (found.upper, found.lower)
        )
    assert at_upper <= delta <= at_lower
    assert found.upper <= found.lower * (1 + 1e-3)


@pytest.mark.parametrize("steps", [1, 10, 10**6, 10**12])
def test_without_sampling(steps):
    """At sampling rate 1 delta and epsilon are those of one Gaussian, from above and to 1e-11."""
    for mu, depth in itertools.product([0.01, 1.0, 6.0], [0.5, 5.0, 30.0]):
        noise, eps = math.sqrt(steps) / mu, mu * (depth + mu / 2)
        with mp.workdps(60):
            truth = exact.theta(eps, mp.sqrt(steps) / mp.mpf(noise))
            found = hs.dpsgd_delta(noise, 1.0, steps, eps)
            assert truth <= found <= truth * (1 + 1e-11 * (1 + abs(mp.log(truth))))
        spent = hs.dpsgd_epsilon(noise, 1.0, steps, found)
        assert spent == pytest.approx(eps, rel=1e-9)
        assert hs.dpsgd_delta(noise, 1.0, steps, spent) <= found


def test_exact_special_cases():
    """Nothing leaks without steps, samples or with endless noise; delta 0, delta 1 and an infinite epsilon are themselves."""
    for noise, rate, steps in [(1.0, 0.0, 10), (1.0, 0.5, 0), (inf, 0.5, 10), (inf, 1.0, 1)]:
        assert hs.dpsgd_epsilon(noise, rate, steps, 0.0) == hs.dpsgd_delta(noise, rate, steps, 0.0) == 0
    for rate, steps in [(0.1, 5), (1.0, 5), (0.1, 1)]:
        assert hs.dpsgd_epsilon(1.0, rate, steps, 0.0) == inf
        assert hs.dpsgd_epsilon(1.0, rate, steps, 1.0) == 0
        assert hs.dpsgd_delta(1.0, rate, steps, inf) == 0
    assert hs.dpsgd_epsilon(1.0, 0.01, 10, 0.5) == 0  # and not negative
    # A record that is hardly ever drawn: delta is at most the probability that it is drawn at all.
    assert hs.dpsgd_epsilon(1e-3, 1e-6, 10, 1.1e-5) == 0
    assert hs.dpsgd_delta(1e-3, 1e-6, 10, 0.0) <= 1e-5 * (1 + 1e-12)


def test_answers_at_the_ends_of_doubles():
    """The smallest and largest arguments give numbers in their ranges, and no exception."""
    noise, rate = np.ix_([1e-300, 1e300], [1e-300, 1 - 2**-53])
    for steps, eps in itertools.product([1, 2], [0.0, 700.0]):
        delta = hs.dpsgd_delta(noise, rate, steps, eps)
        assert np.all((delta >= 0) & (delta <= 1))
    assert hs.dpsgd_delta(1e300, 1 - 2**-53, 2**53, 1e300) < 1e-320
    assert hs.dpsgd_noise_multiplier(1.0, 2**53, 1e-300, 1e-300) < inf
    assert hs.dpsgd_delta(1e-300, 1 - 2**-53, 2, 10.0) == 1
    assert hs.dpsgd_steps(15.27, 1e-300, 2.09e-5, 0.0742) == 2**53 - 1  # a record is never drawn but for 1e-284


BUDGETS = [(0.0, 1e-3), (0.5, 1e-6), (4.0, 1e-5)]  # epsilon and delta


@pytest.mark.parametrize(
    ("setting", "budget", "beyond"),  # noise multiplier, sampling rate and steps, of which one is asked
    [
        *[((None, 1.0, 30), budget, 1 - 2e-9) for budget in BUDGETS],
        *[((None, 0.05, 30), budget, 1 - 2e-3) for budget in BUDGETS],
        ((1.5, 0.05, None), (2.0, 1e-5), 1.01),
        ((0.7107424954588754, 1.1026460200491337e-07, None), (1.0, 0.0065006280015848265), 1 + 4e-13),  # of 3e12 steps
        ((1.5, None, 50), (1.0, 1e-5), 1.005),
        ((None, 7.880451307206058e-06, 424349), (0.055763282269932324, 8.245604471992827e-28), 1 - 1e-6),
        ((2.5842760087683376, None, 1149), (0.00863228413582561, 8.858258074043421e-32), 1 + 1e-6),
    ],
)
def test_inverses_are_feasible_and_tight(setting, budget, beyond):
    """The epsilon at an answer keeps the budget, also far down, and a hair beyond it does not."""
    epsilon, delta = budget
    given = dict(zip(("noise_multiplier", "sampling_rate", "steps"), setting, strict=True))
    asked = next(name for name, value in given.items() if value is None)
    del given[asked]
    found = float(getattr(hs, f"dpsgd_{asked}")(**given, epsilon=epsilon, delta=delta))
    further = round(found * beyond) if asked == "steps" else found * beyond
    assert found != further
    assert hs.dpsgd_epsilon(**given, **{asked: found}, delta=delta) <= epsilon
    assert hs.dpsgd_epsilon(**given, **{asked: further}, delta=delta) > epsilon


@pytest.mark.parametrize("noise", [20.0, 1e4, 1e6])
def test_steps_without_sampling(noise):
    """Without sampling the number of steps is the integer part of (noise mu)^2, exactly."""
    truth = (noise * float(hs.theta_inverse(1.0, 1e-5))) ** 2
    assert hs.dpsgd_steps(noise, 1.0, 1.0, 1e-5) == pytest.approx(math.floor(truth), abs=1e-12 * truth)


def test_steps_of_their_own_epsilon():
    """The epsilon of some steps, and the delta there, allow exactly these steps."""
    for noise, rate, steps in [(1.1, 0.01, 1609), (0.7, 1e-4, 121_706), (3.0, 0.2, 68)]:
        eps = float(hs.dpsgd_epsilon(noise, rate, steps, 1e-6))
        delta = max(1e-6, float(hs.dpsgd_delta(noise, rate, steps, eps)))
        eps = max(eps, float(hs.dpsgd_epsilon(noise, rate, steps, delta)))
        assert hs.dpsgd_steps(noise, rate, eps, delta) == steps


def test_rate_that_leaks_nothing():
    """At epsilon 0 and a tiny delta the rate is that of the total variation: 1 - (1 - q TV)^T = delta."""
    noise, steps, delta = 0.7091104626005775, 16434, 2.2198164173398866e-25
    total_variation = 2 * mp.ncdf(0.5 / mp.mpf(noise)) - 1
    rate = -mp.expm1(mp.log1p(-mp.mpf(delta)) / steps) / total_variation
    assert hs.dpsgd_sampling_rate(noise, steps, 0.0, delta) == pytest.approx(float(rate), rel=2e-10)


@pytest.mark.slow
def test_largest_epsilons_have_an_answer():
    """At an eps where the guess of the Gaussian limit fails, the noise is found without one."""
    noise = hs.dpsgd_noise_multiplier(1e-5, 10, 1e300, 1e-5)
    assert hs.dpsgd_delta(noise, 1e-5, 10, 1e300) <= 1e-5


def test_unlimited_and_impossible():
    """Where there is no limit the answer is 0 noise, infinitely many steps, rate 1; where nothing will do, the reverse."""
    assert hs.dpsgd_noise_multiplier(0.0, 10, 1.0, 0.0) == hs.dpsgd_noise_multiplier(0.5, 0, 0.0, 0.0) == 0
    assert hs.dpsgd_noise_multiplier(0.5, 10, inf, 0.0) == hs.dpsgd_noise_multiplier(1e-9, 10, 0.0, 1e-5) == 0
    assert hs.dpsgd_noise_multiplier(0.5, 10, 1.0, 0.0) == inf
    assert (
        hs.dpsgd_steps([1.0, inf, 1.0, 1.0], [0.0, 0.5, 0.5, 0.5], [0, 0, inf, 1], [0, 0, 0, 1]).tolist() == [inf] * 4
    )
    assert hs.dpsgd_steps(1.0, 0.5, [1.0, 0.1], [0.0, 1e-9]).tolist() == [0, 0]
    assert hs.dpsgd_sampling_rate([1.0, 1.0, 100.0], [0, 5, 5], 1.0, [0.0, 1.0, 1e-5]).tolist() == [1, 1, 1]
    assert hs.dpsgd_sampling_rate(1.0, 5, 1.0, 0.0) == 0


def test_countless_steps_reveal_everything():
    """More steps leak more: what 734 steps reveal, seven million do, though 1 - delta is e^-300000 there."""
    found = [
        hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(1.5), 0.96), steps).delta_bracket(13.7)
        for steps in (734, 7_342_557, 10**9)
    ]
    assert all(later.lower >= found[0].lower > 1 - 1e-12 for later in found)


def test_bad_cells_as_nan():
    """With on_error="nan" bad cells are NaN and good ones are answered."""
    found = hs.dpsgd_epsilon([1.0, -1.0, 1.0], 1.0, [4, 4, 0.5], 1e-5, on_error="nan")
    assert np.isnan(found).tolist() == [False, True, True]


def test_parameters():
    """Noise on the mean is batch_size times smaller than on the sum; steps round up, but not rounding errors."""
    settings = {"num_records": 1000, "batch_size": 10, "epochs": 3, "clip_norm": 0.5, "noise_std": 1.0}
    assert hs.dpsgd_parameters(**settings) == (2.0, 0.01, 300)
    assert hs.dpsgd_parameters(**{**settings, "noise_on": "mean"}) == (20.0, 0.01, 300)
    assert hs.dpsgd_parameters(**{**settings, "epochs": 0.07}).steps == 7
    assert hs.dpsgd_parameters(**{**settings, "batch_size": 300, "epochs": 1}).steps == 4
    assert "every record is drawn with probability 0.01" in hs.dpsgd_parameters(**settings).assumed


TRAINING = {"num_records": 60000, "batch_size": 256, "epochs": 15, "noise_multiplier": 1.1}


def test_parameters_as_people_speak():
    """Records, batch, epochs or steps, and the multiplier: ceil(60000/256) = 235 steps a pass, 15 passes."""
    assert hs.dpsgd_parameters(**TRAINING) == (1.1, 256 / 60000, 15 * 235)
    in_steps = {name: value for name, value in TRAINING.items() if name != "epochs"} | {"steps": 3525}
    assert hs.dpsgd_parameters(**in_steps) == hs.dpsgd_parameters(**TRAINING, sampling="poisson", clip_norm=0.3)


def test_no_threads_are_one():
    """The core does all the work where it is given no thread, and does not divide by their number."""
    cell = [np.array([x]) for x in (1.0, 0.01, 1000.0, 1e-5)]
    assert _core.dpsgd_epsilon(cell, 0)[0] == hs.dpsgd_epsilon(1.0, 0.01, 1000, 1e-5)


@pytest.mark.parametrize("value", [0.5, 1, np.float64(0.5), np.float32(0.5), np.int64(1), [0.5], np.array(0.5)])
def test_numbers_of_every_kind(value):
    """A number is checked by itself, an array as an array: the answer and the refusal are the same."""
    assert np.all(
        hs.dpsgd_epsilon(1.0, value, 100, 1e-5)
        == hs.dpsgd_epsilon(1.0, np.array([float(np.ravel(value)[0])]), 100, 1e-5)
    )
    with pytest.raises(ValueError, match=r"sampling_rate(\[0\])? must lie in \[0, 1\], not"):
        hs.dpsgd_epsilon(1.0, np.negative(value) if not isinstance(value, (int, float)) else -value, 100, 1e-5)


MANY = [np.broadcast_to(number, (10**5,) + (1,) * axes) for axes, number in enumerate((10.0, 0.01, 1.0))][::-1]
LOCAL = {"local_steps": 1, "num_clients": 2, "smoothness": 1.0, "learning_rate": 0.1}
SHARED = {"num_users": 9, "batch_size": 1, "noise_std": 1.0, "lipschitz": 1.0, "smoothness": 1.0, "loss": "convex"}
LAST = {"index": 1, "noise_std": 1.0, "lipschitz": 1.0, "smoothness": 1.0, "strong_convexity": 0.5, "diameter": 1.0}
GRIDS = {
    "dpsgd_delta": lambda a, b, c: hs.dpsgd_delta(a, b, c, 1.0),
    "dpsgd_epsilon": lambda a, b, c: hs.dpsgd_epsilon(a, b, c, 1e-5),
    "dpsgd_noise_multiplier": lambda a, b, c: hs.dpsgd_noise_multiplier(b, c, a, 1e-5),
    "dpsgd_steps": lambda a, b, c: hs.dpsgd_steps(a, b, c, 1e-5),
    "dpsgd_sampling_rate": lambda a, b, c: hs.dpsgd_sampling_rate(a, c, b, 1e-5),
    "fedavg_delta": lambda a, b, c: federated.fedavg_delta(a, rounds=c, clip_norm=b, noise_std=1.0, **LOCAL),
    "fedavg_gdp, by rounds": lambda a, b, c: federated.fedavg_gdp(
        rounds=c, clip_norm=b, noise_std=a, schedule="stagewise", **LOCAL
    ),
    "trusted_aggregator": lambda a, b, c: federated.trusted_aggregator(
        a, learning_rate=b[..., None], radius=c[..., None], **SHARED
    ),
    "pnsgd_gaussian": lambda a, b, c: last_iterate.pnsgd_gaussian(a, num_records=c, learning_rate=b, **LAST),
    "last_iterate.best": lambda a, b, c: last_iterate.best(a, num_records=c, learning_rate=b, **LAST),
}


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_too_large_for_memory(name):
    """Eight petabytes are refused as MemoryError, which names the shape and the bytes of the array that there is no room for."""
    with pytest.raises(MemoryError) as refused:
        GRIDS[name](*MANY)
    assert re.search(r"shape \((\d+, )+100000\)", str(refused.value))
    assert re.search(r"\d+ bytes|[\d.]+ [PE]iB", str(refused.value))
    assert len(str(refused.value)) < 200


MOST_WORK = 1e9  # points visited; a core does about 1e9 a second


def legal_cells(count):
    """Return noise multipliers from 1e-3 to 1e6, rates 0, 1 and from 1e-12 to 1, steps to 1e9, deltas from 1e-300 to 0.9."""
    rng = random.Random(20261121)
    spread = lambda low, high: math.exp(rng.uniform(math.log(low), math.log(high)))
    rate = lambda: rng.choice([0.0, 1.0, rng.random(), spread(1e-12, 1.0), spread(1e-5, 1.0)])
    return [(spread(1e-3, 1e6), rate(), float(int(spread(1.0, 1e9))), spread(1e-300, 0.9)) for _ in range(count)]


def test_every_legal_cell_is_answered_with_bounded_work():
    """Epsilon is finite or infinite but a number, never above the unsampled Gaussian's, and no cell costs more than the cap."""
    asked = legal_cells(effort.at_night(10_000, by_day=300))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda cell: _core.dpsgd_epsilon_work(*cell), asked, chunksize=50))
    for (sigma, rate, steps, delta), (epsilon, work) in zip(asked, answers, strict=True):
        assert epsilon >= 0.0, (sigma, rate, steps, delta)
        assert work <= MOST_WORK, (sigma, rate, steps, delta)
        unsampled = _core.dpsgd_epsilon_work(sigma, 1.0, steps, delta)[0]
        assert epsilon <= unsampled
        if rate == 0.0:
            assert epsilon == 0.0
