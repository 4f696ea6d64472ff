"""From a federated deployment's own settings to its mechanism."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from hockeystick._checks import POSITIVE, choice, count_scalar, implausible, positive_scalar, scalar
from hockeystick.accounting.accountant import Accountant
from hockeystick.mechanisms import Dominating, FixedSizeSampled, Gaussian, PoissonSampled
from hockeystick.mechanisms.base import Adjacency, Mechanism

__all__ = ["FederatedParameters", "federated_parameters"]

NoiseOn: TypeAlias = Literal["sum", "mean", "client"]
Sampling: TypeAlias = Literal["poisson", "fixed_size", "all", "shuffled"]


class FederatedParameters(NamedTuple):
    """What a federated training releases, for an accountant.

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
    >>> training = hs.federated_parameters(
    ...     clients=3500, clients_per_round=50, rounds=700, clip_norm=0.5, noise_std=0.5, noise_on="sum", sampling="shuffled"
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
        assumes = (*self.assumptions, *((f"it is protected against {against}",) if against else ()))
        attained = self.mechanism if self.attained else None
        step = Dominating(self.mechanism, attained, assumes, unit=unit, adjacency=self.adjacency, grouped=True)
        return Accountant(self.adjacency).compose(step, self.steps)


def federated_parameters(
    *,
    clients: int,
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
    clients : int
        Number of clients, at least 1; public.
    clients_per_round : int
        Clients in a round, expected ones under Poisson sampling; in [1, clients].
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
        How a round's clients come about: each independently with probability clients_per_round/clients; a fresh uniform
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
    >>> training = hs.federated_parameters(
    ...     clients=100_000, clients_per_round=1000, rounds=500, clip_norm=1.0, noise_std=0.001, noise_on="mean", sampling="poisson"
    ... )
    >>> training.mechanism
    PoissonSampled(mechanism=Gaussian(noise_multiplier=1.0), sampling_rate=0.01)
    >>> print(hs.format_upper(training.accountant().epsilon(1e-6), ".2f"))
    1.59
    """
    clients = count_scalar("clients", clients)
    clients_per_round = count_scalar("clients_per_round", clients_per_round)
    if clients_per_round > clients:
        msg = f"clients_per_round must be at most clients ({clients}), not {clients_per_round}"
        raise ValueError(msg)
    rounds = count_scalar("rounds", rounds)
    clip_norm = positive_scalar("clip_norm", clip_norm)
    noise_std = positive_scalar("noise_std", noise_std)
    noise_on = choice("noise_on", noise_on, ("sum", "mean", "client"))
    sampling = choice("sampling", sampling, ("poisson", "fixed_size", "all", "shuffled"))
    if sampling == "all" and clients_per_round != clients:
        msg = f'clients_per_round must be clients ({clients}) with sampling="all", not {clients_per_round}'
        raise ValueError(msg)
    of_sum = noise_std * clients_per_round if noise_on == "mean" else noise_std
    noise = Gaussian(scalar("noise_std over clip_norm", of_sum / clip_norm, *POSITIVE))
    if noise_on == "mean":
        batch = ("clients_per_round", clients_per_round)
        implausible.warn(implausible.noise_of_mean(noise.noise_multiplier, noise_std, batch, clients))
    if noise_on == "client":
        return _local(noise, rounds)._replace(attained=sampling == "all")
    return _central(noise, clients, clients_per_round, rounds, sampling)


def _central(noise: Gaussian, clients: int, drawn: int, rounds: int, sampling: Sampling) -> FederatedParameters:
    """Return what a trusted server releases."""
    mechanism: Mechanism = noise
    adjacency: Adjacency = "add_or_remove"
    steps = rounds
    if sampling == "poisson":
        mechanism = PoissonSampled(noise, drawn / clients)
        how = f"in each round every client is drawn with probability {drawn / clients!r}, independently of all others and afresh"
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
    secret = (
        ("who takes part is secret, and no client that is drawn drops out because of its data",)
        if sampling in ("poisson", "fixed_size")
        else ()
    )
    unit = "one client with all its records, against who sees all models; the server is trusted"
    return FederatedParameters(
        mechanism,
        unit,
        adjacency,
        steps,
        (f"{rounds} rounds; {how}", *secret, *_SHARED, _ON_THE_SUM, _MEANING[adjacency]),
        attained=sampling != "shuffled",
    )


def _local(noise: Gaussian, rounds: int) -> FederatedParameters:
    """Return what each client releases to the server."""
    unit = "one client with all its records, against the server and who sees all models"
    return FederatedParameters(
        noise,
        unit,
        "replace",
        rounds,
        (
            f"a client sends at most one update in each of {rounds} rounds; the server sees it, and who takes part",
            *_SHARED,
            "each client adds its own noise after clipping; secure aggregation, if any, is not counted on",
            _MEANING["replace"],
        ),
    )


_SHARED = (
    "what a client sends in a round, after all its local steps, is clipped as one vector",
    "nothing else of its data is used: a clip norm or a stopping time that adapts to the data needs a budget of its own",
    "the noise is drawn afresh in every round, exactly, and is not known to whom it protects against",
)
_ON_THE_SUM = (
    "the sum of the clipped updates gets the noise once, of the deviation given whatever number of clients reports; a mean divides "
    "by the number planned, not by the number that came"
)
_MEANING = {
    "add_or_remove": "trainings are adjacent if one client is added or removed",
    "replace": "trainings are adjacent if one client's data are replaced; the number of clients is public",
}
