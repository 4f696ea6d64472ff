"""What the compiled loops are told: an algorithm's settings and a problem's data as plain numbers and arrays; and the core's functions."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import hockeystick._core as core

Vector: TypeAlias = NDArray[np.float64]  # how many axes there are, the compiled loops learn from the annotation
Matrix: TypeAlias = NDArray[np.float64]
States: TypeAlias = NDArray[np.float64]  # (runs, SLOTS, dimension)
Integers: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]

# Of clip norms: the squares of gradients that are as long are normal doubles, in any dimension up to 2^90, so that no longer one passes for a short one.
LEAST_CLIP_NORM = 1e-138
MAX_BYTES = 2**32  # of recorded models, and of learnt clip norms

# The vectors of a run's state.
MODEL = 0  # the iterate
RELEASED = 1  # what the algorithm puts out after this round
HELPER = 2  # tree noise: the sum of the gradients
BASE = 3  # the model that a regulariser, or the sum of the gradients, starts from
SLOTS = 4

# Samplers, in the order of cpp/include/hockeystick/simd/random_streams.hpp.
EVERY, POISSON, FIXED_SIZE, WITH_REPLACEMENT, SHUFFLED, CYCLIC = range(6)
CYCLIC_POISSON, BALLS_IN_BINS, MIN_SEPARATED, WARM_MIN_SEPARATED = range(6, 10)
# Losses, of which OF_SCORE and OWN are the user's.
LINEAR, LEAST_SQUARES, LOGISTIC, QUADRATIC, SOFTMAX, NETWORK, HINGE, ABSOLUTE, OF_SCORE, OWN = range(10)
LINEAR_IN_RECORD = (LINEAR, LEAST_SQUARES, LOGISTIC, HINGE, ABSOLUTE, OF_SCORE)
# What a stream is for; the second word of its key.
CLIENTS, RECORDS, NOISE, STEP_NOISE, PROTOCOL, TREE_NOISE, STOP, DROPOUT = range(8)
STREAM_WORDS = 11
GAUSSIAN, LAPLACE = 0, 1  # noise
AVERAGE, STEP, ACCELERATED, TREE = range(4)  # what the server does with the mean of the messages
LAST, MEAN, STOPPED = range(3)  # what is released
ONE = np.ones(1)  # a factor of all rounds


class Data(NamedTuple):
    """The records of all silos, one after another; `Records` of cpp/include/hockeystick/simd/record_losses.hpp has the same fields."""

    kind: int
    outputs: int
    hidden: int
    curvature: float  # of a smoothed loss, the parameter of the envelope
    features: Matrix  # (records, features)
    labels: Vector  # (records,)
    norms: Vector  # (records,), of the features
    offsets: Integers  # (silos + 1,)
    factors: Vector  # (silos,), of every loss of a silo: its weight times the number of silos
    value: int = 0  # addresses of a loss of the user's own, of this process; else 0
    gradient: int = 0  # of OF_SCORE, the slope
    predict: int = 0


class UpdateRule(NamedTuple):
    """One round of an algorithm; a field that most algorithms do not use says what it is without it."""

    rounds: int
    client_sampler: int
    client_size: int
    client_rate: float
    client_weights: Vector  # (silos,), of the messages in their mean
    record_samplers: Integers  # (silos,)
    record_sizes: Integers  # (silos,)
    record_rates: Vector  # (silos,)
    record_divisors: Vector  # (silos,), of a batch's sum of gradients
    clip_norm: float
    noise_scales: Vector  # (silos,), of what a client sends
    learning_rate: float
    radius: float
    stop_rounds: int  # STOPPED: the last ones, among which the stop is uniform
    local_steps: int = 0  # 0: clients send gradients; else models
    dropout: float = 0.0  # probability that a client that is drawn drops out
    clip_batch: bool = False  # clip the batch's mean gradient, not each record's
    noise: int = GAUSSIAN
    step_noise: float = 0.0  # of each local gradient
    protocol_levels: int = 0  # 0: no shuffle protocol
    protocol_bits: int = 0
    protocol_rate: float = 0.0
    schedule: int = 0
    step_factors: Vector = ONE  # of the rounds; the last one counts for all later
    noise_factors: Vector = ONE  # likewise
    prox: float = 0.0
    tolerance: float = 0.0  # of the proximal problem's gradient; 0: all local steps are taken
    reach: float = math.inf  # by how much a client's model may move in a round
    server: int = STEP
    release: int = LAST
    mean_decay: float = 1.0
    stage_starts: Integers = np.zeros(1, np.int64)
    stage_scales: Vector = ONE
    strong_convexity: float = 0.0
    regularization: float = 0.0
    tree_rounds: int = 1  # after which a tree ends
    tree_noise: float = 0.0
    quantile: float = 0.0  # of the gradients' norms, that a learnt clip norm follows
    clip_rate: float = 0.0  # how quickly; 0: clip_norm is that of every round
    count_noise: float = 0.0  # of the count that it is learnt from, in records


# Result and arguments of the core's functions: pointers, integers, words, doubles and nothing.
SIGNATURES = {
    # cpp/include/hockeystick/simd/record_losses.hpp
    "record_gradient": ("v", "ppipp"),
    "record_value": ("d", "ppip"),
    "record_class": ("i", "ppip"),
    "add_batch": ("v", "ppiipiddpp"),
    # cpp/include/hockeystick/simd/model_vectors.hpp
    "norm": ("d", "pi"),
    "copy": ("v", "ppi"),
    "clear": ("v", "pi"),
    "scale": ("v", "dpi"),
    "add": ("v", "dppi"),
    "clip": ("v", "dpi"),
    "add_clipped": ("v", "dddppi"),
    "project": ("v", "dpi"),
    "step": ("v", "ddpppi"),
    "residual": ("d", "dpppi"),
    "keep_within": ("v", "dpppi"),
    "all_finite": ("i", "pi"),
    # cpp/include/hockeystick/simd/random_streams.hpp
    "start_stream": ("v", "pwiiiii"),
    "next_word": ("w", "p"),
    "unit": ("d", "w"),
    "below": ("i", "pi"),
    "add_laplace": ("v", "pdpi"),
    "to_normals": ("v", "ppi"),
    "add_normals": ("v", "pdpi"),
    "encode": ("d", "pddiid"),
    "encode_vector": ("v", "ppidiid"),
    "remaining": ("i", "pdip"),
    "draw": ("i", "pwiiiiiidipp"),
}
_C: dict[str, Any] = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "w": ctypes.c_uint64, "d": ctypes.c_double, "v": None}
ADDRESSES: dict[str, int] = core.simulator_functions()


def function(name: str) -> Callable[..., Any]:
    """Return a function of the core for Python; arrays are given as their `ctypes`."""
    result, given = SIGNATURES[name]
    return ctypes.CFUNCTYPE(_C[result], *(_C[kind] for kind in given))(ADDRESSES[name])
