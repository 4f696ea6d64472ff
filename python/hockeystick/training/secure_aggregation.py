"""From the settings of secure aggregation, with noise added by the clients, to its mechanism."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from hockeystick._checks import OPEN_PROBABILITY, choice, count_scalar, positive_scalar, scalar
from hockeystick._numeric.rounding import UP
from hockeystick.mechanisms import DistributedDiscreteGaussian, Skellam
from hockeystick.mechanisms.base import ADJACENCIES, ALSO_CALLED, Adjacency
from hockeystick.training.federated_parameters import FederatedParameters

__all__ = ["secure_aggregation_parameters"]

Noise: TypeAlias = Literal["discrete_gaussian", "skellam"]
Rounding: TypeAlias = Literal["conditional", "random", "nearest"]


def secure_aggregation_parameters(
    *,
    clients: int,
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
    clients : int
        Clients whose updates are asked for in a round, at least 1.
    dropouts : int
        How many of them may fail to send, or be in league with the server and tell it their noise, in any round; in [0, clients - 1]. The
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
    ...     clients=1000, dropouts=100, rounds=20, dimension=2**16, clip_norm=1.0, client_noise_std=0.1, granularity=0.002, bits=20
    ... )
    >>> print(training.mechanism.clients, hs.format_upper(training.accountant().epsilon(1e-6), ".2f"))
    900 8.06
    """
    clients = count_scalar("clients", clients)
    dropouts = count_scalar("dropouts", dropouts, 0)
    if dropouts >= clients:
        msg = f"dropouts must be at most clients - 1 ({clients - 1}), not {dropouts}"
        raise ValueError(msg)
    rounds = count_scalar("rounds", rounds)
    dimension = count_scalar("dimension", dimension)
    clip_norm = positive_scalar("clip_norm", clip_norm)
    client_noise_std = positive_scalar("client_noise_std", client_noise_std)
    granularity = positive_scalar("granularity", granularity)
    bits = count_scalar("bits", bits)
    noise = choice("noise", noise, ("discrete_gaussian", "skellam"))
    rounding = choice("rounding", rounding, ("conditional", "random", "nearest"))
    beta = scalar("beta", beta, *OPEN_PROBABILITY)
    adjacency = choice("adjacency", adjacency, ADJACENCIES, ALSO_CALLED)
    scale = client_noise_std / granularity
    _require_room(bits, math.sqrt(clients) * scale)
    norm = scalar("clip_norm over granularity, rounded,", rounded_norm(clip_norm / granularity, dimension, rounding, beta), lambda x: 1.0 <= x <= 1e9, "lie in [1, 1e9]")  # fmt: skip
    mechanism = _mechanism(noise, scale, clients - dropouts, norm, dimension)
    shown = f"{rounds} rounds, in each of which the server sees only the sum over clients modulo 2^{bits} (secure aggregation), and who takes part"
    words = (shown, *_assumptions(clients, dropouts, norm, adjacency))
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
        variance = scalar("(client_noise_std over granularity)^2, of all clients,", honest * scale * scale / UP, lambda x: 1e-6 <= x <= 1e12, "lie in [1e-6, 1e12]")  # fmt: skip
        return Skellam(variance, norm, dimension)
    sigma = scalar(
        "client_noise_std over granularity", scale / UP, lambda x: 1e-3 <= x <= 1e5, "lie in [0.001, 100000]"
    )
    return DistributedDiscreteGaussian(sigma, honest, norm, dimension)


def _require_room(bits: int, deviation: float) -> None:
    """Refuse a modulus that the noise alone wraps around."""
    if math.isinf(deviation):
        msg = "client_noise_std over granularity must be finite"
        raise ValueError(msg)
    if bits > 64 or 2.0**bits < 4.0 * deviation:
        least = max(1, math.ceil(math.log2(4.0 * deviation)))
        msg = f"bits must lie in [{least}, 64], as the noise of all clients has the deviation {deviation:.4g}, not be {bits}"
        raise ValueError(msg)


def _assumptions(clients: int, dropouts: int, norm: float, adjacency: Adjacency) -> tuple[str, ...]:
    changed = "set to zero" if adjacency == "add_or_remove" else "replaced"
    return (
        f"of {clients} clients {dropouts} at most drop out or are in league with the server; a round with fewer than {clients - dropouts} others is thrown away unseen",
        f"what a client sends in a round, after all its local steps, is clipped, and its integers have a norm of at most {norm:.12g}",
        "each client adds noise on the integers to each coordinate, exactly and afresh in every round, before it reduces modulo 2^bits",
        "rotations and signs are public or the server's; clip norm, granularity and stopping do not adapt to the data without a budget",
        f"trainings are adjacent if one client's updates are {changed}; it sends its noise all the same",
    )
