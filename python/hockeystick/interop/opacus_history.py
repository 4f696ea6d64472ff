"""The histories of Opacus' accountants: what an entry means, and the privacy statement of a training from one."""

from __future__ import annotations

from typing import Any, TypeAlias

from hockeystick._checks import choice, count_scalar, scalar
from hockeystick._statements import FORMATS, Format, say
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.statement import guaranteed, stated
from hockeystick.mechanisms import Gaussian, MixtureOfGaussians, PoissonSampled
from hockeystick.training import privacy_statement as statement_of_training
from hockeystick.training.dpsgd_setup import batches_of

# Noise multiplier, sampling rate, steps; where there are several, the Poisson batches whose gradients are added before the noise.
Entry: TypeAlias = "tuple[float, float, int] | tuple[float, float, int, int]"
ONCE_A_PASS = {
    "SequentialSampler",
    "RandomSampler",
    "SubsetRandomSampler",
}  # of torch: no record is drawn twice in a pass


def read(entry: Any) -> tuple[float, float, int, int]:
    """Return an entry of a history with the number of its batches, which is 1 where it is not told."""
    noise_multiplier, sample_rate, steps, batches = (*entry, 1) if len(entry) == 3 else entry
    return noise_multiplier, sample_rate, steps, batches


def entry(noise_multiplier: float, sample_rate: float, steps: int, batches: int) -> Entry:
    """Return what stands in a history: a triple, as Opacus has it, wherever that says all."""
    return (noise_multiplier, sample_rate, steps, batches) if batches != 1 else (noise_multiplier, sample_rate, steps)


def step(noise_multiplier: float, sample_rate: float, batches: int) -> PoissonSampled | MixtureOfGaussians | None:
    """Return one step as a mechanism, or None if it has no noise.

    A record is in the sum over several Poisson batches as often as a group of so many records is in one.
    """
    noise = noise_multiplier if noise_multiplier != 0 else 1.0
    if count_scalar("batches", batches) == 1:
        sampled: PoissonSampled | MixtureOfGaussians = PoissonSampled(Gaussian(noise), sample_rate)
    else:
        sampled = MixtureOfGaussians.of_group(noise, batches, sample_rate)
    return sampled if noise_multiplier != 0 else None


def checked(
    noise_multiplier: float, sample_rate: float, steps: int, batches: int
) -> PoissonSampled | MixtureOfGaussians | None:
    """Return the step of an entry, after checking how often it was made."""
    count_scalar("steps", steps)
    return step(noise_multiplier, sample_rate, batches)


def composed(history: Any) -> Accountant:
    """Return what all entries leak together; a step without noise is refused."""
    accountant = Accountant()
    for noise_multiplier, sample_rate, steps, batches in map(read, history):
        mechanism = checked(noise_multiplier, sample_rate, steps, batches)
        if mechanism is None:
            msg = "history must have noise in every step, to be composed"
            raise ValueError(msg)
        accountant.compose(mechanism, steps)
    return accountant


def privacy_statement(engine: Any, data_loader: Any, delta: float, *, format: Format = "text") -> str:
    r"""Return the privacy statement of a training by Opacus, from what its engine recorded and the loader that it trained on.

    Noise, steps and rate are those of the accountant's history, whichever accountant it is; how batches are made is the loader's.

    Parameters
    ----------
    engine : opacus.PrivacyEngine
        After the training.
    data_loader : torch.utils.data.DataLoader
        The one that `make_private` returned: Opacus' own with Poisson samples, or with ``poisson_sampling=False`` one that goes through
        the records in turn or shuffled.
    delta : float
        In (0, 1); usually below one over the number of records.
    format : {"text", "markdown", "latex", "json"}
        As in `hockeystick.privacy_statement`.

    Returns
    -------
    str
        The statement.

    Raises
    ------
    ValueError
        If nothing was recorded or a step had no noise, if the history is not of this loader, or if nothing is known of how it samples.

    Examples
    --------
    >>> from types import SimpleNamespace  # in place of Opacus' engine and of its loader
    >>> engine = SimpleNamespace(accountant=SimpleNamespace(history=[(1.0, 1 / 3, 30)]))
    >>> loader = SimpleNamespace(dataset=range(1000), sample_rate=1 / 3)
    >>> print(privacy_statement(engine, loader, 1e-5).split("\n\n")[1])
    The trained model is (ε, δ)-differentially private with ε = 12.86 at δ = 1e-05, with
    respect to adding or removing one record, if each record is in each batch with
    probability 0.3333333333333333, independently of all else (Poisson).
    """
    delta = scalar("delta", delta, lambda x: 0 < x < 1, "lie in (0, 1)")
    choice("format", format, FORMATS)
    history = [read(entry) for entry in engine.accountant.history]
    if not history or any(noise == 0 for noise, *_ in history):
        msg = f"history of the engine must have steps, and noise in every one, not {engine.accountant.history!r}"
        raise ValueError(msg)
    records, poisson = len(data_loader.dataset), hasattr(data_loader, "sample_rate")
    rate = data_loader.sample_rate if poisson else 1 / len(data_loader)
    history = [_batches_of(entry, rate) for entry in history]
    if len(history) == 1 and (history[0][3] == 1 or not poisson):
        noise, rate, steps, batches = history[0]
        how = {"sampling_rate": rate} if poisson else _shuffled(data_loader, batches)
        return statement_of_training(
            records=records, steps=steps, noise_multiplier=noise, delta=delta, format=format, **how
        )
    if not poisson:
        msg = f"a training on shuffled batches must have one noise multiplier for a statement, not {history!r}"
        raise ValueError(msg)
    released = say("released_training")
    return stated(guaranteed(composed(history)._composition(), delta, records), delta, format, released)


def _batches_of(entry: tuple[float, float, int, int], rate: float) -> tuple[float, float, int, int]:
    """Return an entry with its accumulated batches, which Opacus' accountants write as one of so many times the loader's rate."""
    noise_multiplier, recorded, steps, batches = entry
    times = max(1, round(recorded / rate))
    if recorded / times < rate * (1.0 - 1e-9):
        msg = f"data_loader must be that of the training, whose sampling rate was {recorded!r}, not one of {rate!r}"
        raise ValueError(msg)
    return noise_multiplier, recorded / times, steps, batches * times


def _shuffled(data_loader: Any, accumulated: int) -> dict[str, Any]:
    """Return how a loader without Poisson samples makes batches: each record at most once a pass, or it is refused."""
    if len(data_loader) % accumulated:  # a batch of the end of a pass and one of the next beginning may share a record
        msg = f"the {len(data_loader)} batches of a pass must be a multiple of the {accumulated} that are accumulated"
        raise ValueError(msg)
    sampler: Any = data_loader.sampler
    size: int | None = data_loader.batch_size
    once = type(sampler).__name__ in ONCE_A_PASS and not getattr(sampler, "replacement", False)
    records, drop_last = len(data_loader.dataset), data_loader.drop_last
    whole = size is not None and len(data_loader) == batches_of(records, size, drop_last=drop_last)
    if size is None or not (once and whole and len(sampler) == records):
        msg = (
            f"data_loader must draw Poisson samples or go through all records in batches of one size, not {data_loader!r}; "
            "to train on a part of the records, let the data set be a torch.utils.data.Subset"
        )
        raise ValueError(msg)
    return {"sampling": "shuffled", "batch_size": size * accumulated, "drop_last": drop_last}
