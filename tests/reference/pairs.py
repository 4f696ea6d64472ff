"""Pairs of the compiled core by short names, for tests that hold the core itself against a reference."""

from hockeystick import _core

_MAKERS = {
    "gaussian": _core.gaussian_of_shift,
    "laplace": _core.laplace_of_shift,
    "replaced_gaussian": _core.replaced_gaussian,
    "discrete_gaussian": _core.discrete_gaussian,
    "bounded_range": _core.bounded_range,
}


def pair(kind, parameters, rate=1.0):
    """Return a pair, on a Poisson sample of the given rate."""
    parameters = list(parameters)
    if kind.startswith("fixed_size_"):
        base = pair(kind.removeprefix("fixed_size_"), parameters[:-1])
        return _core.poisson_sampled(_core.fixed_size_sampled(base, parameters[-1]), rate)
    if kind in _MAKERS:
        return _core.poisson_sampled(_MAKERS[kind](*parameters), rate)
    half = len(parameters) // 2
    made = getattr(_core, kind)(parameters[:half], parameters[half:])  # masses, or shifts and weights
    return _core.poisson_sampled(made, rate)


def sampled_gaussians(sigma, rate, steps):
    """Return the entries of equal steps."""
    return [("gaussian", [1.0 / sigma], rate, float(steps))]


def steps(entries):
    """Return counted pairs from (kind, parameters, rate, count)."""
    return [(pair(kind, parameters, rate), count) for kind, parameters, rate, count in entries]


def contour_bracket(entries, *question):
    """Return what the contour engine finds for (kind, parameters, rate, count) entries."""
    return _core.contour_bracket(steps(entries), *question)


def pld_bracket(entries, *question):
    """Return what discretised losses give for (kind, parameters, rate, count) entries."""
    return _core.pld_bracket(steps(entries), *question)


def sampled_gaussian_nodes(sigma, rate, forward, *where):
    """Return (log M(c), its error) and (log |phi|, arg phi, error, bound from there on) at the nodes 0, h, ..., of where = (c, h, nodes)."""
    sampled = _core.poisson_sampled(_core.gaussian(sigma), rate)
    return _core.pair_nodes(sampled, forward, 26.0, *where)[0]
