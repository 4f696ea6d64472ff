"""Settings that are legal and that nearly nobody means: a check for each, and the warning that tells of it.

Each check returns the text of its warning, or None. A function runs those that concern it and gives all results to `warn`,
which warns of the first: at most once a call, and only where the caller is the user and not this package. The texts and their
limits are in doubts.json, which the explorer page of the site reads, too.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ImplausibleSettingWarning"]

WarningText: TypeAlias = "str | None"
Cells: TypeAlias = "NDArray[np.float64] | float"

PACKAGE = str(Path(__file__).parents[1])
DOORS = str(Path(__file__).with_name("doors.py"))
TEXTS: dict[str, Any] = json.loads(Path(__file__).with_name("doubts.json").read_text(encoding="utf-8"))
NO_PRIVACY: float = TEXTS["no_privacy_above"]  # an epsilon: e^100 is a likelihood ratio that excludes nothing
# Trainings have multipliers of 0.3 to 20; noise of the sum, taken for that of the mean, gives hundreds.
LARGE_MULTIPLIER: float = TEXTS["large_multiplier_above"]
# No training has noise so low and a rate so high; a rate in place of a multiplier and the converse have.
LOW_NOISE: float = TEXTS["low_noise_below"]
HIGH_RATE: float = TEXTS["high_rate_from"]
LIKE_A_DELTA: float = TEXTS["like_a_delta_to"]  # nobody asks for the delta of so small an epsilon, except for that of 0


class ImplausibleSettingWarning(UserWarning):
    """A setting is in its domain, and is probably a mistake; the text names the likely one.

    It comes at most once a call, with the number of cells concerned where there are several. What is returned is the right
    answer to the question that was asked. Where the question is meant, silence it:
    ``warnings.simplefilter("ignore", hs.ImplausibleSettingWarning)``.

    Notes
    -----
    The settings, and what is probably meant:

    - in most cells, a sampling rate that is the *integer* 0: ``batch_size // num_records`` for ``batch_size / num_records``;
    - in most cells, a noise multiplier below 0.2 with a sampling rate from 0.3 up: the two were swapped;
    - in most cells, an epsilon above 100 from `dpsgd_epsilon`: no privacy;
    - fewer steps than one pass over the data takes (single numbers only): epochs in place of steps;
    - an epsilon in (0, 1e-4] given to `delta`: it is a delta, meant for `epsilon`;
    - a noise multiplier above 50 from `dpsgd_parameters` or `federated_parameters` with ``noise_on="mean"`` on part of the
      data: the noise is that of the sum;
    - a delta of at least 1/N, where a mechanism, a training or a plan says that there are N records.

    Examples
    --------
    >>> import warnings
    >>> import hockeystick as hs
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     epsilon = hs.dpsgd_epsilon(1.0, 256 // 60_000, 3000, 1e-5)
    >>> print(epsilon, caught[0].category.__name__)
    0.0 ImplausibleSettingWarning
    """

    __module__ = __name__.partition(".")[0]  # where users find it


def warn(*doubts: WarningText, skip: int = 0) -> None:
    """Warn of the first doubt at the line that called our caller, `skip` frames further up, if that is not this package's."""
    if not any(doubts):
        return
    text = next(filter(None, doubts))
    skip += sys._getframe(2 + skip).f_code.co_filename == DOORS  # the user called that, and that our caller
    if not sys._getframe(2 + skip).f_code.co_filename.startswith(PACKAGE):
        warnings.warn(text, ImplausibleSettingWarning, stacklevel=3 + skip)


def dpsgd(
    given: ArrayLike, rates: Cells, steps: Cells, noise_multiplier: Cells | None = None
) -> tuple[WarningText, ...]:
    """Return the doubts about the arguments of DP-SGD, with the rate also as it was given; the noise may be what is asked for."""
    exchanged = None if noise_multiplier is None else swapped(noise_multiplier, rates)
    return integer_rate(given), exchanged, few_steps(rates, steps)


def _cells(values: ArrayLike) -> Any:
    """Return numbers as an array, and a single one as NumPy's number, for which it takes a tenth of the time."""
    return values if isinstance(values, np.float64) else np.asarray(values)[()]


def integer_rate(sampling_rate: ArrayLike) -> WarningText:
    """Return a warning of a rate, as it was given, that is the integer 0."""
    if isinstance(sampling_rate, float):  # most are, and need no array
        return None
    given = np.asarray(sampling_rate)
    if given.dtype.kind not in "iu":
        return None
    return _warning_for_most("integer_rate", given == 0)


def swapped(noise_multiplier: Cells, sampling_rate: Cells) -> WarningText:
    """Return a warning of a noise multiplier that is as small as rates are, with a rate that is as large as multipliers are."""
    low = _cells(noise_multiplier) < LOW_NOISE
    if low is np.False_ or not low.any():
        return None
    cells = low & (sampling_rate >= HIGH_RATE)
    return _warning_for_most("swapped", cells, low=LOW_NOISE, high=HIGH_RATE)


def few_steps(sampling_rate: Cells, steps: Cells) -> WarningText:
    """Return a warning of fewer steps than a pass takes. Of arrays nothing is said: curves over the steps begin with few."""
    count, rate = _cells(steps), _cells(sampling_rate)
    if count.ndim or rate.ndim or rate == 0:
        return None
    one_pass = 1.0 / float(rate)  # infinity at the smallest rates, of which NumPy's floats would warn
    if not 1 <= count <= one_pass - 1:
        return None
    return str(TEXTS["few_steps"]).format_map({"steps": f"{float(count):g}", "pass": f"{one_pass:.6g}"})


def no_privacy(epsilon: Cells) -> WarningText:
    """Return a warning of an epsilon that is finite and says nothing."""
    large = _cells(epsilon) > NO_PRIVACY
    if large is np.False_ or not large.any():
        return None
    return _warning_for_most("no_privacy", large & np.isfinite(epsilon), most=f"{NO_PRIVACY:g}")


def _warning_for_most(name: str, cells: Any, **limits: object) -> WarningText:
    """Return a warning where it is so in most cells: a grid may have a corner that nobody means."""
    return _warning_for(name, cells, **limits) if 2 * np.count_nonzero(cells) > np.size(cells) else None


def epsilon_like_delta(epsilon: ArrayLike) -> WarningText:
    """Return a warning of a single epsilon that looks like a delta."""
    asked = _cells(epsilon)
    if asked.ndim or not 0 < asked <= LIKE_A_DELTA:
        return None
    return str(TEXTS["epsilon_like_delta"]).format(epsilon=f"{float(asked):g}")


def noise_of_mean(noise_multiplier: float, noise_std: float, batch: tuple[str, int], population: int) -> WarningText:
    """Return a warning of a large multiplier that comes from noise on a mean of part of the data."""
    name, size = batch
    if not (noise_multiplier > LARGE_MULTIPLIER and size < population):
        return None
    settings = {"std": f"{noise_std:g}", "name": name, "size": size}
    found = {"multiplier": f"{noise_multiplier:g}", "most": f"{LARGE_MULTIPLIER:g}"}
    return str(TEXTS["noise_of_mean"]).format(**settings, **found)


def is_large(delta: ArrayLike, population: Cells | int) -> NDArray[np.bool_]:
    """Tell whether publishing one of so many records at random has such a delta. Statements and commands ask this, too."""
    return np.asarray(np.asarray(delta) >= 1.0 / np.asarray(population))


def large_delta(delta: ArrayLike, population: Cells | int | None) -> WarningText:
    """Return a warning of a delta that `is_large`; there is no doubt if the number of records is unknown."""
    if population is None:
        return None
    large = is_large(delta, population)
    if not large.any():
        return None
    least = int(np.min(np.broadcast_to(population, large.shape)[large]))
    return _warning_for("large_delta", large, population=least)


def _warning_for(name: str, cells: NDArray[np.bool_] | np.bool_ | bool, **values: object) -> WarningText:
    """Return the text of a doubt about some cells, None if there are none."""
    concerned = int(np.count_nonzero(cells))
    if not concerned:
        return None
    where = str(TEXTS["where"]).format(concerned=concerned, cells=np.size(cells)) if np.ndim(cells) else ""
    what, likely = (TEXTS[name][part].format(**values) for part in ("what", "likely"))
    return str(TEXTS["told"]).format(what=what, where=where, likely=likely)
