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
from typing import Any

from hockeystick._checks.setting_warnings import ImplausibleSettingWarning
from hockeystick._checks.shown import shown
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.locking import ThreadSafe
from hockeystick.interop import opacus_history
from hockeystick.interop.opacus_history import Entry, privacy_statement

__all__ = ["HockeyStickAccountant", "privacy_statement"]

SAME_HISTORY = {"rdp", "prv", "gdp"}
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
                msg = f"source must be an accountant of Opacus or its state_dict, not {shown(source)}"
                raise TypeError(msg)
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
        opacus_history.step(noise_multiplier, sample_rate, batches)

        def longer(history: tuple[Entry, ...]) -> tuple[Entry, ...]:
            last = opacus_history.read(history[-1]) if history else None
            steps = last[2] if last and (last[0], last[1], last[3]) == (noise_multiplier, sample_rate, batches) else 0
            longest = opacus_history.entry(noise_multiplier, sample_rate, steps + 1, batches)
            return (*(history[:-1] if steps else history), longest)

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
        return opacus_history.composed(list(self._state))

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
                        "this training; hockeystick.shuffled_batches_epsilon and FixedSizeSampled are for batches of one size",
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
            msg = f"state_dict must have history and mechanism, not {shown(state_dict)}"
            raise ValueError(msg)
        if state_dict["mechanism"] != self.mechanism():
            msg = f"state_dict must be of mechanism {shown(self.mechanism())}, not {shown(state_dict['mechanism'])}"
            raise ValueError(msg)
        try:
            history = [opacus_history.read(entry) for entry in state_dict["history"]]
        except (TypeError, ValueError):
            msg = f"history of state_dict must be triples of noise, rate and steps, not {shown(state_dict['history'])}"
            raise ValueError(msg) from None
        for entry in history:
            opacus_history.checked(*entry)
        self.history = [opacus_history.entry(*entry) for entry in history]


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
    if any(opacus_history.checked(*entry) is None and entry[1] > 0 for entry in map(opacus_history.read, history)):
        return math.inf
    noisy = [entry for entry in history if entry[0] != 0]
    return float(opacus_history.composed(noisy).epsilon(delta))
