"""The figures that train models, with quick settings: columns, ranges, budgets, and what is the same for the same seed."""

import math

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

from hockeystick import figures

for extra in ("sklearn", "numba", "matplotlib"):
    pytest.importorskip(extra)

import drawn_figures
import effort
from hockeystick.figures import fedavg_accuracy, isrl_experiments, sensitivity_study

ALGORITHMS = list(isrl_experiments.LOOKS)
NAMED = {"softmax": "", "network": "-network"}  # of figures, by the model


def test_splits_are_disjoint_balanced_and_fresh() -> None:
    """A fifth of each silo tests, silos are of one size, no record is on both sides, and another seed splits otherwise."""
    for make, silos in (
        (isrl_experiments.digit_pairs, 25),
        (isrl_experiments.digit_classes, 7),
        (lambda: isrl_experiments.diabetes(5), 5),
    ):
        study = make()
        train, test = study.split(1)
        assert train.num_silos == silos
        assert len(set(train.sizes)) == 1
        assert test.num_records == pytest.approx(train.num_records / 4, rel=0.05)
        rows = {row.tobytes() for row in train.data.features}
        assert sum(row.tobytes() in rows for row in test.data.features) <= 2  # scikit-learn's digits hold few twins
        again, other = study.split(1)[0], study.split(2)[0]
        assert np.array_equal(train.data.features, again.data.features)
        assert not np.array_equal(train.data.labels, other.data.labels) or not np.array_equal(
            train.data.features, other.data.features
        )
        assert np.linalg.norm(train.data.features, axis=1).max() <= 1.0


def test_silos_are_what_they_say() -> None:
    """A silo has one pair of digits, one class, or one range of the target."""
    train, _ = isrl_experiments.digit_pairs().split(1)
    assert set(np.diff(np.flatnonzero(train.data.offsets))) == {1}
    labels = np.split(isrl_experiments.digit_classes().split(1)[0].data.labels, 7)
    assert [set(part) for part in labels] == [{float(digit)} for digit in range(7)]
    target = np.split(isrl_experiments.diabetes(3).split(1)[0].data.labels, 3)
    assert max(target[0]) <= min(target[1]) <= max(target[1]) <= min(target[2])


def test_batches_are_the_papers() -> None:
    """K is n sqrt(epsilon)/(2 sqrt(R)), rounded, and at least 1."""
    study = isrl_experiments.digit_pairs()
    cells = [isrl_experiments.Cell(study, 25, 25, 1238, eps, True) for eps in study.budgets]
    assert [cell.batch for cell in cells] == [
        round(1238 * math.sqrt(eps) / (2 * math.sqrt(35))) for eps in study.budgets
    ]
    assert isrl_experiments.Cell(study, 25, 25, 2, 0.01, True).batch == 1


@pytest.mark.slow
def test_a_step_is_chosen_by_training_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among candidates the one with the least training error is reported, whatever its test error; what is not finite never is."""
    study = isrl_experiments.diabetes(3)
    split = study.split(1)
    cell = isrl_experiments.Cell(study, 3, 3, min(split[0].sizes), 1.0, False)
    chosen = isrl_experiments.best_of(cell, "minibatch SGD", split, 1)
    single = []
    everything = list(isrl_experiments.candidates(cell, "minibatch SGD"))
    for algorithm in everything:
        monkeypatch.setattr(isrl_experiments, "candidates", lambda *_, only=algorithm: iter([only]))
        single.append(isrl_experiments.best_of(cell, "minibatch SGD", split, 1))
    assert len(single) == 6 * 4
    assert chosen == min(single, key=lambda errors: errors[0])


def test_noise_is_charged() -> None:
    """Private algorithms add noise whose certified epsilon is the budget; the others add none."""
    study = isrl_experiments.digit_classes()
    train, _ = study.split(1)
    cell = isrl_experiments.Cell(study, 7, 3, min(train.sizes), 3.0, True)
    for name in ALGORITHMS[:3]:
        algorithm = next(iter(isrl_experiments.candidates(cell, name)))
        assert algorithm.noise_std > 0
        guarantee = algorithm.guarantee(train, rounds=study.rounds)
        spent = guarantee.epsilon(study.rounds, 1 / cell.records**2)
        assert 0.9 * 3.0 < spent <= 3.0 * (1 + 1e-9)
    free = cell._replace(private=False)
    assert all(algorithm.noise_std == 0 for algorithm in isrl_experiments.candidates(free, "local SGD"))


@pytest.mark.slow
@pytest.mark.share(2, by_day=2)
@pytest.mark.parametrize("number", range(4, 10))
def test_experiments_of_silos(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each panel has every algorithm at every budget; more privacy never helps much, and noise never helps minibatch SGD."""
    monkeypatch.setattr(isrl_experiments, "STEPS", effort.at_night(6, by_day=3))
    monkeypatch.setattr(isrl_experiments, "REPEATS", effort.at_night(2, by_day=1))
    table = figures.find(f"003/{number}").table(runs=1)
    drawn_figures.check(f"003/{number}", table)
    columns = ("panel", "algorithm", "epsilon", "split", "error", "batch_size", "training_error", "test_error")
    assert tuple(table.columns) == columns
    assert len({panel for panel, _ in table.groups("panel")}) == len(isrl_experiments.PANELS[number])
    for _, rows in table.groups("panel"):
        assert [name for name, _ in rows.groups("algorithm")] == ALGORITHMS
        errors = {name: curve["test_error"] for name, curve in rows.groups("algorithm")}
        assert all(np.all((curve >= 0) & (curve < 2)) for curve in errors.values())
        private, free = errors["minibatch SGD"], errors["minibatch SGD, no privacy"]
        assert private[-1] <= private[0]
        assert private[0] >= free[0]


@pytest.mark.share(2)
@pytest.mark.parametrize("model", NAMED)
def test_sensitivity_is_below_its_certified_sum(model: str) -> None:
    """From the same start only data sensitivity counts: after one round the gap is at most gamma_1, in every panel."""
    table = sensitivity_study.compute_figure_2(model, runs=1, rounds=5)
    assert tuple(table.columns) == ("model", "varied", "value", "round", "sensitivity", "data_sensitivity_bound")
    assert len(table["value"]) == 16
    assert np.all(table["sensitivity"] > 0)
    first = sensitivity_study.compute_figure_2(model, runs=1, rounds=1)
    assert np.all(first["sensitivity"] <= first["data_sensitivity_bound"] * (1 + 1e-12))
    clip = table.where(varied="V")
    assert clip["data_sensitivity_bound"] == pytest.approx(
        2 * clip["value"] / 20 * 0.5 * 5 * 5
    )  # 2V/m lr K, five rounds
    assert figures.find("004/2-network").settings == {"model": "network"}
    drawn_figures.check(f"004/2{NAMED[model]}", table)


@pytest.mark.share(2)
@pytest.mark.parametrize("model", NAMED)
def test_table_7_quickly(model: str) -> None:
    """Every algorithm has a row; with prox a model moves less."""
    table = sensitivity_study.compute_table_7(model, runs=1, rounds=20)
    assert table["alpha"].tolist() == [0.0, 0.01, 0.1, 1.0]
    assert np.all((table["accuracy"] > 0) & (table["accuracy"] <= 100))
    assert table["sensitivity"][-1] < table["sensitivity"][0]
    drawn_figures.check(f"004/table-7{NAMED[model]}", table)


def test_table_6_quickly() -> None:
    """Cells of the printed grid; epsilon is that of a Gaussian with mu = 2 lr V K sqrt(T/m)/sigma, and falls with noise and clients."""
    table = fedavg_accuracy.compute(runs=1, steps=200)
    assert len(table["m"]) == 24
    assert set(table["T"] * table["K"]) == {200}
    mu = 2 * 0.1 * table["K"] * np.sqrt(table["T"] / table["m"]) / table["sigma"]
    for eps, parameter in zip(table["epsilon"], mu, strict=True):  # mu is large: the second term by its logarithm
        at = parameter / 2 - eps / parameter
        delta = ndtr(at) - math.exp(eps + log_ndtr(at - parameter))
        assert delta == pytest.approx(1e-5, rel=1e-5)
    assert np.all(table["accuracy"] <= 100)
    drawn_figures.check("004/table-6", table)
