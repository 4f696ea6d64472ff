"""A training in its author's words: records, batches, epochs, and how batches are made."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from hockeystick.cli import arguments
from hockeystick.training.dpsgd_setup import KNOWN, SAMPLINGS, rate_of, steps_of

if TYPE_CHECKING:
    from hockeystick.accounting.accountant import Accountant
    from hockeystick.accounting.brackets import Bracket
    from hockeystick.training.dpsgd_setup import Batches

MEANT = "one record is added or removed"
MEANT_OF = {
    "none": MEANT,
    "poisson": MEANT,
    "shuffled": "one record is taken out, its place staying empty",
    "fixed": "one record is replaced",
}


class Asked(NamedTuple):
    """A number that is asked for: epsilon at this delta, or delta at this epsilon."""

    epsilon: bool
    at: float

    def of(self, accountant: Accountant) -> Bracket:
        """Return both ends."""
        from hockeystick.accounting.brackets import Bracket  # noqa: PLC0415 - imports are paid for when needed

        if not self.epsilon:
            return accountant.delta_bracket(self.at)
        if self.at == 1.0:
            return Bracket(0.0, 0.0, "delta is 1", "certified")
        return accountant.epsilon_bracket(self.at)


def add_words(parser: argparse.ArgumentParser, sampling: str) -> None:
    """Add what people know of a training, in place of a sampling rate and steps."""
    words = parser.add_argument_group("the training in your words")
    words.add_argument(
        "--records",
        "--dataset-size",
        type=arguments.count,
        metavar="N",
        help="number of records, at least 1; with B the sampling rate is B/N",
    )
    words.add_argument(
        "--batch-size", type=arguments.count, metavar="B", help="records in the batch of one optimiser step, in [1, N]"
    )
    words.add_argument(
        "--epochs",
        type=arguments.positive,
        metavar="P",
        help="passes over the data, positive, in place of T: each takes N/B steps, rounded up",
    )
    words.add_argument(
        "--drop-last",
        action="store_true",
        help="the data loader drops the last, smaller batch of a pass: N/B is rounded down, and the sampling rate is one over it, as in Opacus",
    )
    words.add_argument("--sampling", choices=SAMPLINGS, help=sampling)


def settle(chosen: argparse.Namespace) -> None:
    """Refuse what contradicts itself, and set the rate and the steps that records, batches and epochs give."""
    _agree(chosen)
    if chosen.records is None:
        return
    if chosen.batch_size > chosen.records:
        chosen.refuse(
            f"argument --batch-size: must be at most the number of records ({chosen.records}), not {chosen.batch_size}"
        )
    chosen.sampling_rate = rate_of(chosen.records, chosen.batch_size, drop_last=chosen.drop_last)
    if chosen.epochs is not None:
        chosen.steps = steps_of(chosen.epochs, chosen.records, chosen.batch_size, drop_last=chosen.drop_last)
    if chosen.sampling is None:
        chosen.sampling = "poisson"


def _agree(chosen: argparse.Namespace) -> None:
    known = chosen.records is not None
    if known != (chosen.batch_size is not None):
        missing = "--batch-size" if known else "--records"
        chosen.refuse(f"argument {missing}: required, since --records and --batch-size together give the sampling rate")
    if known and chosen.sampling_rate is not None:
        chosen.refuse("argument --sampling-rate: not allowed with --records and --batch-size, which give it")
    if chosen.epochs is not None and chosen.steps is not None:
        chosen.refuse("argument --epochs: not allowed with --steps; give one of them")
    if chosen.drop_last and not known:
        chosen.refuse("argument --drop-last: needs --records and --batch-size, which say what is dropped")
    if chosen.epochs is not None and not known:
        chosen.refuse("argument --epochs: needs --records and --batch-size, which say how many steps an epoch has")
    if chosen.sampling is not None and not known and (chosen.sampling != "poisson" or chosen.sampling_rate is None):
        rate = " or --sampling-rate" if chosen.sampling == "poisson" else ""
        chosen.refuse(f"argument --sampling: {chosen.sampling} needs --records and --batch-size{rate}")


def kind(chosen: argparse.Namespace) -> str:
    """Return how batches are made, "none" where everybody is in every step."""
    if chosen.sampling is not None:
        return str(chosen.sampling)
    return "none" if chosen.sampling_rate is None else "poisson"


def brackets(chosen: argparse.Namespace, asked: Asked) -> dict[str, Bracket]:
    """Return what is asked for under each sampling that is possible."""
    chosen_kind = kind(chosen)
    kinds = KNOWN if chosen_kind == "unknown" else (chosen_kind,)
    return {each: _bracket(chosen, asked, each) for each in kinds}


def worst(found: dict[str, Bracket]) -> tuple[str, Bracket]:
    """Return the sampling with the largest upper end, with the least lower end of all."""
    name = max(found, key=lambda each: found[each].upper)
    return name, found[name]._replace(lower=min(bracket.lower for bracket in found.values()))


def _bracket(chosen: argparse.Namespace, asked: Asked, sampling: str) -> Bracket:
    if sampling != "shuffled" or (asked.epsilon and asked.at == 1.0):
        return asked.of(accountant(chosen, sampling))
    return batches(chosen).epsilon(sampling, asked.at) if asked.epsilon else batches(chosen).delta(sampling, asked.at)


def accountant(chosen: argparse.Namespace, sampling: str) -> Accountant:
    """Return what the training leaks under a sampling."""
    from hockeystick.accounting.accountant import Accountant  # noqa: PLC0415 - imports are paid for when needed
    from hockeystick.mechanisms import Gaussian, PoissonSampled  # noqa: PLC0415

    step = Gaussian(chosen.noise_multiplier)
    if sampling == "none":
        return Accountant().compose(step, chosen.steps)
    if chosen.records is None:
        return Accountant().compose(PoissonSampled(step, chosen.sampling_rate), chosen.steps)
    return batches(chosen).accountant(sampling)


def batches(chosen: argparse.Namespace) -> Batches:
    """Return how batches are made."""
    from hockeystick.training.dpsgd_setup import Batches  # noqa: PLC0415

    noise = chosen.noise_multiplier or 1.0
    return Batches(chosen.records, chosen.batch_size, chosen.steps, noise, drop_last=chosen.drop_last)


def passes(chosen: argparse.Namespace) -> int:
    """Return how often a record is used at most in shuffled batches."""
    return batches(chosen).passes
