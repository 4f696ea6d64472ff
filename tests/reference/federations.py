"""Arguments of the federated bounds, mu in many digits, and delta of linear losses by quadrature."""

import math

import mpmath as mp
from scipy import integrate
from scipy.stats import norm

import theorems

AGGREGATOR = {
    "num_users": 100, "batch_size": 10, "learning_rate": 0.5, "noise_std": 1.5, "lipschitz": 1.0, "radius": 1.0,
    "loss": "convex",
}  # fmt: skip
FEDAVG = {
    "rounds": 12, "local_steps": 5, "num_clients": 20, "clip_norm": 2.0, "noise_std": 0.5, "smoothness": 1.5,
    "learning_rate": 0.1,
}  # fmt: skip
FEDPROX = FEDAVG | {"prox": 2.0}
SCHEDULES = ("constant", "cyclic", "stagewise", "continuous")


def gdp(function: str, **arguments: object) -> mp.mpf:
    """Return the Gaussian-DP parameter by naive sums and 40-digit pooling."""
    diameter = arguments.pop("diameter", None)
    noise_std = arguments.pop("noise_std")
    with mp.workdps(40):
        rho, gamma = getattr(theorems, f"{function}_rounds")(**arguments)
        return theorems.gdp_parameter(
            rho, gamma, num_clients=arguments["num_clients"], noise_std=noise_std, diameter=diameter
        )


def linear_losses_delta(eps: float, sizes: tuple[int, int], slope: float) -> float:
    """Return delta of the last model of two batches, unit steps and noise, in a wide ball: two mixtures of normal laws, by quadrature."""
    std = math.sqrt(sum(1 / m for m in sizes))

    def excess(x: float) -> float:
        p, q = (sum(m / sum(sizes) * norm.pdf(x, s * slope / m, std) for m in sizes) for s in (1, -1))
        return max(p - math.exp(eps) * q, 0.0)

    return integrate.quad(excess, -1, 30 * std, points=[0.0, std, 4 * std], limit=400)[0]
