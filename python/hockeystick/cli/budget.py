"""The commands ``hockeystick epsilon``, ``delta`` and ``calibrate``: what a training leaks, and what a budget allows."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hockeystick._checks import implausible
from hockeystick._core import __version__
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick.cli import arguments

if TYPE_CHECKING:
    from hockeystick.accounting.accountant import Accountant
    from hockeystick.accounting.bracket import Bracket
    from hockeystick.mechanisms.base import Adjacency

AddParser = Callable[..., argparse.ArgumentParser]

ADJACENCY: Adjacency = "add_or_remove"
OPTIONS: dict[str, tuple[Callable[[str], float], str, str]] = {
    "noise-multiplier": (arguments.positive, "S", "noise standard deviation over sensitivity, positive"),
    "sampling-rate": (
        arguments.probability,
        "Q",
        "probability of each record in a step's Poisson sample; 1 if not given",
    ),
    "steps": (arguments.count, "T", "number of steps, a positive integer"),
    "epsilon": (arguments.nonnegative, "E", "at least 0"),
    "delta": (arguments.probability, "D", "in [0, 1]"),
}
TARGETS = ("noise-multiplier", "steps", "sampling-rate")
DIGITS, WHOLE = ".8g", ".0f"  # of what is printed
JSON_NOTE = "JSON has no infinity: an infinite number is null there."


def add_query(add: AddParser, asked: str) -> None:
    """Add ``epsilon`` or ``delta``."""
    parser = add(
        asked,
        help=f"{asked} of Gaussian noise or DP-SGD after several steps",
        description=f"A certified upper bound on the {asked} of Gaussian noise composed STEPS times, on Poisson samples "
        "if a sampling rate is given; one record is added or removed.",
        epilog=JSON_NOTE,
    )
    given = "delta" if asked == "epsilon" else "epsilon"
    _add_options(parser, ("noise-multiplier", "steps", given), ("sampling-rate",))
    parser.set_defaults(handler=_query)


def add_calibrate(add: AddParser) -> None:
    """Add ``calibrate``."""
    parser = add(
        "calibrate",
        help="noise multiplier, steps or sampling rate that a budget allows",
        description="The least noise multiplier, or the most steps, or the largest sampling rate of Gaussian noise or "
        "DP-SGD whose certified epsilon at DELTA is at most EPSILON; one record is added or removed.",
        epilog="All but the target must be given; the sampling rate is 1 if not. " + JSON_NOTE,
    )
    parser.add_argument(
        "--target", choices=TARGETS, default=TARGETS[0], help="what to find; the noise multiplier by default"
    )
    _add_options(parser, ("epsilon", "delta"), TARGETS)
    parser.set_defaults(handler=_calibrate, refuse=parser.error)


def _add_options(parser: argparse.ArgumentParser, required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    for name in (*required, *optional):
        kind, letter, text = OPTIONS[name]
        parser.add_argument(f"--{name}", type=kind, required=name in required, metavar=letter, help=text)
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def _query(chosen: argparse.Namespace) -> None:
    asked, given = ("epsilon", "delta") if chosen.command == "epsilon" else ("delta", "epsilon")
    value = getattr(chosen, given)
    training = _training(chosen.noise_multiplier, chosen.sampling_rate, chosen.steps)
    bracket = _epsilon(training, value) if asked == "epsilon" else training.delta_bracket(value)
    last = implausible.no_privacy(bracket.upper) if asked == "epsilon" else implausible.eps_like_delta(value)
    _warn(chosen, last)
    if chosen.json:
        _write_json({asked: bracket.upper, given: value}, bracket, chosen, ("noise-multiplier", "steps", given))
    else:
        sys.stdout.write(
            f"{asked} = {format_upper(bracket.upper, DIGITS)} at {given} = {_shortest(value)} for {_described(chosen)}\n"
        )


def _calibrate(chosen: argparse.Namespace) -> None:
    import hockeystick.accounting.dpsgd as solve  # noqa: PLC0415

    target = chosen.target.replace("-", "_")
    needed = [name for name in TARGETS if name not in (chosen.target, "sampling-rate")]
    missing = [name for name in needed if getattr(chosen, name.replace("-", "_")) is None]
    if missing:
        chosen.refuse(f"the following arguments are required: {', '.join(f'--{name}' for name in missing)}")
    if getattr(chosen, target) is not None:
        chosen.refuse(f"argument --{chosen.target}: not allowed, since it is the target")
    rate = 1.0 if chosen.sampling_rate is None else chosen.sampling_rate
    budget = (chosen.epsilon, chosen.delta)
    if target == "noise_multiplier":
        found = float(solve.dpsgd_noise_multiplier(rate, chosen.steps, *budget))
    elif target == "steps":
        found = float(solve.dpsgd_steps(chosen.noise_multiplier, rate, *budget))
    else:
        found = float(solve.dpsgd_sampling_rate(chosen.noise_multiplier, chosen.steps, *budget))
    _warn(chosen, None)
    inputs = ("epsilon", "delta", *(name for name in TARGETS if name != chosen.target))
    bracket = _epsilon_at(chosen, target, found)
    if chosen.json:
        value = int(found) if target == "steps" and math.isfinite(found) else found
        numbers = {target: value, "epsilon": bracket.upper, "delta": chosen.delta}
        _write_json(numbers, bracket, chosen, inputs, target=target)
    else:
        # A printed multiplier is no smaller, and a printed rate no larger, than what was computed: it spends no more.
        safe = (
            format_upper(found, DIGITS)
            if target == "noise_multiplier"
            else format_lower(found, WHOLE if target == "steps" else DIGITS)
        )
        spent = f"epsilon = {format_upper(bracket.upper, DIGITS)} at delta = {_shortest(chosen.delta)}"
        sys.stdout.write(f"{target.replace('_', ' ')} = {safe}: {spent}\n")


def _warn(chosen: argparse.Namespace, last: str | None) -> None:
    """Write the first doubt about the arguments, one line; `last` is that about the answer."""
    rate, noise, steps = chosen.sampling_rate, chosen.noise_multiplier, chosen.steps
    doubts = [
        implausible.integer_rate(0) if rate == 0 else None,  # a shell divides integers
        implausible.swapped(noise, 1.0 if rate is None else rate) if noise else None,
        implausible.few_steps(rate, steps) if rate and steps else None,
        last,
    ]
    text = next((doubt for doubt in doubts if doubt), None)
    if text:
        sys.stderr.write(f"hockeystick {chosen.command}: warning: {text}\n")


def _epsilon_at(chosen: argparse.Namespace, target: str, found: float) -> Bracket:
    """Return the epsilon that is spent at the answer; where there is no limit there is nothing to compose."""
    from hockeystick.accounting.bracket import Bracket  # noqa: PLC0415

    numbers = {name: getattr(chosen, name) for name in ("noise_multiplier", "sampling_rate", "steps")} | {target: found}
    if not math.isfinite(found) or found == 0.0:
        spends_all = found == (0.0 if target == "noise_multiplier" else math.inf)
        return Bracket(0.0, chosen.epsilon if spends_all else 0.0, "no limit to find", "certified")
    return _epsilon(
        _training(numbers["noise_multiplier"], numbers["sampling_rate"], int(numbers["steps"])), chosen.delta
    )


def _training(noise_multiplier: float, sampling_rate: float | None, steps: int) -> Accountant:
    from hockeystick.accounting import Accountant  # noqa: PLC0415
    from hockeystick.mechanisms import Gaussian, PoissonSampled  # noqa: PLC0415

    step = Gaussian(noise_multiplier)
    return Accountant(ADJACENCY).compose(step if sampling_rate is None else PoissonSampled(step, sampling_rate), steps)


def _epsilon(training: Accountant, delta: float) -> Bracket:
    from hockeystick.accounting.bracket import Bracket  # noqa: PLC0415

    return Bracket(0.0, 0.0, "delta is 1", "certified") if delta == 1.0 else training.epsilon_bracket(delta)


def _described(chosen: argparse.Namespace) -> str:
    releases = f"release{'s' if chosen.steps > 1 else ''} with noise multiplier {_shortest(chosen.noise_multiplier)}"
    sampled = "" if chosen.sampling_rate is None else f" on Poisson samples of rate {_shortest(chosen.sampling_rate)}"
    return f"{chosen.steps} Gaussian {releases}{sampled}"


def _write_json(
    numbers: dict[str, float], bracket: Bracket, chosen: argparse.Namespace, inputs: tuple[str, ...], **more: Any
) -> None:
    given = {name.replace("-", "_"): getattr(chosen, name.replace("-", "_")) for name in (*inputs, "sampling-rate")}
    answer: dict[str, Any] = {name: _finite(value) for name, value in numbers.items()} | more
    answer |= {
        "bracket": {"lower": _finite(bracket.lower), "upper": _finite(bracket.upper)},
        "method": bracket.method,
        "status": bracket.status,
        "adjacency": ADJACENCY,
        "sampling": "none" if chosen.sampling_rate is None and more.get("target") != "sampling_rate" else "poisson",
        "version": __version__,
        "inputs": {name: value for name, value in given.items() if value is not None},
    }
    sys.stdout.write(json.dumps(answer, allow_nan=False) + "\n")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shortest(value: float) -> str:
    """Return all digits of what was given, so that the sentence is about no other number."""
    return repr(value).removesuffix(".0")
