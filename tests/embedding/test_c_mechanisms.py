"""The mechanisms of the C library: each of Python's, with the same bits; none is forgotten, and none crashes."""

import ctypes
import math

import pytest

import compiled
import effort
import hockeystick as hs
import refused_calls
from compositions import composed
from hockeystick import mechanisms
from hockeystick.mechanisms.privacy_profile import ProfiledMechanism

pytestmark = compiled.needs_library
ADJACENCIES = ("add_or_remove", "replace")
GAUSSIAN, LAPLACE = hs.Gaussian(2.0), hs.Laplace(3.0)
PAIR = hs.Discrete([0.6, 0.3, 0.1], [0.3, 0.6, 0.1])
MIXED = hs.Composed([(GAUSSIAN, 1), (LAPLACE, 2)])


def vectors_of(mechanism):
    """Return the sensitivity and the dimension of a query of vectors."""
    return mechanism.sensitivity, math.inf if mechanism.dimension is None else mechanism.dimension


# class -> the constructor's name, and its arguments before `out`; a mechanism stands for its own handle
CONSTRUCTORS = {
    hs.ApproximateDP: lambda m: ("approximate_dp", m.epsilon, m.delta),
    # Beside a step that comes 0 times, and so is none.
    hs.Composed: lambda m: (
        "composed",
        [*(part for part, _ in m.steps), LAPLACE],
        [*(count for _, count in m.steps), 0],
        len(m.steps) + 1,
    ),
    hs.Discrete: lambda m: ("discrete", m.p, m.q, len(m.p)),
    hs.DiscreteGaussian: lambda m: ("discrete_gaussian", m.noise_std, m.sensitivity),
    hs.DiscreteGaussianVector: lambda m: ("discrete_gaussian_vector", m.noise_std, *vectors_of(m)),
    hs.DiscreteLaplace: lambda m: ("discrete_laplace", m.inverse_scale, m.sensitivity),
    hs.DiscretePairs: lambda m: (
        *("discrete_pairs", m.remove.p, m.remove.q, len(m.remove.p)),
        *(m.add.p, m.add.q, len(m.add.p)),
    ),
    hs.DistributedDiscreteGaussian: lambda m: (
        *("distributed_discrete_gaussian", m.noise_std, m.num_clients),
        *vectors_of(m),
    ),
    hs.ExponentialMechanism: lambda m: ("exponential", m.epsilon),
    hs.FixedSizeSampled: lambda m: (*("fixed_size_sampled", m.mechanism, m.num_records, m.batch_size), m.replacement),
    hs.Gaussian: lambda m: ("gaussian", m.noise_multiplier),
    hs.Laplace: lambda m: ("laplace", m.noise_multiplier),
    hs.MixtureOfGaussians: lambda m: (
        *("gaussian_mixture", m.noise_multiplier, m.sensitivities, m.probabilities),
        len(m.sensitivities),
    ),
    hs.PrivacyProfile: lambda m: ("privacy_profile", m.epsilons, m.remove, m.add, len(m.epsilons)),
    hs.PermuteAndFlip: lambda m: ("permute_and_flip", m.epsilon),
    hs.PoissonSampled: lambda m: ("poisson_sampled", m.mechanism, m.sampling_rate),
    hs.RandomAllocation: lambda m: (
        *(("random_allocation", GAUSSIAN.noise_multiplier) if m.mechanism == GAUSSIAN else ("allocated", m.mechanism)),
        *(m.steps, m.num_selected),
    ),
    hs.RandomizedResponse: lambda m: ("randomized_response", m.noise_probability, m.num_buckets),
    hs.Skellam: lambda m: ("skellam", m.noise_variance, *vectors_of(m)),
    hs.Shuffled: lambda m: ("shuffled", m.epsilon0, m.num_users, m.randomizer == "randomized_response"),
    hs.TruncatedPoissonSampled: lambda m: (
        *("truncated_poisson" + "_zeroed_out" * m.zeroed_out, m.mechanism.noise_multiplier, m.num_records),
        *(m.sampling_rate, m.max_batch_size),
    ),
}
EXAMPLES = [
    hs.ApproximateDP(0.3, 1e-4),
    MIXED,
    PAIR,
    hs.DiscreteGaussian(4.0, 2),
    hs.DiscreteLaplace(0.2, 3),
    hs.DiscretePairs(PAIR, hs.Discrete([0.5, 0.5], [0.6, 0.4])),
    hs.ExponentialMechanism(0.4),
    hs.FixedSizeSampled(GAUSSIAN, 50, 5, replacement=False),
    hs.FixedSizeSampled(GAUSSIAN, 50, 50, replacement=False),
    hs.FixedSizeSampled(GAUSSIAN, 50, 5, replacement=True),
    hs.FixedSizeSampled(LAPLACE, 50, 5, replacement=True),
    hs.FixedSizeSampled(MIXED, 50, 5, replacement=False),
    hs.FixedSizeSampled(hs.RandomizedResponse(0.5, 4), 100, 5, replacement=False),
    GAUSSIAN,
    LAPLACE,
    hs.MixtureOfGaussians(2.0, [0.0, 1.0, 2.0], [0.7, 0.2, 0.1]),
    hs.MixtureOfGaussians.of_group(1.5, 3, 0.05),
    hs.PermuteAndFlip(0.4),
    hs.PoissonSampled(GAUSSIAN, 0.1),
    hs.PoissonSampled(LAPLACE, 0.1),
    hs.PoissonSampled(PAIR, 0.1),
    hs.PoissonSampled(MIXED, 0.05),
    hs.FixedSizeSampled(hs.Composed([]), 50, 5, replacement=True),
    hs.RandomAllocation(hs.Composed([]), 9, 2),
    hs.PoissonSampled(hs.DiscreteLaplace(0.4), 0.2),
    hs.PoissonSampled(hs.PoissonSampled(LAPLACE, 0.3), 0.5),
    hs.PoissonSampled(hs.Composed([(GAUSSIAN, 3), (hs.Gaussian(5.0), 2)]), 0.02),
    hs.PoissonSampled(hs.TruncatedPoissonSampled(GAUSSIAN, 100, 0.05, 9), 0.5),
    hs.PoissonSampled(hs.PrivacyProfile([0.0, 0.5, 1.0], [0.3, 0.1, 0.0]), 0.1),
    hs.PrivacyProfile([0.0, 0.5, 1.0], [0.3, 0.1, 0.0]),
    hs.PrivacyProfile([0.0, 0.5, 2.0], [0.3, 0.2, 0.0], [0.3, 0.1, 0.01]),
    hs.PrivacyProfile([0.0], [0.25]),
    hs.PrivacyProfile.from_function(lambda eps: hs.theta(eps, 1.0), num_points=300),
    hs.RandomAllocation(GAUSSIAN, 20),
    hs.RandomAllocation(GAUSSIAN, 7, 3),
    hs.RandomAllocation(LAPLACE, 9, 2),
    hs.RandomizedResponse(0.6, 4),
    hs.Shuffled(1.0, 1000),
    hs.Shuffled(0.5, 200, "randomized_response"),
    hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9),
    hs.TruncatedPoissonSampled(hs.Gaussian(1.0), 100, 0.05, 9, zeroed_out=True),
]
ALONE = [  # not in the ledger of all below, whose epsilon they would make infinite
    hs.RandomAllocation(GAUSSIAN, 2),
    hs.RandomAllocation(hs.DiscreteLaplace(0.4), 5),
    hs.DiscreteGaussianVector(2.0, 2.0),
    hs.DiscreteGaussianVector(20.0, 3.0, 5),
    hs.DistributedDiscreteGaussian(1.0, 4, 2.0, 1),
    hs.DistributedDiscreteGaussian(6.0, 10, 3.0),
    hs.Skellam(30.0, 2.0, 1),
    hs.PoissonSampled(hs.Skellam(30.0, 2.0, 1), 0.1),
]


class Library:
    """The C library: makes mechanisms, and composes them."""

    def __init__(self):
        """Load it."""
        self.loaded = compiled.library()

    def make(self, name, *arguments):
        """Return a new handle from arguments of Python's types."""
        inner = []  # handles, which the new one copies

        def converted(value):
            if isinstance(value, mechanisms.Mechanism):
                inner.append(self.mechanism(value))
                return inner[-1]
            if isinstance(value, (list, tuple)) and value and isinstance(value[0], mechanisms.Mechanism):
                return (ctypes.c_void_p * len(value))(*[converted(part) for part in value])
            return value

        handle = ctypes.c_void_p()
        try:
            compiled.call(self.loaded, f"mechanism_{name}", *map(converted, arguments), ctypes.byref(handle))
        finally:
            for one in inner:
                self.loaded.hs_mechanism_free(one)
        return handle

    def mechanism(self, mechanism):
        """Return the handle of what a mechanism of Python is."""
        return self.make(*CONSTRUCTORS[type(mechanism)](mechanism))

    def brackets(self, steps, adjacency, eps, delta):
        """Return (delta, epsilon) of a ledger."""
        accountant = compiled.Accountant(self.loaded, ADJACENCIES.index(adjacency))
        for mechanism, count in steps:
            handle = self.mechanism(mechanism)
            try:
                accountant.compose("compose", handle, count)
            finally:
                self.loaded.hs_mechanism_free(handle)
        return accountant.ask("delta", eps) + accountant.ask("epsilon", delta)


@pytest.fixture(scope="module")
def library():
    """Return the library."""
    return Library()


def by_python(steps, adjacency, eps, delta):
    """Return (delta, epsilon) of a ledger."""
    accountant = composed(*steps, adjacency=adjacency)
    both = accountant.delta_bracket(eps), accountant.epsilon_bracket(delta)
    return [(bracket.lower, bracket.upper) for bracket in both]


def composable(mechanism, adjacency):
    """Say whether Python composes the mechanism under an adjacency."""
    try:
        hs.Accountant(adjacency).compose(mechanism)
    except ValueError:
        return False
    return True


def test_every_mechanism_has_an_example():
    """Every mechanism of the public list that has a pair has a constructor and an example here, but those of a profile; so has each constructor."""
    classes = {getattr(mechanisms, name) for name in mechanisms.__all__} - {mechanisms.Mechanism, mechanisms.Dominating}
    without = {hs.PrivateSelection, hs.RenyiDP, hs.ZeroConcentratedDP}  # of these, only Renyi divergences are known
    paired = {kind for kind in classes - without if not issubclass(kind, ProfiledMechanism)}
    assert paired - set(CONSTRUCTORS) == set()
    assert {type(example) for example in EXAMPLES + ALONE} == set(CONSTRUCTORS)
    made = [name.partition("hs_mechanism_")[2] for name in compiled.prototypes()]
    constructors = {name for name in made if name} - {"free"}
    assert {CONSTRUCTORS[type(example)](example)[0] for example in EXAMPLES + ALONE} == constructors


@pytest.mark.share(9, by_day=3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("mechanism", EXAMPLES + ALONE, ids=repr)
def test_same_bits(library, mechanism, adjacency):
    """A mechanism gives the bits of Python's, alone and beside Gaussian noise, or is refused as Python refuses it."""
    ledger = [(mechanism, 3), (hs.Gaussian(7.0), 2)]
    if not composable(mechanism, adjacency):
        with pytest.raises(ValueError, match="is not supported under HS_"):
            library.brackets(ledger, adjacency, 0.5, 1e-5)
        return
    for steps in (ledger[:1], ledger):
        assert library.brackets(steps, adjacency, 0.5, 1e-5) == by_python(steps, adjacency, 0.5, 1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:delta is at least")
def test_ledger_of_many(library):
    """All mechanisms of an adjacency in one ledger give the same bits; what they reveal together leaves a finite epsilon to a huge delta only."""
    for adjacency in ADJACENCIES[: effort.at_night(2, by_day=1)]:
        steps = [(mechanism, k + 1) for k, mechanism in enumerate(EXAMPLES) if composable(mechanism, adjacency)]
        assert len(steps) > 10
        for delta in (1e-4, 1 - 1e-10)[effort.at_night(0, by_day=1) :]:
            found = library.brackets(steps, adjacency, 50.0, delta)
            assert found == by_python(steps, adjacency, 50.0, delta)
        assert 0.0 < found[1][1] < math.inf


NAMES = {"hs": hs, "math": math, "ctypes": ctypes, "GAUSSIAN": GAUSSIAN}
REFUSED = r"""
make("gaussian", 5e-309) -> noise_multiplier must be above 2\^-1024
make("discrete_gaussian", 1e6, 1.0) -> noise_std must lie in \[0\.001, 100000\], not 1e\+06
make("discrete_gaussian", 1.0, 0.5) -> sensitivity must be an integer in \[1, 1000000000\], not 0\.5
make("discrete_laplace", 1.0, 1e5) -> sensitivity must be an integer in \[1, 10000\], not 1e\+05
make("discrete_laplace", 100.25, 4.0) -> inverse_scale times sensitivity must be at most 300, not 401
make("discrete_gaussian_vector", 1.0, 0.5, 2.0) -> sensitivity must lie in \[1, 1000000000\], not 0\.5
make("skellam", 0.0, 1.0, 1.0) -> noise_variance must lie in \[1e-6, 1e12\], not 0
make("randomized_response", 0.5, 1.0) -> num_buckets must be an integer of at least 2, not 1
make("discrete", [0.5, 0.6], [0.5, 0.5], 2) -> p must sum to 1 within 1e-12, not 1\.1
make("discrete", [0.5, 0.5], [math.nan, 0.5], 2) -> q must hold probabilities, not nan
make("privacy_profile", [0.1, 0.2], [0.3, 0.2], None, 2) -> epsilons must increase from 0 to at most 600, not 0\.1
make("privacy_profile", [0.0, math.nan], [0.3, 0.2], None, 2) -> increase from 0 to at most 600, not nan
make("privacy_profile", [0.0, 1.0], [0.3, math.nan], None, 2) -> remove\[1\] must lie in \[0, 1\], not nan
make("privacy_profile", [0.0, 1.0], [0.5, 0.25], [0.5, 0.75], 2) -> add must not rise with epsilon, not by 0\.25 from epsilon 0 to 1
make("privacy_profile", [0.0, 1.0], [0.3, 0.1], [0.2, 0.1], 2) -> add must begin with the total variation distance, as remove \(0\.3\), not with 0\.2
make("privacy_profile", [], [], None, 0) -> epsilons must not be empty
make("gaussian_mixture", 1.0, [0.0, 1e-10], [0.5, 0.5], 2) -> sensitivities must be 0 or in \[1e-9, 1e4\] noise mul
make("gaussian_mixture", 1.0, [0.0, 1.0], [0.5, 0.6], 2) -> probabilities must sum to 1 within 1e-12, not 1\.1
make("gaussian_mixture", 1.0, [], [], 0) -> sensitivities and probabilities must have the same length, not 0
make("random_allocation", 0.1, 10.0, 1.0) -> noise_multiplier of a random allocation must lie in \[0\.25, 1000\]
make("random_allocation", 1.0, 10.0, 11.0) -> num_selected must be an integer in \[1, steps\], not 11
make("shuffled", 21.0, 10.0, 0) -> epsilon0 must lie in \(0, 20\], not 21
make("shuffled", 1.0, 10.0, 2) -> randomizer must be HS_ANY_RANDOMIZER or HS_RANDOMIZED_RESPONSE
make("composed", [GAUSSIAN], [0.5], 1) -> counts must be an integer in \[0, 2\^53\], not 0\.5
make("poisson_sampled", hs.FixedSizeSampled(GAUSSIAN, 10, 2, replacement=False), 0.1) -> mechanism must not need a fixed number of records
make("fixed_size_sampled", GAUSSIAN, 10.0, 11.0, 0) -> batch_size must be at most num_records
make("fixed_size_sampled", GAUSSIAN, 10.0, 2.0, 2) -> replacement must be 0 or 1, not 2
make("fixed_size_sampled", hs.Shuffled(1.0, 20), 100.0, 10.0, 0) -> batch_size must be at least the num_users
"""


@pytest.mark.parametrize(("call", "reason"), refused_calls.rows(REFUSED))
def test_refused_parameters(library, call, reason):
    """A parameter outside its domain is refused at construction, by name, with its value."""
    refused_calls.check(call, reason, NAMES | {"make": library.make})


def test_null(library):
    """NULL is refused by name where a function needs something, and freed as nothing."""
    assert library.loaded.hs_mechanism_free(None) is None
    handle, accountant = library.mechanism(GAUSSIAN), compiled.Accountant(library.loaded)
    out = ctypes.byref(handle)
    for message, name, *arguments in (
        ("out must not be NULL", "mechanism_gaussian", 1.0, None),
        ("accountant must not be NULL", "accountant_compose", None, handle, 1.0),
        ("mechanism must not be NULL", "accountant_compose", accountant.pointer, None, 1.0),
        ("mechanism must not be NULL", "mechanism_poisson_sampled", None, 1.0, out),
        ("mechanism must not be NULL", "mechanism_fixed_size_sampled", None, 1.0, 1.0, 0, out),
        ("p must not be NULL", "mechanism_discrete", None, None, 2, out),
        ("remove must not be NULL", "mechanism_privacy_profile", [0.0, 1.0], None, None, 2, out),
        ("sensitivities must not", "mechanism_gaussian_mixture", 1.0, None, None, 2, out),
        ("mechanisms must not be NULL", "mechanism_composed", None, [1.0, 1.0], 2, out),
    ):
        before = handle.value
        with pytest.raises(ValueError, match=message):
            compiled.call(library.loaded, name, *arguments)
        assert handle.value == before
    library.loaded.hs_mechanism_free(handle)


def test_refused_composition_leaves_the_ledger(library):
    """What is refused is not composed, at either end."""
    accountant = compiled.Accountant(library.loaded)
    response = library.mechanism(hs.RandomizedResponse(0.5, 3))
    with pytest.raises(ValueError, match=r"randomized_response is not supported under HS_ADD_OR_REMOVE: a response"):
        accountant.compose("compose", response, 1.0)
    many = library.mechanism(hs.Composed([(GAUSSIAN, 2**50)]))
    with pytest.raises(ValueError, match=r"count in all must be an integer in \[0, 2\^53\]"):
        accountant.compose("compose", many, 2.0**10)
    assert accountant.ask("epsilon", 1e-5) == [(0.0, 0.0)]
    for handle in (response, many):
        library.loaded.hs_mechanism_free(handle)
