"""What the server does in one round: choose a point, and move the model by the mean of the messages."""

from __future__ import annotations

from collections.abc import Callable

from hockeystick.simulate.kernels import core, internal
from hockeystick.simulate.kernels.clients import step_size, work_at
from hockeystick.simulate.kernels.core import part, pointer, row, rule_at
from hockeystick.simulate.running.rule import (
    ACCELERATED,
    AVERAGE,
    BASE,
    HELPER,
    MEAN,
    MODEL,
    RELEASED,
    STEP,
    STOP,
    STOPPED,
    TREE,
    TREE_NOISE,
    UpdateRule,
)


@internal
def _acceleration(rule, rnd):
    """Return alpha_r = 2/(r + 1) and eta_r = 4 phi/(r (r + 1)) of accelerated stochastic approximation, and where the last iterate stands.

    Rounds are counted from 1 in each stage. A stage starts from the model that the stage before released: in the first round of a stage
    that model is the last iterate.
    """
    stage = 0
    while stage + 1 < rule.stage_starts.size and rule.stage_starts[stage + 1] <= rnd:
        stage += 1
    r = rnd - rule.stage_starts[stage] + 1
    return 2.0 / (r + 1), 4.0 * rule.stage_scales[stage] / (r * (r + 1.0)), RELEASED if r == 1 else MODEL


@part
def accelerated_point(data, rule, work, r, k, rnd, seed):  # noqa: ARG001 - as all parts
    """Write the point at which the clients take their gradients in this round."""
    rule, work = rule_at(rule), work_at(work)
    state, at = work.states[r], work.at[k]
    a, eta, last = _acceleration(rule, rnd)
    mu = rule.strong_convexity
    w, mean, total = state[last], state[RELEASED], eta + (1.0 - a * a) * mu
    for j in range(at.size):
        at[j] = ((1.0 - a) * (mu + eta) * mean[j] + a * ((1.0 - a) * mu + eta) * w[j]) / total
    return 1


@part
def _accelerated(data, rule, work, r, k, rnd, seed):  # noqa: ARG001 - as all parts
    """Solve the proximal step in closed form, and average."""
    rule, work = rule_at(rule), work_at(work)
    state, at, gradient = work.states[r], work.at[k], work.totals[k]
    a, eta, last = _acceleration(rule, rnd)
    mu, pull = rule.strong_convexity, rule.regularization
    w, before, mean, base = state[MODEL], state[last], state[RELEASED], state[BASE]
    for j in range(w.size):
        slope = gradient[j] + pull * (at[j] - base[j])
        w[j] = (a * mu * at[j] + ((1.0 - a) * mu + eta) * before[j] - a * slope) / (mu + eta)
    core.project(rule.radius, pointer(w), w.size)
    for j in range(w.size):
        mean[j] = a * w[j] + (1.0 - a) * mean[j]
    return 1


@part
def _tree(data, rule, work, r, k, rnd, seed):  # noqa: ARG001 - as all parts
    """Step from the base against the sum of all gradients of this tree, with the noise of its prefix."""
    rule, work = rule_at(rule), work_at(work)
    state, stream, size = work.states[r], pointer(work.stream), work.record.size
    w, total, base = row(state, MODEL), row(state, HELPER), row(state, BASE)
    tree, number = rnd // rule.tree_rounds, rnd % rule.tree_rounds + 1
    if number == 1:
        core.copy(w, base, size)
        core.clear(total, size)
    core.add(1.0, row(work.totals, k), total, size)
    core.copy(total, w, size)
    level = 0
    while number >> level:
        if (number >> level) & 1:  # the node of 2^level rounds that ends where the lower bits begin
            core.start_stream(stream, seed, TREE_NOISE, work.runs[k], tree, level, number >> level)
            core.add_normals(stream, rule.tree_noise, w, size)
        level += 1
    core.scale(-rule.learning_rate, w, size)
    core.add(1.0, base, w, size)
    core.project(rule.radius, w, size)
    return 1


@part
def _average(data, rule, work, r, k, rnd, seed):  # noqa: ARG001 - as all parts
    """Let the released model be the weighted mean of all models before their round, weights growing by 1/mean_decay; and step."""
    rule, work = rule_at(rule), work_at(work)
    q, state = rule.mean_decay, work.states[r]
    share = 1.0 / (rnd + 1) if q == 1.0 else (1.0 - q) / (1.0 - q ** (rnd + 1))
    w, mean = state[MODEL], state[RELEASED]
    for j in range(w.size):
        mean[j] += share * (w[j] - mean[j])
    move(rule, pointer(w), row(work.totals, k), w.size, rnd)
    return 1


def update_part(rule: UpdateRule) -> int:
    """Return the address of an update that few algorithms need, else 0."""
    parts: dict[tuple[int, bool], Callable[[], int]] = {
        (ACCELERATED, False): _accelerated,
        (TREE, False): _tree,
        (STEP, True): _average,
        (AVERAGE, True): _average,
    }
    found = parts.get((rule.server, rule.release == MEAN and rule.server != ACCELERATED))
    return found() if found else 0


@internal
def move(rule, w, mean, size, rnd):
    """Move the model to the mean of the messages, or by it."""
    if rule.server == AVERAGE:
        core.copy(mean, w, size)
    else:
        core.add(-step_size(rule, rnd, 0), mean, w, size)
    core.project(rule.radius, w, size)


@internal
def release(rule, state, size, rnd, run, seed, stream):
    """Release the model, unless another is, or the run has stopped."""
    if rule.release == MEAN or rule.server == ACCELERATED:
        return
    if rule.release == STOPPED:
        core.start_stream(stream, seed, STOP, run, 0, 0, 0)
        if rnd > rule.rounds - rule.stop_rounds + core.below(stream, rule.stop_rounds):
            return
    core.copy(row(state, MODEL), row(state, RELEASED), size)
