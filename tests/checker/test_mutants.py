"""Each bound of the checker weakened in turn: some test of it fails."""

import importlib.util
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("flint", reason="pip install python-flint")


def beside(name: str) -> ModuleType:
    """Return a module of tests of this folder."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tests, claims = beside("test_check"), beside("test_false_claims")


def patched(test: Callable[..., None], *cases: tuple[object, ...]) -> Callable[[ModuleType], None]:
    """Return a test that patches the program, of each of these cases."""

    def run(check: ModuleType) -> None:
        for case in cases:
            with pytest.MonkeyPatch.context() as patch:
                test(check, patch, *case)

    return run


def transforms(*needs: float) -> Callable[[ModuleType], None]:
    """Return the test of transforms and decays, where so little is asked for."""
    return patched(tests.test_transforms_and_decays, *itertools.product(tests.LAWS, needs))


ends, larger = patched(tests.test_ends_that_are_near, ()), patched(tests.test_no_loss_is_larger, ())
loose = patched(tests.test_brackets_whose_bounds_are_large, *tests.COARSE)


def steps(check: ModuleType) -> None:
    """Run the test of single steps."""
    for adjacency in ("add_or_remove", "replace"):
        tests.test_single_steps(check, adjacency)


def damaged(check: ModuleType) -> None:
    """Let files that are no certificate be read."""
    for content, words in tests.damaged().values():
        with pytest.raises(check.NotACertificate, match=re.escape(words)):
            check.Claim(content)


def blurred(check: ModuleType) -> None:
    """Run the test of either blurred function."""
    for blur in (0.25, 1.0):
        tests.test_either_blurred_function(check, blur)


few = tests.test_masses_that_are_not_listed
MUTANTS = [
    # the sum
    ("unit * more + tail", "unit * more", blurred),
    ("return unit * less - tail", "return unit * less", blurred),
    ("return unit * less - tail", "return unit * more - tail", blurred),
    ("unit * more + tail", "unit * less + tail", blurred),
    ("return lower - self.too_much(", "return lower - 0 * self.too_much(", loose),
    ("arb(period)), upper", "arb(period)), upper - 2 * self.too_much(c, arb(other), arb(period))", loose),
    ("raised * turn * turn * z", "turn * turn * z", blurred),
    ("(term * turn).real", "term.real", blurred),
    ("+ (1 + (blur * (c + arb(0.5))).exp()).log()", "", tests.test_the_terms_beyond),
    ("blur * (c * c - w * w) / 2", "blur * (c * c - 9 * w * w) / 2", blurred),
    ("return 1 / ((c * period).exp() - 1) + far", "return far", tests.test_what_the_sum_has_too_much),
    ("return 1 / ((c * period).exp() - 1) + far", "return 1 / ((c * period).exp() - 1)", tests.test_what_the_sum_has_too_much),
    ("- (arb.pi() * w).log()", "- (10 * arb.pi() * w).log()", tests.test_the_terms_beyond),
    ("c * c.log() - (c + 1) * (c + 1).log()", "c * c.log() - 2 * (c + 1) * (c + 1).log()", tests.test_claims_that_are_far_above_the_truth),
    # transforms
    ("error = arb(0, (outside", "error = arb(0, (0 * outside", ends),
    ("(1 - ratio)).abs_upper())", "(1 - ratio)).abs_upper() / 1000)", transforms(0.0, 3.0)),
    ("outside * (1 + 2 * a)", "outside * 0", ends),
    ("ratio, outside = 2 * (gamma * a).exp()", "ratio, outside = (gamma * a).exp() / 1000", transforms(0.0, 3.0)),
    ("return left, right, below + beyond + there", "return left, right, arb(0)", ends),
    ("+ h * last * (self.u * fast + self.v * slow)", "", transforms(0.0, 3.0, 15.0)),
    ("z * (-(1 + z) * self.d).exp()", "(-(1 + z) * self.d).exp()", transforms(3.0)),
    # decays
    ("mass += f[j] * step", "mass += 2 * f[j] * step", transforms(15.0)),
    ("ratio[j] + ratio[-1] + variation", "ratio[-1]", transforms(15.0)),
    ("(up + down) / 4)", "(up + down) / 40)", transforms(15.0)),
    ("(up - down) / (2 + 4 * c)", "2 * (up - down) / (2 + 4 * c)", transforms(15.0)),
    # single steps and directions
    ("(p - epsilon.exp() * q)", "(p - 1.01 * epsilon.exp() * q)", steps),
    ("- epsilon.exp() * ((1 - q)", "- 1.01 * epsilon.exp() * ((1 - q)", steps),
    ("range(max([len(laws) for laws, _ in kept], default=1))", "range(1)", steps),
    ("if self.least and not all(", "if False and not all(", steps),
    ("(1 + replaced) * s", "s", steps),
    ("Laplace(twice / ", "Laplace(1 / ", steps),
    ("1e-6, 300)), twice * ", "1e-6, 300)), 1 * ", steps),
    ("q, 2 / inner.number(", "q, 1 / inner.number(", steps),
    ("[(1, 1)] if replaced", "[(1, 0)] if replaced", steps),
    ("(delta, arb(0)), (more", "(more", steps),
    ("sum((p for p, q in masses if q == 0), arb(0))", "arb(0)", steps),
    ("[(1, 0), (0, 1)]", "[(0, 1)]", steps),
    ("aside + lower, aside + upper", "lower, upper", tests.test_mass_that_is_aside),
    ("mu2 == 0 and largest <= epsilon", "largest <= epsilon", larger),
    ("mu2 == 0 and largest <= epsilon", "mu2 == 0 and largest <= 1.01 * epsilon", larger),
    # shifts
    ("if share != 1:", "if False:", tests.test_a_table_of_shifts),
    ("squares / ball(", "squares / 2 / ball(", tests.test_a_table_of_shifts),
    ("(ball(share) * apart) ** 2", "ball(share) * apart", tests.test_a_table_of_shifts),
    ("ball(rho) * gap + ball(gamma)", "ball(rho) * gap", tests.test_a_table_of_shifts),
    ("gap = (1 - ball(share)) * apart", "gap = ball(gamma)", tests.test_a_table_of_shifts),
    ("gamma=1e300, weights=1)", "gamma=1e300, weights=2)", damaged),
    # values that are not listed
    ("+ arb(0).union(arb(rare))", "", few),
    ("terms[0] / 2) + arb(0).union(beyond)", "terms[0] / 2)", few),
    # what is read
    ("if self.data:", "if False:", damaged),
    ("if not sum(p for p, _ in shares) == sum(q for _, q in shares) == 1:", "if False:", damaged),
    (".denominator != 1:", ".denominator < 1:", damaged),
    ("if len(dict(pairs)) < len(pairs):", "if False:", damaged),
    ("if not Fraction(repr(low)) <= number <= Fraction(repr(high)):", "if False:", damaged),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.share(10, by_day=5)
@pytest.mark.parametrize(("old", "new", "test"), MUTANTS, ids=[f"{k}" for k in range(len(MUTANTS))])
def test_a_weaker_bound_is_noticed(old: str, new: str, test: Callable[[ModuleType], None]) -> None:
    """The text of the program is changed in one place, and the test that should notice it fails."""
    source = claims.PROGRAM.read_text("utf-8")
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test(claims.program(source.replace(old, new)))


def test_places_are_unique() -> None:
    """Each is one of the program's."""
    source = claims.PROGRAM.read_text("utf-8")
    assert all(source.count(old) == 1 for old, _, _ in MUTANTS)


@pytest.mark.slow
def test_as_it_is_none_of_these_tests_fails() -> None:
    """Else the mutants would tell nothing."""
    check = claims.program()
    for test in dict.fromkeys(test for _, _, test in MUTANTS if test in {few, damaged, ends, steps, blurred}):
        test(check)
