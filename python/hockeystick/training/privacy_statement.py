"""The privacy statement of DP-SGD, from what its author knows of the training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hockeystick._checks import boolean_scalar, choice, count_scalar, implausible, positive_scalar, scalar
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick._statements import FORMATS, SENTENCES, Format, say, say_all
from hockeystick.accounting.brackets import Bracket
from hockeystick.accounting.statement import Guaranteed, stated, user_level
from hockeystick.mechanisms.premises import Premises
from hockeystick.training.batches import SAMPLINGS, Batches, Sampling
from hockeystick.training.dpsgd_parameters import steps_of

__all__ = ["privacy_statement"]

WORDS: dict[str, str] = SENTENCES["batches"]


@dataclass(frozen=True)
class Training:
    """What is known of a training."""

    batches: Batches
    clip_norm: float | None
    delta: float

    def brackets(self) -> dict[str, Bracket]:
        """Return the ends of epsilon for each sampling, the lower one of shuffled batches as if all had one size."""
        return {name: self.batches.epsilon(name, self.delta, equal=True) for name in self.batches.kinds}

    def words(self, kind: str) -> str:
        """Return how batches are made, in words; the rate of Poisson samples where it is not batch size over records."""
        known = self.batches
        if kind == "poisson" and (known.sampling_rate is not None or known.drop_last):
            return say("poisson_of_rate", rate=repr(known.rate))
        return WORDS[kind]

    def premises(self, kind: str) -> Premises:
        """Return what epsilon rests on if batches are made so."""
        batches = self.words(kind) if kind == "shuffled" else say("nobody_sees", batches=self.words(kind))
        return Premises(
            self.batches.adjacency(kind),
            special=(say("keeps_its_batch"),) if kind == "shuffled" else (),
            released=(say("released_training"),),
            assumptions=(batches, *say_all("check", records=self.batches.records)),
        )


def privacy_statement(
    *,
    records: int,
    batch_size: int | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    noise_multiplier: float,
    clip_norm: float | None = None,
    delta: float,
    sampling: Sampling = "poisson",
    sampling_rate: float | None = None,
    drop_last: bool = False,
    format: Format = "text",
) -> str:
    r"""Return a privacy statement of a training by DP-SGD: text to paste into a model card, a paper or a registry.

    Parameters
    ----------
    records : int
        Records of the training data, at least 1.
    batch_size : int, optional
        Records in the batch of one optimiser step, all workers and accumulated micro-batches together, on average or exactly; in
        [1, records]. Needed unless `sampling_rate` and `steps` are given.
    epochs : float, optional
        Passes over the data, positive; a pass is records/batch_size steps, rounded up, or down with `drop_last`.
    steps : int, optional
        Optimiser steps, at least 1. Exactly one of `epochs` and `steps` must be given.
    noise_multiplier : float
        Standard deviation of the noise on the sum of the clipped gradients over the clip norm; positive and finite.
    clip_norm : float, optional
        Largest norm of a record's gradient, positive and finite; named in the statement, and of no influence on ε.
    delta : float
        In (0, 1); usually below 1/records.
    sampling : {"poisson", "shuffled", "fixed", "unknown"}
        How batches are made: each record by its own coin; by cutting a shuffled order, as data loaders do; by drawing so many
        different records afresh for each step; or one of these, it is not known which.
    sampling_rate : float, optional
        Probability of each record in each Poisson sample, in (0, 1]; batch_size/records if not given. That of Opacus is
        1/len(data_loader).
    drop_last : bool
        Whether the data loader drops the last batch of a pass if it is smaller. There are fewer and other batches then: shuffled
        ones come round sooner, and the rate of Opacus' Poisson samples is one over their number, more than batch_size/records.
    format : {"text", "markdown", "latex", "json"}
        How it is written; "json" is an entry of a registry of deployments.

    Returns
    -------
    str
        The statement. Upper ends of ε are rounded up, lower ends down. The ε of "shuffled" is the upper end of
        `shuffled_batches_epsilon`, and that of "unknown" the largest of all.

    Raises
    ------
    ValueError
        If an argument is outside its domain, or not exactly one of `epochs` and `steps` is given.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    The ε of several records of one person is that of `group_epsilon`; what an attacker can do is by the trade-off
    function (Dong, Roth and Su 2022).

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = {"records": 60000, "batch_size": 256, "epochs": 15, "noise_multiplier": 1.1}
    >>> print(hs.privacy_statement(**training, delta=1e-5).split("\n\n")[1])
    The trained model is (ε, δ)-differentially private with ε = 1.136 at δ = 1e-05, with
    respect to adding or removing one record, if each record is in each batch with
    probability batch size/records, independently of all else (Poisson).
    """
    records = count_scalar("records", records)
    drop_last = boolean_scalar("drop_last", drop_last)
    if sampling_rate is not None:
        sampling_rate = scalar("sampling_rate", sampling_rate, lambda x: 0 < x <= 1, "lie in (0, 1]")
    if batch_size is not None:
        batch_size = _batch_size(batch_size, records)
    elif sampling_rate is None or epochs is not None or drop_last or sampling != "poisson":
        msg = "batch_size must be given, or sampling_rate and steps of Poisson samples without drop_last, not None"
        raise ValueError(msg)
    number = _steps(epochs, steps, records, batch_size, drop_last=drop_last)
    noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
    clip_norm = None if clip_norm is None else positive_scalar("clip_norm", clip_norm)
    delta = scalar("delta", delta, lambda x: 0 < x < 1, "lie in (0, 1)")
    choice("sampling", sampling, SAMPLINGS)
    choice("format", format, FORMATS)
    batches = Batches(records, batch_size, number, noise_multiplier, sampling_rate, drop_last)
    training = Training(batches, clip_norm, delta)
    implausible.warn(implausible.large_delta(delta, records))
    return stated(_guaranteed(training, sampling), delta, format)


def _batch_size(given: int, records: int) -> int:
    batch_size = count_scalar("batch_size", given)
    if batch_size > records:
        msg = f"batch_size must be at most the number of records ({records}), not {batch_size}"
        raise ValueError(msg)
    return batch_size


def _steps(epochs: float | None, steps: int | None, records: int, batch_size: int | None, *, drop_last: bool) -> int:
    if epochs is not None and steps is None and batch_size is not None:
        return steps_of(positive_scalar("epochs", epochs), records, batch_size, drop_last=drop_last)
    if steps is not None and epochs is None:
        return count_scalar("steps", steps)
    msg = f"exactly one of epochs and steps must be given, not epochs={epochs} and steps={steps}"
    raise ValueError(msg)


def _guaranteed(training: Training, sampling: Sampling) -> Guaranteed:
    """Return what the statement says, for the sampling that was named or that which leaks most."""
    brackets = training.brackets()
    kind = max(brackets, key=lambda name: brackets[name].upper) if sampling == "unknown" else sampling
    accountant, proven = training.batches.accountant(kind), training.batches.epsilon(kind, training.delta)
    return Guaranteed(
        proven,
        training.premises(kind),
        (_mechanism(training),),
        accountant._composition().curve(),
        user_level(accountant._composition(), training.delta),
        (_command(training, sampling),),
        training.batches.records,
        subject=say("subject_training"),
        condition=say("if_unknown") if sampling == "unknown" else say("if_batches", batches=training.words(kind)),
        of_a_kind=brackets[kind] if kind == "shuffled" else None,
        otherwise=_otherwise(training, brackets, kind),
        more={"sampling": sampling, "by_sampling": {name: _entry(training, name) for name in brackets}},
    )


def _entry(training: Training, kind: str) -> dict[str, Any]:
    bracket, adjacency = training.batches.epsilon(kind, training.delta), training.premises(kind).adjacency
    return {"epsilon": bracket.upper, "epsilon_lower_end": bracket.lower, "adjacency": adjacency}


def _otherwise(training: Training, brackets: dict[str, Bracket], kind: str) -> tuple[str, ...]:
    """Return epsilon for the other ways to make batches."""
    lines = []
    for name, bracket in brackets.items():
        if name != kind:
            low, high = format_lower(bracket.lower, ".4g"), format_upper(bracket.upper, ".4g")
            close = bracket.upper <= bracket.lower * 1.001
            words = "ends_close" if close else "ends"
            if name == "shuffled" and not training.batches.equal and not training.batches.drop_last:
                words = "ends_of_a_kind"
            ends = say(words, low=low, high=high)
            change = training.premises(name).change()
            lines.append(say("otherwise", ends=ends, batches=training.words(name), change=change))
    return tuple(lines)


def _mechanism(training: Training) -> str:
    known = training.batches
    clip_norm = training.clip_norm
    return say(
        "dpsgd",
        steps=known.steps,
        batches=(
            say("dpsgd_rate", rate=repr(known.rate))
            if known.batch_size is None
            else say("dpsgd_batches", batch_size=known.batch_size)
        ),
        records=known.records,
        noise_multiplier=repr(known.noise_multiplier),
        norm=say("clip_norm") if clip_norm is None else say("clip_norm_known", norm=repr(clip_norm)),
    )


def _command(training: Training, sampling: Sampling) -> str:
    known = training.batches
    return say(
        "command",
        records=known.records,
        batches=("" if known.batch_size is None else f" --batch-size {known.batch_size}")
        + ("" if known.sampling_rate is None else f" --sampling-rate {known.sampling_rate!r}")
        + (" --drop-last" if known.drop_last else ""),
        steps=known.steps,
        noise_multiplier=repr(known.noise_multiplier),
        norm="" if training.clip_norm is None else f" --clip-norm {training.clip_norm!r}",
        delta=repr(training.delta),
        sampling=sampling,
    )
