"""The example losses: gradients by hand against differences in all coordinates, and what the file prints when it is run."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_losses.py"


@pytest.fixture(scope="module")
def example() -> dict:
    """Return what the file defines."""
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        pytest.param("two_hidden_layers", (25, 4, 3, 5), marks=pytest.mark.slow),
        ("convolution", (5, 2, 5)),
        pytest.param("convolution", (6, 3, 5), marks=pytest.mark.slow),
    ],
)
def test_gradients_by_hand(example, name, sizes):
    """Central differences of a smooth function err by the square of the step and by rounding over it."""
    loss = example[name](*sizes)
    rng = np.random.default_rng(1)
    record = rng.normal(size=36 if sizes[0] == 6 else 25)
    for label in (0.0, 4.0):
        model = rng.normal(size=loss.dimension)
        found = loss.compiled[1](model, record, label)
        step, differences = 1e-5, []
        for j in range(model.size):
            moved = [model.copy(), model.copy()]
            moved[0][j] += step
            moved[1][j] -= step
            above, below = (loss.compiled[0](at, record, label) for at in moved)
            differences.append((above - below) / (2 * step))
        np.testing.assert_allclose(found, differences, rtol=1e-6, atol=1e-8)
        assert np.count_nonzero(found) > loss.dimension // 2


@pytest.mark.slow
def test_values_are_those_of_plain_numpy(example):
    """The convolution's outputs are those of slices and means in NumPy."""
    loss = example["convolution"](6, 2, 3)
    rng = np.random.default_rng(2)
    model, image = rng.normal(size=loss.dimension), rng.normal(size=(6, 6))
    filters, biases = model[:18].reshape(2, 3, 3), model[18:20]
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    maps = np.tanh(np.einsum("ijkl,fkl->fij", windows, filters) + biases[:, None, None])
    means = maps.reshape(2, 2, 2, 2, 2).mean(axis=(2, 4)).ravel()
    logits = model[20:44].reshape(3, 8) @ means + model[44:]
    for label in range(3):
        expected = np.log(np.exp(logits).sum()) - logits[label]
        assert loss.compiled[0](model, image.ravel(), float(label)) == pytest.approx(expected, rel=1e-12)
    assert loss.compiled[2](model, image.ravel()) == np.argmax(logits)


@pytest.mark.slow
def test_the_file_runs(example, capsys):
    """Both networks learn digits: ten classes, of which a guess gets one in ten."""
    pytest.importorskip("sklearn")
    example["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["two hidden layers", "convolution"]
    assert all(float(line.split("accuracy ")[1].split(",")[0]) > 0.7 for line in lines)
