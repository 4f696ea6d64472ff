"""From what its author knows of a training by DP-SGD: its numbers, what it leaks however batches are made, its privacy statement."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from hockeystick._checks import (
    FRACTION,
    LARGEST_COUNT,
    OPEN_PROBABILITY,
    POSITIVE,
    at_most,
    boolean_scalar,
    choice,
    count_at_most,
    count_scalar,
    positive_scalar,
    scalar,
    setting_warnings,
)
from hockeystick._checks.shown import shown
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick._statements import FORMATS, SENTENCES, Format, say, say_all
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.brackets import Bracket
from hockeystick.accounting.certificate import certificate_path, write
from hockeystick.accounting.shuffled_batches import shuffled_batches_delta_bracket, shuffled_batches_epsilon_bracket
from hockeystick.accounting.statement import Guaranteed, stated, user_level
from hockeystick.mechanisms import FixedSizeSampled, Gaussian, PoissonSampled
from hockeystick.mechanisms.premises import Adjacency, Premises
from hockeystick.mechanisms.sampled import MOST_STEPS

__all__ = ["DpsgdParameters", "dpsgd_parameters", "privacy_statement"]

Sampling: TypeAlias = Literal["poisson", "shuffled", "fixed", "unknown"]
SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)  # the last stands for one of the others, it is not known which
KNOWN = SAMPLINGS[:-1]


def batches_of(records: int, batch_size: int, *, drop_last: bool) -> int:
    """Return the batches of a pass: the length of a data loader."""
    return records // batch_size if drop_last else -(-records // batch_size)


def rate_of(records: int, batch_size: int, *, drop_last: bool) -> float:
    """Return the rate of Poisson samples: with `drop_last` one over the length of the loader, from which Opacus makes its own.

    Without it the loader has one batch more, so that one over its length is at most the quotient that is returned.
    """
    return 1 / batches_of(records, batch_size, drop_last=True) if drop_last else batch_size / records


@dataclass(frozen=True)
class Batches:
    """Batches of DP-SGD: how many records there are, how many are in a batch, how many steps are taken, and their noise."""

    records: int  # at least 1
    batch_size: int | None  # in [1, records]; None if Poisson samples of a known rate are all that is known
    steps: int  # of the optimiser, at least 1
    noise_multiplier: float  # noise on the sum over the clip norm, positive
    sampling_rate: float | None = None  # of Poisson samples, in (0, 1]; by default that of records and batch size
    drop_last: bool = False  # whether a pass leaves out the last batch if it is smaller

    @property
    def kinds(self) -> tuple[Sampling, ...]:
        """The ways to make batches that can be told of."""
        return ("poisson",) if self.batch_size is None else KNOWN

    @property
    def rate(self) -> float:
        """The rate of Poisson samples."""
        if self.sampling_rate is not None:
            return self.sampling_rate
        return rate_of(self.records, self._size, drop_last=self.drop_last)

    @property
    def num_batches(self) -> int:
        """Batches of a pass, the last one perhaps smaller."""
        return batches_of(self.records, self._size, drop_last=self.drop_last)

    @property
    def equal(self) -> bool:
        """Whether shuffled batches have one size and hold all records."""
        return self.records % self._size == 0

    @property
    def _size(self) -> int:
        assert self.batch_size is not None
        return self.batch_size

    @property
    def passes(self) -> int:
        """How often a record is used at most in shuffled batches: a pass that has begun counts whole."""
        return -(-self.steps // self.num_batches)

    @staticmethod
    def adjacency(sampling: str) -> Adjacency:
        """Return which data sets are adjacent."""
        return "replace" if sampling == "fixed" else "add_or_remove"

    def accountant(self, sampling: str) -> Accountant:
        """Return what the steps leak; of shuffled batches an upper bound, the order of the records being shown."""
        step, ledger = Gaussian(self.noise_multiplier), Accountant(self.adjacency(sampling))
        if sampling == "poisson":
            return ledger.compose(PoissonSampled(step, self.rate), self.steps)
        if sampling == "fixed":
            return ledger.compose(FixedSizeSampled(step, self.records, self._size, replacement=False), self.steps)
        return ledger.compose(step, self.passes)

    def epsilon(self, sampling: str, delta: float, *, equal: bool = False) -> Bracket:
        """Return the ends of epsilon at a delta below 1; with `equal`, the lower one of shuffled batches as if all had one size."""
        bracket = self.accountant(sampling).epsilon_bracket(delta)
        shuffled = sampling == "shuffled"
        return self._shuffled(bracket, shuffled_batches_epsilon_bracket, delta, equal) if shuffled else bracket

    def delta(self, sampling: str, epsilon: float) -> Bracket:
        """Return the ends of delta at epsilon >= 0, in nats."""
        bracket = self.accountant(sampling).delta_bracket(epsilon)
        shuffled = sampling == "shuffled"
        return self._shuffled(bracket, shuffled_batches_delta_bracket, epsilon, False) if shuffled else bracket

    def certificate(self, sampling: str, **claim: Any) -> str:
        """Return the certificate of what the steps leak."""
        if sampling in ("shuffled", "unknown"):
            raise ValueError(
                f"there is no certificate of sampling={sampling!r}: no rule of the checker says how such batches are made"
            )
        return self.accountant(sampling).certificate(**claim)

    def words(self, kind: str) -> str:
        """Return how batches are made, in words; the rate of Poisson samples where it is not batch size over records."""
        if kind == "poisson" and (self.sampling_rate is not None or self.drop_last):
            return say("poisson_of_rate", rate=repr(self.rate))
        return str(SENTENCES["batches"][kind])

    def premises(self, kind: str) -> Premises:
        """Return what epsilon rests on if batches are made so."""
        shuffled = kind == "shuffled"
        return Premises(
            self.adjacency(kind),
            special=(say("keeps_its_batch"),) if shuffled else (),
            released=(say("released_training"),),
            assumptions=(
                self.words(kind) if shuffled else say("nobody_sees", batches=self.words(kind)),
                *say_all("check", records=self.records),
            ),
        )

    def _shuffled(self, bracket: Bracket, attained: Callable[..., Bracket], value: float, equal: bool) -> Bracket:
        """Return the bracket of shuffled batches, with what they attain as its lower end.

        That is known of whole passes over all records in batches of one size, at most `MOST_STEPS` of them; otherwise the end is 0.
        """
        whole, batches, lower = self.equal or (equal and not self.drop_last), self.num_batches, 0.0
        if whole and self.steps >= batches and batches <= MOST_STEPS:
            passes = self.steps // batches
            lower = attained(value, noise_multiplier=self.noise_multiplier, num_batches=batches, epochs=passes).lower
        return bracket._replace(lower=min(lower, bracket.upper), method="without amplification by the shuffle")


class DpsgdParameters(NamedTuple):
    """The numbers that the accounting of DP-SGD takes; ``print(parameters.assumed)`` says what they assume.

    Attributes
    ----------
    noise_multiplier : float
        Noise standard deviation over clip norm.
    sampling_rate : float
        Probability of each record in each step.
    steps : int
        Optimiser steps.

    Examples
    --------
    >>> import hockeystick as hs
    >>> hs.dpsgd_parameters(
    ...     num_records=60000, batch_size=600, epochs=10, noise_multiplier=1.1
    ... )
    DpsgdParameters(noise_multiplier=1.1, sampling_rate=0.01, steps=1000)
    """

    noise_multiplier: float
    sampling_rate: float
    steps: int

    @property
    def assumed(self) -> str:
        """What must be true of the training for these numbers to describe it."""
        return (
            f"{self.steps} optimiser steps; in each, every record is drawn with probability {self.sampling_rate!r}, "
            "independently of all others and afresh (a shuffled or fixed-size batch is not that); each record's whole "
            "gradient is clipped once, whatever the micro-batches; the sum of the clipped gradients gets Gaussian noise "
            f"of {self.noise_multiplier!r} times the clip norm, once; data sets are adjacent if one record is added or "
            "removed; data set size and expected batch size are public, and a mean divides by the expected batch size, "
            "not by the drawn one."
        )


def dpsgd_parameters(
    *,
    num_records: int,
    batch_size: int,
    epochs: float | None = None,
    steps: int | None = None,
    noise_multiplier: float | None = None,
    clip_norm: float | None = None,
    noise_std: float | None = None,
    noise_on: Literal["sum", "mean"] = "sum",
    sampling: Literal["poisson"] = "poisson",
    drop_last: bool = False,
) -> DpsgdParameters:
    """Return noise multiplier, sampling rate and number of steps of a training.

    Parameters
    ----------
    num_records : int
        Number of records, at least 1.
    batch_size : int
        Expected number of records in the batch of one optimiser step, all workers and accumulated micro-batches
        together, in [1, num_records].
    epochs : float, optional
        Passes over the data, positive. A pass takes num_records/batch_size steps, rounded up, as that of a data loader which keeps
        the last, smaller batch; part of a pass is rounded up, too.
    steps : int, optional
        Optimiser steps, at least 0. Exactly one of `epochs` and `steps` must be given.
    noise_multiplier : float, optional
        Standard deviation of the noise on the sum of the clipped gradients over the clip norm; positive and finite.
    clip_norm : float, optional
        Largest norm of a record's gradient, positive and finite.
    noise_std : float, optional
        Standard deviation of the noise in every coordinate, positive and finite; with `clip_norm` in place of `noise_multiplier`.
    noise_on : {"sum", "mean"}
        Whether `noise_std` is the noise added to the sum of the clipped gradients, or to their mean, the sum over `batch_size`.
    sampling : {"poisson"}
        How batches are made. The numbers returned are those of Poisson samples: any other word is refused, with what to ask instead.
    drop_last : bool
        Whether the data loader drops the last batch of a pass if it is smaller. A pass then takes num_records/batch_size steps, rounded
        down, and the sampling rate is one over them, as in Opacus: more than batch_size/num_records.

    Returns
    -------
    DpsgdParameters
        A tuple (noise_multiplier, sampling_rate, steps); its property `assumed` says what it assumes of the training.

    Raises
    ------
    ValueError
        If an argument is outside its domain, missing, or given beside another that says the same.
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = hs.dpsgd_parameters(
    ...     num_records=60000, batch_size=256, epochs=15, noise_multiplier=1.1
    ... )
    >>> print(training.steps, hs.format_upper(hs.dpsgd_epsilon(*training, 1e-5), ".3f"))
    3525 1.136
    >>> training = hs.dpsgd_parameters(
    ...     num_records=50000, batch_size=1000, epochs=2, clip_norm=0.5, noise_std=0.001, noise_on="mean"
    ... )
    >>> print(training)
    DpsgdParameters(noise_multiplier=2.0, sampling_rate=0.02, steps=100)
    >>> print(hs.format_upper(hs.dpsgd_epsilon(*training, 1e-5), ".2f"))
    0.41
    """
    noise_on = choice("noise_on", noise_on, ("sum", "mean"))
    _require_poisson(sampling)
    num_records = count_scalar("num_records", num_records)
    batch_size = count_at_most("batch_size", batch_size, "num_records", num_records)
    drop_last = boolean_scalar("drop_last", drop_last)
    number = _steps(epochs, steps, num_records, batch_size, drop_last=drop_last)
    multiplier = _multiplier(noise_multiplier, clip_norm, noise_std, batch_size if noise_on == "mean" else 1)
    if noise_on == "mean":
        if noise_std is None:
            raise ValueError(
                'noise_on must be "sum" with noise_multiplier, which is that of the sum, not "mean"; give noise_std and clip_norm'
            )
        doubt = setting_warnings.noise_of_mean(multiplier, noise_std, ("batch_size", batch_size), num_records)
        setting_warnings.warn(doubt)
    return DpsgdParameters(multiplier, rate_of(num_records, batch_size, drop_last=drop_last), number)


def _one_of(first: tuple[str, Any], second: tuple[str, Any]) -> tuple[Any, str]:
    """Return the one that is given, and its name."""
    given = [(value, name) for name, value in (first, second) if value is not None]
    if len(given) != 1:
        raise ValueError(
            f"exactly one of {first[0]} and {second[0]} must be given, not {first[0]}={first[1]} and {second[0]}={second[1]}"
        )
    return given[0]


def _steps(epochs: float | None, steps: int | None, records: int, batch_size: int | None, *, drop_last: bool) -> int:
    length, name = _one_of(("epochs", epochs), ("steps", steps))
    if name == "steps" or batch_size is None:
        return count_scalar("steps", length, 0)
    return steps_of(positive_scalar("epochs", length), records, batch_size, drop_last=drop_last)


def _multiplier(noise_multiplier: float | None, clip_norm: float | None, noise_std: float | None, per: int) -> float:
    """Return the noise on the sum over the clip norm; `noise_std` is that of the sum over `per`."""
    clip_norm = None if clip_norm is None else positive_scalar("clip_norm", clip_norm)
    noise, name = _one_of(("noise_multiplier", noise_multiplier), ("noise_std", noise_std))
    noise = positive_scalar(name, noise)
    if name == "noise_multiplier":
        return noise
    if clip_norm is None:
        raise ValueError("clip_norm must be given with noise_std, not None: the noise multiplier is their quotient")
    return scalar("noise_std over clip_norm", noise * per / clip_norm, *POSITIVE)


def _require_poisson(sampling: str) -> None:
    """Refuse other samplings, for which the numbers of Poisson samples would be too small."""
    choice("sampling", sampling, SAMPLINGS)
    if sampling != "poisson":
        instead = {
            "shuffled": "for shuffled batches ask shuffled_batches_epsilon_bracket",
            "fixed": "for batches of fixed size compose FixedSizeSampled in an Accountant",
            "unknown": "find out how batches are made; shuffled_batches_epsilon_bracket is that of ordinary data loaders",
        }[sampling]
        raise ValueError(
            f"sampling must be 'poisson' for these numbers, not {shown(sampling)}: they would be too small; {instead}"
        )


def steps_of(epochs: float, records: int, batch_size: int, *, drop_last: bool = False) -> int:
    """Return the number of optimiser steps, a pass being a whole number of them."""
    batches = batches_of(records, batch_size, drop_last=drop_last)
    at_most("epochs", epochs, "2^53 steps", LARGEST_COUNT // batches)
    passes = math.floor(epochs)
    length = batches if drop_last else records / batch_size
    part = (epochs - passes) * length
    # A product that is an integer but for its rounding is that integer: 0.1 epochs of 10 steps are 1 step.
    rest = round(part) if abs(part - round(part)) <= 1e-12 * (epochs + 1) * length else math.ceil(part)
    return max(passes * batches + rest, 1)


def privacy_statement(
    *,
    num_records: int,
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
    certificate: str | os.PathLike[str] | None = None,
) -> str:
    r"""Return a privacy statement of a training by DP-SGD: text to paste into a model card, a paper or a registry.

    Parameters
    ----------
    num_records : int
        Records of the training data, at least 1.
    batch_size : int, optional
        Records in the batch of one optimiser step, all workers and accumulated micro-batches together, on average or exactly; in
        [1, num_records]. Needed unless `sampling_rate` and `steps` are given.
    epochs : float, optional
        Passes over the data, positive; a pass is num_records/batch_size steps, rounded up, or down with `drop_last`.
    steps : int, optional
        Optimiser steps, at least 0. Exactly one of `epochs` and `steps` must be given.
    noise_multiplier : float
        Standard deviation of the noise on the sum of the clipped gradients over the clip norm; positive and finite.
    clip_norm : float, optional
        Largest norm of a record's gradient, positive and finite; named in the statement, and of no influence on ε.
    delta : float
        In (0, 1); usually below 1/num_records.
    sampling : {"poisson", "shuffled", "fixed", "unknown"}
        How batches are made: each record by its own coin; by cutting a shuffled order, as data loaders do; by drawing so many
        different records afresh for each step; or one of these, it is not known which.
    sampling_rate : float, optional
        Probability of each record in each Poisson sample, in (0, 1]; batch_size/num_records if not given. That of Opacus is
        1/len(data_loader).
    drop_last : bool
        Whether the data loader drops the last batch of a pass if it is smaller. There are fewer and other batches then: shuffled
        ones come round sooner, and the rate of Opacus' Poisson samples is one over their number, more than batch_size/num_records.
    format : {"text", "markdown", "latex", "json"}
        How it is written; "json" is an entry of a registry of deployments.
    certificate : path, optional
        Where to write the `Accountant.certificate` of this epsilon, which the statement then names. For Poisson samples alone.

    Returns
    -------
    str
        The statement. Upper ends of ε are rounded up, lower ends down. The ε of "shuffled" is the upper end of
        `shuffled_batches_epsilon_bracket`, and that of "unknown" the largest of all.

    Raises
    ------
    ValueError
        If an argument is outside its domain, not exactly one of `epochs` and `steps` is given, or there is no certificate of it.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    The ε of several records of one person is that of `group_epsilon`; what an attacker can do is by the trade-off
    function (Dong, Roth and Su 2022).

    Examples
    --------
    >>> import hockeystick as hs
    >>> training = {"num_records": 60000, "batch_size": 256, "epochs": 15, "noise_multiplier": 1.1}
    >>> print(hs.privacy_statement(**training, delta=1e-5).split("\n\n")[1])
    The trained model is (ε, δ)-differentially private with ε = 1.136 at δ = 1e-05, with
    respect to adding or removing one record, if each record is in each batch with
    probability batch size/records, independently of all else (Poisson).
    """
    num_records = count_scalar("num_records", num_records)
    drop_last = boolean_scalar("drop_last", drop_last)
    if sampling_rate is not None:
        sampling_rate = scalar("sampling_rate", sampling_rate, *FRACTION)
    if batch_size is not None:
        batch_size = count_at_most("batch_size", batch_size, "the number of records", num_records)
    elif sampling_rate is None or epochs is not None or drop_last or sampling != "poisson":
        raise ValueError(
            "batch_size must be given, or sampling_rate and steps of Poisson samples without drop_last, not None"
        )
    number = _steps(epochs, steps, num_records, batch_size, drop_last=drop_last)
    noise_multiplier = positive_scalar("noise_multiplier", noise_multiplier)
    clip_norm = None if clip_norm is None else positive_scalar("clip_norm", clip_norm)
    delta = scalar("delta", delta, *OPEN_PROBABILITY)
    choice("sampling", sampling, SAMPLINGS)
    choice("format", format, FORMATS)
    batches = Batches(num_records, batch_size, number, noise_multiplier, sampling_rate, drop_last)
    setting_warnings.warn(setting_warnings.large_delta(delta, num_records))
    if certificate is None:
        return stated(_guaranteed(batches, clip_norm, delta, sampling), delta, format)
    file, claim = certificate_path(certificate), batches.certificate(sampling, delta=delta)
    known = _guaranteed(batches, clip_norm, delta, sampling)
    text = stated(known._replace(certificate=file.name), delta, format)
    write(file, claim)
    return text


def _guaranteed(batches: Batches, clip_norm: float | None, delta: float, sampling: Sampling) -> Guaranteed:
    """Return what the statement says, for the sampling that was named or that which leaks most."""
    proven = {name: batches.epsilon(name, delta) for name in batches.kinds}
    brackets = dict(proven)  # with the lower end of shuffled batches as if all had one size
    if "shuffled" in brackets:
        brackets["shuffled"] = batches.epsilon("shuffled", delta, equal=True)
    kind = max(brackets, key=lambda name: brackets[name].upper) if sampling == "unknown" else sampling
    composed = batches.accountant(kind)._composition()
    by_sampling = {
        name: {"epsilon": ends.upper, "epsilon_lower_end": ends.lower, "adjacency": batches.adjacency(name)}
        for name, ends in proven.items()
    }
    return Guaranteed(
        proven[kind],
        batches.premises(kind),
        (_mechanism(batches, clip_norm),),
        composed.curve(),
        user_level(composed, delta),
        (_command(batches, clip_norm, delta, sampling),),
        batches.records,
        subject=say("subject_training"),
        condition=say("if_unknown") if sampling == "unknown" else say("if_batches", batches=batches.words(kind)),
        of_a_kind=brackets[kind] if kind == "shuffled" else None,
        otherwise=tuple(_otherwise(batches, name, brackets[name]) for name in brackets if name != kind),
        more={"sampling": sampling, "by_sampling": by_sampling},
    )


def _otherwise(batches: Batches, name: Sampling, bracket: Bracket) -> str:
    """Return epsilon for another way to make batches."""
    words = "ends_close" if bracket.upper <= bracket.lower * 1.001 else "ends"
    if name == "shuffled" and not batches.equal and not batches.drop_last:
        words = "ends_of_a_kind"
    ends = say(words, low=format_lower(bracket.lower, ".4g"), high=format_upper(bracket.upper, ".4g"))
    return say("otherwise", ends=ends, batches=batches.words(name), change=batches.premises(name).change())


def _mechanism(batches: Batches, clip_norm: float | None) -> str:
    size = batches.batch_size
    return say(
        "dpsgd",
        steps=batches.steps,
        batches=say("dpsgd_rate", rate=repr(batches.rate)) if size is None else say("dpsgd_batches", batch_size=size),
        records=batches.records,
        noise_multiplier=repr(batches.noise_multiplier),
        norm=say("clip_norm") if clip_norm is None else say("clip_norm_known", norm=repr(clip_norm)),
    )


def _command(batches: Batches, clip_norm: float | None, delta: float, sampling: Sampling) -> str:
    return say(
        "command",
        records=batches.records,
        batches=("" if batches.batch_size is None else f" --batch-size {batches.batch_size}")
        + ("" if batches.sampling_rate is None else f" --sampling-rate {batches.sampling_rate!r}")
        + (" --drop-last" if batches.drop_last else ""),
        steps=batches.steps,
        noise_multiplier=repr(batches.noise_multiplier),
        norm="" if clip_norm is None else f" --clip-norm {clip_norm!r}",
        delta=repr(delta),
        sampling=sampling,
    )
