"""The commands ``hockeystick epsilon``, ``delta``, ``statement`` and ``calibrate``: what a training leaks, and what a budget allows."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from hockeystick._checks import setting_warnings
from hockeystick._core import __version__
from hockeystick._numeric.printing import format_lower, format_upper
from hockeystick._numeric.search import last_whole, smallest_feasible
from hockeystick.cli import arguments, correlated, samplings

if TYPE_CHECKING:
    from hockeystick.accounting.brackets import Bracket

ADJACENCY = {
    "none": "add_or_remove",
    "poisson": "add_or_remove",
    "shuffled": "zero_out",
    "fixed": "replace",
    "correlated": "zero_out",
    "unknown": "that of the sampling",
}
TARGETS = ("noise_multiplier", "steps", "sampling_rate")
FEDERATED_TARGETS = ("noise_std", "rounds", "local_steps")
WORDS = ("sampling_rate", "num_records", "batch_size", "epochs", "drop_last")
INPUTS = (*WORDS, *samplings.OF_CLIENTS, *correlated.OPTIONS)
FEDERATED = ("num_clients", "rounds", "local_steps", "clip_norm", "learning_rate", "noise_std")
DIGITS, WHOLE = ".8g", ".0f"  # of what is printed
NO_ANSWER = 4  # the exit code where nothing meets the budget
MAX_COUNT = 10**9  # of rounds and local steps


def query(chosen: argparse.Namespace) -> None:
    """Write epsilon at a delta, or delta at an epsilon."""
    asked, given = ("epsilon", "delta") if chosen.command == "epsilon" else ("delta", "epsilon")
    samplings.settle(chosen)
    value = getattr(chosen, given)
    found = samplings.brackets(chosen, asked, value)
    name, bracket = samplings.worst(found)
    written = samplings.certify(chosen, **{given: value})
    last = (
        setting_warnings.no_privacy(bracket.upper) if asked == "epsilon" else setting_warnings.epsilon_like_delta(value)
    )
    _warn(chosen, value if asked == "epsilon" else bracket.upper, last)
    if chosen.json:
        more = {} if len(found) == 1 else {"by_sampling": {each: _finite(found[each].upper) for each in found}}
        answer = {asked: _finite(bracket.upper), given: value} | more | _proof(chosen, bracket, samplings.kind(chosen))
        _write_json(chosen, answer | written, ("noise_multiplier", "steps", given, *INPUTS))
        return
    sys.stdout.write(
        f"{asked} = {format_upper(bracket.upper, DIGITS)} at {given} = {_shortest(value)} for {_described(chosen, name)}: "
        f"a certified upper bound; {samplings.meant(chosen, name)}\n"
    )
    if len(found) > 1:
        ends = ", ".join(f"{each} {format_upper(found[each].upper, DIGITS)}" for each in found)
        sys.stdout.write(f"how batches are made is not known, so this is the largest of: {ends}\n")


def statement(chosen: argparse.Namespace) -> None:
    """Write a privacy statement."""
    from hockeystick.training import privacy_statement  # noqa: PLC0415

    arguments.tell(chosen, setting_warnings.large_delta(chosen.delta, chosen.num_records or chosen.num_clients))
    if correlated.is_asked(chosen) or any(getattr(chosen, name) is not None for name in samplings.OF_CLIENTS):
        arguments.refuse(chosen, ["clip_norm"], "not allowed for clients, or with --strategy")
        samplings.settle(chosen)
        with warnings.catch_warnings():  # said above, in one line
            warnings.simplefilter("ignore", setting_warnings.ImplausibleSettingWarning)
            text = samplings.accountant(chosen, samplings.kind(chosen)).statement(chosen.delta, format=chosen.format)
        sys.stdout.write(text + "\n")
        return
    arguments.require(chosen, ("num_records",))
    if (chosen.epochs is None) == (chosen.steps is None):
        chosen.refuse("exactly one of --epochs and --steps must be given")
    names = ("steps", "noise_multiplier", "clip_norm", "delta", "format", "certificate", *WORDS)
    settings = {name: getattr(chosen, name) for name in names}
    sys.stdout.write(privacy_statement(sampling=chosen.sampling or "poisson", **settings) + "\n")


def calibrate(chosen: argparse.Namespace) -> int:
    """Write the noise, or what else is asked for, that a budget allows."""
    target = chosen.target.replace("-", "_")
    if chosen.clients_per_round is not None:
        if target not in ("noise_multiplier", "rounds"):
            chosen.refuse(
                f"argument --target: must be noise-multiplier or rounds with --clients-per-round, not {chosen.target}"
            )
        if chosen.sampling == "fixed":
            chosen.refuse(
                "argument --sampling: must be poisson to calibrate; try settings with hockeystick epsilon --sampling fixed"
            )
        arguments.refuse(chosen, [target], "not allowed, since it is the target")
        return _calibrate_dpsgd(chosen, "steps" if target == "rounds" else target)
    return (_calibrate_federated if target in FEDERATED_TARGETS else _calibrate_dpsgd)(chosen, target)


def _calibrate_dpsgd(chosen: argparse.Namespace, target: str) -> int:
    _settle_but(chosen, target)
    found = _solve(chosen, target)
    _warn(chosen, chosen.delta, None)
    if (found == math.inf) if target == "noise_multiplier" else (found == 0.0):
        return _nothing_meets(chosen, target)
    bracket, written = _epsilon_at(chosen, target, found)
    if chosen.json:
        value = int(found) if target == "steps" and math.isfinite(found) else found
        kind = "poisson" if target == "sampling_rate" else samplings.kind(chosen)
        name = _name(chosen, target)
        answer = {"target": name, name: _finite(value), "epsilon": bracket.upper, "delta": chosen.delta}
        inputs = (name for name in ("epsilon", "delta", *TARGETS, *INPUTS) if name != target)
        _write_json(chosen, answer | _proof(chosen, bracket, kind) | written, inputs)
    else:
        _write_calibrated(chosen, target, found, bracket)
    return 0


def _name(chosen: argparse.Namespace, target: str) -> str:
    """Return what the person calls a target: steps of clients are rounds."""
    return "rounds" if target == "steps" and chosen.clients_per_round is not None else target


def _settle_but(chosen: argparse.Namespace, target: str) -> None:
    """Refuse what is missing or too much beside the target, and settle the words."""
    if chosen.sampling in ("fixed", "unknown") or (chosen.sampling == "shuffled" and target != "noise_multiplier"):
        chosen.refuse(
            f"argument --sampling: must be poisson, or shuffled for the noise multiplier, not {chosen.sampling}; "
            f"try settings with hockeystick epsilon --sampling {chosen.sampling}"
        )
    reason = f"not allowed with --target {chosen.target}"
    if chosen.clients_per_round is None:
        arguments.refuse(chosen, samplings.OF_CLIENTS, f"{reason} without --clients-per-round")
    others = [name for name in FEDERATED if name not in samplings.OF_CLIENTS]
    arguments.refuse(chosen, others, f"{reason}, which is of DP-SGD")
    arguments.refuse(chosen, ["strategy"] * (target != "noise_multiplier"), reason)
    clash = {"steps": ("steps", "epochs"), "sampling_rate": ("sampling_rate", "num_records", "batch_size", "epochs")}
    arguments.refuse(chosen, clash.get(target, (target,)), "not allowed, since it is the target")
    if target == "sampling_rate":
        chosen.sampling = None  # a rate is that of Poisson samples
    samplings.settle(chosen, needs_steps=False)
    if chosen.clients_per_round is not None and target != "steps":
        arguments.require(chosen, ["rounds"])
    arguments.require(chosen, [name for name in TARGETS if name not in (target, "sampling_rate")])


def _solve(chosen: argparse.Namespace, target: str) -> float:
    import hockeystick.accounting.dpsgd as solve  # noqa: PLC0415

    if correlated.is_asked(chosen):

        def excess(noise: float) -> float:
            return (
                float(correlated.guarantee(chosen, noise).epsilon(chosen.delta)) - chosen.epsilon if noise else math.inf
            )

        return smallest_feasible(excess, most=1e9, tolerance=1e-6)
    rate = 1.0 if chosen.sampling_rate is None else chosen.sampling_rate
    budget = (chosen.epsilon, chosen.delta)
    if target == "noise_multiplier":
        if chosen.sampling == "shuffled":  # no amplification: every pass is one release of the whole noise
            return float(solve.dpsgd_noise_multiplier(1.0, samplings.batches(chosen).passes, *budget))
        return float(solve.dpsgd_noise_multiplier(rate, chosen.steps, *budget))
    if target == "steps":
        return float(solve.dpsgd_steps(chosen.noise_multiplier, rate, *budget))
    return float(solve.dpsgd_sampling_rate(chosen.noise_multiplier, chosen.steps, *budget))


def _nothing_meets(chosen: argparse.Namespace, target: str) -> int:
    """Say why there is no answer."""
    what, instead = {
        "noise_multiplier": ("no finite noise multiplier meets", "with delta above 0 some noise does"),
        "steps": (
            f"not even one {'round' if chosen.clients_per_round else 'step'} meets",
            "allow a larger epsilon or more noise",
        ),
        "sampling_rate": ("no sampling rate above 0 meets", "allow a larger epsilon, more noise or fewer steps"),
    }[target]
    known = {name: getattr(chosen, name) for name in TARGETS if name != target}
    return _say_none(chosen, what, {name: value for name, value in known.items() if value is not None}, instead)


def _say_none(chosen: argparse.Namespace, what: str, settings: dict[str, float], instead: str) -> int:
    budget = f"epsilon = {_shortest(chosen.epsilon)} at delta = {_shortest(chosen.delta)}"
    sys.stderr.write(f"hockeystick calibrate: {what} {budget} with {_listed(settings)}; {instead}\n")
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
    limit = " (no limit)" if found in (0.0, math.inf) else ""
    kind = samplings.kind(shown)
    sys.stdout.write(
        f"{_name(chosen, target).replace('_', ' ')} = {safe}{limit}: epsilon = {format_upper(bracket.upper, DIGITS)} at "
        f"delta = {_shortest(chosen.delta)} for {_described(shown, kind)}: a certified upper bound; {samplings.meant(chosen, kind)}\n"
    )


def _warn(chosen: argparse.Namespace, delta: float, last: str | None) -> None:
    """Write the first doubt about the arguments and the delta, given or found; `last` is that about the answer."""
    rate, noise, steps = chosen.sampling_rate, chosen.noise_multiplier, chosen.steps
    arguments.tell(
        chosen,
        setting_warnings.integer_rate(0) if rate == 0 else None,  # a shell divides integers
        setting_warnings.swapped(noise, 1.0 if rate is None else rate) if noise else None,
        setting_warnings.few_steps(rate, steps) if rate and steps else None,
        setting_warnings.large_delta(delta, chosen.num_records or getattr(chosen, "num_clients", None)),
        last,
    )


def _epsilon_at(chosen: argparse.Namespace, target: str, found: float) -> tuple[Bracket, dict[str, str]]:
    """Return the epsilon that is spent at the answer, and what certificate was written of it; where there is no limit there is nothing to compose."""
    from hockeystick.accounting.brackets import Bracket  # noqa: PLC0415 - imports are paid for when needed

    if not math.isfinite(found) or found == 0.0:
        arguments.refuse(chosen, ["certificate", "slack"], f"there is nothing to certify, since {target} has no limit")
        spends_all = found == (0.0 if target == "noise_multiplier" else math.inf)
        return Bracket(0.0, chosen.epsilon if spends_all else 0.0, "no limit to find", "certified"), {}
    asked = argparse.Namespace(**vars(chosen) | {target: int(found) if target == "steps" else found})
    bracket = samplings.worst(samplings.brackets(asked, "epsilon", chosen.delta))[1]
    return bracket, samplings.certify(asked, delta=chosen.delta)


def _described(chosen: argparse.Namespace, kind: str) -> str:
    noise = f"with noise multiplier {_shortest(chosen.noise_multiplier)}"
    if kind == "correlated":
        return f"{chosen.steps} steps with noise correlated by a {chosen.strategy} strategy, {chosen.participation} participation, {noise}"
    if kind == "shuffled":
        passes = samplings.batches(chosen).passes
        return f"{passes} pass{'es' if passes > 1 else ''} over shuffled batches {noise}"
    releases = f"{chosen.steps} Gaussian release{'' if chosen.steps == 1 else 's'} {noise}"
    if kind == "fixed":
        drawn, of = chosen.batch_size or chosen.clients_per_round, chosen.num_records or chosen.num_clients
        return f"{releases} on batches of exactly {drawn} of {of} {'records' if chosen.num_records else 'clients'}"
    return releases + (f" on Poisson samples of rate {_shortest(chosen.sampling_rate)}" if kind == "poisson" else "")


def _proof(chosen: argparse.Namespace, bracket: Bracket, kind: str) -> dict[str, Any]:
    """Return what JSON says of how a bound was found, and of whom it holds for."""
    whole = {} if chosen.clients_per_round is None else {"unit": samplings.CLIENT}
    return whole | {
        "bracket": {"lower": _finite(bracket.lower), "upper": _finite(bracket.upper)},
        "method": bracket.method,
        "status": bracket.status,
        "adjacency": ADJACENCY[kind],
        "sampling": kind,
    }


def _write_json(chosen: argparse.Namespace, answer: dict[str, Any], inputs: Iterable[str]) -> None:
    given = {name: getattr(chosen, name) for name in inputs}
    known = {name: value for name, value in given.items() if value is not None and value is not False}
    sys.stdout.write(json.dumps(answer | {"version": __version__, "inputs": known}, allow_nan=False) + "\n")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shortest(value: float | str) -> str:
    """Return all digits of what was given, so that the sentence is about no other number; text stays."""
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def _listed(settings: dict[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_shortest(value)}" for name, value in settings.items())


def _calibrate_federated(chosen: argparse.Namespace, target: str) -> int:
    """Find the target, and write it with the epsilon that it spends."""
    given = [name for name in FEDERATED if name != target]
    arguments.require(chosen, given)
    arguments.refuse(chosen, [target], "not allowed, since it is the target")
    others = ("noise_multiplier", "steps", "sampling", "certificate", "slack", *WORDS, *correlated.OPTIONS)
    arguments.refuse(chosen, others, f"not allowed with --target {chosen.target}")
    if not 0 < chosen.delta < 1:
        chosen.refuse(f"argument --delta: must be in (0, 1) for {chosen.target}, not {chosen.delta}")
    settings = {name: getattr(chosen, name) for name in given}
    spent = partial(_federated_epsilon, chosen.delta, settings, target)
    if target == "noise_std":
        found = chosen.clip_norm * smallest_feasible(
            lambda z: spent(chosen.clip_norm * z) - chosen.epsilon if z else math.inf, most=1e150, tolerance=1e-13
        )
    else:
        found = last_whole(lambda count: spent(int(count)) - chosen.epsilon, MAX_COUNT)
    if found == 0 or not math.isfinite(found):
        least = {"noise_std": "no noise", "rounds": "not one round", "local_steps": "not one step"}[target]
        instead = "allow a larger epsilon, or more noise or clients, or smaller steps"
        return _say_none(chosen, f"{least} meets", settings, instead)
    _write_federated(chosen, target, settings, found, spent(found))
    return 0


def _federated_epsilon(delta: float, given: dict[str, float], target: str, value: float) -> float:
    from hockeystick.federated import fedavg_epsilon  # noqa: PLC0415 - imports are paid for by this command only

    settings = given | {target: value}
    # Steps of constant size on an unbounded domain: the smoothness does not matter.
    return float(fedavg_epsilon(delta, smoothness=0.0, **settings))  # type: ignore[arg-type]


def _write_federated(
    chosen: argparse.Namespace, target: str, settings: dict[str, float], found: float, epsilon: float
) -> None:
    if chosen.json:
        answer = {"target": target, target: found, "epsilon": epsilon, "delta": chosen.delta, "status": "certified"}
        whom = {"adjacency": "replace", "algorithm": "federated averaging, last model"}
        _write_json(chosen, answer | whom, ("epsilon", *settings))
        return
    # A printed noise is no smaller than what was computed: it spends no more.
    shown = format_upper(found, DIGITS) if target == "noise_std" else f"{int(found)}"
    sys.stdout.write(
        f"{target.replace('_', ' ')} = {shown}: epsilon = {format_upper(epsilon, DIGITS)} at delta = {_shortest(chosen.delta)} for "
        f"federated averaging, {_listed(settings)}: a certified upper bound; one record is replaced, only the last model is seen\n"
    )
