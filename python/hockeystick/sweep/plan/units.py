"""In what the arguments and the values of the registered functions are measured, for the labels of pictures.

What belongs to the user's own model (a learning rate, a clip norm, a loss) has the user's units, and is not listed.
"""

from __future__ import annotations

_ARGUMENTS = {
    "nats": ("eps", "epsilon"),
    "probability": ("delta", "p", "fpr", "sampling_rate"),
    "count": (
        *("batch_size", "dimension", "index", "local_steps", "num_clients", "num_records", "num_silos", "num_users"),
        *("period", "rounds", "silos_per_round", "steps", "num_runs", "clients_per_round", "records_per_silo"),
    ),
    "standard deviations": ("mu", "r", "x"),
    "noise / sensitivity": ("noise_multiplier",),
}
_VALUES = {
    "probability": (
        *("q", "theta", "laplace_theta", "gdp_advantage", "gdp_delta", "gdp_trade_off", "dpsgd_delta"),
        *(f"last_iterate.pnsgd_{name}" for name in ("gaussian", "gaussian_random_stop", "laplace", "rdp")),
        *("last_iterate.ball_contraction", "last_iterate.projected_contraction"),
        *(f"last_iterate.best{kind}" for kind in ("", "_cyclic", "_random_stop", "_sampled")),
        *(
            "federated.best",
            "federated.best_sampled",
            "federated.fedavg_delta",
            "federated.fedprox_delta",
            "federated.trusted_aggregator",
        ),
        *("federated.trusted_aggregator_random_stop", "utility.trusted_aggregator_delta", "dpsgd_sampling_rate"),
    ),
    "nats": (
        *("log_q", "log_theta", "gaussian_epsilon", "gdp_epsilon", "gdp_rdp", "dpsgd_epsilon"),
        *("federated.fedavg_epsilon", "federated.fedprox_epsilon", "isrl.noisy_mb_sgd_epsilon", "training.epsilon"),
    ),
    "standard deviations": ("q_inv", "theta_inverse"),
    "μ, Gaussian DP": (
        "federated.fedavg_gdp",
        "federated.fedprox_gdp",
        "published.fedavg_gdp",
        "published.fedprox_gdp",
    ),
    "noise / sensitivity": ("dpsgd_noise_multiplier",),
    "count": ("dpsgd_steps",),
    "share of records": ("training.accuracy", "training.accuracy_half_width"),
    "units of the loss": (
        *("training.loss", "training.loss_half_width", "training.loss_on_test"),
        "isrl.mb_sgd_risk_bound",
        "utility.trusted_aggregator_excess_risk",
    ),
}


def of_argument(name: str) -> str:
    """Return the unit of an argument, empty if it is the user's."""
    return next((unit for unit, names in _ARGUMENTS.items() if name in names), "")


def of_value(function: str) -> str:
    """Return the unit of a registered function's values, empty if it is the user's."""
    return next((unit for unit, names in _VALUES.items() if function in names), "")


def labelled(name: str, unit: str) -> str:
    """Return the text at an axis."""
    return f"{name} ({unit})" if unit else name
