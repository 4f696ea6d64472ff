"""Problems, settings and runs that the simulator refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from small_runs import SGD, run

pytest.importorskip("numba")

from hockeystick import simulate


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"sizes": [3, 0]}, ValueError),  # an empty silo
        ({"sizes": [1, 1]}, ValueError),  # records left over
        ({"sizes": [1.5, 1.5]}, TypeError),
        ({"features": np.empty((0, 2)), "labels": []}, ValueError),  # no records
        ({"features": [[1.0, np.nan]] * 3}, ValueError),
        ({"features": [[1.0, np.inf]] * 3}, ValueError),
        ({"features": [1.0, 2.0, 3.0]}, ValueError),  # not a matrix
        ({"labels": [0, 1]}, ValueError),  # too few
        ({"labels": [0, 1, 2]}, ValueError),  # no class of logistic regression
        ({"labels": [0, 1, -1]}, ValueError),
        ({"labels": [0, 1, 0.5]}, ValueError),
        ({"labels": [0, 1, np.nan]}, ValueError),
        ({"labels": None}, ValueError),
        ({"loss": "softmax", "num_classes": 2, "labels": [0, 1, 2]}, ValueError),
        ({"loss": "softmax", "num_classes": 1}, ValueError),
        ({"loss": "network"}, ValueError),  # without hidden units
        ({"loss": "hinge"}, ValueError),
        ({"loss": 3}, TypeError),
        ({"feature_bound": 0.1}, ValueError),  # below a record's norm
        ({"curvature": 0.0}, ValueError),
    ],
)
def test_bad_problems(arguments, error):
    """A problem that is not one is refused, not trained on."""
    good: dict[str, Any] = {"loss": "logistic", "features": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], "labels": [0, 1, 1]}
    simulate.Problem(**good)
    with pytest.raises(error):
        simulate.Problem(**(good | arguments))


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"learning_rate": 0.0}, ValueError),
        ({"learning_rate": math.nan}, ValueError),
        ({"learning_rate": "0.1"}, TypeError),
        ({"clip_norm": -1.0}, ValueError),
        ({"noise_std": -0.1}, ValueError),
        ({"noise_std": math.inf}, ValueError),
        ({"noise_std": (0.1, -0.1)}, ValueError),
        ({"radius": 0.0}, ValueError),
        ({"local_steps": 0}, ValueError),
        ({"local_steps": -1}, ValueError),
        ({"local_steps": 2.0}, TypeError),
        ({"local_steps": True}, TypeError),
        ({"schedule": "linear"}, ValueError),
        ({"clipping": "silo"}, ValueError),
        ({"records": 5}, TypeError),
        ({"clients": (simulate.EveryRound(),)}, TypeError),
    ],
)
def test_bad_settings(settings, error):
    """Settings outside their domains are refused when they are made."""
    good: dict[str, Any] = {"learning_rate": 0.1, "local_steps": 2, "clip_norm": 1.0, "noise_std": 0.1}
    with pytest.raises(error):
        simulate.NoisyFedAvg(**(good | settings))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"rounds": 0}, ValueError),
        ({"rounds": -3}, ValueError),
        ({"rounds": 2.5}, TypeError),
        ({"rounds": True}, TypeError),
        ({"num_runs": 0}, ValueError),
        ({"num_runs": 1.0}, TypeError),
        ({"first_run": -1}, ValueError),
        ({"seed": -1}, ValueError),
        ({"seed": 2**64}, ValueError),
        ({"seed": 1.5}, TypeError),
        ({"seed": True}, TypeError),
        ({"record_every": 0}, ValueError),
        ({"num_threads": 0}, ValueError),
        ({"budget": 1.0}, TypeError),
        ({"budget": (-1.0, 1e-5)}, ValueError),
        ({"budget": (1.0, 1.0)}, ValueError),
        ({"initial": [0.0]}, ValueError),  # of another dimension
        ({"initial": [math.nan] * 5}, ValueError),
        ({"progress": 1}, TypeError),
        ({"num_runs": 10**6, "rounds": 10**6, "record_every": 1}, ValueError),  # would not fit
    ],
)
def test_bad_runs(arguments, error):
    """Arguments of a run outside their domains are refused before anything runs."""
    with pytest.raises(error):
        run(SGD, **arguments)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (
            simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=1.0, records=simulate.FixedSize(16)),
            "of silo 2 must",
        ),
        (simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=1.0, records=simulate.Shuffled(16)), "of silo 2 must"),
        (
            simulate.NoisyMinibatchSGD(
                learning_rate=0.5, clip_norm=1.0, records=simulate.FixedSize(5), clients=simulate.FixedSize(5)
            ),
            "clients must draw at most 4",
        ),
        (
            simulate.NoisyMinibatchSGD(
                learning_rate=0.5, clip_norm=1.0, records=simulate.FixedSize(5), clients=simulate.WithReplacement(2)
            ),
            "at most once in a round",
        ),
        (
            simulate.NoisyMinibatchSGD(
                learning_rate=0.5, clip_norm=1.0, noise_std=(0.1, 0.2), records=simulate.FixedSize(5)
            ),
            "Length of noise_std",
        ),
        (simulate.ProjectedNoisySGD(learning_rate=0.5, clip_norm=1.0), "one silo"),
        (simulate.TreeFTRL(learning_rate=0.5, clip_norm=1.0, records=simulate.Cyclic(5), restart=True), "one silo"),
        (
            simulate.MultistageMinibatchSGD(stages=((2, 3.0),), clip_norm=1.0, records=simulate.FixedSize(5)),
            "at most those of all stages",
        ),
    ],
)
def test_settings_must_fit_the_problem(algorithm, message):
    """A batch larger than a silo, or settings for another number of silos, are refused before anything runs."""
    with pytest.raises(ValueError, match=message):
        run(algorithm)
