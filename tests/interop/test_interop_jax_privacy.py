"""jax_privacy: its training accountant with ours, its calibration, and a training with its own clipping and noise."""

import pytest

import hockeystick as hs

accounting = pytest.importorskip(
    "jax_privacy.accounting", reason="pip install --no-deps jax-privacy, and jax, optax, chex"
)

from hockeystick import correlated_noise
from hockeystick.interop.jax_privacy import HockeyStickAccountantConfig, guarantee_of


def test_its_training_accountant():
    """DP-SGD, and banded matrix factorisation in cycles: the certified numbers of the same mechanisms."""
    accountant = accounting.DpsgdTrainingAccountant(dp_accountant_config=HockeyStickAccountantConfig())
    settings = {"noise_multipliers": 1.0, "num_samples": 10_000, "delta": 1e-5, "batch_size": 100}
    spent = accountant.compute_epsilon(1000, accounting.DpParams(**settings))
    assert spent == pytest.approx(float(hs.dpsgd_epsilon(1.0, 0.01, 1000, 1e-5)), rel=1e-9)
    theirs = accounting.DpsgdTrainingAccountant(dp_accountant_config=accounting.PldAccountantConfig())
    assert spent <= theirs.compute_epsilon(1000, accounting.DpParams(**settings))
    cycles = accountant.compute_epsilon(1000, accounting.DpParams(**settings, cycle_length=10))
    assert cycles == pytest.approx(float(hs.dpsgd_epsilon(1.0, 0.1, 100, 1e-5)), rel=1e-9)


def test_its_batches():
    """Batches of each kind have the guarantee of the same participation; one that is not known is refused."""
    selection, roots = pytest.importorskip("jax_privacy.batch_selection"), correlated_noise.square_root_coefficients(4)
    shared = {"steps": 64, "noise_multiplier": 4.0}
    samples = shared | {"separation": 8, "sampling_rate": 0.1}
    apart, drawn = selection.BMinSepSampling, selection.CyclicPoissonSampling
    truncated = {"part_size": 100, "max_batch_size": 30, "zeroed_out": True}
    parts = correlated_noise.cyclic_truncated_poisson(roots, **truncated, **samples)
    ledgers = [hs.Accountant().compose(*made) for made in (correlated_noise.cyclic_poisson(roots, **samples), parts)]
    warm = correlated_noise.min_separated_poisson(roots, warm_start=True, **samples)
    cold = correlated_noise.min_separated_poisson(roots, truncated=True, **samples)
    cases = [
        (selection.BallsInBinsSampling(64, 8), {}, correlated_noise.balls_in_bins(roots, bins=8, **shared)),
        (apart(0.1, 64, 8), {}, warm),
        (apart(0.1, 64, 8, warm_start=False, truncated_batch_size=9), {}, cold),
        (drawn(0.1, 64, cycle_length=8), {}, ledgers[0]),
        (drawn(0.1, 64, 30, 8), {"num_records": 803}, ledgers[1]),
    ]
    for batches, given, expected in cases:
        found = guarantee_of(batches, roots, noise_multiplier=4.0, **given)
        assert found.epsilon(1e-6) == expected.epsilon(1e-6)
    for refused in (selection.FixedBatchSampling(10, 64), None):
        with pytest.raises(TypeError, match="batches must be one of"):
            guarantee_of(refused, roots, noise_multiplier=4.0)
    with pytest.raises(ValueError, match="num_records must be given"):
        guarantee_of(cases[-1][0], roots, noise_multiplier=4.0)


def test_its_calibration():
    """The search of jax_privacy ends within its tolerance above our least noise."""
    calibrated = pytest.importorskip("jax_privacy.accounting.calibrate").calibrate_noise_multiplier(
        target_epsilon=2.0,
        accountant=accounting.DpsgdTrainingAccountant(dp_accountant_config=HockeyStickAccountantConfig()),
        batch_sizes=100,
        num_updates=1000,
        num_samples=10_000,
        target_delta=1e-5,
        tol=1e-4,
    )
    least = float(hs.dpsgd_noise_multiplier(0.01, 1000, 2.0, 1e-5))
    assert least <= calibrated <= least + 2e-4


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_training():
    """A linear model is trained with its clipped gradients and its noise; what was spent is what was planned."""
    jax = pytest.importorskip("jax")
    clipping = pytest.importorskip("jax_privacy.clipping")
    noise = pytest.importorskip("jax_privacy.noise_addition")
    records, rate, steps = 200, 0.1, 20
    sigma = float(hs.dpsgd_noise_multiplier(rate, steps, 3.0, 1e-5))
    x = jax.random.normal(jax.random.key(0), (records, 3))
    y = x @ jax.numpy.array([1.0, -1.0, 0.5])
    gradient = clipping.clipped_grad(lambda w, x, y: (x @ w - y).mean() ** 2, l2_clip_norm=1.0, batch_argnums=(1, 2))
    privatizer = noise.gaussian_privatizer(stddev=sigma, prng_key=jax.random.key(1))
    model = jax.numpy.zeros(3)
    state, accountant = privatizer.init(model), HockeyStickAccountantConfig().create_accountant()
    dp = pytest.importorskip("dp_accounting")
    for step in range(steps):
        chosen = jax.random.bernoulli(jax.random.key(2 + step), rate, (records,))
        if chosen.any():
            noisy, state = privatizer.update(gradient(model, x[chosen], y[chosen]), state)
            model -= 0.5 * noisy / (records * rate)
        accountant.compose(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(sigma)))
    assert jax.numpy.isfinite(model).all()
    assert 2.99 <= accountant.get_epsilon(1e-5) <= 3.0
