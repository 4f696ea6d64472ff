"""What the server does in one round: choose a point, and move the model by the mean of the messages."""

from __future__ import annotations

import math

from hockeystick.simulate.kernels import inlined, losses, spliced, streams
from hockeystick.simulate.kernels.clients import step_size
from hockeystick.simulate.running.rule import ACCELERATED, AVERAGE, BASE, HELPER, MEAN, MODEL, RELEASED, STOPPED, TREE


@inlined
def project(w, radius):
    """Move a point to the nearest one of a ball around the origin."""
    if radius < math.inf:
        norm = math.sqrt(losses.dot(w, w))
        if norm > radius:
            losses.scale(radius / norm, w)


@spliced
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


@spliced
def write_point(rule, state, rnd, at):
    """Write the point at which the clients take their gradients in this round, or from which they start."""
    if rule.server == ACCELERATED:
        a, eta, last = _acceleration(rule, rnd)
        mu = rule.strong_convexity
        w, mean, total = state[last], state[RELEASED], eta + (1.0 - a * a) * mu
        for j in range(at.size):
            at[j] = ((1.0 - a) * (mu + eta) * mean[j] + a * ((1.0 - a) * mu + eta) * w[j]) / total
    else:
        losses.copy(state[MODEL], at)


@spliced
def _accelerated(rule, state, at, gradient, rnd):
    """Solve the proximal step in closed form, and average."""
    a, eta, last = _acceleration(rule, rnd)
    mu, pull = rule.strong_convexity, rule.regularization
    w, before, mean, base = state[MODEL], state[last], state[RELEASED], state[BASE]
    for j in range(w.size):
        slope = gradient[j] + pull * (at[j] - base[j])
        w[j] = (a * mu * at[j] + ((1.0 - a) * mu + eta) * before[j] - a * slope) / (mu + eta)
    project(w, rule.radius)
    for j in range(w.size):
        mean[j] = a * w[j] + (1.0 - a) * mean[j]


@spliced
def _tree(rule, state, gradient, rnd, run, seed, stream):
    """Step from the base against the sum of all gradients of this tree, with the noise of its prefix."""
    tree, number = rnd // rule.tree_rounds, rnd % rule.tree_rounds + 1
    total, w = state[HELPER], state[MODEL]
    if number == 1:
        losses.copy(w, state[BASE])
        losses.fill(0.0, total)
    losses.add(1.0, gradient, total)
    losses.copy(total, w)
    level = 0
    while number >> level:
        if (number >> level) & 1:  # the node of 2^level rounds that ends where the lower bits begin
            streams.start(stream, seed, streams.TREE, run, tree, level, number >> level)
            streams.add_normals(stream, rule.tree_noise, w)
        level += 1
    losses.scale(-rule.learning_rate, w)
    losses.add(1.0, state[BASE], w)
    project(w, rule.radius)


@spliced
def _average(rule, state, rnd):
    """Let the released model be the weighted mean of all models before their round; weights grow by 1/mean_decay."""
    q = rule.mean_decay
    share = 1.0 / (rnd + 1) if q == 1.0 else (1.0 - q) / (1.0 - q ** (rnd + 1))
    w, mean = state[MODEL], state[RELEASED]
    for j in range(w.size):
        mean[j] += share * (w[j] - mean[j])


@spliced
def update(rule, state, at, mean, rnd, run, seed, stream):
    """Move the state by the mean of the messages that were sent from a point; return whether it is finite."""
    w = state[MODEL]
    if rule.release == MEAN:
        _average(rule, state, rnd)
    if rule.server == ACCELERATED:
        _accelerated(rule, state, at, mean, rnd)
    elif rule.server == TREE:
        _tree(rule, state, mean, rnd, run, seed, stream)
    elif rule.server == AVERAGE:
        losses.copy(mean, w)
        project(w, rule.radius)
    else:
        rate = step_size(rule, rnd, 0)
        losses.add(-rate, mean, w)
        project(w, rule.radius)
    finite = True
    for j in range(w.size):
        finite = finite and math.isfinite(w[j])
    if rule.release == MEAN or rule.server == ACCELERATED:
        return finite
    if rule.release == STOPPED:
        streams.start(stream, seed, streams.STOP, run, 0, 0, 0)
        if rnd > rule.rounds - rule.stop_rounds + streams.below(stream, rule.stop_rounds):
            return finite
    losses.copy(w, state[RELEASED])
    return finite
