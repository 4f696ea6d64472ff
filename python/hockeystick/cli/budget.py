"""The commands ``hockeystick epsilon``, ``delta`` and ``calibrate``: what a training leaks, and what a budget allows."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from hockeystick._checks import setting_warnings
from hockeystick._core import __version__
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick._numeric.search import last_whole
from hockeystick.cli import arguments, samplings

if TYPE_CHECKING:
    from hockeystick.accounting.brackets import Bracket

AddParser = Callable[..., argparse.ArgumentParser]

ADJACENCY = {
    "none": "add_or_remove",
    "poisson": "add_or_remove",
    "shuffled": "zero_out",
    "fixed": "replace",
    "unknown": "that of the sampling",
}
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
NO_ANSWER = 4  # the exit code where nothing meets the budget
FEDERATED: dict[str, tuple[Callable[[str], float], str, str]] = {
    "clients": (arguments.count, "M", "number of clients, all of which take part in every round"),
    "rounds": (arguments.count, "R", "communication rounds, a positive integer"),
    "local-steps": (arguments.count, "K", "local steps of a client in a round, a positive integer"),
    "clip-norm": (arguments.positive, "C", "norm to which each local gradient is clipped, positive"),
    "learning-rate": (arguments.positive, "ETA", "step size of the local steps, positive"),
    "noise-std": (arguments.positive, "SIGMA", "noise that each client adds to the model that it uploads, positive"),
}
FEDERATED_TARGETS = ("noise-std", "rounds", "local-steps")
MAX_COUNTS = {"rounds": 10**9, "local_steps": 10**9}
JSON_NOTE = "JSON has no infinity: an infinite number is null there."


def add_query(add: AddParser, asked: str) -> None:
    """Add ``epsilon`` or ``delta``."""
    parser = add(
        asked,
        help=f"{asked} of Gaussian noise or DP-SGD after several steps",
        description=f"A certified upper bound on the {asked} of Gaussian noise of multiplier S composed T times, on Poisson samples "
        "of rate Q or B/N if these are given; one record is added or removed. Shuffled batches and batches of fixed size: --sampling.",
        epilog=JSON_NOTE,
    )
    given = "delta" if asked == "epsilon" else "epsilon"
    _add_options(parser, ("noise-multiplier", given), ("steps", "sampling-rate"))
    samplings.add_words(parser, "how batches are made; poisson if not given; unknown is the worst of the others")
    parser.set_defaults(handler=_query, refuse=parser.error)


def add_calibrate(add: AddParser) -> None:
    """Add ``calibrate``."""
    parser = add(
        "calibrate",
        help="noise, steps, sampling rate, rounds or local steps that a budget allows",
        description="The least noise multiplier, or the most steps, or the largest sampling rate of Gaussian noise or "
        "DP-SGD whose certified epsilon at D is at most E; one record is added or removed. Or the least noise, the most rounds, or "
        "the most local steps of federated averaging. Exit code 4, with the reason, where nothing meets the budget.",
        epilog="All but the target must be given; the sampling rate is 1 if neither Q nor N and B are. " + JSON_NOTE,
    )
    targets = (*TARGETS, *FEDERATED_TARGETS)
    parser.add_argument(
        "--target", choices=targets, default=TARGETS[0], help="what to find; the noise multiplier by default"
    )
    _add_options(parser, ("epsilon", "delta"), TARGETS)
    samplings.add_words(
        parser, "how batches are made, poisson or shuffled (noise multiplier only); poisson if not given"
    )
    _add_federated(parser)
    parser.set_defaults(handler=_calibrate, refuse=parser.error)


def _add_options(parser: argparse.ArgumentParser, required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    for name in (*required, *optional):
        kind, letter, text = OPTIONS[name]
        parser.add_argument(f"--{name}", type=kind, required=name in required, metavar=letter, help=text)
    parser.add_argument("--json", action="store_true", help="write one JSON object")


def _query(chosen: argparse.Namespace) -> None:
    asked, given = ("epsilon", "delta") if chosen.command == "epsilon" else ("delta", "epsilon")
    samplings.settle(chosen)
    if chosen.steps is None:
        chosen.refuse("the following arguments are required: --steps, or --epochs with --records and --batch-size")
    value = getattr(chosen, given)
    found = samplings.brackets(chosen, samplings.Asked(asked == "epsilon", value))
    name, bracket = samplings.worst(found)
    last = setting_warnings.no_privacy(bracket.upper) if asked == "epsilon" else setting_warnings.eps_like_delta(value)
    _warn(chosen, value if asked == "epsilon" else bracket.upper, last)
    if chosen.json:
        more = {} if len(found) == 1 else {"by_sampling": {each: _finite(found[each].upper) for each in found}}
        _write_json({asked: bracket.upper, given: value}, bracket, chosen, ("noise-multiplier", "steps", given), **more)
        return
    sys.stdout.write(
        f"{asked} = {format_upper(bracket.upper, DIGITS)} at {given} = {_shortest(value)} for {_described(chosen, name)}: "
        f"a certified upper bound; {samplings.MEANT_OF[name]}\n"
    )
    if len(found) > 1:
        ends = ", ".join(f"{each} {format_upper(found[each].upper, DIGITS)}" for each in found)
        sys.stdout.write(f"how batches are made is not known, so this is the largest of: {ends}\n")


def _calibrate(chosen: argparse.Namespace) -> int:
    if chosen.target in FEDERATED_TARGETS:
        return _calibrate_federated(chosen)
    target = chosen.target.replace("-", "_")
    _settle_but(chosen, target)
    found = _solve(chosen, target)
    _warn(chosen, chosen.delta, None)
    if (found == math.inf) if target == "noise_multiplier" else (found == 0.0):
        return _nothing_meets(chosen, target)
    inputs = ("epsilon", "delta", *(name for name in TARGETS if name != chosen.target))
    bracket = _epsilon_at(chosen, target, found)
    if chosen.json:
        value = int(found) if target == "steps" and math.isfinite(found) else found
        numbers = {target: value, "epsilon": bracket.upper, "delta": chosen.delta}
        _write_json(numbers, bracket, chosen, inputs, target=target)
    else:
        _write_calibrated(chosen, target, found, bracket)
    return 0


def _settle_but(chosen: argparse.Namespace, target: str) -> None:
    """Refuse what is missing or too much beside the target, and settle the words."""
    if chosen.sampling in ("fixed", "unknown") or (chosen.sampling == "shuffled" and target != "noise_multiplier"):
        chosen.refuse(
            f"argument --sampling: must be poisson, or shuffled for the noise multiplier, not {chosen.sampling}; "
            f"try settings with hockeystick epsilon --sampling {chosen.sampling}"
        )
    for name in FEDERATED:
        if getattr(chosen, name.replace("-", "_")) is not None:
            chosen.refuse(f"argument --{name}: not allowed with --target {chosen.target}, which is of DP-SGD")
    clash = {"steps": ("steps", "epochs"), "sampling_rate": ("sampling_rate", "records", "batch_size", "epochs")}
    for name in clash.get(target, (target,)):
        if getattr(chosen, name) is not None:
            chosen.refuse(f"argument --{name.replace('_', '-')}: not allowed, since it is the target")
    if target == "sampling_rate":
        chosen.sampling = None  # a rate is that of Poisson samples
    samplings.settle(chosen)
    needed = [name for name in TARGETS if name not in (chosen.target, "sampling-rate")]
    missing = [name for name in needed if getattr(chosen, name.replace("-", "_")) is None]
    if missing:
        chosen.refuse(f"the following arguments are required: {', '.join(f'--{name}' for name in missing)}")


def _solve(chosen: argparse.Namespace, target: str) -> float:
    import hockeystick.accounting.dpsgd as solve  # noqa: PLC0415

    rate = 1.0 if chosen.sampling_rate is None else chosen.sampling_rate
    budget = (chosen.epsilon, chosen.delta)
    if target == "noise_multiplier":
        if chosen.sampling == "shuffled":  # no amplification: every pass is one release of the whole noise
            return float(solve.dpsgd_noise_multiplier(1.0, samplings.passes(chosen), *budget))
        return float(solve.dpsgd_noise_multiplier(rate, chosen.steps, *budget))
    if target == "steps":
        return float(solve.dpsgd_steps(chosen.noise_multiplier, rate, *budget))
    return float(solve.dpsgd_sampling_rate(chosen.noise_multiplier, chosen.steps, *budget))


def _nothing_meets(chosen: argparse.Namespace, target: str) -> int:
    """Say why there is no answer."""
    what = {
        "noise_multiplier": ("no finite noise multiplier meets", "with delta above 0 some noise does"),
        "steps": ("not even one step meets", "allow a larger epsilon or more noise"),
        "sampling_rate": ("no sampling rate above 0 meets", "allow a larger epsilon, more noise or fewer steps"),
    }[target]
    budget = f"epsilon = {_shortest(chosen.epsilon)} at delta = {_shortest(chosen.delta)}"
    names = [name.replace("-", "_") for name in TARGETS if name != chosen.target]
    known = [(name, getattr(chosen, name)) for name in names]
    settings = ", ".join(f"{name.replace('_', ' ')} {_shortest(value)}" for name, value in known if value is not None)
    sys.stderr.write(f"hockeystick calibrate: {what[0]} {budget} with {settings}; {what[1]}\n")
    return NO_ANSWER


def _write_calibrated(chosen: argparse.Namespace, target: str, found: float, bracket: Bracket) -> None:
    """Write the answer, the epsilon that it spends, and all that it is the answer for."""
    # A printed multiplier is no smaller, and a printed rate no larger, than what was computed: it spends no more.
    safe = (
        format_upper(found, DIGITS)
        if target == "noise_multiplier"
        else format_lower(found, WHOLE if target == "steps" else DIGITS)
    )
    shown = argparse.Namespace(**vars(chosen) | {target: safe})
    limit = found in (0.0, math.inf)
    said = f"{target.replace('_', ' ')} = {safe}{' (no limit)' if limit else ''}"
    kind = samplings.kind(shown)
    sys.stdout.write(
        f"{said}: epsilon = {format_upper(bracket.upper, DIGITS)} at delta = {_shortest(chosen.delta)} for "
        f"{_described(shown, kind)}: a certified upper bound; {samplings.MEANT_OF[kind]}\n"
    )


def _warn(chosen: argparse.Namespace, delta: float, last: str | None) -> None:
    """Write the first doubt about the arguments and the delta, given or found; `last` is that about the answer."""
    rate, noise, steps = chosen.sampling_rate, chosen.noise_multiplier, chosen.steps
    arguments.tell(
        chosen,
        setting_warnings.integer_rate(0) if rate == 0 else None,  # a shell divides integers
        setting_warnings.swapped(noise, 1.0 if rate is None else rate) if noise else None,
        setting_warnings.few_steps(rate, steps) if rate and steps else None,
        setting_warnings.large_delta(delta, chosen.records),
        last,
    )


def _epsilon_at(chosen: argparse.Namespace, target: str, found: float) -> Bracket:
    """Return the epsilon that is spent at the answer; where there is no limit there is nothing to compose."""
    from hockeystick.accounting.brackets import Bracket  # noqa: PLC0415 - imports are paid for when needed

    numbers = {name: getattr(chosen, name) for name in ("noise_multiplier", "sampling_rate", "steps")} | {target: found}
    if not math.isfinite(found) or found == 0.0:
        spends_all = found == (0.0 if target == "noise_multiplier" else math.inf)
        return Bracket(0.0, chosen.epsilon if spends_all else 0.0, "no limit to find", "certified")
    asked = argparse.Namespace(**vars(chosen) | numbers | {"steps": int(numbers["steps"])})
    return samplings.worst(samplings.brackets(asked, samplings.Asked(True, chosen.delta)))[1]


def _described(chosen: argparse.Namespace, kind: str) -> str:
    noise = f"with noise multiplier {_shortest(chosen.noise_multiplier)}"
    if kind == "shuffled":
        passes = samplings.passes(chosen)
        return f"{passes} pass{'es' if passes > 1 else ''} over shuffled batches {noise}"
    releases = f"{chosen.steps} Gaussian release{'' if chosen.steps == 1 else 's'} {noise}"
    if kind == "fixed":
        return f"{releases} on batches of exactly {chosen.batch_size} of {chosen.records} records"
    return releases + (f" on Poisson samples of rate {_shortest(chosen.sampling_rate)}" if kind == "poisson" else "")


def _write_json(
    numbers: dict[str, float], bracket: Bracket, chosen: argparse.Namespace, inputs: tuple[str, ...], **more: Any
) -> None:
    words = ("sampling-rate", "records", "batch-size", "epochs", "drop-last")
    given = {name.replace("-", "_"): getattr(chosen, name.replace("-", "_")) for name in (*inputs, *words)}
    kind = "poisson" if more.get("target") == "sampling_rate" else samplings.kind(chosen)
    answer: dict[str, Any] = {name: _finite(value) for name, value in numbers.items()} | more
    answer |= {
        "bracket": {"lower": _finite(bracket.lower), "upper": _finite(bracket.upper)},
        "method": bracket.method,
        "status": bracket.status,
        "adjacency": ADJACENCY[kind],
        "sampling": kind,
        "version": __version__,
        "inputs": {name: value for name, value in given.items() if value is not None and value is not False},
    }
    sys.stdout.write(json.dumps(answer, allow_nan=False) + "\n")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shortest(value: float | str) -> str:
    """Return all digits of what was given, so that the sentence is about no other number; text stays."""
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def _add_federated(parser: argparse.ArgumentParser) -> None:
    """Add what is known of federated averaging."""
    group = parser.add_argument_group(
        "federated averaging",
        "with one of the targets noise-std, rounds and local-steps: clients clip each local gradient to C and add noise to the model that "
        "they upload; steps of constant size, only the last model is seen, one record of one client is replaced. Nothing need be convex.",
    )
    for name, (kind, letter, text) in FEDERATED.items():
        group.add_argument(f"--{name}", type=kind, metavar=letter, help=text)


def _calibrate_federated(chosen: argparse.Namespace) -> int:
    """Find the target, and write it with the epsilon that it spends."""
    target = chosen.target.replace("-", "_")
    given = _given_federated(chosen, target)
    if not 0 < chosen.delta < 1:
        chosen.refuse(f"argument --delta: must be in (0, 1) for {chosen.target}, not {chosen.delta}")
    spent = partial(_federated_epsilon, chosen.delta, given, target)
    if target == "noise_std":
        found: float = _least_noise(lambda noise: spent(noise) - chosen.epsilon)
    else:
        found = last_whole(lambda count: spent(int(count)) - chosen.epsilon, MAX_COUNTS[target])
    if found == 0 or not math.isfinite(found):
        words = ", ".join(f"{name.replace('_', ' ')} {value!r}" for name, value in given.items())
        least = "not one step" if target == "local_steps" else "not one round" if target == "rounds" else "no noise"
        sys.stderr.write(
            f"hockeystick calibrate: {least} meets epsilon = {chosen.epsilon!r} at delta = {chosen.delta!r} for {words}; "
            "allow a larger epsilon, or more noise or clients, or smaller steps\n"
        )
        return NO_ANSWER
    _write_federated(chosen, target, given | {target: found}, spent(found))
    return 0


def _given_federated(chosen: argparse.Namespace, target: str) -> dict[str, float]:
    """Return the settings but the target; what is missing or too much is refused."""
    names = [name.replace("-", "_") for name in FEDERATED]
    missing = [name for name in names if name != target and getattr(chosen, name) is None]
    if missing:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        chosen.refuse(f"the following arguments are required: {listed}")
    if getattr(chosen, target) is not None:
        chosen.refuse(f"argument --{chosen.target}: not allowed, since it is the target")
    others = ("noise_multiplier", "steps", "sampling_rate", "records", "batch_size", "epochs", "sampling")
    for name in others:
        if getattr(chosen, name) is not None:
            chosen.refuse(f"argument --{name.replace('_', '-')}: not allowed with --target {chosen.target}")
    return {name: getattr(chosen, name) for name in names if name != target}


def _federated_epsilon(delta: float, given: dict[str, float], target: str, value: float) -> float:
    from hockeystick.federated import fedavg_epsilon  # noqa: PLC0415 - imports are paid for by this command only

    settings = given | {target: value}
    settings["num_clients"] = settings.pop("clients")
    # Steps of constant size on an unbounded domain: the smoothness does not matter.
    return float(fedavg_epsilon(delta, smoothness=0.0, **settings))  # type: ignore[arg-type]


def _least_noise(excess: Callable[[float], float]) -> float:
    """Return the least noise, to 1e-12, at which the excess was computed and is not positive; infinity if there is none."""
    good = 1.0
    while excess(good) > 0.0:
        good *= 2.0
        if good > 1e150:
            return math.inf
    bad = 0.5 * good
    while excess(bad) <= 0.0:
        good, bad = bad, 0.5 * bad
        if bad < 1e-150:
            return good
    while good - bad > 1e-12 * good:
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if excess(middle) <= 0.0 else (good, middle)
    return good


def _write_federated(chosen: argparse.Namespace, target: str, settings: dict[str, float], epsilon: float) -> None:
    if chosen.json:
        answer = {
            "target": target,
            target: settings[target],
            "epsilon": epsilon,
            "delta": chosen.delta,
            "status": "certified",
            "adjacency": "replace",
            "algorithm": "federated averaging, last model",
            "version": __version__,
            "inputs": {"epsilon": chosen.epsilon} | {name: value for name, value in settings.items() if name != target},
        }
        sys.stdout.write(json.dumps(answer, allow_nan=False) + "\n")
        return
    # A printed noise is no smaller than what was computed: it spends no more.
    shown = format_upper(settings[target], DIGITS) if target == "noise_std" else f"{int(settings[target])}"
    rest = ", ".join(f"{name.replace('_', ' ')} {value!r}" for name, value in settings.items() if name != target)
    sys.stdout.write(
        f"{target.replace('_', ' ')} = {shown}: epsilon = {format_upper(epsilon, DIGITS)} at delta = {chosen.delta!r} for federated "
        f"averaging, {rest}: a certified upper bound; one record is replaced, only the last model is seen\n"
    )
