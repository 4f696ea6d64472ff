"""opake-dpftrl: its objects, and stand-ins with their fields, against the matrices that its strategies are."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.linalg import toeplitz

import hockeystick as hs
from hockeystick import correlated_noise
from hockeystick.interop.opake import FIELDS, STRATEGIES, guarantee_of

STEPS, BINS, NOISE, DELTA = 12, 4, 2.0, 1e-5
WHEN = {"n_steps": STEPS, "min_sep": BINS, "max_participations": STEPS // BINS}
OPTIMISED, BINNED = {"momentum": 1.0, "lr_schedule": None}, {"momentum": 0.5, "lr_schedule": None}
CASES = [  # fields, and coefficients: of the inverse of C if columns may be normalised, else of C
    ("IdentityStrategy", {}, [1.0]),
    ("BandMfStrategy", {"bands": 3} | OPTIMISED, [0.9, 0.4, 0.2]),
    ("BltStrategy", {"max_buffers": 2} | OPTIMISED, [1.0, 0.4, 0.2]),
    ("BsrStrategy", {"bandwidth": 3, "alpha": 1.0, "beta": 0.5}, [1.0, 0.75, 0.59375]),
    ("LambdaCgdStrategy", {"lambda_": 0.5, "lr_schedule": None, "normalized": True}, [1.0, -0.5]),
    ("LambdaCgdStrategy", {"lambda_": 0.5, "lr_schedule": None, "normalized": False}, [1.0, -0.5]),
    # those of the roots of 1 - x and 1 - x/2, multiplied
    ("BisrStrategy", {"bandwidth": 3, "inv_coefficients": None, "normalized": True} | BINNED, [1.0, -0.75, -1 / 32]),
    ("BisrStrategy", {"bandwidth": 3, "inv_coefficients": None, "normalized": False} | BINNED, [1.0, -0.75, -1 / 32]),
    ("BisrStrategy", {"bandwidth": 2, "inv_coefficients": (2.0, 0.8), "normalized": True} | BINNED, [2.0, 0.8]),
]


def lower(coefficients):
    """Return a lower triangular Toeplitz matrix."""
    return toeplitz(np.pad(np.array(coefficients)[:STEPS], (0, STEPS - len(coefficients))), np.zeros(STEPS))


def stand_in(name, coefficients=(), **fields):
    """Return an object with these fields, and what the library derives from them."""
    derived = {
        "coefficients": lambda *_, **when: coefficients if when else None,
        "min_sep": property(lambda self: getattr(self, "num_bins", 1)),
        "max_participations": property(lambda self: self.n_steps // self.min_sep),
        "sampling_prob": property(lambda self: self.p0 / (1 - self.p0 * (self.inner.strategy.bands - 1))),
    }
    own = {key: value for key, value in derived.items() if key not in fields}
    return dataclasses.make_dataclass(name, fields, namespace=own)(**fields)


@pytest.fixture(params=["stand-ins", "opake-dpftrl"])
def make(request):
    """Return how objects are made."""
    if request.param == "stand-ins":
        return stand_in
    accounting, noise = (  # of Python 3.11.7 the library asks what it cannot do, with a TypeError
        pytest.importorskip(f"opake.dpftrl.{room}.types", exc_type=Exception) for room in ("accounting", "noise")
    )
    return lambda name, _=(), **fields: getattr(noise if name in STRATEGIES else accounting, name)(**fields)


def mechanism(make, strategy, n_steps=None, min_sep=1, max_participations=None):
    """Return a mechanism of a strategy."""
    when = {"n_steps": n_steps, "min_sep": min_sep, "max_participations": max_participations}
    return make("MfGaussian", noise_multiplier=NOISE, strategy=strategy, **when)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "fields", "given"), CASES)
def test_every_strategy(make, name, fields, given):
    """Unamplified, epsilon is that of the longest sum of columns at least 4 apart, within 1 %; in bins, that of the matrix."""
    matrix = np.linalg.inv(lower(given))
    strategy = make(name, matrix[:, 0] if "normalized" in fields else given, **fields)
    if "normalized" not in fields:
        matrix = lower(strategy.coefficients(**WHEN))
    elif fields["normalized"]:
        matrix = matrix / np.linalg.norm(matrix, axis=0)
    if hasattr(strategy, "streaming_matrix") and "lambda_" not in fields:  # what the library runs
        ran = np.array(strategy.streaming_matrix(**WHEN).materialize(STEPS))
        assert ran @ matrix == pytest.approx(np.eye(STEPS), abs=1e-12)
    patterns = (np.flatnonzero(taken) for taken in itertools.product([0, 1], repeat=STEPS))
    sums = [np.abs(matrix)[:, at].sum(axis=1) for at in patterns if (np.diff(at) >= BINS).all()]
    exact = hs.Accountant().compose(hs.Gaussian(NOISE / np.linalg.norm(sums, axis=1).max())).epsilon(DELTA)
    alone = guarantee_of(mechanism(make, strategy, **WHEN)).epsilon_bracket(DELTA)
    assert alone.lower <= exact <= alone.upper * (1 + 1e-9) <= exact * 1.01
    binned = make("BallsInBins", inner=mechanism(make, strategy), num_bins=BINS, n_steps=STEPS)
    known = correlated_noise.balls_in_bins(matrix, bins=BINS, noise_multiplier=NOISE)
    assert guarantee_of(binned).epsilon(DELTA) == pytest.approx(known.epsilon(DELTA), rel=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_samples(make):
    """Poisson samples are DP-SGD with the norm of a column, once for each turn of a part; p0 is the share of the coin of b-min-separated records; two participations are two."""
    for bands, coin in ((1, 0.1), (3, 1 / 8)):  # 1/8 of the 8 tenths in which a record does not sit out
        strategy = make("BandMfStrategy", CASES[1][2][:bands], bands=bands, **OPTIMISED)
        column, inner = np.array(strategy.coefficients(**WHEN)), mechanism(make, strategy)
        noise = hs.Gaussian(NOISE / np.linalg.norm(column))
        drawn = {"sample_rate": 0.1, "n_steps": STEPS, "truncated_batch_size": None, "dataset_size": None}
        exact = hs.Accountant().compose(hs.PoissonSampled(noise, 0.1), STEPS // bands).epsilon(DELTA)
        found = guarantee_of(make("CyclicPoisson", inner=inner, **drawn)).epsilon(DELTA)
        assert found == pytest.approx(exact, rel=1e-9)
        known = {"separation": bands, "sampling_rate": coin, "noise_multiplier": NOISE, "warm_start": True}
        apart = correlated_noise.min_separated_poisson(column, steps=STEPS, **known).epsilon(DELTA)
        found = guarantee_of(make("BMinSep", inner=inner, n_steps=STEPS, p0=0.1)).epsilon(DELTA)
        assert found == pytest.approx(apart, rel=1e-6)
    identity = make(*CASES[0][::2])
    inner, twice = mechanism(make, identity), mechanism(make, identity, STEPS, max_participations=2)
    exact = hs.Accountant().compose(hs.Gaussian(NOISE), 2).epsilon(DELTA)
    assert guarantee_of(twice).epsilon(DELTA) == pytest.approx(exact, rel=1e-9)
    truncated = make("CyclicPoisson", inner=inner, **drawn | {"truncated_batch_size": 12, "dataset_size": 100})
    exact = hs.Accountant().compose(hs.TruncatedPoissonSampled(hs.Gaussian(NOISE), 100, 0.1, 12), STEPS)
    assert guarantee_of(truncated).epsilon(DELTA) == pytest.approx(exact.epsilon(DELTA), rel=1e-9)


def test_refused():
    """Other classes, other fields and other strategies are named; nothing is guessed."""

    def of(name, *values):
        return stand_in(name, **dict(zip(FIELDS[name].split(), values, strict=True)))

    identity, buffered = of("IdentityStrategy"), of("BltStrategy", 2, 1.0, None)
    plain, smooth = (of("MfGaussian", 1.0, each, None, 1, None) for each in (identity, buffered))
    for refused, reason in [
        (hs.Gaussian(1.0), r"process must be one of MfGaussian\(noise_multiplier .*, not Gaussian"),
        (stand_in("BMinSep", inner=plain, n_steps=9, p0=0.1, cold=True), r"not BMinSep\(inner n_steps p0 cold\)"),
        (of("BMinSep", plain, 9, 0.1), r"strategy must be one of BandMfStrategy\(.*, not Identity"),
        (of("CyclicPoisson", smooth, 0.1, 9, None, None), "strategy must be .*, not Blt"),
        (of("BallsInBins", buffered, 3, 9), "inner must be one of MfGaussian"),
        (plain, "n_steps must be an integer, not None"),
    ]:
        with pytest.raises(TypeError, match=reason):
            guarantee_of(refused)
