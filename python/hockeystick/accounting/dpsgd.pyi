from typing import overload

from numpy.typing import ArrayLike

from hockeystick._checks import Doubles, OnError
from hockeystick.mechanisms.base import Adjacency

__all__ = [
    "dpsgd_certificate",
    "dpsgd_delta",
    "dpsgd_epsilon",
    "dpsgd_noise_multiplier",
    "dpsgd_sampling_rate",
    "dpsgd_steps",
]

def dpsgd_certificate(
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    lower: bool = False,
    slack: float = 0.0,
    adjacency: Adjacency = "add_or_remove",
) -> str: ...
@overload
def dpsgd_delta(
    noise_multiplier: float,
    sampling_rate: float,
    steps: float,
    epsilon: float,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> float: ...
@overload
def dpsgd_delta(
    noise_multiplier: ArrayLike,
    sampling_rate: ArrayLike,
    steps: ArrayLike,
    epsilon: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Doubles: ...
@overload
def dpsgd_epsilon(
    noise_multiplier: float,
    sampling_rate: float,
    steps: float,
    delta: float,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> float: ...
@overload
def dpsgd_epsilon(
    noise_multiplier: ArrayLike,
    sampling_rate: ArrayLike,
    steps: ArrayLike,
    delta: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Doubles: ...
@overload
def dpsgd_noise_multiplier(
    sampling_rate: float,
    steps: float,
    epsilon: float,
    delta: float,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> float: ...
@overload
def dpsgd_noise_multiplier(
    sampling_rate: ArrayLike,
    steps: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Doubles: ...
@overload
def dpsgd_steps(
    noise_multiplier: float,
    sampling_rate: float,
    epsilon: float,
    delta: float,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> int | float: ...  # float where it is infinite
@overload
def dpsgd_steps(
    noise_multiplier: ArrayLike,
    sampling_rate: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Doubles: ...
@overload
def dpsgd_sampling_rate(
    noise_multiplier: float,
    steps: float,
    epsilon: float,
    delta: float,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> float: ...
@overload
def dpsgd_sampling_rate(
    noise_multiplier: ArrayLike,
    steps: ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    num_threads: int | None = None,
    on_error: OnError = "raise",
) -> Doubles: ...
