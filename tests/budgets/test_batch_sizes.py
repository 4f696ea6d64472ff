"""Sizes of batches: the test that holds them against the sampler, its level and what it notices."""

import numpy as np
import pytest
from scipy import stats

import hockeystick as hs
from hockeystick.budgets.batch_sizes import BatchSizes, alike_bet, excess_bets, largest_log_probability

POISSON = hs.PoissonSampled(hs.Gaussian(1.0), 0.01)


def poisson_binomial(probabilities):
    """Return the law of the number of successes of independent trials with these probabilities."""
    law = np.ones(1)
    for p in probabilities:
        law = np.convolve(law, [1.0 - p, p])
    return law


@pytest.mark.parametrize("rate", [1e-3, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("num_clients", [1, 2, 7, 40, 300])
def test_bets_are_fair_to_clients_who_differ(num_clients, rate):
    """Whatever the earlier sizes, with any rate up to the one charged and availabilities of all kinds, the expectation of every bet is at most 1, and no size is likelier than the most that is assumed."""
    rng, sizes = np.random.default_rng(2), range(num_clients + 1)
    ceiling = np.exp([largest_log_probability(num_clients, rate, size) for size in sizes])
    corners = [stats.binom.pmf(sizes, able, rate) for able in range(num_clients + 1)]
    assert ceiling == pytest.approx(np.max(corners, axis=0), rel=1e-9)  # it is reached
    excess = np.array([excess_bets(num_clients, rate, size) for size in sizes])
    drawn = [
        rng.choice([0.0, 1.0], num_clients, p=[0.4, 0.6]) * rng.beta(rng.uniform(0.1, 3), 0.3, num_clients)
        for _ in range(20)
    ]
    for present in [*np.outer([1.0, 0.9, 0.3, 1e-6], np.ones(num_clients)), *drawn]:
        law = poisson_binomial(rate * present)
        assert np.all(law <= ceiling * (1 + 1e-9) + 1e-300)
        assert np.all(law @ excess <= 1 + 1e-9)
        for share in (np.eye(num_clients + 1)[law.argmax()], rng.dirichlet(np.full(num_clients + 1, 0.1)), law):
            assert law @ [alike_bet(share[size], num_clients, rate, size) for size in sizes] <= 1 + 1e-9


def first_refusal(mechanism, sizes, num_clients=1000):
    """Return after how many sizes the test is lost, None if it is not; a mechanism may depend on the round."""
    logged = BatchSizes()
    for number, size in enumerate(sizes, 1):
        step = mechanism(number) if callable(mechanism) else mechanism
        if logged.improbable(step, num_clients, size):
            return number
        logged = logged.after(step, num_clients, size)
    return None


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("dropouts", "mechanism"),
    [
        (0.0, POISSON),
        (0.3, POISSON),
        (0.0, hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 1000, 0.01, 12)),
        (0.1, hs.TruncatedPoissonSampled(hs.Gaussian(2.0), 1000, 0.05, 12)),
        (0.0, hs.PoissonSampled(hs.PoissonSampled(hs.Gaussian(1.0), 0.1), 0.1)),
    ],
)
def test_what_is_sampled_as_charged_passes(dropouts, mechanism):
    """Thousands of rounds drawn as the mechanism says are never refused, nor where some who were drawn drop out."""
    rng = np.random.default_rng(2)
    sizes = [len(hs.draw_participants(mechanism, range(1000), rng)) for _ in range(3000)]
    kept = rng.binomial(sizes, 1.0 - dropouts * rng.random(3000))
    assert first_refusal(mechanism, kept.tolist()) is None


@pytest.mark.share(5)
@pytest.mark.parametrize("run", range(15))
def test_clients_of_different_availability_pass(run):
    """Clients of whom some are always there, some never, and some by turns of their own are sampled for 2,000 rounds and not refused."""
    rng = np.random.default_rng([7, run])
    num_clients, rate = [(10, 0.9), (100, 0.9), (40, 0.5), (300, 0.05)][run % 4]
    kinds = [np.repeat([0.0, 1.0], num_clients // 2), rng.random(num_clients), rng.beta(0.1, 0.1, num_clients)]
    present = np.resize(kinds[run % 3], num_clients)
    sizes = (rng.random((2000, num_clients)) < rate * present).sum(axis=1).tolist()
    assert first_refusal(hs.PoissonSampled(hs.Gaussian(50.0), rate), sizes, num_clients) is None


CHEATS = {  # sizes, and after how many rounds at most they are noticed
    "a fixed size": ([10] * 50, 16),  # as docs/accounting/budgets.md says
    "a cyclic order": (([10] * 100) * 2, 20),
    "with a shorter last batch": (([30] * 33 + [10]) * 10, 20),
    "short cycles": (([3, 3, 1] * 100), 120),
    "one client in each round": ([1] * 200, 37),
    "a higher rate": (np.random.default_rng(3).binomial(1000, 0.02, 200).tolist(), 25),
    "everyone who is charged": ([1000], 1),
    "a fixed size late": ([*np.random.default_rng(4).binomial(1000, 0.01, 5000).tolist(), *[10] * 100], 5045),
}


@pytest.mark.parametrize("reason", CHEATS)
def test_another_sampler_is_noticed(reason):
    """Batches that come about otherwise than they are charged are refused after some rounds."""
    sizes, rounds = CHEATS[reason]
    found = first_refusal(POISSON, sizes)
    assert found is not None
    assert found <= rounds
    assert found > len(sizes) - 100 if "late" in reason else True


@pytest.mark.parametrize("batches", ["fixed size", "cyclic order", "drawn alone"])
def test_ledgers_refuse_another_sampler(batches, tmp_path):
    """What was charged as a Poisson sample and is none is refused, also where the ledgers are opened anew for every round."""
    rng, path = np.random.default_rng(5), tmp_path / "budget.sqlite"
    charged = 0
    with hs.ClientLedgers(path, epsilon=50.0, delta=1e-6, create=True) as ledgers:
        ledgers.enrol(range(1000))
    with pytest.raises(ValueError, match="as where batches have a fixed size"):  # noqa: PT012 - which round it is, is not known
        for number in range(1, 51):
            drawn = (
                rng.choice(1000, 10, replace=False)
                if batches != "cyclic order"
                else range(number * 10, number * 10 + 10)
            )
            everyone = drawn if batches == "drawn alone" else None
            with hs.ClientLedgers(path, epsilon=50.0, delta=1e-6) as ledgers:
                ledgers.charge(number, POISSON, clients=everyone, participants=drawn)
                charged += 1
    assert charged == 0 if batches == "drawn alone" else 5 < charged < 20


def test_drawn_of_some_clients():
    """Of clients whose budget is not spent samples may be drawn, if they are logged beside those who could have been drawn."""
    step = hs.PoissonSampled(hs.Gaussian(1.0), 0.2)
    rng = np.random.default_rng(6)
    with hs.ClientLedgers(":memory:", epsilon=6.0, delta=1e-6) as ledgers:
        ledgers.enrol(range(100))
        ledgers.charge(1, hs.Gaussian(1.2), clients=range(30))  # most of their budget
        number = 1
        while (able := ledgers.eligible(step)) and number < 60:
            number += 1
            ledgers.charge(number, step, clients=able, participants=hs.draw_participants(step, able, rng))
        assert len(ledgers.log(0)) < len(ledgers.log(99))
        allocated = hs.RandomAllocation(hs.Gaussian(9.0), 10)
        ledgers.charge(number, allocated, clients=[97, 99], participants=[97, 99])  # all take part in an epoch


def test_nobody_is_drawn_at_rate_zero():
    """Where nobody is ever drawn, participants are refused at once, and having none is not."""
    never = hs.PoissonSampled(hs.Gaussian(1.0), 0.0)
    with hs.ClientLedgers(":memory:", epsilon=6.0, delta=1e-6) as ledgers:
        ledgers.enrol(range(3))
        ledgers.charge(1, never, participants=[])
        with pytest.raises(ValueError, match="which 1 of 3"):
            ledgers.charge(1, never, participants=[1])


def test_noise_that_changes_hides_nothing():
    """Batches of a fixed size are noticed too where the noise decays from round to round."""
    found = first_refusal(lambda step: hs.PoissonSampled(hs.Gaussian(5.0 + 0.01 * step), 0.01), [100] * 100, 10_000)
    assert 5 < found < 30
