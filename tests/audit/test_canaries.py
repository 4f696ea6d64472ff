"""Canaries: gradients at the clip norm for every model in reach, in opposite directions."""

import numpy as np
import pytest

from hockeystick import audit


def logistic_gradient(model: np.ndarray, record: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Return the gradient of log(1 + exp(-<x, w>)) by central differences."""

    def loss(w: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -(w @ record)))

    moves = step * np.eye(model.size)
    return np.array([(loss(model + move) - loss(model - move)) / (2 * step) for move in moves])


@pytest.mark.parametrize("reach", [0.0, 1e-320, 1e-3, 0.1, 0.27])
def test_logistic_gradients_reach_the_clip_norm(reach: float) -> None:
    """At every model in reach both gradients are at least the clip norm long and opposite; at one end they are just so."""
    unit = np.array([0.6, -0.8])
    record, neighbour = audit.canary_pair(5 * unit, clip_norm=1.0, loss="logistic", reach=reach)
    norms = []
    for along in np.linspace(-reach, reach, 9):
        model = along * unit + 0.7 * np.array([0.8, 0.6])  # any part across does not matter
        gradients = logistic_gradient(model, record), logistic_gradient(model, neighbour)
        norms += [np.linalg.norm(gradient) for gradient in gradients]
        assert gradients[0] @ gradients[1] == pytest.approx(-norms[-1] * norms[-2])
    assert min(norms) == pytest.approx(1.0, rel=1e-6)


def test_linear_gradient_is_the_record() -> None:
    """For a linear loss both records have the clip norm, and their difference is twice that."""
    record, neighbour = audit.canary_pair([3.0, 4.0], clip_norm=2.0, loss="linear")
    assert record == pytest.approx([1.2, 1.6])
    assert np.linalg.norm(record - neighbour) == pytest.approx(4.0)


@pytest.mark.parametrize("unit", [5e-324, 1e-200, 1e200, 1e308])
def test_units_do_not_matter(unit: float) -> None:
    """Records and directions whose squares underflow or overflow have what those of size 1 have."""
    assert audit.canary_direction([[unit, 0.0, 0.0], [unit, 0.0, unit]]) == pytest.approx([0.0, 1.0, 0.0])
    record, _ = audit.canary_pair([0.0, -unit], clip_norm=1.5, loss="linear")
    assert record == pytest.approx([0.0, -1.5])


def test_direction_is_the_least_used() -> None:
    """No direction of 1000 has a smaller sum of squared inner products with the records."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(50, 5)) * [3.0, 1.0, 2.0, 0.1, 1.0]
    direction = audit.canary_direction(features)
    others = rng.normal(size=(1000, 5))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    assert np.linalg.norm(direction) == pytest.approx(1.0)
    assert np.sum((features @ direction) ** 2) <= np.min(np.sum((features @ others.T) ** 2, axis=0))
    assert direction[np.argmax(np.abs(direction))] > 0
