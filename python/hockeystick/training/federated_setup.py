"""From a federated deployment's own settings to its mechanism, with a trusted server or with secure aggregation."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

from hockeystick._checks import POSITIVE, choice, interval, scalar, setting_warnings
from hockeystick._checks.arguments import scalars
from hockeystick._numeric.rounding import UP
from hockeystick._statements import SENTENCES, say, say_all
from hockeystick.accounting.accountant import Accountant
from hockeystick.mechanisms import (
    DistributedDiscreteGaussian,
    Dominating,
    FixedSizeSampled,
    Gaussian,
    PoissonSampled,
    Skellam,
)
from hockeystick.mechanisms.base import ADJACENCIES, ALSO_CALLED, Adjacency, Mechanism
from hockeystick.mechanisms.integer_noise import SIGMA

__all__ = ["FederatedParameters", "federated_parameters", "secure_aggregation_parameters"]

NoiseOn: TypeAlias = Literal["sum", "mean", "client"]
Sampling: TypeAlias = Literal["poisson", "fixed_size", "all", "shuffled"]


class FederatedParameters(NamedTuple):
    """The mechanism, the number of releases and the assumptions of a federated training.

    Attributes
    ----------
    mechanism : Mechanism
        What each step releases.
    privacy_unit : str
        Whose data may differ between adjacent trainings, and against whom that is protected.
    adjacency : str
        For the accountant.
    steps : int
        How often the mechanism is composed.
    assumptions : tuple of str
        What must be true of the training for these to describe it.
    attained : bool
        Whether the training may leak all that the mechanism does; otherwise it leaks at most that.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.training.federated_parameters(
    ...     num_clients=3500, clients_per_round=50, rounds=700, clip_norm=0.5, noise_std=0.5, noise_on="sum", sampling="shuffled"
    ... )
    >>> training.mechanism, training.adjacency, training.steps
    (Gaussian(noise_multiplier=1.0), 'replace', 10)
    """

    mechanism: Mechanism
    privacy_unit: str
    adjacency: Adjacency
    steps: int
    assumptions: tuple[str, ...]
    attained: bool = True

    def accountant(self) -> Accountant:
        """Return an accountant with all steps composed, which knows the unit and the assumptions."""
        unit, _, against = self.privacy_unit.partition(", against ")
        assumes = (*self.assumptions, *((say("clients_protected", against=against),) if against else ()))
        attained = self.mechanism if self.attained else None
        step = Dominating(self.mechanism, attained, assumes, unit=unit, adjacency=self.adjacency, grouped=True)
        return Accountant(self.adjacency).compose(step, self.steps)


def federated_parameters(
    *,
    num_clients: int,
    clients_per_round: int,
    rounds: int,
    clip_norm: float,
    noise_std: float,
    noise_on: NoiseOn,
    sampling: Sampling,
) -> FederatedParameters:
    """Return the mechanism of a federated training, and what it assumes.

    Parameters
    ----------
    num_clients : int
        Number of clients, at least 1; public.
    clients_per_round : int
        Clients in a round, expected ones under Poisson sampling; in [1, num_clients].
    rounds : int
        Number of rounds, at least 1.
    clip_norm : float
        Largest Euclidean norm of what one client sends in a round, positive and finite.
    noise_std : float
        Standard deviation of the Gaussian noise in every coordinate, positive and finite.
    noise_on : {"sum", "mean", "client"}
        What the noise is added to, once: the sum of the clipped updates; their sum over `clients_per_round`; or by each client
        to its own update, which the server sees.
    sampling : {"poisson", "fixed_size", "all", "shuffled"}
        How a round's clients come about: each independently with probability clients_per_round/num_clients; a fresh uniform
        subset of that size; everyone; or the next `clients_per_round` in a shuffled order, reshuffled after each pass.

    Returns
    -------
    FederatedParameters
        A tuple (mechanism, privacy_unit, adjacency, steps, assumptions, attained).

    Raises
    ------
    ValueError
        If an argument is outside its domain, or with sampling="all" not every client is in a round.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    Poisson samples are accounted for under add-or-remove adjacency, fixed-size ones under replacement: the number of
    clients is then public.

    Shuffled clients are no Poisson sample, and no amplification is claimed for them. Within a pass a client is in one
    round at most: given the order, the other rounds' releases are computed from earlier ones and others' data, and
    the pass is one Gaussian mechanism; over orders, delta is convex. A step is a pass, and a pass that has begun counts whole.
    Adjacency is replacement: a client more or fewer would move the others.

    Noise by each client protects its update, whether sampled or not, from a server that sees who takes part: no
    amplification, and replacement as adjacency. It is counted as if the client were in every round; `ClientLedgers` charges
    the rounds in which it was.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.training.federated_parameters(
    ...     num_clients=100_000, clients_per_round=1000, rounds=500, clip_norm=1.0, noise_std=0.001, noise_on="mean", sampling="poisson"
    ... )
    >>> training.mechanism
    PoissonSampled(mechanism=Gaussian(noise_multiplier=1.0), sampling_rate=0.01)
    >>> print(hs.format_upper(training.accountant().epsilon(1e-6), ".2f"))
    1.59
    """
    pairs = (("clients_per_round", "num_clients"),)
    num_clients, clients_per_round, rounds, clip_norm, noise_std = scalars(locals(), pairs)
    noise_on = choice("noise_on", noise_on, ("sum", "mean", "client"))
    sampling = choice("sampling", sampling, ("poisson", "fixed_size", "all", "shuffled"))
    if sampling == "all" and clients_per_round != num_clients:
        raise ValueError(
            f'clients_per_round must be num_clients ({num_clients}) with sampling="all", not {clients_per_round}'
        )
    of_sum = noise_std * clients_per_round if noise_on == "mean" else noise_std
    noise = Gaussian(scalar("noise_std over clip_norm", of_sum / clip_norm, *POSITIVE))
    if noise_on == "mean":
        batch = ("clients_per_round", clients_per_round)
        setting_warnings.warn(setting_warnings.noise_of_mean(noise.noise_multiplier, noise_std, batch, num_clients))
    if noise_on == "client":
        return _local(noise, rounds)._replace(attained=sampling == "all")
    return _central(noise, num_clients, clients_per_round, rounds, sampling)


def _central(noise: Gaussian, clients: int, drawn: int, rounds: int, sampling: Sampling) -> FederatedParameters:
    """Return what a trusted server releases."""
    mechanism: Mechanism = noise
    adjacency: Adjacency = "add_or_remove"
    steps = rounds
    if sampling == "poisson":
        mechanism = PoissonSampled(noise, drawn / clients)
        how = say("clients_drawn", rate=drawn / clients)
    elif sampling == "fixed_size":
        mechanism, adjacency = FixedSizeSampled(noise, clients, drawn, replacement=False), "replace"
        how = f"in each round {drawn} of the {clients} clients are drawn uniformly, without replacement and afresh"
    elif sampling == "shuffled":
        steps, adjacency = -(-rounds // (clients // drawn)), "replace"
        how = (
            f"a client is in at most one of the {clients // drawn} rounds of a pass, and the order of the clients does not "
            "depend on their data; a step is a pass, without amplification"
        )
    else:
        how = "every client is in every round"
    secret = (say("clients_secret"),) if sampling in ("poisson", "fixed_size") else ()
    unit = f"{say('clients_unit')}, against {say('clients_against')}"
    shared = (*say_all("clients_shared"), say("clients_noise"), SENTENCES["clients_adjacent"][adjacency])
    words = (f"{rounds} rounds; {how}", *secret, *shared)
    return FederatedParameters(mechanism, unit, adjacency, steps, words, attained=sampling != "shuffled")


def _local(noise: Gaussian, rounds: int) -> FederatedParameters:
    """Return what each client releases to the server."""
    unit = f"{say('clients_unit')}, against the server and who sees all models"
    words = (
        f"a client sends at most one update in each of {rounds} rounds; the server sees it, and who takes part",
        *say_all("clients_shared"),
        "each client adds its own noise after clipping; secure aggregation, if any, is not counted on",
        SENTENCES["clients_adjacent"]["replace"],
    )
    return FederatedParameters(noise, unit, "replace", rounds, words)


Noise: TypeAlias = Literal["discrete_gaussian", "skellam"]
Rounding: TypeAlias = Literal["conditional", "random", "nearest"]


def secure_aggregation_parameters(
    *,
    num_clients: int,
    dropouts: int,
    rounds: int,
    dimension: int,
    clip_norm: float,
    client_noise_std: float,
    granularity: float,
    bits: int,
    noise: Noise = "discrete_gaussian",
    rounding: Rounding = "conditional",
    beta: float = math.exp(-0.5),
    adjacency: Adjacency = "add_or_remove",
) -> FederatedParameters:
    r"""Return the mechanism of rounds of secure aggregation in which each client adds noise of its own, and what it assumes.

    A client clips its update, divides it by the granularity, rounds it to integers, adds noise on the integers, and sends the result modulo 2^bits.
    The server sees the sum modulo 2^bits, and nothing else.

    Parameters
    ----------
    num_clients : int
        Clients whose updates are asked for in a round, at least 1.
    dropouts : int
        How many of them may fail to send, or be in league with the server and tell it their noise, in any round; in [0, num_clients - 1]. The
        noise of the others is all that protects; a round with fewer must be thrown away unseen.
    rounds : int
        Number of rounds, at least 1. A client may be in all of them.
    dimension : int
        Number of coordinates of an update, after rotation and padding; at least 1.
    clip_norm : float
        Largest Euclidean norm of an update before rounding, positive and finite.
    client_noise_std : float
        Scale of the noise that each client adds to each coordinate, in the units of the update; positive and finite. For the discrete Gaussian sigma
        times the granularity, for Skellam noise its standard deviation.
    granularity : float
        What the integer 1 stands for, positive and finite.
    bits : int
        Sums are taken modulo 2^bits; in [1, 64], and so many that the noise of all clients fits twice.
    noise : {"discrete_gaussian", "skellam"}
        Which noise on the integers.
    rounding : {"conditional", "random", "nearest"}
        Up or down at random, unbiased, and again until the norm is at most a limit (Kairouz, Liu and Steinke 2021); the same but once; or to the nearest
        integer.
    beta : float
        For the limit of conditional rounding, in (0, 1): a round of coins exceeds it with a smaller probability than this.
    adjacency : {"add_or_remove", "replace"}
        One client's update is set to zero, or is replaced. In either case the client sends its noise.

    Returns
    -------
    FederatedParameters
        A tuple (mechanism, privacy_unit, adjacency, steps, assumptions, attained). `mechanism.sensitivity` is the largest norm of the integers that a
        client sends, which it must enforce.

    Raises
    ------
    ValueError
        If an argument is outside its domain.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    The integers have at most the norm, with c the clip norm over the granularity and d the dimension,
    :math:`\min(\sqrt{c^2 + d/4 + \sqrt{2\log(1/\beta)}(c + \sqrt{d}/2)}, c + \sqrt{d})` if rounding is conditional (Kairouz, Liu and
    Steinke 2021, Theorem 1), :math:`c + \sqrt{d}` if it is random, as each coordinate moves by less than 1, and
    :math:`c + \sqrt{d}/2` if it is to the nearest integer. The guarantee needs only that the norm is enforced; that the coins seldom
    exceed it matters to accuracy and time.

    The sum modulo 2^bits is computed from the sum, and so are averages, rotations and models: they leak no more. Who takes part is seen by the server,
    so that no amplification by sampling is claimed.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.training.secure_aggregation_parameters(
    ...     num_clients=1000, dropouts=100, rounds=20, dimension=2**16, clip_norm=1.0, client_noise_std=0.1, granularity=0.002, bits=20
    ... )
    >>> print(training.mechanism.num_clients, hs.format_upper(training.accountant().epsilon(1e-6), ".2f"))
    900 8.06
    """
    num_clients, dropouts, rounds, dimension, clip_norm, client_noise_std, granularity, bits, beta = scalars(
        locals(), beta="inside"
    )
    if dropouts >= num_clients:
        raise ValueError(f"dropouts must be at most num_clients - 1 ({num_clients - 1}), not {dropouts}")
    noise = choice("noise", noise, ("discrete_gaussian", "skellam"))
    rounding = choice("rounding", rounding, ("conditional", "random", "nearest"))
    adjacency = choice("adjacency", adjacency, ADJACENCIES, ALSO_CALLED)
    scale = client_noise_std / granularity
    _require_room(bits, math.sqrt(num_clients) * scale)
    norm = scalar(
        "clip_norm over granularity, rounded,",
        rounded_norm(clip_norm / granularity, dimension, rounding, beta),
        *interval("[1, 1e9]"),
    )
    mechanism = _mechanism(noise, scale, num_clients - dropouts, norm, dimension)
    shown = f"{rounds} rounds, in each of which the server sees only the sum over clients modulo 2^{bits} (secure aggregation), and who takes part"
    words = (shown, *_assumptions(num_clients, dropouts, norm, adjacency))
    unit = "one client's update in every round, against the server, which sees sums and who takes part, and who is in league with it"
    return FederatedParameters(mechanism, unit, adjacency, rounds, words)


def rounded_norm(norm: float, dimension: int, rounding: Rounding, beta: float) -> float:
    """Return the largest norm after rounding to integers, of a vector of this norm."""
    root = math.sqrt(dimension)
    always = (norm + (0.5 if rounding == "nearest" else 1.0) * root) * UP
    if rounding != "conditional":
        return always
    spread = math.sqrt(-2.0 * math.log(beta)) * (norm + 0.5 * root)
    return min(math.sqrt(norm * norm + 0.25 * dimension + spread) * UP, always)


def _mechanism(
    noise: Noise, scale: float, honest: int, norm: float, dimension: int
) -> DistributedDiscreteGaussian | Skellam:
    if noise == "skellam":
        variance = scalar(
            "(client_noise_std over granularity)^2, of all clients,",
            honest * scale * scale / UP,
            *interval("[1e-6, 1e12]"),
        )
        return Skellam(variance, norm, dimension)
    sigma = scalar("client_noise_std over granularity", scale / UP, *SIGMA)
    return DistributedDiscreteGaussian(sigma, honest, norm, dimension)


def _require_room(bits: int, deviation: float) -> None:
    """Refuse a modulus that the noise alone wraps around."""
    if math.isinf(deviation):
        raise ValueError("client_noise_std over granularity must be finite")
    if bits > 64 or 2.0**bits < 4.0 * deviation:
        least = max(1, math.ceil(math.log2(4.0 * deviation)))
        raise ValueError(
            f"bits must lie in [{least}, 64], as the noise of all clients has the deviation {deviation:.4g}, not be {bits}"
        )


def _assumptions(clients: int, dropouts: int, norm: float, adjacency: Adjacency) -> tuple[str, ...]:
    changed = "set to zero" if adjacency == "add_or_remove" else "replaced"
    return (
        f"of {clients} clients {dropouts} at most drop out or are in league with the server; a round with fewer than {clients - dropouts} others is thrown away unseen",
        f"what a client sends in a round, after all its local steps, is clipped, and its integers have a norm of at most {norm:.12g}",
        "each client adds noise on the integers to each coordinate, exactly and afresh in every round, before it reduces modulo 2^bits",
        "rotations and signs are public or the server's; clip norm, granularity and stopping do not adapt to the data without a budget",
        f"trainings are adjacent if one client's updates are {changed}; it sends its noise all the same",
    )
