"""Opacus: our accountant in the shape of its `IAccountant`; neither Opacus nor torch is imported.

.. code-block:: python

    from opacus.accountants import register_accountant
    register_accountant("hockeystick", HockeyStickAccountant)
    engine = PrivacyEngine(accountant="hockeystick")  # get_noise_multiplier(..., accountant="hockeystick") likewise

The name must be "hockeystick": the engine asks the accountant for it when it calibrates.

After a training, with this accountant or one of Opacus' own:

.. code-block:: python

    print(privacy_statement(engine, data_loader, 1e-5))  # the loader that make_private returned
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from hockeystick._checks import OPEN_PROBABILITY, choice, count_scalar, scalar
from hockeystick._checks.setting_warnings import ImplausibleSettingWarning
from hockeystick._checks.shown import shown
from hockeystick._statements import FORMATS, Format, say
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.locking import ThreadSafe
from hockeystick.accounting.statement import guaranteed, stated
from hockeystick.mechanisms import Gaussian, MixtureOfGaussians, PoissonSampled
from hockeystick.mechanisms.base import Mechanism
from hockeystick.training import privacy_statement as statement_of_training
from hockeystick.training.dpsgd_setup import batches_of

__all__ = ["HockeyStickAccountant", "privacy_statement"]

SAME_HISTORY = {"rdp", "prv", "gdp"}
# Of torch: no record is drawn twice in a pass.
ONCE_A_PASS = {"SequentialSampler", "RandomSampler", "SubsetRandomSampler"}
# Of Opacus: every record has the loader's rate.
POISSON = ("UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler")

# What stands in a history: the fields of a `Run`, the last one only where it is not 1.
Entry: TypeAlias = "tuple[float, float, int] | tuple[float, float, int, int]"


class Run(NamedTuple):
    """Steps of one kind; of each step Poisson batches, whose gradients are added before the noise."""

    noise_multiplier: float
    sample_rate: float
    steps: int
    batches: int = 1

    def entry(self) -> Entry:
        """Return what stands in a history: a triple, as Opacus has it, wherever that says all."""
        return (*self,) if self.batches != 1 else self[:3]

    def mechanism(self) -> Mechanism | None:
        """Return one step as a mechanism, None if it has no noise; the run is checked.

        A record is in the sum over several Poisson batches as often as a group of so many records is in one.
        """
        count_scalar("steps", self.steps)
        noise = self.noise_multiplier if self.noise_multiplier != 0 else 1.0
        step: Mechanism = PoissonSampled(Gaussian(noise), self.sample_rate)
        if count_scalar("batches", self.batches) > 1:
            step = MixtureOfGaussians.of_group(noise, self.batches, self.sample_rate)
        return step if self.noise_multiplier != 0 else None


def _runs(history: Any, name: str = "history") -> list[Run]:
    """Return the runs of a history; refuse what is none."""
    try:
        return [Run(*entry) for entry in history]
    except TypeError:
        raise ValueError(f"{name} must be triples of noise, rate and steps, not {shown(history)}") from None


def _composed(history: Iterable[Run]) -> Accountant:
    """Return what all runs leak together; a step without noise is refused."""
    accountant = Accountant()
    for run in history:
        mechanism = run.mechanism()
        if mechanism is None:
            raise ValueError("history must have noise in every step, to be composed")
        accountant.compose(mechanism, run.steps)
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
    >>> sampler = type("UniformWithReplacementSampler", (), {})()
    >>> loader = SimpleNamespace(dataset=range(1000), sample_rate=1 / 3, batch_sampler=sampler)
    >>> print(privacy_statement(engine, loader, 1e-5).split("\n\n")[1])
    The trained model is (ε, δ)-differentially private with ε = 12.86 at δ = 1e-05, with
    respect to adding or removing one record, if each record is in each batch with
    probability 0.3333333333333333, independently of all else (Poisson).
    """
    delta = scalar("delta", delta, *OPEN_PROBABILITY)
    choice("format", format, FORMATS)
    history = _runs(engine.accountant.history)
    if not history or any(run.noise_multiplier == 0 for run in history):
        raise ValueError(
            f"history of the engine must have steps, and noise in every one, not {engine.accountant.history!r}"
        )
    num_records, poisson = len(data_loader.dataset), hasattr(data_loader, "sample_rate")
    if poisson and (drawn := type(getattr(data_loader, "batch_sampler", None)).__name__) not in POISSON:
        raise ValueError(
            f"data_loader must have a batch sampler {' or '.join(POISSON)}, of one rate for all records, not {drawn}; "
            "if each has a rate of its own, and a coin, compose `PoissonSampled` with the largest"
        )
    rate = data_loader.sample_rate if poisson else 1 / len(data_loader)
    history = [_of_the_loader(run, rate) for run in history]
    run = history[0]
    if len(history) == 1 and (run.batches == 1 or not poisson):
        how = {"sampling_rate": run.sample_rate} if poisson else _shuffled(data_loader, run.batches)
        return statement_of_training(
            num_records=num_records,
            steps=run.steps,
            noise_multiplier=run.noise_multiplier,
            delta=delta,
            format=format,
            **how,
        )
    if not poisson:
        raise ValueError(
            f"a training on shuffled batches must have one noise multiplier for a statement, not {history!r}"
        )
    released = say("released_training")
    return stated(guaranteed(_composed(history)._composition(), delta, num_records), delta, format, released)


def _of_the_loader(run: Run, rate: float) -> Run:
    """Return a run with its accumulated batches, which Opacus' accountants write as one of so many times the loader's rate."""
    recorded = run.sample_rate
    times = max(1, round(recorded / rate))
    if recorded / times < rate * (1.0 - 1e-9):
        raise ValueError(
            f"data_loader must be that of the training, whose sampling rate was {recorded!r}, not one of {rate!r}"
        )
    return run._replace(sample_rate=recorded / times, batches=run.batches * times)


def _shuffled(data_loader: Any, accumulated: int) -> dict[str, Any]:
    """Return how a loader without Poisson samples makes batches: each record at most once a pass, or it is refused."""
    if len(data_loader) % accumulated:  # a batch of the end of a pass and one of the next beginning may share a record
        raise ValueError(
            f"the {len(data_loader)} batches of a pass must be a multiple of the {accumulated} that are accumulated"
        )
    sampler: Any = data_loader.sampler
    size: int | None = data_loader.batch_size
    once = type(sampler).__name__ in ONCE_A_PASS and not getattr(sampler, "replacement", False)
    records, drop_last = len(data_loader.dataset), data_loader.drop_last
    whole = size is not None and len(data_loader) == batches_of(records, size, drop_last=drop_last)
    if size is None or not (once and whole and len(sampler) == records):
        raise ValueError(
            f"data_loader must draw Poisson samples or go through all records in batches of one size, not {data_loader!r}; "
            "to train on a part of the records, let the data set be a torch.utils.data.Subset"
        )
    return {"sampling": "shuffled", "batch_size": size * accumulated, "drop_last": drop_last}


# At rates up to 1/2 no size of a Poisson batch has a chance above 1/2 but 0, which is not counted: that 40 agree has one below 1e-12.
ENOUGH, HALF = 40, 0.5


class HockeyStickAccountant(ThreadSafe[tuple[Entry, ...]]):
    """An Opacus accountant whose epsilon is a certified upper bound.

    Attributes
    ----------
    history : list of (float, float, int)
        Noise multiplier, sampling rate, steps. All that there is: it may be replaced at will. Where the gradients of several batches
        were accumulated, their number is a fourth entry.

    Notes
    -----
    Gaussian noise on Poisson samples, add-or-remove adjacency, whatever `PrivacyEngine.make_private` was told: with
    ``poisson_sampling=False`` Opacus trains on shuffled batches, for which this is not the truth. Opacus does not tell its accountants, but
    batches do: after 40 of one size, where Poisson samples vary, the optimiser's hook gives an `ImplausibleSettingWarning`.

    The gradients of k accumulated batches are a sum over k Poisson samples, in which a record may be several times. Opacus' accountants take it for one sample
    of k times the rate, and say too little: four of rate 0.01, noise 1, 1000 steps have an epsilon of 8.900 at delta 1e-5,
    not 8.493. Opacus' engine refuses to accumulate Poisson samples unless it is told otherwise. The pieces of one batch that a
    `BatchMemoryManager` makes are one sample.

    Examples
    --------
    >>> from hockeystick import format_upper
    >>> accountant = HockeyStickAccountant()
    >>> for _ in range(1000):
    ...     accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> print(format_upper(accountant.get_epsilon(1e-5), ".3f"))
    1.829
    """

    def __init__(self) -> None:
        """Start with an empty history."""
        super().__init__(())

    @property
    def history(self) -> list[Entry]:
        """Noise multiplier, sampling rate and number of steps, run by run: a list of its own."""
        return list(self._state)

    @history.setter
    def history(self, history: Iterable[Entry]) -> None:
        history = tuple(history)
        self._change(lambda _: history)

    @classmethod
    def continuing(cls, source: Any) -> HockeyStickAccountant:
        """Return an accountant that carries on another one's history.

        Parameters
        ----------
        source : IAccountant or mapping
            One of Opacus' accountants ("rdp", "prv", "gdp") or ours, or its `state_dict`: their histories have the same meaning, if
            no batches were accumulated.

        Raises
        ------
        ValueError
            If a state lacks something or is of an unknown mechanism, or an entry of the history is outside its domain.
        TypeError
            If it has no history.

        Examples
        --------
        >>> from hockeystick import format_upper
        >>> state = {"history": [(1.0, 0.01, 1000)], "mechanism": "prv"}  # of a check point
        >>> accountant = HockeyStickAccountant.continuing(state)
        >>> accountant.step(noise_multiplier=1.0, sample_rate=0.01)
        >>> print(len(accountant), format_upper(accountant.get_epsilon(1e-5), ".3f"))
        1001 1.830
        """
        made = cls()
        if not isinstance(source, Mapping):
            if not (hasattr(source, "history") and hasattr(source, "mechanism")):
                raise TypeError(f"source must be an accountant of Opacus or its state_dict, not {shown(source)}")
            source = {"history": list(source.history), "mechanism": source.mechanism()}
        if str(source.get("mechanism")) in SAME_HISTORY:
            source = {**source, "mechanism": cls.mechanism()}
        made.load_state_dict(source)
        return made

    def step(self, *, noise_multiplier: float, sample_rate: float, batches: int = 1) -> None:
        """Record one step of the optimiser.

        Parameters
        ----------
        noise_multiplier : float
            Noise standard deviation over clip norm; 0 is no noise.
        sample_rate : float
            Probability of each record in a batch, in [0, 1].
        batches : int
            Poisson batches whose gradients are added before the noise, in [1, 1000].

        Raises
        ------
        ValueError
            If an argument is outside its domain; the history is as before.
        """
        step = Run(noise_multiplier, sample_rate, 1, batches)
        step.mechanism()  # checks it

        def longer(history: tuple[Entry, ...]) -> tuple[Entry, ...]:
            last = Run(*history[-1]) if history else None
            if last is not None and last._replace(steps=1) == step:
                return (*history[:-1], last._replace(steps=last.steps + 1).entry())
            return (*history, step.entry())

        self._change(longer)

    def get_epsilon(
        self, delta: float, alphas: Any = None, *, eps_error: float | None = None, delta_error: float | None = None
    ) -> float:
        """Return the certified upper end of epsilon.

        Parameters
        ----------
        delta : float
            In [0, 1).
        alphas, eps_error, delta_error : optional
            Taken, because other accountants of Opacus take them, and not needed.

        Returns
        -------
        float
            Infinity if a step had no noise.
        """
        del alphas, eps_error, delta_error
        return _epsilon(tuple(map(tuple, self._state)), delta)

    def accountant(self) -> Accountant:
        """Return hockeystick's accountant of this history, for brackets, trade-off functions and explanations.

        Raises
        ------
        ValueError
            If an entry of the history is outside its domain, or has no noise.
        """
        return _composed(_runs(self._state))

    def __len__(self) -> int:
        """Return the number of steps."""
        return sum(entry[2] for entry in self._state)

    @classmethod
    def mechanism(cls) -> str:
        """Return the name to register."""
        return "hockeystick"

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return what a DPOptimizer calls after each step.

        Parameters
        ----------
        sample_rate : float
            Of one batch.
        """
        sizes: list[int] = []

        def hook(optimizer: Any) -> None:
            batches = optimizer.accumulated_iterations
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=sample_rate, batches=batches)
            if len(sizes) < ENOUGH:
                sizes.append(_batch_size(optimizer))
                if len(sizes) == ENOUGH and sizes[0] > 0 and len(set(sizes)) == 1 and sample_rate <= HALF:
                    warnings.warn(
                        f"{ENOUGH} batches of {sizes[0]} records each are no Poisson samples (poisson_sampling=False?): epsilon is not that of "
                        "this training; hockeystick.accounting.shuffled_batches_epsilon_bracket and FixedSizeSampled are for batches of one size",
                        ImplausibleSettingWarning,
                        stacklevel=3,
                    )

        return hook

    def state_dict(self, destination: MutableMapping[str, Any] | None = None) -> MutableMapping[str, Any]:
        """Return the history and the name of the mechanism.

        Parameters
        ----------
        destination : mutable mapping, optional
            Where to put them.
        """
        destination = {} if destination is None else destination
        destination.update(history=copy.deepcopy(self.history), mechanism=self.mechanism())
        return destination

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the history of a state.

        Parameters
        ----------
        state_dict : mapping
            What `state_dict` returned, perhaps through JSON.

        Raises
        ------
        ValueError
            If it is empty, lacks something, is of another mechanism, or has an entry outside its domain.
        """
        if not state_dict or not {"history", "mechanism"} <= set(state_dict):
            raise ValueError(f"state_dict must have history and mechanism, not {shown(state_dict)}")
        if state_dict["mechanism"] != self.mechanism():
            raise ValueError(
                f"state_dict must be of mechanism {shown(self.mechanism())}, not {shown(state_dict['mechanism'])}"
            )
        history = _runs(state_dict["history"], "history of state_dict")
        for run in history:
            run.mechanism()  # checks it
        self.history = [run.entry() for run in history]


def _batch_size(optimizer: Any) -> int:
    """Return the number of records in the batch, 0 where the optimiser does not show it or shows its last piece alone."""
    if getattr(optimizer, "_is_last_step_skipped", False):  # with BatchMemoryManager, pieces are mostly of one size
        return 0
    try:
        return len(optimizer.grad_samples[0])
    except (AttributeError, IndexError, TypeError, ValueError):  # ghost clipping keeps no gradients of records
        return 0


@lru_cache(maxsize=256)
def _epsilon(history: tuple[Any, ...], delta: float) -> float:
    """Return epsilon, remembered by the value of the history."""
    runs = _runs(history)
    if any(run.mechanism() is None and run.sample_rate > 0 for run in runs):
        return math.inf
    return float(_composed(run for run in runs if run.noise_multiplier != 0).epsilon(delta))
