"""What to say of a name or an argument that is not there, also in another program's words, and of a package that is not installed."""

from __future__ import annotations

import contextlib
import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hockeystick._checks.arguments import notions
from hockeystick._checks.shown import shown

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


def meant(wrong: str, known: Iterable[str]) -> str | None:
    """Return the known argument that another program's word, one of ours for its like, or a misspelling stands for."""
    words = list(known)
    row = next((row for row in notions() if wrong in row), [])
    return next((word for word in row if word in words), None) or next(iter(_near(wrong, words)), None)


def _near(name: str, names: Iterable[str]) -> list[str]:
    """Return the name that is meant by a misspelling, which may miss underscores."""
    bare = {known.replace("_", "").casefold(): known for known in names}
    return [bare[text] for text in difflib.get_close_matches(name.replace("_", "").casefold(), bare, n=1, cutoff=0.8)]


def unknown_argument(call: Callable[..., Any], name: str, values: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """Return what is wrong with the names of the arguments of a refused call, None if nothing is."""
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


@contextlib.contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Say which extra to install where an import within fails."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f'{what}: pip install ".[{extra}]" in a clone') from error
