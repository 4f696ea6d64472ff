"""Flower trains until the privacy budget is spent: its own strategy and simulation, with our accountant.

Run with ``pip install "flwr[simulation]>=1.41"``: ``python examples/flower_budget.py``. Twenty clients fit a mean; ten of them train in each round, the
server clips and adds noise. In a project of your own only the accountant is new.
"""

from __future__ import annotations

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.exception import PrivacyBudgetExhausted
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from flwr.simulation import run_simulation

import hockeystick as hs
from hockeystick.interop.flower import Accountant, PrivacyConfig

CLIENTS, SAMPLED, ROUNDS = 20, 10, 12
client_app, server_app = ClientApp(), ServerApp()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Step half of the way to this client's mean."""
    (model,) = message.content["arrays"].to_numpy_ndarrays()
    mean = np.random.default_rng(context.node_id % 2**32).normal(1.0, 0.1, size=model.shape)
    content = {"arrays": ArrayRecord([0.5 * (model + mean)]), "metrics": MetricRecord({"num-examples": 1})}
    return Message(RecordDict(content), reply_to=message)


@server_app.main()
def main(grid: Grid, _context: Context) -> None:
    """Train, stop where the next round would exceed the budget, and say what was spent."""
    config = PrivacyConfig(1e-5, CLIENTS, "add-or-remove-one", "no-amplification", max_epsilon=8.0)
    accountant = Accountant(config)  # was: RdpAccountant(config)
    strategy = DifferentialPrivacyServerSideFixedClipping(
        FedAvg(fraction_train=SAMPLED / CLIENTS, fraction_evaluate=0.0, min_train_nodes=SAMPLED),
        noise_multiplier=2.0,
        clipping_norm=1.0,
        num_sampled_clients=SAMPLED,
        accountant=accountant,
    )
    try:
        strategy.start(grid, ArrayRecord([np.zeros(3)]), num_rounds=ROUNDS)
    except PrivacyBudgetExhausted as reason:
        print(reason)
    spent = accountant.get_privacy_spent()
    print(
        f"{spent.num_releases} of {ROUNDS} rounds, epsilon {hs.format_upper(spent.epsilon, '.4f')} at delta {spent.delta}"
    )


if __name__ == "__main__":
    run_simulation(server_app, client_app, num_supernodes=CLIENTS)
