"""The theorems of the three papers, term by term as they are printed, to 50 digits.

Nothing is summed in closed form and nothing stops early: these are the naive sums that the compiled code must reproduce.
"""

import math
from collections.abc import Sequence
from functools import cache

import mpmath as mp

import high_precision as exact
from interpolation import by_all_starts, by_pooling


@cache
def theta(eps: mp.mpf, r: mp.mpf) -> mp.mpf:
    """E_{e^eps} of two unit Gaussians at distance r."""
    return exact.theta(eps, r)


def log_close(computed: float, reference: mp.mpf, tolerance: float = 1e-12) -> bool:
    """Compare two deltas by their logarithms; above one half by their complements, as far as doubles near 1 tell."""
    if reference < mp.mpf(2) ** -1022:  # subnormal doubles lose digits, and then everything
        return computed < 2.3e-308
    if reference > 0.5:
        return bool(abs(mp.mpf(float(computed)) - reference) <= tolerance * (1 - reference) + mp.mpf(2) ** -50)
    return bool(abs(mp.log(mp.mpf(float(computed)) / reference)) <= tolerance * max(1, -mp.log(reference)))


def contraction(learning_rate: float, smoothness: float, strong_convexity: float) -> mp.mpf:
    """M of Asoodeh, Diaz and Calmon, Eq. 14."""
    eta, beta, rho = map(mp.mpf, (learning_rate, smoothness, strong_convexity))
    return mp.sqrt(1 - 2 * eta * beta * rho / (beta + rho)) if rho else mp.mpf(1)


def pnsgd_gaussian(
    eps, *, index, num_records, learning_rate, noise_std, lipschitz, smoothness, strong_convexity=0.0, diameter
):
    """Theorem 4: theta(2L/sigma) theta(M D/(eta sigma))^(n-i)."""
    with mp.workdps(50):
        first = theta(mp.mpf(eps), 2 * mp.mpf(lipschitz) / mp.mpf(noise_std))
        m = contraction(learning_rate, smoothness, strong_convexity)
        value = first
        factor = theta(mp.mpf(eps), m * mp.mpf(diameter) / (mp.mpf(learning_rate) * mp.mpf(noise_std)))
        for _ in range(num_records - index):
            value *= factor
        return value


def pnsgd_laplace(
    eps, *, index, num_records, learning_rate, noise_scale, lipschitz, smoothness, strong_convexity=0.0, diameter
):
    """Theorem 3: (1 - e^(eps/2 - L/v))_+ (1 - e^(eps/2 - M (b-a)/(2 eta v)))_+^(n-i)."""
    with mp.workdps(50):
        eps, v = mp.mpf(eps), mp.mpf(noise_scale)
        m = contraction(learning_rate, smoothness, strong_convexity)
        value = max(mp.mpf(0), -mp.expm1(eps / 2 - mp.mpf(lipschitz) / v))
        factor = max(mp.mpf(0), -mp.expm1(eps / 2 - m * mp.mpf(diameter) / (2 * mp.mpf(learning_rate) * v)))
        for _ in range(num_records - index):
            value *= factor
        return value


def pnsgd_gaussian_random_stop(eps, *, num_records, **rest):
    """Theorem 5 as a finite sum: the mean over stops k = 0..n-1 rounds after the step of the record (worst index, 1)."""
    with mp.workdps(50):
        terms = (
            pnsgd_gaussian(eps, index=num_records - k, num_records=num_records, **rest) for k in range(num_records)
        )
        return mp.fsum(terms) / num_records


def pnsgd_rdp(eps, *, index, num_records, learning_rate, noise_std, lipschitz, smoothness, strong_convexity=0.0):
    """Proposition 1: e^(-(eps - kappa)^2/(4 kappa)) for eps > kappa, else 1."""
    with mp.workdps(50):
        m, k = contraction(learning_rate, smoothness, strong_convexity), num_records - index
        kappa = 2 * mp.mpf(lipschitz) ** 2 / mp.mpf(noise_std) ** 2
        if k:
            kappa *= m ** (k + 1) / k
        gap = mp.mpf(eps) - kappa
        return mp.exp(-(gap**2) / (4 * kappa)) if gap > 0 else mp.mpf(1)


def _per_round(value: float | Sequence[float], rounds: int) -> list[mp.mpf]:
    values = [value] * rounds if isinstance(value, (int, float)) else list(value)
    return [mp.mpf(float(x)) for x in values]


def trusted_aggregator_random_stop(
    eps, *, num_users, batch_size, learning_rate, noise_std, lipschitz, radius, loss, smoothness=None, suffix=1.0
):
    """Corollary 3 over the last ceil(suffix T) rounds: mean over stops of (m/n) sum over t of theta_t prod theta_j."""
    del smoothness
    with mp.workdps(50):
        rounds = num_users // batch_size
        eta, sigma, lip, rho = (_per_round(x, rounds) for x in (learning_rate, noise_std, lipschitz, radius))
        root = mp.sqrt(batch_size)
        first = [theta(mp.mpf(eps), 2 * lip[t] / (root * sigma[t])) for t in range(rounds)]
        # round t maps the ball of the round before
        image = [rho[max(t - 1, 0)] + (eta[t] * lip[t] if loss == "nonconvex" else 0) for t in range(rounds)]
        factor = [theta(mp.mpf(eps), 2 * image[t] * root / (eta[t] * sigma[t])) for t in range(rounds)]
        stops = range(rounds - math.ceil(suffix * rounds) + 1, rounds + 1)
        total = mp.mpf(0)
        for stop in stops:
            for t in range(stop):
                term = first[t]
                for j in range(t + 1, stop):
                    term *= factor[j]
                total += term
        return total * batch_size / num_users / len(stops)


def trusted_aggregator(eps, *, num_users, batch_size, **rest):
    """Theorem 2: released after the last round only."""
    return trusted_aggregator_random_stop(
        eps, num_users=num_users, batch_size=batch_size, suffix=1.0 / (num_users // batch_size) / 2, **rest
    )


def steps(schedule: str, learning_rate: float, t: int, local_steps: int) -> list[mp.mpf]:
    """eta_{t,k} of the four schedules, t and k from 0."""
    mu = mp.mpf(learning_rate)
    return [
        {
            "constant": mu,
            "cyclic": mu / (k + 1),
            "stagewise": mu / (t + 1),
            "continuous": mu / (t * local_steps + k + 1),
        }[schedule]
        for k in range(local_steps)
    ]


def fedavg_rounds(*, rounds, local_steps, num_clients, clip_norm, smoothness, learning_rate, schedule="constant"):
    """rho_t = prod_k (1 + eta_tk L) and gamma_t = (2V/m) sum_k eta_tk."""
    rho, gamma = [], []
    for t in range(rounds):
        eta = steps(schedule, learning_rate, t, local_steps)
        rho.append(mp.fprod(1 + e * mp.mpf(smoothness) for e in eta))
        gamma.append(2 * mp.mpf(clip_norm) / num_clients * mp.fsum(eta))
    return rho, gamma


def fedprox_rounds(
    *, rounds, local_steps, num_clients, clip_norm, smoothness, learning_rate, prox, schedule="constant"
):
    """x_{k+1} = (1 - eta_k(alpha - L)) x_k + eta_k alpha from 1, and s_{k+1} = (1 - eta_k alpha) s_k + 2V eta_k/m from 0."""
    alpha, rho, gamma = mp.mpf(prox), [], []
    for t in range(rounds):
        x, s = mp.mpf(1), mp.mpf(0)
        for eta in steps(schedule, learning_rate, t, local_steps):
            x = (1 - eta * (alpha - mp.mpf(smoothness))) * x + eta * alpha
            s = (1 - eta * alpha) * s + 2 * mp.mpf(clip_norm) * eta / num_clients
        rho.append(x)
        gamma.append(s)
    return rho, gamma


def gdp_parameter(rho, gamma, *, num_clients, noise_std, diameter=None):
    """(sqrt m/sigma) sqrt of the least sum of squared shifts."""
    least = by_pooling(rho, gamma) if diameter is None else by_all_starts(rho, gamma, 0.0, diameter)
    return mp.sqrt(num_clients * least) / mp.mpf(noise_std)


def printed_fedavg(
    *,
    rounds,
    local_steps,
    num_clients,
    clip_norm,
    noise_std,
    smoothness,
    learning_rate,
    schedule="constant",
    c=None,
    z=None,
):
    """Theorem 12 of Sun, Shen and Tao, parts (a) to (d), as printed."""
    unit = 2 * mp.mpf(clip_norm) / (mp.sqrt(num_clients) * mp.mpf(noise_std))
    mu, smooth, k, t = mp.mpf(learning_rate), mp.mpf(smoothness), local_steps, rounds
    if schedule in ("stagewise", "continuous"):
        return unit * (mu * k if schedule == "stagewise" else mp.mpf(z)) * mp.sqrt(2 - mp.mpf(1) / t)
    if schedule == "constant":
        unit, rho = unit * mu * k, (1 + mu * smooth) ** k
    else:
        unit, rho = unit * mp.mpf(c) * mp.log(k + 1), (mp.mpf(1) + k) ** (mp.mpf(c) * mu * smooth)
    return unit * mp.sqrt((rho + 1) / (rho - 1) * (rho**t - 1) / (rho**t + 1))


def printed_fedprox(*, rounds, local_steps, num_clients, clip_norm, noise_std, smoothness, learning_rate, prox):
    """Theorem 15, as printed: neither the step size nor the local steps enter."""
    del local_steps, learning_rate
    alpha, smooth = mp.mpf(prox), mp.mpf(smoothness)
    unit = 2 * mp.mpf(clip_norm) / (mp.sqrt(num_clients) * alpha * mp.mpf(noise_std))
    return unit * mp.sqrt((2 * alpha - smooth) / smooth * (1 - 2 / ((alpha / (alpha - smooth)) ** rounds + 1)))
