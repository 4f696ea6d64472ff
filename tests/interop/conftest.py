"""Adapters are held against the libraries that they stand in for; with HOCKEYSTICK_HOSTS=1 a library that is missing is a failure, not a skip."""

import os

import pytest

ALL_ARE_HERE = os.environ.get("HOCKEYSTICK_HOSTS", "") not in ("", "0")


def _not_skipped(report):
    if ALL_ARE_HERE and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"with HOCKEYSTICK_HOSTS no adapter goes untested: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Fail where a test was skipped."""
    return _not_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Fail where a file was skipped."""
    return _not_skipped((yield))
