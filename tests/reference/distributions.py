"""Distributions of privacy losses: how they are made, and what a certified bracket must hold."""

import hockeystick as hs


def compose(mechanism, count=1, **options):
    """Return the distribution of `count` steps."""
    return hs.PrivacyLossDistribution.from_mechanism(mechanism, **options).self_compose(count)


def assert_inside(bracket, exact, slack=0.0):
    """Check that the bracket holds the exact value, which is itself known to `slack`."""
    assert bracket.status == "certified"
    assert bracket.lower <= bracket.upper
    assert bracket.lower <= exact + slack
    assert exact - slack <= bracket.upper
