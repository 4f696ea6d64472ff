"""The papers' formulas, written out once more from the print and evaluated to 60 digits at random settings.

`python tests/reference/paper_formulas.py` writes what it finds into the tables of the papers: a row's field `tried` has the largest
relative deviation of the library's value, how many settings were tried, and where it was. Tests ask a share again.

A line of values/paper_formulas.txt has the paper, the row's name, the library's call and the formula; what is misprinted is mended as
the row's verdict says, and the constants of orders of magnitude are 1. Numbers have the letters below. A call without brackets has all
required arguments by their names, and the optional ones behind it; the formula `theorems.NAME` has the same arguments.
"""

import inspect
import itertools
import pkgutil
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

import hockeystick as hs
import theorems
from hockeystick.published import statements
from interpolation import by_pooling

CELLS, DIGITS = 100, 60
LARGEST = 1e-10  # relative; what deviates more is a fault, of the row or of the function

# Letters of the formulas, arguments of the functions, and ranges: of powers of ten, or of integers.
NUMBERS = """
L lipschitz -1 1 | D diameter -1 1 | b smoothness -1 2 | mu strong_convexity -3 0 | phi gradient_std -1 1 | ups heterogeneity -1 1
e epsilon -2 1 | delta delta -10 -2 | q sampling_rate -3 -.01 | eta learning_rate -3 0 | s noise_std -1 1 | scale noise_scale -1 1
V clip_norm -1 1 | prox prox 0 2 | v variance -2 2 | nv noise_variance -2 2 | r2 distance_squared -1 2 | gap initial_gap -1 1
rho radius -1 1 | order order .1 2 | tv total_variation -3 -.01 | xi log_ratio -3 0 | slack slack -9 -3 | c2 second_moment -2 2
T effective_noise -6 -2 | C compositionality -1 1 | gdp gdp -1 1 | fpr fpr -6 -.01 | dist distance -1 1 | leak unprotected -3 -.1
p probability -2 -.01 | stab stability -4 0 | emp empirical -4 0 | top max_step -3 0 | ngap near_optimal_gap -1 1 | ratio ratio -1 1
width width -1 1 | cv conditional_variance -1 1 | G gradient_bound -1 1 | bias bias -1 1 | slope bias_slope -1 1 | norm norm -1 1
const constant 0 1
"""
INTEGERS = """
n num_records 2 400 | N num_silos 2 400 | M silos_per_round 1 40 | K batch_size 1 400 | R rounds 1 60 | d dimension 1 200
i index 1 40 | m num_clients 1 50 | k local_steps 1 12 | g group_size 1 30 | steps steps 1 50
"""
LETTERS = dict(re.findall(r"(\w+) (\w+) \S+ \S+", NUMBERS + INTEGERS))
VECTORS = ("PROB", "OTHER", "KERNEL", "VEC", "W", "MATRIX", "VARS", "RHOS", "SIZES", "DRAWN")
GROUPS = {
    "AGG": "num_users batch_size learning_rate noise_std lipschitz radius",
    "FED": "rounds local_steps num_clients clip_norm noise_std smoothness learning_rate",
    "WORK": "epsilon delta rounds local_steps num_clients clip_norm",
    "SIZE": "rounds local_steps num_clients clip_norm",
    "LOWER": "lipschitz diameter gradient_std num_silos num_records dimension epsilon",
    "ERM": "lipschitz silos_per_round num_silos num_records batch_size epsilon delta dimension",
    "BALL": "lipschitz diameter silos_per_round num_records dimension epsilon delta",
    "HARMLESS": "gradient_std num_records silos_per_round num_silos smoothness lipschitz dimension epsilon delta",
}


class Formula(NamedTuple):
    """A formula of a paper: the row that it belongs to, the library's call, and the formula."""

    paper: str
    row: str
    call: str
    text: str


class Deviation(NamedTuple):
    """How far the library's value is from a formula, relative, and whether it is below."""

    size: float
    below: bool


def formulas() -> list[Formula]:
    """Return the table."""
    lines = (Path(__file__).parent / "values" / "paper_formulas.txt").read_text(encoding="utf-8").splitlines()
    return [Formula(*re.fullmatch(r"(\d+) (.*?) :: (.*?) -> (.*)", line).groups()) for line in lines]


def drawn(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a number of three digits for every letter, and vectors, laws and a kernel."""
    found: dict[str, Any] = {}
    for text in (NUMBERS, INTEGERS):
        for letter, name, *ends in (entry.split() for entry in re.split(r"[|\n]", text) if entry.strip()):
            low, high = map(float, ends)
            number = (
                10 ** rng.uniform(low, high) if text is NUMBERS else np.exp(rng.uniform(np.log(low), np.log(high + 1)))
            )
            found[letter] = found[name] = float(f"{number:.3g}") if text is NUMBERS else int(number)
    found["num_users"] = found["batch_size"] * int(rng.integers(1, 20))
    laws = ((rng.multinomial(96, rng.dirichlet(np.ones(4)), size=6) + 1) / 100).tolist()
    vectors = rng.normal(size=(4, 4)).round(3).tolist()
    small, factors = rng.uniform(0.01, 1, size=4).round(3).tolist(), rng.uniform(1, 3, size=4).round(3).tolist()
    sizes, few = rng.integers(10, 1000, size=4).tolist(), int(rng.integers(1, 8))
    several = (laws[0], laws[1], laws[2:], vectors[0], vectors[1], vectors, small, factors, sizes, few)
    return found | dict(zip(VECTORS, several, strict=True))


def theta(eps: mp.mpf, distance: mp.mpf) -> mp.mpf:
    """Return the hockey-stick divergence of two unit Gaussians."""
    return mp.ncdf(distance / 2 - eps / distance) - mp.exp(eps) * mp.ncdf(-distance / 2 - eps / distance)


def jensen_shannon(p: list[mp.mpf], q: list[mp.mpf]) -> mp.mpf:
    """Return the root of the Jensen-Shannon divergence, in nats."""
    return mp.sqrt(sum(x * mp.log(2 * x / (x + y)) / 2 for law in ((p, q), (q, p)) for x, y in zip(*law, strict=True)))


def binomial(trials: int, p: mp.mpf, shift: int, eps: mp.mpf) -> mp.mpf:
    """Return the hockey-stick divergence of a binomial law from itself, moved."""
    law = [mp.binomial(trials, x) * p**x * (1 - p) ** (trials - x) for x in range(trials + 1)]
    moved = [law[x - shift] if 0 <= x - shift <= trials else 0 for x in range(trials + 1)]
    return sum(max(0, x - mp.exp(eps) * y) for x, y in zip(law, moved, strict=True))


def interpolated(schedule: str, prox: float | None, numbers: Mapping[str, Any]) -> mp.mpf:
    """Return the Gaussian-DP parameter of FedAvg or FedProx by the recursion of the sensitivities."""
    names = {name: numbers[name] for name in GROUPS["FED"].split() if name != "noise_std"} | {"schedule": schedule}
    rounds = theorems.fedavg_rounds(**names) if prox is None else theorems.fedprox_rounds(**names, prox=prox)
    return theorems.gdp_parameter(*rounds, num_clients=numbers["num_clients"], noise_std=numbers["noise_std"])


FUNCTIONS = {name: getattr(mp, name) for name in ("exp", "log", "sqrt", "mpf", "ncdf", "erfinv")} | {
    "theta": theta, "js": jensen_shannon, "binomial": binomial, "by_pooling": by_pooling, "theorems": theorems,
    "dot": lambda x, y: sum(a * b for a, b in zip(x, y, strict=True)),
    "chi2": lambda d, x: mp.gammainc(mp.mpf(d) / 2, 0, x / 2, regularized=True),
}  # fmt: skip


def exactly(value: Any) -> Any:
    """Return numbers as mpmath has them; integers stay."""
    if isinstance(value, list):
        return [exactly(one) for one in value]
    return mp.mpf(value) if isinstance(value, float) else value


def arguments(formula: Formula, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by their names of a call that has no brackets."""
    name, *optional = formula.call.split() if "(" not in formula.call else [""]
    if not name:
        return {}
    known = inspect.signature(pkgutil.resolve_name(f"hockeystick:{name.removesuffix('.private')}")).parameters
    return {name: numbers[name] for name, one in known.items() if one.default is one.empty or name in optional}


def both(formula: Formula, numbers: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the library's value and the formula's."""
    groups = {group: {name: numbers[name] for name in names.split()} for group, names in GROUPS.items()}
    named = arguments(formula, numbers)
    call = re.sub(r"(\.private)?$", r"(**ARGUMENTS)\1", formula.call.split()[0], count=1) if named else formula.call
    space = {**{name: getattr(hs, name) for name in hs.__all__}, "np": np, **numbers, **groups, "ARGUMENTS": named}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # implausible settings, and formulas that are no guarantee
        value = eval(call, space)
    text = f"{formula.text}(**ARGUMENTS)" if re.fullmatch(r"theorems\.\w+", formula.text) else formula.text
    with mp.workdps(DIGITS):
        exact = {name: exactly(one) for name, one in numbers.items()}
        exact |= {"ARGUMENTS": {"eps" if name == "epsilon" else name: one for name, one in named.items()}, **groups}
        exact["naive"] = lambda schedule, prox=None: interpolated(schedule, prox, numbers)
        return value, eval(text, {**FUNCTIONS, **exact})


def deviation(formula: Formula, numbers: Mapping[str, Any]) -> Deviation | None:
    """Return the deviation at these numbers, None where the function refuses them, or the value is next to nothing."""
    try:
        value, exact = both(formula, numbers)
    except (ValueError, ZeroDivisionError):
        return None
    found = np.ravel(getattr(value, "value", value) if np.ndim(exact) == 0 else value).tolist()
    exacts = exact if isinstance(exact, (list, tuple)) else [exact]
    with mp.workdps(DIGITS):
        pairs = [(mp.mpf(x), y) for x, y in zip(found, exacts, strict=True) if y is not None]
        if not pairs or any(0 < abs(y) < 1e-30 for _, y in pairs):
            return None
        errors = [(x - y) / (abs(y) or 1) for x, y in pairs]
        return Deviation(float(max(map(abs, errors))), any(error < 0 for error in errors))


def tried(formula: Formula, cells: int, seed: int = 0) -> list[tuple[Deviation, dict[str, Any]]]:
    """Return the deviations at settings that the function takes."""
    rng = np.random.default_rng([seed, *formula.call.encode()])
    asked = ((deviation(formula, numbers), numbers) for numbers in (drawn(rng) for _ in range(200 * cells)))
    return list(itertools.islice(((found, numbers) for found, numbers in asked if found is not None), cells))


def at(place: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a row's field."""
    letters = {letter: place[name] for letter, name in LETTERS.items() if name in place}
    return drawn(np.random.default_rng(0)) | dict(place) | letters


def field(formula: Formula) -> tuple[float, str]:
    """Return the largest deviation of a formula, and what the row holds of it."""
    found = tried(formula, CELLS)
    assert len(found) == CELLS, formula
    worst, numbers = max(found, key=lambda one: one[0].size)
    words = {*re.findall(r"\w+", f"{formula.call} {formula.text}"), *arguments(formula, numbers)}
    words |= {name for group, names in GROUPS.items() if group in words for name in names.split()}
    names = {name: words & {letter, name} for letter, name in LETTERS.items()}
    names |= {name: words & {name} for name in ("num_users", *VECTORS)}
    place = ", ".join(f"{name} = {numbers[name]}" for name, said in names.items() if said)
    function = re.match(r"[\w.]+", formula.call)[0].removesuffix(".private")
    size = hs.format_upper(worst.size, ".1e")
    return (
        worst.size,
        f'tried = {{ function = "{function}", settings = {CELLS}, deviation = {size}, at = {{ {place} }} }}\n',
    )


def main() -> None:
    """Fill the field of all rows that have a formula."""
    fields: dict[tuple[str, str], tuple[float, str]] = {}
    for formula in formulas():
        key = formula.paper, formula.row
        fields[key] = max(field(formula), fields.get(key, (-1.0, "")))
    for paper, (page, _) in statements.PAPERS.items():
        path = Path(statements.__file__).parent / "papers" / f"{page}.toml"
        rows = re.split(r"(?<=\n)(?=\[)", re.sub(r"(?m)^tried = .*\n", "", path.read_text(encoding="utf-8")))
        for index, row in enumerate(rows):
            name = re.search('(?m)^name = "(.*)"$', row)
            _, text = fields.pop((paper, name[1] if name else ""), (0.0, ""))
            rows[index] = re.sub("(?m)^reason = .*\n", lambda found, text=text: found[0] + text, row, count=1)
        path.write_text("".join(rows), encoding="utf-8")
    assert not fields, f"no such rows: {[*fields]}"


if __name__ == "__main__":
    main()
