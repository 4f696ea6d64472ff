"""Noisy-FedAvg and Noisy-FedProx: who takes part, who drops out, who counts how much, the exact proximal step; and what is certified of each."""

import math

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats
from scipy.special import ndtr

from hockeystick import simulate
from small_runs import SILOS, step_divisors

pytest.importorskip("numba")

import hockeystick as hs
from hockeystick import federated
from hockeystick.federated.released_models import AlikeRounds, FixedMean, PoissonMean, RemainingMean
from hockeystick.simulate import Cyclic, EveryRound, FixedSize, NoisyFedAvg, NoisyFedProx, Poisson, Shuffled

SETTINGS = {"learning_rate": 0.1, "local_steps": 5, "clip_norm": 1.0, "noise_std": 1.0}
MOVE = 2 * 0.1 * 5  # of a client's model, by one record, in deviations of its noise


def epsilon_of(algorithm, num_clients=100, records=1, rounds=200):
    """Return the certified epsilon at 1e-5 of clients with equally many records."""
    return algorithm.guarantee(idle(num_clients, records), rounds=rounds).epsilon(rounds, 1e-5)


def idle(num_clients=100, records=1):
    """Return linear losses of clients with equally many records."""
    return simulate.Problem("linear", np.zeros((num_clients * records, 2)), sizes=[records] * num_clients)


# Clients who are drawn, and who drop out


@pytest.mark.parametrize(
    ("settings", "records", "step", "uses"),
    [
        ({"clients": FixedSize(5)}, 1, hs.FixedSizeSampled(hs.Gaussian(2 / MOVE * math.sqrt(5)), 100, 5, replacement=False), 200),
        ({"clients": FixedSize(5), "records": FixedSize(4)}, 100, FixedMean(MOVE / math.sqrt(5), 0.05 * (1 - 0.96**5)), 200),
        ({"dropout": 0.1}, 1, RemainingMean(MOVE, 1.0, 100, 0.1), 200),
        ({"clients": FixedSize(5), "dropout": 0.1}, 1, RemainingMean(MOVE, 0.05, 5, 0.1), 200),
        ({"clients": Cyclic(5), "dropout": 0.1}, 1, RemainingMean(MOVE, 1.0, 5, 0.1), 10),
        ({"clients": Shuffled(5), "dropout": 0.1}, 1, RemainingMean(MOVE, 1.0, 5, 0.1), 10),
        ({"clients": Poisson(0.05), "dropout": 0.1}, 1, PoissonMean(MOVE, 0.045, 1.0, 100), 200),
    ],
    ids=str,
)  # fmt: skip
def test_rounds_are_pairs_of_their_samplers(settings, records, step, uses):
    """Two hundred rounds of a hundred clients, by composition; FedProx moves less, and fewer that are averaged hide less."""
    found = epsilon_of(NoisyFedAvg(**SETTINGS, **settings), records=records)
    assert found == pytest.approx(hs.Accountant("replace").compose(step, uses).epsilon(1e-5), rel=1e-6)
    assert epsilon_of(NoisyFedProx(**SETTINGS, **settings, prox=2.0), records=records) < found
    if "dropout" in settings and "clients" in settings and not isinstance(settings["clients"], Poisson):
        plain = epsilon_of(NoisyFedAvg(**SETTINGS, clients=settings["clients"]))
        assert plain < found
        assert found < 1.03 * plain or not isinstance(settings["clients"], FixedSize)  # amplification is kept


def test_records_of_a_client_are_drawn_too():
    """Draws with replacement use a record no more often than draws without; a shuffled order hides nothing."""
    epsilons = [
        epsilon_of(NoisyFedAvg(**SETTINGS, clients=FixedSize(5), records=records), records=100)
        for records in (FixedSize(4), simulate.WithReplacement(4), Shuffled(4), EveryRound())
    ]
    assert epsilons[1] < epsilons[0] * 1.01
    assert epsilons[2] == epsilons[3]


@pytest.mark.parametrize(
    ("clients", "schedule", "rounds", "shifts"),
    [
        *((clients, "constant", 200, [1.0] * 10) for clients in (Cyclic(5), Shuffled(5))),
        *((clients, "stagewise", 200, [1 / (20 * k + 1) for k in range(10)]) for clients in (Cyclic(5), Shuffled(5))),
        (Cyclic(30), "constant", 7, [1.0] * 3),  # 7 rounds of 30 of 100: three times for some
    ],
    ids=str,
)
def test_clients_in_turn_pay_for_their_rounds(clients, schedule, rounds, shifts):
    """In 200 rounds of five of a hundred a client takes part in ten; with steps that fall, in the first one of each pass at the earliest."""
    mu = math.sqrt(sum((MOVE / math.sqrt(clients.size) * shift) ** 2 for shift in shifts))
    found = epsilon_of(NoisyFedAvg(**SETTINGS, clients=clients, schedule=schedule), rounds=rounds)
    assert found == pytest.approx(hs.gdp_epsilon(mu, 1e-5), rel=1e-12)


@pytest.mark.parametrize("clients", [FixedSize(5), Poisson(0.05)], ids=repr)
def test_steps_that_fall_are_never_charged_too_little(clients):
    """Rounds are grouped by their steps, the longer one's counting: not below their exact sum, and 3 % above it at most."""
    found = epsilon_of(NoisyFedAvg(**SETTINGS, clients=clients, schedule="stagewise"), rounds=12)
    exact = hs.Accountant("replace")
    for t in range(12):
        poisson, fixed = PoissonMean(MOVE / (t + 1), 0.05, 1.0, 100), FixedMean(MOVE / (t + 1) / math.sqrt(5), 0.05)
        exact = exact.compose(poisson if isinstance(clients, Poisson) else fixed)
    assert exact.epsilon_bracket(1e-5).lower <= found <= exact.epsilon(1e-5) * 1.03


# The last model alone


def test_many_rounds_cost_no_more_than_some():
    """With a ball, epsilon of the last model stops growing; without one, or after one round, every model may be released."""
    problem = idle()
    within, anywhere = (NoisyFedAvg(**SETTINGS, clients=FixedSize(5), radius=radius) for radius in (1.0, math.inf))
    hidden, shown = (algorithm.guarantee(problem, rounds=4000) for algorithm in (within, anywhere))
    assert hidden.released == "the last model only"
    assert hidden.epsilon(4000, 1e-5) == pytest.approx(hidden.epsilon(2000, 1e-5), rel=1e-2)
    assert hidden.epsilon(4000, 1e-5) < 0.5 * shown.epsilon(4000, 1e-5)
    assert hidden.epsilon(1, 1e-5) == pytest.approx(shown.epsilon(1, 1e-5), rel=1e-9)


@pytest.mark.parametrize("clients", [EveryRound(), FixedSize(5)], ids=repr)
def test_bounds_of_the_last_model_alone_are_not_given_with_dropouts(clients):
    """Bounds of hidden states are for rounds whose noise is the same: with dropouts the last model has the bound of all of them."""
    algorithm = NoisyFedAvg(**SETTINGS, clients=clients, dropout=0.1, radius=0.1)
    last, every = (algorithm.guarantee(idle(), rounds=300, released=view) for view in ("last_model", "every_model"))
    assert last.epsilon(300, 1e-5) == every.epsilon(300, 1e-5)


def test_poisson_batches_are_not_as_smooth():
    """A Poisson batch may be larger than its divisor, so that its mean gradient's Lipschitz constant is not the records': no hidden states."""
    algorithm = NoisyFedAvg(**SETTINGS, schedule="stagewise", records=Poisson(0.3))
    assert algorithm.guarantee(SILOS, rounds=6).released == "the averaged model of every round"


@pytest.mark.parametrize(
    ("algorithm", "loss", "more"),
    [
        (NoisyFedProx, "linear", {"learning_rate": 0.5, "prox": 2.0}),  # their product is 1: the pull forgets where a step began
        (NoisyFedAvg, "least_squares", {}),  # the map's Lipschitz constant is beyond the doubles
        (NoisyFedAvg, "linear", {"noise_std": 1e-200}),  # the shift's square is
    ],
)  # fmt: skip
def test_extreme_settings_have_an_answer(algorithm, loss, more):
    """Settings at the ends of their domains are answered by the guarantee of every model, not by an overflow."""
    labels = np.zeros(10) if loss == "least_squares" else None
    problem = simulate.Problem(loss, np.zeros((10, 2)), labels, sizes=[1] * 10, feature_bound=10.0)
    made = algorithm(**(SETTINGS | {"local_steps": 300} | more), clients=FixedSize(2), radius=1.0)
    assert made.guarantee(problem, rounds=9).epsilon(9, 1e-5) > 0  # no NaN


def gdp_of_rounds(schedule, settings, prox):
    """Return epsilon of six FedProx rounds of four clients, each released: independent shifts of gamma_t."""
    kept = np.prod(1 - settings["learning_rate"] * prox / step_divisors(schedule, 6, 3), axis=1)
    shifts = 2 * settings["clip_norm"] / (4 * prox) * (1 - kept) * 2 / settings["noise_std"]
    return float(hs.gdp_epsilon(math.sqrt(float((shifts**2).sum())), 1e-5))


def test_all_clients_have_the_bounds_of_their_room():
    """With a public smoothness and all clients the guarantee is fedavg_gdp's or fedprox_gdp's; else rounds are composed."""
    settings = {"learning_rate": 0.1, "local_steps": 3, "clip_norm": 1.0, "noise_std": 0.3}
    shared = settings | {"rounds": 6, "num_clients": 4, "smoothness": 0.25}
    hidden = NoisyFedAvg(**settings, schedule="stagewise").guarantee(SILOS, rounds=6)
    assert hidden.epsilon(6, 1e-5) == federated.fedavg_epsilon(1e-5, **shared, schedule="stagewise")
    for schedule in ("constant", "cyclic", "stagewise", "continuous"):
        prox = NoisyFedProx(**settings, prox=2.0, schedule=schedule).guarantee(SILOS, rounds=6)
        composed = gdp_of_rounds(schedule, settings, prox=2.0)
        expected = min(federated.fedprox_epsilon(1e-5, **shared, prox=2.0, schedule=schedule), composed)
        assert prox.epsilon(6, 1e-5) == pytest.approx(expected, rel=1e-12)
    private = simulate.Problem("logistic", SILOS.features, SILOS.labels, SILOS.sizes)
    composed = NoisyFedAvg(**settings, schedule="stagewise").guarantee(private, rounds=6)
    mu = math.sqrt(sum((2 / 4 * 0.1 * 3 / (t + 1) * 2 / 0.3) ** 2 for t in range(6)))
    assert composed.epsilon(6, 1e-5) == pytest.approx(hs.gdp_epsilon(mu, 1e-5), rel=1e-12)
    assert composed.epsilon(6, 1e-5) >= hidden.epsilon(6, 1e-5)


# Who remains


def test_clients_drop_out_independently():
    """Gradients 1, 2, 4 and 8 tell who is in the mean: all 16 sets are as frequent as they must be."""
    problem = simulate.Problem("linear", np.eye(4), sizes=[1] * 4)
    algorithm = NoisyFedAvg(learning_rate=1.0, local_steps=1, clip_norm=9.0, dropout=0.3)
    remains = simulate.run(algorithm, problem, rounds=1, seed=1, num_runs=5000).last_iterates < 0
    counts = np.bincount(remains @ [1, 2, 4, 8], minlength=16)
    chances = [0.7 ** k.bit_count() * 0.3 ** (4 - k.bit_count()) for k in range(16)]
    assert stats.chisquare(counts, 5000 * np.array(chances)).pvalue > 1e-3


def test_without_anybody_the_model_stays():
    """The only client drops out in some rounds: the model takes as many steps as it is there, independently from round to round."""
    algorithm = NoisyFedAvg(learning_rate=1.0, local_steps=1, clip_norm=1.0, dropout=0.6)
    alone = simulate.Problem("linear", [[1.0]])
    result = simulate.run(algorithm, alone, rounds=10, seed=3, num_runs=4000, record_every=1)
    moved = -np.diff(result.models[:, :, 0], axis=0, prepend=0.0)
    assert set(np.unique(moved)) == {0.0, 1.0}
    counts = np.bincount(moved.sum(axis=0).astype(int), minlength=11)[:8]
    chances = stats.binom.pmf(np.arange(8), 10, 0.4)
    assert stats.chisquare(counts, counts.sum() * chances / chances.sum()).pvalue > 1e-3


# Weights

SHARES, SIZES = (0.1, 0.2, 0.5, 0.2), [1, 2, 5, 2]
WEIGHING = {"learning_rate": 0.1, "local_steps": 3, "clip_norm": 1.0, "noise_std": 0.4}
NOISE = 0.4 * math.sqrt(sum(p * p for p in SHARES))  # of the mean


def weighted():
    """Return linear losses of four silos."""
    return simulate.Problem("linear", np.zeros((10, 1)), sizes=SIZES, feature_bound=1.0)


def test_a_mean_is_weighted():
    """One noiseless round: the shares times the clients' moves; by records as by their shares, and equal weights are as before."""
    problem = simulate.Problem("linear", np.repeat(np.diag([1.0, -2.0, 4.0, 8.0]), SIZES, axis=0), sizes=SIZES)

    def moved(**more):
        algorithm = NoisyFedAvg(learning_rate=0.1, local_steps=3, clip_norm=math.inf, **more)
        return -simulate.run(algorithm, problem, rounds=1, seed=1).last_iterates[0]

    for weights in (SHARES, "records", (1e307, 2e307, 5e307, 2e307)):
        expected = 0.3 * np.array(SHARES) * [1.0, -2.0, 4.0, 8.0]
        np.testing.assert_allclose(moved(client_weights=weights), expected, rtol=1e-12)
    assert (moved(client_weights=(3.0, 3.0, 3.0, 3.0)) == moved()).all()


def test_the_heaviest_client_is_certified():
    """Linear losses attain it: all models leak as one Gaussian of the heaviest client's share over the noise of the mean."""
    largest = max(float(hs.gdp_epsilon(math.sqrt(7) * p * 0.6 / NOISE, 1e-5)) for p in SHARES)
    for weights in (SHARES, "records", (1e-300, 2e-300, 5e-300, 2e-300)):
        algorithm = NoisyFedAvg(**WEIGHING, client_weights=weights)
        found = algorithm.guarantee(weighted(), rounds=7, released="every_model").epsilon(7, 1e-5)
        assert largest <= found <= largest * (1 + 1e-9)
    equal = NoisyFedAvg(**WEIGHING).guarantee(weighted(), rounds=7, released="every_model")
    assert equal.epsilon(7, 1e-5) < largest


@pytest.mark.parametrize("radius", [math.inf, 0.05])
@pytest.mark.parametrize(("kind", "more"), [(NoisyFedAvg, {}), (NoisyFedProx, {"prox": 2.0})])
def test_equal_numbers_are_equal_weights(kind, more, radius):
    """A tuple of equal numbers has the guarantees of the default, in every view, with and without a ball."""
    made = [kind(**WEIGHING, radius=radius, client_weights=weights, **more) for weights in ("equal", (0.25,) * 4)]
    for view in ("messages", "every_model", "last_model"):
        one, other = (one.guarantee(weighted(), rounds=40, released=view).epsilon(40, 1e-5) for one in made)
        assert one == pytest.approx(other, rel=1e-9)


def test_the_noise_of_weighted_means_is_less():
    """Against the exact deviation in many digits: the weights' squares add up, from one dominant client to a thousand."""
    rng = np.random.default_rng(1)
    for size in (2, 40, 1000):
        weights = tuple(np.exp(2 * rng.standard_normal(size)).tolist())
        problem = simulate.Problem("linear", np.zeros((size, 1)), sizes=[1] * size)
        algorithm = NoisyFedAvg(**WEIGHING, client_weights=weights)
        found = algorithm.guarantee(problem, rounds=1, released="every_model").epsilon(1, 1e-5)
        with mp.workdps(40):
            exact = [mp.mpf(w) for w in weights]
            mu = max(exact) * 2 * mp.mpf(0.1) * 3 / (mp.mpf(0.4) * mp.sqrt(sum(w * w for w in exact)))
            delta = mp.ncdf(mu / 2 - found / mu) - mp.exp(found) * mp.ncdf(-mu / 2 - found / mu)
            assert mp.mpf(1e-5) * (1 - mp.mpf("1e-9")) <= delta <= mp.mpf(1e-5)  # at the epsilon that is certified


def test_records_that_are_sampled_count_the_worst_of_both():
    """The heaviest client's share with the largest probability that a record is used: above every client's own."""
    algorithm = NoisyFedAvg(**WEIGHING, client_weights="records", records=FixedSize(1))
    problem = simulate.Problem("linear", np.zeros((20, 1)), sizes=[4, 6, 10])
    found = algorithm.guarantee(problem, rounds=5, released="every_model").epsilon(5, 1e-5)
    deviation = 0.4 * math.sqrt(4**2 + 6**2 + 10**2)
    own = [(n * 0.6 / deviation, 1 - (1 - 1 / n) ** 3) for n in (4, 6, 10)]
    for shift, rate in own:
        assert hs.Accountant("replace").compose(FixedMean(shift, rate), 5).epsilon(1e-5) <= found
    worst = FixedMean(own[2][0], own[0][1])
    assert found == pytest.approx(hs.Accountant("replace").compose(worst, 5).epsilon(1e-5), rel=1e-6)


def last_law(move, radius, rounds, rate=1.0):
    """Return the law of a projected walk from 0, moved with a probability, on cells of the interval, the ends being cells of their own."""
    edges = np.linspace(-radius, radius, 402)
    places = np.concatenate([[-radius], (edges[1:] + edges[:-1]) / 2, [radius]])
    steps = [ndtr((edges - places[:, np.newaxis] - by) / NOISE) for by in (move, 0.0)]
    kernel = np.diff(rate * steps[0] + (1.0 - rate) * steps[1], axis=1, prepend=0.0, append=1.0)
    return np.linalg.matrix_power(kernel, rounds)[places.size // 2]


@pytest.mark.parametrize("radius", [0.1, 0.3, 3.0])
def test_no_walk_tells_more_by_its_last_model(radius):
    """Opposite gradients of the heaviest client's records, in one dimension: the law of the last model is below the bound of it alone."""
    algorithm = NoisyFedAvg(**WEIGHING, radius=radius, client_weights="records")
    for rounds in (1, 5, 40):
        bound = algorithm.guarantee(weighted(), rounds=rounds, released="last_model")
        one, two = (last_law(sign * 0.5 * 0.6 / 2, radius, rounds) for sign in (1, -1))
        for delta in (0.3, 1e-2, 1e-5):
            found = np.maximum(one - math.exp(bound.epsilon(rounds, delta)) * two, 0.0).sum()
            assert found <= delta * (1 + 1e-3)  # cells have a width


def test_hidden_states_count_the_heaviest_client():
    """The bound of the last model is that of one client whose moves and noise are those of the heaviest in the mean."""
    algorithm = NoisyFedAvg(**WEIGHING, radius=0.05, client_weights="records")
    found = algorithm.guarantee(weighted(), rounds=200, released="last_model").epsilon(200, 1e-5)
    moves = {"local_steps": 3, "learning_rate": 0.1, "clip_norm": 0.5, "noise_std": NOISE, "diameter": 0.1}
    mu = federated.fedavg_gdp(rounds=200, num_clients=1, smoothness=0.0, schedule="constant", **moves)
    alike = AlikeRounds(0.3 / NOISE, 1.0, 1.0, 0.1 / NOISE).guarantee()
    assert found == pytest.approx(alike.epsilon(200, 1e-5), rel=1e-9)
    assert found < float(hs.gdp_epsilon(mu, 1e-5))
    assert found < algorithm.guarantee(weighted(), rounds=200, released="every_model").epsilon(200, 1e-5) / 2


def test_fewer_rounds_leak_no_more_by_the_last_model():
    """Epsilon rises to that of any number of rounds, and a walk with random use is below it."""
    bound = AlikeRounds(0.45, 0.05, 1.0, 4.5).guarantee()
    few, some, many = (bound.epsilon(rounds, 1e-5) for rounds in (20, 90, 256))
    assert few < some < many == bound.epsilon(10**9, 1e-5) < 1.05 * some
    one, two = (last_law(sign * 0.225 * NOISE, 2.25 * NOISE, 90, rate=0.05) for sign in (1, -1))
    assert np.maximum(one - math.exp(0.1 * some) * two, 0.0).sum() > 0
    assert np.maximum(one - math.exp(some) * two, 0.0).sum() <= 1e-5


# Against plain NumPy, and against attacks

CASES = [
    (NoisyFedAvg, {"clients": FixedSize(4), "dropout": 0.35}),
    (NoisyFedAvg, {"client_weights": "records"}),
    (NoisyFedAvg, {"clients": EveryRound(), "dropout": 0.35}),
    (NoisyFedAvg, {"clients": Poisson(0.5), "dropout": 0.35}),
    (NoisyFedAvg, {"clients": Cyclic(2), "dropout": 0.35}),
    (NoisyFedProx, {"clients": FixedSize(4), "dropout": 0.35, "prox": 1.5}),
    (NoisyFedAvg, {"client_weights": (0.6, 0.1, 0.1, 0.1, 0.05, 0.05)}),
    (NoisyFedProx, {"client_weights": "records", "prox": 1.5}),
]


@pytest.mark.share(4)
@pytest.mark.parametrize(("kind", "settings"), CASES)
def test_models_are_those_of_numpy(kind, settings):
    """Means, covariances and laws of 20,000 runs of every sampler and weight: none differs significantly after correction."""
    rng, sizes = np.random.default_rng(4), [1, 2, 3, 5, 4, 3]
    problem = simulate.Problem("least_squares", rng.normal(size=(18, 2)), rng.normal(size=18) + 1.0, sizes=sizes)
    algorithm = kind(learning_rate=0.3, local_steps=3, clip_norm=0.8, noise_std=0.4, **settings)
    ours = simulate.run(algorithm, problem, rounds=5, seed=11, num_runs=20_000).last_iterates
    weights = {"equal": np.ones(6), "records": np.array(sizes, float)}.get(algorithm.client_weights)
    shares = np.array(algorithm.client_weights, float) if weights is None else weights
    theirs = trained(algorithm, problem, 5, 20_000, shares / shares.sum(), seed=12)
    assert least_p_value(ours, theirs) > 1e-3 / len(CASES)


# The exact proximal step

EXACT = {"learning_rate": 0.2, "local_steps": 5000, "clip_norm": 50.0, "prox": 1.3, "tolerance": 1e-12}


def test_least_squares_by_linear_equations():
    """Two clients, three rounds: each client's model solves a linear system, and the server averages them."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(9, 3)), rng.normal(size=9)
    w = np.zeros(3)
    for _ in range(3):
        models = []
        for part in (slice(0, 4), slice(4, 9)):
            a, b, n = x[part], y[part], len(y[part])
            models.append(np.linalg.solve(a.T @ a / n + 1.3 * np.eye(3), a.T @ b / n + 1.3 * w))
        w = np.mean(models, axis=0)
    result = simulate.run(NoisyFedProx(**EXACT), simulate.Problem("least_squares", x, y, [4, 5]), rounds=3, seed=1)
    np.testing.assert_allclose(result.models[-1, 0], w, rtol=1e-9)


def test_logistic_by_scipy():
    """One client's round is the minimum that SciPy finds."""
    problem = simulate.synthetic("logistic", sizes=[12], num_features=4, seed=2)

    def objective(w):
        scores = problem.features @ w
        return float((np.logaddexp(0, scores) - problem.labels * scores).mean() + 0.65 * w @ w)

    best = optimize.minimize(objective, np.zeros(4), tol=1e-12, options={"gtol": 1e-9}).x
    result = simulate.run(NoisyFedProx(**EXACT), problem, rounds=1, seed=1)
    np.testing.assert_allclose(result.models[-1, 0], best, atol=1e-6)


@pytest.mark.parametrize("loss", ["least_squares", "linear"])
def test_reach(loss):
    """No round moves a model by more than clip_norm/prox, whatever the gradients and the steps."""
    problem = simulate.Problem(loss, 100 * np.ones((3, 2)), None if loss == "linear" else 100 * np.ones(3))
    for rate in (1e-5, 0.2, 10.0):  # too few steps, enough for one loss, divergence
        settings = EXACT | {"clip_norm": 0.26, "learning_rate": rate, "local_steps": 50}
        models = simulate.run(NoisyFedProx(**settings), problem, rounds=4, seed=1, record_every=1).models[:, 0]
        assert np.all(np.linalg.norm(np.diff(models, axis=0), axis=1) <= 0.2 * (1 + 1e-12))


def test_guarantee_of_the_exact_step():
    """Each round is a Gaussian of shift 2V/(m prox) over sigma/sqrt(m), whatever the smoothness and the steps."""
    problem = simulate.synthetic("logistic", sizes=[3] * 4, num_features=2, seed=1)
    settings = EXACT | {"clip_norm": 0.5, "noise_std": 0.3, "learning_rate": 5.0}
    guarantee = NoisyFedProx(**settings).guarantee(problem, rounds=7)
    exact = hs.gdp_epsilon(2 * 0.5 / (4 * 1.3) * math.sqrt(4) / 0.3 * math.sqrt(7), 1e-5)
    assert exact * (1 - 1e-14) <= guarantee.epsilon(7, 1e-5) <= exact * (1 + 1e-12)
    assert guarantee.released == "the averaged model of every round"


@pytest.mark.parametrize(
    ("algorithm", "share"),
    [
        (NoisyFedAvg(**WEIGHING, schedule="stagewise"), 1 / 3),
        (NoisyFedAvg(**WEIGHING, client_weights=(0.6, 0.3, 0.1)), 0.6),
        (NoisyFedAvg(**WEIGHING, client_weights=(1.0, 1.0, 6.0)), 0.125),
        (NoisyFedProx(**(EXACT | {"clip_norm": 0.5})), 1 / 3),
    ],
    ids=str,
)
def test_linear_losses_attain_gamma(algorithm, share):
    """Opposite records at the clip norm move the mean by their client's share times gamma of one client, in every round; the gap is the sum."""
    problem = simulate.Problem("linear", [[3.0], [0.3], [0.1]], sizes=[1] * 3)
    gap = simulate.sensitivity(algorithm, problem, problem.replace_record(0, [-2.0]), rounds=5, seed=2)
    gamma = share * algorithm.data_sensitivity(5, 1)
    assert gap.data[:, 0] == pytest.approx(gamma, rel=1e-9)
    assert gap.total[:, 0] == pytest.approx(np.cumsum(gamma), rel=1e-9)
    if algorithm.client_weights == "equal":
        assert algorithm.data_sensitivity(5, 3) == pytest.approx(gamma, rel=1e-12)


# Noisy-FedAvg and Noisy-FedProx in plain NumPy, many runs at once, and a comparison of two samples of models.


Floats = NDArray[np.float64]


def draw(clients, num_clients, rnd, runs, rng):
    """Return who takes part in a round of each run."""
    if isinstance(clients, simulate.Poisson):
        return rng.random((runs, num_clients)) < clients.sampling_rate
    if isinstance(clients, simulate.FixedSize):
        return rng.random((runs, num_clients)).argsort(axis=1) < clients.size
    drawn = np.zeros((runs, num_clients), bool)
    if isinstance(clients, simulate.Cyclic):
        drawn[:, (rnd * clients.size + np.arange(clients.size)) % num_clients] = True
    else:
        assert isinstance(clients, simulate.EveryRound)
        drawn[:] = True
    return drawn


def local_models(algorithm, problem, start):
    """Return every client's model after its local steps of least squares on all its records, shape (runs, clients, 2)."""
    assert problem.loss == "least_squares"
    edges = np.cumsum(problem.sizes)[:-1]
    labels = np.split(np.asarray(problem.labels, float), edges)
    models = np.empty((len(start), problem.num_silos, start.shape[1]))
    for i, (x, y) in enumerate(zip(np.split(problem.features, edges), labels, strict=True)):
        w = start.copy()
        for _ in range(algorithm.local_steps):
            gradient = (w @ x.T - y) @ x / len(y)
            norm = np.linalg.norm(gradient, axis=1, keepdims=True)
            gradient *= np.minimum(1.0, algorithm.clip_norm / norm)
            w -= algorithm.learning_rate * (gradient + getattr(algorithm, "prox", 0.0) * (w - start))
        models[:, i] = w
    return models


def trained(algorithm, problem, rounds, runs, weights, seed):  # noqa: PLR0917
    """Return the last averaged models, shape (runs, 2): means over those drawn that do not drop out, by their weights."""
    rng = np.random.default_rng(seed)
    w = np.zeros((runs, 2))
    for rnd in range(rounds):
        models = local_models(algorithm, problem, w)
        models += algorithm.noise_std * rng.standard_normal(models.shape)
        stays = draw(algorithm.clients, problem.num_silos, rnd, runs, rng)
        stays &= rng.random(stays.shape) >= algorithm.dropout
        shares = stays * weights
        total = shares.sum(axis=1, keepdims=True)
        mean = np.einsum("ri,rij->rj", shares, models) / np.where(total > 0, total, 1.0)
        w = np.where(total > 0, mean, w)
    return w


def least_p_value(a, b):
    """Return the least p-value, times their number, of comparing means, (co)variances and laws of two samples of points in the plane."""
    middle = (a.mean(axis=0) + b.mean(axis=0)) / 2
    found = []
    for i, j in ((0, 0), (0, 1), (1, 1)):
        products = [(x[:, i] - middle[i]) * (x[:, j] - middle[j]) for x in (a, b)]
        found.append(stats.ttest_ind(*products, equal_var=False).pvalue)
    for of in (lambda x: x[:, 0], lambda x: x[:, 1], lambda x: x[:, 0] - x[:, 1], lambda x: np.linalg.norm(x, axis=1)):
        found += [stats.ttest_ind(of(a), of(b), equal_var=False).pvalue, stats.ks_2samp(of(a), of(b)).pvalue]
    return min(found) * len(found)
