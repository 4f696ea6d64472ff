"""A problem of four silos and four algorithms, for short runs of the simulator."""

import dataclasses
import math
from typing import Any

import numpy as np

from hockeystick import simulate
from hockeystick.simulate.running import rule

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
STAGES = simulate.MultistageMinibatchSGD(
    stages=((4, 2.0), (36, 5.0)), clip_norm=1.0, noise_std=0.2, strong_convexity=0.1, records=simulate.FixedSize(5)
)


SAMPLERS = (
    simulate.EveryRound(),
    simulate.Poisson(0.3),
    simulate.Poisson(0.3, expected_batch_size=4),
    simulate.FixedSize(3),
    simulate.WithReplacement(3),
    simulate.Shuffled(3),
    simulate.Cyclic(3),
)
EVERYONE = simulate.NoisyMinibatchSGD(learning_rate=1.0, clip_norm=math.inf, records=simulate.EveryRound())


def gradient(problem: simulate.Problem, model: np.ndarray, clip_norm: float = math.inf) -> np.ndarray:
    """Return the mean over silos of the mean clipped gradients: what one noiseless step of size 1 takes off a model."""
    step = dataclasses.replace(EVERYONE, clip_norm=clip_norm)
    return model - run(step, problem, rounds=1, initial=model).last_iterates[0]


def step_divisors(schedule: str, rounds: int, local_steps: int) -> np.ndarray:
    """Return what the step size is divided by in every local step of every round, shape (rounds, local_steps)."""
    t, k = np.indices((rounds, local_steps))
    return {"constant": 1 + 0 * t, "cyclic": k + 1, "stagewise": t + 1, "continuous": t * local_steps + k + 1}[schedule]


def run(algorithm: simulate.Algorithm, problem: simulate.Problem = SILOS, **arguments: Any) -> simulate.Result:
    """Run on one thread, by default 6 rounds."""
    return simulate.run(algorithm, problem, **({"rounds": 6, "seed": 7, "num_threads": 1} | arguments))


def core(name: str, *given: Any) -> Any:
    """Call a function of the core that the simulator's loops call."""
    return rule.function(name)(*(one.ctypes if isinstance(one, np.ndarray) else one for one in given))
