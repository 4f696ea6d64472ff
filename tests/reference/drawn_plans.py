"""Plans of sweeps of which pictures and reports are made."""

from typing import Any

EPS = {"linspace": [0.0, 4.0], "num": 12}
R = {"logspace": [0.1, 10.0], "num": 10}
THETA: dict[str, Any] = {
    "title": "Loss & </script><b>noise",
    "shard_rows": 50,
    "outputs": {"delta": "theta", "log_delta": "log_theta"},
    "axes": {"epsilon": EPS, "r": R},
}
FEDERATION: dict[str, Any] = {
    "outputs": {"certified": "federated.fedavg_gdp", "printed": "published.fedavg_gdp"},
    "fixed": {"clip_norm": 10.0, "learning_rate": 0.01, "smoothness": 1.0},
    "axes": {"num_clients": [50, 100], "noise_std": [1.0, 0.1, 0.01], "schedule": ["constant", "cyclic"]},
    "zip": [{"local_steps": [200, 100, 50, 20], "rounds": [5, 5, 10, 20]}],
}
