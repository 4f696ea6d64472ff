"""The choice of an engine, what a forced one says, and the share of the width between dominating and attained pairs."""

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hockeystick as hs
import hockeystick._core as core
from compositions import MIXED, REPLACED, SAMPLED, composed

NO_CUMULANT = hs.PoissonSampled(hs.DiscreteGaussian(200.0, 100), 0.1)  # more outcomes than a contour takes
SAMPLED_OUTCOMES = hs.PoissonSampled(hs.Discrete([0.3, 0.7], [0.5, 0.5]), 0.1)


def test_forced_contour_without_answer():
    """An engine that has no answer raises at the query; left to choose, another one answers."""
    forced = composed((NO_CUMULANT, 2), engine="contour")
    with pytest.raises(ValueError, match="engine='contour' has no answer"):
        forced.epsilon(1e-5)
    assert composed((NO_CUMULANT, 2)).epsilon_bracket(1e-5).method.startswith("pld")


def test_contour_is_asked_first():
    """Left to choose, the answer is the contour's where that is narrow, and says what it is made of."""
    free = composed((SAMPLED, 2)).delta_bracket(0.5)
    forced = composed((SAMPLED, 2), engine="contour").delta_bracket(0.5)
    assert free.method.startswith("contour")
    assert free == forced
    shares = composed((SAMPLED, 2)).explain(epsilon=0.5).shares
    assert set(shares) == {"alias", "truncation", "rounding", "smoothing", "missing"}


@pytest.mark.parametrize(
    ("step", "steps"), [(SAMPLED, 2), (SAMPLED, 30), (SAMPLED, 1000), (SAMPLED_OUTCOMES, 2), (SAMPLED_OUTCOMES, 100)]
)
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
def test_choosing_is_no_worse_than_either_engine(step, steps, delta):
    """Left to choose, the upper end is at most that of either engine, up to the width that is good enough."""
    free = composed((step, steps)).epsilon_bracket(delta)
    for engine in ("contour", "pld"):
        forced = composed((step, steps), engine=engine).epsilon_bracket(delta)
        assert free.lower <= forced.upper
        assert forced.lower <= free.upper
        assert free.upper <= forced.upper * (1 + 1e-3)


def test_asking_again_gives_the_same():
    """What is kept between questions changes no answer: a warm accountant says what a cold one does."""
    warm = composed((SAMPLED, 100)).compose(hs.Laplace(20.0), 3)
    first = [warm.epsilon_bracket(delta) for delta in (1e-3, 1e-5, 1e-9)]
    again = [warm.epsilon_bracket(delta) for delta in (1e-9, 1e-5, 1e-3)][::-1]
    cold = [
        composed((SAMPLED, 100)).compose(hs.Laplace(20.0), 3).epsilon_bracket(delta) for delta in (1e-3, 1e-5, 1e-9)
    ]
    assert first == again == cold


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-17, 1e-9, 1e-4])
def test_epsilon_near_the_largest_loss(count, delta):
    """Of two outcomes of losses +-log 3, only the largest sum counts: delta = (3/4)^n (1 - e^{eps - n log 3})."""
    truth = mp.mpf(count) * mp.log(3) + mp.log1p(-mp.mpf(delta) / mp.mpf("0.75") ** count)
    bracket = composed((hs.Discrete([0.75, 0.25], [0.25, 0.75]), count)).epsilon_bracket(delta)
    assert bracket.lower <= truth <= bracket.upper
    assert bracket.upper - bracket.lower < (1e-8 if delta < 1e-6 else 1e-3) * bracket.upper


@pytest.mark.parametrize("value", [0.5, 2.0])
def test_ends_keep_their_own_counts(value):
    """Where both ends compose the same pair, but not as often, neither is answered with the other one's count."""
    pair = core.poisson_sampled(core.gaussian(1.0), 0.01)

    def bracket(*counts):
        accountant = core.Accountant()
        for upper, count in zip((True, False), counts, strict=True):
            accountant.compose(pair, count, upper)
        (answer, *_) = accountant.answers(False, value, "auto", False)
        return answer.lower, answer.upper

    lower, upper = bracket(300, 100)
    assert lower == bracket(100, 100)[0]
    assert upper == bracket(300, 300)[1]


@pytest.mark.filterwarnings("ignore::hockeystick.ImplausibleSettingWarning")
@pytest.mark.parametrize(
    "cell",
    [
        (1.0, 0.01, 1, 1e-5),
        (1.0, 0.01, 1000, 1e-5),
        (0.6, 0.2, 17, 1e-9),
        (3.0, 1e-4, 10**6, 1e-12),
        (2.0, 1.0, 50, 1e-6),
    ],
)
def test_grids_and_accountants_are_one(cell):
    """`dpsgd_epsilon` and `dpsgd_delta` are the accountant's own upper ends, bit for bit."""
    noise, rate, steps, delta = cell
    accountant = hs.Accountant().compose(hs.PoissonSampled(hs.Gaussian(noise), rate), steps)
    epsilon = accountant.epsilon(delta)
    assert hs.dpsgd_epsilon(noise, rate, steps, delta) == epsilon
    assert hs.dpsgd_delta(noise, rate, steps, epsilon) == accountant.delta(epsilon)


def test_forced_losses_where_all_is_known():
    """Discretised losses always answer, also where one direction leaks all there is and the other is not asked for."""
    sampled = hs.PoissonSampled(hs.Discrete([0.1, 0.2, 0.7], [0.4, 0.3, 0.3]), 0.5)
    bracket = composed((sampled, 1000), engine="pld").delta_bracket(1.0)
    assert 0.999 < bracket.lower <= bracket.upper == 1.0
    assert bracket.method.startswith("pld")


@pytest.mark.share(2)
@pytest.mark.parametrize("steps", [2, 10])
def test_lower_ends_are_those_of_one_step_at_least(steps):
    """Who sees all releases can look at one of them: where a bracket is wide, its lower end is at least that of one step."""
    batches = hs.FixedSizeSampled(hs.Gaussian(0.43), 2143, 112, replacement=True)
    alone, all_steps = (composed((batches, count)) for count in (1, steps))
    found = all_steps.epsilon_bracket(7.5e-12)
    assert 377.0 < alone.epsilon_bracket(7.5e-12).lower <= found.lower <= found.upper
    assert all_steps.delta_bracket(380.0).lower >= alone.delta_bracket(380.0).lower


def truncated(largest):
    """Return a truncated sample, whose dominating pair is not attained."""
    return hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 1000, 0.01, largest)


@pytest.mark.parametrize(
    ("steps", "question", "apart"),
    [
        ([(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 1)], {"epsilon": 0.5}, False),
        ([(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), 30)], {"delta": 1e-6}, False),
        ([(hs.RandomAllocation(hs.Gaussian(2.0), 12), 30)], {"delta": 5e-3}, False),  # between tables of one law
        ([(hs.RandomAllocation(hs.Gaussian(2.0), 12, 3), 30)], {"delta": 5e-3}, True),  # which several are not
        ([(truncated(20), 100)], {"delta": 1e-5}, True),
        # What is revealed leaves it in place; of the second, the other direction has the lower end.
        ([(truncated(12), 3), (hs.ApproximateDP(0.1, 1e-3), 1)], {"epsilon": 0.5}, True),
        ([(truncated(12), 3), (hs.ApproximateDP(0.1, 1e-3), 1)], {"delta": 5e-3}, True),
    ],
    ids=str,
)
def test_only_pairs_that_differ_have_a_share(steps, question, apart):
    """The share is the width between the compositions of two pairs; where they are one law, all of the width is numerical."""
    explained = composed(*steps).explain(**question)
    width = (explained.bracket.upper - explained.bracket.lower) / explained.bracket.upper
    share = explained.shares.get("pairs", 0.0)
    assert (share > 0.0) == apart == ("pairs" in str(explained))
    assert share <= width < share + 3e-3


FAILING = hs.mechanisms.Dominating(hs.PoissonSampled(hs.Gaussian(1.0), 0.01), None, failure=1e-7)
# Pairs that are not attained, what is revealed, and what may fail.
MORE = [truncated(12), hs.ApproximateDP(0.1, 1e-3), FAILING]
MECHANISMS = {"add_or_remove": MIXED + MORE, "replace": REPLACED + MORE}
QUESTIONS = st.one_of(
    st.builds(lambda eps: {"epsilon": eps}, st.floats(0.0, 8.0)),
    st.builds(lambda log10_delta: {"delta": 10.0**log10_delta}, st.floats(-12.0, -1.5)),
)


@settings(max_examples=40)
@given(data=st.data(), adjacency=st.sampled_from(list(MECHANISMS)), question=QUESTIONS)
def test_shares_are_parts_of_the_width(data, adjacency, question):
    """No share of any explanation is larger than the width of the bracket, nor are all together, which a contour's and those of one step are where nothing may fail."""
    steps = st.tuples(st.sampled_from(MECHANISMS[adjacency]), st.sampled_from([1, 2, 3, 30]))
    ledger = data.draw(st.lists(steps, min_size=1, max_size=3))
    explained = composed(*ledger, adjacency=adjacency).explain(**question)
    lower, upper = explained.bracket[:2]
    width = (upper - lower) / upper if 0.0 < upper < math.inf else float(lower < upper)
    assert all(0.0 <= share <= width for share in explained.shares.values())
    total = math.fsum(explained.shares.values())
    assert total <= width * (1.0 + 1e-15)
    if explained.method.startswith(("contour", "formula of one step")) and FAILING not in dict(ledger):
        assert width <= total * (1.0 + 1e-2) + 1e-12


@pytest.mark.parametrize("question", [{"epsilon": 1.0}, {"delta": 1e-2}], ids=str)
def test_what_failure_leaves_unknown_is_not_called_rounding(question):
    """Where something may fail a formula is asked for its upper end alone: its distance to 0 is not its error."""
    step = hs.mechanisms.Dominating(hs.Gaussian(1.0), hs.Gaussian(1.1), failure=1e-6)
    assert "rounding" not in composed((step, 1)).explain(**question).shares
