"""A problem of four silos and three algorithms, for short runs of the simulator."""

from __future__ import annotations

from typing import Any

from hockeystick import simulate

SILOS = simulate.synthetic("logistic", sizes=[20, 35, 15, 30], num_features=5, seed=1, heterogeneity=0.5)
SGD = simulate.NoisyMinibatchSGD(learning_rate=0.5, clip_norm=1.0, noise_std=0.2, records=simulate.FixedSize(5))
FEDAVG = simulate.NoisyFedAvg(
    learning_rate=0.1,
    local_steps=3,
    clip_norm=1.0,
    noise_std=0.3,
    records=simulate.FixedSize(5),
    clients=simulate.FixedSize(3),
)
LEARNT = simulate.AdaptiveClippingSGD(
    learning_rate=0.3,
    clip_norm=1.5,
    quantile=0.4,
    clip_rate=0.5,
    noise_multiplier=0.8,
    count_noise=0.9,
    records=simulate.Poisson(0.2),
)


def run(algorithm: simulate.Algorithm, problem: simulate.Problem = SILOS, **arguments: Any) -> simulate.Result:
    """Run on one thread, by default 6 rounds."""
    return simulate.run(algorithm, problem, **({"rounds": 6, "seed": 7, "num_threads": 1} | arguments))
