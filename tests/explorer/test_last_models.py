"""The bounds of the last model on the page are upper ends, rounding included: beside the exact curve of Gaussian noise, in 60 digits."""

import math
import random
from pathlib import Path
from typing import Any

import pytest

import explorer_page
import high_precision as exact
import npm_package

pytestmark = pytest.mark.slow

CELLS = 300
EXPRESSION = """(async () => {
const { load } = await import(given.package);
const hs = await load();
return given.cells.map((values) => {
    const question = m.ask(hs, values);
    const federated = values.mechanism === "fedavg";
    const [rounds, localSteps, numClients] = [values.rounds, values.local_steps, values.num_clients];
    const federation = { rounds, localSteps, numClients, clipNorm: values.clip_norm, noiseStd: values.noise_std,
        smoothness: 0, learningRate: values.learning_rate };
    const [mu, epsilon] = [federated ? hs.fedavgGdp(federation) : 0, question.upperEpsilon(values.delta)];
    question.free();
    return { mu, epsilon: epsilon === Infinity ? "inf" : epsilon };
});
})()"""


def answers(folder: Path, cells: list[dict[str, Any]]) -> Any:
    """Return what the page's engine answers in Node."""
    given = {"cells": cells, "package": (npm_package.package() / "hockeystick.js").as_uri()}
    return explorer_page.in_node(folder, "engine.js", EXPRESSION, given)


def test_federations_have_upper_ends(tmp_path: Path) -> None:
    """At the epsilon of the page the exact delta of the rounded mu is never above the one that is asked for."""
    rng = random.Random(8)
    cells = [
        {
            "mechanism": "fedavg",
            "rounds": rng.randint(1, 1000),
            "local_steps": rng.randint(1, 20),
            "num_clients": rng.randint(2, 100),
            "clip_norm": 1.0,
            "noise_std": 10 ** rng.uniform(-1, 2),
            "learning_rate": 10 ** rng.uniform(-3, 0),
            "delta": 10 ** rng.uniform(-30, -1),
        }
        for _ in range(CELLS)
    ]
    for cell, found in zip(cells, answers(tmp_path, cells), strict=True):
        if found["epsilon"] > 0:
            assert exact.theta(found["epsilon"], found["mu"]) <= cell["delta"], cell
            assert exact.theta(found["epsilon"] * (1 - 1e-8), found["mu"]) > cell["delta"], cell
        else:
            assert exact.theta(0.0, found["mu"]) <= cell["delta"], cell


def test_a_large_epsilon_of_a_last_iterate_is_found(tmp_path: Path) -> None:
    """With little noise epsilon is large, and not called infinite; the search is by doubling, however far."""
    cell = {"mechanism": "last_iterate", "index": 20, "num_records": 20, "learning_rate": 0.5, "lipschitz": 1.0}
    cell |= {"smoothness": 0.5, "strong_convexity": 0.0, "diameter": 1.0, "delta": 1e-5}
    for noise in (1e-2, 1e-3, 1e-5):
        (found,) = answers(tmp_path, [cell | {"noise_std": noise}])
        # the last step alone: gradients that differ by 2 under noise of noise * sqrt(eta^2) or more are 2/noise-GDP or less
        most = (2 / noise) ** 2 / 2 + 5 * 2 / noise
        assert math.isfinite(float(found["epsilon"]))
        assert 0.01 * most < found["epsilon"] < 10 * most
