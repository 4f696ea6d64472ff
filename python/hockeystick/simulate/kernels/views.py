"""Arrays without a reference count, and numbers on the stack.

Numba counts the references to every array that a function is given, also within a tuple; the counters are atomic, so that threads
which share data wait for each other in every step. What is borrowed has no counter: its owner must outlive it.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils

from hockeystick.simulate.kernels import inlined, intrinsic
from hockeystick.simulate.running.rule import Data, UpdateRule


@intrinsic
def borrow(typing_context, array):  # noqa: ARG001
    """Return the same array without its owner."""

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate


@intrinsic(prefer_literal=True)
def scratch(typing_context, count):  # noqa: ARG001
    """Return a pointer to `count` numbers, a constant, on the caller's stack."""
    size = count.literal_value

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return cgutils.alloca_once(builder, context.get_value_type(types.float64), size=size)

    return types.CPointer(types.float64)(count), generate


@inlined
def borrow_data(data):
    """Return the same data without owners."""
    return Data(
        data.kind,
        data.outputs,
        data.hidden,
        data.curvature,
        borrow(data.features),
        borrow(data.labels),
        borrow(data.norms),
        borrow(data.offsets),
        borrow(data.factors),
        data.value,
        data.gradient,
        data.predict,
    )


@inlined
def borrow_rule(rule):
    """Return the same rule without owners."""
    return UpdateRule(
        rule.rounds,
        rule.local_steps,
        rule.client_sampler,
        rule.client_size,
        rule.client_rate,
        rule.dropout,
        borrow(rule.client_weights),
        borrow(rule.record_samplers),
        borrow(rule.record_sizes),
        borrow(rule.record_rates),
        borrow(rule.record_divisors),
        rule.clip_norm,
        rule.clip_batch,
        rule.noise,
        borrow(rule.noise_scales),
        rule.step_noise,
        rule.protocol_levels,
        rule.protocol_bits,
        rule.protocol_rate,
        rule.learning_rate,
        rule.schedule,
        borrow(rule.step_factors),
        borrow(rule.noise_factors),
        rule.prox,
        rule.tolerance,
        rule.reach,
        rule.radius,
        rule.server,
        rule.release,
        rule.stop_rounds,
        rule.mean_decay,
        borrow(rule.stage_starts),
        borrow(rule.stage_scales),
        rule.strong_convexity,
        rule.regularization,
        rule.tree_rounds,
        rule.tree_noise,
        rule.quantile,
        rule.clip_rate,
        rule.count_noise,
    )
