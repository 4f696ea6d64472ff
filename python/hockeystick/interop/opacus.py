"""Opacus: our accountant in the shape of its `IAccountant`; neither Opacus nor torch is imported.

.. code-block:: python

    from opacus.accountants import register_accountant
    register_accountant("hockeystick", HockeyStickAccountant)
    engine = PrivacyEngine(accountant="hockeystick")  # get_noise_multiplier(..., accountant="hockeystick") likewise

The name must be "hockeystick": the engine asks the accountant for it when it calibrates.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any

from hockeystick._checks import count_scalar
from hockeystick._checks.implausible import ImplausibleSettingWarning
from hockeystick.accounting.accountant import Accountant
from hockeystick.accounting.turns import LOCK, Shared
from hockeystick.mechanisms import Gaussian, PoissonSampled

__all__ = ["HockeyStickAccountant"]

SAME_HISTORY = {"rdp", "prv", "gdp"}
# At rates up to 1/2 no size of a Poisson batch has a chance above 1/2 but 0, which is not counted: that 40 agree has one below 1e-12.
ENOUGH, HALF = 40, 0.5


class HockeyStickAccountant(Shared):
    """An Opacus accountant whose epsilon is a certified upper bound.

    Attributes
    ----------
    history : list of (float, float, int)
        Noise multiplier, sampling rate, steps. All that there is: it may be replaced at will.

    Notes
    -----
    Gaussian noise on Poisson samples, add-or-remove adjacency, whatever `PrivacyEngine.make_private` was told: with
    ``poisson_sampling=False`` Opacus trains on shuffled batches, for which this is not the truth. Opacus does not tell its accountants, but
    batches do: after 40 of one size, where Poisson samples vary, the optimiser's hook gives an `ImplausibleSettingWarning`.

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
        self.history: list[tuple[float, float, int]] = []

    @classmethod
    def continuing(cls, source: Any) -> HockeyStickAccountant:
        """Return an accountant that carries on another one's history.

        Parameters
        ----------
        source : IAccountant or mapping
            One of Opacus' accountants ("rdp", "prv", "gdp") or ours, or its `state_dict`: their histories have the same meaning.

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
                msg = f"source must be an accountant of Opacus or its state_dict, not {source!r}"
                raise TypeError(msg)
            source = {"history": list(source.history), "mechanism": source.mechanism()}
        if str(source.get("mechanism")) in SAME_HISTORY:
            source = {**source, "mechanism": cls.mechanism()}
        made.load_state_dict(source)
        return made

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one step of the optimiser.

        Parameters
        ----------
        noise_multiplier : float
            Noise standard deviation over clip norm; 0 is no noise.
        sample_rate : float
            Probability of each record, in [0, 1].

        Raises
        ------
        ValueError
            If an argument is outside its domain; the history is as before.
        """
        _step(noise_multiplier, sample_rate)
        with self._change():
            if self.history and tuple(self.history[-1][:2]) == (noise_multiplier, sample_rate):
                self.history[-1] = (noise_multiplier, sample_rate, self.history[-1][2] + 1)
            else:
                self.history.append((noise_multiplier, sample_rate, 1))

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
        return _epsilon(tuple(map(tuple, self._entries())), delta)

    def accountant(self) -> Accountant:
        """Return hockeystick's accountant of this history, for brackets, trade-off functions and explanations.

        Raises
        ------
        ValueError
            If an entry of the history is outside its domain, or has no noise.
        """
        return _composed(self._entries())

    def __len__(self) -> int:
        """Return the number of steps."""
        return sum(steps for _, _, steps in self._entries())

    def _entries(self) -> list[tuple[float, float, int]]:
        """Return the history, between two changes."""
        with LOCK:
            return list(self.history)

    @classmethod
    def mechanism(cls) -> str:
        """Return the name to register."""
        return "hockeystick"

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return what a DPOptimizer calls after each step.

        Parameters
        ----------
        sample_rate : float
            Of one batch; accumulated batches count as one larger one.
        """
        sizes: list[int] = []

        def hook(optimizer: Any) -> None:
            rate = sample_rate * optimizer.accumulated_iterations
            self.step(noise_multiplier=optimizer.noise_multiplier, sample_rate=rate)
            if len(sizes) < ENOUGH:
                sizes.append(_batch_size(optimizer))
                if len(sizes) == ENOUGH and sizes[0] > 0 and len(set(sizes)) == 1 and rate <= HALF:
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
        destination.update(history=copy.deepcopy(self._entries()), mechanism=self.mechanism())
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
            msg = f"state_dict must have history and mechanism, not {state_dict!r}"
            raise ValueError(msg)
        if state_dict["mechanism"] != self.mechanism():
            msg = f"state_dict must be of mechanism {self.mechanism()!r}, not {state_dict['mechanism']!r}"
            raise ValueError(msg)
        try:
            history = [(noise, rate, steps) for noise, rate, steps in state_dict["history"]]
        except (TypeError, ValueError):
            msg = f"history of state_dict must be triples of noise, rate and steps, not {state_dict['history']!r}"
            raise ValueError(msg) from None
        for entry in history:
            _checked(*entry)
        with self._change():
            self.history = history


def _batch_size(optimizer: Any) -> int:
    """Return the number of records in the batch, 0 where the optimiser does not show it or shows its last piece alone."""
    if getattr(optimizer, "_is_last_step_skipped", False):  # with BatchMemoryManager, pieces are mostly of one size
        return 0
    try:
        return len(optimizer.grad_samples[0])
    except (AttributeError, IndexError, TypeError, ValueError):  # ghost clipping keeps no gradients of records
        return 0


def _step(noise_multiplier: float, sample_rate: float) -> PoissonSampled | None:
    """Return one step as a mechanism, or None if it has no noise."""
    sampled = PoissonSampled(Gaussian(noise_multiplier if noise_multiplier != 0 else 1.0), sample_rate)
    return sampled if noise_multiplier != 0 else None


def _checked(noise_multiplier: float, sample_rate: float, steps: int) -> PoissonSampled | None:
    """Return the step of an entry, after checking how often it was made."""
    count_scalar("steps", steps)
    return _step(noise_multiplier, sample_rate)


def _composed(history: Any) -> Accountant:
    accountant = Accountant()
    for noise_multiplier, sample_rate, steps in history:
        mechanism = _checked(noise_multiplier, sample_rate, steps)
        if mechanism is None:
            msg = "history must have noise in every step, to be composed"
            raise ValueError(msg)
        accountant.compose(mechanism, steps)
    return accountant


@lru_cache(maxsize=256)
def _epsilon(history: tuple[tuple[float, float, int], ...], delta: float) -> float:
    """Return epsilon, remembered by the value of the history."""
    if any(_checked(noise, rate, steps) is None and rate > 0 for noise, rate, steps in history):
        return math.inf
    noisy = [entry for entry in history if entry[0] != 0]
    return float(_composed(noisy).epsilon(delta))
