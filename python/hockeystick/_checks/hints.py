"""Words that other programs have for our arguments and names, and the errors that translate them.

All of it stands here: rooms `publish` what users find at the top, and where a name is missing, `unknown_name` is asked.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from hockeystick._checks import doors
from hockeystick._checks.shown import shown
from hockeystick._core import FloatingEnvironment, environment_is_right

# Each row is one notion, or two that other programs call by one word. An unknown argument is taken for another word of its row that the
# function has.
ARGUMENTS = (
    (
        "noise_multiplier",
        "noise_std",
        "noise_scale",
        "noise_variance",
        "noise",
        "sigma",
        "scale",
        "std",
        "stddev",
        "standard_deviation",
        "variance",
        "z",
    ),
    ("inverse_scale", "noise_probability", "parameter", "noise_parameter"),
    ("sampling_rate", "sample_rate", "sampling_probability", "sampling_prob", "selection_probability", "rate", "q"),
    ("steps", "rounds", "count", "num_steps", "num_iterations", "iterations", "num_compositions", "compositions", "T"),
    ("delta", "target_delta"),
    ("epsilon", "eps", "target_epsilon"),
    ("adjacency", "neighboring_relation", "neighbouring_relation", "neighboring", "neighbouring", "relation"),
    ("num_records", "records", "dataset_size", "num_examples", "number_of_examples", "sample_size", "num_samples", "n"),
    ("batch_size", "expected_batch_size", "lot_size"),
    ("epochs", "num_epochs"),
    ("clip_norm", "max_grad_norm", "l2_norm_clip", "clipping_norm", "clip", "clipping_threshold"),
    ("order", "alpha", "alphas", "orders"),
    ("learning_rate", "lr", "step_size"),
    ("num_clients", "clients", "num_users", "users", "num_silos", "silos"),
)
NAMES = {
    **dict.fromkeys(("get_epsilon", "compute_epsilon", "get_privacy_spent", "get_epsilon_for_delta"), "epsilon"),
    **dict.fromkeys(("get_delta", "compute_delta", "get_delta_for_epsilon"), "delta"),
    **dict.fromkeys(("step", "self_compose", "add_mechanism"), "compose"),
    **dict.fromkeys(("get_noise_multiplier", "find_noise_multiplier", "sigma"), "dpsgd_noise_multiplier"),
    **dict.fromkeys(("rdp", "compute_rdp", "renyi"), "Accountant.rdp"),
    **dict.fromkeys(("compute_dp_sgd_privacy", "compute_rdp_sample_gaussian"), "dpsgd_epsilon"),
    **dict.fromkeys(("RDPAccountant", "RdpAccountant", "PRVAccountant", "PLDAccountant", "GaussianAccountant"), "Accountant"),
    **dict.fromkeys(("GaussianMechanism", "GaussianDpEvent"), "Gaussian"),
    **dict.fromkeys(("LaplaceMechanism", "LaplaceDpEvent"), "Laplace"),
    **dict.fromkeys(("PoissonSampledDpEvent", "PoissonSubsampled"), "PoissonSampled"),
}  # fmt: skip


def with_hints(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that does the same behind a door (`doors`), but says which argument was meant by one that it has not."""

    @functools.wraps(call)
    def asked(*values: Any, **named: Any) -> Any:
        try:
            if environment_is_right():
                return call(*values, **named)
            with FloatingEnvironment():
                return call(*values, **named)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # from within: the call itself was right
            message = _unknown_argument(call, name, values, named)
            if message is None:
                raise
        raise TypeError(message)

    return asked


def class_with_hints(owner: type, *, methods: bool = False) -> None:
    """Put doors before a class, which, and where asked its methods, say which argument was meant."""

    def door(call: Callable[..., Any], name: str) -> Callable[..., Any]:
        if name == "__init__":
            return with_hints(call, owner.__name__)
        return with_hints(call, f"{owner.__name__}.{name}") if methods else doors.kept(call)

    doors.keep_class(owner, door)


def publish(room: str, *, methods: str = "") -> None:
    """Put doors before the names of a room that users find at the top, and name them by it: in pickles, tracebacks and pages.

    The methods of one class may say, too, which argument was meant.
    """
    namespace = vars(sys.modules[room])
    for name in namespace["__all__"]:
        found = namespace[name]
        if isinstance(found, type):
            class_with_hints(found, methods=name == methods)
        elif isinstance(found, FunctionType):
            found = namespace[name] = with_hints(found, name)
        else:
            continue
        found.__module__ = doors.TOP


def unknown_name(owner: str, name: str, known: Iterable[str]) -> str:
    """Return the text of an AttributeError, with what was probably meant."""
    names = list(known)
    bare = {word.replace("_", ""): ours for word, ours in NAMES.items()}
    meant = bare.get(name.replace("_", ""))
    # A method of a class is known where the class is.
    near = [word for word in (meant, f"dpsgd_{meant}") if str(word).partition(".")[0] in names] or _near(name, names)
    return f"{owner} has no attribute {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def missing(module: str, known: Callable[[], Iterable[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, whose error says what was probably meant; hidden from type checkers, which know better."""

    def refuse(name: str) -> Any:
        raise AttributeError(unknown_name(f"module {shown(module)}", name, known()))

    return refuse


def open_room(room: str) -> None:
    """Put doors before the public names of a room, list them alone, and say of any other name what was probably meant."""
    doors.keep_module(room)
    namespace = vars(sys.modules[room])
    namespace["__dir__"] = lambda: sorted(namespace["__all__"])
    namespace["__getattr__"] = missing(room, namespace["__dir__"])


def meant(wrong: str, known: Iterable[str]) -> str | None:
    """Return the known argument that another program's word, or a misspelling, stands for."""
    words = list(known)
    row = next((row for row in ARGUMENTS if wrong in row), ())
    return next((word for word in row if word in words), None) or next(iter(_near(wrong, words)), None)


def _near(name: str, names: Iterable[str]) -> list[str]:
    """Return the name that is meant by a misspelling, which may miss underscores."""
    bare = {known.replace("_", "").casefold(): known for known in names}
    return [bare[text] for text in difflib.get_close_matches(name.replace("_", "").casefold(), bare, n=1, cutoff=0.8)]


def _unknown_argument(
    call: Callable[..., Any], name: str, values: tuple[Any, ...], named: dict[str, Any]
) -> str | None:
    """Return what is wrong with the names of a call's arguments, None if nothing is."""
    parameters = inspect.signature(call).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    wrong = next((word for word in named if word not in parameters), None)
    if wrong is None:
        return None
    free = [word for word in list(parameters)[len(values) :] if word not in named]
    found = meant(wrong, free)
    hint = f"; did you mean {found!r}?" if found else f"; it has {', '.join(repr(word) for word in free)}"
    return f"{name}() has no argument {wrong!r}{hint if free else ''}"
