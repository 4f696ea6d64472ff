"""A training in its author's words: records, batches, epochs, and how batches are made."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hockeystick.cli import arguments, correlated
from hockeystick.training.dpsgd_setup import KNOWN, Batches, rate_of, steps_of

if TYPE_CHECKING:
    from hockeystick.accounting.brackets import Bracket
    from hockeystick.training.federated_setup import FederatedParameters

MEANT = "one record is added or removed"
MEANT_OF = {
    "none": MEANT,
    "poisson": MEANT,
    "shuffled": "one record is taken out, its place staying empty",
    "fixed": "one record is replaced",
    "correlated": "one record is taken out, its place staying empty",
}
CLIENT = "one client with all its records"
OF_CLIENTS = ("num_clients", "clients_per_round", "rounds")


def settle(chosen: argparse.Namespace, *, needs_steps: bool = True) -> None:
    """Refuse what contradicts itself, and set the rate and the steps that records, batches and epochs give."""
    if correlated.is_asked(chosen):
        correlated.settle(chosen)
        return
    if any(getattr(chosen, name, None) is not None for name in OF_CLIENTS):
        _settle_clients(chosen, needs_steps)
        return
    _agree(chosen)
    if chosen.num_records is not None:
        if chosen.batch_size > chosen.num_records:
            most = f"at most the number of records ({chosen.num_records})"
            chosen.refuse(f"argument --batch-size: must be {most}, not {chosen.batch_size}")
        chosen.sampling_rate = rate_of(chosen.num_records, chosen.batch_size, drop_last=chosen.drop_last)
        if chosen.epochs is not None:
            chosen.steps = steps_of(chosen.epochs, chosen.num_records, chosen.batch_size, drop_last=chosen.drop_last)
        chosen.sampling = chosen.sampling or "poisson"
    if needs_steps and chosen.steps is None:
        chosen.refuse("the following arguments are required: --steps, or --epochs with --num-records and --batch-size")


def _settle_clients(chosen: argparse.Namespace, needs_rounds: bool) -> None:
    """Do the same for clients that are drawn for every round: what a step is for records, a round is for whole clients."""
    arguments.refuse(
        chosen,
        ("num_records", "batch_size", "epochs", "steps", "sampling_rate", "drop_last", "certificate"),
        "not allowed for clients",
    )
    arguments.require(chosen, OF_CLIENTS if needs_rounds else OF_CLIENTS[:2])
    if chosen.clients_per_round > chosen.num_clients:
        most = f"at most the number of clients ({chosen.num_clients})"
        chosen.refuse(f"argument --clients-per-round: must be {most}, not {chosen.clients_per_round}")
    chosen.sampling = chosen.sampling or "poisson"
    if chosen.sampling not in ("poisson", "fixed"):
        chosen.refuse(f"argument --sampling: must be poisson or fixed for clients, not {chosen.sampling}")
    chosen.sampling_rate, chosen.steps = chosen.clients_per_round / chosen.num_clients, chosen.rounds


def federation(chosen: argparse.Namespace) -> FederatedParameters:
    """Return what rounds with some of the clients release."""
    from hockeystick.training import federated_parameters  # noqa: PLC0415 - imports are paid for when needed

    return federated_parameters(
        num_clients=chosen.num_clients,
        clients_per_round=chosen.clients_per_round,
        rounds=chosen.steps,
        clip_norm=1.0,
        noise_std=chosen.noise_multiplier,
        noise_on="sum",
        sampling="poisson" if chosen.sampling == "poisson" else "fixed_size",
    )


def meant(chosen: argparse.Namespace, kind: str) -> str:
    """Return how adjacent data sets differ."""
    clients = getattr(chosen, "clients_per_round", None) is not None
    return MEANT_OF[kind].replace("one record", CLIENT) if clients else MEANT_OF[kind]


def _agree(chosen: argparse.Namespace) -> None:
    known = chosen.num_records is not None
    if known != (chosen.batch_size is not None):
        missing = "--batch-size" if known else "--num-records"
        chosen.refuse(
            f"argument {missing}: required, since --num-records and --batch-size together give the sampling rate"
        )
    if chosen.steps is not None:
        arguments.refuse(chosen, ["epochs"], "not allowed with --steps; give one of them")
    if known:
        arguments.refuse(chosen, ["sampling_rate"], "not allowed with --num-records and --batch-size, which give it")
    else:
        needed = "needs --num-records and --batch-size, which say"
        arguments.refuse(chosen, ["drop_last"], f"{needed} what is dropped")
        arguments.refuse(chosen, ["epochs"], f"{needed} how many steps an epoch has")
    if chosen.sampling is not None and not known and (chosen.sampling != "poisson" or chosen.sampling_rate is None):
        rate = " or --sampling-rate" if chosen.sampling == "poisson" else ""
        chosen.refuse(f"argument --sampling: {chosen.sampling} needs --num-records and --batch-size{rate}")


def kind(chosen: argparse.Namespace) -> str:
    """Return how batches are made, "none" where everybody is in every step, "correlated" where noise is."""
    if correlated.is_asked(chosen):
        return "correlated"
    return chosen.sampling or ("none" if chosen.sampling_rate is None else "poisson")


def kinds(chosen: argparse.Namespace) -> tuple[str, ...]:
    """Return how batches may be made."""
    return KNOWN if chosen.sampling == "unknown" else (kind(chosen),)


def brackets(chosen: argparse.Namespace, asked: str, at: float) -> dict[str, Bracket]:
    """Return both ends of "epsilon" at a delta, or of "delta" at an epsilon, under each sampling that is possible."""
    return {sampling: _bracket(chosen, asked, at, sampling) for sampling in kinds(chosen)}


def worst(found: dict[str, Bracket]) -> tuple[str, Bracket]:
    """Return the sampling with the largest upper end, with the least lower end of all."""
    name = max(found, key=lambda each: found[each].upper)
    return name, found[name]._replace(lower=min(bracket.lower for bracket in found.values()))


def _bracket(chosen: argparse.Namespace, asked: str, at: float, sampling: str) -> Bracket:
    from hockeystick.accounting.brackets import Bracket  # noqa: PLC0415 - imports are paid for when needed

    if asked == "epsilon" and at == 1.0:
        return Bracket(0.0, 0.0, "delta is 1", "certified")
    if chosen.num_records is not None:
        return batches(chosen).epsilon(sampling, at) if asked == "epsilon" else batches(chosen).delta(sampling, at)
    found: Bracket = getattr(accountant(chosen, sampling), f"{asked}_bracket")(at)
    return found


def certify(chosen: argparse.Namespace, **at: Any) -> dict[str, str]:
    """Write the certificate that is asked for, of delta at an epsilon or epsilon at a delta; return what JSON says of it."""
    if chosen.certificate is None:
        arguments.refuse(chosen, ["slack"], "not allowed without --certificate")
        return {}
    from hockeystick.accounting.certificate import write  # noqa: PLC0415 - imports are paid for when needed

    slack = chosen.slack or 0.0
    if chosen.num_records is None:
        text = accountant(chosen, kind(chosen)).certificate(**at, slack=slack)
    else:
        text = batches(chosen).certificate(chosen.sampling, **at, slack=slack)
    write(chosen.certificate, text)
    return {"certificate": str(chosen.certificate)}


def accountant(chosen: argparse.Namespace, sampling: str) -> Any:
    """Return what the training leaks under a sampling."""
    if sampling == "correlated":
        return correlated.guarantee(chosen, chosen.noise_multiplier)
    from hockeystick.accounting.accountant import Accountant  # noqa: PLC0415 - imports are paid for when needed
    from hockeystick.mechanisms import Gaussian, PoissonSampled  # noqa: PLC0415

    if chosen.num_records is not None:
        return batches(chosen).accountant(sampling)
    if getattr(chosen, "clients_per_round", None) is not None:
        return federation(chosen).accountant()
    step = Gaussian(chosen.noise_multiplier)
    return Accountant().compose(
        step if sampling == "none" else PoissonSampled(step, chosen.sampling_rate), chosen.steps
    )


def batches(chosen: argparse.Namespace) -> Batches:
    """Return how batches are made; the noise may be what is asked for."""
    noise = chosen.noise_multiplier or 1.0
    return Batches(chosen.num_records, chosen.batch_size, chosen.steps, noise, drop_last=chosen.drop_last)
