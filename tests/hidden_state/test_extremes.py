"""Parameters at the ends of the double range, where a product overflows or underflows but the answer does not."""

import signal
import sys
import time

import mpmath as mp
import numpy as np
import pytest

import hockeystick as hs
import processes
import refused_calls
from high_precision import theta as exact_theta
from hockeystick import federated, last_iterate

FEDAVG = {"rounds": 100, "local_steps": 5, "num_clients": 50, "clip_norm": 1.0, "noise_std": 1.0, "smoothness": 1.0}
FEDAVG |= {"learning_rate": 0.01}
FEDPROX = FEDAVG | {"smoothness": 1.0, "learning_rate": 0.1, "prox": 2.0}


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e160, 1e200])
@pytest.mark.parametrize("schedule", ["constant", "cyclic", "stagewise", "continuous"])
def test_fedavg_scales(schedule: str, scale: float) -> None:
    """Only learning_rate V/sigma counts where smoothness is 0: neither factor may overflow or underflow alone."""
    plain = FEDAVG | {"smoothness": 0.0, "schedule": schedule}
    expected = federated.fedavg_gdp(**plain)
    scaled = plain | {"learning_rate": 0.01 * scale, "clip_norm": 1 / scale}
    np.testing.assert_allclose(federated.fedavg_gdp(**scaled), expected, rtol=1e-13)
    scaled = plain | {"noise_std": scale, "clip_norm": scale}
    np.testing.assert_allclose(federated.fedavg_gdp(**scaled), expected, rtol=1e-13)


@pytest.mark.parametrize("diameter", [None, 1e308])
@pytest.mark.parametrize("schedule", ["constant", "cyclic", "stagewise"])
@pytest.mark.parametrize(
    ("clip_norm", "noise_std", "learning_rate"),
    [(1e-318, 3.3, 1e300), (1e-10, 3e305, 1e300), (1e-300, 3e300, 1e308), (3e-310, 1.0, 1e-5), (1e300, 1e-8, 1e-300)],
)
def test_fedavg_with_ratios_beyond_the_doubles(
    clip_norm: float, noise_std: float, learning_rate: float, schedule: str, diameter: float | None
) -> None:
    """A ratio of two factors may be subnormal or infinite where their product with the third is neither."""
    sums = {"constant": mp.mpf(5), "cyclic": mp.mpf(137) / 60, "stagewise": mp.mpf(5)}
    rounds = 1 if schedule == "stagewise" else 2**52
    drift = 2 * mp.mpf(clip_norm) * mp.mpf(learning_rate) * sums[schedule] / mp.mpf(noise_std)
    computed = federated.fedavg_gdp(
        **FEDAVG
        | {"rounds": rounds, "clip_norm": clip_norm, "noise_std": noise_std, "learning_rate": learning_rate}
        | {"schedule": schedule, "diameter": diameter, "smoothness": 0.0}
    )
    assert computed == pytest.approx(float(drift * mp.sqrt(rounds) / mp.sqrt(50)), rel=1e-12)


@pytest.mark.parametrize("mu", [5e-324, 1e-323, 1e-310, 3e-220, 1e-200, 1e-31])
@pytest.mark.parametrize("share", [1e-9, 0.1, 0.39, 0.41, 3.0, 39.0, 41.0, 1e5])
def test_epsilon_of_a_tiny_distance(mu: float, share: float) -> None:
    """theta(eps, mu) = mu (phi(x) - x Q(x)) at eps = x mu, up to a relative mu (1 + |x|), and log(1 - delta) far below 0."""
    delta = share * mu
    if delta == 0.0:
        return
    with mp.workdps(40):
        exact_mu, ratio = mp.mpf(mu), mp.mpf(delta) / mp.mpf(mu)
        scaled = lambda x: mp.npdf(x) - x * mp.erfc(x / mp.sqrt(2)) / 2 - ratio
        low, high = -ratio - 1, mp.mpf(9)
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if scaled(middle) > 0 else (low, middle)
        truth = float(exact_mu * high)
    computed, magnitude = hs.gaussian_epsilon(mu, delta), abs(truth)
    assert truth - 1e-12 * magnitude <= computed <= truth + 1e-12 * magnitude + 5e-324
    assert hs.gdp_epsilon(mu, delta) == max(computed, 0.0)


def test_tiny_distances_have_an_epsilon() -> None:
    """No call ends in an internal error; epsilon falls with delta and rises with mu."""
    tiny = np.array([5e-324, 1e-322, 1e-310, 2e-308, 1e-300, 1e-211, 1e-100])
    mu, delta = (grid.ravel() for grid in np.meshgrid(tiny, [*tiny, 1e-20, 1e-5, 0.5, 0.9, 1 - 1e-16]))
    eps = hs.gaussian_epsilon(mu, delta).reshape(-1, tiny.size)
    assert np.isfinite(eps).all()
    assert (np.diff(eps, axis=0) <= 0).all()
    assert (np.diff(eps, axis=1) >= -1e-12 * np.abs(eps[:, 1:])).all()


@pytest.mark.parametrize("unit", [5e-324, 1e-320, 1e-310, 1e-300])
def test_sampled_rounds_of_tiny_noise(unit: float) -> None:
    """Only ratios of lengths count, also where the mean of the noise of a batch is no normal number."""
    cell = {"num_users": 100, "batch_size": 4, "rounds": 3, "learning_rate": 0.5, "loss": "convex"}
    of_one = federated.best_sampled(1.0, noise_std=1.0, lipschitz=1.0, radius=2.0, **cell)
    of_tiny = federated.best_sampled(1.0, noise_std=unit, lipschitz=unit, radius=2.0 * unit, **cell)
    assert of_tiny.delta == pytest.approx(of_one.delta, rel=1e-9)
    for lengths in ({"lipschitz": 1e300, "radius": 1.0}, {"lipschitz": unit, "radius": 1e300}):
        wide = federated.best_sampled(1.0, noise_std=unit, **lengths, **cell)
        assert of_one.delta * (1 - 1e-9) <= wide.delta <= 1.0
    step = {"sampling_rate": 0.5, "rounds": 3, "learning_rate": 1.0, "smoothness": 0.0, "diameter": 1.0}
    assert last_iterate.best_sampled(1.0, noise_std=unit, lipschitz=1e300, **step).delta == pytest.approx(0.875)


def test_fedprox_scales() -> None:
    """Multiplying prox and smoothness and dividing the learning rate leaves V/(prox sigma)."""
    expected = federated.fedprox_gdp(**FEDPROX)
    scaled = FEDPROX | {"prox": 2e200, "smoothness": 1e200, "learning_rate": 1e-201, "clip_norm": 1e200}
    np.testing.assert_allclose(federated.fedprox_gdp(**scaled), expected, rtol=1e-13)


def test_projected_sgd_scales() -> None:
    """The diameter over the step's noise is finite where learning_rate times noise is not."""
    arguments = {"index": 1, "num_records": 2, "learning_rate": 1e154, "lipschitz": 1e155, "smoothness": 0.0}
    reach = mp.mpf(1.7e308) / (mp.mpf(1e154) * mp.mpf(1e155))
    expected = exact_theta(mp.mpf(0.01), mp.mpf(2)) * exact_theta(mp.mpf(0.01), reach)
    computed = last_iterate.pnsgd_gaussian(0.01, **arguments, noise_std=1e155, diameter=1.7e308)
    np.testing.assert_allclose(computed, float(expected), rtol=1e-12)
    expected = (1 - mp.exp((mp.mpf(0.01) - 2) / 2)) * (1 - mp.exp((mp.mpf(0.01) - reach) / 2))
    computed = last_iterate.pnsgd_laplace(0.01, **arguments, noise_scale=1e155, diameter=1.7e308)
    np.testing.assert_allclose(computed, float(expected), rtol=1e-12)


def test_rdp_with_a_tiny_kappa() -> None:
    """At eps of the order of a kappa that underflows, exp(-(eps - kappa)^2/(4 kappa)) is neither 0 nor 1."""
    arguments = {"index": 1, "num_records": 2, "learning_rate": 0.1, "noise_std": 1e200, "lipschitz": 1.0}
    kappa = 2 * mp.mpf(1e200) ** -2
    expected = mp.exp(-((mp.mpf(1e-200) - kappa) ** 2) / (4 * kappa))
    np.testing.assert_allclose(last_iterate.pnsgd_rdp(1e-200, **arguments, smoothness=1.0), float(expected), rtol=1e-12)


@pytest.mark.parametrize("convexity", [3.0, 20.921416088789627])
def test_cancelled_step_is_not_taken_for_perfect_contraction(convexity: float) -> None:
    """At learning_rate = 2/(beta + rho), beta = rho, M is 0 only up to rounding, which never makes delta 0."""
    noise = {"noise_std": 1e-8, "lipschitz": 1e-8, "diameter": 1.0}
    step = {"learning_rate": 1 / convexity, "smoothness": convexity, "strong_convexity": convexity}
    assert last_iterate.pnsgd_gaussian(0.5, index=1, num_records=2, **step, **noise) > 0


def test_a_positive_delta_is_never_zero() -> None:
    """Where delta underflows, the smallest double stands for it: 0 would claim pure differential privacy."""
    assert hs.gdp_delta(0.01, 1.0) == 5e-324
    assert federated.fedavg_delta(50.0, **(FEDAVG | {"noise_std": 100.0})) == 5e-324
    sgd = {"num_records": 4000, "learning_rate": 0.5, "lipschitz": 1.0, "smoothness": 0.5, "diameter": 1.0}
    assert last_iterate.pnsgd_gaussian(1.0, index=1, noise_std=2.0, **sgd) == 5e-324
    assert last_iterate.pnsgd_laplace(9.0, index=1, noise_scale=2.0, **sgd) == 0  # exactly


def subnormal_cases() -> list[tuple[str, float, mp.mpf]]:
    """Return (name, what is reported, truth) where the truth is subnormal; all are upper ends."""
    rng = np.random.default_rng(11)
    cases: list[tuple[str, float, mp.mpf]] = []
    for _ in range(60):
        mu, depth = rng.uniform(0.5, 2.0), rng.uniform(37.7, 38.5)
        eps = float(mu * (depth + mu / 2))
        truth = exact_theta(eps, mu)
        cases.append(("gdp_delta", hs.gdp_delta(mu, eps), truth))
        ledger = hs.Accountant().compose(hs.Gaussian(1 / mu))
        cases.append(("Accountant.delta", ledger.delta(eps), exact_theta(eps, 1 / mp.mpf(1 / mu))))
        once = {"num_records": 1, "learning_rate": 1.0, "smoothness": 1.0, "lipschitz": 1.0, "diameter": 1.0}
        noise = 2.0 / mu
        descent = last_iterate.pnsgd_gaussian(eps, index=1, noise_std=noise, strong_convexity=0.5, **once)
        cases.append(("pnsgd_gaussian", descent, exact_theta(eps, 2 / mp.mpf(noise))))
        clip, sigma = 5e-324 * int(rng.integers(1, 40)), rng.uniform(1.0, 9.0)
        fed = {"rounds": 3, "local_steps": 1, "num_clients": 2, "smoothness": 1.0, "learning_rate": 1.0}
        with mp.workdps(40):
            shift = 2 * mp.mpf(clip) / mp.mpf(sigma) * mp.sqrt(3) / mp.sqrt(2)
            found = federated.fedavg_gdp(clip_norm=clip, noise_std=sigma, **fed)
            cases.append(("fedavg_gdp", found, shift))
            wide, order = 10.0 ** rng.uniform(155.0, 170.0), float(rng.choice([1.0, 1.5, 3.0, 1000.0]))
            cases.append(("gdp_rdp", hs.gdp_rdp(1 / wide, order), mp.mpf(order) / 2 * mp.mpf(1 / wide) ** 2))
            rdp = hs.Accountant().compose(hs.Gaussian(wide), 7).rdp(order)
            cases.append(("rdp", rdp, 7 * mp.mpf(order) / 2 / mp.mpf(wide) ** 2))
            sampled = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(wide), 0.25)).rdp(2.0)
            # log(1 + q^2 (e^{1/s^2} - 1)), of which more than the first term is nothing
            cases.append(("rdp, sampled", sampled, mp.mpf("0.0625") / mp.mpf(wide) ** 2 * (1 - mp.mpf(10) ** -300)))
    return cases


def test_subnormal_bounds_are_rounded_up() -> None:
    """A relative margin moves no subnormal number: upper ends are rounded up there by other means, and none is 0."""
    # 1e-12 is the rounding that fedavg_gdp and pnsgd_gaussian state; a subnormal of a few units has no room for it.
    low = [
        (name, found, mp.nstr(truth, 8))
        for name, found, truth in subnormal_cases()
        if found < truth * (1 - mp.mpf("1e-12"))
    ]
    assert not low
    single = {"rounds": 1, "local_steps": 1, "num_clients": 1, "smoothness": 1.0, "learning_rate": 1.0}
    assert federated.fedavg_gdp(clip_norm=5e-324, noise_std=2 / 1.41, **single) == 1e-323  # of 6.97e-324


def outcome(name: str, given: dict[str, object], errors: str) -> str:
    """Return what a call answers, or the error that it ends with."""
    try:
        with np.errstate(all=errors):
            return repr(getattr(last_iterate, name)(**given))
    except (ArithmeticError, ValueError) as error:
        return repr(error)


@pytest.mark.parametrize("eps", [0.0, 5e-324, 40.0, 700.0, 1e200])
@pytest.mark.parametrize("name", sorted(set(last_iterate.__all__) - {"Best", "ShiftedInterpolation"}))
def test_the_callers_error_state_changes_nothing(name: str, eps: float) -> None:
    """Where NumPy is told to raise, bounds that underflow raise nothing: answers and refusals of the whole room stay."""
    given = refused_calls.example(last_iterate, name)
    changed = given | {key: np.full(np.shape(given[key]), eps).tolist() for key in ("epsilon", "order") if key in given}
    assert outcome(name, changed, "raise") == outcome(name, changed, "ignore")


@pytest.mark.share(4, by_day=2)
@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize(
    "call",
    [
        (
            "federated.fedavg_gdp(rounds=[10**6] * 200, local_steps=100, num_clients=1, clip_norm=1.0, noise_std=1.0, "
            "smoothness=1e3, learning_rate=1.0, schedule='continuous', diameter=1e-3, num_threads=1)"
        ),
        "hs.shifted_interpolation([1.001] * 10**7, [1.0] * 10**7, diameter=1e6)",
        "hs.gdp_epsilon([[1e-100]] * 2000, [1e-101] * 4000, num_threads=1)",  # by the scalar code: a microsecond each
        "hs.dpsgd_epsilon([0.5 + 1e-6 * k for k in range(10**6)], 0.001, 100, 1e-5, num_threads=1)",
    ],
)
def test_interrupt_ends_a_long_call(call: str) -> None:
    """Ctrl-C ends a long compiled call as KeyboardInterrupt, long before it is done."""
    code = (
        f"import hockeystick as hs\nfrom hockeystick import federated\nprint('go', flush=True)\n{call}\nprint('done')"
    )
    with processes.child([sys.executable, "-c", code]) as process:
        assert process.stdout.readline() == "go\n"
        time.sleep(0.7)  # into the compiled call
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=processes.seconds(60))
    assert "done" not in out
    assert "KeyboardInterrupt" in errors
