"""What gate.py holds a change to: calls that a user waits for, each a few milliseconds at most.

Every call takes its number k, and changes its arguments by it where the answer would come from a cache otherwise. A call that
the base does not have yet is left out of the comparison. Nothing is imported here that older versions lack.
"""

from functools import partial

import accountants
import numpy as np

import hockeystick as hs

EPS, R = np.linspace(0.01, 8.0, 20_000), np.geomspace(0.1, 10.0, 20_000)
DELTA = np.geomspace(1e-12, 0.3, 20_000)
ETA = np.linspace(0.5, 0.999, 10_000)
SOME = slice(None, None, 20)  # of the slow inverses
STEPS, ROUNDS_EPS, ROUNDS_DELTA = (array[:20] for array in accountants.warm_cells())
OURS = accountants.HockeyStick


def nudge(k):
    return 1e-10 * (k + 1)


def kernel(name, *arguments):
    return lambda _k: getattr(hs, name)(*arguments)


def cold_epsilon(case, k):
    return OURS.epsilon(accountants.CASES[case], nudge(k))


def cold_grid(k):
    return OURS.grid(accountants.GRID[::16], nudge(k))


def fedavg(_k):
    return hs.federated.fedavg_delta(
        1.0,
        clip_norm=10.0,
        learning_rate=0.01,
        smoothness=1.0,
        num_clients=50,
        schedule="stagewise",
        local_steps=np.arange(1, 51),
        rounds=np.arange(1, 21)[:, None],
        noise_std=1.0,
        num_threads=1,
    )


WORKLOADS = {
    "q": kernel("q", EPS),
    "log_q": kernel("log_q", EPS),
    "theta": kernel("theta", EPS, R),
    "log_theta": kernel("log_theta", EPS, R),
    "theta_inverse": kernel("theta_inverse", EPS[SOME], DELTA[SOME]),
    "gaussian_epsilon": kernel("gaussian_epsilon", R[SOME], DELTA[SOME]),
    "contraction_sum": kernel("contraction_sum", 0.5, ETA),
    "shifted_interpolation": kernel("shifted_interpolation", ETA, 0.1 * ETA),
    "fedavg_delta, a grid": fedavg,
    **{f"DP-SGD, cold epsilon {case}": partial(cold_epsilon, case) for case in accountants.CASES},
    "DP-SGD, cold grid": cold_grid,
    "DP-SGD, warm deltas": lambda _k: OURS.warm_delta(STEPS, ROUNDS_EPS),
    "DP-SGD, warm epsilons": lambda _k: OURS.warm_epsilon(STEPS, ROUNDS_DELTA),
    "mixed ledger": lambda k: OURS.mixed(nudge(k)),
    "calibrated noise": lambda k: OURS.noise(nudge(k)),
}
