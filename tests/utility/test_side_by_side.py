"""One training by every analysis: each epsilon is judged by a formula or a function that the analysis does not use."""

import math
import warnings
from functools import partial

import numpy as np
import pytest

import hockeystick as hs
from high_precision import theta
from hockeystick import federated, isrl, last_iterate, published, utility
from hockeystick.utility import side_by_side

DELTA = 1e-6
COMMON = {
    "num_clients": 10, "num_records": 1000, "noise_std": 0.05, "lipschitz": 1.5, "smoothness": 1.0,
    "learning_rate": 0.5, "diameter": 0.04, "delta": DELTA,
}  # fmt: skip
LAST_MODELS = ("contraction", "nonlinear contraction", "shifted interpolation", "joint")


def alone(name: str, **setting: object) -> tuple[np.ndarray, str]:
    """Return epsilon by one analysis of a training and why there is none, without the others, which take longer."""
    defaults = {"clients_per_round": None, "batch_size": None, "local_steps": 1, "strong_convexity": 0.0}
    training = side_by_side.checked_training(defaults | {"order": "random", "index": 1} | setting)
    rounds = side_by_side.checked_rounds(setting["rounds"])
    others = {words[0]: curve for curve, words in side_by_side.OTHERS.items()} | {
        "composition": side_by_side.composition
    }
    if name in others:
        return side_by_side.applied(others[name], training, rounds)
    return {one.name: (one.epsilon, one.reason) for one in side_by_side.last_models_of(training, rounds)}[name]


def is_the_epsilon(epsilon: float, delta: object, slack: float = 2e-3) -> bool:
    """Tell whether delta is met at an epsilon, and no longer a little below it."""
    return delta(epsilon) <= DELTA * (1 + 1e-9) and delta(epsilon * (1 - slack)) > DELTA


@pytest.fixture(scope="module")
def full() -> utility.Analyses:
    """Analyse full batches in three rounds."""
    return utility.analyses(**COMMON, rounds=[1, 2, 3])


@pytest.fixture(scope="module")
def cyclic() -> utility.Analyses:
    """Analyse batches of a tenth of every client's records, in a fixed order."""
    return utility.analyses(**COMMON, rounds=[2, 3, 11, 15], batch_size=100, order="cyclic", index=3)


def test_composition_and_inter_silo_of_full_batches(full: utility.Analyses) -> None:
    """T Gaussian releases of the mean of ten noisy messages, or of one message."""
    for name, clients in (("composition", 10), ("inter-silo", 1)):
        for rounds, epsilon in zip(full.rounds, full[name].epsilon, strict=True):
            distance = 2 * 1.5 * math.sqrt(rounds / clients) / (1000 * 0.05)
            assert is_the_epsilon(epsilon, partial(theta, r=distance), 1e-6)


def test_fedavg(full: utility.Analyses) -> None:
    """On an unbounded domain 2 eta K V sqrt(T)/(sqrt(m) sigma eta); printed with (rho+1)/(rho-1) (rho^T-1)/(rho^T+1) for T."""
    found = utility.analyses(**COMMON | {"diameter": math.inf, "noise_std": 5.0}, rounds=[1, 2, 7], local_steps=3)
    for rounds, epsilon, printed in zip(
        found.rounds, found["shifted (FedAvg)"].epsilon, found["printed FedAvg"].epsilon, strict=True
    ):
        once = 2 * 3 * 1.5 / (math.sqrt(10) * 5.0)
        assert is_the_epsilon(epsilon, partial(theta, r=once * math.sqrt(rounds)), 1e-6)
        rho = 1.5**3
        shrunk = (rho + 1) / (rho - 1) * (rho**rounds - 1) / (rho**rounds + 1)
        assert is_the_epsilon(printed, partial(theta, r=once * math.sqrt(shrunk)), 1e-6)
        assert printed <= epsilon * (1 + 1e-9)
    assert "one local step" in found["joint"].reason
    assert "finite diameter" not in found["inter-silo"].reason
    assert full["shifted (FedAvg)"].epsilon[0] > 0


def test_a_record_of_a_fixed_order(cyclic: utility.Analyses) -> None:
    """It is used in rounds 3, 13, ...: no privacy is lost before, and each use is one Gaussian release."""
    for rounds, epsilon in zip(cyclic.rounds, cyclic["composition"].epsilon, strict=True):
        uses = len([r for r in range(1, rounds + 1) if r % 10 == 3])
        distance = 2 * 1.5 * math.sqrt(uses / 10) / (100 * 0.05)
        assert epsilon == 0.0 if not uses else is_the_epsilon(epsilon, partial(theta, r=distance), 1e-6)
    for name in LAST_MODELS:
        assert cyclic[name].epsilon[0] == 0.0
        unused, _ = alone(name, **COMMON, rounds=[1, 2], batch_size=100, order="cyclic", index=3)
        assert unused.tolist() == [0.0, 0.0]
    assert "order is fixed" in cyclic["trusted aggregator"].reason
    assert "order is fixed" in cyclic["shuffle"].reason


def test_bounds_of_the_last_model(cyclic: utility.Analyses) -> None:
    """After one use: theta(g) theta(r)^k by contraction, theta(g/sqrt(k + 1)) by shifts for steps that keep distances."""
    own = 2 * 1.5 / (100 * 10) / (0.05 / math.sqrt(10))
    for place, later in ((1, 0), (2, 8)):
        contraction = cyclic["contraction"].epsilon[place]
        reach = 0.04 / (0.5 * 0.05 / math.sqrt(10))  # c = max(|1 - eta beta|, |1 - eta mu|) = 1
        assert is_the_epsilon(contraction, lambda eps, k=later, r=reach: theta(eps, own) * theta(eps, r) ** k)
        shifted = cyclic["shifted interpolation"].epsilon[place]
        assert is_the_epsilon(shifted, lambda eps, k=later: theta(eps, own / math.sqrt(k + 1)))
        assert cyclic["nonlinear contraction"].epsilon[place] <= contraction * 1.002
        assert cyclic["joint"].epsilon[place] <= shifted * 1.002


def test_the_truth_is_below(cyclic: utility.Analyses) -> None:
    """Linear losses whose exact delta is known: at the epsilon of each bound of the last model it is at most delta."""
    share, noise = 1.5 / 1000, 0.05 / math.sqrt(10)
    for place, rounds in ((2, 11), (3, 15)):
        used = np.arange(1, rounds + 1) % 10 == 3
        for name in LAST_MODELS:
            losses = {"gradient_map": "linear", "learning_rate": 0.5, "noise_std": noise, "diameter": 0.04}
            losses |= {"record": np.where(used, share, 0.0), "neighbour": np.where(used, -share, 0.0)}
            lower = last_iterate.chain_delta(cyclic[name].epsilon[place], **losses).lower
            assert lower <= DELTA


@pytest.mark.slow
def test_batches_at_random() -> None:
    """Record sampling: composition by the noise of a mean of ten silos, inter-silo by that of one; the joint bound is below composition."""
    found = utility.analyses(**COMMON, rounds=[5, 30], batch_size=100)
    for name, noise in (("composition", 0.05 * math.sqrt(10)), ("inter-silo", 0.05)):
        for rounds, epsilon in zip((5, 30), found[name].epsilon, strict=True):
            silo = isrl.noisy_mb_sgd_accountant(
                noise_std=noise, lipschitz=1.5, num_records=1000, batch_size=100, rounds=rounds
            )
            assert epsilon == pytest.approx(silo.epsilon(DELTA), rel=1e-6)
    process = {"learning_rate": 0.5, "noise_std": 0.05 / math.sqrt(10), "lipschitz": 0.0015, "smoothness": 1.0}
    epsilon = found["joint"].epsilon[1]
    best = last_iterate.best_sampled(epsilon, sampling_rate=0.1, rounds=30, **process, diameter=0.04)
    assert best.bounds["joint"] <= DELTA
    assert "its rounds" not in found["joint"].reason
    assert "rounds are known" in found["contraction"].reason


DRAWN = COMMON | {"num_clients": 40_000, "num_records": 5, "noise_std": 8.0, "diameter": 0.3, "rounds": [1, 3, 6]}
DRAWN |= {"clients_per_round": 10_000}


@pytest.mark.slow
def test_clients_at_random() -> None:
    """A client's message changes by 2 L whatever its batch, and a client is what is protected."""
    drawn = utility.analyses(**DRAWN)
    assert {drawn[name].protects for name in ("composition", "joint", "trusted aggregator", "shuffle")} == {"client"}
    for rounds, epsilon in zip(drawn.rounds, drawn["composition"].epsilon, strict=True):
        step = hs.FixedSizeSampled(hs.Gaussian(8.0 * 100 / 1.5), 40_000, 10_000, replacement=False)
        assert epsilon == hs.Accountant("replace").compose(step, int(rounds)).epsilon(DELTA)
    process = {"learning_rate": 0.5, "noise_std": 8.0, "lipschitz": 1.5, "radius": 0.15, "loss": "convex"}
    for rounds, epsilon in zip(drawn.rounds, drawn["trusted aggregator"].epsilon, strict=True):
        assert is_the_epsilon(
            epsilon,
            lambda eps, n=int(rounds): (
                federated.best_sampled(
                    eps, num_users=40_000, batch_size=10_000, rounds=n, smoothness=1.0, **process
                ).delta
            ),
        )


def test_printed_aggregator() -> None:
    """m/n times the sum of theta(2L/(sqrt(m) sigma)) theta(2 rho sqrt(m)/(eta sigma))^k, up to the rounds of one pass."""
    own, reach = 2 * 1.5 / (100 * 8.0), 0.3 * 100 / (0.5 * 8.0)
    found, _ = alone("printed aggregator", **DRAWN)
    for rounds, epsilon in zip((1, 3), found, strict=False):

        def delta(eps: float, rounds: int = rounds) -> float:
            return 0.25 * sum(theta(eps, own) * theta(eps, reach) ** k for k in range(rounds))

        assert is_the_epsilon(epsilon, delta)
    assert np.isnan(found[2])


def test_shuffled_messages_reveal_more_than_their_mean() -> None:
    """The mean is computed from shuffled messages: its epsilon is smaller. Advanced composition of the rounds is larger."""
    found, means = (alone(name, **DRAWN)[0] for name in ("shuffle", "composition"))
    for rounds, epsilon, mean in zip(DRAWN["rounds"], found, means, strict=True):
        slack = DELTA / (4 * rounds * 0.25)
        message = slack / (2 * (math.e + 1) * 10_000)
        local = hs.gaussian_epsilon(2 * 1.5 / 8.0, message)
        one = isrl.shuffle_amplification(local, message, num_silos=10_000, slack=slack)
        q = isrl.subsampling_amplification(*one, 0.25)
        assert rounds * q.delta <= DELTA / 2
        assert mean <= epsilon <= rounds * q.epsilon * (1 + 1e-9)


def test_printed_inter_silo() -> None:
    """16 L sqrt(R ln(2.5 R/delta) ln(2/delta))/(n sigma), where epsilon and K are within the theorem."""
    found, _ = alone("printed inter-silo", **COMMON | {"noise_std": 1.0}, rounds=[1, 4])
    for rounds, epsilon in zip((1, 4), found, strict=True):
        root = math.sqrt(rounds * math.log(2.5 * rounds / DELTA) * math.log(2 / DELTA))
        assert epsilon == pytest.approx(16 * 1.5 * root / 1000, rel=1e-12)
    assert "K_min" in alone("printed inter-silo", **COMMON, rounds=[1, 9], batch_size=1)[1]


def test_most_clients_are_not_all() -> None:
    """Two of three clients a round are a sample, though no whole number of rounds makes a pass."""
    change = {"num_clients": 3, "noise_std": 50.0, "clients_per_round": 2, "diameter": math.inf}
    found = utility.analyses(**COMMON | change, rounds=[1])
    assert found["composition"].protects == "client"
    assert "rounds are known" in found["contraction"].reason


def test_no_warning_is_let_out(full: utility.Analyses) -> None:
    """Printed formulas say what is wrong in their status, not by a warning; called by themselves they warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        utility.analyses(**COMMON, rounds=[1])
    assert "false" in full["printed FedAvg"].status
    with pytest.warns(published.UnsoundBoundWarning):
        published.fedavg_gdp(
            rounds=2, local_steps=1, num_clients=2, clip_norm=1.0, noise_std=1.0, smoothness=1.0, learning_rate=1.0
        )


def test_table_and_json(full: utility.Analyses) -> None:
    """The table rounds up and tells the reasons; JSON has no NaN."""
    lines = str(full).splitlines()
    assert float(lines[3].split()[-1]) >= full["composition"].epsilon[-1]
    assert any(line.startswith("shuffle: does not apply: ") for line in lines)
    assert full.to_dict()["analyses"][-1]["printed"] is True
    assert None in next(one for one in full.to_dict()["analyses"] if one["name"] == "shuffle")["epsilon"]
    with pytest.raises(KeyError, match="name must be one of"):
        full["none"]


def test_rounds_of_one_number() -> None:
    """They are spaced by ratios, from the first to that one."""
    found = utility.analyses(**COMMON | {"diameter": math.inf}, rounds=40)
    assert (found.rounds[0], found.rounds[-1]) == (1, 40)
    assert (np.diff(found.rounds) > 0).all()
    assert "finite diameter" in found["trusted aggregator"].reason


def test_reasons_say_what_is_needed(cyclic: utility.Analyses) -> None:
    """A curve that is searched for in vain is above the limit of the search; one beyond its rounds says which they are."""
    little = COMMON | {"noise_std": 1e-7, "rounds": [5, 8]}
    assert alone("shifted interpolation", **little)[1] == "its epsilon is above 10000"
    reason = alone("printed aggregator", **little)[1]
    assert reason == "holds up to round 1, in which each client has taken part once"
    assert all(one.reason for one in cyclic.found if not one.applies)
    assert cyclic["shuffle"].reason == "needs clients drawn at random; here the order is fixed"
    assert cyclic["printed inter-silo"].reason == "needs batches drawn at random; here the order is fixed"
