"""How distributions of privacy losses are made."""

import hockeystick as hs


def compose(mechanism, count=1, **options):
    """Return the distribution of `count` steps."""
    return hs.PrivacyLossDistribution.from_mechanism(mechanism, **options).self_compose(count)
