"""Run dp_accounting's own tests with our accountant in place of theirs, and hold what fails against the differences that are known.

python tests/reference/dp_accounting_suites.py [PATH] [SUITE ...]

PATH is the folder of a checkout that has the package `dp_accounting` in it, tests included (`python/dp_accounting` of a clone of
google/differential-privacy); without it the installed release is taken. Its tests are run where they are, never copied.
dp_accounting_differences.json has every test that fails for a reason, with the proof that our answer is right. A failure that is
not there, and one there that no longer fails, end the run with status 1.
"""

import importlib
import json
import os
import subprocess
import sys
import unittest
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import dp_accounting as dp
import numpy as np
from dp_accounting import privacy_accountant_test

import hockeystick as hs
from hockeystick.interop.dp_accounting import HockeyStickAccountant, from_pld

DIFFERENCES = Path(__file__).with_name("dp_accounting_differences.json")


class Outcome(NamedTuple):
    """What a suite of theirs said."""

    suite: str
    release: str
    ran: frozenset[str]
    failed: dict[str, str]  # and the last line of each failure

    def passed(self) -> int:
        """Return how many tests passed."""
        return len(self.ran) - len(self.failed)


def release() -> str:
    """Return which dp_accounting is imported: two have the number 0.6.0, and differ in their events."""
    number = getattr(dp, "__version__", "0.6.0")
    return f"{number}, newer" if hasattr(dp.dp_event, "EpsilonDeltaDpEvent") else str(number)


def base_class() -> Outcome:
    """Run the tests that dp_accounting has for every accountant, under its three relations at once."""

    class Ours(privacy_accountant_test.PrivacyAccountantTest):  # type: ignore[misc]
        def _make_test_accountants(self) -> list[HockeyStickAccountant]:
            return [HockeyStickAccountant(relation) for relation in dp.NeighboringRelation]

    return _run("privacy_accountant_test", [Ours])


def pld_accountant() -> Outcome:
    """Run the tests of their accountant by privacy loss distributions on ours."""
    suite = importlib.import_module("dp_accounting.pld.pld_privacy_accountant_test")
    with _replaced(suite.pld_privacy_accountant, "PLDAccountant", HockeyStickAccountant):
        return _run("pld_privacy_accountant_test", [suite.PldPrivacyAccountantTest])


def rdp_accountant() -> Outcome:
    """Run the tests of their Renyi accountant on ours, which takes their orders and answers with `Accountant.rdp`."""
    suite = importlib.import_module("dp_accounting.rdp.rdp_privacy_accountant_test")
    with _replaced(suite.rdp_privacy_accountant, "RdpAccountant", _with_orders()):
        return _run("rdp_privacy_accountant_test", [suite.RdpPrivacyAccountantTest])


def distributions() -> Outcome:
    """Run the tests of their distributions, each of which must come through `from_pld` with no less delta, and little more.

    Tests that fail without ours, too, are left out.
    """
    suite = importlib.import_module("dp_accounting.pld.privacy_loss_distribution_test")
    kind = suite.privacy_loss_distribution.PrivacyLossDistribution
    compared: list[float] = []
    name, cases = "privacy_loss_distribution_test", _test_cases(suite)
    with _replaced(kind, "get_delta_for_epsilon", _compared(kind.get_delta_for_epsilon, compared)):
        outcome = _run(name, cases)
    without_ours = _run(name, cases, outcome.failed).failed  # these say nothing about ours
    failed = {test: line for test, line in outcome.failed.items() if test not in without_ours}
    if not compared:
        failed["all"] = "no delta was compared"
    return outcome._replace(ran=outcome.ran - {*without_ours}, failed=failed)


SUITES: dict[str, Callable[[], Outcome]] = {
    "privacy_accountant_test": base_class,
    "pld_privacy_accountant_test": pld_accountant,
    "rdp_privacy_accountant_test": rdp_accountant,
    "privacy_loss_distribution_test": distributions,
}


def _with_orders() -> type:
    """Return our accountant with the constructor and the attributes of their Renyi accountant."""
    default = dp.rdp.rdp_privacy_accountant.DEFAULT_RDP_ORDERS
    add_or_remove = dp.NeighboringRelation.ADD_OR_REMOVE_ONE

    class WithOrders(HockeyStickAccountant):
        def __init__(self, orders: Any = None, neighboring_relation: Any = add_or_remove) -> None:
            super().__init__(neighboring_relation)
            self._orders = self.orders = np.array(default if orders is None else orders, dtype=float)

        @property
        def _rdp(self) -> Any:
            if self._contains_non_dp_event:
                return np.full(self._orders.shape, np.inf)
            return np.array([self._divergence(order) for order in self._orders.tolist()])

        rdp = _rdp

        def _divergence(self, order: float) -> float:
            if order > 1e5:  # beyond them our divergences are not asked: that of order infinity is the largest loss
                return float(self.accountant.epsilon(0.0))
            return float(self.accountant.rdp(order))

    return WithOrders


def _compared(theirs: Callable[..., Any], compared: list[float]) -> Callable[..., Any]:
    """Return their delta, after ours of the same distribution was compared with it."""

    def get_delta_for_epsilon(self: Any, epsilon: Any) -> Any:
        answer = theirs(self, epsilon)
        if not self._pmf_remove._pessimistic_estimate:
            try:
                from_pld(self)
            except ValueError:
                return answer
            raise AssertionError("an optimistic distribution must be refused")
        ours = hs.Accountant().compose(from_pld(self))
        for eps, delta in np.broadcast(np.atleast_1d(epsilon), np.atleast_1d(answer)):
            if eps < 0:
                continue
            found = ours.delta(float(eps))
            compared.append(found)
            if not delta * (1 - 1e-9) - 1e-15 <= found <= delta + 1e-6:
                raise AssertionError(f"delta({eps}) is {found} through from_pld, theirs is {delta}")
        return answer

    return get_delta_for_epsilon


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _test_cases(module: Any) -> list[type[unittest.TestCase]]:
    return [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, unittest.TestCase)]


def _run(name: str, kinds: list[type[unittest.TestCase]], only: Container[str] | None = None) -> Outcome:
    """Run the tests of some classes, or those of them that are named."""
    loader, result = unittest.defaultTestLoader, unittest.TestResult()
    tests = [test for kind in kinds for test in loader.loadTestsFromTestCase(kind)]
    suite = unittest.TestSuite(test for test in tests if only is None or _name(test) in only)
    ran = frozenset(map(_name, suite))
    suite.run(result)
    failed = {_name(test): text.strip().splitlines()[-1] for test, text in [*result.failures, *result.errors]}
    return Outcome(name, release(), ran, failed)


def _name(test: Any) -> str:
    """Return the name of a test; that of a case within a test is the test's."""
    return str(getattr(test, "test_case", test)._testMethodName)


def known(suite: str) -> dict[str, str]:
    """Return the tests of a suite that are known to fail, and the name of the reason of each."""
    table = json.loads(DIFFERENCES.read_text(encoding="utf-8"))
    return {test: reason for reason, part in table.items() for test in part["tests"].get(suite, [])}


def surprises(outcome: Outcome) -> list[str]:
    """Return what differs from the list of known differences, in words."""
    expected = known(outcome.suite)
    news = [
        f"fails, and is not listed: {test}: {line}" for test, line in outcome.failed.items() if test not in expected
    ]
    gone = [f"is listed, and passes: {test}" for test in expected if test in outcome.ran and test not in outcome.failed]
    return sorted(news) + sorted(gone)


def row(outcome: Outcome) -> str:
    """Return the row of a table: suite, release, how many ran and passed, and how many did not for which reason."""
    expected = known(outcome.suite)
    reasons = Counter(expected.get(test, "NOT LISTED") for test in outcome.failed)
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return f"| {outcome.suite} | {outcome.release} | {len(outcome.ran)} | {outcome.passed()} | {why} |"


def main(arguments: list[str]) -> int:
    """Run the suites on the checkout that is named, in a process of its own, or else on the release that is imported."""
    if arguments and (Path(arguments[0]) / "dp_accounting").is_dir():
        path = os.pathsep.join(filter(None, [str(Path(arguments[0]).resolve()), os.environ.get("PYTHONPATH")]))
        again = [sys.executable, __file__, *arguments[1:]]
        return subprocess.run(again, env={**os.environ, "PYTHONPATH": path}, check=False).returncode
    if not {*arguments} <= {*SUITES}:
        print(__doc__, "Suites:", *SUITES)
        return 2
    print("| suite | dp_accounting | ran | passed | the others, by reason |\n|---|---|---|---|---|")
    wrong = []
    for name in arguments or SUITES:
        outcome = SUITES[name]()
        print(row(outcome), flush=True)
        wrong += [f"{name} {line}" for line in surprises(outcome)]
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
