"""What the demonstration compares: published, certified and exact values of two theorems, and a million cells."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hockeystick.federated import fedavg_epsilon
from hockeystick.kernels import gaussian_epsilon
from hockeystick.last_iterate import best as last_iterate_best
from hockeystick.last_iterate import chain_delta
from hockeystick.published import UnsoundBoundWarning, fedavg_gdp

Array = NDArray[np.float64]

DELTA = 1e-5
ROUNDS = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
LATER = np.array([0, 1, 2, 4, 6, 8, 10])

CLIENTS, NOISE_STD = 10, 2.0  # of Noisy-FedAvg with one local step, learning rate, clip norm and smoothness 1
EPS, LIPSCHITZ, DIAMETER = 1.0, 0.5, 2.0  # of projected noisy SGD with learning rate 0.5 and noise 0.5

GRID_NOISE = np.geomspace(0.3, 300.0, 100)
GRID_ROUNDS = np.arange(10, 1001, 10)
GRID_STEPS = np.arange(1, 101)


@dataclass(frozen=True)
class Comparison:
    """Certified, published and exact values over rounds."""

    rounds: NDArray[np.int64]
    published: Array
    certified: Array
    exact: Array


def compare_fedavg() -> Comparison:
    """Return epsilons of Noisy-FedAvg; exact for linear losses, whose gradients are +V or -V in every round."""
    setting: dict[str, Any] = {
        "rounds": ROUNDS,
        "local_steps": 1,
        "num_clients": CLIENTS,
        "clip_norm": 1.0,
        "noise_std": NOISE_STD,
        "smoothness": 1.0,
        "learning_rate": 1.0,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsoundBoundWarning)  # that it is unsound is the point
        printed = fedavg_gdp(**setting)
    distance = 2.0 * ROUNDS / CLIENTS  # of the last model's means
    deviation = np.sqrt(ROUNDS / CLIENTS) * NOISE_STD
    return Comparison(
        ROUNDS,
        np.asarray(gaussian_epsilon(printed, DELTA)),
        np.asarray(fedavg_epsilon(DELTA, **setting)),
        np.asarray(gaussian_epsilon(distance / deviation, DELTA)),
    )


def compare_last_iterate() -> Comparison:
    """Return deltas of projected noisy SGD by the rounds after a record's; exact for the worst of some linear losses."""
    noise: dict[str, Any] = {"learning_rate": 0.5, "noise_std": 0.5, "diameter": DIAMETER}
    best = last_iterate_best(EPS, index=1, num_records=LATER + 1, lipschitz=LIPSCHITZ, smoothness=0.0, **noise)
    exact = [
        max(
            chain_delta(
                EPS,
                gradient_map="linear",
                record=np.append(LIPSCHITZ, np.full(later, pull)),
                neighbour=np.append(-LIPSCHITZ, np.full(later, pull)),
                start=start,
                **noise,
            ).upper
            for pull in (-LIPSCHITZ, 0.0, LIPSCHITZ)
            for start in (-DIAMETER / 2, 0.0, DIAMETER / 2)
        )
        for later in LATER
    ]
    return Comparison(LATER, best.bounds["contraction"], best.delta, np.array(exact))


def million_cells() -> Array:
    """Return the certified epsilon of Noisy-FedAvg for a hundred each of noise levels, rounds and local steps."""
    return np.asarray(
        fedavg_epsilon(
            DELTA,
            rounds=GRID_ROUNDS[:, np.newaxis],
            local_steps=GRID_STEPS[:, np.newaxis, np.newaxis],
            num_clients=100,
            clip_norm=10.0,
            noise_std=GRID_NOISE,
            smoothness=1.0,
            learning_rate=0.01,
        )
    )
