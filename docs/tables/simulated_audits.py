"""The second table of docs/audit/audit.md: every simulated algorithm that has a guarantee, attacked on linear losses.

The last record of the first silo has the gradient +1 or -1, at the clip norm, all others have 0, so that the runs differ by one
record replaced; the score is the last iterate. Where the guarantee is for adding or removing a record, the record is not there in the second problem.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hockeystick import audit, format_lower, format_upper, simulate

DELTA = 1e-2
JOINT_CONFIDENCE = 0.99


class Case(NamedTuple):
    """An algorithm, and how many silos, records in each, and rounds it is run with."""

    name: str
    algorithm: Any
    num_silos: int
    silo_size: int
    rounds: int


def federated() -> list[Case]:
    """Return local steps, every client in every round."""
    shared: dict[str, Any] = {"learning_rate": 0.1, "clip_norm": 1.0, "local_steps": 2, "noise_std": 0.4}
    algorithms = {
        f"Noisy-FedAvg, {schedule} steps": simulate.NoisyFedAvg(**shared, schedule=schedule)
        for schedule in ("constant", "cyclic", "stagewise", "continuous")
    }
    algorithms["Noisy-FedProx"] = simulate.NoisyFedProx(**shared, prox=2.0)
    algorithms["local SGD"] = simulate.LocalSGD(**(shared | {"noise_std": 2.0}))
    return [Case(name, algorithm, 2, 1, 5) for name, algorithm in algorithms.items()]


def minibatch() -> list[Case]:
    """Return noisy minibatch SGD, plain and accelerated."""
    shared: dict[str, Any] = {"clip_norm": 1.0, "noise_std": 1.0}
    batches = {
        "all records": simulate.EveryRound(),
        "fixed size": simulate.FixedSize(2),
        "Poisson": simulate.Poisson(0.5),
        "Poisson, public divisor": simulate.Poisson(0.5, expected_batch_size=2),
    }
    once = simulate.Cyclic(1)
    return [
        *(
            Case(
                f"minibatch SGD, {name}", simulate.NoisyMinibatchSGD(**shared, learning_rate=0.1, records=kind), 2, 4, 5
            )
            for name, kind in batches.items()
        ),
        Case("accelerated minibatch SGD", simulate.AcceleratedMinibatchSGD(**shared, scale=2.0, records=once), 2, 4, 4),
        Case(
            "multi-stage minibatch SGD",
            simulate.MultistageMinibatchSGD(**shared, stages=((2, 2.0), (2, 4.0)), records=once),
            2,
            4,
            4,
        ),
        Case("SGD with a learnt clip norm", learnt_clipping(), 1, 4, 5),
    ]


def learnt_clipping() -> simulate.AdaptiveClippingSGD:
    """Return SGD whose clip norm is that of the attacked gradient in the first round, and then follows the others' down."""
    steps: dict[str, Any] = {"learning_rate": 0.1, "clip_norm": 1.0, "clip_rate": 0.2, "quantile": 0.5}
    return simulate.AdaptiveClippingSGD(**steps, noise_multiplier=4.0, count_noise=4.0)


def ordered() -> list[Case]:
    """Return algorithms that take records or users in turn."""
    shared: dict[str, Any] = {"learning_rate": 1.0, "clip_norm": 1.0, "noise_std": 2.0}
    tree = shared | {"records": simulate.Cyclic(1)}
    projected = shared | {"radius": 4.0}
    return [
        Case("DP-FTRL, a tree for each pass", simulate.TreeFTRL(**tree, restart=True), 1, 4, 8),
        Case("DP-FTRL, one tree", simulate.TreeFTRL(**tree, restart=False), 1, 4, 8),
        Case("projected SGD, Gaussian noise", simulate.ProjectedNoisySGD(**projected), 1, 4, 4),
        Case("projected SGD, Laplace noise", simulate.ProjectedNoisySGD(**projected, noise="laplace"), 1, 4, 4),
        Case("projected SGD, random stop", simulate.ProjectedNoisySGD(**projected, random_stop=True), 1, 4, 4),
        Case("trusted aggregator", simulate.TrustedAggregator(**projected, batch_size=1), 4, 1, 4),
    ]


def simulated(case: Case, gradient: float | None, runs: int, seed: int) -> Any:
    """Return the runs with one gradient, all others 0; without the record that has it if there is none."""
    sizes = [case.silo_size - (gradient is None), *[case.silo_size] * (case.num_silos - 1)]
    features = np.zeros((sum(sizes), 1))
    if gradient is not None:
        features[case.silo_size - 1] = gradient
    problem = simulate.Problem("linear", features, sizes=sizes, feature_bound=1.0)
    return simulate.run(case.algorithm, problem, rounds=case.rounds, seed=seed, num_runs=runs)


def scored(case: Case, result: Any) -> Any:
    """Return what the attack looks at: the last iterates, but where only the model of a random round is released that one."""
    return result.models[-1, :, 0] if getattr(case.algorithm, "random_stop", False) else result.last_iterates[:, 0]


def audited(runs: int) -> Iterator[tuple[Case, float, audit.Evidence]]:
    """Audit every case; give the certified epsilon beside, which all audits stay below with the joint confidence."""
    cases = [*federated(), *minibatch(), *ordered()]
    confidence = audit.individual_confidence(JOINT_CONFIDENCE, len(cases))
    for seed, case in enumerate(cases):
        present = simulated(case, 1.0, runs, 2 * seed)
        guarantee = present.guarantee()
        other = simulated(case, None if guarantee.adjacency == "add_or_remove" else -1.0, runs, 2 * seed + 1)
        scores, others = (scored(case, result) for result in (present, other))
        evidence = audit.evaluate(scores, others, delta=DELTA, confidence=confidence)
        yield case, guarantee.epsilon(case.rounds, DELTA), evidence


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000, help="runs with each of the two records")
    print("| simulated algorithm | audit lower | certified upper |")  # noqa: T201
    print("|---|---|---|")  # noqa: T201
    for case, upper, evidence in audited(parser.parse_args().runs):
        print(f"| {case.name} | {format_lower(evidence.epsilon, '.3f')} | {format_upper(upper, '.3f')} |")  # noqa: T201
